//! Errors of files and locks.

mod text;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Every error of a data file or lock file. Each text states the operation, the place, and the next step.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub enum Error {
    /// A system call on the data file failed.
    Io {
        /// The operation, such as "write of 4096 bytes".
        what: String,
        /// Byte address in the file.
        at: u64,
        /// Error of the system.
        source: Arc<io::Error>,
    },
    /// The file could not be opened or created.
    Open {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: Arc<io::Error>,
    },
    /// The disk is full. The transaction is rolled back; the database stays usable.
    DiskFull {
        /// Number of bytes that were to be added.
        needed_bytes: u64,
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
        /// Process id of the process that has the previous file open, in its own namespace; 0 if unknown.
        process: u32,
    },
    /// The data file was replaced, renamed or deleted while it was open here. This handle commits nothing more; reads
    /// still work.
    FileMoved {
        /// The path at which this handle opened it, with symbolic links resolved.
        path: PathBuf,
        /// What is at that path now.
        found: &'static str,
        /// Current path of the file, if it has one and the system reports it.
        now_at: Option<PathBuf>,
    },
    /// A database was opened for shared use on a file system that other computers can write to.
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
    /// Other processes have the database open. A reader beside them must write to the lock file, and the system refuses
    /// this.
    LockRefused {
        /// The lock file.
        path: PathBuf,
        /// Error of the system.
        source: Arc<io::Error>,
    },
    /// The process was forked after the file was opened; the handle belongs to the parent process.
    Forked,
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
    pub fn of_call(what: impl Into<String>, at: u64, source: impl Into<io::Error>) -> Self {
        Self::Io {
            what: what.into(),
            at,
            source: Arc::new(source.into()),
        }
    }

    /// The error of a file that the system could not open or create.
    #[must_use]
    pub fn of_open(path: &Path, source: io::Error) -> Self {
        Self::Open {
            path: path.to_owned(),
            source: Arc::new(source),
        }
    }

    /// The error of a failed write or growth: a full disk, or a failure of the medium.
    #[must_use]
    pub fn of_write(what: &str, at: u64, bytes: u64, source: io::Error) -> Self {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        match source.kind() {
            StorageFull | QuotaExceeded | FileTooLarge => Self::DiskFull {
                needed_bytes: bytes,
            },
            _ => Self::of_call(format!("{what} of {bytes} bytes"), at, source),
        }
    }

    /// The error of the operating system, if it is one.
    #[must_use]
    pub fn io_error(&self) -> Option<&io::Error> {
        match self {
            Self::Io { source, .. }
            | Self::Open { source, .. }
            | Self::LockRefused { source, .. } => Some(source),
            _ => None,
        }
    }

    /// The file that the error is about, if it names one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Open { path, .. }
            | Self::OpenElsewhere { path }
            | Self::FileReplaced { path, .. }
            | Self::FileMoved { path, .. }
            | Self::NetworkFileSystem { path, .. }
            | Self::LockFile { path, .. }
            | Self::LockRefused { path, .. } => Some(path),
            _ => None,
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.io_error().map(|source| source as _)
    }
}
