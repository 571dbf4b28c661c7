//! The hash table that a command refers to: its types, the forms of its keys and values, and its errors.

use crate::args::{HashPlace, KvForm};
use crate::commands::key_forms::{bytes_of, form_of};
use crate::commands::layouts::{advice, layout_if_any};
use crate::database::failure;
use crate::exit::{Failure, Outcome};
use std::path::Path;
use tidalite::hash_table::{HashTable, KeyForm};
use tidalite::table::TableTypes;
use tidalite::{ErrorKind, ReadTxn, TableLayout};

/// The forms in which keys and values are typed and printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Forms {
    pub key: KvForm,
    pub value: KvForm,
}

impl Forms {
    /// The forms that the user has given, otherwise the forms for the table's types. The default is text: for a new
    /// table, and for types that are not known here.
    pub(super) fn of(place: &HashPlace, types: Option<&TableTypes>) -> Self {
        if place.hex {
            let form = KvForm::Hex;
            return Self {
                key: form,
                value: form,
            };
        }
        let key = types.and_then(|types| form_of(types.key(), true));
        let value = types.and_then(|types| form_of(types.value(), false));
        Self {
            key: place.keys.or(key).unwrap_or_default(),
            value: place.values.or(value).unwrap_or_default(),
        }
    }

    pub(super) fn key(self, text: &str) -> Outcome<Vec<u8>> {
        bytes_of(self.key, text)
    }

    pub(super) fn value(self, text: &str) -> Outcome<Vec<u8>> {
        bytes_of(self.value, text)
    }
}

/// Converts an error of a call on a hash table to a failure with advice for the user.
pub(super) fn hash_failure(path: &Path, table: &str, error: &tidalite::Error) -> Failure {
    let shows = format!("tidalite hash stat {} {table}", path.display());
    match error.kind() {
        ErrorKind::Limit => Failure::bad_input(error).hint(format!(
            "`{shows}` shows the longest key; a table that is created with --index hashed takes long keys"
        )),
        ErrorKind::InvalidInput | ErrorKind::WrongType if error.found_and_expected().is_some() => {
            Failure::bad_input(error).hint(format!("`{shows}` shows the options of the table"))
        }
        _ => failure(path, error),
    }
}

/// The failure for a table that does not exist.
pub(super) fn no_table(path: &Path, table: &str) -> Failure {
    Failure::not_found(format!("there is no table {table}")).hint(format!(
        "tidalite hash stat {} lists the hash tables",
        path.display()
    ))
}

/// The failure for a key that does not exist.
pub(super) fn absent(key: &str) -> Failure {
    Failure::not_found(format!("there is no key {key}")).hint("tidalite hash scan prints the table")
}

/// The types of a hash table; `None` if no table has this name. Returns an error for another kind of table.
pub(super) fn types_if_any(
    snap: &ReadTxn,
    path: &Path,
    table: &str,
) -> Outcome<Option<TableTypes>> {
    let fail = |error: tidalite::Error| failure(path, &error);
    let hint = match layout_if_any(snap, table).map_err(fail)? {
        None => return Ok(None),
        Some(TableLayout::Hash) => return snap.table_types(table).map_err(fail),
        Some(TableLayout::Rows | TableLayout::Buffered) => {
            format!("`tidalite kv scan {} {table}` prints it", path.display())
        }
        Some(layout) => advice(layout).to_owned(),
    };
    Err(Failure::bad_input(format!("table {table} is not a hash table")).hint(hint))
}

/// A hash table in a snapshot, as bytes.
pub(super) struct Opened<'s> {
    pub types: TableTypes,
    pub table: HashTable<'s>,
}

impl<'s> Opened<'s> {
    /// Opens a hash table, which must exist.
    pub(super) fn of(snap: &'s ReadTxn, path: &Path, table: &str) -> Outcome<Self> {
        let fail = |error: tidalite::Error| hash_failure(path, table, &error);
        let missing = || no_table(path, table);
        let types = types_if_any(snap, path, table)?.ok_or_else(missing)?;
        let opened = snap.hash_table(table).map_err(fail)?;
        Ok(Self {
            types,
            table: opened.ok_or_else(missing)?,
        })
    }

    /// Whether the index contains whole keys, in order.
    pub(super) fn is_ordered(&self) -> bool {
        matches!(self.table.options().key, KeyForm::Whole { .. })
    }
}
