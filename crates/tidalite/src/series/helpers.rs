//! Threads that help with a question, and the sharing out of its pieces among them.
//!
//! Invariants
//! 1. A thread that helps reads by a clone of the snapshot, so nothing that it writes to is shared; what it counted is added to the counters of
//!    the one who asks.
//! 2. Of several pieces that fail the first one is told, and no other is begun.
//! 3. No thread outlives the question.

use crate::txn::pages::Pages;
use crate::types::error::Result;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use tidalite_pager::{PageRead, Snapshot};

/// More threads than this help nobody who waits for memory.
pub(crate) const SCAN_THREADS_MAX: usize = 64;

/// So many help without being asked for, at most.
const SCAN_THREADS_DEFAULT_MAX: usize = 7;

/// Pieces for each thread: one that is late holds up the others by a part of its share.
const PIECES_EACH: usize = 4;

/// Vectors that are looked into, a microsecond or two each. Below this a thread would take about as long to begin as it saves.
pub(crate) const VECTORS_MIN: u64 = 512;

/// Threads that help where nobody said how many: one for each core at hand but that of the one who asks.
pub(crate) fn scan_threads_default() -> usize {
    static THREADS: OnceLock<usize> = OnceLock::new();
    *THREADS.get_or_init(|| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        (cores - 1).min(SCAN_THREADS_DEFAULT_MAX)
    })
}

/// Who may help with a question: the threads, and the snapshot that they clone.
#[derive(Clone, Copy)]
pub(crate) struct Helpers<'a> {
    pub(super) snapshot: &'a Snapshot,
    threads: usize,
}

impl<'a> Helpers<'a> {
    /// `None` where nobody does: in a transaction, or where no threads are wanted.
    pub(crate) fn of(pages: &Pages<'a>, threads: usize) -> Option<Self> {
        match pages {
            Pages::Snapshot(snapshot) if threads > 0 => Some(Self { snapshot, threads }),
            _ => None,
        }
    }

    /// Into how many pieces work is best divided.
    pub(crate) fn pieces(&self) -> usize {
        (self.threads + 1) * PIECES_EACH
    }

    /// Does the jobs `0..jobs` and returns their answers in order.
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
                let thread = thread::Builder::new().name("tidalite-scan".to_owned());
                // Without a thread the others do its part.
                thread.spawn_scoped(scope, move || (work(&own), own)).ok()
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
