//! Errors of data files and lock files.

mod text;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Every error of a data file or lock file. Each message describes the operation, the place, and the next step.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub enum Error {
    /// A system call on the data file failed.
    Io {
        /// Name of the operation, such as "write of 4096 bytes".
        what: String,
        /// Byte offset in the file at which the operation began.
        at: u64,
        /// Error that the operating system returned.
        source: Arc<io::Error>,
    },
    /// The file could not be opened or created.
    Open {
        /// Path of the file that could not be opened.
        path: PathBuf,
        /// Error that the operating system returned.
        source: Arc<io::Error>,
    },
    /// The disk is full. The transaction is rolled back; the database stays usable.
    DiskFull {
        /// Number of bytes by which the file was to grow.
        needed_bytes: u64,
    },
    /// Another handle has opened the file for exclusive use, or uses a different lock file or no lock file.
    OpenElsewhere {
        /// Path of the data file.
        path: PathBuf,
    },
    /// The data file at this path was replaced or deleted while a process still has the previous file open.
    FileReplaced {
        /// Path at which the data file was replaced or deleted.
        path: PathBuf,
        /// Id of the process that has the previous file open, in the PID namespace of that process; 0 if unknown.
        process: u32,
    },
    /// The data file was replaced, renamed or deleted while this handle had it open. The handle commits no more
    /// transactions; reads still work.
    FileMoved {
        /// The path at which this handle opened the file, with symbolic links resolved.
        path: PathBuf,
        /// Text that describes the file that is at this path now, if any.
        found: &'static str,
        /// Current path of the data file, if it has one and the system reports it.
        now_at: Option<PathBuf>,
    },
    /// A database was opened for shared use on a file system that other computers can write to.
    NetworkFileSystem {
        /// Path of the file on such a file system: the data file or the lock file.
        path: PathBuf,
        /// Type of the file system, such as "NFS".
        kind: &'static str,
    },
    /// The lock file cannot be used.
    LockFile {
        /// Path of the lock file.
        path: PathBuf,
        /// Text that describes the problem.
        problem: String,
    },
    /// Other processes have the database open. A reader that runs at the same time must write to the lock file, and
    /// the system does not permit this.
    LockRefused {
        /// Path of the lock file.
        path: PathBuf,
        /// Error that the operating system returned.
        source: Arc<io::Error>,
    },
    /// The process was forked after the file was opened; the handle belongs to the parent process.
    Forked,
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
    /// Creates the error of a failed system call.
    pub fn of_call(what: impl Into<String>, at: u64, source: impl Into<io::Error>) -> Self {
        Self::Io {
            what: what.into(),
            at,
            source: Arc::new(source.into()),
        }
    }

    /// Creates the error of a file that the system could not open or create.
    #[must_use]
    pub fn of_open(path: &Path, source: io::Error) -> Self {
        Self::Open {
            path: path.to_owned(),
            source: Arc::new(source),
        }
    }

    /// Creates the error of a failed write or growth of the file: `DiskFull` if the disk or a quota is full,
    /// otherwise `Io`.
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

    /// Returns the error of the operating system that caused this error, if any.
    #[must_use]
    pub fn io_error(&self) -> Option<&io::Error> {
        match self {
            Self::Io { source, .. }
            | Self::Open { source, .. }
            | Self::LockRefused { source, .. } => Some(source),
            _ => None,
        }
    }

    /// Returns the path of the file that this error concerns, if the error has one.
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
