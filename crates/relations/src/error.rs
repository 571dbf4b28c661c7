//! Errors of relations. All errors except `Store` are detected before anything has been changed.

use crate::kind::ColumnType;
use std::fmt;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The rule of uniqueness that a row would violate: the primary key, or a unique index.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Conflict {
    /// Another row has the same primary key.
    PrimaryKey,
    /// Another row has the same values in the columns of the unique index with this name.
    Index(String),
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PrimaryKey => f.write_str("primary key"),
            Self::Index(name) => f.write_str(name),
        }
    }
}

/// An error of a relation.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// An error of the pager.
    Store(tidalite_pager::Error),
    /// Another row has the same key.
    Unique {
        /// The primary key or the unique index.
        conflict: Conflict,
        /// Names and values of the columns of the key, as text.
        key: String,
    },
    /// Null for a column that must have a value.
    NotNull {
        /// Name of the column.
        column: String,
    },
    /// A value that does not fit its column.
    Cell {
        /// Name of the column.
        column: String,
        /// Type of the column.
        kind: ColumnType,
        /// The value, as text.
        found: String,
    },
    /// A row or a key with a wrong number of values.
    Count {
        /// Number of values.
        found: usize,
        /// Number of columns.
        expected: usize,
    },
    /// A schema that cannot be used, or a change of a schema that is not possible.
    Schema {
        /// Description of the problem.
        problem: String,
    },
    /// No row has the given row key.
    NoSuchRow,
}

impl From<tidalite_pager::Error> for Error {
    fn from(error: tidalite_pager::Error) -> Self {
        Self::Store(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Unique { conflict, key } => match conflict {
                Conflict::PrimaryKey => write!(f, "the primary key has {key} already"),
                Conflict::Index(name) => write!(f, "the unique index {name} has {key} already"),
            },
            Self::NotNull { column } => write!(f, "column {column} must not be null"),
            Self::Cell {
                column,
                kind,
                found,
            } => write!(f, "column {column} of type {kind} cannot hold {found}"),
            Self::Count { found, expected } => write!(f, "{found} values for {expected} columns"),
            Self::Schema { problem } => f.write_str(problem),
            Self::NoSuchRow => f.write_str("no row has this row key"),
        }
    }
}

impl std::error::Error for Error {}

/// Creates the error for a schema that cannot be used.
#[cold]
pub(crate) fn unusable<T>(problem: impl Into<String>) -> Result<T> {
    let problem = problem.into();
    Err(Error::Schema { problem })
}

/// Creates the error for bytes of a relation that no writer writes.
#[cold]
pub(crate) fn damaged(
    what: &str,
    found: impl fmt::Display,
    expected: impl fmt::Display,
) -> tidalite_pager::Error {
    tidalite_base::Corrupt::new(what, 0, found, expected).into()
}
