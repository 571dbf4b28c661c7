//! Measures SQL over time series and typed tables, and compares it with other databases.
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
//! `cargo run --release -p tidalite-sql-bench -- --peers` runs all parts; `--only tpch` runs only that part. `--peers`
//! needs Python 3.8 as `python3`; nothing is downloaded. A peer that is not installed is skipped, with a note that
//! names the missing program or package. `typed` is compared only with SQLite, and `tpch` only with SQLite and DuckDB.
//!
//! | peer | how it is found | how to get it |
//! |---|---|---|
//! | SQLite | module `sqlite3` of Python | comes with Python |
//! | DuckDB | packages `duckdb`, `pyarrow` of Python | `pip install duckdb pyarrow` |
//! | chDB (ClickHouse) | packages `chdb`, `pyarrow` of Python | `pip install chdb pyarrow` |
//! | QuestDB | the file of `QUESTDB_JAR`; `JAVA_HOME/bin/java`, else `java`, 17 or newer | `mvn dependency:copy -Dartifact=org.questdb:questdb:9.3.4 -DoutputDirectory=DIR` |
//! | VictoriaMetrics | program `victoria-metrics` | `apt-get install victoria-metrics`, or `go install github.com/VictoriaMetrics/VictoriaMetrics/app/victoria-metrics@v1.151.0` |
//!
//! Servers listen on free ports of the loopback interface, keep their files in temporary folders, and end when their
//! measurement ends. The peers have their default settings, except for these:
//!
//! - DuckDB loads the rows of `tsbs` sorted by host and time.
//! - SQLite: `PRIMARY KEY (host, time)`, `WITHOUT ROWID`, an index on time, `ANALYZE`, a write-ahead log, 2 GB of cache
//!   and mapped memory. Queries of intervals name the primary key, because the index on time would take two to four
//!   times as long.
//! - chDB: `MergeTree ORDER BY (host, time)`, tags as `LowCardinality(String)`; parts are merged before the queries;
//!   results are not compressed.
//! - QuestDB: a WAL table, `PARTITION BY DAY`, tags as `SYMBOL` without an index; commits are not synced. It allocates
//!   space in advance in the files of its newest partition, which has a visible effect on the bytes of small data sets.
//! - VictoriaMetrics: no cache of results (`-search.disableCache`, `nocache=1`); parts are merged before the queries.
//!   It is queried with PromQL, which cannot express `newest`; the head of `tsbs/promql.rs` lists the queries that ask
//!   for less. `scan` is an export.
//!
//! The client measures times from sending a query to receiving the last byte of the result: Arrow tables (DuckDB,
//! chDB), tuples (SQLite) or JSON that is not parsed (servers). The row `empty` shows the overhead of this by itself.
//! The peers run one after the other. Each query runs once before the measurement, and is measured only once if it
//! takes more than a second. In `tsbs` and `tpch` the text of an SQL query has the number of its round in a comment,
//! because Tidalite, SQLite and QuestDB cache plans by text. Results of `tsbs` and `load` must have the number of rows
//! and the sum that the program computes from the rows; results of `tpch` must be equal.

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
use tempfile::TempDir;

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::FAILURE;
        }
    };
    let _scratch = match scratch() {
        Ok(scratch) => scratch,
        Err(error) => {
            eprintln!("no folder for temporary files: {error}");
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
        // The other parts are run even if one part fails.
        if let Err(error) = done {
            eprintln!("{error}");
            code = ExitCode::FAILURE;
        }
    }
    code
}

/// The folder that contains all temporary files. It is removed when the program ends.
fn scratch() -> std::io::Result<TempDir> {
    let scratch = TempDir::new()?;
    // This fails only if it has been called before.
    let _ = tempfile::env::override_temp_dir(scratch.path());
    Ok(scratch)
}
