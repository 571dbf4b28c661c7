//! Times the queries of the "cpu-only" workload of the time-series benchmark suite (TSBS): hosts that report ten integers
//! every 10 s. Rows and queries are our own; the names of the queries are the suite's, shortened.
//!
//! ```text
//! options   the command line
//! data      the rows
//! queries   the queries, by name
//! ours      Tidalite
//! peers     DuckDB and SQLite, run by a program in Python
//! report    the table
//! ```
//!
//! `cargo run --release -p tidalite-sql-bench -- --peers` prints the table of `bench/RESULTS.md`. The peers need the
//! packages of Python `duckdb` and `sqlite3`.

#![expect(clippy::print_stdout, reason = "the program prints its measurements")]

mod data;
mod options;
mod ours;
mod peers;
mod queries;
mod report;

use options::Options;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let options = Options::parse(std::env::args().skip(1))?;
    let queries = queries::all(&options);
    let peers = match options.peers {
        true => peers::run(&options, &queries)?,
        false => Vec::new(),
    };
    let own = ours::run(&options, &queries)?;
    report::print(&options, &own, &peers)
}
