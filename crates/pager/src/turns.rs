//! The queue of writers, not tied to a thread. Threads of one handle queue here; the one that has the turn of the handle queues with the
//! other handles (`lock::queue`).
//!
//! Whoever ends wakes the first in line and nobody else: of sixteen that wait, fifteen would look and sleep again, at every commit. The turn is
//! not its own thereby: a thread that is awake takes it meanwhile, and the woken one sleeps on. Were it given to the sleeper each
//! commit would wait until that one runs, and nobody would ever find the turn free again (a lock convoy: M. Blasgen, J. Gray,
//! M. Mitoma, T. Price, "The convoy phenomenon", 1979). Who has waited for long is not passed by any more: the turn is handed to it.
//!
//! Invariants
//! 1. `busy` while somebody of this handle holds the turn or waits for it among the handles.
//! 2. While not `busy`, the first in line has been woken since it began to sleep last, or is awake.
//! 3. While the turn is `handed` to one who waits, nobody else takes it. It is handed when it becomes free and the first in line has waited for
//!    `PASSED_BY_MAX`; so whoever is the first gets it after that time and one transaction more.
//! 4. `kept` is the turn among the handles, held over while `keep`: commits that are not published yet must
//!    not be built over by others.

use crate::error::Result;
use crate::lock::{Lock, Ticket};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Others take the turn before the first in line for so long at most: many commits with one barrier, and less than a person notices.
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
}

impl Queue {
    /// Takes the turn when it is free for this one in line; `None`: for one that does not wait.
    fn take(&mut self, number: Option<u64>) -> bool {
        let taken = !self.busy && (self.handed.is_none() || self.handed == number);
        if taken {
            self.leave(number);
            self.busy = true;
        }
        taken
    }

    /// Not in line any more.
    fn leave(&mut self, number: Option<u64>) {
        let Some(number) = number else { return };
        self.waiting.retain(|waiter| waiter.number != number);
        self.handed.take_if(|handed| *handed == number);
    }

    /// Whom to wake when the turn is free. It is handed to one that has waited for long.
    fn first(&mut self) -> Option<Thread> {
        let first = self.waiting.front().filter(|_| !self.busy)?;
        if first.since.elapsed() >= PASSED_BY_MAX {
            self.handed = Some(first.number);
        }
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
        if queue.take(None) {
            return Some(queue.kept.take());
        }
        let number = queue.next;
        queue.next += 1;
        queue.waiting.push_back(Waiter {
            number,
            thread: thread::current(),
            since: Instant::now(),
        });
        loop {
            if queue.take(Some(number)) {
                return Some(queue.kept.take());
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                queue.leave(Some(number));
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
        if !queue.take(None) {
            return Ok(None);
        }
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

#[cfg(test)]
mod tests {
    use super::{PASSED_BY_MAX, Queue, Waiter};
    use std::thread;
    use std::time::{Duration, Instant};

    /// One in line as number 7, since so long.
    fn with_one_waiting(since: Duration) -> Queue {
        let mut queue = Queue::default();
        assert!(queue.take(None), "nobody has it");
        queue.waiting.push_back(Waiter {
            number: 7,
            thread: thread::current(),
            since: Instant::now().checked_sub(since).expect("up for that long"),
        });
        queue.busy = false;
        queue
    }

    #[test]
    fn who_is_awake_takes_a_free_turn() {
        let mut queue = with_one_waiting(Duration::ZERO);
        assert!(queue.first().is_some(), "the first in line is woken");
        assert!(queue.take(None), "and passed by");
        assert!(!queue.take(Some(7)) && queue.first().is_none());
        queue.busy = false;
        assert!(queue.take(Some(7)));
        assert!(queue.waiting.is_empty());
    }

    #[test]
    fn who_has_waited_for_long_is_passed_by_no_more() {
        let mut queue = with_one_waiting(PASSED_BY_MAX);
        assert!(queue.first().is_some());
        assert!(!queue.take(None) && !queue.take(Some(8)));
        assert!(queue.take(Some(7)));
        queue.busy = false;
        assert!(queue.take(None), "it was handed once");
    }

    #[test]
    fn a_turn_handed_to_one_that_gave_up_is_free() {
        let mut queue = with_one_waiting(PASSED_BY_MAX);
        assert!(queue.first().is_some());
        queue.leave(Some(7));
        assert!(queue.first().is_none() && queue.take(None));
    }
}
