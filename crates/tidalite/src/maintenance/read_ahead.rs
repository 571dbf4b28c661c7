//! Read-ahead for a table copy: a thread walks the table's leaves, so that the copier need not wait for their
//! checksums, page faults and disk reads.
//!
//! Invariants
//! 1. The thread is only a hint: it uses no rows, reports nothing, and may end at any time. Damage that it finds is
//!    found by the copier again.
//! 2. It is at most `LEAVES_AHEAD` leaves ahead: the leaves it read are still in memory when the copier needs them.
//! 3. It ends when the copier does, in whichever way (`Copier` is dropped).

use crate::txn::pages::Pages;
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use tidalite_base::Worker;
use tidalite_kv::Tree;

/// Maximum number of leaves read ahead: 4 MiB of pages of 4 KiB.
const LEAVES_AHEAD: usize = 1024;

/// Minimum number of rows of a table for which a thread is started.
const ROWS_MIN: u64 = 20_000;

/// Sleep time when far enough ahead: less than the copier takes for an eighth of the leaves ahead.
const NAP: Duration = Duration::from_micros(200);

/// Counts the rows copied.
pub(crate) struct Copier<'c> {
    done: &'c AtomicU64,
    rows: u64,
}

impl Copier<'_> {
    #[inline]
    pub(crate) fn copied(&mut self) {
        self.rows += 1;
        self.done.store(self.rows, Ordering::Relaxed);
    }
}

impl Drop for Copier<'_> {
    fn drop(&mut self) {
        self.done.store(u64::MAX, Ordering::Relaxed);
    }
}

/// Runs `copy` while the table is read ahead, if that is useful.
pub(crate) fn read_ahead<T>(
    pages: Pages<'_>,
    tree: Option<&Tree>,
    copy: impl FnOnce(&mut Copier<'_>) -> T,
) -> T {
    let done = AtomicU64::new(0);
    let mut copier = Copier {
        done: &done,
        rows: 0,
    };
    let alone = thread::available_parallelism().map_or(1, NonZeroUsize::get) == 1;
    let (Pages::Snapshot(pages), Some(tree), false) = (pages, tree, alone) else {
        return copy(&mut copier);
    };
    if tree.len() < ROWS_MIN {
        return copy(&mut copier);
    }
    thread::scope(|scope| {
        let go = || {
            let mut ahead = VecDeque::with_capacity(LEAVES_AHEAD);
            // The copier finds the same errors.
            let _ = tree.read_leaves(pages, &mut |before| {
                if ahead.len() == LEAVES_AHEAD
                    && let Some(first) = ahead.pop_front()
                {
                    while done.load(Ordering::Relaxed) < first {
                        thread::sleep(NAP);
                    }
                }
                ahead.push_back(before);
                done.load(Ordering::Relaxed) != u64::MAX
            });
        };
        // Without a thread the copy is only slower.
        let _ = Worker::start_scoped(scope, "ahead", go);
        let copied = copy(&mut copier);
        drop(copier);
        copied
    })
}
