//! Tables that snapshots of one commit have looked for, kept for those who ask next: to find a table by its name is a get in the tree of
//! tables and a root to decode, which takes longer than to begin a snapshot.
//!
//! Invariants: 1. All are of one commit: nothing that a snapshot sees changes, so nothing in here does.
//! 2. Places are filled from the first one on and stay as they are. Two threads that look for a table at a time may fill two with it.

use std::sync::OnceLock;
use tidalite_kv::Tree;

/// Tables that are kept. Those of a database with more are looked for each time.
const KEPT: usize = 16;

struct Found {
    name: Box<str>,
    tree: Tree,
}

/// See the head of this file.
#[derive(Default)]
pub(crate) struct FoundTables([OnceLock<Found>; KEPT]);

impl FoundTables {
    /// The name of a table, as it is kept, and its root.
    #[inline]
    pub(crate) fn get(&self, name: &str) -> Option<(&str, Tree)> {
        let mut kept = self.0.iter().map_while(OnceLock::get);
        let found = kept.find(|found| *found.name == *name)?;
        Some((&found.name, found.tree))
    }

    /// Keeps what was found just now, if there is room for it.
    pub(crate) fn note(&self, name: &str, tree: Tree) {
        let Some(free) = self.0.iter().find(|place| place.get().is_none()) else {
            return;
        };
        let name = name.into();
        // Another thread may have had it filled meanwhile: then the next who asks keeps it.
        let _ = free.set(Found { name, tree });
    }
}

#[cfg(test)]
mod tests {
    use super::KEPT;
    use crate::{MemoryStorage, Options};
    use std::sync::Arc;

    #[test]
    fn tables_are_found_as_they_were_in_each_commit() {
        let db = Options::new()
            .open_storage(Arc::new(MemoryStorage::new()))
            .unwrap();
        let name = |n: usize| format!("table {n}");
        // More than are kept.
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
                // Clones share what was found.
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
        // One that may be taken away has to read, and so learns of its end.
        let snap = db.begin_read_evictable().unwrap();
        snap.table("a").unwrap().unwrap();
        let read = &snap.counters().pages_read;
        assert_eq!(read.load(std::sync::atomic::Ordering::Relaxed), 1);
    }
}
