//! Cache of series opened by snapshots of one commit: opening a series looks up and decodes its record and collects its
//! rows from the delta, which takes many times as long as reading its newest row or the sum of all rows.
//!
//! Invariants: 1. All entries belong to one commit: a snapshot never changes, so entries stay valid.
//! 2. Entries take at most `BYTES_MAX`, counted by `OpenedSeries::bytes`. An entry that would exceed the limit empties
//!    the cache first; the users of an old entry keep it alive.

use crate::catalog::entries::SeriesInfo;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use tidalite_base::SeriesId;
use tidalite_codec::Rows;
use tidalite_series::SeriesTree;

/// Maximum memory of the cached series in bytes. A series of ten columns takes up to 15 KiB, one of two columns up to 3
/// KiB, plus its rows in the delta.
const BYTES_MAX: usize = 16 << 20;

/// Everything that is needed to read a series: its catalog entry, its tree, and the rows that are not in leaves.
pub(crate) struct OpenedSeries {
    pub(crate) info: Arc<SeriesInfo>,
    pub(crate) tree: SeriesTree,
    /// The rows of the series in the delta, or in a transaction's write buffer, sorted by time.
    pub(crate) late: Rows,
}

impl OpenedSeries {
    /// Approximate size of this entry in memory, in bytes.
    fn bytes(&self) -> usize {
        let words = self.late.len() * (1 + self.late.columns.len());
        size_of::<Self>() + self.tree.memory_bytes() + words * 8
    }
}

/// Cache of the series that snapshots of one commit have opened; the head of this file lists the invariants.
#[derive(Default)]
pub(crate) struct SeriesCache(RwLock<Kept>);

#[derive(Default)]
struct Kept {
    by_id: HashMap<SeriesId, Arc<OpenedSeries>>,
    bytes: usize,
}

impl SeriesCache {
    pub(crate) fn get(&self, id: SeriesId) -> Option<Arc<OpenedSeries>> {
        let kept = self.0.read().unwrap_or_else(PoisonError::into_inner);
        kept.by_id.get(&id).cloned()
    }

    /// Adds a series that was just opened, unless it exceeds the memory limit by itself.
    pub(crate) fn note(&self, series: &Arc<OpenedSeries>) {
        let bytes = series.bytes();
        if bytes > BYTES_MAX {
            return;
        }
        let mut kept = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if kept.bytes + bytes > BYTES_MAX {
            *kept = Kept::default();
        }
        // Two threads may have opened the series concurrently; then the cache already has an entry for it.
        if kept
            .by_id
            .insert(series.info.id, Arc::clone(series))
            .is_none()
        {
            kept.bytes += bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::BYTES_MAX;
    use crate::Steps;
    use crate::storage::MemoryStorage;
    use crate::{Options, ReadTxn, Series};
    use std::sync::Arc;

    fn state_of(snap: &ReadTxn, id: tidalite_base::SeriesId) -> Arc<super::OpenedSeries> {
        let series: Series<'_> = snap.series_by_id(id).unwrap().unwrap();
        Arc::clone(&series.state)
    }

    #[test]
    fn a_series_is_opened_once_a_commit() {
        let db = Options::new()
            .open_storage(Arc::new(MemoryStorage::new()))
            .unwrap();
        let mut txn = db.begin_write().unwrap();
        let id = txn.series("a").unwrap().id();
        txn.series("a").unwrap().insert(Steps(1), 1.0).unwrap();
        txn.commit().unwrap();

        let first = db.begin_read().unwrap();
        let state = state_of(&first, id);
        let again = db.begin_read().unwrap();
        assert!(
            Arc::ptr_eq(&state, &state_of(&again, id)),
            "the same commit"
        );
        assert!(Arc::ptr_eq(
            &state,
            &first.series("a").unwrap().unwrap().state
        ));

        // A snapshot of the older commit sees neither later rows nor a later rename.
        let mut txn = db.begin_write().unwrap();
        txn.series("a").unwrap().insert(Steps(2), 2.0).unwrap();
        txn.rename_series(id, "b").unwrap();
        txn.commit().unwrap();
        let second = db.begin_read().unwrap();
        assert_eq!(state_of(&second, id).late.len(), 2);
        assert_eq!(state_of(&first, id).late.len(), 1);
        assert_eq!(state_of(&second, id).info.label(), "b");
        assert_eq!(state_of(&first, id).info.label(), "a");

        // An evictable snapshot reads pages for every query, so it does not use the cache.
        let evictable = db.begin_read_evictable().unwrap();
        assert!(!Arc::ptr_eq(
            &state_of(&evictable, id),
            &state_of(&evictable, id)
        ));
    }

    #[test]
    fn the_cache_is_bounded() {
        // Number of rows of a series, all in the delta; at 16 bytes each, not all series fit in the cache.
        const ROWS: i64 = 400;
        let options = Options::new();
        let db = options
            .open_storage(Arc::new(MemoryStorage::new()))
            .unwrap();
        let mut txn = db.begin_write().unwrap();
        let mut ids = Vec::new();
        for n in 0..(BYTES_MAX as i64 / (ROWS * 24) + 100) {
            let mut series = txn.series(&format!("s{n}")).unwrap();
            for time in 0..ROWS {
                series.insert(Steps(time), n as f64).unwrap();
            }
            ids.push(series.id());
        }
        txn.commit().unwrap();
        let snap = db.begin_read().unwrap();
        let mut forgot = false;
        for (n, id) in ids.iter().enumerate() {
            let before = snap.cache.series.0.read().unwrap().bytes;
            assert_eq!(state_of(&snap, *id).late.len(), ROWS as usize);
            let kept = snap.cache.series.0.read().unwrap();
            forgot |= kept.bytes < before;
            assert!(
                kept.bytes <= BYTES_MAX && kept.by_id.contains_key(id),
                "{n}"
            );
            let sum: usize = kept.by_id.values().map(|series| series.bytes()).sum();
            assert_eq!(sum, kept.bytes);
        }
        assert!(forgot, "more than what is kept");
    }
}
