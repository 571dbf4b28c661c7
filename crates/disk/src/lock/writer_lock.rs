//! The writer lock, not tied to a thread. Threads of one handle queue for the handle's own (local) lock; the thread
//! that holds the local lock queues with the other handles for the shared lock (`lock::queue`).
//!
//! When a writer releases the lock it wakes only the head of the queue; waking all sixteen would send fifteen back to
//! sleep on every commit. The head does not own the lock yet: a running thread may take it first, and the head goes
//! back to sleep. If the lock were handed to the sleeper, each commit would wait until that thread runs, and the lock
//! would never be found free again (a lock convoy: M. Blasgen, J. Gray, M. Mitoma, T. Price, "The convoy phenomenon",
//! 1979). A thread that has waited long is not overtaken any more: the lock is handed to it.
//!
//! Invariants
//! 1. `busy` is set while a thread of this handle holds the local lock or waits for the shared lock.
//! 2. While not `busy`, the head of the queue is awake, or has been woken since it last went to sleep.
//! 3. While the lock is `handed` to a waiter, no other thread takes it. It is handed over when it is released and the
//!    head has waited for `PASSED_BY_MAX`, so the head gets it after that time and at most one more transaction.
//! 4. `kept` is the shared lock, retained while `keep` is set: no other handle may write before the commits here are
//!    published. Whether to retain it is decided under the mutex when the local lock is released: code that clears
//!    `keep` releases the shared lock afterwards, or the releasing thread sees the cleared flag.
//! 5. While a lock `leads`, it includes the shared lock, and the handle knows the newest state of the file: a thread
//!    that wants a flush may then begin one in the background (`keep_for_background`).
//! 6. A waiter that wants a flush rather than the lock (`listens`) is woken by every event that may satisfy it: a
//!    leading lock, a commit with a record, the end of a flush. The changed state is stored before `listeners` is read,
//!    and the waiter counts itself there before it reads that state.

use super::handle::Lock;
use super::queue::{Ticket, WaitLimit};
use crate::error::Result;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Maximum time for which other threads may overtake the first waiter in the queue: long enough for many commits that
/// share one sync, and too short for a person to notice.
const PASSED_BY_MAX: Duration = Duration::from_millis(5);

#[derive(Debug, Default)]
struct Queue {
    next: u64,
    waiting: VecDeque<Waiter>,
    busy: bool,
    handed: Option<u64>,
    kept: Option<Ticket>,
}

#[derive(Debug)]
struct Waiter {
    number: u64,
    thread: Thread,
    since: Instant,
    listens: bool,
}

/// Result of waiting for the local lock, which excludes the other threads of the handle.
enum LocalAcquisition {
    /// The local lock was acquired, together with the shared lock if the handle had kept it.
    Acquired(Option<Ticket>),
    TimedOut,
    Satisfied,
}

/// Result of waiting for the writer lock.
#[derive(Debug)]
pub enum Acquisition {
    /// The writer lock was acquired.
    Acquired(WriterGuard),
    /// The time limit of the wait was reached, or the wait was cancelled.
    TimedOut,
    /// The caller does not need the lock any more, because its flush has happened or may begin.
    Satisfied,
}

/// Function that decides whether a waiter for a flush does not need the lock any more. Its argument says whether the
/// thread of this handle that holds the lock knows the newest state of the file (`leads`).
pub type Satisfied<'a> = &'a dyn Fn(bool) -> bool;

impl Queue {
    /// Asserts that the numbers of waiters ascend, and that the lock is passed only to a waiter, and only while it is
    /// free.
    fn check(&self) {
        assert!(
            self.waiting
                .back()
                .is_none_or(|last| last.number < self.next),
            "a waiter has a number that was not drawn"
        );
        debug_assert!(
            self.waiting.iter().is_sorted_by(|a, b| a.number < b.number),
            "waiters queue out of order"
        );
        debug_assert!(
            self.handed
                .is_none_or(|handed| self.waiting.iter().any(|waiter| waiter.number == handed)),
            "the lock is handed to a thread that does not wait"
        );
    }

    /// Takes the local lock if it is free for waiter `number`, or, if `number` is `None`, for a thread that is not in
    /// the queue. Returns whether the lock was taken.
    fn take(&mut self, number: Option<u64>) -> bool {
        let taken = !self.busy && (self.handed.is_none() || self.handed == number);
        if taken {
            self.leave(number);
            self.busy = true;
        }
        self.check();
        taken
    }

    /// Removes a waiter from the queue of the local lock.
    fn leave(&mut self, number: Option<u64>) {
        let Some(number) = number else { return };
        self.waiting.retain(|waiter| waiter.number != number);
        self.handed.take_if(|handed| *handed == number);
    }

    /// Returns the thread that must be woken when the local lock is free. If this thread has waited long, the lock is
    /// passed to it, so that no other thread can take it first.
    fn first(&mut self) -> Option<Thread> {
        let first = self.waiting.front().filter(|_| !self.busy)?;
        assert!(
            self.handed.is_none_or(|handed| handed == first.number),
            "the lock is handed to the head of the queue"
        );
        let thread = first.thread.clone();
        if first.since.elapsed() >= PASSED_BY_MAX {
            self.handed = Some(first.number);
        }
        Some(thread)
    }
}

fn wake(thread: Option<Thread>) {
    if let Some(thread) = thread {
        thread.unpark();
    }
}

/// The writer lock of one handle, which all threads of the handle share.
#[derive(Debug)]
pub struct WriterLock {
    lock: Arc<Lock>,
    queue: Mutex<Queue>,
    keep: AtomicBool,
    /// Whether the holder of the lock knows the newest state of the file. The holder sets it at any time; it is
    /// cleared under the mutex.
    leads: AtomicBool,
    /// Number of waiters that wait for a flush rather than for the lock.
    listeners: AtomicUsize,
}

/// The right to write to the file. Dropping it, on any thread, releases the writer lock.
#[derive(Debug)]
pub struct WriterGuard {
    writer_lock: Arc<WriterLock>,
    ticket: Option<Ticket>,
}

impl WriterLock {
    /// Creates the writer lock of a handle. The lock is free.
    #[must_use]
    pub fn new(lock: Arc<Lock>) -> Self {
        Self {
            lock,
            queue: Mutex::default(),
            keep: AtomicBool::new(false),
            leads: AtomicBool::new(false),
            listeners: AtomicUsize::new(0),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the local lock. The wait also ends if `patience` ends it, or if `satisfied` returns true.
    fn wait_local(
        &self,
        patience: &WaitLimit<'_>,
        satisfied: Option<Satisfied<'_>>,
    ) -> LocalAcquisition {
        let mut queue = self.queue();
        if queue.take(None) {
            return LocalAcquisition::Acquired(queue.kept.take());
        }
        let number = queue.next;
        queue.next += 1;
        queue.waiting.push_back(Waiter {
            number,
            thread: thread::current(),
            since: Instant::now(),
            listens: satisfied.is_some(),
        });
        let listens = usize::from(satisfied.is_some());
        self.listeners.fetch_add(listens, Ordering::SeqCst);
        let acquired = loop {
            if queue.take(Some(number)) {
                break LocalAcquisition::Acquired(queue.kept.take());
            }
            let is_enough = satisfied.is_some_and(|satisfied| satisfied(self.leads()));
            if is_enough || patience.is_over() {
                queue.leave(Some(number));
                let first = queue.first();
                drop(queue);
                wake(first);
                break if is_enough {
                    LocalAcquisition::Satisfied
                } else {
                    LocalAcquisition::TimedOut
                };
            }
            drop(queue);
            match patience.nap() {
                None => thread::park(),
                Some(nap) => thread::park_timeout(nap),
            }
            queue = self.queue();
        };
        let before = self.listeners.fetch_sub(listens, Ordering::SeqCst);
        assert!(before >= listens, "more listeners leave than came");
        acquired
    }

    /// Wakes the waiters that wait for a flush, after a change that they wait for.
    #[inline]
    pub fn notify_listeners(&self) {
        if self.listeners.load(Ordering::SeqCst) > 0 {
            let queue = self.queue();
            let listening = queue.waiting.iter().filter(|waiter| waiter.listens);
            listening.for_each(|waiter| waiter.thread.unpark());
        }
    }

    fn release_local(&self, ticket: Option<Ticket>) {
        let mut queue = self.queue();
        assert!(queue.busy, "a lock is released that is not held");
        assert!(queue.kept.is_none(), "the shared lock is held twice");
        queue.busy = false;
        self.leads.store(false, Ordering::SeqCst);
        match ticket {
            Some(ticket) if !self.keeps() => self.lock.give_ticket(ticket),
            ticket => queue.kept = ticket,
        }
        let first = queue.first();
        drop(queue);
        wake(first);
    }

    /// Waits for the writer lock; returns `None` if `patience` ends the wait. Calls `waiting` from time to time.
    pub fn wait(
        self: &Arc<Self>,
        patience: &WaitLimit<'_>,
        waiting: &mut dyn FnMut(),
    ) -> Result<Option<WriterGuard>> {
        match self.wait_unless(patience, waiting, None)? {
            Acquisition::Acquired(guard) => Ok(Some(guard)),
            Acquisition::TimedOut | Acquisition::Satisfied => Ok(None),
        }
    }

    /// Like `wait`, but the wait also ends if `satisfied` returns true while other threads of this handle hold the
    /// lock.
    pub fn wait_unless(
        self: &Arc<Self>,
        patience: &WaitLimit<'_>,
        waiting: &mut dyn FnMut(),
        satisfied: Option<Satisfied<'_>>,
    ) -> Result<Acquisition> {
        let ticket = match self.wait_local(patience, satisfied) {
            LocalAcquisition::Acquired(Some(ticket)) => Ok(Some(ticket)),
            LocalAcquisition::Acquired(None) => self.lock.wait_ticket(patience, waiting),
            LocalAcquisition::TimedOut => return Ok(Acquisition::TimedOut),
            LocalAcquisition::Satisfied => return Ok(Acquisition::Satisfied),
        };
        let guard = self.begin(ticket)?;
        Ok(guard.map_or(Acquisition::TimedOut, Acquisition::Acquired))
    }

    /// Acquires the writer lock without waiting; returns `None` if it is not free.
    pub fn try_take(self: &Arc<Self>) -> Result<Option<WriterGuard>> {
        let mut queue = self.queue();
        if !queue.take(None) {
            return Ok(None);
        }
        let kept = queue.kept.take();
        drop(queue);
        self.begin(Ok(kept.or_else(|| self.lock.try_take_word())))
    }

    fn begin(self: &Arc<Self>, ticket: Result<Option<Ticket>>) -> Result<Option<WriterGuard>> {
        match ticket {
            Ok(Some(ticket)) => Ok(Some(WriterGuard {
                writer_lock: Arc::clone(self),
                ticket: Some(ticket),
            })),
            Ok(None) => {
                self.release_local(None);
                Ok(None)
            }
            Err(error) => {
                self.release_local(None);
                Err(error)
            }
        }
    }

    /// Waits only for the local lock, not for the shared lock. Used by a handle that only reads.
    pub fn wait_as_reader(self: &Arc<Self>) -> WriterGuard {
        // A wait without a limit always ends by acquiring the lock.
        let ticket = match self.wait_local(&WaitLimit::default(), None) {
            LocalAcquisition::Acquired(ticket) => ticket,
            LocalAcquisition::TimedOut | LocalAcquisition::Satisfied => None,
        };
        WriterGuard {
            writer_lock: Arc::clone(self),
            ticket,
        }
    }

    /// Whether this handle keeps the shared lock when a transaction ends.
    pub fn keeps(&self) -> bool {
        self.keep.load(Ordering::Acquire)
    }

    /// Releases the shared lock if this handle has kept it and no thread of this handle uses it.
    pub fn release_kept(&self) {
        let mut queue = self.queue();
        if !queue.busy
            && let Some(ticket) = queue.kept.take()
        {
            self.lock.give_ticket(ticket);
        }
    }

    /// Makes the handle keep the shared lock after the current transaction, for a flush in the background. Returns
    /// false if no transaction holds the lock and knows the newest state of the file. The caller must hold the
    /// pipeline lock.
    pub fn keep_for_background(&self) -> bool {
        let _until_kept = self.queue();
        let leads = self.leads();
        if leads {
            self.set_keep(true);
        }
        leads
    }

    fn leads(&self) -> bool {
        self.leads.load(Ordering::SeqCst)
    }

    /// Sets whether this handle keeps the shared lock when a transaction ends.
    pub fn set_keep(&self, keep: bool) {
        self.keep.store(keep, Ordering::Release);
    }
}

impl WriterGuard {
    /// Records that the handle knows the newest commit, which is on the medium or was verified.
    pub fn lead(&self) {
        let leads = self.ticket.is_some();
        self.writer_lock.leads.store(leads, Ordering::SeqCst);
        self.writer_lock.notify_listeners();
    }
}

impl Drop for WriterGuard {
    fn drop(&mut self) {
        self.writer_lock.release_local(self.ticket.take());
    }
}

#[cfg(test)]
mod tests {
    use crate::lock::writer_lock::{PASSED_BY_MAX, Queue, Waiter};
    use std::thread;
    use std::time::{Duration, Instant};

    /// Returns a queue in which waiter 7 has waited since `since`.
    fn with_one_waiting(since: Instant) -> Queue {
        let mut queue = Queue {
            next: 8,
            ..Queue::default()
        };
        assert!(queue.take(None), "nobody has it");
        queue.waiting.push_back(Waiter {
            number: 7,
            thread: thread::current(),
            since,
            listens: false,
        });
        queue.busy = false;
        queue
    }

    fn long_ago() -> Instant {
        let now = Instant::now();
        now.checked_sub(PASSED_BY_MAX).expect("up for that long")
    }

    #[test]
    fn who_is_awake_takes_a_free_lock() {
        // The wait begins in the future, so that it never counts as long, however slow the test is.
        let mut queue = with_one_waiting(Instant::now() + Duration::from_secs(3600));
        assert!(queue.first().is_some(), "the first in line is woken");
        assert!(queue.take(None), "and passed by");
        assert!(!queue.take(Some(7)) && queue.first().is_none());
        queue.busy = false;
        assert!(queue.take(Some(7)));
        assert!(queue.waiting.is_empty());
    }

    #[test]
    fn who_has_waited_for_long_is_passed_by_no_more() {
        let mut queue = with_one_waiting(long_ago());
        assert!(queue.first().is_some());
        assert!(!queue.take(None) && !queue.take(Some(8)));
        assert!(queue.take(Some(7)));
        queue.busy = false;
        assert!(queue.take(None), "it was handed once");
    }

    #[test]
    fn a_lock_handed_to_one_that_gave_up_is_free() {
        let mut queue = with_one_waiting(long_ago());
        assert!(queue.first().is_some());
        queue.leave(Some(7));
        assert!(queue.first().is_none() && queue.take(None));
    }
}
