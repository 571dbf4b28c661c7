//! The kinds of errors, and the assignment of every error to a kind.

use crate::types::error::cause::Cause;
use std::io;
use tidalite_pager::{DiskError, Error as FileError, Refusal};

/// The kind of an [`Error`](crate::Error), by which a program can decide how to react. The text of the error says more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No file, series, container, group of a queue, pin or row has this path, id, name or key.
    NotFound,
    /// A file of this path, or a table or container of this name exists already; or a row of this time exists, in a
    /// series that refuses a second one ([`MergePolicy::Error`](crate::MergePolicy)). Nothing was changed.
    AlreadyExists,
    /// An invalid name of a series, table, container, field, object, group, pin or policy, an invalid topic, or an
    /// invalid pattern or filter.
    InvalidName,
    /// An argument that cannot be used: options beyond their limits, a token of another query, a text that is not a
    /// timestamp or not JSON, operands that an expression cannot compute, backups out of order, a key with several
    /// values where one was to be changed, weights beyond the range of a float, a cap that no removal reaches.
    InvalidInput,
    /// An invalid schema, a schema that differs from the series' own schema, or a column or value that does not fit the
    /// schema.
    Schema,
    /// A key, value or table of another type than requested: a nested table in place of a value, a table of sets opened
    /// as one of single values, a table opened with types or options other than those stored with it. The file is
    /// sound.
    WrongType,
    /// Another row of a relation has the same primary key, or the same values in a unique index;
    /// [`Error::unique_violation`](crate::Error::unique_violation) names them. Nothing was changed.
    UniqueViolation,
    /// Null for a column of a relation that must have a value;
    /// [`Error::not_null_violation`](crate::Error::not_null_violation) names it. Nothing was changed.
    NotNullViolation,
    /// An appended key or pair is not greater than the last one of its table.
    OutOfOrder,
    /// A limit of docs/limits.md was exceeded. [`Error::limit`](crate::Error::limit) gives the amounts.
    Limit,
    /// Bytes of the file do not match their checksum or contradict each other.
    /// [`Error::corrupt`](crate::Error::corrupt) describes these bytes.
    Damaged,
    /// Durable commits are missing, so the file is not opened for writing; nothing was changed.
    /// [`Options::accept_lost_commits`](crate::Options::accept_lost_commits) continues without them.
    CommitsLost,
    /// The file is not a Tidalite database.
    NotADatabase,
    /// The file has another format version or needs an unknown feature; a structure does not support the operation; or
    /// the file is on a network file system and not opened exclusively.
    Unsupported,
    /// The second file, which holds large values, is missing or belongs to another database.
    LargeFile,
    /// The operating system reported an error, which [`Error::io_error`](crate::Error::io_error) returns, or the lock
    /// file cannot be used.
    Io,
    /// Writing was requested from a database that was opened read-only, or the operating system denies access to a
    /// file.
    PermissionDenied,
    /// The disk is full, or the file has reached the largest size set by
    /// [`Options::file_bytes`](crate::Options::file_bytes). The transaction is rolled back; the database stays usable.
    Full,
    /// Another process or handle has the file, the lock file or the writer lock. Wait until it releases the lock, or
    /// end it.
    Locked,
    /// The file was replaced, renamed or deleted while it was open. This handle commits nothing more; reads still work.
    Moved,
    /// A reader lost its snapshot: it was evicted, or the transaction whose uncommitted state it read has ended. Begin
    /// a new read.
    Evicted,
    /// An earlier failure ended the transaction or the handle: roll the transaction back; reopen the database after a
    /// failed sync, and after a fork.
    Broken,
    /// The callback that watches an operation has cancelled the operation.
    Cancelled,
}

impl Cause {
    /// Assigns the error to its kind.
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::Store(error) => of_file(error),
            Self::Io(error) => of_io(error.kind()),
            Self::Name { .. } | Self::Pattern { .. } => ErrorKind::InvalidName,
            Self::Schema { .. } | Self::Relation { .. } => ErrorKind::Schema,
            Self::NoSuchSeries { .. } | Self::NoSuchPin { .. } | Self::NoSuchRow { .. } => {
                ErrorKind::NotFound
            }
            Self::TimeTaken { .. } | Self::TableExists { .. } => ErrorKind::AlreadyExists,
            Self::UniqueViolation { .. } => ErrorKind::UniqueViolation,
            Self::NotNullViolation { .. } => ErrorKind::NotNullViolation,
            Self::TransactionBroken { .. } => ErrorKind::Broken,
            Self::OutOfOrder { .. } => ErrorKind::OutOfOrder,
            Self::TableKind { .. }
            | Self::TableTypes { .. }
            | Self::IsTable { .. }
            | Self::WrongType { .. } => ErrorKind::WrongType,
            Self::Timestamp(_)
            | Self::Zone { .. }
            | Self::Figure { .. }
            | Self::Ambiguous { .. }
            | Self::NotEncoded { .. }
            | Self::WeightSum { .. }
            | Self::CapTooSmall { .. } => ErrorKind::InvalidInput,
            Self::CounterOverflow { .. } | Self::Limit { .. } => ErrorKind::Limit,
        }
    }
}

fn of_file(error: &FileError) -> ErrorKind {
    match error {
        FileError::Disk(error) => of_disk(error),
        FileError::FileFull { .. } => ErrorKind::Full,
        FileError::Corrupt(_) => ErrorKind::Damaged,
        FileError::CommitsLost(_) => ErrorKind::CommitsLost,
        FileError::NotADatabase { .. } => ErrorKind::NotADatabase,
        FileError::Unsupported { .. } => ErrorKind::Unsupported,
        FileError::Refused { reason, .. } => of_refusal(*reason),
        FileError::IsTable { .. } => ErrorKind::WrongType,
        FileError::WriterBusy { .. } => ErrorKind::Locked,
        FileError::LargeFile { .. } => ErrorKind::LargeFile,
        FileError::Evicted { .. } | FileError::Ended => ErrorKind::Evicted,
        FileError::ReadOnly => ErrorKind::PermissionDenied,
        FileError::Poisoned { .. } => ErrorKind::Broken,
        FileError::NoSavepoint | FileError::BackupOrder { .. } => ErrorKind::InvalidInput,
        FileError::NoPin { .. } => ErrorKind::NotFound,
        FileError::Cancelled => ErrorKind::Cancelled,
        FileError::Limit { .. } => ErrorKind::Limit,
        _ => ErrorKind::Io,
    }
}

fn of_refusal(reason: Refusal) -> ErrorKind {
    match reason {
        Refusal::NotFound => ErrorKind::NotFound,
        Refusal::AlreadyExists => ErrorKind::AlreadyExists,
        Refusal::InvalidName => ErrorKind::InvalidName,
        Refusal::InvalidInput => ErrorKind::InvalidInput,
        Refusal::WrongType => ErrorKind::WrongType,
    }
}

fn of_disk(error: &DiskError) -> ErrorKind {
    match error {
        DiskError::Open { source, .. } => of_io(source.kind()),
        DiskError::DiskFull { .. } => ErrorKind::Full,
        DiskError::NetworkFileSystem { .. } => ErrorKind::Unsupported,
        DiskError::OpenElsewhere { .. }
        | DiskError::FileReplaced { .. }
        | DiskError::LockRefused { .. } => ErrorKind::Locked,
        DiskError::FileMoved { .. } => ErrorKind::Moved,
        DiskError::Forked => ErrorKind::Broken,
        DiskError::Limit { .. } => ErrorKind::Limit,
        // A system call failed, or the lock file cannot be used.
        _ => ErrorKind::Io,
    }
}

/// Assigns an error of the operating system to a kind.
fn of_io(kind: io::ErrorKind) -> ErrorKind {
    use io::ErrorKind as Io;
    match kind {
        Io::NotFound => ErrorKind::NotFound,
        Io::AlreadyExists => ErrorKind::AlreadyExists,
        Io::PermissionDenied | Io::ReadOnlyFilesystem => ErrorKind::PermissionDenied,
        Io::StorageFull | Io::QuotaExceeded => ErrorKind::Full,
        _ => ErrorKind::Io,
    }
}
