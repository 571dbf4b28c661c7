//! Helper threads of a query, and the distribution of the query's pieces among them.
//!
//! Invariants
//! 1. A helper thread reads through its own clone of the snapshot, so that threads write to nothing shared; the clone's
//!    counters are added to the caller's counters at the end.
//! 2. If several pieces fail, the first error is returned, and no further piece is begun.
//! 3. No thread outlives the query.

use crate::txn::pages::Pages;
use crate::types::error::Result;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use tidalite_base::Worker;
use tidalite_pager::{PageRead, Snapshot};

/// Maximum number of helper threads. More do not help, because all threads then wait for the same memory.
pub(crate) const SCAN_THREADS_MAX: usize = 64;

/// Maximum number of helper threads unless the options set another number.
const SCAN_THREADS_DEFAULT_MAX: usize = 7;

/// Number of pieces per thread. With several pieces each, a thread that starts late delays the query by only a fraction
/// of its share.
const PIECES_EACH: usize = 4;

/// Minimum number of vectors that a query must visit, at a microsecond or two each, so that threads are started. For
/// fewer vectors, starting a thread would take about as long as it saves.
pub(crate) const VECTORS_MIN: u64 = 512;

/// Default number of helper threads: one for each available core except the caller's.
pub(crate) fn scan_threads_default() -> usize {
    static THREADS: OnceLock<usize> = OnceLock::new();
    *THREADS.get_or_init(|| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        (cores - 1).min(SCAN_THREADS_DEFAULT_MAX)
    })
}

/// The helpers of a query: the number of threads, and the snapshot that each thread clones.
#[derive(Clone, Copy)]
pub(crate) struct Helpers<'a> {
    pub(super) snapshot: &'a Snapshot,
    threads: usize,
}

impl<'a> Helpers<'a> {
    /// The helpers for a query that reads these pages; `None` in a write transaction, or if the number of threads is
    /// zero.
    pub(crate) fn of(pages: &Pages<'a>, threads: usize) -> Option<Self> {
        match pages {
            Pages::Snapshot(snapshot) if threads > 0 => Some(Self { snapshot, threads }),
            _ => None,
        }
    }

    /// The number of pieces into which a query should be divided.
    pub(crate) fn pieces(&self) -> usize {
        (self.threads + 1) * PIECES_EACH
    }

    /// Runs the jobs with the numbers `0..jobs` on this thread and the helper threads, and returns the results in
    /// order.
    pub(super) fn share_out<T: Send>(
        &self,
        jobs: usize,
        job: impl Fn(&Snapshot, usize) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let next = AtomicUsize::new(0);
        let work = |snapshot: &Snapshot| {
            let mut done = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= jobs {
                    return done;
                }
                let answer = job(snapshot, number);
                if answer.is_err() {
                    next.store(jobs, Ordering::Relaxed);
                }
                done.push((number, answer));
            }
        };
        let mut answers = thread::scope(|scope| {
            let helper = |_| {
                let own = self.snapshot.clone();
                let work = &work;
                // If a thread cannot be started, the other threads do all jobs.
                Worker::start_scoped(scope, "scan", move || (work(&own), own)).ok()
            };
            let helpers: Vec<_> = (1..jobs.min(self.threads + 1)).filter_map(helper).collect();
            let mut answers = work(self.snapshot);
            for helper in helpers {
                match helper.join() {
                    Ok((done, own)) => {
                        self.snapshot.counters().add(own.counters());
                        answers.extend(done);
                    }
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            answers
        });
        answers.sort_unstable_by_key(|(number, _)| *number);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }
}
