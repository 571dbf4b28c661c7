//! The open files of a handle, the options with which they were opened, and the errors after which they must not be
//! used any more.
//!
//! Invariants
//! 1. After a failed sync or a failed write of a meta record, `poisoned` is set for good, and so is the poison word
//!    in the lock area. From then on no handle of the file, in any process, acknowledges a commit.

use super::second_file::LargeFile;
use super::verified_pages::Verified;
use crate::error::{Error, Result};
use crate::format::superblock::Superblock;
use crate::options::Options;
use crate::options::event::Event;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tidalite_disk::lock::Lock;
use tidalite_disk::lock::WriterLock;
use tidalite_disk::storage::{Named, Observer, Storage};
use tidalite_disk::system::Clocks;

/// Minimum and maximum length of the file in bytes, which can be changed while the file is open.
#[derive(Debug)]
pub(crate) struct Bounds {
    least_bytes: AtomicU64,
    most_bytes: AtomicU64,
}

impl Bounds {
    fn new(options: &Options) -> Self {
        Self {
            least_bytes: AtomicU64::new(options.file_bytes_min),
            most_bytes: AtomicU64::new(options.file_bytes_max),
        }
    }

    pub(crate) fn set(&self, least_bytes: u64, most_bytes: u64) {
        self.least_bytes.store(least_bytes, Ordering::Relaxed);
        self.most_bytes.store(most_bytes, Ordering::Relaxed);
    }

    pub(crate) fn least_bytes(&self) -> u64 {
        self.least_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn most_bytes(&self) -> u64 {
        self.most_bytes.load(Ordering::Relaxed)
    }
}

/// The open files of a handle, with the lock area and the options of opening.
pub(crate) struct Files {
    pub(crate) storage: Arc<dyn Storage>,
    /// Path of the data file with symbolic links resolved, if it was opened by path.
    pub(crate) path: Option<PathBuf>,
    /// The open file with its path, to detect that the file was moved; `None` for a storage that is not a file.
    pub(crate) named: Option<Named>,
    /// The second file, which stores large values, if the database has one.
    pub(crate) large: Option<LargeFile>,
    pub(crate) superblock: Superblock,
    pub(crate) page_size: usize,
    pub(crate) options: Options,
    pub(crate) bounds: Bounds,
    /// Readings of the clocks when the file was opened.
    pub(crate) opened: Clocks,
    pub(crate) verified: Verified,
    pub(crate) observed: bool,
    pub(crate) writer_lock: Arc<WriterLock>,
    pub(crate) lock: Arc<Lock>,
    poisoned: OnceLock<String>,
}

impl Files {
    pub(crate) fn new(
        storage: Arc<dyn Storage>,
        superblock: Superblock,
        options: Options,
        lock: Lock,
    ) -> Self {
        let lock = Arc::new(lock);
        Self {
            observed: storage.observer().is_some(),
            storage,
            path: None,
            named: None,
            large: None,
            page_size: superblock.page_size,
            verified: Verified::new(superblock.page_size),
            superblock,
            bounds: Bounds::new(&options),
            opened: options.clock.read(),
            options,
            writer_lock: Arc::new(WriterLock::new(Arc::clone(&lock))),
            poisoned: OnceLock::new(),
            lock,
        }
    }

    /// Current readings of the clocks, and those when the file was opened.
    pub(crate) fn clocks(&self) -> (Clocks, Clocks) {
        (self.options.clock.read(), self.opened)
    }

    /// Whether a sync or the write of a meta record has failed in this handle.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.poisoned.get().is_some()
    }

    pub(crate) fn check_writable(&self) -> Result<()> {
        self.lock.check_process()?;
        if self.options.read_only {
            return Err(Error::ReadOnly);
        }
        self.check_poison()
    }

    /// Returns an error if the data file was found to be moved from its path.
    pub(crate) fn known_moved(&self) -> Result<()> {
        self.named.as_ref().map_or(Ok(()), Named::known)?;
        Ok(())
    }

    /// Returns an error if no more commits may be acknowledged, because a sync has failed or the data file was found
    /// to be moved from its path.
    pub(crate) fn check_poison(&self) -> Result<()> {
        self.known_moved()?;
        self.check_synced()
    }

    /// Returns an error if a sync of the file has failed, in this process or in another.
    pub(crate) fn check_synced(&self) -> Result<()> {
        if let Some(first) = self.poisoned.get() {
            return Err(Error::Poisoned {
                first: first.clone(),
            });
        }
        match self.lock.poisoned_by() {
            Some(process) => Err(Error::Poisoned {
                first: format!("a sync of process {process}, which had the same file open"),
            }),
            None => Ok(()),
        }
    }

    /// Passes the event to the logger of the handle, if there is one.
    pub(crate) fn log(&self, event: &Event) {
        if let Some(logger) = &self.options.logger {
            logger.tell(event);
        }
    }

    /// Poisons the file after a failed sync or write: from now on no handle acknowledges a commit.
    pub(crate) fn poison(&self, error: &Error) {
        let first = error.to_string();
        // If several threads fail at the same time, only the first failure is logged.
        if self.poison_unlogged(&first) {
            self.log(&Event::Poisoned { first });
        }
    }

    /// Like `poison`, but without a log event. Returns whether this is the first failure in this handle.
    pub(crate) fn poison_unlogged(&self, first: &str) -> bool {
        let is_first = self.poisoned.set(first.to_owned()).is_ok();
        self.lock.poison();
        is_first
    }

    pub(crate) fn observer(&self) -> Option<&dyn Observer> {
        if self.observed {
            self.storage.observer()
        } else {
            None
        }
    }

    /// Records in the lock area that the durable commit `txn` is on the medium.
    pub(crate) fn note_durable(&self, txn: u64) {
        self.lock.area.durable().store(txn, Ordering::Release);
    }

    pub(crate) fn writer_busy(&self) -> Error {
        let seen = self.lock.writer_now();
        Error::WriterBusy {
            process: seen.map_or(0, |seen| seen.process),
            thread: seen.map_or(0, |seen| seen.thread),
            since: seen.map_or(Duration::ZERO, |seen| seen.since),
        }
    }
}
