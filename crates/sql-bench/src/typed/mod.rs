//! Measures inserts, look-ups and updates of a table
//! `turbines (id BIGINT PRIMARY KEY, site TEXT, rated DOUBLE, name TEXT)` with an index on `site`.
//!
//! ```text
//! plan      the rows, and the number of rows in each measurement
//! ours      Tidalite
//! sqlite    the same statements in SQLite, run by a program in Python
//! ```

mod ours;
mod plan;
mod sqlite;

use crate::options::Options;
use plan::Plan;
use std::error::Error;

/// Runs the measurements and prints the table.
pub(crate) fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let plan = Plan::new(options.rows);
    println!("\nA typed table, {} rows\n", options.rows);
    let own = ours::run(&plan)?;
    let mut problems = Vec::new();
    let peer = match options.peers {
        // Our figures are printed even if SQLite fails.
        true => sqlite::run(&plan).unwrap_or_else(|error| {
            problems.push(format!("SQLite: {error}"));
            Vec::new()
        }),
        false => Vec::new(),
    };
    println!("| measurement | unit | ours | SQLite |\n|---|---|---:|---:|");
    for figure in own {
        let other = peer.iter().find(|(name, _)| name == figure.name);
        if other.is_none() && !peer.is_empty() {
            problems.push(format!("SQLite: no figure for {:?}", figure.name));
        }
        let other = other.map_or(String::new(), |(_, value)| shown(*value));
        println!(
            "| {} | {} | {} | {other} |",
            figure.name,
            figure.unit,
            shown(figure.value)
        );
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(problems.join("\n").into()),
    }
}

/// Formats a figure with about three digits.
fn shown(value: f64) -> String {
    match value {
        100.0.. => format!("{value:.0}"),
        _ => format!("{value:.2}"),
    }
}
