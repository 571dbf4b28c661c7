//! Times SQL over time series and typed tables, beside DuckDB and SQLite.
//!
//! ```text
//! options   the command line
//! cells     values of results, and their comparison
//! python    runs the programs that measure the peers
//! tsbs      queries of the "cpu-only" workload of the time-series benchmark suite (TSBS)
//! load      the rows of that workload, loaded as Arrow batches and row by row
//! tpch      the 22 queries of TPC-H, over typed tables and over Parquet files
//! typed     inserts, look-ups and updates of one typed table
//! ```
//!
//! `cargo run --release -p tidalite-sql-bench -- --peers` runs all parts, `--only tpch` one of them. The peers need the
//! packages of Python `duckdb`, `numpy` and `sqlite3`.

#![expect(clippy::print_stdout, reason = "the program prints its measurements")]

mod cells;
mod load;
mod options;
mod python;
mod tpch;
mod tsbs;
mod typed;

use options::{Options, Part};
use std::process::ExitCode;

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::FAILURE;
        }
    };
    let mut code = ExitCode::SUCCESS;
    for &part in &options.parts {
        let done = match part {
            Part::Tsbs => tsbs::run(&options),
            Part::Load => load::run(&options),
            Part::Tpch => tpch::run(&options),
            Part::Typed => typed::run(&options),
        };
        // The other parts run all the same.
        if let Err(error) = done {
            eprintln!("{error}");
            code = ExitCode::FAILURE;
        }
    }
    code
}
