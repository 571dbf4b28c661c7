//! `load`: reads tables from the text format of `dump`, `mdb_dump` and `mdbx_dump` (see `dump.rs`), or from plain
//! lines: key, value, key, value.
//!
//! Header lines that have no meaning for Tidalite are ignored: sizes of pages and maps, numbers of readers, canaries.

use super::foreign::{self, Part};
use super::kv_types::{buffered_without, layout_of, refuse_other_layouts};
use super::layouts::noun;
use super::load_raw::checked;
use crate::args::{ForeignFlag, LoadArgs};
use crate::bytes::{unescaped, unhex};
use crate::database::{failure, open_or_create};
use crate::exit::{Failure, Outcome};
use crate::output::{plural, printable};
use crate::store;
use crate::terminal::Terminal;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use tidalite::table::BufferedTableMut;
use tidalite::{Database, ReadTxn, SetTableMut, TableLayout, TableMut, WriteTxn};

/// Name of the table for a section whose header has no name.
const MAIN_TABLE: &str = "main";

/// Number of bytes of pairs in one transaction of `load`.
const BATCH_BYTES: usize = 32 << 20;

#[derive(Debug, Default)]
struct Head {
    /// Bytes of the table's name in the header, which may not be UTF-8.
    name: Option<Vec<u8>>,
    /// Whether the name is escaped in the same way as the data.
    escaped: bool,
    print: bool,
    /// Whether the input has no header: all lines are data, and the table ends with the input.
    plain: bool,
    multi: bool,
    flags: Vec<ForeignFlag>,
    sequence: u64,
    /// The layout of the table, if the section contains the rows in which such a table is stored.
    raw: Option<TableLayout>,
    /// Whether the section contains the pairs of a buffered table.
    buffered: bool,
    /// Names of the types of a hash table or a buffered table.
    types: [Option<String>; 2],
}

impl Head {
    /// Names of the types of keys and values of a hash table or a buffered table.
    fn types(&self) -> (&str, &str) {
        let [key, value] = &self.types;
        let [key, value] = [key, value].map(|ty| ty.as_deref().unwrap_or("bytes"));
        (key, value)
    }

    /// Converts the bytes of a key or value so that Tidalite sorts them in the order of the source.
    fn here(&self, part: Part, mut bytes: Vec<u8>) -> Vec<u8> {
        if foreign::turns(&self.flags, part) {
            bytes.reverse();
        }
        bytes
    }
}

/// Runs the command `tidalite load`.
pub(crate) fn load(args: &LoadArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let path = &args.file.file;
    let mut input: Box<dyn BufRead> = match args.input.as_deref() {
        None => Box::new(BufReader::new(std::io::stdin())),
        Some(input) if input.as_os_str() == "-" => Box::new(BufReader::new(std::io::stdin())),
        Some(input) => {
            let file =
                File::open(input).map_err(|error| Failure::file("cannot read", input, &error))?;
            Box::new(BufReader::new(file))
        }
    };
    let db = open_or_create(path)?;
    let mut lines = Lines {
        input: &mut *input,
        number: 0,
        text: Vec::new(),
    };
    let given = args.table.as_deref();
    if args.text {
        let name = given.unwrap_or(MAIN_TABLE);
        let snap = db.begin_read().map_err(|error| failure(path, &error))?;
        let multi = snap.is_set_table(name);
        let head = Head {
            print: true,
            plain: true,
            multi: multi.map_err(|error| failure(path, &error))? == Some(true),
            ..Head::default()
        };
        drop(snap);
        section(&mut lines, &head, &db, name, args, terminal)?;
        store::close(db).map_err(|error| failure(path, &error))?;
        return Ok(terminal.out.flush()?);
    }
    let mut sections = 0;
    while let Some(head) = read_head(&mut lines)? {
        sections += 1;
        let name = match (given, &head.name) {
            (Some(name), _) => name,
            (None, None) => MAIN_TABLE,
            (None, Some(name)) => match std::str::from_utf8(name) {
                Ok(name) => name,
                Err(_) => return Err(lines.not_text(name)),
            },
        };
        section(&mut lines, &head, &db, name, args, terminal)?;
        lost(&head, name, path);
    }
    if sections == 0 {
        return Err(Failure::bad_input("the input is empty").hint("give the output of a dump"));
    }
    store::close(db).map_err(|error| failure(path, &error))?;
    Ok(terminal.out.flush()?)
}

fn section(
    lines: &mut Lines<'_>,
    head: &Head,
    db: &Database,
    name: &str,
    args: &LoadArgs,
    terminal: &mut Terminal<'_>,
) -> Outcome {
    let pairs = read_pairs(lines, head, db, name, args)
        .map_err(|error| error.about(format!("table {}", printable(name))))?;
    let pairs = match head.raw {
        Some(TableLayout::Hash) => plural(pairs, "key", "keys"),
        Some(TableLayout::Topics | TableLayout::Queue | TableLayout::Containers) => {
            plural(pairs, "message", "messages")
        }
        Some(TableLayout::Bucket) => plural(pairs, "object", "objects"),
        Some(TableLayout::Relation) => plural(pairs, "row", "rows"),
        _ => plural(pairs, "pair", "pairs"),
    };
    Ok(writeln!(terminal.out, "{}: {pairs}", printable(name))?)
}

/// Warns about flags of the table that Tidalite does not store.
fn lost(head: &Head, name: &str, path: &Path) {
    if head.flags.is_empty() {
        return;
    }
    let words: Vec<&str> = head.flags.iter().map(|flag| flag.word()).collect();
    let words = words.join(",");
    let turned = match (
        foreign::turns(&head.flags, Part::Key),
        foreign::turns(&head.flags, Part::Value),
    ) {
        (false, false) => "",
        (true, false) => " the bytes of its keys were reversed to preserve their order;",
        (false, true) => " the bytes of its values were reversed to preserve their order;",
        (true, true) => " the bytes of its keys and values were reversed to preserve their order;",
    };
    let (name, path) = (printable(name), path.display());
    eprintln!(
        "note: table {name} was {words}, which is not stored:{turned} tidalite dump {path} '{name}' --as {words} restores it"
    );
}

struct Lines<'i> {
    input: &'i mut dyn BufRead,
    number: u64,
    text: Vec<u8>,
}

impl Lines<'_> {
    /// The next line of the input without its line ending; `None` at the end of the input.
    fn next(&mut self) -> Outcome<Option<&[u8]>> {
        self.text.clear();
        self.number += 1;
        let read = self.input.read_until(b'\n', &mut self.text);
        match read {
            Ok(0) => Ok(None),
            Ok(_) => Ok(Some(self.text.strip_suffix(b"\n").unwrap_or(&self.text))),
            Err(error) => Err(Failure::bad_input(format!("reading failed: {error}"))),
        }
    }

    fn bad(&self, what: &str) -> Failure {
        Failure::bad_input(format!("line {}: {what}", self.number))
            .hint("the format is that of mdb_dump: `tidalite dump --help` shows it")
    }

    /// The error for a table name that is not UTF-8. (If invalid bytes were replaced, two such names could become
    /// equal.)
    fn not_text(&self, name: &[u8]) -> Failure {
        let shown = crate::bytes::escaped(name);
        let what = format!("the table's name {shown} is not UTF-8");
        Failure::bad_input(format!("line {}: {what}", self.number))
            .hint("dump that table alone (mdb_dump -s), and name it with --table NAME")
    }
}

/// Reads the header of the next section; `None` at the end of the input.
fn read_head(lines: &mut Lines<'_>) -> Outcome<Option<Head>> {
    let mut head = Head::default();
    let mut began = false;
    loop {
        let Some(line) = lines.next()? else {
            return if began {
                Err(lines.bad("the input ends inside a header"))
            } else {
                Ok(None)
            };
        };
        if line.is_empty() && !began {
            continue;
        }
        began = true;
        if let Some(name) = line.strip_prefix(b"database=") {
            head.name = Some(name.to_vec());
            continue;
        }
        let text = String::from_utf8_lossy(line).into_owned();
        let Some((name, value)) = text.split_once('=') else {
            return Err(lines.bad("a header line is NAME=VALUE"));
        };
        let set = value != "0";
        match (name, value) {
            ("VERSION", "3" | "2") => {}
            ("VERSION", _) => return Err(lines.bad("a version other than 3")),
            ("HEADER", "END") => {
                if let Some(name) = head.name.as_mut().filter(|_| head.escaped) {
                    match unescaped(name) {
                        Some(bytes) => *name = bytes,
                        None => {
                            return Err(lines.bad("the name of the table has an invalid escape"));
                        }
                    }
                }
                return Ok(Some(head));
            }
            ("format", "bytevalue") => head.print = false,
            ("format", "print") => head.print = true,
            (
                "type",
                "btree" | "hashtable" | "buffered" | "topics" | "queue" | "bucket" | "containers"
                | "relation",
            ) => {
                head.buffered = value == "buffered";
                head.raw = match value {
                    "hashtable" => Some(TableLayout::Hash),
                    "topics" => Some(TableLayout::Topics),
                    "queue" => Some(TableLayout::Queue),
                    "bucket" => Some(TableLayout::Bucket),
                    "containers" => Some(TableLayout::Containers),
                    "relation" => Some(TableLayout::Relation),
                    _ => None,
                };
            }
            ("keytype" | "valuetype", ty) => {
                let bytes = unescaped(ty.as_bytes()).map(String::from_utf8);
                let Some(Ok(ty)) = bytes else {
                    return Err(lines.bad("a type whose name has an invalid escape"));
                };
                head.types[usize::from(name == "valuetype")] = Some(ty);
            }
            ("format" | "type", _) => return Err(lines.bad("an unknown format")),
            ("escaped", _) => head.escaped = set,
            ("duplicates" | "dupsort", _) => head.multi |= set,
            ("sequence", number) => match number.parse() {
                Ok(number) => head.sequence = number,
                Err(_) => return Err(lines.bad("a sequence that is not a number")),
            },
            (word, _) => {
                if let Some(flag) = ForeignFlag::named(word).filter(|_| set) {
                    head.multi |= flag.of_values();
                    head.flags.push(flag);
                }
            }
        }
    }
}

fn read_pairs(
    lines: &mut Lines<'_>,
    head: &Head,
    db: &Database,
    name: &str,
    args: &LoadArgs,
) -> Outcome<u64> {
    let fail = |error: tidalite::Error| failure(&args.file.file, &error);
    let mut stored = 0;
    let mut ended = false;
    let mut path: Vec<Vec<u8>> = Vec::new();
    let snap = db.begin_read().map_err(fail)?;
    if let Some(layout) = head.raw
        && snap.is_set_table(name).map_err(fail)?.is_some()
    {
        let noun = noun(layout);
        return Err(Failure::bad_input(format!(
            "{noun} is loaded as a new table, but the table exists"
        ))
        .hint(
            "load it under another name with --table NAME, or drop the table first: tidalite kv drop",
        ));
    }
    refuse_other_layouts(&snap, &args.file.file, name)?;
    if is_for_buffered(&snap, head, name, &args.file.file)? {
        drop(snap);
        return read_buffered(lines, head, db, name, args);
    }
    drop(snap);
    // Readers must never see an incomplete hash table, queue or similar table, so its rows are stored in one commit.
    let batch_bytes = match head.raw {
        Some(_) => usize::MAX,
        None => BATCH_BYTES,
    };
    while !ended {
        let mut tx = db.begin_write().map_err(fail)?;
        if head.multi {
            let mut pairs = Pairs::of(lines, head);
            let mut table = make_sets(&mut tx, name, head).map_err(fail)?;
            stored += table.extend(&mut pairs).map_err(fail)?;
            ended = pairs.end.transpose()?.is_some();
            store::commit(tx).map_err(fail)?;
            continue;
        }
        let mut table = make(&mut tx, name, head).map_err(fail)?;
        let mut bytes = 0;
        while bytes < batch_bytes {
            let key = match read_bytes(lines, head)? {
                Line::Bytes(key) => head.here(Part::Key, key),
                Line::Close if path.pop().is_some() => continue,
                Line::End if path.is_empty() => {
                    ended = true;
                    break;
                }
                Line::Open(_) => return Err(lines.bad("a table without a key")),
                Line::Close => return Err(lines.bad("more tables end than began")),
                Line::End => return Err(lines.bad("DATA=END inside a table")),
            };
            bytes += key.len();
            match read_bytes(lines, head)? {
                Line::Bytes(value) => {
                    bytes += value.len();
                    let value = head.here(Part::Value, value);
                    let mut to = table.nested_at(&path);
                    let is_new = match args.no_overwrite {
                        true => to.insert(&key, &value).map_err(fail)?,
                        false => to.put(&key, &value).map(|_| true).map_err(fail)?,
                    };
                    stored += u64::from(is_new);
                }
                Line::Open(sequence) => {
                    path.push(key);
                    let mut below = table.nested_at(&path);
                    below.make().map_err(fail)?;
                    catch_up(&mut below, sequence).map_err(fail)?;
                }
                Line::Close | Line::End => return Err(lines.bad("a key without a value")),
            }
        }
        if let Some(layout) = head.raw {
            stored = checked(&mut tx, name, layout, &fail)
                .map_err(|failure| failure.about(format!("line {}", lines.number)))?;
        }
        store::commit(tx).map_err(fail)?;
    }
    Ok(stored)
}

/// Whether the pairs of a section are for a buffered table; an existing table keeps its kind. Returns an error if the
/// table cannot store data as described by the header.
fn is_for_buffered(snap: &ReadTxn, head: &Head, name: &str, path: &Path) -> Outcome<bool> {
    let fail = |error: tidalite::Error| failure(path, &error);
    let exists = snap.is_set_table(name).map_err(fail)?.is_some();
    let is_buffered = match exists {
        true => layout_of(snap, name).map_err(fail)? == TableLayout::Buffered,
        false => head.buffered,
    };
    if exists && head.buffered {
        let types = snap.table_types(name).map_err(fail)?;
        let types = types.as_ref();
        let stored = types.map_or(("bytes", "bytes"), |types| (types.key(), types.value()));
        if stored != head.types() {
            let [stored, found] =
                [stored, head.types()].map(|(key, value)| format!("{key} -> {value}"));
            return Err(Failure::bad_input(format!(
                "the pairs are of types {found}, but the table exists and is of types {stored}"
            ))
            .hint("load them under another name with --table NAME"));
        }
    }
    if is_buffered && head.multi {
        return Err(buffered_without(name, "sets of values"));
    }
    if is_buffered && head.sequence > 0 {
        return Err(buffered_without(name, "sequence"));
    }
    Ok(is_buffered)
}

/// Stores the pairs of a section in a buffered table; returns the number of pairs stored.
fn read_buffered(
    lines: &mut Lines<'_>,
    head: &Head,
    db: &Database,
    name: &str,
    args: &LoadArgs,
) -> Outcome<u64> {
    let fail = |error: tidalite::Error| failure(&args.file.file, &error);
    let mut stored = 0;
    let mut ended = false;
    while !ended {
        let mut tx = db.begin_write().map_err(fail)?;
        let mut table = make_buffered(&mut tx, name, head).map_err(fail)?;
        let mut pairs = Pairs::of(lines, head);
        for (key, value) in &mut pairs {
            if !(args.no_overwrite && table.contains(&key).map_err(fail)?) {
                table.put(&key, &value).map_err(fail)?;
                stored += 1;
            }
        }
        ended = pairs.end.transpose()?.is_some();
        store::commit(tx).map_err(fail)?;
    }
    Ok(stored)
}

/// Opens the buffered table of a section; creates it if it does not exist.
fn make_buffered<'t>(
    tx: &'t mut WriteTxn,
    name: &str,
    head: &Head,
) -> tidalite::Result<BufferedTableMut<'t>> {
    if tx.is_set_table(name)?.is_none() {
        return tx.create_raw_buffered_table(name, head.types());
    }
    match tx.raw_buffered_table(name)? {
        Some(table) => Ok(table),
        None => unreachable!("it exists"),
    }
}

/// Iterator over the pairs in a section without nested tables, up to the end of a batch.
struct Pairs<'p, 'l> {
    lines: &'p mut Lines<'l>,
    head: &'p Head,
    bytes: usize,
    /// The reason why the pairs ended before the end of the batch, if they did: the end of the section, or an invalid
    /// line.
    end: Option<Outcome<()>>,
}

impl<'p, 'l> Pairs<'p, 'l> {
    fn of(lines: &'p mut Lines<'l>, head: &'p Head) -> Self {
        Self {
            lines,
            head,
            bytes: 0,
            end: None,
        }
    }

    /// Reads the next pair; `None` at the end of the section.
    fn pair(&mut self) -> Outcome<Option<(Vec<u8>, Vec<u8>)>> {
        let Self { lines, head, .. } = self;
        let key = match read_bytes(lines, head)? {
            Line::Bytes(key) => head.here(Part::Key, key),
            Line::End => return Ok(None),
            Line::Open(_) => return Err(lines.bad("a table without a key")),
            Line::Close => return Err(lines.bad("more tables end than began")),
        };
        match read_bytes(lines, head)? {
            Line::Bytes(value) => Ok(Some((key, head.here(Part::Value, value)))),
            Line::Open(_) if head.multi => Err(lines.bad("a table among sets")),
            Line::Open(_) => Err(lines.bad("a nested table, which a buffered table cannot hold")),
            Line::Close | Line::End => Err(lines.bad("a key without a value")),
        }
    }
}

impl Iterator for Pairs<'_, '_> {
    type Item = (Vec<u8>, Vec<u8>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.bytes >= BATCH_BYTES || self.end.is_some() {
            return None;
        }
        match self.pair() {
            Ok(Some((key, value))) => {
                self.bytes += key.len() + value.len();
                Some((key, value))
            }
            Ok(None) => {
                self.end = Some(Ok(()));
                None
            }
            Err(failure) => {
                self.end = Some(Err(failure));
                None
            }
        }
    }
}

/// Opens or creates the table of a section and advances its sequence to the number in the header.
fn make<'t>(tx: &'t mut WriteTxn, name: &str, head: &Head) -> tidalite::Result<TableMut<'t>> {
    let mut table = match head.raw {
        Some(layout) => tx.create_raw_table(name, layout, head.types())?,
        None => tx.raw_table(name)?,
    };
    catch_up(&mut table, head.sequence)?;
    Ok(table)
}

/// Like `make`, for a table of sets.
fn make_sets<'t>(
    tx: &'t mut WriteTxn,
    name: &str,
    head: &Head,
) -> tidalite::Result<SetTableMut<'t>> {
    let mut table = tx.raw_set_table(name)?;
    let missing = head.sequence.saturating_sub(table.view()?.sequence());
    if missing > 0 {
        table.take_sequence(missing)?;
    }
    Ok(table)
}

/// Advances a table's sequence to this number, unless it is already greater.
fn catch_up(table: &mut TableMut<'_>, sequence: u64) -> tidalite::Result<()> {
    let missing = sequence.saturating_sub(table.view()?.sequence());
    if missing > 0 {
        table.take_sequence(missing)?;
    }
    Ok(())
}

/// A line of data in a section.
enum Line {
    Bytes(Vec<u8>),
    /// The beginning of a nested table, with the next number of its sequence.
    Open(u64),
    Close,
    /// The end of the section.
    End,
}

fn read_bytes(lines: &mut Lines<'_>, head: &Head) -> Outcome<Line> {
    let Some(line) = lines.next()? else {
        return match head.plain {
            true => Ok(Line::End),
            false => Err(lines.bad("the input ends before DATA=END")),
        };
    };
    if head.plain {
        return match unescaped(line) {
            Some(bytes) => Ok(Line::Bytes(bytes)),
            None => Err(lines
                .bad("a backslash is followed by two hex digits, or is doubled")
                .hint("a literal backslash is written twice, or as \\5c")),
        };
    }
    match line {
        b"DATA=END" => return Ok(Line::End),
        b"{" => return Ok(Line::Open(0)),
        b"}" => return Ok(Line::Close),
        _ => {}
    }
    if let Some(next) = line.strip_prefix(b"{sequence=") {
        let next = std::str::from_utf8(next)
            .ok()
            .and_then(|next| next.parse().ok());
        return match next {
            Some(next) => Ok(Line::Open(next)),
            None => Err(lines.bad("a sequence that is not a number")),
        };
    }
    let Some(text) = line.strip_prefix(b" ") else {
        return Err(lines.bad("a space and bytes in the format of the header were expected"));
    };
    let bytes = if head.print {
        unescaped(text)
    } else {
        unhex(text)
    };
    match bytes {
        Some(bytes) => Ok(Line::Bytes(bytes)),
        None if head.print => Err(lines
            .bad("a backslash is not followed by two hex digits")
            .hint("older mdb_dump -p prints backslashes as they are: dump again without -p")),
        None => Err(lines.bad("a space and bytes in the format of the header were expected")),
    }
}
