//! Every error of the library: its facts and its text.

use crate::types::text_form::key_text;
use std::fmt;
use tidalite_base::limits;
use tidalite_relations::Conflict;
use tidalite_time::TimestampError;

/// Every error of the library. `Display` writes the problem, its place, found and expected values, and the next step.
#[derive(Debug)]
pub(crate) enum Cause {
    /// An error of the storage file: not a database, damaged, full disk, open elsewhere, read-only, ...
    Store(tidalite_pager::Error),
    /// An error of the operating system that a closure of the user has returned.
    Io(std::io::Error),
    /// An invalid series or table name.
    Name {
        /// The name that the caller gave.
        name: String,
        /// Description of the problem.
        problem: String,
    },
    /// An invalid pattern of series.
    Pattern {
        /// The pattern that the caller gave.
        pattern: String,
        /// Position of the problem in characters from 0.
        at: usize,
        /// Description of the problem.
        problem: String,
        /// The text to write instead; empty if the description names it.
        next: &'static str,
    },
    /// An invalid schema, or one that differs from the series' own.
    Schema {
        /// Description of the problem.
        problem: String,
    },
    /// No series has this id or name.
    NoSuchSeries {
        /// The id or name that the caller requested.
        wanted: String,
    },
    /// The time of a new row already has a row, and the series refuses a second one
    /// ([`MergePolicy::Error`](crate::MergePolicy)). Nothing was changed.
    TimeTaken {
        /// Name, GUID or id of the series.
        series: String,
        /// The time, in the series' unit.
        time: i64,
    },
    /// No pin has this name.
    NoSuchPin {
        /// The name that the caller requested.
        name: String,
    },
    /// A text that is not a timestamp.
    Timestamp(TimestampError),
    /// A figure with an invalid argument.
    Figure {
        /// The problem, and the values to give instead.
        problem: String,
    },
    /// A name without a time zone.
    Zone {
        /// The name.
        name: String,
        /// The problem, and what to write instead.
        problem: String,
    },
    /// An earlier call of this transaction failed half-way; it can only be rolled back.
    TransactionBroken {
        /// Text of the error of that earlier call.
        first: String,
    },
    /// An appended key or pair is not greater than the last one.
    OutOfOrder {
        /// Name of the table.
        table: String,
    },
    /// A change of one value of a key that has several values, without saying which value.
    Ambiguous {
        /// Name of the table.
        table: String,
        /// The number of values of the key.
        values: u64,
    },
    /// A table opened as a table of another kind: of single values, of sets, or a hash table.
    TableKind {
        /// Name of the table.
        table: String,
        /// The kind of the table, as the rest of a sentence.
        is: &'static str,
        /// Name of the method that opens such tables.
        open_with: &'static str,
    },
    /// A table was opened with types other than those stored with it: types with other names; plain bytes for writing;
    /// or types, although the table has entries and no types are stored with it. Nothing was changed.
    TableTypes {
        /// Name of the table.
        table: String,
        /// The types stored with the table, as text, or `plain bytes`.
        recorded: String,
        /// The types that the caller requested, as text, or `plain bytes`.
        requested: String,
    },
    /// A row of a table holds a nested table where a value was requested or was to be put. Nothing was changed; if
    /// there were many pairs, those before this one are stored. [`TableMut::remove`](crate::TableMut::remove) removes a
    /// nested table with all its content.
    IsTable {
        /// Name of the table; for a nested table, name of the outermost table.
        table: String,
        /// The key of the row that holds the nested table.
        key: Vec<u8>,
    },
    /// A key or value of a table does not have the requested type. The file is sound: something else was stored.
    WrongType {
        /// Name of the table; for a nested table, name of the outermost table.
        table: String,
        /// The part of the entry that has the wrong type: "key" or "value".
        part: &'static str,
        /// Name of the Rust type that was requested.
        expected: &'static str,
        /// The bytes that were found, shortened, as text.
        found: String,
    },
    /// A value that its type refuses to encode. It was not stored.
    NotEncoded {
        /// Name of the table; for a nested table, name of the outermost table.
        table: String,
        /// Name of the Rust type of the value.
        ty: &'static str,
        /// The error that encoding the value returned.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The sum of weights exceeds the range of a float ([`SpaceSaving`](crate::functions::SpaceSaving)). Nothing was
    /// changed.
    WeightSum {
        /// The sum of the weights so far.
        total: f64,
        /// The weight that was to be added.
        weight: f64,
    },
    /// A cap for the whole file is smaller than the size that remains when each series keeps only its newest row. No
    /// row was removed for this cap.
    CapTooSmall {
        /// The cap in bytes.
        cap_bytes: u64,
        /// The smallest size in bytes that can be reached now, approximately.
        least_bytes: u64,
    },
    /// A table is to be created under, or renamed to, a name that a table has. Nothing was changed.
    TableExists {
        /// Name of the table.
        table: String,
    },
    /// Another row of a relation has the same key. Nothing was changed.
    UniqueViolation {
        /// Name of the relation.
        relation: String,
        /// The primary key or the unique index.
        conflict: Conflict,
        /// Names and values of the columns of the key.
        key: String,
    },
    /// Null for a column of a relation that must have a value. Nothing was changed.
    NotNullViolation {
        /// Name of the relation.
        relation: String,
        /// Name of the column.
        column: String,
    },
    /// No row of a relation has the row key.
    NoSuchRow {
        /// Name of the relation.
        relation: String,
    },
    /// A row or a change that does not fit the schema of a relation, or a schema that cannot be used. Nothing was
    /// changed.
    Relation {
        /// Name of the relation.
        relation: String,
        /// Description of the problem.
        problem: String,
    },
    /// The result of counting up or down is beyond the type of the counter.
    CounterOverflow {
        /// Name of the type.
        counter: String,
    },
    /// A limit of docs/limits.md was exceeded.
    Limit {
        /// The name of the limit.
        what: &'static str,
        /// The number that was requested.
        found: u64,
        /// The maximum that the limit allows.
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
            Self::Pattern {
                pattern,
                at,
                problem,
                next,
            } => {
                write!(
                    f,
                    "the pattern `{pattern}` cannot be used: {problem} at character {at}"
                )?;
                match pattern.chars().nth(*at) {
                    Some(found) => write!(f, ", found `{found}`")?,
                    None => f.write_str(", the end of the pattern")?,
                }
                if next.is_empty() {
                    return Ok(());
                }
                write!(f, "; {next}")
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
            Self::Timestamp(error) => error.fmt(f),
            Self::Figure { problem } => f.write_str(problem),
            Self::Zone { name, problem } => write!(f, "`{name}`: {problem}"),
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
                is,
                open_with,
            } => write!(f, "table {table} {is}; open it with {open_with}"),
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
            Self::TableExists { table } => write!(
                f,
                "there is a table {table} already: drop it, or choose another name"
            ),
            Self::UniqueViolation {
                relation,
                conflict,
                key,
            } => {
                let rule = match conflict {
                    Conflict::PrimaryKey => "",
                    Conflict::Index(_) => "unique index ",
                };
                write!(
                    f,
                    "another row of {relation} has the same {rule}{conflict} ({key}); update that row, or insert other values"
                )
            }
            Self::NotNullViolation { relation, column } => write!(
                f,
                "column {column} of {relation} must not be null; give a value"
            ),
            Self::NoSuchRow { relation } => write!(
                f,
                "no row of {relation} has this row key; read the row again, it was removed or its primary key was changed"
            ),
            Self::Relation { relation, problem } => write!(f, "relation {relation}: {problem}"),
            Self::CounterOverflow { counter } => {
                write!(
                    f,
                    "the result is beyond the numbers of a counter of type {counter}"
                )
            }
            Self::Limit { what, found, limit } => {
                f.write_str(&limits::exceeded(what, *found, *limit))
            }
        }
    }
}
