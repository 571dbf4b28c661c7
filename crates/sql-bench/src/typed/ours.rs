//! Tidalite's side of the measurements.

use crate::typed::plan::{self, Plan, name, rated};
use std::error::Error;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tidalite::Database;
use tidalite_sql::arrow::array::{
    ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, StringArray,
};
use tidalite_sql::arrow::datatypes::Float64Type;
use tidalite_sql::{Connection, ScalarValue};

/// Number of rows of a batch.
const BATCH_ROWS: u64 = 8192;

const INSERT: &str = "INSERT INTO turbines VALUES ($1, $2, $3, $4)";
const EMPTY: &str = "SELECT $1";
const SELECT: &str = "SELECT * FROM turbines WHERE id = $1";
const UPDATE: &str = "UPDATE turbines SET rated = $1 WHERE id = $2";

/// A measurement.
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) value: f64,
}

/// A figure: the number of statements or rows per second.
fn rate(name: &'static str, unit: &'static str, count: u64, time: Duration) -> Figure {
    Figure {
        name,
        unit,
        value: count as f64 / time.as_secs_f64(),
    }
}

/// A figure: microseconds for each of `count` statements.
fn micros(name: &'static str, count: u64, time: Duration) -> Figure {
    Figure {
        name,
        unit: "µs",
        value: time.as_secs_f64() * 1e6 / count as f64,
    }
}

/// Runs all measurements on a new file.
pub(crate) fn run(plan: &Plan) -> Result<Vec<Figure>, Box<dyn Error>> {
    let scratch = TempDir::new()?;
    let path = scratch.path().join("typed.tdl");
    let database = Database::open(&path)?;
    let mut sql = Connection::new(&database)?;
    let mut figures = Vec::new();
    load(plan, &mut sql, &mut figures)?;
    println!(
        "ours: {:.1} MB after the load",
        std::fs::metadata(&path)?.len() as f64 / 1e6
    );
    insert(plan, &mut sql, &mut figures)?;
    select(plan, &database, &mut sql, &mut figures)?;
    update(plan, &mut sql, &mut figures)?;
    Ok(figures)
}

fn load(
    plan: &Plan,
    sql: &mut Connection,
    figures: &mut Vec<Figure>,
) -> Result<(), Box<dyn Error>> {
    sql.execute(
        "CREATE TABLE turbines (id BIGINT PRIMARY KEY, site TEXT, rated DOUBLE, name TEXT)",
    )?;
    let begins = (0..plan.rows).step_by(BATCH_ROWS as usize);
    let batches = begins.map(|begin| batch(plan, begin..(begin + BATCH_ROWS).min(plan.rows)));
    let batches: Vec<RecordBatch> = batches.collect::<Result<_, _>>()?;
    let began = Instant::now();
    sql.insert("turbines", batches)?;
    figures.push(rate(plan::ARROW, "rows/s", plan.rows, began.elapsed()));
    let began = Instant::now();
    sql.execute("CREATE INDEX turbines_site ON turbines (site)")?;
    figures.push(rate(plan::INDEX, "rows/s", plan.rows, began.elapsed()));
    Ok(())
}

fn batch(plan: &Plan, ids: std::ops::Range<u64>) -> Result<RecordBatch, Box<dyn Error>> {
    let sites = ids.clone().map(|id| plan.site(id));
    let columns: [(&str, ArrayRef); 4] = [
        (
            "id",
            Arc::new(Int64Array::from_iter_values(
                ids.clone().map(|id| id as i64),
            )),
        ),
        ("site", Arc::new(StringArray::from_iter_values(sites))),
        (
            "rated",
            Arc::new(Float64Array::from_iter_values(ids.clone().map(rated))),
        ),
        (
            "name",
            Arc::new(StringArray::from_iter_values(ids.map(name))),
        ),
    ];
    Ok(RecordBatch::try_from_iter(columns)?)
}

fn insert(
    plan: &Plan,
    sql: &mut Connection,
    figures: &mut Vec<Figure>,
) -> Result<(), Box<dyn Error>> {
    let values = |id: u64| {
        [
            ScalarValue::from(id as i64),
            ScalarValue::from(plan.site(id)),
            ScalarValue::from(rated(id)),
            ScalarValue::from(name(id)),
        ]
    };
    let end = plan.rows + plan.inserts;
    let rows: Vec<_> = (plan.rows..end).map(values).collect();
    let began = Instant::now();
    sql.execute("BEGIN")?;
    for row in &rows {
        sql.query_with(INSERT, row)?;
    }
    sql.execute("COMMIT")?;
    figures.push(rate(plan::INSERT, "rows/s", plan.inserts, began.elapsed()));
    let rows: Vec<_> = (end..end + plan.singles).map(values).collect();
    let began = Instant::now();
    for row in &rows {
        sql.query_with(INSERT, row)?;
    }
    let time = began.elapsed();
    figures.push(rate(plan::DURABLE_INSERT, "rows/s", plan.singles, time));
    let all = 0..end + plan.singles;
    let expected = (all.clone().count(), all.map(rated).sum());
    expect(sql.query("SELECT rated FROM turbines")?, expected)
}

fn select(
    plan: &Plan,
    database: &Database,
    sql: &mut Connection,
    figures: &mut Vec<Figure>,
) -> Result<(), Box<dyn Error>> {
    let mut empty = |id: u64| {
        expect(
            sql.query_with(EMPTY, &[ScalarValue::from(id as i64)])?,
            (1, 0.0),
        )
    };
    empty(0)?;
    let began = Instant::now();
    (0..plan.selects).try_for_each(empty)?;
    figures.push(micros(plan::EMPTY, plan.selects, began.elapsed()));
    let one = threads(plan, database, 1)?;
    let two = threads(plan, database, 2)?;
    figures.push(micros(plan::SELECT, plan.selects, one));
    figures.push(rate(plan::SELECT_ONE, "per second", plan.selects, one));
    figures.push(rate(plan::SELECT_TWO, "per second", 2 * plan.selects, two));
    let began = Instant::now();
    for number in 0..plan.singles {
        let id = plan.scattered(number);
        expect(
            sql.query(&format!("SELECT * FROM turbines WHERE id = {id}"))?,
            (1, rated(id)),
        )?;
    }
    let time = began.elapsed();
    figures.push(micros(plan::SELECT_TEXT, plan.singles, time));
    let rows = plan.rows + plan.inserts + plan.singles;
    let began = Instant::now();
    for number in 0..plan.singles {
        let site = plan.scattered(number) % plan.sites();
        let ids = (site..rows).step_by(plan.sites() as usize);
        let expected = (ids.clone().count(), ids.map(rated).sum());
        let parameter = [ScalarValue::from(format!("site {site}"))];
        let found = sql.query_with("SELECT * FROM turbines WHERE site = $1", &parameter)?;
        expect(found, expected)?;
    }
    let time = began.elapsed();
    figures.push(micros(plan::SELECT_SITE, plan.singles, time));
    Ok(())
}

/// The total time of several threads that look up rows, each with a connection of its own.
fn threads(plan: &Plan, database: &Database, count: u64) -> Result<Duration, Box<dyn Error>> {
    let barrier = Barrier::new(count as usize);
    let times: Result<Vec<Duration>, String> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..count)
            .map(|thread| {
                let barrier = &barrier;
                // The error of a thread must be `Send`.
                let work = move || {
                    look_ups(plan, database, thread, barrier).map_err(|error| error.to_string())
                };
                scope.spawn(work)
            })
            .collect();
        let joined = running.into_iter().map(|thread| match thread.join() {
            Ok(time) => time,
            Err(_) => Err("a thread panicked".to_owned()),
        });
        joined.collect()
    });
    Ok(times?.into_iter().max().unwrap_or_default())
}

/// The time in which one thread looks up its rows, measured from the moment when all threads are ready.
fn look_ups(
    plan: &Plan,
    database: &Database,
    thread: u64,
    barrier: &Barrier,
) -> Result<Duration, Box<dyn Error>> {
    let connected = connected(plan, database);
    // The barrier is passed even after an error, because the other threads wait for this one.
    barrier.wait();
    let mut sql = connected?;
    let began = Instant::now();
    for number in thread * plan.selects..(thread + 1) * plan.selects {
        look_up(plan, &mut sql, number)?;
    }
    Ok(began.elapsed())
}

/// A connection that has already planned the statement.
fn connected(plan: &Plan, database: &Database) -> Result<Connection, Box<dyn Error>> {
    let mut sql = Connection::new(database)?;
    look_up(plan, &mut sql, 0)?;
    Ok(sql)
}

/// Looks one row up by its key.
fn look_up(plan: &Plan, sql: &mut Connection, number: u64) -> Result<(), Box<dyn Error>> {
    let id = plan.scattered(number);
    let found = sql.query_with(SELECT, &[ScalarValue::from(id as i64)])?;
    expect(found, (1, rated(id)))
}

/// Reads a result, and checks its number of rows and the sum of the column `rated`.
fn expect(found: tidalite_sql::Rows, expected: (usize, f64)) -> Result<(), Box<dyn Error>> {
    let (mut rows, mut sum) = (0, 0.0);
    for batch in found {
        let batch = batch?;
        rows += batch.num_rows();
        if let Some(column) = batch.column_by_name("rated") {
            let column = column.as_primitive::<Float64Type>();
            sum += (0..column.len()).map(|row| column.value(row)).sum::<f64>();
        }
    }
    match (rows, sum) == expected {
        true => Ok(()),
        false => Err(format!("{rows} rows with sum {sum} instead of {expected:?}").into()),
    }
}

fn update(
    plan: &Plan,
    sql: &mut Connection,
    figures: &mut Vec<Figure>,
) -> Result<(), Box<dyn Error>> {
    // SQLite writes nothing if a value does not change, so each pass sets another value.
    let updates = |sql: &mut Connection, rated: f64| {
        for number in 0..plan.singles {
            let id = plan.scattered(number);
            let values = [ScalarValue::from(rated), ScalarValue::from(id as i64)];
            if sql.query_with(UPDATE, &values)?.affected_rows() != Some(1) {
                return Err(format!("row {id} was not updated").into());
            }
        }
        Ok::<(), Box<dyn Error>>(())
    };
    let began = Instant::now();
    sql.execute("BEGIN")?;
    updates(sql, 0.5)?;
    sql.execute("COMMIT")?;
    let time = began.elapsed();
    figures.push(rate(plan::UPDATE, "rows/s", plan.singles, time));
    let began = Instant::now();
    updates(sql, 0.75)?;
    let time = began.elapsed();
    figures.push(rate(plan::DURABLE_UPDATE, "rows/s", plan.singles, time));
    Ok(())
}
