//! `hash set`, `hash del` and `hash rebuild`.

use super::counter;
use super::create::{create, expect, options};
use super::place::{Forms, Opened, absent, hash_failure, no_table, types_if_any};
use crate::args::{HashDelArgs, HashPlace, HashRebuildArgs, HashSetArgs};
use crate::commands::kv_types::check_pair;
use crate::database::{failure, open_or_create, open_to_write};
use crate::exit::{Failure, Outcome};
use crate::output::{plural, printable};
use crate::store;
use crate::terminal::Terminal;
use std::io::{BufRead, BufReader, Read};
use tidalite::hash_table::HashTableMut;
use tidalite::table::TableTypes;

/// Prints one line that confirms a change.
fn told(what: &str, terminal: &mut Terminal<'_>) -> Outcome {
    writeln!(terminal.out, "{}", printable(what))?;
    Ok(terminal.out.flush()?)
}

/// Runs the command `tidalite hash set`.
pub(super) fn set(args: &HashSetArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let (path, name) = (&args.place.file.file, &args.place.table);
    let fail = |error: tidalite::Error| hash_failure(path, name, &error);
    let options = options(&args.options)?;
    let value = given(args)?;
    let db = open_or_create(path)?;
    let snap = db.begin_read().map_err(fail)?;
    let types = types_if_any(&snap, path, name)?;
    if types.is_some() {
        let stored = Opened::of(&snap, path, name)?.table.options();
        expect(name, &args.options, &stored)?;
    }
    drop(snap);
    let forms = Forms::of(&args.place, types.as_ref());
    let mut tx = db.begin_write().map_err(fail)?;
    if types.is_none() {
        create(&mut tx, name, forms, &options).map_err(fail)?;
    }
    let types = tx.table_types(name).map_err(fail)?;
    let table = tx.raw_hash_table(name).map_err(fail)?;
    let missing = || no_table(path, name);
    let mut setting = Setting {
        place: &args.place,
        forms,
        types: types.ok_or_else(missing)?,
        table: table.ok_or_else(missing)?,
    };
    let done = match &args.key {
        None => {
            let pairs = setting.pairs(&mut BufReader::new(std::io::stdin()))?;
            format!("{} stored in {name}", plural(pairs, "pair", "pairs"))
        }
        Some(key) => setting.one(args, key, value)?,
    };
    store::commit(tx).map_err(fail)?;
    store::close(db).map_err(fail)?;
    told(&done, terminal)
}

/// A value that is not typed on the command line: the bytes of a file or of standard input.
fn given(args: &HashSetArgs) -> Outcome<Option<Vec<u8>>> {
    match (&args.value_file, args.value.as_deref()) {
        (Some(file), _) => {
            let bytes = std::fs::read(file);
            let bytes = bytes.map_err(|error| Failure::file("cannot read", file, &error));
            bytes.map(Some)
        }
        (None, Some("-")) => {
            let mut bytes = Vec::new();
            let read = std::io::stdin().lock().read_to_end(&mut bytes);
            read.map_err(|error| Failure::bad_input(format!("reading failed: {error}")))?;
            Ok(Some(bytes))
        }
        _ => Ok(None),
    }
}

/// A hash table whose keys are being set.
struct Setting<'a> {
    place: &'a HashPlace,
    forms: Forms,
    types: TableTypes,
    table: HashTableMut<'a>,
}

impl Setting<'_> {
    fn fail(&self, error: &tidalite::Error) -> Failure {
        hash_failure(&self.place.file.file, &self.place.table, error)
    }

    /// Returns an error for a pair that the table's types cannot read. `raw` is true if the value was given as bytes.
    fn check(&self, key: &[u8], value: &[u8], raw: bool) -> Outcome {
        let raw = raw || self.place.hex;
        check_pair((&self.place.table, &self.types), (key, value), false, raw)
    }

    /// Sets one key; returns the text that confirms it.
    fn one(&mut self, args: &HashSetArgs, key: &str, raw: Option<Vec<u8>>) -> Outcome<String> {
        let name = &self.place.table;
        let bytes = self.forms.key(key)?;
        let by = args.add.map(|by| (by, false));
        if let Some(by) = by.or(args.subtract.map(|by| (by, true))) {
            return self.count(key, &bytes, by);
        }
        let is_raw = raw.is_some();
        let value = match (raw, &args.value) {
            (Some(value), _) => value,
            (None, Some(text)) => self.forms.value(text)?,
            (None, None) => return Err(Failure::usage("a value, or --file")),
        };
        self.check(&bytes, &value, is_raw)?;
        let number = match args.new {
            true => self.table.insert(&bytes, &value),
            false => self.table.set(&bytes, &value).map(Some),
        };
        match number.map_err(|error| self.fail(&error))? {
            Some(number) => Ok(format!("{key} stored in {name} as record {number}")),
            None => Err(Failure::bad_input(format!("{key} exists already"))
                .hint("without --new its value is replaced; with duplicates, a value is added")),
        }
    }

    /// Adds a number to the value of a key, or subtracts it; returns the text that shows the result.
    fn count(&mut self, key: &str, bytes: &[u8], by: (i128, bool)) -> Outcome<String> {
        let name = &self.place.table;
        let view = self
            .table
            .view()
            .map(|view| (view.options(), view.get(bytes)));
        let (options, value) = view.map_err(|error| self.fail(&error))?;
        if options.duplicates {
            return Err(Failure::usage(format!(
                "--add and --subtract: keys of table {name} can have several values"
            )));
        }
        let value = value.map_err(|error| self.fail(&error))?;
        let (stored, text) = counter::sum(self.forms, key, value.as_deref(), by)?;
        self.check(bytes, &stored, false)?;
        let number = self.table.set(bytes, &stored);
        number.map_err(|error| self.fail(&error))?;
        Ok(format!("{key} is {text} now"))
    }

    /// Sets the pairs of all input lines; returns their number.
    fn pairs(&mut self, input: &mut dyn BufRead) -> Outcome<u64> {
        let (mut line, mut number) = (Vec::new(), 0);
        loop {
            line.clear();
            let read = input.read_until(b'\n', &mut line);
            let read =
                read.map_err(|error| Failure::bad_input(format!("reading failed: {error}")))?;
            if read == 0 {
                return Ok(number);
            }
            number += 1;
            let line = line.strip_suffix(b"\n").unwrap_or(&line);
            self.pair(line)
                .map_err(|error| error.about(format!("line {number}")))?;
        }
    }

    fn pair(&mut self, line: &[u8]) -> Outcome {
        let Ok(line) = std::str::from_utf8(line) else {
            return Err(Failure::bad_input("the line is not UTF-8")
                .hint("type other bytes as \\ and two hex digits"));
        };
        let Some((key, value)) = line.split_once('\t') else {
            return Err(Failure::bad_input("the line has no tab")
                .hint("a line is a key, a tab and a value, as `tidalite hash scan` prints them"));
        };
        let (key, value) = (self.forms.key(key)?, self.forms.value(value)?);
        self.check(&key, &value, false)?;
        let set = self.table.set(&key, &value);
        set.map(drop).map_err(|error| self.fail(&error))
    }
}

/// Runs the command `tidalite hash del`.
pub(super) fn del(args: &HashDelArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let HashDelArgs { place, key, .. } = args;
    let (path, name) = (&place.file.file, &place.table);
    let fail = |error: tidalite::Error| hash_failure(path, name, &error);
    let db = open_to_write(path)?;
    let snap = db.begin_read().map_err(fail)?;
    let opened = Opened::of(&snap, path, name)?;
    let bytes = Forms::of(place, Some(&opened.types)).key(key)?;
    if args.record.is_some() && !opened.table.options().duplicates {
        return Err(Failure::usage(format!(
            "--record: the keys of table {name} have one record each; without --record the key is removed"
        )));
    }
    drop(opened);
    drop(snap);
    let mut tx = db.begin_write().map_err(fail)?;
    let table = tx.raw_hash_table(name).map_err(fail)?;
    let mut table = table.ok_or_else(|| no_table(path, name))?;
    let records = table.view().map_err(fail)?.duplicates(&bytes);
    let records = records.map_err(fail)?.len();
    if records == 0 {
        return Err(absent(key));
    }
    let what = match args.record {
        Some(number) => match table.remove_record(&bytes, number).map_err(fail)? {
            true => format!("record {number} of {key}"),
            false => {
                return Err(Failure::not_found(format!("{key} has no record {number}"))
                    .hint("`tidalite hash get --all` prints its records"));
            }
        },
        None => {
            table.remove(&bytes).map_err(fail)?;
            match records {
                1 => key.clone(),
                records => format!("{} of {key}", plural(records, "record", "records")),
            }
        }
    };
    store::commit(tx).map_err(fail)?;
    store::close(db).map_err(fail)?;
    told(&format!("{what} removed from {name}"), terminal)
}

/// Runs the command `tidalite hash rebuild`.
pub(super) fn rebuild(args: &HashRebuildArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let HashRebuildArgs { file, table, .. } = args;
    let path = &file.file;
    let fail = |error: tidalite::Error| failure(path, &error);
    let db = open_to_write(path)?;
    let snap = db.begin_read().map_err(fail)?;
    if types_if_any(&snap, path, table)?.is_none() {
        return Err(no_table(path, table));
    }
    drop(snap);
    let mut tx = db.begin_write().map_err(fail)?;
    let opened = tx.raw_hash_table(table).map_err(fail)?;
    let mut opened = opened.ok_or_else(|| no_table(path, table))?;
    let done = match args.compact {
        true => {
            opened.compact().map_err(fail)?;
            format!("table {table} compacted")
        }
        false => {
            opened.rebuild().map_err(fail)?;
            format!("index of table {table} rebuilt")
        }
    };
    let view = opened.view().map_err(fail)?;
    let records = plural(view.count_records().map_err(fail)?, "record", "records");
    store::commit(tx).map_err(fail)?;
    store::close(db).map_err(fail)?;
    told(&format!("{done}: {records}"), terminal)
}
