//! The 22 queries of TPC-H, with the substitution parameters of its validation run.
//!
//! ```text
//! tables    the tables, and their rows as CSV
//! queries   the queries in the dialects of the engines
//! report    compares the results of the engines, and prints the table
//! ours      Tidalite: typed tables and Parquet files
//! peers     DuckDB and SQLite, run by a program in Python
//! ```
//!
//! Numbers with two digits after the point are decimals in Tidalite, Parquet and DuckDB, and `REAL` in SQLite. The
//! tables of Tidalite and SQLite have the primary keys; SQLite also has indexes on foreign keys, because some queries
//! would otherwise take minutes. Every run of a query is planned, because the number of the round in a comment makes
//! its text unique.

mod ours;
mod peers;
mod queries;
mod report;
mod tables;

use crate::options::Options;
use std::error::Error;
use tempfile::TempDir;

/// Writes the rows, runs the queries in all engines, and prints the table.
pub(crate) fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    println!("\nTPC-H, scale factor {}\n", options.scale);
    let folder = TempDir::new()?;
    tables::write_csv(options.scale, folder.path())?;
    let texts = queries::all(options.scale);
    let mut engines = ours::run(options, &texts, folder.path())?;
    let mut failures = Vec::new();
    if options.peers {
        engines.extend(peers::run(options, &texts, folder.path(), &mut failures));
    }
    report::print(options, &engines, failures)
}
