//! Errors, as a user of the library sees them.

use crate::types::text_form::key_text;
use std::fmt;

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Every error of the library. `Display` gives the problem, its place, found and expected values, and the next step.
#[non_exhaustive]
#[derive(Debug)]
pub enum Error {
    /// The storage file: not a database, damaged, full disk, open elsewhere, read-only, ...
    Store(tidalite_pager::Error),
    /// An invalid series or table name.
    Name {
        /// The name as given.
        name: String,
        /// The problem.
        problem: String,
    },
    /// An invalid schema, or one that differs from the series' own.
    Schema {
        /// The problem.
        problem: String,
    },
    /// No series has this id or name.
    NoSuchSeries {
        /// The id or name that was requested.
        wanted: String,
    },
    /// A row at an occupied time, in a series that refuses such rows ([`MergePolicy::Error`](crate::MergePolicy)).
    /// Nothing was changed.
    TimeTaken {
        /// The series.
        series: String,
        /// The time, in the series' unit.
        time: i64,
    },
    /// No pin has this name.
    NoSuchPin {
        /// The requested name.
        name: String,
    },
    /// A text that is not a timestamp.
    Timestamp {
        /// The text.
        text: String,
        /// The problem.
        problem: String,
    },
    /// An earlier call of this transaction failed half-way; it can only be rolled back.
    TransactionBroken {
        /// The error of that call.
        first: String,
    },
    /// An appended key or pair that is not above the last one.
    OutOfOrder {
        /// The table.
        table: String,
    },
    /// A change of one value of a key that has several, without naming the value.
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
        /// True if the table has multi-values.
        multi: bool,
    },
    /// A row of a table holds a nested table where a value was requested, or was to be put. Nothing was changed, except
    /// that of many pairs those before this one are stored. [`TableMut::remove`](crate::TableMut::remove) removes a
    /// nested table with all its content.
    IsTable {
        /// The table, or the outermost table that it is nested in, at any depth.
        table: String,
        /// The key of the row.
        key: Vec<u8>,
    },
    /// A key or value of a table does not have the requested type. The file is sound: something else was stored.
    WrongType {
        /// The table, or the outermost table that it is nested in, at any depth.
        table: String,
        /// Key or value.
        part: &'static str,
        /// The requested type.
        expected: &'static str,
        /// The bytes found, shortened.
        found: String,
    },
    /// Weights whose sum exceeds the range of a float ([`SpaceSaving`](crate::SpaceSaving)). Nothing was changed.
    WeightSum {
        /// The sum so far.
        total: f64,
        /// The weight to be added.
        weight: f64,
    },
    /// A cap for the whole file is below the size that remains when each series keeps only its newest row. No row was
    /// removed for it.
    CapTooSmall {
        /// The cap.
        cap_bytes: u64,
        /// The smallest size that can be reached now, approximately.
        least_bytes: u64,
    },
    /// A limit of docs/limits.md was exceeded.
    Limit {
        /// Which limit.
        what: &'static str,
        /// The requested amount.
        found: u64,
        /// The limit.
        limit: u64,
    },
}

impl Error {
    /// Like `Display`, without the next step after damage: one line of a list, for a reader already handling the
    /// damage.
    pub(crate) fn finding(&self) -> String {
        match self {
            Self::Store(error) => error.to_string(),
            error => error.to_string(),
        }
    }
}

impl Error {
    /// The error of a query once more, for each call that answers it.
    pub(crate) fn again(&self) -> Self {
        match self {
            Self::Timestamp { text, problem } => Self::Timestamp {
                text: text.clone(),
                problem: problem.clone(),
            },
            Self::Schema { problem } => Self::Schema {
                problem: problem.clone(),
            },
            other => Self::Schema {
                problem: other.to_string(),
            },
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error @ tidalite_pager::Error::Corrupt(_)) => write!(
                f,
                "{error}; `check` lists all damage, then restore a backup or save what is intact with `salvage`"
            ),
            Self::Store(error) => error.fmt(f),
            Self::Name { name, problem } => {
                write!(f, "the name `{name}` cannot be used: {problem}")
            }
            Self::Schema { problem } => write!(f, "the schema does not fit: {problem}"),
            Self::NoSuchSeries { wanted } => write!(
                f,
                "there is no series {wanted}: ReadTxn::list tells which there are"
            ),
            Self::TimeTaken { series, time } => write!(
                f,
                "series {series} has a row at {time} already, and its merge policy refuses another: leave the row out, delete the one that is there, or set another policy"
            ),
            Self::NoSuchPin { name } => {
                write!(f, "there is no pin `{name}`: Database::pins lists them")
            }
            Self::Timestamp { text, problem } => {
                write!(
                    f,
                    "`{text}` is not a timestamp: {problem}; write it as 2014-06-01 or 2014-06-01T12:00:00Z"
                )
            }
            Self::TransactionBroken { first } => write!(
                f,
                "the transaction can only be rolled back, because an earlier call failed: {first}; drop it and begin another"
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
            Self::IsTable { table, key } => write!(
                f,
                "the key {} of table {table} holds a nested table, not a value: open it with `nested`, or take it out with all that is in it with `remove`",
                key_text(key)
            ),
            Self::WrongType {
                table,
                part,
                expected,
                found,
            } => {
                write!(
                    f,
                    "a {part} of table {table} is no {expected}: {found}; read the table as the types that were stored in it, or its bytes"
                )
            }
            Self::WeightSum { total, weight } => write!(
                f,
                "weights of {total:e} and {weight:e} add up to more than a float can hold: scale them down"
            ),
            Self::CapTooSmall {
                cap_bytes,
                least_bytes,
            } => write!(
                f,
                "a cap of {cap_bytes} bytes cannot be kept to: without any row but the newest of each series {least_bytes} bytes are in use; raise the cap above that, or remove tables or whole series"
            ),
            // Below the minimum: `what` gives the minimum.
            Self::Limit { what, found, limit } if found < limit => {
                write!(f, "{what}: {found} is too little, at most {limit} can be")
            }
            Self::Limit { what, found, limit } => {
                write!(
                    f,
                    "{what}: {found} is beyond the limit of {limit}; docs/limits.md lists them all"
                )
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
            // The same error for a limit, whichever layer enforces it.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A word of the next step in the text of each error.
    #[test]
    fn each_says_what_and_what_to_do_next() {
        let text = || "this".to_owned();
        let damage = tidalite_base::Corrupt::new("page", 4096, 1, 2);
        let name = Error::Name {
            name: text(),
            problem: "too long, 255 bytes at most".to_owned(),
        };
        let taken = Error::TimeTaken {
            series: text(),
            time: 5,
        };
        let timestamp = Error::Timestamp {
            text: text(),
            problem: text(),
        };
        let kind = |multi| Error::TableKind {
            table: text(),
            multi,
        };
        let is_table = Error::IsTable {
            table: text(),
            key: b"k".to_vec(),
        };
        let ambiguous = Error::Ambiguous {
            table: text(),
            values: 3,
        };
        let wrong = |table: &str| Error::WrongType {
            table: table.to_owned(),
            part: "value",
            expected: "f64",
            found: "2 bytes, \"80\"".to_owned(),
        };
        let limit = Error::Limit {
            what: "bytes",
            found: 6,
            limit: 5,
        };
        for (error, parts) in [
            (
                damage.into(),
                ["page at byte 4096: found 1, expected 2", "`check`"],
            ),
            (name, ["`this`", "255 bytes at most"]),
            (Error::Schema { problem: text() }, ["schema", "this"]),
            (Error::NoSuchSeries { wanted: text() }, ["this", "list"]),
            (taken, ["this has a row at 5", "leave the row out"]),
            (
                Error::NoSuchPin { name: text() },
                ["`this`", "Database::pins"],
            ),
            (timestamp, ["`this`", "write it as"]),
            (
                Error::TransactionBroken { first: text() },
                ["this", "begin another"],
            ),
            (
                Error::OutOfOrder { table: text() },
                ["this", "put it instead"],
            ),
            (ambiguous, ["3 values", "say which"]),
            (kind(true), ["several values", "multi_table"]),
            (kind(false), ["one value", "open it with table"]),
            (is_table, ["key \"k\" of table this", "`remove`"]),
            (
                wrong("config"),
                ["a value of table config is no f64: 2 bytes", "or its bytes"],
            ),
            (
                Error::CapTooSmall {
                    cap_bytes: 5,
                    least_bytes: 6,
                },
                ["a cap of 5 bytes", "raise the cap"],
            ),
            (limit, ["bytes: 6", "limit of 5; docs/limits.md"]),
        ] {
            let told = error.to_string();
            for part in parts {
                assert!(told.contains(part), "`{told}` does not say `{part}`");
            }
        }
    }
}
