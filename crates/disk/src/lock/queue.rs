//! The queue of writers across handles: first come, first served, robust against the death of any writer.
//!
//! A writer draws a ticket under the *draw lock*, locks the byte of that ticket, and releases the draw lock. It holds
//! the writer lock when no byte of a lower ticket is locked any more: the earlier writers have finished or died.
//!
//! If the queue is empty, a writer needs no ticket: it enters itself in the *lock word* of the area, and then
//! checks that no other handle waits (`waiting`, and only if that is nonzero, the bytes). This path takes no system
//! call.
//!
//! ```text
//! without a ticket                         with a ticket
//! lock word: 0 becomes own word            waiting += 1, lock the byte of the ticket
//! no waiter: lock acquired                 no lower byte locked, lock word 0: lock acquired
//! else leave it and draw a ticket
//! ```
//! Each side first stores its own word and then loads the other's, sequentially consistent, so that at least one sees
//! the other. A word does not disappear with its process. But the handle it names is alive exactly while the byte of
//! that handle is locked. So a writer that finds the lock word taken checks that byte, and replaces the word of a dead
//! handle by its own.
//!
//! Invariants
//! 1. Tickets are drawn and their bytes locked under the draw lock, so a drawn ticket is visible without its byte only
//!    if its owner is dead.
//! 2. A handle has at most one ticket, or its word in the lock word; its threads queue in `writer_lock`.
//! 3. Only its holder empties the lock word, or a handle that found the holder dead, by exchanging the holder's word.
//!    The words of handles are unique, so a live holder is never mistaken for the dead one.
//! 4. `waiting` is at least the number of locked tickets. It is raised before the byte is locked and lowered before it
//!    is unlocked; counts left by dead handles are removed under the draw lock when no ticket is locked.

use super::bytes::{GATE, TICKETS, TICKETS_LEN};
use super::handle::Lock;
use super::ofd::Mode;
use super::readers::WriterSeen;
use super::slots::thread_id;
use crate::error::{Error, Result};
use crate::system::now_ns;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Maximum time until a waiting writer notices that another writer died. A writer that finishes wakes the waiting
/// writers by the wake-up counter.
const PATIENCE: Duration = Duration::from_millis(5);

/// Polling interval of a wait that the caller may cancel.
const LOOK: Duration = Duration::from_millis(10);

/// Conditions that end a wait in the writer queue.
#[derive(Clone, Copy, Default)]
pub struct WaitLimit<'a> {
    /// Time at which the wait ends; `None` for no limit.
    pub until: Option<Instant>,
    /// Callback that is called every few milliseconds; the wait ends when it returns false.
    pub goes_on: Option<&'a dyn Fn() -> bool>,
}

impl WaitLimit<'_> {
    /// Returns whether one of these conditions is met, so that the wait must end.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
            || self.goes_on.is_some_and(|goes_on| !goes_on())
    }

    /// Maximum duration of a sleep until the next check; `None` if the thread may sleep until it is woken.
    pub fn nap(&self) -> Option<Duration> {
        let left = |until: Instant| until.saturating_duration_since(Instant::now());
        let look = self.goes_on.map(|_| LOOK);
        let left = self.until.map(left);
        left.into_iter().chain(look).min()
    }
}

/// A place in the writer queue, or the writer lock itself. Must be returned with [`Lock::give_ticket`].
#[derive(Debug)]
pub(crate) enum Ticket {
    LockWord,
    /// The ticket whose lock is on this byte of the lock file.
    Number(u64),
}

impl Lock {
    fn failed(&self, source: std::io::Error) -> Error {
        Error::LockFile {
            path: self.path.clone(),
            problem: format!("the writers' queue cannot be locked: {source}"),
        }
    }

    fn enter_gate(&self, patience: &WaitLimit<'_>) -> Result<bool> {
        let mut pause = Duration::from_micros(10);
        for attempt in 0u64.. {
            if self
                .locks
                .try_lock(GATE, 1, Mode::Alone)
                .map_err(|e| self.failed(e))?
            {
                return Ok(true);
            }
            if patience.is_over() || !self.locks.alive() {
                return Ok(false);
            }
            if attempt < 50 {
                std::thread::yield_now();
            } else {
                std::thread::sleep(pause);
                pause = (pause * 2).min(PATIENCE);
            }
        }
        Ok(false)
    }

    fn leave_gate(&self) -> Result<()> {
        self.locks.unlock(GATE, 1).map_err(|e| self.failed(e))
    }

    /// Draws a ticket, locks its byte and returns the offset of the byte. The caller must hold the draw lock.
    fn draw(&self) -> Result<u64> {
        let waiting = self.area.waiting();
        let taken = self.locks.taken(TICKETS, TICKETS_LEN);
        if !taken.map_err(|e| self.failed(e))? {
            waiting.store(0, Ordering::SeqCst);
        }
        waiting.fetch_add(1, Ordering::SeqCst);
        let number = self.area.next_ticket().fetch_add(1, Ordering::SeqCst);
        let byte = TICKETS + (number & (TICKETS_LEN - 1));
        let locked = self.locks.try_lock(byte, 1, Mode::Alone);
        assert!(
            (TICKETS..TICKETS + TICKETS_LEN).contains(&byte),
            "a ticket is a byte of the queue"
        );
        if locked.map_err(|e| self.failed(e))? {
            Ok(byte)
        } else {
            Err(self.failed(std::io::ErrorKind::ResourceBusy.into()))
        }
    }

    /// Whether another handle waits for the writer lock, which this handle holds. If no handle waits, this costs one
    /// atomic load.
    pub fn others_wait(&self) -> bool {
        let waits = self.area.waiting().load(Ordering::SeqCst) > 0;
        // The waiting handle may have died or given up; only a locked ticket byte proves that it still waits.
        waits && self.locks.taken(TICKETS, TICKETS_LEN).unwrap_or(false)
    }

    /// Acquires the writer lock without a ticket, if no other handle has the lock or waits with a ticket.
    pub(crate) fn try_take_word(&self) -> Option<Ticket> {
        if !self.locks.alive() {
            return None;
        }
        let (lock_word, mine) = (self.area.lock_word(), self.owner_word());
        if let Err(holder) = lock_word.compare_exchange(0, mine, Ordering::SeqCst, Ordering::SeqCst)
            && (self.is_held_by_other(holder)
                || lock_word
                    .compare_exchange(holder, mine, Ordering::SeqCst, Ordering::SeqCst)
                    .is_err())
        {
            return None;
        }
        let waits = self.area.waiting().load(Ordering::SeqCst) > 0;
        if waits && self.locks.taken(TICKETS, TICKETS_LEN).unwrap_or(true) {
            self.give_ticket(Ticket::LockWord);
            return None;
        }
        self.note_writer();
        Some(Ticket::LockWord)
    }

    /// Whether the owner word `holder` belongs to another handle that is alive. A handle calls this only while it
    /// does not hold the writer lock.
    fn is_held_by_other(&self, holder: u64) -> bool {
        holder != self.owner_word() && self.owner_alive(holder)
    }

    /// Whether a live handle is in the lock word. If the handle is dead, its owner word is removed.
    fn word_taken(&self) -> bool {
        let lock_word = self.area.lock_word();
        let holder = lock_word.load(Ordering::SeqCst);
        if holder == 0 {
            return false;
        }
        // If the lock word has changed meanwhile, a live handle may have entered it.
        self.is_held_by_other(holder)
            || lock_word
                .compare_exchange(holder, 0, Ordering::SeqCst, Ordering::SeqCst)
                .is_err()
    }

    /// Clears the lock word if it names this handle.
    pub(super) fn release_word(&self) {
        let (lock_word, mine) = (self.area.lock_word(), self.owner_word());
        let _ = lock_word.compare_exchange(mine, 0, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Waits for the writer lock; returns `None` if `patience` ends the wait. Calls `waiting` from time to time.
    pub(crate) fn wait_ticket(
        &self,
        patience: &WaitLimit<'_>,
        waiting: &mut dyn FnMut(),
    ) -> Result<Option<Ticket>> {
        if let Some(ticket) = self.try_take_word() {
            return Ok(Some(ticket));
        }
        if !self.enter_gate(patience)? {
            return Ok(None);
        }
        let drawn = self.draw();
        self.leave_gate()?;
        let byte = drawn?;
        loop {
            let wake_counter = self.area.wake_counter().load(Ordering::Acquire);
            assert!(byte >= TICKETS, "a ticket is a byte of the queue");
            let lower = byte - TICKETS;
            let before = lower > 0 && {
                let taken = self.locks.taken(TICKETS, lower);
                taken.map_err(|e| self.failed(e))?
            };
            if !before && !self.word_taken() {
                self.note_writer();
                return Ok(Some(Ticket::Number(byte)));
            }
            if patience.is_over() {
                self.give_ticket(Ticket::Number(byte));
                return Ok(None);
            }
            waiting();
            self.wait_for_wake(wake_counter, PATIENCE);
        }
    }

    fn wait_for_wake(&self, seen: u32, patience: Duration) {
        #[cfg(miri)]
        let _ = (seen, patience);
        #[cfg(not(miri))]
        {
            use rustix::thread::futex;
            let timeout = futex::Timespec {
                tv_sec: 0,
                tv_nsec: i64::from(patience.subsec_nanos()),
            };
            // A spurious wake-up or a signal only causes another check, so the result is ignored.
            let _ = futex::wait(
                self.area.wake_counter(),
                futex::Flags::empty(),
                seen,
                Some(&timeout),
            );
        }
    }

    fn note_writer(&self) {
        let writer = |field| self.area.writer(field);
        writer(2).store(thread_id(), Ordering::Relaxed);
        writer(3).store(now_ns(), Ordering::Relaxed);
        writer(1).store(self.owner_word(), Ordering::Release);
    }

    /// Clears the word of the current writer if it names this handle.
    pub(super) fn forget_writer(&self) {
        let writer = self.area.writer(1);
        let _ = writer.compare_exchange(self.owner_word(), 0, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Gives up a place in the writer queue or the writer lock, and wakes the waiting handles, if any.
    pub(crate) fn give_ticket(&self, ticket: Ticket) {
        if !self.is_here() {
            return;
        }
        self.forget_writer();
        let waiting = self.area.waiting();
        match ticket {
            Ticket::LockWord => self.release_word(),
            Ticket::Number(byte) => {
                waiting.fetch_sub(1, Ordering::SeqCst);
                // Unlocking cannot fail for a lock that is held; if it did, the system would release the lock when
                // the handle is closed.
                let _ = self.locks.unlock(byte, 1);
            }
        }
        if waiting.load(Ordering::SeqCst) == 0 {
            return;
        }
        self.area.wake_counter().fetch_add(1, Ordering::Release);
        #[cfg(not(miri))]
        {
            use rustix::thread::futex;
            let _ = futex::wake(
                self.area.wake_counter(),
                futex::Flags::empty(),
                i32::MAX as u32,
            );
        }
    }

    /// Records this handle as the last writer. Returns true if it already was, so that its view of the free space is
    /// still valid. The caller must hold the writer lock.
    pub fn was_last_writer(&self) -> bool {
        let last = self.area.writer(0);
        last.swap(self.generation, Ordering::AcqRel) == self.generation
    }

    /// Whether this handle was the last to write, so that no other handle has written since.
    pub fn is_last_writer(&self) -> bool {
        self.area.writer(0).load(Ordering::Acquire) == self.generation
    }

    /// Describes the handle that holds the writer lock now, if that handle is alive.
    pub fn writer_now(&self) -> Option<WriterSeen> {
        let writer = |field| self.area.writer(field).load(Ordering::Acquire);
        let owner = writer(1);
        if !self.owner_alive(owner) {
            return None;
        }
        let line = self.area.handle((owner & 0xffff) as usize - 1);
        Some(WriterSeen {
            process: line[1].load(Ordering::Relaxed) as u32,
            thread: writer(2) as u32,
            since: Duration::from_nanos(now_ns().saturating_sub(writer(3))),
        })
    }
}
