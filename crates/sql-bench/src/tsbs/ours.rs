//! Tidalite: loads the rows, and runs the queries.

use crate::cells::answer;
use crate::tsbs::data::{self, COLUMNS};
use crate::tsbs::expected::Summary;
use crate::tsbs::files::Values;
use crate::tsbs::queries::Query;
use crate::tsbs::report::{Own, Timed};
use crate::tsbs::sql::OURS;
use std::error::Error;
use std::time::Instant;
use tempfile::TempDir;
use tidalite::{ColumnType, Database, Schema, Steps, Unit};
use tidalite_sql::Connection;
use tidalite_sql::arrow::array::{Array, AsArray, RecordBatch};
use tidalite_sql::arrow::compute::cast;
use tidalite_sql::arrow::datatypes::{DataType, Float64Type};

/// Loads the rows and runs all queries, each of them once before the measurement.
pub(crate) fn run(values: &Values, queries: &[Query]) -> Result<Vec<Own>, Box<dyn Error>> {
    let scratch = TempDir::new()?;
    let path = scratch.path().join("cpu.tdl");
    let database = Database::open(&path)?;
    let began = Instant::now();
    load(values, &database)?;
    let seconds = began.elapsed().as_secs_f64();
    let rows = values.iter().map(Vec::len).sum::<usize>();
    println!(
        "ours: {rows} rows of ten values loaded in {seconds:.2} s, {:.0} rows/s, {:.2} B a value",
        rows as f64 / seconds,
        std::fs::metadata(&path)?.len() as f64 / (rows * COLUMNS.len()) as f64
    );
    let mut connection = Connection::new(&database)?;
    let mut own = Vec::new();
    for query in queries {
        answer(&mut connection, &OURS.text(query.kind, &query.beforehand()))?;
        let mut planned = Timed::new(query.name);
        for place in &query.places {
            let (time, found) = timed(&mut connection, &OURS.text(query.kind, place))?;
            planned.push(time, found);
        }
        // The plan of this text has been kept since the run before the measurement.
        let text = OURS.text(query.kind, &query.beforehand());
        let mut kept = Timed::new(query.name);
        for _ in &query.places {
            let (time, found) = timed(&mut connection, &text)?;
            kept.push(time, found);
        }
        own.push(Own { planned, kept });
    }
    Ok(own)
}

/// The milliseconds of a query, and its result.
fn timed(connection: &mut Connection, text: &str) -> Result<(f64, Summary), Box<dyn Error>> {
    let began = Instant::now();
    let batches = answer(connection, text)?;
    let elapsed = began.elapsed().as_secs_f64() * 1e3;
    Ok((elapsed, summary(&batches)?))
}

/// Inserts rows one by one, in one transaction.
pub(crate) fn load(values: &[Vec<[i64; 10]>], database: &Database) -> tidalite::Result<()> {
    let columns = COLUMNS.map(|name| (name, ColumnType::I64));
    let schema = Schema::new(Unit::Seconds, columns);
    let mut tx = database.begin_write()?;
    for (host, rows) in values.iter().enumerate() {
        let name = format!(
            r#"cpu{{host="host_{host}",region="{}"}}"#,
            data::region(host)
        );
        let mut series = tx.series_with(&name, &schema)?;
        for (time, row) in (data::BEGIN..).step_by(data::STEP as usize).zip(rows) {
            series.insert_row(Steps(time), &row.map(|value| value as u64))?;
        }
    }
    tx.commit()?;
    Ok(())
}

fn summary(batches: &[RecordBatch]) -> Result<Summary, Box<dyn Error>> {
    let (mut rows, mut sum) = (0, 0.0);
    for batch in batches {
        rows += batch.num_rows();
        for column in batch
            .columns()
            .iter()
            .filter(|column| column.data_type().is_numeric())
        {
            let floats = cast(column, &DataType::Float64)?;
            let floats = floats.as_primitive::<Float64Type>();
            sum += (0..floats.len())
                .filter(|&row| floats.is_valid(row))
                .map(|row| floats.value(row))
                .sum::<f64>();
        }
    }
    Ok((rows, sum))
}
