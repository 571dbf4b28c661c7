//! `kv`: commands for tables.

use super::kv_buffered;
use super::kv_place::{Held, Pairs, no_table};
use super::kv_scan::{Bounds, scan};
use super::kv_types::{
    Kind, buffered_without, check_pair, is_hash_table, layout_of, not_buffered,
    refuse_other_layouts,
};
use crate::args::{KvArgs, KvCommand, KvPlace};
use crate::database::{failure, open_or_create, open_to_write};
use crate::exit::{Failure, Outcome};
use crate::output::{plural, printable};
use crate::store;
use crate::terminal::Terminal;
use std::io::Read;
use std::path::Path;
use tidalite::{ErrorKind, TableLayout, WriteTxn};

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
            buffered,
            ..
        } => {
            let raw = place.hex || value_file.is_some() || value.as_deref() == Some("-");
            let value = given(place, value.as_deref(), value_file.as_deref())?;
            let wanted = Kind::wanted(*multi, *buffered);
            put(place, (key, &value, raw), *new, wanted)?;
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
            file,
            table,
            multi,
            buffered,
            ..
        } => {
            let wanted = Kind::wanted(*multi, *buffered);
            let done = match create(&file.file, table, wanted)? {
                true => "created",
                false => "exists already",
            };
            told(&format!("table {table} {done}"), terminal)
        }
        KvCommand::Drop { file, table, .. } => {
            change(&file.file, table, |tx, layout| match layout {
                // The series of the containers are removed with them.
                TableLayout::Containers => tx.drop_containers(table),
                _ => tx.drop_table(table),
            })?;
            told(&format!("table {table} dropped"), terminal)
        }
        KvCommand::Rename {
            file, table, name, ..
        } => {
            change(&file.file, table, |tx, layout| match layout {
                TableLayout::Containers => tx.rename_containers(table, name),
                _ => tx.rename_table(table, name),
            })?;
            told(&format!("{table} is called {name} now"), terminal)
        }
        KvCommand::Compact { file, table, .. } => {
            let pairs = kv_buffered::compact(&file.file, table)?;
            let pairs = plural(pairs, "pair", "pairs");
            told(&format!("table {table} compacted: {pairs}"), terminal)
        }
        KvCommand::Stat(args) => super::kv_stat::run(args, terminal),
    }
}

/// Prints one line that confirms a change.
fn told(what: &str, terminal: &mut Terminal<'_>) -> Outcome {
    writeln!(terminal.out, "{}", printable(what))?;
    Ok(terminal.out.flush()?)
}

/// Opens the database and runs `work`, which changes a whole table and returns whether the table exists.
fn change(
    path: &Path,
    table: &str,
    work: impl FnOnce(&mut WriteTxn, TableLayout) -> tidalite::Result<bool>,
) -> Outcome {
    let fail = |error: tidalite::Error| failure(path, &error);
    let db = open_to_write(path)?;
    let mut tx = db.begin_write().map_err(fail)?;
    let types = tx.table_types(table).map_err(fail)?;
    let layout = types.map_or(TableLayout::Rows, |types| types.layout());
    if !work(&mut tx, layout).map_err(fail)? {
        return Err(no_table(path, table));
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

fn get(place: &KvPlace, key: &str, form: Print, terminal: &mut Terminal<'_>) -> Outcome {
    let (snap, bytes) = (place.snapshot()?, place.key(key)?);
    let fail = |error: tidalite::Error| place.fail(&error);
    let kind = place.kind(&snap)?;
    if kind == Kind::Sets {
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
    let value = if kind == Kind::Buffered {
        place.buffered_table(&snap)?.get(&bytes)
    } else {
        let table = place.table(&snap)?;
        let mut cursor = table.cursor();
        if cursor.seek(&bytes).map_err(fail)? && cursor.is_nested() {
            return Err(Failure::bad_input(format!("{key} holds a table"))
                .hint(format!("tidalite kv scan ... --in {key} prints it")));
        }
        table.get(&bytes)
    };
    let value = value.map_err(fail)?;
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
    let kind = place.kind(&snap)?;
    if kind == Kind::Single {
        // This returns an error if there is no nested table at the path.
        place.table(&snap)?;
    }
    drop(snap);
    let mut tx = db.begin_write().map_err(fail)?;
    match kind {
        Kind::Single => {
            let mut table = tx.raw_table(&place.table).map_err(fail)?;
            table.nested_at(&place.path()?).clear()
        }
        Kind::Sets => tx.raw_set_table(&place.table).map_err(fail)?.clear(),
        Kind::Buffered => kv_buffered::opened(&mut tx, &place.file.file, &place.table)?.clear(),
    }
    .map_err(fail)?;
    store::commit(tx).map_err(fail)?;
    store::close(db).map_err(fail)
}

/// Creates a table; returns whether it is new.
fn create(path: &Path, table: &str, wanted: Kind) -> Outcome<bool> {
    let fail = |error: tidalite::Error| failure(path, &error);
    let db = open_or_create(path)?;
    let snap = db.begin_read().map_err(fail)?;
    let is_new = snap.is_set_table(table).map_err(fail)?.is_none();
    refuse_other_layouts(&snap, path, table)?;
    let is_buffered = layout_of(&snap, table).map_err(fail)? == TableLayout::Buffered;
    if is_buffered && wanted != Kind::Buffered {
        return Err(
            Failure::bad_input(format!("table {table} exists and is a buffered table"))
                .hint("give another kind of table another name"),
        );
    }
    if wanted == Kind::Buffered && !is_new && !is_buffered {
        return Err(not_buffered(table));
    }
    drop(snap);
    let mut tx = db.begin_write().map_err(fail)?;
    match wanted {
        Kind::Single => tx.raw_table(table).map(drop),
        Kind::Sets => tx.raw_set_table(table).map(drop),
        Kind::Buffered if is_new => tx.buffered_table::<[u8], [u8]>(table).map(drop),
        Kind::Buffered => Ok(()),
    }
    .map_err(fail)?;
    store::commit(tx).map_err(fail)?;
    store::close(db).map_err(fail)?;
    Ok(is_new)
}

/// Stores a pair. `raw` is true if the value was given as bytes. `wanted` is the kind of the table that is created if
/// it does not exist.
fn put(
    place: &KvPlace,
    (key, value, raw): (&str, &[u8], bool),
    new: bool,
    wanted: Kind,
) -> Outcome {
    let key_bytes = place.key(key)?;
    let db = open_or_create(&place.file.file)?;
    let fail = |error: tidalite::Error| place.fail(&error);
    let snap = db.begin_read().map_err(fail)?;
    let kind = match snap.is_set_table(&place.table).map_err(fail)? {
        Some(_) => match (place.kind(&snap)?, wanted) {
            (Kind::Buffered, Kind::Sets) => {
                return Err(buffered_without(&place.table, "sets of values"));
            }
            (Kind::Single | Kind::Sets, Kind::Buffered) => return Err(not_buffered(&place.table)),
            // The library returns an error if the table has single values.
            (Kind::Single, Kind::Sets) => Kind::Sets,
            (kind, _) => kind,
        },
        None => wanted,
    };
    // Types are recorded for the outermost table only.
    if place.path.is_empty()
        && let Some(types) = snap.table_types(&place.table).map_err(fail)?
    {
        let pair = (&key_bytes[..], value);
        check_pair((&place.table, &types), pair, kind == Kind::Sets, raw)?;
    }
    drop(snap);
    let mut tx = db.begin_write().map_err(fail)?;
    let stored = match kind {
        Kind::Sets => {
            let mut table = tx.raw_set_table(&place.table).map_err(fail)?;
            table.put(&key_bytes, value).map_err(fail)?
        }
        Kind::Buffered => {
            kv_buffered::put(&mut tx, &place.table, (&key_bytes, value), new).map_err(fail)?
        }
        Kind::Single => {
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
    let kind = place.kind(&place.snapshot()?)?;
    let value = value.map(|value| place.value(value)).transpose()?;
    let db = open_or_create(&place.file.file)?;
    let fail = |error: tidalite::Error| place.fail(&error);
    let mut tx = db.begin_write().map_err(fail)?;
    let removed = if kind == Kind::Sets {
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
    } else if kind == Kind::Buffered {
        let mut table = kv_buffered::opened(&mut tx, &place.file.file, &place.table)?;
        u64::from(kv_buffered::remove(&mut table, &bytes, value.as_deref()).map_err(fail)?)
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
