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
//!    not be built over by others. Whether it is held over is decided under the lock, when the one here ends: whoever ends `keep` gives it on after that,
//!    or is seen by the one who ends.
//! 5. While a turn `leads`, it is one among the handles, and what its handle knows of the file is the newest: whoever wants a flush may begin one beside it
//!    (`keep_beside`).
//! 6. One in line who waits for a flush rather than for the turn (`listens`) is woken by everything that may be enough for that: a turn that leads, a
//!    commit with a record, the end of a flush. What these change is stored before `listeners` is read, and counted there before it is looked at.

use super::handle::Lock;
use super::{Patience, Ticket};
use crate::error::Result;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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
    listens: bool,
}

/// How a wait for the turn ended.
enum Here {
    /// With the turn in this handle, and with what was kept of that among the handles.
    Turn(Option<Ticket>),
    Late,
    Enough,
}

/// The same, among the handles.
#[derive(Debug)]
pub(crate) enum Came {
    Turn(Turn),
    Late,
    /// It is not needed any more.
    Enough,
}

/// Whether somebody who wants a flush needs the turn no more; told whether a turn of this handle leads.
pub(crate) type Enough<'a> = &'a dyn Fn(bool) -> bool;

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
    /// Begins whenever its turn says so, and ends under the lock.
    leads: AtomicBool,
    /// Of those who wait, so many listen.
    listeners: AtomicUsize,
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
            leads: AtomicBool::new(false),
            listeners: AtomicUsize::new(0),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The turn in this handle, unless something else is enough before.
    fn wait_here(&self, patience: &Patience<'_>, enough: Option<Enough<'_>>) -> Here {
        let mut queue = self.queue();
        if queue.take(None) {
            return Here::Turn(queue.kept.take());
        }
        let number = queue.next;
        queue.next += 1;
        queue.waiting.push_back(Waiter {
            number,
            thread: thread::current(),
            since: Instant::now(),
            listens: enough.is_some(),
        });
        let listens = usize::from(enough.is_some());
        self.listeners.fetch_add(listens, Ordering::SeqCst);
        let came = loop {
            if queue.take(Some(number)) {
                break Here::Turn(queue.kept.take());
            }
            let is_enough = enough.is_some_and(|enough| enough(self.leads()));
            if is_enough || patience.is_over() {
                queue.leave(Some(number));
                let first = queue.first();
                drop(queue);
                wake(first);
                break if is_enough { Here::Enough } else { Here::Late };
            }
            drop(queue);
            match patience.nap() {
                None => thread::park(),
                Some(nap) => thread::park_timeout(nap),
            }
            queue = self.queue();
        };
        self.listeners.fetch_sub(listens, Ordering::SeqCst);
        came
    }

    /// Something has changed that may be enough for who listens.
    #[inline]
    pub(crate) fn tell(&self) {
        if self.listeners.load(Ordering::SeqCst) > 0 {
            let queue = self.queue();
            let listening = queue.waiting.iter().filter(|waiter| waiter.listens);
            listening.for_each(|waiter| waiter.thread.unpark());
        }
    }

    fn end_here(&self, ticket: Option<Ticket>) {
        let mut queue = self.queue();
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

    /// The turn among all handles; `None` when it does not come in time. `waiting` is called now and then.
    pub(crate) fn wait(
        self: &Arc<Self>,
        patience: &Patience<'_>,
        waiting: &mut dyn FnMut(),
    ) -> Result<Option<Turn>> {
        match self.wait_unless(patience, waiting, None)? {
            Came::Turn(turn) => Ok(Some(turn)),
            Came::Late | Came::Enough => Ok(None),
        }
    }

    /// The same, unless something else is enough while others of this handle have the turn.
    pub(crate) fn wait_unless(
        self: &Arc<Self>,
        patience: &Patience<'_>,
        waiting: &mut dyn FnMut(),
        enough: Option<Enough<'_>>,
    ) -> Result<Came> {
        let ticket = match self.wait_here(patience, enough) {
            Here::Turn(Some(ticket)) => Ok(Some(ticket)),
            Here::Turn(None) => self.lock.wait_ticket(patience, waiting),
            Here::Late => return Ok(Came::Late),
            Here::Enough => return Ok(Came::Enough),
        };
        let turn = self.begin(ticket)?;
        Ok(turn.map_or(Came::Late, Came::Turn))
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
        let ticket = match self.wait_here(&Patience::default(), None) {
            Here::Turn(ticket) => ticket,
            Here::Late | Here::Enough => None,
        };
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

    /// Keeps the turn among the handles for a flush beside the transaction that has it now; false where none does. Only under the lock of the pipeline.
    pub(crate) fn keep_beside(&self) -> bool {
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

    /// Whether the turn among the handles stays here when a transaction ends.
    pub(crate) fn set_keep(&self, keep: bool) {
        self.keep.store(keep, Ordering::Release);
    }
}

impl Turn {
    /// The handle knows the newest commit, which is on the medium or has been made sure of.
    pub(crate) fn lead(&self) {
        let leads = self.ticket.is_some();
        self.turns.leads.store(leads, Ordering::SeqCst);
        self.turns.tell();
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.end_here(self.ticket.take());
    }
}

#[cfg(test)]
mod tests {
    use crate::lock::writer_lock::{PASSED_BY_MAX, Queue, Waiter};
    use std::thread;
    use std::time::{Duration, Instant};

    /// One in line as number 7, since so long.
    fn with_one_waiting(since: Instant) -> Queue {
        let mut queue = Queue::default();
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
    fn who_is_awake_takes_a_free_turn() {
        // Still to come, so that it has not waited for long however slow this is.
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
    fn a_turn_handed_to_one_that_gave_up_is_free() {
        let mut queue = with_one_waiting(long_ago());
        assert!(queue.first().is_some());
        queue.leave(Some(7));
        assert!(queue.first().is_none() && queue.take(None));
    }
}
