//! Waiting for a commit to become durable.

use super::inner::Inner;
use super::{CommitInfo, Durability, WriteTxn};
use crate::commit::metrics::Phase;
use crate::commit::pipeline::{Until, Waited};
use crate::error::{Error, Result};
use crate::options::event::Event;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tidalite_base::{TxnId, Worker};
use tidalite_disk::lock::WaitLimit;
use tidalite_disk::lock::{Acquisition, WriterGuard};

/// A commit that may not be durable yet. Many threads may each hold a ticket; one flush makes the commits of all
/// tickets durable.
///
/// Dropping the ticket of a commit that was requested as durable waits until the commit is durable: readers see such a
/// commit only once it is durable, and if no thread waited, its flush might never begin. If the wait fails, the next
/// call that writes returns the error, since the drop cannot.
#[must_use = "a durable commit is waited for when its ticket is dropped"]
pub struct Ticket {
    pub(super) inner: Arc<Inner>,
    pub(super) info: CommitInfo,
    pub(super) durability: Durability,
    pub(super) begun: Instant,
}

impl Ticket {
    /// Returns the result of the commit.
    #[must_use]
    pub fn info(&self) -> CommitInfo {
        self.info
    }

    /// Whether the commit survives a power failure.
    #[must_use]
    pub fn is_durable(&self) -> bool {
        self.inner.pipeline.persisted_txn() >= self.info.txn.0
    }

    /// Waits until the commit is durable, even if it was not requested as durable; leads the flush if no other thread
    /// does.
    ///
    /// # Errors
    /// Any error of a sync or of writing the meta record; `Poisoned` for threads that waited for another thread's
    /// flush; `Forked`.
    pub fn wait(&self) -> Result<CommitInfo> {
        make_durable(&self.inner, (self.info.txn, Until::Kept), None)?;
        if self.durability.is_durable() {
            let metrics = &self.inner.pipeline.metrics;
            metrics.record(Phase::Commit, self.begun.elapsed());
        }
        Ok(self.info)
    }

    /// Like `wait`, with a timeout. Returns false if the commit is not durable by then, for example because of a long
    /// write transaction. (A flush that has already begun is completed.)
    ///
    /// # Errors
    /// As for `wait`.
    pub fn wait_for(&self, patience: Duration) -> Result<bool> {
        let until = Instant::now().checked_add(patience);
        make_durable(&self.inner, (self.info.txn, Until::Kept), until)
    }

    /// Reports the commit to the logger if it took longer than `Options::slow_commit`.
    pub(super) fn report_if_slow(&self) {
        let took = self.begun.elapsed();
        if took > self.inner.files.options.slow_commit {
            let txn = self.info.txn;
            self.inner.files.log(&Event::SlowCommit { txn, took });
        }
    }
}

impl WriteTxn {
    /// Commits the transaction. `app` are data that the layers above the pager get back with the commit. All
    /// structures must have sealed their pages. A durable commit is durable when this function returns, flushed alone
    /// or together with commits of other threads.
    ///
    /// # Errors
    /// The error that failed the transaction earlier; `Forked`; `DiskFull` and `Io` from writing the data (the
    /// transaction is rolled back and the database stays usable); any error of a sync or of writing the meta blocks
    /// (no commit is acknowledged then until the file is reopened).
    ///
    /// # Panics
    /// If a page of this transaction was changed after its last seal.
    pub fn commit(self, app: &[u8], durability: Durability) -> Result<CommitInfo> {
        let ticket = self.commit_ticket(app, durability)?;
        if ticket.durability.is_durable() {
            ticket.wait()?;
        }
        ticket.report_if_slow();
        Ok(ticket.info())
    }

    /// Commits without waiting: the next writer can begin, and the ticket reports when the commit is durable. A
    /// durable commit is visible to readers only once it is durable. It becomes durable when a thread waits for this
    /// ticket or a later one, or by the background flusher.
    ///
    /// # Errors
    /// As for `commit`, except errors of the flush.
    ///
    /// # Panics
    /// As for `commit`.
    pub fn commit_ticket(mut self, app: &[u8], durability: Durability) -> Result<Ticket> {
        let begun = Instant::now();
        let inner = Arc::clone(&self.inner);
        let done = self.enqueue(app, durability, Until::Kept, begun);
        // Dropping the transaction releases the writer lock.
        drop(self);
        let (info, durability) = done?;
        if durability == Durability::Lazy {
            sync_if_due(&inner)?;
        }
        Ok(Ticket {
            inner,
            info,
            durability,
            begun,
        })
    }
}

/// For asynchronous code: the future is ready when the commit is durable, even if it was not requested as durable.
/// The first awaited ticket starts a thread that flushes for all awaited tickets and ends with the last of them. Code
/// that holds a write transaction must not wait for an earlier commit with [`Durability::None`], since only a later
/// commit writes a meta record that covers it.
impl Future for Ticket {
    type Output = Result<CommitInfo>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let (inner, txn) = (&self.inner, self.info.txn);
        if let Err(error) = inner.files.lock.check_process() {
            return Poll::Ready(Err(error.into()));
        }
        if self.is_durable() {
            return Poll::Ready(Ok(self.info));
        }
        if let Err(error) = inner.files.check_poison() {
            return Poll::Ready(Err(error));
        }
        match ask(inner, txn, context.waker()) {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // In a forked child, the ticket belongs to the parent process.
        let is_here = self.inner.files.lock.check_process().is_ok();
        if is_here && self.durability.is_durable() && !self.is_durable() {
            // The error need not be returned, since it is stored and poisons the file.
            drop(self.wait());
        }
    }
}

/// Waits until a commit is durable; returns false on timeout.
pub(crate) fn make_durable(
    inner: &Arc<Inner>,
    (txn, wanted): (TxnId, Until),
    until: Option<Instant>,
) -> Result<bool> {
    inner.files.lock.check_process()?;
    loop {
        let waited = inner.wait((txn.0, wanted), until)?;
        let lead = |inner: &Inner| inner.pipeline.lead(&inner.files, &inner.versions);
        inner.pipeline.leader.start_if_wanted(inner, lead);
        match waited {
            Waited::Durable => return Ok(true),
            Waited::TimedOut => return Ok(false),
            Waited::NeedsWriterLock => {}
        }
        // Makes an empty durable commit, which takes the writer lock and writes a meta record if the newest commit
        // has none.
        let satisfied = |leads: bool| {
            let needed = inner.pipeline.needs_no_writer_lock((txn.0, wanted), leads);
            needed || inner.files.check_poison().is_err()
        };
        let came = match until {
            None => inner.lock_writer_unless(Instant::now(), Some(&satisfied))?,
            Some(_) => {
                let patience = WaitLimit {
                    until,
                    ..WaitLimit::default()
                };
                inner
                    .files
                    .writer_lock
                    .wait_unless(&patience, &mut || (), Some(&satisfied))?
            }
        };
        let guard = match came {
            Acquisition::Acquired(guard) => guard,
            Acquisition::TimedOut => return Ok(false),
            Acquisition::Satisfied => continue,
        };
        drop(write_newest_meta(inner, (txn, wanted), guard)?);
    }
}

/// Like `make_durable`, for a caller that has the writer lock and keeps it.
pub(crate) fn make_durable_locked(
    inner: &Arc<Inner>,
    (txn, wanted): (TxnId, Until),
    mut guard: WriterGuard,
) -> Result<WriterGuard> {
    inner.files.lock.check_process()?;
    loop {
        match inner.wait((txn.0, wanted), None)? {
            Waited::Durable => return Ok(guard),
            Waited::TimedOut | Waited::NeedsWriterLock => {
                guard = write_newest_meta(inner, (txn, wanted), guard)?;
            }
        }
    }
}

/// Makes an empty durable commit, which writes a meta record if the newest commit has none. Returns the writer lock.
fn write_newest_meta(
    inner: &Arc<Inner>,
    (txn, wanted): (TxnId, Until),
    guard: WriterGuard,
) -> Result<WriterGuard> {
    let mut empty = WriteTxn::begin(Arc::clone(inner), guard)?;
    let app = Arc::clone(&empty.base.app);
    let queued = empty.enqueue(&app, Durability::Durable, wanted, Instant::now());
    let guard = empty.guard.take();
    drop(empty);
    let (queued, _) = queued?;
    if queued.txn < txn {
        // Other handles never saw the commit, and it was lost because of a failed sync.
        return Err(Error::Poisoned {
            first: format!("{txn} is not among the commits any more"),
        });
    }
    match guard {
        Some(guard) => Ok(guard),
        None => unreachable!("it has just begun with it"),
    }
}

/// Registers a task that must be woken when the commit is durable or cannot become durable.
fn ask(inner: &Arc<Inner>, txn: TxnId, waker: &Waker) -> Result<()> {
    let mut tasks = inner.wakers.tasks();
    if let Some(error) = tasks.failed.take() {
        return Err(error);
    }
    let known = |(other, task): &(TxnId, Waker)| *other == txn && task.will_wake(waker);
    if !tasks.waiting.iter().any(known) {
        tasks.waiting.push((txn, waker.clone()));
    }
    if tasks.running {
        return Ok(());
    }
    let own = Arc::clone(inner);
    match Worker::run_once("tickets", move || serve(&own)) {
        Ok(()) => {
            tasks.running = true;
            Ok(())
        }
        Err(source) => {
            tasks.waiting.clear();
            Err(Error::of_call("start of a thread that flushes", 0, source))
        }
    }
}

/// Flushes commits until no task waits for one.
fn serve(inner: &Arc<Inner>) {
    loop {
        let mut tasks = inner.wakers.tasks();
        let Some(newest) = tasks.waiting.iter().map(|(txn, _)| *txn).max() else {
            tasks.running = false;
            return;
        };
        drop(tasks);
        let done = make_durable(inner, (newest, Until::Kept), None);
        let mut tasks = inner.wakers.tasks();
        let (ready, rest) = std::mem::take(&mut tasks.waiting)
            .into_iter()
            .partition(|(txn, _)| *txn <= newest || done.is_err());
        tasks.waiting = rest;
        if let Err(error) = done
            && inner.files.check_poison().is_ok()
        {
            tasks.failed = Some(error);
        }
        drop(tasks);
        let ready: Vec<(TxnId, Waker)> = ready;
        ready.into_iter().for_each(|(_, waker)| waker.wake());
    }
}

/// Makes lazy commits durable when they have written too many bytes or are too old; if there is a background flusher,
/// wakes it to do this.
pub(crate) fn sync_if_due(inner: &Arc<Inner>) -> Result<()> {
    if !inner.sync_is_due(inner.files.options.sync_after) || inner.wake_flusher() {
        return Ok(());
    }
    let newest = inner.pipeline.base(inner.state()).txn;
    make_durable(inner, (newest, Until::Kept), None).map(|_| ())
}
