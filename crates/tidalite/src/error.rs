//! What can go wrong, as a user of the library sees it.

use std::fmt;

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong. `Display` says what, where, found and expected, and the next step.
#[non_exhaustive]
#[derive(Debug)]
pub enum Error {
    /// At the file: not a database, damaged, full disk, open elsewhere, read-only, ...
    Store(tidalite_pager::Error),
    /// A series or table name that cannot be.
    Name {
        /// The name as given.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A schema that cannot be, or that differs from the one the series has.
    Schema {
        /// What is wrong with it.
        problem: String,
    },
    /// There is no series with this id or name.
    NoSuchSeries {
        /// What was asked for.
        wanted: String,
    },
    /// A row at a time that has one, in a series that refuses such ([`MergePolicy::Error`](crate::MergePolicy)). Nothing was changed.
    TimeTaken {
        /// The series.
        series: String,
        /// The time, in the series' unit.
        time: i64,
    },
    /// There is no pin of this name.
    NoSuchPin {
        /// What was asked for.
        name: String,
    },
    /// A text that is no timestamp.
    Timestamp {
        /// The text.
        text: String,
        /// What is wrong with it.
        problem: String,
    },
    /// An earlier call in this transaction failed half-way, so it can only be rolled back.
    TransactionBroken {
        /// What failed then.
        first: String,
    },
    /// A key or pair that is not above the last one, where only such can be appended.
    OutOfOrder {
        /// The table.
        table: String,
    },
    /// A change of one value of a key that has several, without saying which.
    Ambiguous {
        /// The table.
        table: String,
        /// How many values the key has.
        values: u64,
    },
    /// A table of multi-values opened as a plain one, or the other way round.
    TableKind {
        /// The table.
        table: String,
        /// True when it has multi-values.
        multi: bool,
    },
    /// A bound of docs/limits.md.
    Limit {
        /// Which bound.
        what: &'static str,
        /// What was asked for.
        found: u64,
        /// The bound.
        limit: u64,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Name { name, problem } => {
                write!(f, "the name `{name}` cannot be used: {problem}")
            }
            Self::Schema { problem } => write!(f, "the schema does not fit: {problem}"),
            Self::NoSuchSeries { wanted } => write!(f, "there is no series {wanted}"),
            Self::TimeTaken { series, time } => write!(
                f,
                "series {series} has a row at {time} already, and its merge policy refuses another"
            ),
            Self::NoSuchPin { name } => {
                write!(f, "there is no pin `{name}`: Database::pins lists them")
            }
            Self::Timestamp { text, problem } => {
                write!(f, "`{text}` is not a timestamp: {problem}")
            }
            Self::TransactionBroken { first } => write!(
                f,
                "the transaction can only be rolled back, because an earlier call failed: {first}"
            ),
            Self::OutOfOrder { table } => write!(
                f,
                "the key is not above the last one of table {table}; put it instead of appending it"
            ),
            Self::Ambiguous { table, values } => write!(
                f,
                "the key has {values} values in table {table}; say which one is meant"
            ),
            Self::TableKind { table, multi: true } => {
                write!(
                    f,
                    "table {table} has several values a key; open it with multi_table"
                )
            }
            Self::TableKind {
                table,
                multi: false,
            } => {
                write!(f, "table {table} has one value a key; open it with table")
            }
            Self::Limit { what, found, limit } => {
                write!(f, "{what}: {found} is beyond the limit of {limit}")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            _ => None,
        }
    }
}

impl From<tidalite_pager::Error> for Error {
    fn from(error: tidalite_pager::Error) -> Self {
        match error {
            // A bound is a bound, whichever layer holds it.
            tidalite_pager::Error::Limit { what, found, limit } => {
                Self::Limit { what, found, limit }
            }
            error => Self::Store(error),
        }
    }
}

impl From<tidalite_base::Corrupt> for Error {
    fn from(corrupt: tidalite_base::Corrupt) -> Self {
        Self::Store(corrupt.into())
    }
}
