//! Cache of tables found by snapshots of one commit: finding a table by name needs a lookup in the tree of tables and
//! the decoding of a root, which takes longer than beginning a snapshot. The schema of a relation is decoded once, too.
//!
//! Invariants: 1. All entries belong to one commit: a snapshot never changes, so entries stay valid.
//! 2. The places of the cache are filled in order and never change. Two threads that look up the same table
//!    concurrently may fill two places with it.

use crate::types::table_types::TableTypes;
use std::sync::{Arc, OnceLock};
use tidalite_kv::Tree;
use tidalite_relations::Layout;

/// Maximum number of cached tables. Further tables are looked up each time.
const KEPT: usize = 16;

/// A table that a snapshot has found.
pub(crate) struct Kept {
    pub(crate) name: Box<str>,
    pub(crate) tree: Tree,
    pub(crate) types: Option<TableTypes>,
    /// The decoded schema of a relation, once it was needed.
    pub(crate) layout: OnceLock<Arc<Layout>>,
}

/// Cache of the tables that snapshots of one commit have found; the head of this file lists the invariants.
#[derive(Default)]
pub(crate) struct TableCache([OnceLock<Kept>; KEPT]);

impl TableCache {
    /// A table, if the cache has it.
    #[inline]
    pub(crate) fn get(&self, name: &str) -> Option<&Kept> {
        let mut kept = self.0.iter().map_while(OnceLock::get);
        kept.find(|kept| *kept.name == *name)
    }

    /// Adds a table that was just found, if a place is free.
    pub(crate) fn note(&self, name: &str, tree: Tree, types: Option<&TableTypes>) {
        let Some(free) = self.0.iter().find(|place| place.get().is_none()) else {
            return;
        };
        // Another thread may have filled the place meanwhile: then a later lookup adds this table.
        let _ = free.set(Kept {
            name: name.into(),
            tree,
            types: types.cloned(),
            layout: OnceLock::new(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::KEPT;
    use crate::Options;
    use crate::storage::MemoryStorage;
    use std::sync::Arc;

    #[test]
    fn tables_are_found_as_they_were_in_each_commit() {
        let db = Options::new()
            .open_storage(Arc::new(MemoryStorage::new()))
            .unwrap();
        let name = |n: usize| format!("table {n}");
        // The test uses more tables than the cache holds.
        let count = KEPT + 4;
        let mut held = Vec::new();
        for round in 1..=3u8 {
            let mut txn = db.begin_write().unwrap();
            for n in 0..count {
                txn.table(&name(n)).unwrap().put(b"k", &[round]).unwrap();
            }
            txn.commit().unwrap();
            held.push((round, db.begin_read().unwrap()));
            for (round, snap) in &held {
                // Clones of a snapshot share its cache.
                for snap in [snap, &snap.clone()] {
                    for n in (0..count).chain(0..count) {
                        let table = snap.table(&name(n)).unwrap().unwrap();
                        assert_eq!(table.get(b"k").unwrap().unwrap(), [*round]);
                    }
                    assert!(snap.table(&name(count)).unwrap().is_none());
                }
            }
        }
    }

    #[test]
    fn a_table_is_looked_for_once_a_commit() {
        let db = Options::new()
            .open_storage(Arc::new(MemoryStorage::new()))
            .unwrap();
        let mut txn = db.begin_write().unwrap();
        txn.table("a").unwrap().put(b"k", b"v").unwrap();
        txn.commit().unwrap();
        let pages_read = || {
            let snap = db.begin_read().unwrap();
            snap.table("a").unwrap().unwrap();
            let read = &snap.counters().pages_read;
            read.load(std::sync::atomic::Ordering::Relaxed)
        };
        assert_eq!((pages_read(), pages_read()), (1, 0));
        // An evictable snapshot has to read pages, because that is how it notices its eviction.
        let snap = db.begin_read_evictable().unwrap();
        snap.table("a").unwrap().unwrap();
        let read = &snap.counters().pages_read;
        assert_eq!(read.load(std::sync::atomic::Ordering::Relaxed), 1);
    }
}
