//! Iteration in batches, for iterators that cannot hold a cursor, because they own the snapshot or because the table
//! changes between two steps.
//!
//! Invariants
//! 1. `ends` is the range of keys that were not read yet.
//! 2. Nothing is read after an error or after the last entry.

use crate::tables::bounds::{Ends, is_before, owned};
use crate::tables::codec::{TableKey, TableValue, key_of};
use crate::tables::key_range::KeyRange;
use crate::tables::table::Table;
use crate::types::error::{Error, Result};
use std::ops::Bound;

/// Maximum number of entries that an iteration holds in memory.
const BATCH: usize = 64;

/// The entries of a table with keys in a range, ascending, 64 at a time.
pub(super) struct Batches<K: TableKey + ?Sized, V: TableValue + ?Sized> {
    ends: Ends,
    batch: std::vec::IntoIter<(K::Owned, V::Owned)>,
    /// Whether there may be further entries in the range `ends`.
    left: bool,
    /// Error to be returned after the entries of the batch.
    failed: Option<Error>,
}

impl<K: TableKey + ?Sized, V: TableValue + ?Sized> Batches<K, V> {
    pub(super) fn new(range: impl KeyRange<K>) -> Self {
        Self {
            ends: owned(range.bounds()),
            batch: Vec::new().into_iter(),
            left: true,
            failed: None,
        }
    }

    /// Returns the next entry. When all entries of a batch were returned, calls `read` with a function that reads the
    /// next batch; `read` must call this function with the table.
    pub(super) fn next(
        &mut self,
        read: impl Fn(&mut dyn FnMut(&Table<'_, K, V>) -> Result<()>) -> Result<()>,
    ) -> Option<Result<(K::Owned, V::Owned)>> {
        loop {
            if let Some(entry) = self.batch.next() {
                return Some(Ok(entry));
            }
            if let Some(error) = self.failed.take() {
                return Some(Err(error));
            }
            if !self.left {
                return None;
            }
            let (ends, mut batch) = (&mut self.ends, Vec::new());
            let read = read(&mut |table| read_batch(table, ends, &mut batch));
            self.left = read.is_ok() && batch.len() == BATCH;
            self.failed = read.err();
            self.batch = batch.into_iter();
        }
    }
}

/// Reads entries until the batch is full, and moves the lower end of the range past the last of them.
fn read_batch<K: TableKey + ?Sized, V: TableValue + ?Sized>(
    table: &Table<'_, K, V>,
    (from, to): &mut Ends,
    batch: &mut Vec<(K::Owned, V::Owned)>,
) -> Result<()> {
    let mut cursor = table.cursor_as::<[u8], V>();
    let mut found = cursor.begin_at(from)?;
    while found {
        let key = cursor.key();
        if !is_before(key, to) {
            break;
        }
        batch.push((key_of::<K>(&table.named, key)?, cursor.value()?));
        if batch.len() == BATCH {
            *from = Bound::Excluded(key.to_vec());
            break;
        }
        found = cursor.next()?;
    }
    Ok(())
}
