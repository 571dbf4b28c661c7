//! `kv`: commands for tables.

use super::key_forms::{bytes_of, json_of, text_of};
use super::kv_types::{check_pair, is_hash_table, refuse_hash_table};
use crate::args::{KvArgs, KvCommand, KvForm, KvPlace};
use crate::database::{failure, open, open_or_create, open_to_write};
use crate::exit::{Failure, Outcome};
use crate::output::{plural, printable};
use crate::store;
use crate::terminal::Terminal;
use std::io::Read;
use std::path::Path;
use tidalite::{ErrorKind, ReadTxn, Table, WriteTxn};

/// Runs the command `tidalite kv`.
pub(crate) fn run(args: &KvArgs, terminal: &mut Terminal<'_>) -> Outcome {
    match &args.command {
        KvCommand::Get {
            place,
            key,
            raw,
            format,
        } => {
            let form = match (raw, format.is_json()) {
                (true, _) => Print::Raw,
                (_, true) => Print::Json,
                (_, false) => Print::Text,
            };
            get(place, key, form, terminal)
        }
        KvCommand::Put {
            place,
            key,
            value,
            value_file,
            new,
            multi,
            ..
        } => {
            let raw = place.hex || value_file.is_some() || value.as_deref() == Some("-");
            let value = given(place, value.as_deref(), value_file.as_deref())?;
            put(place, (key, &value, raw), *new, *multi)?;
            told(&format!("{key} stored in {}", place.table), terminal)
        }
        KvCommand::Del {
            place,
            key,
            value,
            all,
            ..
        } => {
            let values = del(place, key, value.as_deref(), *all)?;
            let what = match values {
                0 | 1 => key.clone(),
                values => format!("{} of {key}", plural(values, "value", "values")),
            };
            told(&format!("{what} removed from {}", place.table), terminal)
        }
        KvCommand::Scan {
            place,
            from,
            to,
            limit,
            reverse,
            value,
            value_from,
            value_to,
            format,
        } => {
            let value_of = |text: &Option<String>| {
                let text = text.as_deref();
                text.map(|text| place.value(text)).transpose()
            };
            let bounds = Bounds {
                value: value_of(value)?,
                value_from: value_of(value_from)?,
                value_to: value_of(value_to)?,
                from: from.as_deref().map(|text| place.key(text)).transpose()?,
                to: to.as_deref().map(|text| place.key(text)).transpose()?,
                limit: *limit,
                reverse: *reverse,
            };
            let pairs = Pairs {
                place,
                json: format.is_json(),
            };
            scan(&pairs, &bounds, terminal)
        }
        KvCommand::Clear { place, .. } => {
            clear(place)?;
            let path = place.path.iter().map(|key| format!(" under {key}"));
            let path: String = path.collect();
            told(&format!("table {}{path} cleared", place.table), terminal)
        }
        KvCommand::Create {
            file, table, multi, ..
        } => {
            let done = match create(&file.file, table, *multi)? {
                true => "created",
                false => "exists already",
            };
            told(&format!("table {table} {done}"), terminal)
        }
        KvCommand::Drop { file, table, .. } => {
            change(&file.file, table, |tx| tx.drop_table(table))?;
            told(&format!("table {table} dropped"), terminal)
        }
        KvCommand::Rename {
            file, table, name, ..
        } => {
            change(&file.file, table, |tx| tx.rename_table(table, name))?;
            told(&format!("{table} is called {name} now"), terminal)
        }
        KvCommand::Stat(args) => super::kv_stat::run(args, terminal),
    }
}

/// Prints one line that confirms a change.
fn told(what: &str, terminal: &mut Terminal<'_>) -> Outcome {
    writeln!(terminal.out, "{}", printable(what))?;
    Ok(terminal.out.flush()?)
}

impl KvPlace {
    fn key_form(&self) -> KvForm {
        if self.hex { KvForm::Hex } else { self.keys }
    }

    fn value_form(&self) -> KvForm {
        if self.hex { KvForm::Hex } else { self.values }
    }

    fn key(&self, text: &str) -> Outcome<Vec<u8>> {
        bytes_of(self.key_form(), text)
    }

    fn value(&self, text: &str) -> Outcome<Vec<u8>> {
        bytes_of(self.value_form(), text)
    }

    fn key_text(&self, key: &[u8]) -> Outcome<String> {
        text_of(self.key_form(), key)
    }

    fn value_text(&self, value: &[u8]) -> Outcome<String> {
        text_of(self.value_form(), value)
    }

    /// The keys that lead to the nested table that the options select.
    fn path(&self) -> Outcome<Vec<Vec<u8>>> {
        self.path.iter().map(|key| self.key(key)).collect()
    }

    fn fail(&self, error: &tidalite::Error) -> Failure {
        failure(&self.file.file, error)
    }

    fn snapshot(&self) -> Outcome<ReadTxn> {
        let db = open(&self.file.file)?;
        db.begin_read().map_err(|error| self.fail(&error))
    }

    /// Opens the table with one value per key, or the nested table, that the options select.
    fn table<'s>(&self, snap: &'s ReadTxn) -> Outcome<Table<'s>> {
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

    fn is_multi(&self, snap: &ReadTxn) -> Outcome<bool> {
        let multi = snap.is_set_table(&self.table);
        let multi = multi.map_err(|error| self.fail(&error))?;
        if multi == Some(true) && !self.path.is_empty() {
            return Err(Failure::usage("--in: a table of sets has no nested tables"));
        }
        refuse_hash_table(snap, &self.file.file, &self.table)?;
        multi.ok_or_else(|| {
            Failure::not_found(format!("there is no table {}", self.table)).hint(format!(
                "tidalite kv stat {} lists them",
                self.file.file.display()
            ))
        })
    }
}

/// Opens the database and runs `work`, which changes a whole table and returns whether the table exists.
fn change(
    path: &Path,
    table: &str,
    work: impl FnOnce(&mut WriteTxn) -> tidalite::Result<bool>,
) -> Outcome {
    let fail = |error: tidalite::Error| failure(path, &error);
    let db = open_to_write(path)?;
    let mut tx = db.begin_write().map_err(fail)?;
    if !work(&mut tx).map_err(fail)? {
        let failure = Failure::not_found(format!("there is no table {table}"));
        return Err(failure.hint(format!("tidalite kv stat {} lists them", path.display())));
    }
    store::commit(tx).map_err(fail)?;
    store::close(db).map_err(fail)
}

fn absent(key: &str) -> Failure {
    Failure::not_found(format!("there is no key {key}")).hint("tidalite kv scan prints the table")
}

/// The ways in which `kv get` prints a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Print {
    Text,
    Json,
    /// The bytes alone.
    Raw,
}

/// Prints a value for `kv get`.
fn print(
    place: &KvPlace,
    (key, value): (&[u8], &[u8]),
    form: Print,
    terminal: &mut Terminal<'_>,
) -> Outcome {
    match form {
        Print::Raw => terminal.out.write_all(value)?,
        Print::Text => writeln!(terminal.out, "{}", place.value_text(value)?)?,
        Print::Json => Pairs { place, json: true }.pair(key, &Held::Value(value), terminal)?,
    }
    Ok(())
}

/// The content of a key: a value, or a nested table with this number of pairs.
enum Held<'a> {
    Value(&'a [u8]),
    Table(u64),
}

/// Prints pairs as lines of text or as JSON.
struct Pairs<'a> {
    place: &'a KvPlace,
    json: bool,
}

impl Pairs<'_> {
    fn pair(&self, key: &[u8], held: &Held<'_>, terminal: &mut Terminal<'_>) -> Outcome {
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

fn get(place: &KvPlace, key: &str, form: Print, terminal: &mut Terminal<'_>) -> Outcome {
    let (snap, bytes) = (place.snapshot()?, place.key(key)?);
    let fail = |error: tidalite::Error| place.fail(&error);
    if place.is_multi(&snap)? {
        let Some(table) = snap.set_table(&place.table).map_err(fail)? else {
            return Err(absent(key));
        };
        let mut cursor = table.cursor();
        let mut found = cursor.seek_key(&bytes).map_err(fail)?;
        if !found {
            return Err(absent(key));
        }
        if form == Print::Raw && cursor.count() > 1 {
            let several = format!(
                "{key} has {} values, but --raw prints only one",
                cursor.count()
            );
            return Err(
                Failure::usage(several).hint("without --raw each value is printed on a line")
            );
        }
        while found {
            print(place, (&bytes, cursor.value()), form, terminal)?;
            found = cursor.next_value().map_err(fail)?;
        }
        return Ok(terminal.out.flush()?);
    }
    let table = place.table(&snap)?;
    let mut cursor = table.cursor();
    if cursor.seek(&bytes).map_err(fail)? && cursor.is_nested() {
        return Err(Failure::bad_input(format!("{key} holds a table"))
            .hint(format!("tidalite kv scan ... --in {key} prints it")));
    }
    let value = table.get(&bytes).map_err(fail)?;
    let Some(value) = value else {
        let types = snap.table_types(&place.table).map_err(fail)?;
        return Err(match types.filter(|types| place.path.is_empty() && types.key() != "bytes") {
            Some(types) => absent(key).hint(format!(
                "the keys of this table are of type {}: --keys u64 and the like read numbers, --hex bytes",
                types.key()
            )),
            None => absent(key),
        });
    };
    print(place, (&bytes, &value), form, terminal)?;
    Ok(terminal.out.flush()?)
}

/// Reads the value for `kv put`: typed, or from standard input or a file.
fn given(place: &KvPlace, value: Option<&str>, file: Option<&Path>) -> Outcome<Vec<u8>> {
    match (value, file) {
        (_, Some(file)) => {
            std::fs::read(file).map_err(|error| Failure::file("cannot read", file, &error))
        }
        (Some("-"), None) => {
            let mut bytes = Vec::new();
            let read = std::io::stdin().lock().read_to_end(&mut bytes);
            read.map_err(|error| Failure::bad_input(format!("reading failed: {error}")))?;
            Ok(bytes)
        }
        (Some(value), None) => place.value(value),
        (None, None) => Err(Failure::usage("a value, or --file")),
    }
}

fn clear(place: &KvPlace) -> Outcome {
    let fail = |error: tidalite::Error| place.fail(&error);
    let db = open_to_write(&place.file.file)?;
    let snap = db.begin_read().map_err(fail)?;
    if place.path.is_empty() && is_hash_table(&snap, &place.table).map_err(fail)? {
        drop(snap);
        let mut tx = db.begin_write().map_err(fail)?;
        if let Some(mut table) = tx.raw_hash_table(&place.table).map_err(fail)? {
            table.clear().map_err(fail)?;
        }
        store::commit(tx).map_err(fail)?;
        return store::close(db).map_err(fail);
    }
    let multi = {
        let multi = place.is_multi(&snap)?;
        if !multi {
            // This returns an error if the table does not exist.
            place.table(&snap)?;
        }
        multi
    };
    drop(snap);
    let mut tx = db.begin_write().map_err(fail)?;
    if multi {
        let mut table = tx.raw_set_table(&place.table).map_err(fail)?;
        table.clear().map_err(fail)?;
    } else {
        let mut table = tx.raw_table(&place.table).map_err(fail)?;
        let mut table = table.nested_at(&place.path()?);
        table.clear().map_err(fail)?;
    }
    store::commit(tx).map_err(fail)?;
    store::close(db).map_err(fail)
}

/// Creates a table; returns whether it is new.
fn create(path: &Path, table: &str, multi: bool) -> Outcome<bool> {
    let fail = |error: tidalite::Error| failure(path, &error);
    let db = open_or_create(path)?;
    let snap = db.begin_read().map_err(fail)?;
    let is_new = snap.is_set_table(table).map_err(fail)?.is_none();
    refuse_hash_table(&snap, path, table)?;
    drop(snap);
    let mut tx = db.begin_write().map_err(fail)?;
    match multi {
        true => tx.raw_set_table(table).map(drop).map_err(fail)?,
        false => tx.raw_table(table).map(drop).map_err(fail)?,
    }
    store::commit(tx).map_err(fail)?;
    store::close(db).map_err(fail)?;
    Ok(is_new)
}

/// Stores a pair. `raw`: the value was given as bytes.
fn put(
    place: &KvPlace,
    (key, value, raw): (&str, &[u8], bool),
    new: bool,
    make_multi: bool,
) -> Outcome {
    let key_bytes = place.key(key)?;
    let db = open_or_create(&place.file.file)?;
    let fail = |error: tidalite::Error| place.fail(&error);
    let multi = {
        let snap = db.begin_read().map_err(fail)?;
        match snap.is_set_table(&place.table).map_err(fail)? {
            Some(_) => place.is_multi(&snap)?,
            None => make_multi,
        }
    };
    let snap = db.begin_read().map_err(fail)?;
    // Types are recorded for the outermost table only.
    if place.path.is_empty()
        && let Some(types) = snap.table_types(&place.table).map_err(fail)?
    {
        let pair = (&key_bytes[..], value);
        check_pair((&place.table, &types), pair, multi || make_multi, raw)?;
    }
    drop(snap);
    let mut tx = db.begin_write().map_err(fail)?;
    let stored = if multi || make_multi {
        // This returns an error if the table has single values and not sets.
        let mut table = tx.raw_set_table(&place.table).map_err(fail)?;
        table.put(&key_bytes, value).map_err(fail)?
    } else {
        let mut table = tx.raw_table(&place.table).map_err(fail)?;
        let mut table = table.nested_at(&place.path()?);
        if holds_a_table(&table, &key_bytes).map_err(fail)? {
            return Err(Failure::bad_input(format!("{key} holds a table"))
                .hint("tidalite kv del removes it and its content; --in stores into it"));
        }
        if new {
            table.insert(&key_bytes, value).map_err(fail)?
        } else {
            table.put(&key_bytes, value).map_err(fail)?;
            true
        }
    };
    if new && !stored {
        return Err(Failure::bad_input(format!("{key} exists already"))
            .hint("without --new the value is replaced"));
    }
    store::commit(tx).map_err(fail)?;
    store::close(db).map_err(fail)
}

fn holds_a_table(table: &tidalite::TableMut<'_>, key: &[u8]) -> tidalite::Result<bool> {
    let Some(view) = table.try_view()? else {
        return Ok(false);
    };
    let mut cursor = view.cursor();
    Ok(cursor.seek(key)? && cursor.is_nested())
}

/// Removes a pair, or all pairs of a key; returns the number of values removed.
fn del(place: &KvPlace, key: &str, value: Option<&str>, all: bool) -> Outcome<u64> {
    let bytes = place.key(key)?;
    let multi = place.is_multi(&place.snapshot()?)?;
    let value = value.map(|value| place.value(value)).transpose()?;
    let db = open_or_create(&place.file.file)?;
    let fail = |error: tidalite::Error| place.fail(&error);
    let mut tx = db.begin_write().map_err(fail)?;
    let removed = if multi {
        let mut table = tx.raw_set_table(&place.table).map_err(fail)?;
        match (&value, all) {
            (Some(value), _) => u64::from(table.remove(&bytes, value).map_err(fail)?),
            (None, true) => table.remove_all(&bytes).map_err(fail)?,
            (None, false) => match table.take(&bytes) {
                Err(error) if error.kind() == ErrorKind::InvalidInput => {
                    return Err(Failure::usage(error).hint("give the value, or --all"));
                }
                taken => u64::from(taken.map_err(fail)?.is_some()),
            },
        }
    } else {
        let mut table = tx.raw_table(&place.table).map_err(fail)?;
        let mut table = table.nested_at(&place.path()?);
        let removed = match &value {
            Some(value) => table.remove_if(&bytes, value).map_err(fail)?,
            None => table.remove(&bytes).map_err(fail)?,
        };
        u64::from(removed)
    };
    if removed == 0 && value.is_some() {
        return Err(
            Failure::not_found(format!("{key} does not have this value"))
                .hint("tidalite kv get prints its value"),
        );
    }
    if removed == 0 {
        return Err(absent(key));
    }
    store::commit(tx).map_err(fail)?;
    store::close(db).map_err(fail)?;
    Ok(removed)
}

struct Bounds {
    from: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
    limit: u64,
    reverse: bool,
    value: Option<Vec<u8>>,
    value_from: Option<Vec<u8>>,
    value_to: Option<Vec<u8>>,
}

impl Bounds {
    fn any_value(&self) -> bool {
        self.value.is_none() && self.value_from.is_none() && self.value_to.is_none()
    }

    fn takes(&self, found: &[u8]) -> bool {
        self.value.as_deref().is_none_or(|value| found == value)
            && self.value_from.as_deref().is_none_or(|from| found >= from)
            && self.value_to.as_deref().is_none_or(|to| found < to)
    }

    fn beyond(&self, key: &[u8]) -> bool {
        if self.reverse {
            self.from.as_deref().is_some_and(|from| key < from)
        } else {
            self.to.as_deref().is_some_and(|to| key >= to)
        }
    }
}

fn scan(pairs: &Pairs<'_>, bounds: &Bounds, terminal: &mut Terminal<'_>) -> Outcome {
    let place = pairs.place;
    let snap = place.snapshot()?;
    let fail = |error: tidalite::Error| place.fail(&error);
    let mut left = bounds.limit;
    if place.is_multi(&snap)? {
        let Some(table) = snap.set_table(&place.table).map_err(fail)? else {
            return Ok(());
        };
        let mut cursor = table.cursor();
        let mut found = match (bounds.reverse, &bounds.from, &bounds.to) {
            (false, Some(from), _) => cursor.seek_key_ge(from),
            (false, None, _) => cursor.first(),
            (true, _, Some(to)) => cursor.seek_lt(to, &[]),
            (true, _, None) => cursor.last(),
        }
        .map_err(fail)?;
        while found && left > 0 && !bounds.beyond(cursor.key()) {
            if bounds.takes(cursor.value()) {
                pairs.pair(cursor.key(), &Held::Value(cursor.value()), terminal)?;
                left -= 1;
            }
            found = if bounds.reverse {
                cursor.previous().map_err(fail)?
            } else {
                cursor.next().map_err(fail)?
            };
        }
        return Ok(terminal.out.flush()?);
    }
    let table = place.table(&snap)?;
    let mut cursor = table.cursor();
    let mut found = match (bounds.reverse, &bounds.from, &bounds.to) {
        (false, Some(from), _) => cursor.seek_ge(from),
        (false, None, _) => cursor.first(),
        (true, _, Some(to)) => cursor.seek_lt(to),
        (true, _, None) => cursor.last(),
    }
    .map_err(fail)?;
    while found && left > 0 && !bounds.beyond(cursor.key()) {
        if cursor.is_nested() {
            if bounds.any_value() {
                let below = table.nested(cursor.key()).map_err(fail)?;
                let count = below.map_or(0, |below| below.count());
                pairs.pair(cursor.key(), &Held::Table(count), terminal)?;
                left -= 1;
            }
        } else {
            let value = cursor.value().map_err(fail)?;
            if bounds.takes(&value) {
                pairs.pair(cursor.key(), &Held::Value(&value), terminal)?;
                left -= 1;
            }
        }
        found = if bounds.reverse {
            cursor.previous().map_err(fail)?
        } else {
            cursor.next().map_err(fail)?
        };
    }
    Ok(terminal.out.flush()?)
}
