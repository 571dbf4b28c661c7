//! The part of the lock area that belongs to one open handle.

use super::area::Area;
use super::bytes::{ByteLocks, HANDLES, PRESENCE, SETUP};
use super::fork;
use super::idle_slots::Slots;
use super::layout::HANDLES_MAX;
use super::ofd::Mode;
use crate::error::{Error, Result};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

/// Access to the lock area for one open handle of the file, which is registered in the area.
#[derive(Debug)]
pub struct Lock {
    /// The lock area, which all handles of the file share.
    pub area: Area,
    pub(super) locks: ByteLocks,
    pub(super) path: PathBuf,
    pub(super) handle: usize,
    pub(super) generation: u64,
    pub(super) born: u64,
    pub(super) slots: Slots,
    /// Excludes other threads of this handle from the setup lock. Byte locks belong to the whole handle, so they do
    /// not exclude its threads.
    pub(super) setup: Mutex<()>,
}

impl Lock {
    /// Ends the opening of this handle by releasing the setup lock; then other handles can be opened.
    pub fn opened(&self) -> Result<()> {
        let unlocked = self.locks.unlock(SETUP, 1);
        unlocked.map_err(|source| Error::of_open(&self.path, source))
    }

    /// Returns an error in a child process that was forked after the file was opened.
    #[inline]
    pub fn check_process(&self) -> Result<()> {
        if fork::generation() == self.born {
            Ok(())
        } else {
            Err(Error::Forked)
        }
    }

    pub(super) fn is_here(&self) -> bool {
        fork::generation() == self.born && self.locks.alive()
    }

    /// Returns the process id of the handle whose sync failed, if any. The mark stays until no handle has the file
    /// open.
    pub fn poisoned_by(&self) -> Option<u32> {
        match self.area.poison().load(Ordering::Acquire) {
            0 => None,
            word => Some((word >> 1) as u32),
        }
    }

    /// Records for all handles of the file that a sync of this handle failed.
    pub fn poison(&self) {
        let word = u64::from(std::process::id()) << 1 | 1;
        let poison = self.area.poison();
        // Only the first failure of a sync is stored in the lock area.
        let _ = poison.compare_exchange(0, word, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Whether the handle with this index and generation is alive.
    pub(super) fn is_alive(&self, handle: usize, generation: u64) -> bool {
        if handle == self.handle {
            return generation == self.generation;
        }
        if handle >= HANDLES_MAX || self.area.handle(handle)[0].load(Ordering::SeqCst) != generation
        {
            return false;
        }
        // If the system call fails, the handle counts as alive.
        let byte = HANDLES + handle as u64;
        self.locks.taken(byte, 1).unwrap_or(true)
    }

    /// Runs `act` under the setup lock if no other thread or handle holds this lock right now. Returns whether `act`
    /// was run.
    pub(super) fn try_setup(&self, act: impl FnOnce()) -> bool {
        let Ok(_guard) = self.setup.try_lock() else {
            return false;
        };
        if !matches!(self.locks.try_lock(SETUP, 1, Mode::Alone), Ok(true)) {
            return false;
        }
        act();
        self.locks.unlock(SETUP, 1).is_ok()
    }

    /// Runs `act` if no other handle is open, and prevents other handles from opening meanwhile.
    pub fn if_alone(&self, act: impl FnOnce()) {
        if !self.is_here() {
            return;
        }
        self.try_setup(|| {
            if matches!(self.locks.taken(PRESENCE, 1), Ok(false)) {
                act();
            }
        });
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if !self.is_here() {
            return;
        }
        let _guard = self.setup.lock().unwrap_or_else(PoisonError::into_inner);
        self.release_slots();
        self.release_word();
        let line = self.area.handle(self.handle);
        let _ = line[0].compare_exchange(self.generation, 0, Ordering::SeqCst, Ordering::Relaxed);
        self.forget_writer();
    }
}
