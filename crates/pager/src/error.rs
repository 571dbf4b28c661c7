//! Errors of the database file.

pub(crate) mod lost_commits;
mod text;

use lost_commits::LostCommits;
use std::io;
use std::path::{Path, PathBuf};
use tidalite_base::Corrupt;

/// Result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Every error of the database file. Each text states the operation, the place, the value found and the value expected,
/// and the next step. The text of `Corrupt` leaves the next step to the crate above, because lists of damage are made
/// of these texts.
#[non_exhaustive]
#[derive(Debug)]
pub enum Error {
    /// A system call on the data file failed.
    Io {
        /// The operation: "write of 4096 bytes".
        what: String,
        /// Byte address in the file.
        at: u64,
        /// Error of the system.
        source: io::Error,
    },
    /// The file could not be opened or created.
    Open {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The disk is full. The transaction is rolled back; the database stays usable.
    DiskFull {
        /// Number of bytes that were to be added.
        needed_bytes: u64,
    },
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
        /// Requirement of the file.
        found: String,
        /// Support in this library.
        expected: String,
    },
    /// A row of a table holds a nested table, where a value was to be read or written. Nothing has changed.
    IsTable {
        /// Key of the row.
        key: Vec<u8>,
    },
    /// Another handle has the file exclusively, or uses a different lock file (or none).
    OpenElsewhere {
        /// Path of the file.
        path: PathBuf,
    },
    /// The data file at this path was replaced or deleted while a process still has the previous file open.
    FileReplaced {
        /// Path of the file.
        path: PathBuf,
        /// The process that has the previous file open, by its number in its own namespace; 0 if unknown.
        process: u32,
    },
    /// The data file was replaced, renamed or deleted while it was open here. This handle commits nothing more; reads
    /// still work.
    FileMoved {
        /// The path at which it was opened, with symbolic links resolved.
        path: PathBuf,
        /// State of that path now.
        found: &'static str,
        /// Current path of the file, if it has one and the system reports it.
        now_at: Option<PathBuf>,
    },
    /// A database on a file system that other computers write to was opened for shared use.
    NetworkFileSystem {
        /// The data file or the lock file.
        path: PathBuf,
        /// Name of the file system.
        kind: &'static str,
    },
    /// The lock file cannot be used.
    LockFile {
        /// Path of the file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// Other processes have the database open, and a reader beside them must write to the lock file, which the system
    /// refuses.
    LockRefused {
        /// The lock file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
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
    /// The process was forked after the file was opened; the handle belongs to the parent process.
    Forked,
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

/// Copy of an error of the system.
pub(crate) fn copy_of(source: &io::Error) -> io::Error {
    io::Error::new(source.kind(), source.to_string())
}

impl Error {
    /// Copy of the error: after a failure a transaction returns it from every later call.
    #[must_use]
    pub fn again(&self) -> Self {
        match self {
            Self::Io { what, at, source } => Self::Io {
                what: what.clone(),
                at: *at,
                source: copy_of(source),
            },
            Self::Open { path, source } => Self::Open {
                path: path.clone(),
                source: copy_of(source),
            },
            Self::LockRefused { path, source } => Self::LockRefused {
                path: path.clone(),
                source: copy_of(source),
            },
            Self::DiskFull { needed_bytes } => Self::DiskFull {
                needed_bytes: *needed_bytes,
            },
            Self::FileFull {
                needed_bytes,
                bytes_max,
            } => Self::FileFull {
                needed_bytes: *needed_bytes,
                bytes_max: *bytes_max,
            },
            Self::Corrupt(corrupt) => Self::Corrupt(corrupt.clone()),
            Self::CommitsLost(lost) => Self::CommitsLost(*lost),
            Self::NotADatabase { found } => Self::NotADatabase {
                found: found.clone(),
            },
            Self::Unsupported { found, expected } => Self::Unsupported {
                found: found.clone(),
                expected: expected.clone(),
            },
            Self::IsTable { key } => Self::IsTable { key: key.clone() },
            Self::OpenElsewhere { path } => Self::OpenElsewhere { path: path.clone() },
            Self::FileReplaced { path, process } => Self::FileReplaced {
                path: path.clone(),
                process: *process,
            },
            Self::FileMoved {
                path,
                found,
                now_at,
            } => Self::FileMoved {
                path: path.clone(),
                found,
                now_at: now_at.clone(),
            },
            Self::NetworkFileSystem { path, kind } => Self::NetworkFileSystem {
                path: path.clone(),
                kind,
            },
            Self::LockFile { path, problem } => Self::LockFile {
                path: path.clone(),
                problem: problem.clone(),
            },
            Self::LargeFile { path, problem } => Self::LargeFile {
                path: path.clone(),
                problem: problem.clone(),
            },
            Self::WriterBusy {
                process,
                thread,
                since,
            } => Self::WriterBusy {
                process: *process,
                thread: *thread,
                since: *since,
            },
            Self::Evicted { txn } => Self::Evicted { txn: *txn },
            Self::Forked => Self::Forked,
            Self::ReadOnly => Self::ReadOnly,
            Self::Cancelled => Self::Cancelled,
            Self::NoPin { name } => Self::NoPin { name: name.clone() },
            Self::BackupOrder { found, expected } => Self::BackupOrder {
                found: found.clone(),
                expected: expected.clone(),
            },
            Self::Poisoned { first } => Self::Poisoned {
                first: first.clone(),
            },
            Self::NoSavepoint => Self::NoSavepoint,
            Self::Ended => Self::Ended,
            Self::Limit { what, found, limit } => Self::Limit {
                what,
                found: *found,
                limit: *limit,
            },
        }
    }

    /// The error of a file that the system could not open or create.
    pub(crate) fn of_open(path: &Path, source: io::Error) -> Self {
        Self::Open {
            path: path.to_owned(),
            source,
        }
    }

    /// The error of a failed write or growth: a full disk, or a failure of the medium.
    pub(crate) fn of_write(what: &str, at: u64, bytes: u64, source: io::Error) -> Self {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        match source.kind() {
            StorageFull | QuotaExceeded | FileTooLarge => Self::DiskFull {
                needed_bytes: bytes,
            },
            _ => Self::Io {
                what: format!("{what} of {bytes} bytes"),
                at,
                source,
            },
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
            Self::Io { source, .. }
            | Self::Open { source, .. }
            | Self::LockRefused { source, .. } => Some(source),
            Self::Corrupt(corrupt) => Some(corrupt),
            _ => None,
        }
    }
}
