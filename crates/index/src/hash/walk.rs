//! Walks through all keys of a hash table, in the order of its index.

use crate::hash::entry::Action;
use crate::hash::read::HashReader;
use crate::runs::cursor::BlockCursor;
use crate::runs::merge::{Group, Merge};
use roaring::RoaringTreemap;
use std::collections::HashSet;
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

    /// Moves to the next key that has records; returns false at the end. Keys with the same hash are returned as one.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn step(&mut self) -> Result<bool> {
        while self.merge.next(&mut self.group)? {
            self.records = match self.group.len() {
                1 => match Action::decode(self.group.payload(0))? {
                    Action::Set(number) => RoaringTreemap::from_iter([number]),
                    action => self.table.live(&self.group.key, &[action], None)?,
                },
                _ => {
                    let actions: Vec<Action> = self
                        .group
                        .payloads()
                        .map(Action::decode)
                        .collect::<Result<_>>()?;
                    self.table.live(&self.group.key, &actions, None)?
                }
            };
            if !self.records.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The current key as the index stores it.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.group.key
    }

    /// The numbers of the key's records.
    #[must_use]
    pub fn records(&self) -> &RoaringTreemap {
        &self.records
    }

    /// Calls `each` with the remaining keys and their records, until it returns false.
    ///
    /// # Errors
    /// A damaged or unreadable page; errors of `each`.
    pub fn each(
        &mut self,
        each: &mut dyn FnMut(&[u8], &RoaringTreemap) -> Result<bool>,
    ) -> Result<()> {
        while self.step()? {
            if !each(&self.group.key, &self.records)? {
                break;
            }
        }
        Ok(())
    }
}

impl<R: PageRead> HashReader<R> {
    /// Number of keys. Entries of the runs are looked up in the main table, so this is fast after compaction.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn count_keys(&self) -> Result<u64> {
        if self.state.runs.is_empty() && !(self.options.duplicates && self.options.is_hashed()) {
            return Ok(self.state.main_keys);
        }
        let mut count = 0;
        self.walk(b"")?.each(&mut |_, records| {
            count += match self.options.duplicates {
                true if self.options.is_hashed() => self.distinct_keys(records)?,
                true => u64::from(!records.is_empty()),
                false => records.len(),
            };
            Ok(true)
        })?;
        Ok(count)
    }

    /// Number of different keys among records with the same hash.
    fn distinct_keys(&self, records: &RoaringTreemap) -> Result<u64> {
        if records.len() < 2 {
            return Ok(records.len());
        }
        let mut keys = HashSet::new();
        for number in records {
            keys.insert(self.options.folded(self.expect(number)?.key()).into_owned());
        }
        Ok(keys.len() as u64)
    }

    /// Number of records of all keys, including duplicates.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn count_records(&self) -> Result<u64> {
        if !self.options.duplicates {
            return self.count_keys();
        }
        let mut count = 0;
        self.walk(b"")?.each(&mut |_, records| {
            count += records.len();
            Ok(true)
        })?;
        Ok(count)
    }

    /// All keys in the order of the index, beginning at `from`; keys are in the form of the index.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn walk(&self, from: &[u8]) -> Result<Walk<'_, R>> {
        Walk::new(self, from)
    }
}
