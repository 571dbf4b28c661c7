//! Read-ahead for a table copy: a thread walks the table's leaves, so that the copying thread (the copier) does not
//! wait for checksums, page faults and disk reads.
//!
//! Invariants
//! 1. The thread is only a hint: it uses no rows, reports nothing, and may end at any time. The copier finds again any
//!    damage that the thread finds.
//! 2. The thread is at most `LEAVES_AHEAD` leaves ahead: the leaves it read are still in memory when the copier needs
//!    them.
//! 3. The thread ends when the copier does, in whichever way (`Copier` is dropped).

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

/// Minimum number of rows of a table for which a read-ahead thread is started.
const ROWS_MIN: u64 = 20_000;

/// Time that the thread sleeps when it is far enough ahead: less than the copier takes for an eighth of the leaves
/// ahead.
const NAP: Duration = Duration::from_micros(200);

/// Counts the rows copied, so that the read-ahead thread knows how far ahead it is.
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

/// Runs `copy`, with a read-ahead thread for the table if the table is large enough.
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
            // Errors are ignored here: the copier finds the same errors.
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
        // If no thread can be started, the copy is only slower.
        let _ = Worker::start_scoped(scope, "ahead", go);
        let copied = copy(&mut copier);
        drop(copier);
        copied
    })
}
