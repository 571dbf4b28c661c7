//! Staged rows that other threads group and encode while the transaction's own thread goes on filling.
//!
//! ```text
//! own thread   fill ─┬─ fill the other log, link pieces ─ ... ─ (full, or asked for) help, link ─┬─ fill
//!                    │ log, hints                         ^ pieces                               │ what is left of whole vectors
//! others             └─ group and encode a part of the series, the next one, ... ────────────────┘
//! ```
//!
//! Invariants:
//! 1. The threads touch no page and nothing of the transaction: all that they have is a log to which nothing is added any
//!    more, and what each series' encoder had learned. Whatever can fail is done by the transaction's own thread.
//! 2. One log is away at a time. Its rows are older than those that come meanwhile: until they are back (`Front::settle`), no
//!    other row of its series (`Staging::is_away`) is linked, and none is read.
//! 3. The log that is away and the one that is filled take what one alone may (`Staging::budget_bytes`). Encoded and not yet
//!    linked are at most `WAITING_ROWS_MAX` rows and a series a thread.
//! 4. No thread outlives its `Beside`: to drop it stops and joins them.

use crate::buffer::copies::Copies;
use crate::buffer::group::{Kept, Plan, Scratch, Sorting};
use crate::buffer::log::Log;
use crate::link::threshold::Take;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use tidalite_base::SeriesId;
use tidalite_codec::{ColumnType, RowsRef};
use tidalite_pager::Result;

/// Encoded rows that wait to be linked at most: who encodes waits then.
const WAITING_ROWS_MAX: usize = 1 << 20;

/// What encodes rows of these columns.
pub(crate) type Seal<E> = fn(&[ColumnType], RowsRef<'_>, &mut E);

/// The encoded vectors of one series.
pub(crate) struct Piece<E> {
    pub(crate) slot: u32,
    pub(crate) series: SeriesId,
    pub(crate) rows: usize,
    /// First and last time.
    pub(crate) span: (i64, i64),
    pub(crate) sealed: E,
}

/// The threads beside a transaction's own, and what they have. See the head of this file.
pub struct Beside<E> {
    pub(crate) running: Option<Running<E>>,
    /// Memory of what was linked.
    pub(crate) pool: Vec<E>,
}

impl<E> Default for Beside<E> {
    fn default() -> Self {
        Self {
            running: None,
            pool: Vec::new(),
        }
    }
}

/// A log that is away, and the threads that have it.
pub(crate) struct Running<E> {
    pub(crate) layout: usize,
    pub(crate) job: Arc<Job<E>>,
    threads: Vec<JoinHandle<()>>,
    /// Slots whose rows could not simply be linked.
    pub(crate) refused: BTreeSet<u32>,
}

/// What the threads share.
pub(crate) struct Job<E> {
    pub(crate) log: Log,
    plan: OnceLock<Plan>,
    pub(crate) take: Take,
    seal: Seal<E>,
    /// By slot: what the encoder had learned.
    begun: Vec<Mutex<Option<E>>>,
    next: AtomicUsize,
    stop: AtomicBool,
    out: Mutex<Out<E>>,
    /// Something of `out` has changed.
    changed: Condvar,
}

/// What comes back.
struct Out<E> {
    pieces: Vec<Piece<E>>,
    /// Of the pieces.
    rows: usize,
    /// Threads that have not ended.
    threads: usize,
    kept: Vec<Kept>,
    late: bool,
}

/// What a thread works with.
pub(crate) struct Desk {
    copies: Copies,
    sorting: Sorting,
    kept: Kept,
}

impl Desk {
    pub(crate) fn new(columns: usize) -> Self {
        Self {
            copies: Copies::default(),
            sorting: Sorting::new(columns),
            kept: Kept::new(columns),
        }
    }
}

/// Tells of a thread's end, also when it panics.
struct Leaving<'a, E>(&'a Job<E>);

impl<E> Drop for Leaving<'_, E> {
    fn drop(&mut self) {
        self.0.out().threads -= 1;
        self.0.changed.notify_all();
    }
}

impl<E> Job<E> {
    fn out(&self) -> MutexGuard<'_, Out<E>> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn plan(&self) -> &Plan {
        self.plan
            .get_or_init(|| Plan::of(&self.log, Scratch::default()))
    }
}

impl<E: Default> Job<E> {
    /// Groups and encodes the next part, and gives its pieces one by one; false when no part is left.
    pub(crate) fn part(
        &self,
        desk: &mut Desk,
        mut give: impl FnMut(Piece<E>) -> Result<()>,
    ) -> Result<bool> {
        let plan = self.plan();
        let part = self.next.fetch_add(1, Ordering::Relaxed);
        if part >= plan.parts() || self.stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let Desk {
            copies,
            sorting,
            kept,
        } = desk;
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
                let mut sealed = begun.unwrap_or_default();
                (self.seal)(&self.log.types, whole, &mut sealed);
                give(Piece {
                    slot,
                    series: self.log.slots[slot as usize].series,
                    rows: whole.len(),
                    span: (first, last),
                    sealed,
                })
            })
        })?;
        Ok(true)
    }

    /// Calls `f` with the rows of these slots that would have been encoded.
    pub(crate) fn again(
        &self,
        slots: &BTreeSet<u32>,
        desk: &mut Desk,
        mut f: impl FnMut(u32, SeriesId, RowsRef<'_>) -> Result<()>,
    ) -> Result<()> {
        let plan = self.plan();
        let parts: BTreeSet<usize> = slots.iter().map(|&slot| plan.part_of(slot)).collect();
        let Desk {
            copies, sorting, ..
        } = desk;
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

    /// What one of the other threads does.
    fn run(&self) {
        let leaving = Leaving(self);
        let mut desk = Desk::new(self.log.types.len());
        let give = |piece| {
            self.give(piece);
            Ok(())
        };
        // It cannot fail: it touches no page.
        while self.part(&mut desk, give).unwrap_or(false) {}
        self.put_down(desk);
        drop(leaving);
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

    /// A thread has no more to do: what it held back.
    pub(crate) fn put_down(&self, desk: Desk) {
        let mut out = self.out();
        out.late |= desk.sorting.late;
        out.kept.push(desk.kept);
    }

    /// The pieces that are ready. `wait`: until there are some, or all threads have ended.
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
    /// Begins `threads` threads. `begun` has what the encoder has learned of each slot with rows.
    pub(crate) fn begin(
        (layout, log): (usize, Log),
        take: Take,
        threads: usize,
        begun: Vec<Mutex<Option<E>>>,
        seal: Seal<E>,
    ) -> Self {
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
            let job = Arc::clone(&running.job);
            running.job.out().threads += 1;
            // Where the system gives no thread, the own one does all.
            let thread = std::thread::Builder::new().name("tidalite-sealing".to_owned());
            match thread.spawn(move || job.run()) {
                Ok(thread) => running.threads.push(thread),
                Err(_) => running.job.out().threads -= 1,
            }
        }
        running
    }
}

impl<E> Running<E> {
    /// All parts are done: what was held back, whether rows were late, and the log. A panic of a thread goes on here.
    pub(crate) fn end(mut self) -> (Vec<Kept>, bool, Log) {
        for thread in self.threads.drain(..) {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
        let mut out = self.job.out();
        let (kept, late) = (std::mem::take(&mut out.kept), out.late);
        drop(out);
        // The threads are gone, and with them their shares of it.
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
        // Under the lock, so that who is about to wait has not missed it.
        drop(self.job.out());
        self.job.changed.notify_all();
        for thread in self.threads.drain(..) {
            // Whoever drops this has its own reason; a panic of a thread adds nothing.
            let _ = thread.join();
        }
    }
}
