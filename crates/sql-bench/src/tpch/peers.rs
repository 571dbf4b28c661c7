//! DuckDB and SQLite: the Python program is given a folder with the CSV files, and a file of statements.

use crate::cells::Cell;
use crate::options::Options;
use crate::python;
use crate::tpch::queries::in_sqlite;
use crate::tpch::report::{Engine, Outcome};
use crate::tpch::tables::{INDEXES, TABLES, Table};
use std::error::Error;
use std::path::Path;

/// Runs all queries in each peer that is installed.
pub(crate) fn run(
    options: &Options,
    queries: &[String],
    folder: &Path,
    failures: &mut Vec<String>,
) -> Vec<Engine> {
    let tables = |create: fn(&Table) -> String| TABLES.iter().map(create).collect();
    let indexes = INDEXES.map(str::to_owned).to_vec();
    let texts = queries.iter().map(|query| in_sqlite(query)).collect();
    let duckdb = [
        tables(Table::create_without_key),
        Vec::new(),
        queries.to_vec(),
    ];
    let sqlite = [tables(Table::create_in_sqlite), indexes, texts];
    let mut engines = Vec::new();
    for (name, statements) in [("DuckDB", duckdb), ("SQLite", sqlite)] {
        // The other peer is measured even if one fails.
        match peer(options, name, folder, statements) {
            Ok(engine) => engines.extend(engine),
            Err(error) => failures.push(format!("{name}: {error}")),
        }
    }
    engines
}

/// Runs the statements that create tables and indexes, and the queries; `None` if the peer is not installed.
fn peer(
    options: &Options,
    name: &'static str,
    folder: &Path,
    [tables, indexes, queries]: [Vec<String>; 3],
) -> Result<Option<Engine>, Box<dyn Error>> {
    let count = queries.len();
    let mut lines = String::new();
    for (kind, statements) in [("table", tables), ("index", indexes), ("query", queries)] {
        for statement in statements {
            lines.push_str(&format!("{kind}\t{statement}\n"));
        }
    }
    let file = folder.join(format!("{name}.txt"));
    std::fs::write(&file, lines)?;
    let rounds = options.tpch_rounds.to_string();
    let arguments = [
        name.as_ref(),
        folder.as_os_str(),
        file.as_os_str(),
        rounds.as_ref(),
    ];
    let output = python::run(include_str!("peers.py"), &arguments, name)?;
    let outcomes = parsed(&output)?;
    match outcomes.len() {
        0 => Ok(None),
        found if found == count => Ok(Some(Engine { name, outcomes })),
        found => Err(format!("the program has run {found} of {count} queries").into()),
    }
}

/// Parses the output lines of all queries. Each query begins with a line `query`; `time`, `row`, `failed` or `slow`
/// lines follow, each with its values separated by tabs.
fn parsed(output: &str) -> Result<Vec<Outcome>, Box<dyn Error>> {
    let mut outcomes = Vec::new();
    for line in output.lines() {
        let (kind, values) = line.split_once('\t').unwrap_or((line, ""));
        match (kind, outcomes.last_mut()) {
            ("query", _) => outcomes.push(Outcome::Found {
                times: Vec::new(),
                rows: Vec::new(),
            }),
            ("time", Some(Outcome::Found { times, .. })) => times.push(values.parse()?),
            ("row", Some(Outcome::Found { rows, .. })) => {
                rows.push(
                    values
                        .split('\t')
                        .map(Cell::parse)
                        .collect::<Result<_, _>>()?,
                );
            }
            ("failed", Some(last)) => *last = Outcome::Failed(values.to_owned()),
            ("slow", Some(last)) => *last = Outcome::Slow,
            _ => return Err(format!("the program has written {line:?}").into()),
        }
    }
    Ok(outcomes)
}
