//! Removing entries of a table by a predicate.

use crate::tables::bounds::{Ends, is_before, owned};
use crate::tables::key_range::KeyRange;
use crate::tables::table_mut::TableMut;
use crate::types::error::Result;
use std::ops::Bound;

/// Maximum number of runs of unwanted entries that are collected before they are removed: the first and last key of
/// each run are in memory.
const RUNS_MAX: usize = 1024;

/// A run of adjacent entries to be removed, given by the keys of its first and last entry.
struct Run {
    first: Vec<u8>,
    last: Option<Vec<u8>>,
}

/// The runs found by one part of the walk over the table.
struct Unwanted {
    runs: Vec<Run>,
    /// Key at which the walk has to continue; `None` if it has reached the end of the range.
    stopped_at: Option<Vec<u8>>,
}

impl TableMut<'_> {
    /// Keeps the entries of a range for which `keep`, called with key and value in key order, returns true, and removes
    /// the others; returns the number of entries removed. A nested table stays, because it has no value to pass to
    /// `keep`.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let mut table = tx.table("sessions")?;
    /// table.extend([("ann", "12"), ("ben", "7"), ("eve", "9")])?;
    /// let gone = table.retain(.., |_, expires| expires.len() > 1)?;
    /// assert_eq!((gone, table.view()?.count()), (2, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`remove`](Self::remove). Some of the entries already passed to `keep` may have been removed.
    ///
    /// # Cost
    /// A walk over the range; one [`remove_range`](Self::remove_range) for every run of adjacent unwanted entries, or
    /// one `remove` for a run of a single entry.
    pub fn retain(
        &mut self,
        range: impl KeyRange<[u8]>,
        mut keep: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<u64> {
        let mut ends = owned(range.bounds());
        let mut removed = 0;
        loop {
            let part = self.unwanted(&ends, &mut keep)?;
            for Run { first, last } in part.runs {
                removed += match last {
                    None => u64::from(self.remove(&first)?),
                    Some(last) => self.remove_range(first..=last)?,
                };
            }
            match part.stopped_at {
                Some(key) => ends.0 = Bound::Included(key),
                None => return Ok(removed),
            }
        }
    }

    /// Calls `keep` for the entries of a range, and collects runs of unwanted entries until there are `RUNS_MAX` runs.
    fn unwanted(
        &self,
        (from, to): &Ends,
        keep: &mut impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<Unwanted> {
        let mut runs: Vec<Run> = Vec::new();
        let view = self.view()?;
        let mut cursor = view.cursor();
        let mut there = cursor.begin_at(from)?;
        let mut follows = false;
        while there {
            let key = cursor.key();
            if !is_before(key, to) {
                break;
            }
            if !follows && runs.len() == RUNS_MAX {
                let stopped_at = Some(key.to_vec());
                return Ok(Unwanted { runs, stopped_at });
            }
            let goes = !cursor.is_nested()
                && !match cursor.value_ref() {
                    Some(value) => keep(key, value),
                    None => keep(key, &cursor.value()?),
                };
            match runs.last_mut() {
                Some(run) if goes && follows => {
                    let last = run.last.get_or_insert_default();
                    last.clear();
                    last.extend_from_slice(key);
                }
                _ if goes => runs.push(Run {
                    first: key.to_vec(),
                    last: None,
                }),
                _ => {}
            }
            follows = goes;
            there = cursor.next()?;
        }
        let stopped_at = None;
        Ok(Unwanted { runs, stopped_at })
    }
}
