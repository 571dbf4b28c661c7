//! All keys of a hash table, in the order of its index.

use crate::hash::entry::Action;
use crate::hash::read::HashReader;
use crate::runs::cursor::BlockCursor;
use crate::runs::merge::{Group, Merge};
use roaring::RoaringTreemap;
use tidalite_pager::{PageRead, Result};

/// A walk over the keys of a hash table, each with the numbers of its records.
pub struct Walk<'t, R: PageRead> {
    table: &'t HashReader<R>,
    merge: Merge<'t, R>,
    group: Group,
    records: RoaringTreemap,
}

impl<'t, R: PageRead> Walk<'t, R> {
    pub(crate) fn new(table: &'t HashReader<R>, from: &[u8]) -> Result<Self> {
        let runs = &table.state.runs;
        let mut merge = Merge::of_runs(runs, 0..runs.list.len(), &table.runs()?, &table.r, from)?;
        merge.add_oldest(BlockCursor::of_table(&table.main()?, &table.r, from)?);
        Ok(Self {
            table,
            merge,
            group: Group::default(),
            records: RoaringTreemap::new(),
        })
    }

    /// Moves to the next key that has records; returns false at the end. Keys with the same hash are one.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn next(&mut self) -> Result<bool> {
        while self.merge.next(&mut self.group)? {
            self.records = match self.group.len() {
                1 => match Action::decode(self.group.payload(0))? {
                    Action::Set(number) => RoaringTreemap::from_iter([number]),
                    action => self.table.live(&self.group.key, &[action], None)?,
                },
                _ => {
                    let actions: Vec<Action> =
                        self.group.payloads().map(Action::decode).collect::<Result<_>>()?;
                    self.table.live(&self.group.key, &actions, None)?
                }
            };
            if !self.records.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The key at the walk, in the form of the index.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.group.key
    }

    /// The numbers of the key's records.
    #[must_use]
    pub fn records(&self) -> &RoaringTreemap {
        &self.records
    }

    /// Calls `each` with the keys that are left, and their records, until it returns false.
    ///
    /// # Errors
    /// A damaged or unreadable page; errors of `each`.
    pub fn each(
        &mut self,
        each: &mut dyn FnMut(&[u8], &RoaringTreemap) -> Result<bool>,
    ) -> Result<()> {
        while self.next()? {
            if !each(&self.group.key, &self.records)? {
                break;
            }
        }
        Ok(())
    }
}
