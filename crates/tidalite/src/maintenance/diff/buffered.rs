//! Compares the entries of a buffered table in two versions.
//!
//! Both versions are read whole: an entry may be in a run in one version and in a row in the other.

use super::change::{Change, Tell};
use crate::types::error::Result;
use std::cmp::Ordering;
use std::ops::Bound;
use tidalite_index::{BufferedRange, BufferedReader};
use tidalite_kv::Tree;
use tidalite_pager::Snapshot;

type Reader<'p> = BufferedReader<&'p Snapshot>;

/// A table and the pages from which it is read.
type Version<'p> = (&'p Tree, &'p Snapshot);

/// Opens a version; `None` if the table has no rows there, not even those that every buffered table has.
fn open((tree, pages): Version<'_>) -> Result<Option<Reader<'_>>> {
    match tree.is_empty() {
        true => Ok(None),
        false => Ok(Some(BufferedReader::open(tree, pages)?)),
    }
}

/// The entries of a version, one after the other.
struct Entries<'t, 'p> {
    range: Option<BufferedRange<'t, &'p Snapshot>>,
}

impl<'t, 'p> Entries<'t, 'p> {
    fn of(table: Option<&'t Reader<'p>>) -> Result<Self> {
        let all = |table: &'t Reader<'p>| table.range(Bound::Unbounded, Bound::Unbounded, false);
        let mut entries = Self {
            range: table.map(all).transpose()?,
        };
        entries.step()?;
        Ok(entries)
    }

    fn step(&mut self) -> Result<()> {
        if let Some(range) = &mut self.range
            && !range.step()?
        {
            self.range = None;
        }
        Ok(())
    }

    /// Key and value at the current entry; `None` at the end.
    fn entry(&self) -> Option<(&[u8], &[u8])> {
        let range = self.range.as_ref()?;
        Some((range.key(), range.value()?))
    }
}

/// Passes the entries that differ to `f`.
pub(super) fn differences(
    table: &str,
    new: Version<'_>,
    old: Version<'_>,
    f: &mut Tell<'_>,
) -> Result<()> {
    let (new, old) = (open(new)?, open(old)?);
    let (mut new, mut old) = (Entries::of(new.as_ref())?, Entries::of(old.as_ref())?);
    let path = &[][..];
    loop {
        let order = match (new.entry(), old.entry()) {
            (Some((key, value)), Some((other, before))) => {
                let order = key.cmp(other);
                match order {
                    Ordering::Less => f(Change::Inserted { table, path, key })?,
                    Ordering::Equal if value != before => f(Change::Changed { table, path, key })?,
                    Ordering::Equal => {}
                    Ordering::Greater => f(Change::Removed {
                        table,
                        path,
                        key: other,
                    })?,
                }
                order
            }
            (Some((key, _)), None) => {
                f(Change::Inserted { table, path, key })?;
                Ordering::Less
            }
            (None, Some((key, _))) => {
                f(Change::Removed { table, path, key })?;
                Ordering::Greater
            }
            (None, None) => return Ok(()),
        };
        if order != Ordering::Greater {
            new.step()?;
        }
        if order != Ordering::Less {
            old.step()?;
        }
    }
}
