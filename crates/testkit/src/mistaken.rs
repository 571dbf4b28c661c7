//! Storages with deliberate bugs: each bug breaks a promise of [`Storage`], without code in the pager. Tests show that
//! the crash harness finds these bugs, as it finds the bugs of `tidalite_pager::seeded`.
//!
//! A bug affects only the pagers that the calling thread opens while the bug is enabled.

use std::cell::Cell;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidalite_disk::storage::{Observer, Places, wrap_opened_here};
use tidalite_pager::Storage;
use tidalite_pager::seeded::{BUGS, Bug, enable};

/// Length in bytes of the head of a file: its superblocks and meta records, as in docs/format.md section 1.
const HEAD_BYTES: u64 = 6 * 4096;

/// A promise of a storage that the storage deliberately breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// A sync does nothing unless the head of the file was written since the last sync, so meta records are written
    /// before the data to which they refer is synced.
    SkipSync,
    /// Writes of data are held back until the head of the file is written and synced.
    MetaBeforeData,
    /// A failed sync is reported as successful.
    IgnoreFailedSync,
    /// `write_durably` does not sync, so that commits in the redo log are acknowledged too early.
    LogUnsynced,
}

/// A deliberate bug, in the pager or in the storage below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deliberate {
    /// A bug in the code of the pager.
    Pager(Bug),
    /// A bug of the storage below the pager.
    Storage(Mistake),
}

impl Deliberate {
    /// The bugs that show in a run of sequential durable commits without readers.
    #[must_use]
    pub fn of_sequential_commits() -> Vec<Self> {
        let storage = [
            Mistake::SkipSync,
            Mistake::MetaBeforeData,
            Mistake::IgnoreFailedSync,
        ];
        let storage = storage.map(Self::Storage).into_iter();
        storage.chain(BUGS.map(Self::Pager)).collect()
    }

    /// Enables the bug for pagers that this thread opens, or disables it.
    pub fn switch(self, on: bool) {
        match self {
            Self::Pager(bug) => enable(on.then_some(bug)),
            Self::Storage(mistake) => {
                MISTAKE.set(on.then_some(mistake));
                wrap_opened_here(on.then_some(mistaken));
            }
        }
    }
}

impl fmt::Display for Deliberate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pager(bug) => write!(f, "{bug:?}"),
            Self::Storage(mistake) => write!(f, "{mistake:?}"),
        }
    }
}

thread_local! {
    static MISTAKE: Cell<Option<Mistake>> = const { Cell::new(None) };
}

fn mistaken(inner: Arc<dyn Storage>) -> Arc<dyn Storage> {
    match MISTAKE.get() {
        Some(mistake) => Arc::new(Mistaken {
            inner,
            mistake,
            state: Mutex::default(),
        }),
        None => inner,
    }
}

#[derive(Default)]
struct State {
    /// True if the head of the file was written since the last sync.
    head_is_written: bool,
    /// Writes that are held back, in order: offset and bytes.
    held: Vec<(u64, Vec<u8>)>,
}

struct Mistaken {
    inner: Arc<dyn Storage>,
    mistake: Mistake,
    state: Mutex<State>,
}

impl Mistaken {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn holds_back(&self) -> bool {
        self.mistake == Mistake::MetaBeforeData
    }

    /// True if the deliberate bug makes this sync do nothing.
    fn skips(&self, state: &mut State) -> bool {
        let head_was_written = std::mem::take(&mut state.head_is_written);
        let depends = matches!(self.mistake, Mistake::SkipSync | Mistake::MetaBeforeData);
        depends && !head_was_written
    }

    fn sync_unless_skipped(&self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut state = self.state();
        if self.skips(&mut state) {
            return Ok(());
        }
        self.write_held(&mut state)?;
        drop(state);
        match sync() {
            Err(_) if self.mistake == Mistake::IgnoreFailedSync => Ok(()),
            done => done,
        }
    }

    fn write_held(&self, state: &mut State) -> io::Result<()> {
        for (at, bytes) in std::mem::take(&mut state.held) {
            self.inner.write_at(at, &bytes)?;
        }
        Ok(())
    }
}

impl Storage for Mistaken {
    crate::forward_storage!(inner: len, grow);

    fn read_at(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        let state = self.state();
        self.inner.read_at(at, bytes)?;
        let end = at + bytes.len() as u64;
        for (start, held) in &state.held {
            let (from, to) = (at.max(*start), end.min(start + held.len() as u64));
            if from < to {
                let part = &held[(from - start) as usize..(to - start) as usize];
                bytes[(from - at) as usize..(to - at) as usize].copy_from_slice(part);
            }
        }
        Ok(())
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        if at < HEAD_BYTES {
            state.head_is_written = true;
        } else if self.holds_back() {
            state.held.push((at, bytes.to_vec()));
            return Ok(());
        }
        drop(state);
        self.inner.write_at(at, bytes)
    }

    fn write_durably(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        // Writes that were held back are done first; otherwise the zeros of a new log would later overwrite the log's
        // blocks.
        self.write_held(&mut self.state())?;
        match self.mistake {
            Mistake::LogUnsynced => self.inner.write_at(at, bytes),
            _ => self.inner.write_durably(at, bytes),
        }
    }

    fn places(&self) -> Option<Box<dyn Places>> {
        (!self.holds_back()).then(|| self.inner.places()).flatten()
    }

    fn changed_in_place(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.inner.changed_in_place(at, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_unless_skipped(|| self.inner.sync())
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync_unless_skipped(|| self.inner.sync_all())
    }

    fn resizes(&self) -> bool {
        self.inner.resizes()
    }

    fn refresh(&self) -> io::Result<()> {
        self.inner.refresh()
    }

    fn cut(&self, len: u64) -> io::Result<()> {
        self.write_held(&mut self.state())?;
        self.inner.cut(len)
    }

    fn punch(&self, at: u64, len: u64) -> io::Result<bool> {
        self.write_held(&mut self.state())?;
        self.inner.punch(at, len)
    }

    fn observer(&self) -> Option<&dyn Observer> {
        self.inner.observer()
    }
}
