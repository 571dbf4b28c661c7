//! Loads the rows of time series: row by row with the library, and as Arrow batches with SQL.

use crate::cells::{self, Cell};
use crate::options::Options;
use crate::tsbs::data::{self, COLUMNS};
use crate::tsbs::ours;
use std::error::Error;
use std::sync::Arc;
use std::time::Instant;
use tempfile::TempDir;
use tidalite::Database;
use tidalite_sql::Connection;
use tidalite_sql::arrow::array::{
    ArrayRef, Int64Array, RecordBatch, StringArray, TimestampSecondArray,
};

/// Number of rows of a batch.
const BATCH_ROWS: usize = 8192;

/// The values of all rows, by host.
type Values = Vec<Vec<[i64; 10]>>;

/// A row: its host, and its place among the rows of the host.
type Place = (usize, usize);

/// Loads the rows in each way into a new file, in one durable transaction, and prints the rates.
pub(crate) fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let values = data::all(options)?;
    let (hosts, each) = (values.len(), values[0].len());
    println!(
        "\n{} rows of ten integers loaded in one durable transaction\n",
        hosts * each
    );
    println!("| load | rows/s | bytes a value |\n|---|---:|---:|");
    measure(
        "row by row, one host after the other",
        &values,
        |database| {
            let began = Instant::now();
            ours::load(&values, database)?;
            Ok(began.elapsed().as_secs_f64())
        },
    )?;
    let by_host = (0..hosts).flat_map(|host| (0..each).map(move |row| (host, row)));
    let by_time = (0..each).flat_map(|row| (0..hosts).map(move |host| (host, row)));
    let orders: [(&str, Vec<Place>); 2] = [
        ("Arrow, one host after the other", by_host.collect()),
        ("Arrow, all hosts at each time", by_time.collect()),
    ];
    for (name, order) in orders {
        let parts = order.chunks(BATCH_ROWS);
        let batches: Vec<RecordBatch> = parts
            .map(|part| batch(&values, part))
            .collect::<Result<_, _>>()?;
        measure(name, &values, |database| {
            let mut connection = Connection::new(database)?;
            connection.execute(&create())?;
            let began = Instant::now();
            connection.insert("cpu", batches)?;
            Ok(began.elapsed().as_secs_f64())
        })?;
    }
    Ok(())
}

/// Loads the rows with `load`, which returns its seconds; checks them, and prints a line.
fn measure(
    name: &str,
    values: &Values,
    load: impl FnOnce(&Database) -> Result<f64, Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let scratch = TempDir::new()?;
    let path = scratch.path().join("cpu.tdl");
    let database = Database::open(&path)?;
    let seconds = load(&database)?;
    let all = || values.iter().flatten();
    let rows = all().count();
    let sum: i64 = all().map(|row| row[9]).sum();
    let mut connection = Connection::new(&database)?;
    let query = "SELECT count(*), sum(usage_guest_nice) FROM cpu WHERE host <> ''";
    let found = cells::rows(&cells::answer(&mut connection, query)?)?;
    let expected = vec![Cell::Number(rows as f64), Cell::Number(sum as f64)];
    if let Some(difference) = cells::difference(&found, &[expected]) {
        return Err(format!("{name}: {difference}").into());
    }
    println!(
        "| {name} | {:.0} | {:.2} |",
        rows as f64 / seconds,
        std::fs::metadata(&path)?.len() as f64 / (rows * COLUMNS.len()) as f64
    );
    Ok(())
}

/// The statement that creates the metric.
fn create() -> String {
    let columns: String = COLUMNS
        .iter()
        .map(|name| format!(", {name} BIGINT NOT NULL"))
        .collect();
    format!(
        "CREATE TABLE cpu (time TIMESTAMP(0), host TEXT, region TEXT{columns}) WITH (series = true)"
    )
}

fn batch(values: &Values, places: &[Place]) -> Result<RecordBatch, Box<dyn Error>> {
    let time = |&(_, row): &Place| data::BEGIN + row as i64 * data::STEP;
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
