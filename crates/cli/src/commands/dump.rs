//! `dump` and `load`: tables as text, in the format of `mdb_dump` and `mdbx_dump`.
//!
//! ```text
//! VERSION=3
//! format=bytevalue        or print: printable characters as they are, others as \ and two hex digits
//! database=config         the table; a file has one such section for each
//! type=btree
//! mapsize=33554432
//! duplicates=1            of a table of multi-values
//! dupsort=1
//! HEADER=END
//!  6b6579                 key, value, key, value: a space and hex digits
//!  76616c7565
//! DATA=END
//! ```
//!
//! What that format has no words for:
//!
//! ```text
//! escaped=1               in the header: the table's name has control characters, and is written as the format print writes bytes
//! sequence=17             in the header (as mdbx_dump has it): the next number of the table's sequence, if any was taken
//!  746f706963             a key with a nested table:
//! {                       instead of a value the table's own keys and values, in which tables can be nested again
//!  6b6579
//!  76616c7565
//! }
//! {sequence=17            the same of a nested table whose sequence has begun
//! ```
//!
//! `mdb_load` passes over `sequence` and `escaped`, and refuses a section with a nested table.

use super::Terminal;
use crate::args::{DumpArgs, LoadArgs};
use crate::bytes::{escaped, hex, unescaped, unhex};
use crate::database::{failure, open, open_or_create};
use crate::exit::{Failure, Outcome};
use crate::output::printable;
use crate::store;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use tidalite::{Database, ReadTxn, Table, TableMut, WriteTxn};

/// Name of the table for a section without one.
const MAIN_TABLE: &str = "main";

/// Bytes of pairs in one transaction of `load`.
const BATCH_BYTES: usize = 32 << 20;

/// What `mapsize` says at least: the other side's default is too small for anything.
const MAP_BYTES_MIN: u64 = 32 << 20;

/// `tidalite dump`
pub(crate) fn dump(args: &DumpArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let path = &args.file.file;
    let snap = open(path)?
        .begin_read()
        .map_err(|error| failure(path, &error))?;
    let names = match &args.table {
        Some(name) => vec![name.clone()],
        None => snap.tables().map_err(|error| failure(path, &error))?,
    };
    if names.is_empty() {
        let hint = "tidalite scan and tidalite series show the series of a file";
        return Err(Failure::not_found("there is no table to dump").hint(hint));
    }
    for name in names {
        section(&snap, &name, args.print, terminal.out)
            .map_err(|error| error.about(format!("table {}", printable(&name))))?;
    }
    Ok(terminal.out.flush()?)
}

fn section(snap: &ReadTxn, name: &str, print: bool, out: &mut dyn Write) -> Outcome {
    let fail = |error: tidalite::Error| Failure::new(crate::exit::Exit::Failure, error);
    let Some(multi) = snap.is_multi_table(name).map_err(fail)? else {
        return Err(Failure::not_found("no such table").hint("tidalite kv stat lists them"));
    };
    let format = if print { "print" } else { "bytevalue" };
    let map_bytes = (snap.file_bytes() * 4).max(MAP_BYTES_MIN);
    let told = match name.contains(char::is_control) {
        true => format!("escaped=1\ndatabase={}", escaped(name.as_bytes())),
        false => format!("database={name}"),
    };
    write!(
        out,
        "VERSION=3\nformat={format}\n{told}\ntype=btree\nmapsize={map_bytes}\n"
    )?;
    if multi {
        out.write_all(b"duplicates=1\ndupsort=1\n")?;
        let Some(table) = snap.multi_table(name).map_err(fail)? else {
            return Ok(());
        };
        end_head(out, table.sequence())?;
        let mut cursor = table.cursor();
        while cursor.next_pair().map_err(fail)? {
            line(out, cursor.key(), print)?;
            line(out, cursor.value(), print)?;
        }
    } else {
        let Some(table) = snap.table(name).map_err(fail)? else {
            return Ok(());
        };
        end_head(out, table.sequence())?;
        rows(&table, print, out)?;
    }
    Ok(out.write_all(b"DATA=END\n")?)
}

fn end_head(out: &mut dyn Write, sequence: u64) -> Outcome {
    if sequence > 0 {
        writeln!(out, "sequence={sequence}")?;
    }
    Ok(out.write_all(b"HEADER=END\n")?)
}

/// The rows of a table, nested or not. Recursion is as deep as tables are nested.
fn rows(table: &Table<'_>, print: bool, out: &mut dyn Write) -> Outcome {
    let fail = |error: tidalite::Error| Failure::new(crate::exit::Exit::Failure, error);
    let mut cursor = table.cursor();
    while cursor.next().map_err(fail)? {
        line(out, cursor.key(), print)?;
        if cursor.is_nested() {
            if let Some(below) = cursor.nested().map_err(fail)? {
                match below.sequence() {
                    0 => out.write_all(b"{\n")?,
                    next => writeln!(out, "{{sequence={next}")?,
                }
                rows(&below, print, out)?;
            }
            out.write_all(b"}\n")?;
            continue;
        }
        match cursor.value_ref() {
            Some(value) => line(out, value, print)?,
            None => line(out, &cursor.value().map_err(fail)?, print)?,
        }
    }
    Ok(())
}

/// One key or value as a line.
fn line(out: &mut dyn Write, bytes: &[u8], print: bool) -> Outcome {
    let mut text = Vec::with_capacity(2 * bytes.len() + 2);
    text.push(b' ');
    text.extend_from_slice(if print { escaped(bytes) } else { hex(bytes) }.as_bytes());
    text.push(b'\n');
    Ok(out.write_all(&text)?)
}

/// How the other side orders keys or values.
#[derive(Clone, Copy, Debug, Default)]
struct Order {
    /// Native integers: little-endian bytes, ordered as numbers.
    integer: bool,
    /// From the last byte to the first.
    reversed: bool,
}

impl Order {
    /// Bytes that sort here as these do there.
    fn here(self, mut bytes: Vec<u8>) -> Vec<u8> {
        if self.integer || self.reversed {
            bytes.reverse();
        }
        bytes
    }
}

#[derive(Debug, Default)]
struct Head {
    name: Option<String>,
    /// The name is written as bytes are.
    escaped: bool,
    print: bool,
    multi: bool,
    keys: Order,
    values: Order,
    sequence: u64,
}

/// `tidalite load`
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
    let mut sections = 0;
    while let Some(head) = read_head(&mut lines)? {
        sections += 1;
        let name = args.table.as_deref().or(head.name.as_deref());
        let name = name.unwrap_or(MAIN_TABLE);
        let pairs = read_pairs(&mut lines, &head, &db, name, args.no_overwrite)
            .map_err(|error| error.about(format!("table {}", printable(name))))?;
        let name = printable(name);
        writeln!(terminal.out, "{name}: {pairs} pairs")?;
        if head.keys.integer || head.keys.reversed || head.values.integer || head.values.reversed {
            let note = "its bytes were reversed, so that they keep their order here";
            writeln!(terminal.out, "{name}: {note}")?;
        }
    }
    if sections == 0 {
        return Err(Failure::bad_input("the input is empty").hint("give the output of a dump"));
    }
    Ok(terminal.out.flush()?)
}

struct Lines<'i> {
    input: &'i mut dyn BufRead,
    number: u64,
    text: Vec<u8>,
}

impl Lines<'_> {
    /// The next line without its end.
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
}

/// The head of the next section; `None` at the end of the input.
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
                    let bytes = unescaped(name.as_bytes());
                    match bytes.map(String::from_utf8) {
                        Some(Ok(bytes)) => *name = bytes,
                        _ => {
                            return Err(
                                lines.bad("the name of the table is not escaped as it should be")
                            );
                        }
                    }
                }
                return Ok(Some(head));
            }
            ("format", "bytevalue") => head.print = false,
            ("format", "print") => head.print = true,
            ("type", "btree") => {}
            ("format" | "type", _) => return Err(lines.bad("a format that is not known")),
            ("database", name) => head.name = Some(name.to_owned()),
            ("escaped", _) => head.escaped = set,
            ("duplicates" | "dupsort" | "dupfixed", _) => head.multi |= set,
            ("integerkey", _) => head.keys.integer = set,
            ("reversekey", _) => head.keys.reversed = set,
            ("integerdup", _) => {
                head.multi |= set;
                head.values.integer = set;
            }
            ("reversedup", _) => {
                head.multi |= set;
                head.values.reversed = set;
            }
            ("sequence", number) => match number.parse() {
                Ok(number) => head.sequence = number,
                Err(_) => return Err(lines.bad("a sequence that is no number")),
            },
            // Sizes of pages and maps, geometry: nothing here depends on them.
            _ => {}
        }
    }
}

fn read_pairs(
    lines: &mut Lines<'_>,
    head: &Head,
    db: &Database,
    name: &str,
    keep: bool,
) -> Outcome<u64> {
    let fail = |error: tidalite::Error| Failure::new(crate::exit::Exit::Failure, error);
    let mut stored = 0;
    let mut ended = false;
    let mut path: Vec<Vec<u8>> = Vec::new();
    while !ended {
        let mut tx = db.begin_write().map_err(fail)?;
        make(&mut tx, name, head).map_err(fail)?;
        let mut bytes = 0;
        while bytes < BATCH_BYTES {
            let key = match read_bytes(lines, head.print)? {
                Line::Bytes(key) => head.keys.here(key),
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
            match read_bytes(lines, head.print)? {
                Line::Bytes(value) => {
                    bytes += value.len();
                    let value = head.values.here(value);
                    let place = (name, &path[..]);
                    let new = put(&mut tx, place, head.multi, (&key, &value), keep);
                    stored += u64::from(new.map_err(fail)?);
                }
                Line::Open(sequence) if !head.multi => {
                    path.push(key);
                    let mut table = tx.table(name).map_err(fail)?;
                    let mut table = table.nested_at(&path);
                    table.make().map_err(fail)?;
                    catch_up(&mut table, sequence).map_err(fail)?;
                }
                Line::Open(_) => return Err(lines.bad("a table among multi-values")),
                Line::Close | Line::End => return Err(lines.bad("a key without a value")),
            }
        }
        store::commit(tx).map_err(fail)?;
    }
    Ok(stored)
}

/// Makes the table, and brings its sequence to where the header says.
fn make(tx: &mut WriteTxn, name: &str, head: &Head) -> tidalite::Result<()> {
    if head.multi {
        let mut table = tx.multi_table(name)?;
        let missing = head.sequence.saturating_sub(table.view()?.sequence());
        if missing > 0 {
            table.take_sequence(missing)?;
        }
    } else {
        catch_up(&mut tx.table(name)?, head.sequence)?;
    }
    Ok(())
}

/// Brings a table's sequence to where it was.
fn catch_up(table: &mut TableMut<'_>, sequence: u64) -> tidalite::Result<()> {
    let missing = sequence.saturating_sub(table.view()?.sequence());
    if missing > 0 {
        table.take_sequence(missing)?;
    }
    Ok(())
}

/// Stores a pair; true when it was stored.
fn put(
    tx: &mut WriteTxn,
    (name, path): (&str, &[Vec<u8>]),
    multi: bool,
    (key, value): (&[u8], &[u8]),
    keep: bool,
) -> tidalite::Result<bool> {
    if multi {
        return tx.multi_table(name)?.put(key, value);
    }
    let mut table = tx.table(name)?;
    let mut table = table.nested_at(path);
    if keep {
        return table.insert(key, value);
    }
    table.put(key, value)?;
    Ok(true)
}

/// A line of data.
enum Line {
    Bytes(Vec<u8>),
    /// A nested table begins, with the next number of its sequence; it ends.
    Open(u64),
    Close,
    /// The end of the section.
    End,
}

fn read_bytes(lines: &mut Lines<'_>, print: bool) -> Outcome<Line> {
    let Some(line) = lines.next()? else {
        return Err(lines.bad("the input ends before DATA=END"));
    };
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
            None => Err(lines.bad("a sequence that is no number")),
        };
    }
    let bytes = line
        .strip_prefix(b" ")
        .and_then(|text| if print { unescaped(text) } else { unhex(text) });
    match bytes {
        Some(bytes) => Ok(Line::Bytes(bytes)),
        None => Err(lines.bad("a space and bytes in the format of the header were expected")),
    }
}
