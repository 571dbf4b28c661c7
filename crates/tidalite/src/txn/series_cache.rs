//! Series that snapshots of one commit have opened, kept for those who ask next: to open a series is to look for its record, to
//! decode that, and to collect its rows of the front. It takes many times as long as to ask it for its newest row, or for the sum of all.
//!
//! Invariants: 1. All are of one commit: nothing that a snapshot sees changes, so nothing in here does.
//! 2. They take no more than `BYTES_MAX`, by `OpenedSeries::bytes`. When another one would, all are forgotten; who has one in use keeps it.

use crate::catalog::entries::SeriesInfo;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use tidalite_base::SeriesId;
use tidalite_codec::Rows;
use tidalite_series::SeriesTree;

/// A series of ten columns takes up to 15 KiB, one of two up to 3 KiB, and its waiting rows.
const BYTES_MAX: usize = 16 << 20;

/// What a series is read by: its entry of the catalog, its record, and what is newer.
pub(crate) struct OpenedSeries {
    pub(crate) info: Arc<SeriesInfo>,
    pub(crate) tree: SeriesTree,
    /// Its rows in the front, or in a transaction; sorted.
    pub(crate) late: Rows,
}

impl OpenedSeries {
    /// What it takes in memory, about.
    fn bytes(&self) -> usize {
        let words = self.late.len() * (1 + self.late.columns.len());
        size_of::<Self>() + self.tree.memory_bytes() + words * 8
    }
}

/// See the head of this file.
#[derive(Default)]
pub(crate) struct Opened(RwLock<Kept>);

#[derive(Default)]
struct Kept {
    by_id: HashMap<SeriesId, Arc<OpenedSeries>>,
    bytes: usize,
}

impl Opened {
    pub(crate) fn get(&self, id: SeriesId) -> Option<Arc<OpenedSeries>> {
        let kept = self.0.read().unwrap_or_else(PoisonError::into_inner);
        kept.by_id.get(&id).cloned()
    }

    /// Keeps a series that was opened just now, if there is room for it at all.
    pub(crate) fn note(&self, series: &Arc<OpenedSeries>) {
        let bytes = series.bytes();
        if bytes > BYTES_MAX {
            return;
        }
        let mut kept = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if kept.bytes + bytes > BYTES_MAX {
            *kept = Kept::default();
        }
        // Two threads may have opened it at a time.
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
    use crate::{MemoryStorage, Options, ReadTxn, Series};
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
        txn.series("a").unwrap().insert(1, 1.0).unwrap();
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

        // Rows of another commit are not in it, a rename is not either.
        let mut txn = db.begin_write().unwrap();
        txn.series("a").unwrap().insert(2, 2.0).unwrap();
        txn.rename_series(id, "b").unwrap();
        txn.commit().unwrap();
        let second = db.begin_read().unwrap();
        assert_eq!(state_of(&second, id).late.len(), 2);
        assert_eq!(state_of(&first, id).late.len(), 1);
        assert_eq!(state_of(&second, id).info.label(), "b");
        assert_eq!(state_of(&first, id).info.label(), "a");

        // One that can be taken away reads what it tells.
        let evictable = db.begin_read_evictable().unwrap();
        assert!(!Arc::ptr_eq(
            &state_of(&evictable, id),
            &state_of(&evictable, id)
        ));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        // Rows that wait in the front, 16 bytes each, so many that not all series fit.
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
                series.insert(time, n as f64).unwrap();
            }
            ids.push(series.id());
        }
        txn.commit().unwrap();
        let snap = db.begin_read().unwrap();
        let mut forgot = false;
        for (n, id) in ids.iter().enumerate() {
            let before = snap.begun.opened.0.read().unwrap().bytes;
            assert_eq!(state_of(&snap, *id).late.len(), ROWS as usize);
            let kept = snap.begun.opened.0.read().unwrap();
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
