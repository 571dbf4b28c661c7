//! The table that a `kv` command refers to: its kind, the forms of its keys and values, and its printed pairs.

use super::key_forms::{bytes_of, json_of, text_of};
use super::kv_types::{Kind, buffered_without, layout_of, refuse_other_layouts};
use crate::args::{KvForm, KvPlace};
use crate::database::{failure, open};
use crate::exit::{Failure, Outcome};
use crate::output::plural;
use crate::terminal::Terminal;
use std::path::Path;
use tidalite::table::BufferedTable;
use tidalite::{ErrorKind, ReadTxn, Table, TableLayout};

impl KvPlace {
    fn key_form(&self) -> KvForm {
        if self.hex { KvForm::Hex } else { self.keys }
    }

    fn value_form(&self) -> KvForm {
        if self.hex { KvForm::Hex } else { self.values }
    }

    pub(super) fn key(&self, text: &str) -> Outcome<Vec<u8>> {
        bytes_of(self.key_form(), text)
    }

    pub(super) fn value(&self, text: &str) -> Outcome<Vec<u8>> {
        bytes_of(self.value_form(), text)
    }

    pub(super) fn key_text(&self, key: &[u8]) -> Outcome<String> {
        text_of(self.key_form(), key)
    }

    pub(super) fn value_text(&self, value: &[u8]) -> Outcome<String> {
        text_of(self.value_form(), value)
    }

    /// The keys on the path to the nested table that the options select.
    pub(super) fn path(&self) -> Outcome<Vec<Vec<u8>>> {
        self.path.iter().map(|key| self.key(key)).collect()
    }

    pub(super) fn fail(&self, error: &tidalite::Error) -> Failure {
        let failure = failure(&self.file.file, error);
        match error.kind() == ErrorKind::WrongType && failure.hint.is_none() {
            true => failure
                .hint("tidalite kv scan prints the table, and with --in the table under a key"),
            false => failure,
        }
    }

    pub(super) fn snapshot(&self) -> Outcome<ReadTxn> {
        let db = open(&self.file.file)?;
        db.begin_read().map_err(|error| self.fail(&error))
    }

    /// Opens the table with one value per key, or the nested table, that the options select.
    pub(super) fn table<'s>(&self, snap: &'s ReadTxn) -> Outcome<Table<'s>> {
        let fail = |error: tidalite::Error| self.fail(&error);
        let table = snap.table(&self.table).map_err(fail)?;
        let path = self.path()?;
        let table = table.map(|table| table.nested_at(&path)).transpose();
        table.map_err(fail)?.flatten().ok_or_else(|| {
            let path = self.path.join(", ");
            Failure::not_found(format!(
                "table {} has no nested table under {path}",
                self.table
            ))
            .hint("tidalite kv scan prints the table")
        })
    }

    /// Opens the buffered table that the options select.
    pub(super) fn buffered_table<'s>(&self, snap: &'s ReadTxn) -> Outcome<BufferedTable<'s>> {
        let table = snap.buffered_table(&self.table);
        let table = table.map_err(|error| self.fail(&error))?;
        table.ok_or_else(|| no_table(&self.file.file, &self.table))
    }

    /// The kind of the table that the options select, which must exist.
    pub(super) fn kind(&self, snap: &ReadTxn) -> Outcome<Kind> {
        let fail = |error: tidalite::Error| self.fail(&error);
        let multi = snap.is_set_table(&self.table).map_err(fail)?;
        if multi == Some(true) && !self.path.is_empty() {
            return Err(Failure::usage("--in: a table of sets has no nested tables"));
        }
        refuse_other_layouts(snap, &self.file.file, &self.table)?;
        let is_buffered = layout_of(snap, &self.table).map_err(fail)? == TableLayout::Buffered;
        if is_buffered && !self.path.is_empty() {
            return Err(buffered_without(&self.table, "nested tables"));
        }
        match multi {
            Some(multi) => Ok(Kind::wanted(multi, is_buffered)),
            None => Err(no_table(&self.file.file, &self.table)),
        }
    }
}

/// The failure for a table that does not exist.
pub(super) fn no_table(path: &Path, table: &str) -> Failure {
    Failure::not_found(format!("there is no table {table}"))
        .hint(format!("tidalite kv stat {} lists them", path.display()))
}

/// The content of a key: a value, or a nested table with a number of pairs.
pub(super) enum Held<'a> {
    Value(&'a [u8]),
    Table(u64),
}

/// Prints pairs as lines of text or as JSON.
pub(super) struct Pairs<'a> {
    pub place: &'a KvPlace,
    pub json: bool,
}

impl Pairs<'_> {
    pub(super) fn pair(&self, key: &[u8], held: &Held<'_>, terminal: &mut Terminal<'_>) -> Outcome {
        let place = self.place;
        let key_text = place.key_text(key)?;
        if self.json {
            let key = json_of(place.key_form(), key_text);
            let pair = match held {
                Held::Value(value) => {
                    let value = json_of(place.value_form(), place.value_text(value)?);
                    serde_json::json!({"key": key, "value": value})
                }
                Held::Table(pairs) => serde_json::json!({"key": key, "pairs": pairs}),
            };
            return Ok(writeln!(terminal.out, "{pair}")?);
        }
        let value = match held {
            Held::Value(value) => place.value_text(value)?,
            Held::Table(pairs) => format!("({})", plural(*pairs, "pair", "pairs")),
        };
        Ok(writeln!(terminal.out, "{key_text}\t{value}")?)
    }
}
