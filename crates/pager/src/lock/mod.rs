//! What several open handles on one file share, in one process or many: who reads what, who writes, what
//! was published, whether a sync has failed. In the lock file `name.tdl-lock`, or in memory.
//!
//! ```text
//! area      the words and where they are      protocol  the reader table's atomics (for models too)
//! map       the area, mapped from a file      slots     one reader slot a snapshot
//! bytes     locks on byte ranges: life        queue     the writers' tickets
//! ofd       the same by the system            fork      is this still the process that opened?
//! file      the lock file                     sync      the atomics of `protocol`
//! ```
//!
//! Invariants
//! 1. A handle is alive exactly while its byte is locked. Numbers of processes and threads are only told.
//! 2. Handles come and go, and slots of the dead are cleaned, only under the setup lock; a frozen process
//!    there delays opening and cleaning, never a reader that has a slot, nor the writer.
//! 3. Whoever finds, under the setup lock, that nobody else is alive makes the area anew.
//! 4. In a forked child nothing here is touched: the locks are shared with the parent.

mod area;
mod bytes;
pub(crate) mod file;
mod fork;
mod map;
mod ofd;
pub(crate) mod protocol;
mod queue;
pub(crate) mod readers;
pub(crate) mod slots;
mod sync;
pub(crate) mod writer_lock;

pub(crate) use area::{Area, Identity};
pub use area::{HANDLES_MAX, READERS_MAX};
pub(crate) use queue::{Patience, Ticket};

use crate::error::{Error, Result};
use crate::storage::real_path;
use area::{MemoryWords, VERSION};
use bytes::{ByteLocks, HANDLES, LockBoard, MemoryLocks, Mode, PRESENCE, SETUP};
use slots::Slots;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Opening gives up when another process has been at it for this long.
const SETUP_WAIT: Duration = Duration::from_secs(10);

/// A lock area in the memory of this process: for storages that are no file. Clones share it, so that several
/// handles may be opened on one storage, as several processes would on a file.
#[derive(Clone, Debug)]
pub struct LockMemory {
    words: Arc<MemoryWords>,
    board: Arc<LockBoard>,
}

impl Default for LockMemory {
    fn default() -> Self {
        Self::new()
    }
}

impl LockMemory {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self {
            words: Arc::new(MemoryWords::new()),
            board: Arc::default(),
        }
    }

    /// What outlives the handles: the words and the weak records as they are now. A killed process leaves them, a
    /// power cut does not.
    #[must_use]
    pub fn image(&self) -> Vec<u8> {
        let words = self.words.words[..area::RECORDS_BYTES / 8].iter();
        words
            .flat_map(|word| word.load(Ordering::SeqCst).to_ne_bytes())
            .collect()
    }

    /// An area with this content, and nobody alive. Bytes that are not given are zeros.
    ///
    /// # Panics
    /// When there are more than an image has.
    #[must_use]
    pub fn from_image(image: &[u8]) -> Self {
        let new = Self::new();
        new.words.empty.store(image.is_empty(), Ordering::Relaxed);
        assert!(image.len() <= area::RECORDS_BYTES, "no more than an image");
        for (word, bytes) in new.words.words.iter().zip(image.chunks_exact(8)) {
            let mut array = [0; 8];
            array.copy_from_slice(bytes);
            word.store(u64::from_ne_bytes(array), Ordering::SeqCst);
        }
        new
    }

    /// All who have it open are dead from now on, as if their processes had been killed: what they left in
    /// the area stays, their locks are gone.
    pub fn kill_all(&self) {
        self.board.kill_all();
    }

    pub(crate) fn seat(&self) -> Seat {
        Seat {
            area: Area::Memory(Arc::clone(&self.words)),
            locks: ByteLocks::Memory(MemoryLocks::new(Arc::clone(&self.board))),
            path: PathBuf::from("(memory)"),
        }
    }
}

/// A lock area and an owner of locks, before it has become a handle.
#[derive(Debug)]
pub(crate) struct Seat {
    area: Area,
    locks: ByteLocks,
    path: PathBuf,
}

/// The setup lock. It must be given back with [`Seat::done`] or [`Lock::opened`]; or it dies with its owner.
fn wait_for_setup(locks: &ByteLocks, path: &Path) -> Result<()> {
    let begun = Instant::now();
    let mut pause = Duration::from_micros(20);
    loop {
        let locked = locks.try_lock(SETUP, 1, Mode::Alone);
        match locked.map_err(|source| failed(path, source))? {
            true => return Ok(()),
            false if begun.elapsed() > SETUP_WAIT || !locks.alive() => {
                return Err(Error::LockFile {
                    path: path.to_owned(),
                    problem: "another process has been opening or closing it for 10 seconds".into(),
                });
            }
            false => std::thread::sleep(pause),
        }
        pause = (pause * 2).min(Duration::from_millis(5));
    }
}

fn failed(path: &Path, source: io::Error) -> Error {
    Error::Open {
        path: path.to_owned(),
        source,
    }
}

/// What is wrong when a lock file serves another file than the one at this path, which may be missing, and somebody has that open. Where the
/// lock file has the name of the data file, or the other file is the same database (`is_copy`), it was at this path before. Under the setup lock.
fn in_use(seat: &Seat, named: &Path, is_copy: bool) -> Error {
    let handle = (0..HANDLES_MAX).find(|&index| {
        let opened = seat.area.handle(index)[0].load(Ordering::SeqCst) != 0;
        opened && matches!(seat.locks.taken(HANDLES + index as u64, 1), Ok(true))
    });
    let process = handle.map_or(0, |index| {
        seat.area.handle(index)[1].load(Ordering::Relaxed)
    });
    if is_copy || seat.path == file::beside(&real_path(named)) {
        return Error::FileReplaced {
            path: named.to_owned(),
            process: process as u32,
        };
    }
    Error::LockFile {
        path: seat.path.clone(),
        problem: format!(
            "process {process} uses it for another database, or for a file that was replaced"
        ),
    }
}

impl Seat {
    /// Waits for the setup lock: until [`Lock::opened`] nobody else opens, closes or cleans up.
    pub(crate) fn begin(&self) -> Result<()> {
        wait_for_setup(&self.locks, &self.path)
    }

    /// Whether nobody has the database open, under the setup lock.
    pub(crate) fn is_alone(&self) -> Result<bool> {
        let taken = self.locks.taken(PRESENCE, 1);
        taken
            .map(|taken| !taken)
            .map_err(|source| failed(&self.path, source))
    }

    /// Fails when somebody has a file open that this lock file serves, while there is none at this path. Under the setup lock.
    pub(crate) fn expect_unused(&self, named: &Path) -> Result<()> {
        if self.is_alone()? {
            return Ok(());
        }
        Err(in_use(self, named, false))
    }

    /// Becomes a handle, under the setup lock. Returns whether nobody else was alive; then the area was made
    /// anew, but for weak records of the same file (the inode, not a copy of it) since the same start of the system.
    pub(crate) fn attach(
        self,
        identity: &Identity,
        exclusive: bool,
        read_only: bool,
        named: &Path,
    ) -> Result<(Lock, bool)> {
        let Self { area, locks, path } = self;
        let fail = |source| failed(&path, source);
        let elsewhere = || Error::OpenElsewhere {
            path: named.to_owned(),
        };
        let alone = locks.try_lock(PRESENCE, 1, Mode::Alone).map_err(fail)?;
        if !exclusive || !alone {
            let shared = !exclusive && locks.try_lock(PRESENCE, 1, Mode::Shared).map_err(fail)?;
            if !shared {
                return Err(elsewhere());
            }
        }
        if alone {
            let known = area.is_ours() && area.version() == VERSION;
            // After a failed sync the pages of weak commits may be gone. Where the system does not say which start it is, they may be of
            // another one.
            let sound = area.poison().load(Ordering::SeqCst) == 0 && identity.boot != [0; 16];
            area.reset(identity, known && sound && area.identity() == *identity);
        } else if !area.is_ours() || area.version() != VERSION || area.identity() != *identity {
            let served = area.identity();
            let is_known = area.is_ours() && area.version() == VERSION;
            if is_known && served.file != identity.file {
                let seat = Self { area, locks, path };
                return Err(in_use(&seat, named, served.uuid == identity.uuid));
            }
            let problem = "it belongs to another database, another version of the library or \
                           another start of the system, and is in use";
            return Err(Error::LockFile {
                path,
                problem: problem.into(),
            });
        }
        let mut found = None;
        for index in 0..HANDLES_MAX {
            if locks
                .try_lock(HANDLES + index as u64, 1, Mode::Alone)
                .map_err(fail)?
            {
                found = Some(index);
                break;
            }
        }
        let Some(handle) = found else {
            return Err(Error::Limit {
                what: "databases open on one file",
                found: HANDLES_MAX as u64 + 1,
                limit: HANDLES_MAX as u64,
            });
        };
        let generation = area.generations().fetch_add(1, Ordering::SeqCst) + 1;
        let line = area.handle(handle);
        line[1].store(u64::from(std::process::id()), Ordering::Relaxed);
        line[2].store(
            crate::system::clock::wall_ns().cast_unsigned(),
            Ordering::Relaxed,
        );
        line[3].store(u64::from(read_only), Ordering::Relaxed);
        line[0].store(generation, Ordering::SeqCst);
        let lock = Lock {
            area,
            locks,
            path,
            handle,
            generation,
            born: fork::generation(),
            slots: Slots::new(),
            setup: Mutex::new(()),
        };
        lock.clean_slots();
        Ok((lock, alone))
    }
}

/// One open handle's part of the lock area.
#[derive(Debug)]
pub(crate) struct Lock {
    pub(crate) area: Area,
    locks: ByteLocks,
    path: PathBuf,
    handle: usize,
    generation: u64,
    born: u64,
    slots: Slots,
    /// Byte locks do not keep the threads of one handle apart.
    setup: Mutex<()>,
}

impl Lock {
    /// The handle is ready; others may open.
    pub(crate) fn opened(&self) -> Result<()> {
        let unlocked = self.locks.unlock(SETUP, 1);
        unlocked.map_err(|source| failed(&self.path, source))
    }

    /// Fails in a child that was forked after the file was opened.
    #[inline]
    pub(crate) fn check_process(&self) -> Result<()> {
        if fork::generation() == self.born {
            Ok(())
        } else {
            Err(Error::Forked)
        }
    }

    fn is_here(&self) -> bool {
        fork::generation() == self.born && self.locks.alive()
    }

    /// A failed sync anywhere: who failed (a process id), for as long as anybody has the file open.
    pub(crate) fn poisoned_by(&self) -> Option<u32> {
        match self.area.poison().load(Ordering::Acquire) {
            0 => None,
            word => Some((word >> 1) as u32),
        }
    }

    pub(crate) fn poison(&self) {
        let word = u64::from(std::process::id()) << 1 | 1;
        let poison = self.area.poison();
        // The first one counts.
        let _ = poison.compare_exchange(0, word, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Whether the handle with this number and generation is alive.
    fn is_alive(&self, handle: usize, generation: u64) -> bool {
        if handle == self.handle {
            return generation == self.generation;
        }
        if handle >= HANDLES_MAX || self.area.handle(handle)[0].load(Ordering::SeqCst) != generation
        {
            return false;
        }
        // When the system does not say, nothing is taken away.
        let byte = HANDLES + handle as u64;
        self.locks.taken(byte, 1).unwrap_or(true)
    }

    /// Does something under the setup lock, if it is free right now.
    fn try_setup(&self, act: impl FnOnce()) -> bool {
        let Ok(_guard) = self.setup.try_lock() else {
            return false;
        };
        if !matches!(self.locks.try_lock(SETUP, 1, Mode::Alone), Ok(true)) {
            return false;
        }
        act();
        self.locks.unlock(SETUP, 1).is_ok()
    }

    /// Does something when no other handle is open, and keeps others from opening meanwhile.
    pub(crate) fn if_alone(&self, act: impl FnOnce()) {
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
        self.leave_throne();
        let line = self.area.handle(self.handle);
        let _ = line[0].compare_exchange(self.generation, 0, Ordering::SeqCst, Ordering::Relaxed);
        self.forget_writer();
    }
}
