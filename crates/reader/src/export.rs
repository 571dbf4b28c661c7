//! Reads all contents of a file and formats them as canonical text.
//!
//! ```text
//! user data "..."
//! pin "before" = transaction 3
//! table "config": u64 -> String, sequence 2
//!   "\00\01" = "text"
//!   "many" = set "a" "b"
//!   "inside" = table, sequence 0
//!     "x" = 70000 bytes, hash 0123456789abcdef
//! table "stock": String -> u64, hash table
//!   next record 2, 1 dead, 1 keys in the main table, 0 entries in 0 runs
//!   2 records, hash 0123456789abcdef
//!   record 0: "bolt" = "\05"
//!   record 1: "nut" removed
//!   2 keys, hash 0123456789abcdef
//!   key "bolt": records [0], versions [0]
//! table "broker": no types, topics
//!   "hall/1/door" = "shut", id 0, change 1, at 5, qos 0
//! table "jobs": no types, queue
//!   1 = "work", at 5, priority 128
//!   group "": 0 acknowledged, 0 delivered again, 0 dead
//!     1: ready, 0 deliveries
//! table "turbines": no types, relation
//!   column "id": i64, not null
//!   key [0], sequence 0
//!   unique index "by_name" [1]
//!   7 | "R7"
//! series 1 "wind{site=\"a\"}", ms, replace
//!   annotation "unit" = "m/s"
//!   column "value": f64
//!   1000 rows, hash 0123456789abcdef
//!   5 | 1.5
//! policy "old" = "wind*", keep 5 ns from now, 0 bytes, cold after 0 ns
//! ```
//!
//! A long string of bytes is shown as its length and its hash. For a long series, only the first and last rows are
//! shown; the hash covers the lines of all rows.

use crate::bucket::Bucket;
use crate::catalog::{self, Column, Layout, Policy, Roots, SeriesEntry};
use crate::chunk::words;
use crate::containers::Containers;
use crate::delta::{Delta, Row};
use crate::error::{Error, Result};
use crate::hash_table::HashTable;
use crate::image::Image;
use crate::queue::Queue;
use crate::relation::Relation;
use crate::runs;
use crate::series::SeriesReader;
use crate::shown::{Bytes, lines};
use crate::space::Space;
use crate::table::{Rows, Value};
use crate::tag_index;
use crate::texts::Texts;
use crate::topics::Topics;
use std::collections::BTreeMap;
use std::fmt;

/// All contents of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contents {
    /// The bytes of user data in the newest commit.
    pub user_data: Vec<u8>,
    /// Names of the pins (named snapshots), and their transactions.
    pub pins: Vec<(String, u64)>,
    /// The user's tables, ordered by name.
    pub tables: Vec<Table>,
    /// All series, ordered by number.
    pub series: Vec<Series>,
    /// The retention policies, ordered by name.
    pub policies: Vec<Policy>,
}

/// A table of the user.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Name of the table.
    pub name: String,
    /// Names of the types of keys and values, if the file records them.
    pub types: Option<(String, String)>,
    /// The contents.
    pub contents: TableContents,
}

/// The contents of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum TableContents {
    /// Rows of an ordered or a buffered table.
    Rows(Rows),
    /// Records of a hash table, and their index.
    Hash(HashTable),
    /// Topics with retained messages.
    Topics(Topics),
    /// A queue.
    Queue(Queue),
    /// Objects.
    Bucket(Bucket),
    /// Containers of messages.
    Containers(Containers),
    /// A relation.
    Relation(Relation),
}

/// A series with its rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The catalog entry: name, GUID and schema.
    pub entry: SeriesEntry,
    /// The annotations, ordered by key.
    pub annotations: Vec<(String, String)>,
    /// The timestamp and the values of each row.
    pub rows: Vec<(i64, Vec<Cell>)>,
}

/// A value in a row of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// The value is null.
    Null,
    /// Bits of a double, in a column of type `f64` or `f32`.
    Float(u64),
    /// A signed integer.
    I64(i64),
    /// An unsigned integer.
    U64(u64),
    /// A boolean.
    Bool(bool),
    /// A decimal: the value in units of its last digit, and the number of digits after the decimal point.
    Decimal(i64, u8),
    /// A string, bytes or a GUID.
    Text(Vec<u8>),
}

impl Contents {
    /// Reads all contents of a file.
    ///
    /// # Errors
    /// If a part of the file is damaged.
    pub fn read(image: &Image) -> Result<Self> {
        let meta = image.meta();
        let pins = image.pins()?.into_iter();
        let mut contents = Self {
            user_data: meta.user_data.clone(),
            pins: pins.map(|pin| (pin.name, pin.transaction)).collect(),
            ..Self::default()
        };
        let Some(roots) = Roots::read(&meta.app)? else {
            return Ok(contents);
        };
        for table in catalog::tables(image, &roots)? {
            let rows = table.tree.rows(image)?;
            let rows = match table.layout {
                Layout::Rows => TableContents::Rows(rows),
                Layout::Hash => TableContents::Hash(HashTable::read(&rows)?),
                Layout::Buffered => TableContents::Rows(runs::buffered(&rows)?),
                Layout::Topics => TableContents::Topics(Topics::read(&rows)?),
                Layout::Queue => TableContents::Queue(Queue::read(&rows)?),
                Layout::Bucket => TableContents::Bucket(Bucket::read(&rows)?),
                Layout::Containers => TableContents::Containers(Containers::read(&rows)?),
                Layout::Relation => TableContents::Relation(Relation::read(&rows)?),
            };
            contents.tables.push(Table {
                contents: rows,
                name: table.name,
                types: table.types,
            });
        }
        let annotations = catalog::annotations(image, &roots)?;
        let texts = Texts::read(image, &roots)?;
        let delta = Delta::read(image, &roots.delta)?;
        let mut records: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        for (key, record) in catalog::plain_rows(image, &roots.records)? {
            records.insert(catalog::series_id(&key)?, record);
        }
        let mut reader = SeriesReader::new(image);
        let series = catalog::series(image, &roots)?;
        tag_index::verify(image, &roots, &series)?;
        for entry in series {
            let own = annotations.iter().filter(|(id, ..)| *id == entry.id);
            let types: Vec<u8> = entry.columns.iter().map(Column::words).collect();
            let leaves = match records.remove(&entry.id) {
                Some(record) => reader.rows(entry.id, &record, &types)?,
                None => Vec::new(),
            };
            let rows = delta.over(entry.id, leaves).into_iter();
            let rows = rows.map(|row| Ok((row.time, cells(&entry, &row, &texts)?)));
            contents.series.push(Series {
                rows: rows.collect::<Result<_>>()?,
                annotations: own
                    .map(|(_, key, text)| (key.clone(), text.clone()))
                    .collect(),
                entry,
            });
        }
        if !records.is_empty() {
            return Err(Error::damaged(0, "a record of no series"));
        }
        reader.check_extents(&catalog::plain_rows(image, &roots.extents)?)?;
        contents.policies = catalog::policies(image, &roots)?;
        let space = Space::read(image)?;
        if let Some(page) = image
            .pages_read()
            .iter()
            .find(|page| !space.is_used(**page))
        {
            let address = page * image.page_bytes() as u64;
            return Err(Error::damaged(address, "a free page is read"));
        }
        Ok(contents)
    }
}

/// Converts the words of a row to values of the types of their columns.
fn cells(entry: &SeriesEntry, row: &Row, texts: &Texts) -> Result<Vec<Cell>> {
    let mut cells = Vec::new();
    for (number, column) in entry.columns.iter().enumerate() {
        let fill = words::fill(column.words());
        let word = row.words.get(number).copied().unwrap_or(fill);
        let cell = match column.kind {
            _ if words::null(column.words()) == Some(word) => Cell::Null,
            1 | 4 => Cell::Float(word),
            2 => Cell::I64(word.cast_signed()),
            3 => Cell::U64(word),
            5 if word <= 1 => Cell::Bool(word == 1),
            5 => return Err(Error::damaged(0, "a bool that is neither 0 nor 1")),
            catalog::DECIMAL => Cell::Decimal(word.cast_signed(), column.scale),
            _ => {
                let mut text = texts.text(entry.id, number, word)?;
                if column.kind == catalog::GUID {
                    if text.is_empty() {
                        text = vec![0; 16];
                    }
                    if text.len() != 16 {
                        return Err(Error::damaged(0, "a GUID of another length"));
                    }
                }
                Cell::Text(text)
            }
        };
        cells.push(cell);
    }
    Ok(cells)
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "user data {}", Bytes(&self.user_data))?;
        for (name, transaction) in &self.pins {
            writeln!(
                f,
                "pin {} = transaction {transaction}",
                Bytes(name.as_bytes())
            )?;
        }
        for table in &self.tables {
            write!(f, "table {}: ", Bytes(table.name.as_bytes()))?;
            match &table.types {
                Some((key, value)) => write!(f, "{key} -> {value}")?,
                None => f.write_str("no types")?,
            }
            match &table.contents {
                TableContents::Rows(all) => {
                    writeln!(f, ", sequence {}", all.sequence)?;
                    rows(f, all, 1)?;
                }
                TableContents::Hash(hash) => hash_table(f, hash)?,
                TableContents::Topics(topics) => write!(f, ", topics\n{topics}")?,
                TableContents::Queue(queue) => write!(f, ", queue\n{queue}")?,
                TableContents::Bucket(bucket) => write!(f, ", bucket\n{bucket}")?,
                TableContents::Containers(of) => write!(f, ", containers\n{of}")?,
                TableContents::Relation(of) => write!(f, ", relation\n{of}")?,
            }
        }
        for series in &self.series {
            series.fmt(f)?;
        }
        for policy in &self.policies {
            let name = Bytes(policy.name.as_bytes());
            let pattern = Bytes(policy.pattern.as_bytes());
            let from = if policy.from_newest {
                "the newest"
            } else {
                "now"
            };
            let Policy {
                keep_nanos,
                bytes_max,
                cold_nanos,
                downsample,
                ..
            } = policy;
            write!(
                f,
                "policy {name} = {pattern}, keep {keep_nanos} ns from {from}, {bytes_max} bytes, cold after {cold_nanos} ns"
            )?;
            for line in downsample.lines() {
                write!(f, ", {line}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

fn rows(f: &mut fmt::Formatter<'_>, table: &Rows, depth: usize) -> fmt::Result {
    for (key, value) in &table.rows {
        let indent = 2 * depth;
        write!(f, "{:indent$}{} = ", "", Bytes(key))?;
        match value {
            Value::Bytes(bytes) => writeln!(f, "{}", Bytes(bytes))?,
            Value::Set(values) => {
                f.write_str("set")?;
                for value in values {
                    write!(f, " {}", Bytes(value))?;
                }
                writeln!(f)?;
            }
            Value::Table(nested) => {
                writeln!(f, "table, sequence {}", nested.sequence)?;
                rows(f, nested, depth + 1)?;
            }
        }
    }
    Ok(())
}

fn hash_table(f: &mut fmt::Formatter<'_>, table: &HashTable) -> fmt::Result {
    writeln!(f, ", hash table")?;
    let HashTable {
        next_record,
        main_keys,
        runs,
        run_entries,
        dead,
        ..
    } = table;
    writeln!(
        f,
        "  next record {next_record}, {dead} dead, {main_keys} keys in the main table, {run_entries} entries in {runs} runs"
    )?;
    let records = table.records.iter().map(|record| {
        let key = Bytes(&record.key);
        match &record.value {
            Some(value) => format!("  record {}: {key} = {}\n", record.number, Bytes(value)),
            None => format!("  record {}: {key} removed\n", record.number),
        }
    });
    lines(f, "records", &records.collect::<Vec<_>>())?;
    let keys = table.keys.iter().map(|key| {
        let [records, history] = [&key.records, &key.history].map(|numbers| {
            let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
            numbers.join(" ")
        });
        let key = Bytes(&key.key);
        format!("  key {key}: records [{records}], versions [{history}]\n")
    });
    lines(f, "keys", &keys.collect::<Vec<_>>())
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entry = &self.entry;
        write!(f, "series {}", entry.id)?;
        if let Some(name) = &entry.name {
            write!(f, " {}", Bytes(name.as_bytes()))?;
        }
        if let Some(guid) = &entry.guid {
            f.write_str(" guid ")?;
            guid.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        }
        write!(f, ", {}, {}", entry.unit, entry.merge)?;
        if entry.equal_times {
            f.write_str(", equal times")?;
        }
        writeln!(f)?;
        for (key, text) in &self.annotations {
            let (key, text) = (Bytes(key.as_bytes()), Bytes(text.as_bytes()));
            writeln!(f, "  annotation {key} = {text}")?;
        }
        for column in &entry.columns {
            let name = Bytes(column.name.as_bytes());
            let kind = catalog::TYPES[usize::from(column.kind) - 1];
            write!(f, "  column {name}: {kind}")?;
            if column.kind == catalog::DECIMAL {
                write!(f, "({})", column.scale)?;
            }
            writeln!(f, "{}", if column.nulls { ", nulls" } else { "" })?;
        }
        let lines = self.rows.iter().map(|(time, cells)| {
            let cells: Vec<String> = cells.iter().map(Cell::to_string).collect();
            format!("  {time} | {}\n", cells.join(" | "))
        });
        self::lines(f, "rows", &lines.collect::<Vec<_>>())
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Float(bits) if f64::from_bits(*bits).is_nan() => write!(f, "nan {bits:016x}"),
            Self::Float(bits) => write!(f, "{:?}", f64::from_bits(*bits)),
            Self::I64(number) => write!(f, "{number}"),
            Self::U64(number) => write!(f, "{number}"),
            Self::Bool(bool) => write!(f, "{bool}"),
            Self::Decimal(units, scale) => write!(f, "{units}e-{scale}"),
            Self::Text(text) => write!(f, "{}", Bytes(text)),
        }
    }
}
