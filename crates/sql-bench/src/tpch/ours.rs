//! Tidalite: loads the tables, and runs the queries over them and over Parquet files.

use crate::cells;
use crate::options::Options;
use crate::tpch::queries::over_parquet;
use crate::tpch::report::{Engine, Outcome};
use crate::tpch::tables::TABLES;
use std::error::Error;
use std::path::Path;
use std::time::Instant;
use tidalite::Database;
use tidalite_sql::Connection;

/// Loads the CSV files of a folder, and runs all queries.
pub(crate) fn run(
    options: &Options,
    queries: &[String],
    folder: &Path,
) -> Result<Vec<Engine>, Box<dyn Error>> {
    let path = folder.join("tpch.tdl");
    let database = Database::open(&path)?;
    let mut connection = Connection::new(&database)?;
    let (mut rows, began) = (0, Instant::now());
    for table in TABLES {
        let file = folder.join(table.csv());
        connection.execute(&table.create())?;
        let copy = format!("COPY {} FROM '{}'", table.name, file.display());
        rows += connection.execute(&copy)?;
    }
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "ours: {rows} rows loaded from CSV in {seconds:.2} s, {:.0} rows/s, {:.1} MB",
        rows as f64 / seconds,
        std::fs::metadata(&path)?.len() as f64 / 1e6
    );
    let (mut bytes, began) = (0, Instant::now());
    for table in TABLES {
        let file = folder.join(format!("{}.parquet", table.name));
        connection.execute(&format!("COPY {} TO '{}'", table.name, file.display()))?;
        bytes += std::fs::metadata(&file)?.len();
    }
    println!(
        "ours: copied to Parquet in {:.2} s, {:.1} MB",
        began.elapsed().as_secs_f64(),
        bytes as f64 / 1e6
    );
    let mut engine = |name, query: &dyn Fn(&String) -> String| {
        let texts = queries.iter().map(query);
        let outcomes = texts.map(|text| measure(&mut connection, &text, options.tpch_rounds));
        Engine {
            name,
            outcomes: outcomes.collect(),
        }
    };
    Ok(vec![
        engine("ours, typed", &String::clone),
        engine("ours, Parquet", &|query| over_parquet(query, folder)),
    ])
}

fn measure(connection: &mut Connection, query: &str, rounds: usize) -> Outcome {
    match times(connection, query, rounds) {
        Ok(outcome) => outcome,
        Err(error) => Outcome::Failed(error.to_string()),
    }
}

/// Runs a query once before the measurement, and then in each round.
fn times(
    connection: &mut Connection,
    query: &str,
    rounds: usize,
) -> Result<Outcome, Box<dyn Error>> {
    let found = cells::rows(&cells::answer(connection, query)?)?;
    let mut times = Vec::new();
    for round in 0..rounds {
        // A plan is kept for its text, so a comment makes the connection plan the query again.
        let text = format!("{query} /* {round} */");
        let began = Instant::now();
        let found = cells::answer(connection, &text)?;
        times.push(began.elapsed().as_secs_f64() * 1e3);
        drop(found);
    }
    Ok(Outcome::Found { times, rows: found })
}
