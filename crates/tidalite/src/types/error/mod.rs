//! Errors of the library, as users see them.
//!
//! ```text
//! kind     ErrorKind   the kinds that a program can act on
//! cause    Cause       every error with its facts and its text; private to the library
//! ```

pub(crate) mod cause;
pub(crate) mod kind;

use cause::Cause;
use kind::ErrorKind;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use tidalite_base::{Corrupt, TxnId};
use tidalite_pager::{DiskError, Error as FileError, LostCommits};
use tidalite_relations::Conflict;
use tidalite_time::TimestampError;

/// The result of functions that can fail with an [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Every error of the library.
///
/// `Display` writes the problem, its place, the values found and expected, and the next step, as one line for a user. A
/// program decides by [`kind`](Self::kind); the other methods return single facts, where an error has them. `source`
/// returns the error of the operating system, or the [`Corrupt`] of damaged bytes.
///
/// An `io::Error` converts to an error of its kind, so that closures given to this library can return it with `?`. A
/// [`TimestampError`](crate::text::TimestampError) converts to one of kind [`InvalidInput`](ErrorKind::InvalidInput).
///
/// ```
/// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
/// use tidalite::ErrorKind;
///
/// let error = db.begin_read_at("release").err().ok_or("there is such a pin")?;
/// assert_eq!(error.kind(), ErrorKind::NotFound);
/// assert_eq!(error.name(), Some("release"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Error(Arc<Cause>);

impl Error {
    /// Creates an error of kind [`Schema`](ErrorKind::Schema) for a value that does not fit its column. For
    /// implementations of [`Field`](crate::record::Field) and [`Record`](trait@crate::Record).
    #[must_use]
    pub fn schema(problem: impl Into<String>) -> Self {
        let problem = problem.into();
        Cause::Schema { problem }.into()
    }

    /// The kind of the error, by which a program can decide.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind()
    }

    /// The damaged bytes: structure, address, found and expected content. Only errors of kind
    /// [`Damaged`](ErrorKind::Damaged) have them.
    #[must_use]
    pub fn corrupt(&self) -> Option<&Corrupt> {
        match self.cause() {
            Cause::Store(FileError::Corrupt(corrupt)) => Some(corrupt),
            _ => None,
        }
    }

    /// The missing durable commits. Only errors of kind [`CommitsLost`](ErrorKind::CommitsLost) have them.
    #[must_use]
    pub fn lost_commits(&self) -> Option<&LostCommits> {
        match self.cause() {
            Cause::Store(FileError::CommitsLost(lost)) => Some(lost),
            _ => None,
        }
    }

    /// The error of the operating system, if one is the reason.
    #[must_use]
    pub fn io_error(&self) -> Option<&std::io::Error> {
        match self.cause() {
            Cause::Store(FileError::Disk(error)) => error.io_error(),
            Cause::Io(source) => Some(source),
            _ => None,
        }
    }

    /// The failed operation, such as `write of 4096 bytes`, and its byte address in the file, for a system call on an
    /// open file.
    #[must_use]
    pub fn operation(&self) -> Option<(&str, u64)> {
        match self.cause() {
            Cause::Store(FileError::Disk(DiskError::Io { what, at, .. })) => Some((what, *at)),
            _ => None,
        }
    }

    /// The path of the file that the error is about, unless it is the open database itself: a file that cannot be
    /// opened, a lock file, the file of large values.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self.cause() {
            Cause::Store(FileError::Disk(error)) => error.path(),
            Cause::Store(FileError::LargeFile { path, .. }) => Some(path),
            _ => None,
        }
    }

    /// Id of the process that has the file or the writer lock, in the PID namespace of that process; 0 if unknown. Only
    /// errors of kind [`Locked`](ErrorKind::Locked) have it.
    #[must_use]
    pub fn process(&self) -> Option<u32> {
        match self.cause() {
            Cause::Store(
                FileError::Disk(DiskError::FileReplaced { process, .. })
                | FileError::WriterBusy { process, .. },
            ) => Some(*process),
            _ => None,
        }
    }

    /// The series that the error is about: its name, or the id or name that was requested.
    #[must_use]
    pub fn series(&self) -> Option<&str> {
        match self.cause() {
            Cause::TimeTaken { series, .. } => Some(series),
            Cause::NoSuchSeries { wanted } => Some(wanted),
            _ => None,
        }
    }

    /// The time that already has a row, in the unit of the series, if the [`MergePolicy`](crate::MergePolicy) refused a
    /// second one.
    #[must_use]
    pub fn time(&self) -> Option<i64> {
        match self.cause() {
            Cause::TimeTaken { time, .. } => Some(*time),
            _ => None,
        }
    }

    /// The table that the error is about; for a nested table, the outermost table.
    #[must_use]
    pub fn table(&self) -> Option<&str> {
        match self.cause() {
            Cause::OutOfOrder { table }
            | Cause::Ambiguous { table, .. }
            | Cause::TableKind { table, .. }
            | Cause::TableTypes { table, .. }
            | Cause::IsTable { table, .. }
            | Cause::NotEncoded { table, .. }
            | Cause::TableExists { table }
            | Cause::UniqueViolation {
                relation: table, ..
            }
            | Cause::NotNullViolation {
                relation: table, ..
            }
            | Cause::NoSuchRow { relation: table }
            | Cause::Relation {
                relation: table, ..
            }
            | Cause::WrongType { table, .. } => Some(table),
            _ => None,
        }
    }

    /// The primary key or the unique index that a row violates, and the names and values of its columns as text.
    /// [`table`](Self::table) is the relation.
    #[must_use]
    pub fn unique_violation(&self) -> Option<(&Conflict, &str)> {
        match self.cause() {
            Cause::UniqueViolation { conflict, key, .. } => Some((conflict, key)),
            _ => None,
        }
    }

    /// The column that must have a value and got null. [`table`](Self::table) is the relation.
    #[must_use]
    pub fn not_null_violation(&self) -> Option<&str> {
        match self.cause() {
            Cause::NotNullViolation { column, .. } => Some(column),
            _ => None,
        }
    }

    /// The stored and the requested types of a table that was opened with types other than those stored with it, each
    /// as text such as `u64 -> String`, or `plain bytes`.
    #[must_use]
    pub fn table_types(&self) -> Option<(&str, &str)> {
        match self.cause() {
            Cause::TableTypes {
                recorded,
                requested,
                ..
            } => Some((recorded, requested)),
            _ => None,
        }
    }

    /// The key of a row that holds a nested table where a value was requested or was to be put.
    /// [`TableMut::remove`](crate::TableMut::remove) removes such a row with all its content.
    #[must_use]
    pub fn key(&self) -> Option<&[u8]> {
        match self.cause() {
            Cause::IsTable { key, .. } | Cause::Store(FileError::IsTable { key }) => Some(key),
            _ => None,
        }
    }

    /// The position of the problem in an invalid pattern of series, in characters from 0.
    #[must_use]
    pub fn position(&self) -> Option<usize> {
        match self.cause() {
            Cause::Pattern { at, .. } => Some(*at),
            _ => None,
        }
    }

    /// The name or pattern that was refused, or the name that no pin has.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self.cause() {
            Cause::Name { name, .. }
            | Cause::Pattern { pattern: name, .. }
            | Cause::NoSuchPin { name }
            | Cause::Store(FileError::NoPin { name }) => Some(name),
            _ => None,
        }
    }

    /// Number of the commit whose snapshot was evicted. Only errors of kind [`Evicted`](ErrorKind::Evicted) have it.
    #[must_use]
    pub fn txn(&self) -> Option<TxnId> {
        match self.cause() {
            Cause::Store(FileError::Evicted { txn }) => Some(*txn),
            _ => None,
        }
    }

    /// For an exceeded limit of docs/limits.md, the requested number and the limit. For a file that has reached its
    /// maximum size, the bytes to be added and the maximum. For a cap that cannot be met, the smallest size that can be
    /// reached now (approximately) and the cap.
    #[must_use]
    pub fn limit(&self) -> Option<(u64, u64)> {
        match self.cause() {
            Cause::Limit { found, limit, .. } => Some((*found, *limit)),
            Cause::Store(FileError::FileFull {
                needed_bytes,
                bytes_max,
            }) => Some((*needed_bytes, *bytes_max)),
            Cause::CapTooSmall {
                cap_bytes,
                least_bytes,
            } => Some((*least_bytes, *cap_bytes)),
            _ => None,
        }
    }

    /// The content or requirement that was found, and the one that was expected: for a file of another kind or version,
    /// a backup out of order, a key or value of another type, or a call that a structure refused.
    #[must_use]
    pub fn found_and_expected(&self) -> Option<(&str, &str)> {
        match self.cause() {
            Cause::Store(FileError::NotADatabase { found }) => {
                Some((found, "the head of a Tidalite database"))
            }
            Cause::Store(FileError::LargeFile { problem, .. }) => {
                Some((problem, "the second file of this database"))
            }
            Cause::Store(
                FileError::Unsupported { found, expected }
                | FileError::Refused {
                    found, expected, ..
                }
                | FileError::BackupOrder { found, expected },
            ) => Some((found, expected)),
            Cause::WrongType {
                found, expected, ..
            } => Some((found, expected)),
            _ => None,
        }
    }

    /// The same error once more, for a query that returns it from every call.
    pub(crate) fn again(&self) -> Self {
        Self(Arc::clone(&self.0))
    }

    /// The details of the error, for the other modules of this crate.
    pub(crate) fn cause(&self) -> &Cause {
        &self.0
    }

    /// The details of the error, by value; the error itself if a query holds it, too.
    pub(crate) fn into_cause(self) -> Result<Cause, Self> {
        Arc::try_unwrap(self.0).map_err(Self)
    }

    /// The text of the error like `Display`, but for damage without the next step: for a list that the user reads
    /// because of the damage.
    pub(crate) fn finding(&self) -> String {
        match self.cause() {
            Cause::Store(error) => error.to_string(),
            cause => cause.to_string(),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&*self.0, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self.cause() {
            Cause::Store(error) => error.source(),
            Cause::Io(error) => Some(error),
            Cause::NotEncoded { source, .. } => Some(&**source),
            _ => None,
        }
    }
}

impl From<Cause> for Error {
    fn from(cause: Cause) -> Self {
        Self(Arc::new(cause))
    }
}

impl From<FileError> for Error {
    fn from(error: FileError) -> Self {
        match error {
            // An exceeded limit becomes the same error, whichever layer has detected it.
            FileError::Limit { what, found, limit } => Cause::Limit { what, found, limit }.into(),
            error => Cause::Store(error).into(),
        }
    }
}

impl From<Corrupt> for Error {
    fn from(corrupt: Corrupt) -> Self {
        Cause::Store(corrupt.into()).into()
    }
}

impl From<TimestampError> for Error {
    fn from(error: TimestampError) -> Self {
        Cause::Timestamp(error).into()
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Cause::Io(error).into()
    }
}

#[cfg(test)]
mod tests;
