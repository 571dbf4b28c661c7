//! The tables `tidalite_stats` and `tidalite_pins`, which describe the newest commit of the database and its pins.

use crate::catalog::computed::ComputedTable;
use crate::error::{Error, ErrorKind, Result};
use crate::types::time_type;
use arrow::array::{ArrayRef, RecordBatch, StringArray, TimestampNanosecondArray, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use std::sync::Arc;
use tidalite::Database;

/// Name of the table with statistics.
pub(crate) const STATS: &str = "tidalite_stats";

/// Name of the table of pins.
pub(crate) const PINS: &str = "tidalite_pins";

/// Whether a table that describes the database has this name.
pub(crate) fn is_named(name: &str) -> bool {
    [STATS, PINS].contains(&name)
}

/// The table with this name that describes a database. Without a database the table has columns, but its rows cannot be
/// read.
pub(crate) fn table(name: &str, database: Option<&Database>) -> Option<ComputedTable> {
    type Columns = fn(&Database) -> Result<Vec<ArrayRef>>;
    let (schema, columns): (Schema, Columns) = match name {
        STATS => (stats_schema(), stats),
        PINS => (pins_schema(), pins),
        _ => return None,
    };
    let (schema, database) = (Arc::new(schema), database.cloned());
    Some(ComputedTable::new(SchemaRef::clone(&schema), move || {
        let missing = || Error::new(ErrorKind::Execution, "there is no database");
        let columns = columns(database.as_ref().ok_or_else(missing)?)?;
        let schema = SchemaRef::clone(&schema);
        Ok(vec![RecordBatch::try_new(schema, columns)?])
    }))
}

fn time(name: &str) -> Field {
    Field::new(name, time_type(TimeUnit::Nanosecond), false)
}

/// Names of the numeric columns in order. They follow the version and the time of its commit.
const FIGURES: [&str; 20] = [
    "page_size",
    "file_bytes",
    "free_bytes",
    "pending_bytes",
    "log_bytes",
    "longest_free_bytes",
    "large_bytes",
    "large_free_bytes",
    "tables",
    "table_entries",
    "series",
    "rows",
    "leaf_rows",
    "leaf_bytes",
    "delta_rows",
    "delta_runs",
    "series_height_max",
    "pins",
    "readers",
    "oldest_reader_txn",
];

fn stats_schema() -> Schema {
    let figures = FIGURES
        .iter()
        .map(|name| Field::new(*name, DataType::UInt64, *name == "oldest_reader_txn"));
    let commit = [
        Field::new("txn", DataType::UInt64, false),
        time("commit_time"),
    ];
    Schema::new(commit.into_iter().chain(figures).collect::<Vec<_>>())
}

fn stats(database: &Database) -> Result<Vec<ArrayRef>> {
    let stat = database.stat()?;
    let readers = database.readers()?;
    let page = stat.page_size as u64;
    let bytes = |pages: u64| pages.saturating_mul(page);
    let figures: [Option<u64>; FIGURES.len()] = [
        Some(page),
        Some(stat.file_bytes),
        Some(bytes(stat.pages_free)),
        Some(bytes(stat.pages_pending)),
        Some(bytes(stat.log_pages)),
        Some(bytes(stat.longest_free_pages)),
        Some(stat.large_bytes),
        Some(bytes(stat.large_pages_free)),
        Some(stat.tables),
        Some(stat.table_entries),
        Some(stat.series),
        Some(stat.rows()),
        Some(stat.leaf_rows),
        Some(stat.leaf_bytes),
        Some(stat.delta_rows),
        Some(stat.runs),
        Some(u64::from(stat.series_height_max)),
        Some(database.pins()?.len() as u64),
        Some(readers.len() as u64),
        readers.iter().map(|reader| reader.txn.0).min(),
    ];
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(UInt64Array::from(vec![stat.txn.0])),
        times(vec![stat.commit_time.0]),
    ];
    for figure in figures {
        columns.push(Arc::new(UInt64Array::from(vec![figure])));
    }
    Ok(columns)
}

fn pins_schema() -> Schema {
    Schema::new(vec![
        Field::new("name", DataType::Utf8, false),
        Field::new("txn", DataType::UInt64, false),
        time("commit_time"),
    ])
}

fn pins(database: &Database) -> Result<Vec<ArrayRef>> {
    let pins = database.pins()?;
    let names: StringArray = pins.iter().map(|pin| Some(pin.name.as_str())).collect();
    let txns: UInt64Array = pins.iter().map(|pin| pin.txn.0).collect();
    let commit_times = pins.iter().map(|pin| pin.time_ns).collect();
    Ok(vec![Arc::new(names), Arc::new(txns), times(commit_times)])
}

fn times(nanos: Vec<i64>) -> ArrayRef {
    Arc::new(TimestampNanosecondArray::from(nanos).with_timezone(crate::types::ZONE))
}
