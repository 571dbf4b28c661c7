//! The queue of writers: first come, first served, and not tied to a thread. Threads of one handle queue
//! here; the one in front queues with the other handles (`lock::queue`).
//!
//! Whoever ends wakes the next in line and nobody else: of sixteen that wait, fifteen would look and sleep again, at every commit.
//!
//! Invariants
//! 1. `busy` while somebody of this handle holds the turn or waits for it among the handles.
//! 2. While not `busy`, the first in line has been woken since it began to sleep last, or is awake.
//! 3. `kept` is the turn among the handles, held over while `keep`: commits that are not published yet must
//!    not be built over by others.

use crate::error::Result;
use crate::lock::{Lock, Ticket};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::Instant;

#[derive(Debug, Default)]
struct Queue {
    next: u64,
    waiting: VecDeque<Waiter>,
    busy: bool,
    kept: Option<Ticket>,
}

#[derive(Debug)]
struct Waiter {
    number: u64,
    thread: Thread,
}

impl Queue {
    /// Whom to wake when the turn is free.
    fn first(&self) -> Option<Thread> {
        let first = self.waiting.front().filter(|_| !self.busy)?;
        Some(first.thread.clone())
    }
}

fn wake(thread: Option<Thread>) {
    if let Some(thread) = thread {
        thread.unpark();
    }
}

#[derive(Debug)]
pub(crate) struct Turns {
    lock: Arc<Lock>,
    queue: Mutex<Queue>,
    keep: AtomicBool,
}

/// The right to write; given on when dropped, from whatever thread.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Arc<Turns>,
    ticket: Option<Ticket>,
}

impl Turns {
    pub(crate) fn new(lock: Arc<Lock>) -> Self {
        Self {
            lock,
            queue: Mutex::default(),
            keep: AtomicBool::new(false),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The turn in this handle; `None` when it does not come in time.
    fn wait_here(&self, until: Option<Instant>) -> Option<Option<Ticket>> {
        let mut queue = self.queue();
        if !queue.busy && queue.waiting.is_empty() {
            queue.busy = true;
            return Some(queue.kept.take());
        }
        let number = queue.next;
        queue.next += 1;
        queue.waiting.push_back(Waiter {
            number,
            thread: thread::current(),
        });
        loop {
            let is_first = queue.waiting.front().is_some_and(|w| w.number == number);
            if is_first && !queue.busy {
                queue.waiting.pop_front();
                queue.busy = true;
                return Some(queue.kept.take());
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                queue.waiting.retain(|waiter| waiter.number != number);
                let first = queue.first();
                drop(queue);
                wake(first);
                return None;
            }
            drop(queue);
            match left {
                None => thread::park(),
                Some(left) => thread::park_timeout(left),
            }
            queue = self.queue();
        }
    }

    fn end_here(&self, kept: Option<Ticket>) {
        let mut queue = self.queue();
        queue.busy = false;
        queue.kept = kept;
        let first = queue.first();
        drop(queue);
        wake(first);
    }

    /// The turn among all handles; `None` when it does not come in time. `waiting` is called now and then.
    pub(crate) fn wait(
        self: &Arc<Self>,
        until: Option<Instant>,
        waiting: &mut dyn FnMut(),
    ) -> Result<Option<Turn>> {
        let Some(kept) = self.wait_here(until) else {
            return Ok(None);
        };
        let ticket = match kept {
            Some(ticket) => Ok(Some(ticket)),
            None => self.lock.wait_ticket(until, waiting),
        };
        self.begin(ticket)
    }

    /// The turn, if it is free.
    pub(crate) fn try_take(self: &Arc<Self>) -> Result<Option<Turn>> {
        let mut queue = self.queue();
        if queue.busy || !queue.waiting.is_empty() {
            return Ok(None);
        }
        queue.busy = true;
        let kept = queue.kept.take();
        drop(queue);
        self.begin(Ok(kept.or_else(|| self.lock.try_ticket())))
    }

    fn begin(self: &Arc<Self>, ticket: Result<Option<Ticket>>) -> Result<Option<Turn>> {
        match ticket {
            Ok(Some(ticket)) => Ok(Some(Turn {
                turns: Arc::clone(self),
                ticket: Some(ticket),
            })),
            Ok(None) => {
                self.end_here(None);
                Ok(None)
            }
            Err(error) => {
                self.end_here(None);
                Err(error)
            }
        }
    }

    /// The turn in this handle alone: for one that only reads.
    pub(crate) fn wait_as_reader(self: &Arc<Self>) -> Turn {
        // Without an end to wait for, it comes.
        let ticket = self.wait_here(None).flatten();
        Turn {
            turns: Arc::clone(self),
            ticket,
        }
    }

    /// True while the turn among the handles stays here.
    pub(crate) fn keeps(&self) -> bool {
        self.keep.load(Ordering::Acquire)
    }

    /// Gives the turn among the handles on, if it was kept and nobody here uses it.
    pub(crate) fn give_kept(&self) {
        let mut queue = self.queue();
        if !queue.busy
            && let Some(ticket) = queue.kept.take()
        {
            self.lock.give_ticket(ticket);
        }
    }

    /// Whether the turn among the handles stays here when a transaction ends.
    pub(crate) fn set_keep(&self, keep: bool) {
        self.keep.store(keep, Ordering::Release);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut ticket = self.ticket.take();
        if !self.turns.keep.load(Ordering::Acquire)
            && let Some(ticket) = ticket.take()
        {
            self.turns.lock.give_ticket(ticket);
        }
        self.turns.end_here(ticket);
    }
}
