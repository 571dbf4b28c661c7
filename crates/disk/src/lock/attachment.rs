//! Access to a lock area before the file is opened: acquires the setup lock, detects other handles, and registers a
//! new handle.

use super::area::{Area, Identity, MemoryWords};
use super::bytes::{ByteLocks, HANDLES, LockBoard, MemoryLocks, PRESENCE, SETUP};
use super::fork;
use super::handle::Lock;
use super::idle_slots::Slots;
use super::layout::{HANDLES_MAX, RECORDS_BYTES, VERSION};
use super::ofd::Mode;
use crate::error::{Error, Result};
use crate::storage::real_path;
use crate::system::wall_ns;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Maximum wait for the setup lock while another process holds it; then opening fails.
const SETUP_WAIT: Duration = Duration::from_secs(10);

/// Time for which opening waits for a conflicting handle to be closed. The locks of a closed handle may outlive the
/// handle for a moment: when another thread starts a program, the new process has this process's descriptors until it
/// executes the program.
const CLOSED_WAIT: Duration = Duration::from_millis(100);

/// Repeats `attempt` until it returns true or `CLOSED_WAIT` has passed, since the handle that prevents it may just be
/// closing. Returns the last result.
pub(super) fn wait_for_closed(mut attempt: impl FnMut() -> io::Result<bool>) -> io::Result<bool> {
    let deadline = Instant::now() + CLOSED_WAIT;
    loop {
        let done = attempt()?;
        if done || Instant::now() >= deadline {
            return Ok(done);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A lock area in the memory of this process, for storages that are not files. Clones share the area, so that several
/// handles can be opened on one storage, as several processes would on a file.
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
    /// Creates an empty lock area.
    #[must_use]
    pub fn new() -> Self {
        Self {
            words: Arc::new(MemoryWords::new()),
            board: Arc::default(),
        }
    }

    /// Returns the part of the area that outlives the handles: the words before the table of handles, including the
    /// unsynced meta records. In a lock file, this part survives the kill of a process, but not a power failure.
    #[must_use]
    pub fn image(&self) -> Vec<u8> {
        let words = self.words.words[..RECORDS_BYTES / 8].iter();
        words
            .flat_map(|word| word.load(Ordering::SeqCst).to_ne_bytes())
            .collect()
    }

    /// Creates a lock area with the contents that `image` returned, without live handles. Missing bytes are zeros.
    ///
    /// # Panics
    /// If `image` is longer than an image can be.
    #[must_use]
    pub fn from_image(image: &[u8]) -> Self {
        let new = Self::new();
        new.words.empty.store(image.is_empty(), Ordering::Relaxed);
        assert!(image.len() <= RECORDS_BYTES, "no more than an image");
        for (word, bytes) in new.words.words.iter().zip(image.chunks_exact(8)) {
            let mut array = [0; 8];
            array.copy_from_slice(bytes);
            word.store(u64::from_ne_bytes(array), Ordering::SeqCst);
        }
        new
    }

    /// Declares all handles dead, as if their processes had been killed: their words stay in the area, but their
    /// locks are released.
    pub fn kill_all(&self) {
        self.board.kill_all();
    }

    /// Returns access to this area for a handle that is not registered yet.
    #[must_use]
    pub fn attachment(&self) -> Attachment {
        Attachment {
            area: Area::Memory(Arc::clone(&self.words)),
            locks: ByteLocks::Memory(MemoryLocks::new(Arc::clone(&self.board))),
            path: PathBuf::from("(memory)"),
        }
    }
}

/// A lock area and the owner of its byte locks, for a handle that is not registered yet.
#[derive(Debug)]
pub struct Attachment {
    pub(super) area: Area,
    pub(super) locks: ByteLocks,
    pub(super) path: PathBuf,
}

/// Acquires the setup lock. [`Lock::opened`] releases the lock; if it is never called, the lock is released when
/// `locks` is dropped or the process ends.
pub(super) fn wait_for_setup(locks: &ByteLocks, path: &Path) -> Result<()> {
    let begun = Instant::now();
    let mut pause = Duration::from_micros(20);
    loop {
        let locked = locks.try_lock(SETUP, 1, Mode::Alone);
        match locked.map_err(|source| Error::of_open(path, source))? {
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

/// Returns the error for a lock file that serves another file than the one at path `named`, while that other file is
/// open. (There may be no file at `named`.) If the lock file has the name of the data file, or if the other file is
/// the same database (`is_copy`), the other file was at this path before. The caller must hold the setup lock.
fn in_use(attachment: &Attachment, named: &Path, is_copy: bool) -> Error {
    let handle = (0..HANDLES_MAX).find(|&index| {
        let opened = attachment.area.handle(index)[0].load(Ordering::SeqCst) != 0;
        opened && matches!(attachment.locks.taken(HANDLES + index as u64, 1), Ok(true))
    });
    let process = handle.map_or(0, |index| {
        attachment.area.handle(index)[1].load(Ordering::Relaxed)
    });
    if is_copy || attachment.path == path_next_to(&real_path(named)) {
        return Error::FileReplaced {
            path: named.to_owned(),
            process: process as u32,
        };
    }
    Error::LockFile {
        path: attachment.path.clone(),
        problem: format!(
            "process {process} uses it for another database, or for a file that was replaced"
        ),
    }
}

impl Attachment {
    /// Acquires the setup lock. Until [`Lock::opened`] releases it, no other handle opens, closes or cleans up after
    /// dead handles.
    pub fn begin(&self) -> Result<()> {
        wait_for_setup(&self.locks, &self.path)
    }

    /// Whether no other handle has the database open. The caller must hold the setup lock.
    pub fn is_alone(&self) -> Result<bool> {
        let taken = self.locks.taken(PRESENCE, 1);
        taken
            .map(|taken| !taken)
            .map_err(|source| Error::of_open(&self.path, source))
    }

    /// Returns an error if a handle has another file open with this lock file, although there is no file at path
    /// `named`. The caller must hold the setup lock.
    pub fn expect_unused(&self, named: &Path) -> Result<()> {
        if self.is_alone()? {
            return Ok(());
        }
        Err(in_use(self, named, false))
    }

    /// Registers a new handle in the lock area. The caller must hold the setup lock. Also returns whether no other
    /// handle was alive. In this case the area was reset, except for unsynced meta records that belong to the same
    /// file (the same inode, not a copy) and to the same boot of the system.
    pub fn attach(
        self,
        identity: &Identity,
        exclusive: bool,
        read_only: bool,
        named: &Path,
    ) -> Result<(Lock, bool)> {
        let Self { area, locks, path } = self;
        let fail = |source| Error::of_open(&path, source);
        let elsewhere = || Error::OpenElsewhere {
            path: named.to_owned(),
        };
        let mut alone = false;
        let try_once = || {
            alone = locks.try_lock(PRESENCE, 1, Mode::Alone)?;
            match exclusive {
                true => Ok(alone),
                // Downgrading the exclusive lock to a shared lock permits other handles to attach.
                false => locks.try_lock(PRESENCE, 1, Mode::Shared),
            }
        };
        if !wait_for_closed(try_once).map_err(fail)? {
            return Err(elsewhere());
        }
        if alone {
            let known = area.is_ours() && area.version() == VERSION;
            // After a failed sync, the pages of lazy commits may be lost. If the boot id is unknown, the unsynced
            // meta records may be from before a restart of the system. In both cases the unsynced meta records are
            // discarded.
            let sound = area.poison().load(Ordering::SeqCst) == 0 && identity.boot != [0; 16];
            area.reset(identity, known && sound && area.identity() == *identity);
        } else if !area.is_ours() || area.version() != VERSION || area.identity() != *identity {
            let served = area.identity();
            let is_known = area.is_ours() && area.version() == VERSION;
            if is_known && served.file != identity.file {
                let attachment = Self { area, locks, path };
                return Err(in_use(&attachment, named, served.uuid == identity.uuid));
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
        line[2].store(wall_ns().cast_unsigned(), Ordering::Relaxed);
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

/// Returns the path of the lock file of a data file: `name.tdl-lock` for `name.tdl`.
pub fn path_next_to(path: &Path) -> PathBuf {
    let mut name = OsString::from(path.as_os_str());
    name.push("-lock");
    PathBuf::from(name)
}
