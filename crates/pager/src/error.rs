//! Errors of the database file.

pub(crate) mod lost_commits;
mod text;

use lost_commits::LostCommits;
use std::io;
use std::path::{Path, PathBuf};
use tidalite_base::Corrupt;
use tidalite_disk::Error as DiskError;

/// Result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Every error of the database file. Each text states the operation, the place, the value found and the value expected,
/// and what the user can do next. Only the text of `Corrupt` leaves that last part to the crate above, because lists of
/// damage are made of such texts.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub enum Error {
    /// An error of a file or of its locks.
    Disk(DiskError),
    /// The file has reached `Options::file_bytes_max`. The transaction is rolled back; the database stays usable.
    FileFull {
        /// Number of bytes that were to be added.
        needed_bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// The bytes do not match the pointer to them.
    Corrupt(Corrupt),
    /// Durable commits are missing, so the file is not opened for writing. Nothing was changed.
    CommitsLost(LostCommits),
    /// The file is not a Tidalite database.
    NotADatabase {
        /// The bytes found instead of the magic number.
        found: String,
    },
    /// The file has another format version or needs an unknown feature, or a structure does not support the operation.
    Unsupported {
        /// The version or feature that the file requires.
        found: String,
        /// The version or feature that this library supports.
        expected: String,
    },
    /// A value was to be read or written at a key whose row holds a nested table. Nothing has changed.
    IsTable {
        /// Key of the row.
        key: Vec<u8>,
    },
    /// The second file, which holds large values, is missing or belongs to another database.
    LargeFile {
        /// Path of the file; empty if unknown.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// The writer lock was not released in time.
    WriterBusy {
        /// The process that holds it, by its number in its own namespace; 0 if unknown.
        process: u32,
        /// The thread that holds it.
        thread: u32,
        /// The time for which it has been held.
        since: std::time::Duration,
    },
    /// An evictable or parked reader lost its snapshot: its pages may have been overwritten.
    Evicted {
        /// The commit that the reader saw.
        txn: tidalite_base::TxnId,
    },
    /// A write was requested from a file opened read-only.
    ReadOnly,
    /// An earlier sync or meta write failed: no commit is acknowledged until the file is reopened.
    Poisoned {
        /// The earlier failure.
        first: String,
    },
    /// The savepoint belongs to another transaction, or was rolled back itself.
    NoSavepoint,
    /// The write transaction whose uncommitted state was read has ended, or was rolled back to a point before the
    /// reader.
    Ended,
    /// No pin has this name.
    NoPin {
        /// The requested name.
        name: String,
    },
    /// A backup does not continue the one before it.
    BackupOrder {
        /// The backup found.
        found: String,
        /// The backup needed.
        expected: String,
    },
    /// The callback that watches the operation cancelled it.
    Cancelled,
    /// A limit of docs/limits.md was exceeded.
    Limit {
        /// Name of the limit.
        what: &'static str,
        /// The requested number.
        found: u64,
        /// The limit.
        limit: u64,
    },
}

impl Error {
    /// The error of a failed system call.
    pub(crate) fn of_call(what: impl Into<String>, at: u64, source: io::Error) -> Self {
        Self::Disk(DiskError::of_call(what, at, source))
    }

    /// The error of a file that the system could not open or create.
    pub(crate) fn of_open(path: &Path, source: io::Error) -> Self {
        Self::Disk(DiskError::of_open(path, source))
    }

    /// The error of a failed write or growth: a full disk, or a failure of the medium.
    pub(crate) fn of_write(what: &str, at: u64, bytes: u64, source: io::Error) -> Self {
        Self::Disk(DiskError::of_write(what, at, bytes, source))
    }

    /// Whether a system call on the data file failed.
    pub(crate) fn is_io(&self) -> bool {
        matches!(self, Self::Disk(DiskError::Io { .. }))
    }

    /// Whether the disk is full, or the file has reached its maximum length. The database stays usable.
    pub(crate) fn is_full(&self) -> bool {
        matches!(
            self,
            Self::Disk(DiskError::DiskFull { .. }) | Self::FileFull { .. }
        )
    }
}

impl From<DiskError> for Error {
    fn from(error: DiskError) -> Self {
        match error {
            // A limit gives the same error, whichever crate enforces it.
            DiskError::Limit { what, found, limit } => Self::Limit { what, found, limit },
            error => Self::Disk(error),
        }
    }
}

impl From<Corrupt> for Error {
    fn from(corrupt: Corrupt) -> Self {
        Self::Corrupt(corrupt)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Disk(error) => error.source(),
            Self::Corrupt(corrupt) => Some(corrupt),
            _ => None,
        }
    }
}
