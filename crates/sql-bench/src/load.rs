//! Loads the rows of time series: row by row with the library, as Arrow batches with SQL, and into the peers.
//!
//! DuckDB and chDB also load Arrow data; SQLite loads Python tuples; the servers receive line protocol over HTTP, in
//! requests of 4 MiB. The time ends when the rows are committed or, in servers, visible. It includes a checkpoint of
//! DuckDB, but not the merges of chDB and VictoriaMetrics, which take place before the bytes are counted. At the end of
//! the measured time the rows are durable only in Tidalite, DuckDB and SQLite.

use crate::cells::{self, Cell};
use crate::options::Options;
use crate::tsbs::data::{self, COLUMNS};
use crate::tsbs::expected::{self, Expected};
use crate::tsbs::files::{self, Order, Values};
use crate::tsbs::{ours, peers, queries};
use std::error::Error;
use std::time::Instant;
use tempfile::TempDir;
use tidalite::Database;
use tidalite_sql::Connection;

/// The figures of one engine.
#[derive(Clone, Copy)]
struct Figures {
    seconds: f64,
    bytes: f64,
}

/// One method of loading: its name, and the figures of Tidalite and of the peers, by name.
struct Load {
    name: &'static str,
    own: Figures,
    peers: Vec<(String, Figures)>,
}

/// Loads the rows with each method into a new file, in one transaction, and prints the rates.
///
/// # Errors
/// Also if a peer fails, or does not find all rows.
pub(crate) fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let values = data::all(options)?;
    let mut failures = Vec::new();
    let own = measure("row by row", &values, |database| {
        let began = Instant::now();
        ours::load(&values, database)?;
        Ok(began.elapsed().as_secs_f64())
    })?;
    let mut loads = vec![Load {
        name: "row by row, one host after the other",
        own,
        peers: Vec::new(),
    }];
    for (name, order) in [
        ("Arrow, one host after the other", Order::ByHost),
        ("Arrow, all hosts at each time", Order::ByTime),
    ] {
        let peers = peers(options, &values, order, &mut failures)?;
        let batches = files::batches(&values, order)?;
        let own = measure(name, &values, |database| {
            let mut connection = Connection::new(database)?;
            connection.execute(&create())?;
            let began = Instant::now();
            connection.insert("cpu", batches)?;
            Ok(began.elapsed().as_secs_f64())
        })?;
        loads.push(Load { name, own, peers });
    }
    print(&values, &loads);
    match failures.is_empty() {
        true => Ok(()),
        false => Err(failures.join("\n").into()),
    }
}

/// Loads the rows with `load`, which returns its time in seconds, and checks the rows.
fn measure(
    name: &str,
    values: &Values,
    load: impl FnOnce(&Database) -> Result<f64, Box<dyn Error>>,
) -> Result<Figures, Box<dyn Error>> {
    let scratch = TempDir::new()?;
    let path = scratch.path().join("cpu.tdl");
    let database = Database::open(&path)?;
    let seconds = load(&database)?;
    let (rows, sum) = expected::rows_and_sum(values);
    let mut connection = Connection::new(&database)?;
    let query = "SELECT count(*), sum(usage_guest_nice) FROM cpu WHERE host <> ''";
    let found = cells::rows(&cells::answer(&mut connection, query)?)?;
    let expected = vec![Cell::Integer(rows), Cell::Integer(sum)];
    if let Some(difference) = cells::difference(&found, &[expected]) {
        return Err(format!("{name}: {difference}").into());
    }
    let bytes = std::fs::metadata(&path)?.len() as f64;
    Ok(Figures { seconds, bytes })
}

/// Loads the rows into all peers, and checks them.
fn peers(
    options: &Options,
    values: &Values,
    order: Order,
    failures: &mut Vec<String>,
) -> Result<Vec<(String, Figures)>, Box<dyn Error>> {
    // Most peers return both numbers in one row, VictoriaMetrics returns their sum.
    let check = [queries::check(options)];
    let peers = peers::run(options, values, Some(order), &check)?;
    failures.extend(peers.failures);
    let expected = Expected::new(&check[0], values);
    let mut figures = Vec::new();
    for peer in peers.measured {
        if !peer.timed.iter().any(|timed| expected.agrees(&timed.found)) {
            failures.push(format!("{}: other rows than loaded", peer.name));
        }
        let (seconds, bytes) = (peer.seconds, peer.bytes);
        figures.push((peer.name, Figures { seconds, bytes }));
    }
    Ok(figures)
}

/// Prints a line of rates and a line of sizes for each method.
fn print(values: &Values, loads: &[Load]) {
    let rows = values.iter().map(Vec::len).sum::<usize>();
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in loads.iter().flat_map(|load| &load.peers) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let head: String = names.iter().map(|name| format!(" {name} |")).collect();
    println!("\n{rows} rows of ten integers loaded in one transaction, durable in ours\n");
    println!("| load | unit | ours |{head}");
    println!("|---|---|---:|{}", "---:|".repeat(names.len()));
    let rate = |figures: Figures| format!("{:.0}", rows as f64 / figures.seconds);
    let size = |figures: Figures| format!("{:.2}", figures.bytes / (rows * COLUMNS.len()) as f64);
    let units: [(&str, &dyn Fn(Figures) -> String); 2] =
        [("rows/s", &rate), ("bytes a value", &size)];
    for load in loads {
        for (unit, shown) in units {
            let mut line = format!("| {} | {unit} | {} |", load.name, shown(load.own));
            for name in &names {
                let peer = load.peers.iter().find(|peer| peer.0 == *name);
                let text = peer.map_or(String::new(), |peer| shown(peer.1));
                line.push_str(&format!(" {text} |"));
            }
            println!("{line}");
        }
    }
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
