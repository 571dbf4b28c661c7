//! Errors of the database file.

pub(crate) mod lost_commits;
pub(crate) mod refusal;
mod text;

use lost_commits::LostCommits;
use refusal::Refusal;
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
    /// The file has reached its maximum length, `Options::file_bytes_max`. The transaction is rolled back; the
    /// database stays usable.
    FileFull {
        /// Number of bytes by which the file was to grow.
        needed_bytes: u64,
        /// The maximum length of the file in bytes.
        bytes_max: u64,
    },
    /// Bytes of the file do not match the pointer to them, or contain values that no writer would write.
    Corrupt(Corrupt),
    /// Durable commits are missing, so the file is not opened for writing. The file was not changed.
    CommitsLost(LostCommits),
    /// The file is not a Tidalite database.
    NotADatabase {
        /// Text that shows the bytes found instead of the magic number.
        found: String,
    },
    /// The file has another format version or needs an unknown feature, or the table or series does not support the
    /// operation.
    Unsupported {
        /// The version or feature that the file requires.
        found: String,
        /// The version or feature that this library supports.
        expected: String,
    },
    /// A structure of the file refused a call, and nothing was changed.
    Refused {
        /// The reason; a program can decide by it how to react.
        reason: Refusal,
        /// The argument or the state that was found.
        found: String,
        /// The argument or the state that the call expects, and the next step.
        expected: String,
    },
    /// A value was to be read or written at a key under which a nested table is stored. The table was not changed.
    IsTable {
        /// Key of the nested table.
        key: Vec<u8>,
    },
    /// The second file, which holds large values, is missing or belongs to another database.
    LargeFile {
        /// Path of the second file; empty if unknown.
        path: PathBuf,
        /// Text that describes the problem.
        problem: String,
    },
    /// The writer lock was not released before the time limit of the wait.
    WriterBusy {
        /// Id of the process that holds the writer lock, in the PID namespace of that process; 0 if unknown.
        process: u32,
        /// Id of the thread that holds the writer lock.
        thread: u32,
        /// Time for which the writer lock has been held.
        since: std::time::Duration,
    },
    /// An evictable or parked reader lost its snapshot: its pages may have been overwritten.
    Evicted {
        /// Transaction of the commit that the reader saw.
        txn: tidalite_base::TxnId,
    },
    /// A write was requested from a file opened read-only.
    ReadOnly,
    /// An earlier sync or write of a meta record failed: no commit is acknowledged until the file is reopened.
    Poisoned {
        /// Text of the error that poisoned the file first.
        first: String,
    },
    /// The savepoint belongs to another transaction, or was rolled back itself.
    NoSavepoint,
    /// The write transaction whose uncommitted data were read has ended, or was rolled back to a point before the
    /// reader.
    Ended,
    /// No pin has the requested name.
    NoPin {
        /// The requested name.
        name: String,
    },
    /// A backup does not build on the backup before it in the chain.
    BackupOrder {
        /// Description of the backup that was found.
        found: String,
        /// Description of the backup that is needed.
        expected: String,
    },
    /// The callback that the caller supplied cancelled the operation.
    Cancelled,
    /// A limit of docs/limits.md was exceeded.
    Limit {
        /// Name of the quantity that is limited.
        what: &'static str,
        /// The number that was requested of this quantity.
        found: u64,
        /// The maximum number permitted by the limit.
        limit: u64,
    },
}

impl Error {
    /// Creates the error of a call that a structure of the file refuses before it changes anything.
    #[cold]
    #[must_use]
    pub fn refused(reason: Refusal, found: impl Into<String>, expected: impl Into<String>) -> Self {
        Self::Refused {
            reason,
            found: found.into(),
            expected: expected.into(),
        }
    }

    /// Creates the error of a failed system call.
    pub(crate) fn of_call(what: impl Into<String>, at: u64, source: io::Error) -> Self {
        Self::Disk(DiskError::of_call(what, at, source))
    }

    /// Creates the error of a file that the system could not open or create.
    pub(crate) fn of_open(path: &Path, source: io::Error) -> Self {
        Self::Disk(DiskError::of_open(path, source))
    }

    /// Creates the error of a failed write or growth of the file: `DiskFull` if the disk or a quota is full,
    /// otherwise `Io`.
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
            // An exceeded limit is the same error, whichever crate enforces the limit.
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
