//! The file, or the two files, of a test case: in memory or, for functions that need paths, in a folder.
//!
//! The bytes of two files are stored in one buffer, the second file after the first, so that the code that changes
//! bytes and their checksums needs no special case.

use super::options::options;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidalite::storage::{LockMemory, MemoryStorage, Storage};
use tidalite::{Database, Options, Result};
use tidalite_base::limits::SECOND_FILE_AT;

/// Minimum size in bytes of values that go to the second file.
pub const LARGE_BYTES_MIN: u64 = 1_000;

/// The bytes of one file, or of the two files of a database.
#[derive(Clone)]
pub struct Files {
    /// The bytes of the first file, followed by the bytes of the second file.
    pub bytes: Vec<u8>,
    /// Offset of the second file in `bytes`, if there is a second file.
    pub second_at: Option<usize>,
}

impl Files {
    /// Creates a case of a single file.
    #[must_use]
    pub fn one(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            second_at: None,
        }
    }

    /// The bytes of the first file, and of the second file if there is one.
    #[must_use]
    pub fn parts(&self) -> (&[u8], Option<&[u8]>) {
        match self.second_at {
            None => (&self.bytes, None),
            Some(at) => {
                let (first, second) = self.bytes.split_at(at);
                (first, Some(second))
            }
        }
    }

    /// Offset in `bytes` of an address in the database; `None` if the address lies outside.
    #[must_use]
    pub fn place(&self, addr: u64) -> Option<usize> {
        match (addr.checked_sub(SECOND_FILE_AT), self.second_at) {
            (None, _) => usize::try_from(addr).ok(),
            (Some(behind), Some(at)) => at.checked_add(usize::try_from(behind).ok()?),
            (Some(_), None) => None,
        }
    }

    /// Opens the files in memory.
    ///
    /// # Errors
    /// As `Options::open_storages`.
    pub fn open(&self, options: Options) -> Result<Database> {
        self.stored().open_by(options)
    }

    /// Copies the files into storages in memory, without lock files, as after a start of the system.
    pub(super) fn stored(&self) -> Stored {
        let in_memory = |bytes: &[u8]| -> Arc<dyn Storage> {
            Arc::new(MemoryStorage::from_image(bytes.to_vec()))
        };
        let (first, second) = self.parts();
        Stored {
            first: in_memory(first),
            second: second.map(in_memory),
        }
    }
}

/// Files in memory that can be opened repeatedly.
pub(super) struct Stored {
    pub(super) first: Arc<dyn Storage>,
    pub(super) second: Option<Arc<dyn Storage>>,
}

impl Stored {
    pub(super) fn open(&self) -> Result<Database> {
        self.open_by(options())
    }

    pub(super) fn open_by(&self, options: Options) -> Result<Database> {
        let first = Arc::clone(&self.first);
        match &self.second {
            None => options.open_storage(first),
            Some(second) => options.large_values("", LARGE_BYTES_MIN).open_storages(
                first,
                Arc::clone(second),
                &LockMemory::new(),
            ),
        }
    }

    /// A copy of the current bytes of the files.
    pub(super) fn files(&self) -> std::io::Result<Files> {
        let read = |storage: &Arc<dyn Storage>| {
            let mut bytes = vec![0; storage.len()? as usize];
            storage.read_at(0, &mut bytes).map(|()| bytes)
        };
        let mut bytes = read(&self.first)?;
        let second_at = self.second.as_ref().map(|_| bytes.len());
        if let Some(second) = &self.second {
            bytes.extend(read(second)?);
        }
        Ok(Files { bytes, second_at })
    }
}

/// Paths for a database of two files, used only by this process; the files and the lock file are removed on drop.
pub(super) struct Paths {
    pub(super) first: PathBuf,
    pub(super) second: PathBuf,
}

impl Paths {
    pub(super) fn new(what: &str) -> Self {
        let name = format!("tidalite-hostile-{what}-{}.tdl", std::process::id());
        let first = std::env::temp_dir().join(name);
        Self {
            second: first.with_extension("large"),
            first,
        }
    }
}

impl Drop for Paths {
    fn drop(&mut self) {
        let lock = format!("{}-lock", self.first.display());
        for path in [&*self.first, &self.second, Path::new(&lock)] {
            let _ = std::fs::remove_file(path);
        }
    }
}
