//! The rows as Arrow batches, and as files that the peers load.

use crate::tsbs::data::{self, COLUMNS};
use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use tidalite_sql::arrow::array::{
    ArrayRef, Int64Array, RecordBatch, StringArray, TimestampSecondArray,
};
use tidalite_sql::arrow::ipc::writer::FileWriter;

/// Number of rows of a batch.
const BATCH_ROWS: usize = 8192;

/// The values of all rows, by host.
pub(crate) type Values = Vec<Vec<[i64; 10]>>;

/// The location of a row: its host, and its index among the rows of the host.
type Place = (usize, usize);

/// The order in which rows are loaded.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    /// One host after the other.
    ByHost,
    /// All hosts at each time.
    ByTime,
}

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Arrow,
    Csv,
    /// The line protocol of InfluxDB, which other servers accept, too.
    Lines,
}

/// The rows in an order.
fn places(values: &Values, order: Order) -> Vec<Place> {
    let (hosts, each) = (values.len(), values[0].len());
    match order {
        Order::ByHost => (0..hosts)
            .flat_map(|host| (0..each).map(move |row| (host, row)))
            .collect(),
        Order::ByTime => (0..each)
            .flat_map(|row| (0..hosts).map(move |host| (host, row)))
            .collect(),
    }
}

/// The rows as batches.
pub(crate) fn batches(values: &Values, order: Order) -> Result<Vec<RecordBatch>, Box<dyn Error>> {
    let places = places(values, order);
    let parts = places.chunks(BATCH_ROWS);
    parts.map(|part| batch(values, part)).collect()
}

fn batch(values: &Values, places: &[Place]) -> Result<RecordBatch, Box<dyn Error>> {
    let time = |&(_, row): &Place| time(row);
    let host = |&(host, _): &Place| format!("host_{host}");
    let region = |&(host, _): &Place| data::region(host);
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        (
            "time",
            Arc::new(TimestampSecondArray::from_iter_values(
                places.iter().map(time),
            )),
        ),
        (
            "host",
            Arc::new(StringArray::from_iter_values(places.iter().map(host))),
        ),
        (
            "region",
            Arc::new(StringArray::from_iter_values(places.iter().map(region))),
        ),
    ];
    for (at, name) in COLUMNS.into_iter().enumerate() {
        let column = places.iter().map(|&(host, row)| values[host][row][at]);
        columns.push((name, Arc::new(Int64Array::from_iter_values(column))));
    }
    Ok(RecordBatch::try_from_iter(columns)?)
}

/// Writes the rows to a file.
pub(crate) fn write(
    values: &Values,
    order: Order,
    format: Format,
    path: &Path,
) -> Result<(), Box<dyn Error>> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    match format {
        Format::Arrow => {
            let batches = batches(values, order)?;
            let mut writer = FileWriter::try_new(&mut file, &batches[0].schema())?;
            for batch in &batches {
                writer.write(batch)?;
            }
            writer.finish()?;
        }
        Format::Csv => {
            for (host, row) in places(values, order) {
                write!(file, "{},host_{host},{}", time(row), data::region(host))?;
                for value in values[host][row] {
                    write!(file, ",{value}")?;
                }
                writeln!(file)?;
            }
        }
        Format::Lines => {
            for (host, row) in places(values, order) {
                write!(file, "cpu,host=host_{host},region={}", data::region(host))?;
                for (at, (name, value)) in COLUMNS.iter().zip(values[host][row]).enumerate() {
                    let separator = if at == 0 { ' ' } else { ',' };
                    write!(file, "{separator}{name}={value}i")?;
                }
                writeln!(file, " {}000000000", time(row))?;
            }
        }
    }
    file.flush()?;
    Ok(())
}

/// The time of the row with this index among the rows of its host.
fn time(row: usize) -> i64 {
    data::BEGIN + row as i64 * data::STEP
}
