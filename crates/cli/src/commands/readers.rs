//! `readers`: lists the open readers of the database in all processes.

use crate::args::ReadersArgs;
use crate::database::{failure, open};
use crate::exit::Outcome;
use crate::output::{Cell, Column};
use crate::terminal::Terminal;
use std::time::Duration;
use tidalite::monitor::{Reader, ReaderKind, WriterSeen};

/// Runs the command `tidalite readers`.
pub(crate) fn run(args: &ReadersArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let path = &args.file.file;
    let database = open(path)?;
    let readers = database.readers().map_err(|error| failure(path, &error))?;
    let columns = vec![
        Column::text("what"),
        Column::number("process"),
        Column::number("thread"),
        Column::number("seconds"),
        Column::number("commit"),
        Column::number("behind"),
        Column::number("holds_bytes"),
        Column::number("freed_since_bytes"),
    ];
    let mut sheet = terminal.sheet(args.format.format, columns);
    if let Some(writer) = database.writer() {
        sheet.row(&writer_row(&writer))?;
    }
    for reader in &readers {
        sheet.row(&reader_row(reader))?;
    }
    Ok(sheet.finish()?)
}

fn seconds(duration: Duration) -> Cell {
    Cell::Computed(duration.as_secs_f64())
}

fn writer_row(writer: &WriterSeen) -> [Cell; 8] {
    [
        Cell::Text("write".into()),
        Cell::Unsigned(writer.process.into()),
        Cell::Unsigned(writer.thread.into()),
        seconds(writer.since),
        Cell::Missing,
        Cell::Missing,
        Cell::Missing,
        Cell::Missing,
    ]
}

fn reader_row(reader: &Reader) -> [Cell; 8] {
    let what = match reader.kind {
        ReaderKind::Read => "read",
        ReaderKind::Evictable => "evictable read",
        ReaderKind::Parked => "parked",
    };
    [
        Cell::Text(what.into()),
        Cell::Unsigned(reader.process.into()),
        Cell::Unsigned(reader.thread.into()),
        seconds(reader.age),
        Cell::Unsigned(reader.txn.0),
        Cell::Count(reader.lag_txns),
        Cell::Bytes(reader.retained_bytes),
        Cell::Bytes(reader.freed_bytes),
    ]
}
