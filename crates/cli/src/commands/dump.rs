//! `dump`: prints tables as text, in the format of `mdb_dump` and `mdbx_dump`. `load.rs` reads this format.
//!
//! ```text
//! VERSION=3
//! format=bytevalue        or print: printable characters as they are, others as \ and two hex digits
//! database=config         the table; a file has one such section for each
//! type=btree
//! mapsize=33554432
//! duplicates=1            for a table of sets
//! dupsort=1
//! integerkey=1            and other flags, see `foreign.rs`: only on request
//! HEADER=END
//!  6b6579                 key, value, key, value: a space and hex digits
//!  76616c7565
//! DATA=END
//! ```
//!
//! Extensions of the format of those programs:
//!
//! ```text
//! escaped=1               in the header: the table's name has control characters, and is escaped as in format=print
//! sequence=17             in the header (as in mdbx_dump): the next number of the table's sequence, if any was taken
//!  746f706963             a key with a nested table:
//! {                       instead of a value the table's own keys and values, in which tables can be nested again
//!  6b6579
//!  76616c7565
//! }
//! {sequence=17            the opening line for a nested table whose sequence has begun
//! ```
//!
//! A hash table has the header lines below, and its section contains the rows in which the table is stored: records,
//! index and options. (The type is not `hash`, because a section with that type in a dump of Berkeley DB contains
//! pairs.) The names of types are escaped as in format=print.
//!
//! ```text
//! type=hashtable
//! keytype=String
//! valuetype=i64
//! ```
//!
//! A table of topics, a queue, a bucket of objects and a table of containers have `type=topics`, `type=queue`,
//! `type=bucket` and `type=containers`, without types of keys and values. Their sections also contain the rows and
//! nested tables in which they are stored. A dump does not contain the series of containers: `load` creates them from
//! the messages.
//!
//! A buffered table has the same header lines as a hash table, but with `type=buffered`, and its section contains its
//! keys and values; its runs are not dumped. If the header has flags of LMDB, the type is `btree`, so that `mdb_load`
//! can read the section.
//!
//! `mdb_load` ignores `sequence` and `escaped`. It rejects sections with nested tables, and sections of other types.

use super::foreign::{self, Part};
use super::layouts::{is_raw, noun, word};
use crate::args::{DumpArgs, ForeignFlag};
use crate::bytes::{escaped, hex};
use crate::database::{failure, open};
use crate::exit::{Failure, Outcome};
use crate::output::printable;
use crate::terminal::Terminal;
use std::borrow::Cow;
use std::io::Write;
use std::path::Path;
use tidalite::table::TableTypes;
use tidalite::{ReadTxn, Table, TableLayout};

/// Minimum of the number `mapsize` in a header: the default of the loaders of LMDB and libmdbx is too small for most
/// tables.
const MAP_BYTES_MIN: u64 = 32 << 20;

/// Runs the command `tidalite dump`.
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
        let mut lines = Lines {
            path,
            out: terminal.out,
            print: args.print,
            flags: &args.flags,
            first_bytes: [None; 2],
        };
        section(&snap, &name, &mut lines)
            .map_err(|error| error.about(format!("table {}", printable(&name))))?;
    }
    Ok(terminal.out.flush()?)
}

fn section(snap: &ReadTxn, name: &str, lines: &mut Lines<'_>) -> Outcome {
    let path = lines.path;
    let fail = |error: tidalite::Error| failure(path, &error);
    let Some(multi) = snap.is_set_table(name).map_err(fail)? else {
        return Err(Failure::not_found("no such table").hint("tidalite kv stat lists them"));
    };
    if let Some(flag) = lines.flags.iter().find(|flag| flag.of_values() && !multi) {
        return Err(Failure::usage(format!(
            "--as {}: only possible for a table of sets",
            flag.word()
        )));
    }
    let format = if lines.print { "print" } else { "bytevalue" };
    let map_bytes = (snap.file_bytes() * 4).max(MAP_BYTES_MIN);
    let told = match name.contains(char::is_control) {
        true => format!("escaped=1\ndatabase={}", escaped(name.as_bytes())),
        false => format!("database={name}"),
    };
    let types = snap.table_types(name).map_err(fail)?;
    let layout = types.as_ref().map(TableTypes::layout);
    let with_flags = !lines.flags.is_empty();
    let (word, types) = match (layout, types) {
        (Some(layout), _) if with_flags && is_raw(layout) => {
            let noun = noun(layout);
            return Err(Failure::usage(format!("--as: not possible for {noun}")));
        }
        (Some(layout), _) if !layout.has_types() => (word(layout), None),
        (Some(TableLayout::Hash), types) => ("hashtable", types),
        (Some(TableLayout::Buffered), types) if !with_flags => ("buffered", types),
        _ => ("btree", None),
    };
    let kind = match types {
        None => word.to_owned(),
        Some(types) => {
            let [key, value] = [types.key(), types.value()].map(|ty| escaped(ty.as_bytes()));
            format!("{word}\nkeytype={key}\nvaluetype={value}")
        }
    };
    write!(
        lines.out,
        "VERSION=3\nformat={format}\n{told}\ntype={kind}\nmapsize={map_bytes}\n"
    )?;
    if multi {
        lines.out.write_all(b"duplicates=1\ndupsort=1\n")?;
        let Some(table) = snap.set_table(name).map_err(fail)? else {
            return Ok(());
        };
        lines.end_head(table.sequence())?;
        let mut cursor = table.cursor();
        while cursor.next().map_err(fail)? {
            lines.line(Part::Key, cursor.key())?;
            lines.line(Part::Value, cursor.value())?;
        }
    } else if layout == Some(TableLayout::Buffered) {
        lines.end_head(0)?;
        let Some(table) = snap.buffered_table::<[u8], [u8]>(name).map_err(fail)? else {
            return Ok(());
        };
        for entry in table.range(..).map_err(fail)? {
            let (key, value) = entry.map_err(fail)?;
            lines.line(Part::Key, &key)?;
            lines.line(Part::Value, &value)?;
        }
    } else {
        let Some(table) = snap.raw_table(name).map_err(fail)? else {
            return Ok(());
        };
        lines.end_head(table.sequence())?;
        rows(&table, lines)?;
    }
    Ok(lines.out.write_all(b"DATA=END\n")?)
}

/// Writes the rows of a table, including nested tables. The recursion is as deep as the nesting of tables.
fn rows(table: &Table<'_>, lines: &mut Lines<'_>) -> Outcome {
    let path = lines.path;
    let fail = |error: tidalite::Error| failure(path, &error);
    let mut cursor = table.cursor();
    while cursor.next().map_err(fail)? {
        lines.line(Part::Key, cursor.key())?;
        if cursor.is_nested() {
            if let Some(below) = cursor.nested().map_err(fail)? {
                match below.sequence() {
                    0 => lines.out.write_all(b"{\n")?,
                    next => writeln!(lines.out, "{{sequence={next}")?,
                }
                rows(&below, lines)?;
            }
            lines.out.write_all(b"}\n")?;
            continue;
        }
        match cursor.value_ref() {
            Some(value) => lines.line(Part::Value, value)?,
            None => lines.line(Part::Value, &cursor.value().map_err(fail)?)?,
        }
    }
    Ok(())
}

/// The output for the lines of a section, and the format of these lines.
struct Lines<'o> {
    path: &'o Path,
    out: &'o mut dyn Write,
    print: bool,
    /// Flags of the table in LMDB or libmdbx, as listed in the header.
    flags: &'o [ForeignFlag],
    /// Lengths in bytes of the first key and of the first value; `None` before these are known.
    first_bytes: [Option<usize>; 2],
}

impl Lines<'_> {
    fn end_head(&mut self, sequence: u64) -> Outcome {
        for flag in self.flags {
            writeln!(self.out, "{}=1", flag.word())?;
        }
        if sequence > 0 {
            writeln!(self.out, "sequence={sequence}")?;
        }
        Ok(self.out.write_all(b"HEADER=END\n")?)
    }

    /// Writes one key or value as a line.
    fn line(&mut self, part: Part, bytes: &[u8]) -> Outcome {
        let first = *self.first_bytes[part as usize].get_or_insert(bytes.len());
        if let Some(problem) = foreign::problem(self.flags, part, bytes.len(), first) {
            return Err(Failure::bad_input(problem).hint("omit this flag from --as"));
        }
        let mut bytes = Cow::Borrowed(bytes);
        if foreign::turns(self.flags, part) {
            bytes.to_mut().reverse();
        }
        let mut text = Vec::with_capacity(2 * bytes.len() + 2);
        text.push(b' ');
        let shown = match self.print {
            true => escaped(&bytes),
            false => hex(&bytes),
        };
        text.extend_from_slice(shown.as_bytes());
        text.push(b'\n');
        Ok(self.out.write_all(&text)?)
    }
}
