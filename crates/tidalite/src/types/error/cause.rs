//! Every error of the library with its facts, and its text.

use crate::types::text_form::key_text;
use std::fmt;
use tidalite_base::limits;

/// Every error of the library. `Display` gives the problem, its place, found and expected values, and the next step.
#[derive(Debug)]
pub(crate) enum Cause {
    /// An error of the storage file: not a database, damaged, full disk, open elsewhere, read-only, ...
    Store(tidalite_pager::Error),
    /// An error of the operating system, from a closure of the user.
    Io(std::io::Error),
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
        /// The number of values of the key.
        values: u64,
    },
    /// A table of sets opened as a table of single values, or the other way round.
    TableKind {
        /// The table.
        table: String,
        /// True if the keys of the table have sets of values.
        has_sets: bool,
    },
    /// A table opened with types other than the recorded ones: with other names; as plain bytes for writing; or with
    /// types, although it has entries and was not opened with types before. Nothing was changed.
    TableTypes {
        /// The table.
        table: String,
        /// The recorded types, or plain bytes.
        recorded: String,
        /// The requested types, or plain bytes.
        requested: String,
    },
    /// A row of a table holds a nested table where a value was requested or was to be put. Nothing was changed, except
    /// that the pairs before this one are stored if there were many. [`TableMut::remove`](crate::TableMut::remove)
    /// removes a nested table with all its content.
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
        /// The part that has the wrong type: key or value.
        part: &'static str,
        /// The requested type.
        expected: &'static str,
        /// The bytes found, shortened.
        found: String,
    },
    /// A value that its type refuses to encode. It was not stored.
    NotEncoded {
        /// The table, or the outermost table that it is nested in, at any depth.
        table: String,
        /// The type of the value.
        ty: &'static str,
        /// The problem.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Weights whose sum exceeds the range of a float ([`SpaceSaving`](crate::functions::SpaceSaving)). Nothing was
    /// changed.
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
        /// The name of the limit.
        what: &'static str,
        /// The requested amount.
        found: u64,
        /// The limit.
        limit: u64,
    },
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error @ tidalite_pager::Error::Corrupt(_)) => write!(
                f,
                "{error}; `check` lists all damage, then restore a backup or save what is intact with `salvage`"
            ),
            Self::Store(error) => error.fmt(f),
            Self::Io(error) => error.fmt(f),
            Self::Name { name, problem } => {
                write!(f, "the name `{name}` cannot be used: {problem}")
            }
            Self::Schema { problem } => write!(f, "the schema does not fit: {problem}"),
            Self::NoSuchSeries { wanted } => write!(
                f,
                "there is no series {wanted}: ReadTxn::list lists the existing ones"
            ),
            Self::TimeTaken { series, time } => write!(
                f,
                "series {series} already has a row at {time}, and its merge policy refuses another: skip the row, delete the existing one, or set another policy"
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
                "the transaction can only be rolled back, because an earlier call failed: {first}; drop it and begin a new one"
            ),
            Self::OutOfOrder { table } => write!(
                f,
                "the key is not greater than the last key of table {table}; use put instead of append"
            ),
            Self::Ambiguous { table, values } => write!(
                f,
                "the key has {values} values in table {table}; name one of them"
            ),
            Self::TableKind {
                table,
                has_sets: true,
            } => {
                write!(
                    f,
                    "table {table} has several values per key; open it with set_table"
                )
            }
            Self::TableKind {
                table,
                has_sets: false,
            } => {
                write!(f, "table {table} has one value per key; open it with table")
            }
            Self::TableTypes {
                table,
                recorded,
                requested,
            } => write!(
                f,
                "table {table} holds {recorded}, not {requested}; open it with its own types, as bytes with `raw_table`, or give it others with `retype_table`"
            ),
            Self::IsTable { table, key } => write!(
                f,
                "the key {} of table {table} holds a nested table, not a value: open it with `nested`, or remove it and its content with `remove`",
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
                    "a {part} of table {table} is not of type {expected}: {found}; read the table with the types that were stored in it, or as bytes"
                )
            }
            Self::NotEncoded { table, ty, source } => write!(
                f,
                "a value of type {ty} for table {table} cannot be encoded: {source}; it was not stored"
            ),
            Self::WeightSum { total, weight } => write!(
                f,
                "the sum of the weights {total:e} and {weight:e} exceeds the range of floats: scale the weights down"
            ),
            Self::CapTooSmall {
                cap_bytes,
                least_bytes,
            } => write!(
                f,
                "a cap of {cap_bytes} bytes cannot be met: with only the newest row of each series {least_bytes} bytes are in use; raise the cap above that, or remove tables or whole series"
            ),
            Self::Limit { what, found, limit } => {
                f.write_str(&limits::exceeded(what, *found, *limit))
            }
        }
    }
}
