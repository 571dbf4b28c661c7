//! The writers' queue across handles: first come, first served, without anybody's help when one dies.
//!
//! Whoever wants to write takes a number at the door, locks the byte of that number, and leaves the door.
//! It is its turn when no byte of a lower number is locked any more: each of those has finished or died.
//!
//! Who finds nobody in the queue needs no number: it enters itself in the *throne*, a word of the area, and then looks
//! whether one waits after all (`waiting`, and only if that says so, the bytes). No call of the system at all.
//!
//! ```text
//! without a number                         with one
//! throne: 0 becomes me                     waiting += 1, lock the byte of the number
//! nobody waits: the turn                   no lower byte locked, the throne empty: the turn
//! else leave it and draw a number
//! ```
//! Each enters its own first and looks for the other's then, all of it sequentially consistent: both cannot miss each other.
//! A word does not end with its process. But whoever it names is alive exactly while the byte of that handle is locked, so
//! whoever finds the throne taken looks at that byte, and takes it from the dead.
//!
//! Invariants
//! 1. Numbers are taken and their bytes locked under the door's lock, so nobody sees a number without its
//!    byte, unless its owner is dead.
//! 2. A handle has one number at a time, or the throne; its threads queue in `writer_lock`.
//! 3. Only its holder empties the throne, or whoever has found the holder dead, by exchanging that holder's word. No two
//!    handles ever have the same word, so nobody is taken for the dead one.
//! 4. `waiting` counts at least every locked number. It is raised before the byte is locked and lowered before it is
//!    unlocked; what the dead leave in it is taken back under the door's lock, when no number is locked.

use super::bytes::{DOOR, TICKETS, TICKETS_LEN};
use super::handle::Lock;
use super::ofd::Mode;
use super::readers::WriterSeen;
use super::slots::thread_id;
use crate::error::{Error, Result};
use crate::system::clock::now_ns;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A dead writer is noticed within this time; one that finishes rings the bell.
const PATIENCE: Duration = Duration::from_millis(5);

/// Who may give up looks so often whether to.
const LOOK: Duration = Duration::from_millis(10);

/// For how long somebody waits in line.
#[derive(Clone, Copy, Default)]
pub(crate) struct Patience<'a> {
    /// No longer than until then.
    pub(crate) until: Option<Instant>,
    /// And while this says so, which is asked every few milliseconds.
    pub(crate) goes_on: Option<&'a dyn Fn() -> bool>,
}

impl Patience<'_> {
    pub(crate) fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
            || self.goes_on.is_some_and(|goes_on| !goes_on())
    }

    /// How long one may sleep before one asks again; `None`: until woken.
    pub(crate) fn nap(&self) -> Option<Duration> {
        let left = |until: Instant| until.saturating_duration_since(Instant::now());
        let look = self.goes_on.map(|_| LOOK);
        let left = self.until.map(left);
        left.into_iter().chain(look).min()
    }
}

/// A place in the queue, or the turn itself. It must be given back with [`Lock::give_ticket`].
#[derive(Debug)]
pub(crate) enum Ticket {
    Throne,
    /// The byte of a number.
    Number(u64),
}

impl Lock {
    fn failed(&self, source: std::io::Error) -> Error {
        Error::LockFile {
            path: self.path.clone(),
            problem: format!("the writers' queue cannot be locked: {source}"),
        }
    }

    fn enter_door(&self, patience: &Patience<'_>) -> Result<bool> {
        let mut pause = Duration::from_micros(10);
        for attempt in 0u64.. {
            if self
                .locks
                .try_lock(DOOR, 1, Mode::Alone)
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

    fn leave_door(&self) -> Result<()> {
        self.locks.unlock(DOOR, 1).map_err(|e| self.failed(e))
    }

    /// Takes a number: its byte.
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
        if locked.map_err(|e| self.failed(e))? {
            Ok(byte)
        } else {
            Err(self.failed(std::io::ErrorKind::ResourceBusy.into()))
        }
    }

    /// Whether another handle waits for the turn that this one has. One load where nobody does.
    pub(crate) fn others_wait(&self) -> bool {
        let waits = self.area.waiting().load(Ordering::SeqCst) > 0;
        // Who asked may be dead or have given up.
        waits && self.locks.taken(TICKETS, TICKETS_LEN).unwrap_or(false)
    }

    /// The turn without a number, if nobody has one or waits with one.
    fn take_throne(&self) -> Option<Ticket> {
        if !self.locks.alive() {
            return None;
        }
        let (throne, mine) = (self.area.throne(), self.owner_word());
        if let Err(holder) = throne.compare_exchange(0, mine, Ordering::SeqCst, Ordering::SeqCst)
            && (self.sits(holder)
                || throne
                    .compare_exchange(holder, mine, Ordering::SeqCst, Ordering::SeqCst)
                    .is_err())
        {
            return None;
        }
        let waits = self.area.waiting().load(Ordering::SeqCst) > 0;
        if waits && self.locks.taken(TICKETS, TICKETS_LEN).unwrap_or(true) {
            self.give_ticket(Ticket::Throne);
            return None;
        }
        self.note_writer();
        Some(Ticket::Throne)
    }

    /// Whether another handle that is alive has this word. (A handle asks only while it has no turn itself.)
    fn sits(&self, holder: u64) -> bool {
        holder != self.owner_word() && self.owner_alive(holder)
    }

    /// Whether somebody writes without a number. The dead are put out.
    fn throne_taken(&self) -> bool {
        let throne = self.area.throne();
        let holder = throne.load(Ordering::SeqCst);
        if holder == 0 {
            return false;
        }
        // One that came in between may be alive.
        self.sits(holder)
            || throne
                .compare_exchange(holder, 0, Ordering::SeqCst, Ordering::SeqCst)
                .is_err()
    }

    /// Leaves the throne, if this handle has it.
    pub(super) fn leave_throne(&self) {
        let (throne, mine) = (self.area.throne(), self.owner_word());
        let _ = throne.compare_exchange(mine, 0, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// The turn, if nobody writes or waits for it.
    pub(crate) fn try_ticket(&self) -> Option<Ticket> {
        self.take_throne()
    }

    /// Waits for the turn. `None`: it did not come in time. `waiting` is called now and then meanwhile.
    pub(crate) fn wait_ticket(
        &self,
        patience: &Patience<'_>,
        waiting: &mut dyn FnMut(),
    ) -> Result<Option<Ticket>> {
        if let Some(ticket) = self.take_throne() {
            return Ok(Some(ticket));
        }
        if !self.enter_door(patience)? {
            return Ok(None);
        }
        let drawn = self.draw();
        self.leave_door()?;
        let byte = drawn?;
        loop {
            let bell = self.area.bell().load(Ordering::Acquire);
            let lower = byte - TICKETS;
            let before = lower > 0 && {
                let taken = self.locks.taken(TICKETS, lower);
                taken.map_err(|e| self.failed(e))?
            };
            if !before && !self.throne_taken() {
                self.note_writer();
                return Ok(Some(Ticket::Number(byte)));
            }
            if patience.is_over() {
                self.give_ticket(Ticket::Number(byte));
                return Ok(None);
            }
            waiting();
            self.wait_bell(bell, PATIENCE);
        }
    }

    fn wait_bell(&self, seen: u32, patience: Duration) {
        #[cfg(miri)]
        let _ = (seen, patience);
        #[cfg(not(miri))]
        {
            use rustix::thread::futex;
            let timeout = futex::Timespec {
                tv_sec: 0,
                tv_nsec: i64::from(patience.subsec_nanos()),
            };
            // A wrong wake-up or a signal only means to look again.
            let _ = futex::wait(
                self.area.bell(),
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

    /// This handle no longer writes, if it was the one.
    pub(super) fn forget_writer(&self) {
        let writer = self.area.writer(1);
        let _ = writer.compare_exchange(self.owner_word(), 0, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Gives a place or the turn back and rings for who waits.
    pub(crate) fn give_ticket(&self, ticket: Ticket) {
        if !self.is_here() {
            return;
        }
        self.forget_writer();
        let waiting = self.area.waiting();
        match ticket {
            Ticket::Throne => self.leave_throne(),
            Ticket::Number(byte) => {
                waiting.fetch_sub(1, Ordering::SeqCst);
                // It cannot fail for a lock that is held; if it does, the lock ends with the handle.
                let _ = self.locks.unlock(byte, 1);
            }
        }
        if waiting.load(Ordering::SeqCst) == 0 {
            return;
        }
        self.area.bell().fetch_add(1, Ordering::Release);
        #[cfg(not(miri))]
        {
            use rustix::thread::futex;
            let _ = futex::wake(self.area.bell(), futex::Flags::empty(), i32::MAX as u32);
        }
    }

    /// True when this handle was the last one to write: what it knows of the free space still holds. From
    /// now on it is. Only for who has the turn.
    pub(crate) fn was_last_writer(&self) -> bool {
        let last = self.area.writer(0);
        last.swap(self.generation, Ordering::AcqRel) == self.generation
    }

    /// Nobody has written since this handle did.
    pub(crate) fn is_last_writer(&self) -> bool {
        self.area.writer(0).load(Ordering::Acquire) == self.generation
    }

    /// Who is writing now, if it is alive.
    pub(crate) fn writer_now(&self) -> Option<WriterSeen> {
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
