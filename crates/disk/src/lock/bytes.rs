//! Locks on byte ranges beyond the end of the lock area. The system releases the locks of an owner when the owner
//! dies, so only they prove that an owner is alive. An owner is one open handle, not a thread or a process.
//!
//! ```text
//! byte            lock
//! 2^40            setup: opening, closing, cleaning up after dead handles
//! 2^40 + 1        presence: shared by every handle; an exclusive handle locks it exclusively
//! 2^40 + 2        draw lock: drawing a ticket
//! 2^41 + i        handle i is alive
//! 2^42 + 1 + n    ticket n of the writers' queue is waiting or writing
//! ```

use super::fork;
use super::layout::HANDLES_MAX;
use super::ofd::{self, Mode};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(super) const SETUP: u64 = 1 << 40;
pub(super) const PRESENCE: u64 = SETUP + 1;
pub(super) const GATE: u64 = SETUP + 2;
pub(super) const HANDLES: u64 = 1 << 41;
pub(super) const TICKETS: u64 = (1 << 42) + 1;
/// Number of distinct tickets in the writer queue.
pub(super) const TICKETS_LEN: u64 = 1 << 42;
const _: () = assert!(TICKETS_LEN.is_power_of_two());
const _: () = assert!(GATE < HANDLES && HANDLES + HANDLES_MAX as u64 <= TICKETS);

/// The byte locks that one owner (an open handle) has on one file.
#[derive(Debug)]
pub(super) enum ByteLocks {
    /// Locks of an open file description, which the operating system manages.
    File(LockedFile),
    Memory(MemoryLocks),
}

/// A file whose locks a forked child process gives up at once, so that only the parent has them.
#[derive(Debug)]
pub(super) struct LockedFile(pub(super) File);

impl LockedFile {
    pub(super) fn new(file: File) -> Self {
        fork::watch(file.as_raw_fd());
        Self(file)
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        fork::unwatch(self.0.as_raw_fd());
    }
}

impl ByteLocks {
    /// Locks the bytes `[from, from + len)`, or changes the mode of the lock. Returns false if a lock of another
    /// owner conflicts.
    pub(super) fn try_lock(&self, from: u64, len: u64, mode: Mode) -> io::Result<bool> {
        match self {
            Self::File(file) => ofd::try_lock(&file.0, from, len, mode),
            Self::Memory(memory) => Ok(memory.try_lock(from, len, mode)),
        }
    }

    pub(super) fn unlock(&self, from: u64, len: u64) -> io::Result<()> {
        match self {
            Self::File(file) => ofd::unlock(&file.0, from, len),
            Self::Memory(memory) => {
                memory.unlock(from, len);
                Ok(())
            }
        }
    }

    /// Whether another owner has a lock on any byte of the range.
    pub(super) fn taken(&self, from: u64, len: u64) -> io::Result<bool> {
        match self {
            Self::File(file) => ofd::taken(&file.0, from, len),
            Self::Memory(memory) => Ok(memory.taken(from, len)),
        }
    }

    /// Whether the owner is alive. Returns false only for locks in memory whose owner was declared dead, which
    /// simulates a killed process.
    pub(super) fn alive(&self) -> bool {
        match self {
            Self::File(_) => true,
            Self::Memory(memory) => memory.alive(),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Held {
    owner: u64,
    from: u64,
    to: u64,
    mode: Mode,
}

/// All byte locks of all owners on a file that exists only in memory.
#[derive(Debug, Default)]
pub(super) struct LockBoard {
    owners: AtomicU64,
    held: Mutex<(Vec<u64>, Vec<Held>)>,
}

impl LockBoard {
    fn held(&self) -> MutexGuard<'_, (Vec<u64>, Vec<Held>)> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Declares every owner dead and releases their locks, as if their processes had been killed.
    pub(super) fn kill_all(&self) {
        *self.held() = (Vec::new(), Vec::new());
    }
}

/// The byte locks of one owner on a [`LockBoard`].
#[derive(Debug)]
pub(super) struct MemoryLocks {
    board: Arc<LockBoard>,
    owner: u64,
}

impl MemoryLocks {
    pub(super) fn new(board: Arc<LockBoard>) -> Self {
        let owner = board.owners.fetch_add(1, Ordering::Relaxed);
        board.held().0.push(owner);
        Self { board, owner }
    }

    fn alive(&self) -> bool {
        self.board.held().0.contains(&self.owner)
    }

    fn try_lock(&self, from: u64, len: u64, mode: Mode) -> bool {
        let (to, owner) = (from + len, self.owner);
        let mut board = self.board.held();
        if !board.0.contains(&owner) {
            return false;
        }
        let held = &mut board.1;
        let conflict = |held: &Held| {
            let meets = held.owner != owner && held.from < to && from < held.to;
            meets && (mode == Mode::Alone || held.mode == Mode::Alone)
        };
        if held.iter().any(conflict) {
            return false;
        }
        held.retain(|held| held.owner != owner || held.from < from || held.to > to);
        held.push(Held {
            owner,
            from,
            to,
            mode,
        });
        true
    }

    fn unlock(&self, from: u64, len: u64) {
        let (to, owner) = (from + len, self.owner);
        let held = &mut self.board.held().1;
        held.retain(|held| held.owner != owner || held.from < from || held.to > to);
    }

    fn taken(&self, from: u64, len: u64) -> bool {
        let held = &self.board.held().1;
        let meets = |held: &Held| held.from < from + len && from < held.to;
        held.iter().any(|h| h.owner != self.owner && meets(h))
    }
}

impl Drop for MemoryLocks {
    fn drop(&mut self) {
        let mut board = self.board.held();
        board.0.retain(|&owner| owner != self.owner);
        board.1.retain(|held| held.owner != self.owner);
    }
}
