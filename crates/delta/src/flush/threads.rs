//! Helper threads that group and encode buffered rows while the transaction's own thread continues to fill the write
//! buffer.
//!
//! ```text
//! own thread   fill ─┬─ fill the other log, link pieces ─ ... ─ (full, or on request) help, link ─┬─ fill
//!                    │ log, encoder states                                   ^ pieces               │ remainders
//! others             └─ group and encode a part of the series, the next one, ... ───────────────────┘
//! ```
//!
//! Invariants:
//! 1. The helper threads touch no page and no state of the transaction. They have only a log to which nothing more is
//!    added, and the encoder state of each series. Every operation that can fail is done by the transaction's own
//!    thread.
//! 2. One log is lent at a time. Its rows are older than rows pushed in the meantime. Until they are back
//!    (`Delta::finish_background`), no other row of its series (`WriteBuffer::is_lent`) is linked or read.
//! 3. The lent log and the log that is being filled together use at most the budget of one
//!    (`WriteBuffer::budget_bytes`). At most `WAITING_ROWS_MAX` rows, plus one series per thread, are encoded and not
//!    yet linked.
//! 4. No thread outlives its `BackgroundFlush`: dropping it stops and joins the threads.

use crate::buffer::copies::Copies;
use crate::buffer::group::{GroupScratch, KeptRows, Plan, Sorting};
use crate::buffer::log::Log;
use crate::link::threshold::Take;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use tidalite_base::{SeriesId, Worker};
use tidalite_codec::{ColumnType, RowsRef};
use tidalite_pager::Result;

/// Maximum number of encoded rows that wait to be installed as leaves; when it is reached, the encoding threads
/// pause.
const WAITING_ROWS_MAX: usize = 1 << 20;

/// Function that encodes rows whose columns have the given types.
pub(crate) type EncodeFn<E> = fn(&[ColumnType], RowsRef<'_>, &mut E);

/// Encoded vectors of one series, which helper threads pass to the transaction's thread.
pub(crate) struct Piece<E> {
    pub(crate) slot: u32,
    pub(crate) series: SeriesId,
    pub(crate) rows: usize,
    /// Times of the first and the last row.
    pub(crate) span: (i64, i64),
    pub(crate) encoded: E,
}

/// The helper threads of a transaction and their state. The head of `threads.rs` lists the invariants.
pub struct BackgroundFlush<E> {
    pub(crate) running: Option<Running<E>>,
    /// Memory of pieces that were installed as leaves, for reuse.
    pub(crate) pool: Vec<E>,
}

impl<E> Default for BackgroundFlush<E> {
    fn default() -> Self {
        Self {
            running: None,
            pool: Vec::new(),
        }
    }
}

/// A log that is lent to helper threads, together with the threads.
pub(crate) struct Running<E> {
    pub(crate) layout: usize,
    pub(crate) job: Arc<Job<E>>,
    threads: Vec<Worker>,
    /// Slots whose encoded rows did not come after all existing rows of their series, and were therefore not
    /// installed as leaves.
    pub(crate) refused: BTreeSet<u32>,
}

/// State shared by the helper threads and the transaction's thread.
pub(crate) struct Job<E> {
    pub(crate) log: Log,
    plan: OnceLock<Plan>,
    pub(crate) take: Take,
    seal: EncodeFn<E>,
    /// Encoder state of each slot before the first row of the lent log; `None` once a thread has taken it.
    begun: Vec<Mutex<Option<E>>>,
    next: AtomicUsize,
    stop: AtomicBool,
    out: Mutex<Out<E>>,
    /// Signals changes of `out` to waiting threads.
    changed: Condvar,
}

/// Results of the helper threads, which the transaction's thread collects.
struct Out<E> {
    pieces: Vec<Piece<E>>,
    /// Number of rows in `pieces`.
    rows: usize,
    /// Number of helper threads that have not ended yet.
    threads: usize,
    kept: Vec<KeptRows>,
    late: bool,
}

/// Memory that a thread reuses for each part of the log.
pub(crate) struct WorkerScratch {
    copies: Copies,
    sorting: Sorting,
    kept: KeptRows,
}

impl WorkerScratch {
    pub(crate) fn new(columns: usize) -> Self {
        Self {
            copies: Copies::default(),
            sorting: Sorting::new(columns),
            kept: KeptRows::new(columns),
        }
    }
}

impl<E> Job<E> {
    fn out(&self) -> MutexGuard<'_, Out<E>> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn plan(&self) -> &Plan {
        self.plan
            .get_or_init(|| Plan::of(&self.log, GroupScratch::default()))
    }
}

impl<E: Default> Job<E> {
    /// Groups and encodes the next part of the log, and passes its pieces to `give`. Returns false if no part was
    /// left.
    pub(crate) fn part(
        &self,
        scratch: &mut WorkerScratch,
        mut give: impl FnMut(Piece<E>) -> Result<()>,
    ) -> Result<bool> {
        let plan = self.plan();
        let part = self.next.fetch_add(1, Ordering::Relaxed);
        if part >= plan.parts() || self.stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let WorkerScratch {
            copies,
            sorting,
            kept,
        } = scratch;
        plan.part(&self.log, part, copies, |slot, rows| {
            sorting.with(rows, |rows| {
                let whole = rows.slice(0..self.take.of(rows));
                kept.keep(slot, rows, whole.len());
                let (Some(&first), Some(&last)) = (whole.times().first(), whole.times().last())
                else {
                    return Ok(());
                };
                let begun = self.begun[slot as usize].lock();
                let begun = begun.unwrap_or_else(PoisonError::into_inner).take();
                let mut encoded = begun.unwrap_or_default();
                (self.seal)(&self.log.types, whole, &mut encoded);
                give(Piece {
                    slot,
                    series: self.log.slots[slot as usize].series,
                    rows: whole.len(),
                    span: (first, last),
                    encoded,
                })
            })
        })?;
        Ok(true)
    }

    /// Calls `f` with the rows of `slots` that the threads have encoded, so that these rows can be installed in
    /// another way.
    pub(crate) fn again(
        &self,
        slots: &BTreeSet<u32>,
        scratch: &mut WorkerScratch,
        mut f: impl FnMut(u32, SeriesId, RowsRef<'_>) -> Result<()>,
    ) -> Result<()> {
        let plan = self.plan();
        let parts: BTreeSet<usize> = slots.iter().map(|&slot| plan.part_of(slot)).collect();
        let WorkerScratch {
            copies, sorting, ..
        } = scratch;
        for part in parts {
            plan.part(&self.log, part, copies, |slot, rows| {
                if !slots.contains(&slot) {
                    return Ok(());
                }
                let series = self.log.slots[slot as usize].series;
                sorting.with(rows, |rows| {
                    f(slot, series, rows.slice(0..self.take.of(rows)))
                })
            })?;
        }
        Ok(())
    }

    /// Main function of a helper thread.
    fn run(&self) {
        let mut scratch = WorkerScratch::new(self.log.types.len());
        let give = |piece| {
            self.give(piece);
            Ok(())
        };
        // Errors cannot occur, because encoding touches no page.
        while self.part(&mut scratch, give).unwrap_or(false) {}
        self.put_down(scratch);
    }

    fn give(&self, piece: Piece<E>) {
        let mut out = self.out();
        while out.rows >= WAITING_ROWS_MAX && !self.stop.load(Ordering::Relaxed) {
            out = self
                .changed
                .wait(out)
                .unwrap_or_else(PoisonError::into_inner);
        }
        out.rows += piece.rows;
        out.pieces.push(piece);
        drop(out);
        self.changed.notify_all();
    }

    /// Stores the rows that a thread kept back, at the end of the thread.
    pub(crate) fn put_down(&self, scratch: WorkerScratch) {
        let mut out = self.out();
        out.late |= scratch.sorting.late;
        out.kept.push(scratch.kept);
    }

    /// Takes the pieces that are ready. If `wait` is set, blocks until there are some, or until all threads have
    /// ended.
    pub(crate) fn pieces(&self, wait: bool) -> Vec<Piece<E>> {
        let mut out = self.out();
        while wait && out.pieces.is_empty() && out.threads > 0 {
            out = self
                .changed
                .wait(out)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let pieces = std::mem::take(&mut out.pieces);
        let waited = std::mem::take(&mut out.rows) >= WAITING_ROWS_MAX;
        drop(out);
        if waited {
            self.changed.notify_all();
        }
        pieces
    }
}

impl<E: Default + Send + 'static> Running<E> {
    /// Starts `threads` helper threads on the log of a layout. `begun` has the encoder state of each slot with rows.
    pub(crate) fn begin(
        (layout, log): (usize, Log),
        take: Take,
        threads: usize,
        begun: Vec<Mutex<Option<E>>>,
        seal: EncodeFn<E>,
    ) -> Self {
        debug_assert_eq!(begun.len(), log.slots.len(), "encoder state for each slot");
        let job = Arc::new(Job {
            log,
            plan: OnceLock::new(),
            take,
            seal,
            begun,
            next: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            out: Mutex::new(Out {
                pieces: Vec::new(),
                rows: 0,
                threads: 0,
                kept: Vec::new(),
                late: false,
            }),
            changed: Condvar::new(),
        });
        let mut running = Self {
            layout,
            job,
            threads: Vec::new(),
            refused: BTreeSet::new(),
        };
        for _ in 0..threads {
            let (job, ended) = (Arc::clone(&running.job), Arc::clone(&running.job));
            running.job.out().threads += 1;
            let at_end = move || {
                ended.out().threads -= 1;
                ended.changed.notify_all();
            };
            // If the system cannot start a thread, the thread of the transaction does the work of that thread as
            // well.
            match Worker::start_with_end("encode", move |_| job.run(), at_end) {
                Ok(thread) => running.threads.push(thread),
                Err(_) => running.job.out().threads -= 1,
            }
        }
        running
    }
}

impl<E> Running<E> {
    /// Ends the helper threads after all parts of the log are done. Returns the rows that the threads kept back,
    /// whether rows were out of time order, and the log. Propagates a panic of a thread.
    pub(crate) fn end(mut self) -> (Vec<KeptRows>, bool, Log) {
        for thread in self.threads.drain(..) {
            thread.join();
        }
        let mut out = self.job.out();
        debug_assert!(out.pieces.is_empty(), "every piece is linked");
        debug_assert_eq!(out.threads, 0, "every thread has ended");
        let (kept, late) = (std::mem::take(&mut out.kept), out.late);
        drop(out);
        // The threads have ended and dropped their references to the job.
        let Some(job) = Arc::get_mut(&mut self.job) else {
            unreachable!("nobody else has it");
        };
        let log = std::mem::replace(&mut job.log, Log::new(&[], 0));
        (kept, late, log)
    }
}

impl<E> Drop for Running<E> {
    fn drop(&mut self) {
        self.job.stop.store(true, Ordering::Relaxed);
        // The lock is taken once, so that a thread that is about to wait does not miss the notification.
        drop(self.job.out());
        self.job.changed.notify_all();
        for thread in self.threads.drain(..) {
            // A transaction is dropped for a reason of its own, so a panic of a helper thread is not reported in
            // addition.
            drop(thread);
        }
    }
}
