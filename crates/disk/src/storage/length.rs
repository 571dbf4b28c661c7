//! The length of a file as this process knows it.
//!
//! The handle that has the writer lock, in whichever process, changes the length. This process therefore reads the
//! length again when it acquires the writer lock, and when it reads a commit of another process.
//!
//! Invariants
//! 1. The known length is never beyond the file's end while this process holds the writer lock, nor while a snapshot
//!    may read there: truncation keeps everything that the readers of all processes see.
//! 2. While this process changes the length, no other process does: a length read from the system before or during the
//!    change is discarded.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
struct Changes {
    begun: u64,
    under_way: bool,
}

#[derive(Debug)]
pub(super) struct Length {
    known: AtomicU64,
    changes: Mutex<Changes>,
}

impl Length {
    pub(super) fn new(len: u64) -> Self {
        Self {
            known: AtomicU64::new(len),
            changes: Mutex::default(),
        }
    }

    #[inline]
    pub(super) fn known(&self) -> u64 {
        self.known.load(Ordering::Acquire)
    }

    fn changes(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the length again, because another process may have changed it. `ask` reads the length from the system.
    pub(super) fn refresh(&self, ask: impl FnOnce() -> io::Result<u64>) -> io::Result<()> {
        let begun = {
            let changes = self.changes();
            if changes.under_way {
                return Ok(());
            }
            changes.begun
        };
        let len = ask()?;
        let changes = self.changes();
        if changes.begun == begun {
            self.known.store(len, Ordering::Release);
        }
        Ok(())
    }

    /// Changes the file's length to `len` by calling `work`. The caller must hold the writer lock.
    pub(super) fn change(&self, len: u64, work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        {
            let mut changes = self.changes();
            assert!(!changes.under_way, "two changes of the length at once");
            changes.begun += 1;
            changes.under_way = true;
            // From now on no byte of the truncated range is lent to readers.
            self.known.fetch_min(len, Ordering::AcqRel);
        }
        let done = work();
        let mut changes = self.changes();
        assert!(changes.under_way, "a change of the length ends twice");
        changes.under_way = false;
        if done.is_ok() {
            self.known.store(len, Ordering::Release);
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::Length;
    use std::io;

    #[test]
    fn what_the_system_said_before_a_change_does_not_count() {
        let length = Length::new(10);
        length.refresh(|| Ok(30)).unwrap();
        assert_eq!(length.known(), 30);
        // Another process has truncated the file to 20 bytes.
        length.refresh(|| Ok(20)).unwrap();
        assert_eq!(length.known(), 20);
        let cut = || {
            length.change(8, || {
                // A refresh during the change must have no effect.
                length.refresh(|| Ok(20))
            })
        };
        length
            .refresh(|| {
                cut()?;
                Ok(20)
            })
            .unwrap();
        assert_eq!(length.known(), 8);
        length.change(16, || Ok(())).unwrap();
        assert_eq!(length.known(), 16);
    }

    #[test]
    fn a_change_that_fails_leaves_what_is_certain() {
        let length = Length::new(10);
        let fails = || Err(io::ErrorKind::StorageFull.into());
        assert!(length.change(20, fails).is_err());
        assert_eq!(length.known(), 10);
        assert!(length.change(5, fails).is_err());
        assert_eq!(length.known(), 5);
        length.refresh(|| Ok(10)).unwrap();
        assert_eq!(length.known(), 10);
    }
}
