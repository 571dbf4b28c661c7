//! Checks pairs against the types recorded with a table: `kv` writes bytes, and the library would later refuse to read
//! bytes that do not match the type.

use super::layouts::other_layout;
use crate::bytes::typeable;
use crate::database::failure;
use crate::exit::{Failure, Outcome};
use std::path::Path;
use tidalite::table::TableTypes;
use tidalite::{Ordered, ReadTxn, TableLayout};

/// The kinds of tables that `kv` reads and changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// One value, or one nested table, for each key.
    Single,
    Sets,
    Buffered,
}

impl Kind {
    /// The kind of a new table.
    pub(super) fn wanted(multi: bool, buffered: bool) -> Self {
        match (multi, buffered) {
            (true, _) => Self::Sets,
            (false, true) => Self::Buffered,
            (false, false) => Self::Single,
        }
    }
}

/// The layout of a table; `Rows` if it does not exist.
pub(super) fn layout_of(snap: &ReadTxn, table: &str) -> tidalite::Result<TableLayout> {
    let types = snap.table_types(table)?;
    Ok(types.map_or(TableLayout::Rows, |types| types.layout()))
}

/// Whether a table is a hash table.
pub(super) fn is_hash_table(snap: &ReadTxn, table: &str) -> tidalite::Result<bool> {
    Ok(layout_of(snap, table)? == TableLayout::Hash)
}

/// The failure for a command that requires a feature that buffered tables do not have.
pub(super) fn buffered_without(table: &str, missing: &str) -> Failure {
    Failure::bad_input(format!(
        "table {table} is a buffered table, which has no {missing}"
    ))
    .hint("use a table that was created without --buffered")
}

/// The failure if a buffered table is wanted, but another kind of table has the name.
pub(super) fn not_buffered(table: &str) -> Failure {
    Failure::bad_input(format!(
        "--buffered: table {table} exists and is not a buffered table"
    ))
    .hint("omit --buffered, or create a buffered table under another name and copy the pairs with dump and load --table")
}

/// Returns an error for a table whose rows must not be changed individually, because they depend on each other: a hash
/// table, topics, a queue, a bucket, containers.
pub(super) fn refuse_other_layouts(snap: &ReadTxn, path: &Path, table: &str) -> Outcome {
    match layout_of(snap, table).map_err(|error| failure(path, &error))? {
        TableLayout::Rows | TableLayout::Buffered => Ok(()),
        other => Err(other_layout(table, other)),
    }
}

/// The encoding of a part of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// A key, or a value of a set.
    Ordered,
    Value,
}

/// Refuses a pair that the table's types cannot read. `raw` is true if the user gave bytes (`--hex`, a file); then
/// bytes of a type that is unknown here are accepted without a check.
pub(super) fn check_pair(
    (table, types): (&str, &TableTypes),
    (key, value): (&[u8], &[u8]),
    is_set: bool,
    raw: bool,
) -> Outcome {
    let value_part = match is_set {
        true => Part::Ordered,
        false => Part::Value,
    };
    check((table, types.key()), ("key", Part::Ordered, key), raw)?;
    check((table, types.value()), ("value", value_part, value), raw)
}

fn check(
    (table, ty): (&str, &str),
    (what, part, bytes): (&str, Part, &[u8]),
    raw: bool,
) -> Outcome {
    let option = match what {
        "key" => "--keys",
        _ => "--values",
    };
    let hint = match ty {
        "u32" | "u64" | "i32" | "i64" => format!("give {option} {ty}"),
        "[u8; 16]" => format!("give {option} guid"),
        _ => "--hex takes the bytes of the type as hexadecimal digits".to_owned(),
    };
    match is_code(ty, part, bytes) {
        Some(true) => Ok(()),
        None if raw => Ok(()),
        None => Err(Failure::bad_input(format!(
            "the {what}s of table {table} are of type {ty}, which cannot be typed here"
        ))
        .hint(hint)),
        Some(false) => Err(Failure::bad_input(format!(
            "the {what}s of table {table} are of type {ty}, and {} ({} bytes) is none",
            typeable(bytes),
            bytes.len()
        ))
        .hint(hint)),
    }
}

/// Whether the bytes are a valid encoding of the type; `None` for types that are not known here.
fn is_code(ty: &str, part: Part, bytes: &[u8]) -> Option<bool> {
    fn of<T: Ordered>(bytes: &[u8]) -> bool {
        T::from_key(bytes).is_some()
    }
    let is_value = part == Part::Value;
    Some(match ty {
        "bytes" => true,
        "()" => bytes.is_empty(),
        "char" => {
            let number = bytes.try_into().map(u32::from_be_bytes);
            number.is_ok_and(|number| char::from_u32(number).is_some())
        }
        "String" if is_value => std::str::from_utf8(bytes).is_ok(),
        "String" => of::<String>(bytes),
        "bool" => of::<bool>(bytes),
        "u8" => of::<u8>(bytes),
        "u16" => of::<u16>(bytes),
        "u32" => of::<u32>(bytes),
        "u64" => of::<u64>(bytes),
        "u128" => of::<u128>(bytes),
        "i8" => of::<i8>(bytes),
        "i16" => of::<i16>(bytes),
        "i32" => of::<i32>(bytes),
        "i64" => of::<i64>(bytes),
        "i128" => of::<i128>(bytes),
        "f32" => of::<f32>(bytes),
        "f64" => of::<f64>(bytes),
        _ => {
            let length = ty.strip_prefix("[u8; ")?.strip_suffix(']')?;
            bytes.len() == length.parse::<usize>().ok()?
        }
    })
}
