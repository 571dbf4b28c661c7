//! Times SQL over time series and typed tables, beside other databases.
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
//! `cargo run --release -p tidalite-sql-bench -- --peers` runs all parts, `--only tpch` one of them. `--peers` needs
//! Python 3.8 as `python3`; nothing is downloaded. A peer that is not there is skipped, with a note that names the missing
//! program or package. `typed` has only SQLite, and `tpch` SQLite and DuckDB.
//!
//! | peer | how it is found | how to get it |
//! |---|---|---|
//! | SQLite | module `sqlite3` of Python | comes with Python |
//! | DuckDB | packages `duckdb`, `pyarrow` of Python | `pip install duckdb pyarrow` |
//! | chDB (ClickHouse) | packages `chdb`, `pyarrow` of Python | `pip install chdb pyarrow` |
//! | QuestDB | the file of `QUESTDB_JAR`; `JAVA_HOME/bin/java`, else `java`, 17 or newer | `mvn dependency:copy -Dartifact=org.questdb:questdb:9.3.4 -DoutputDirectory=DIR` |
//! | VictoriaMetrics | program `victoria-metrics` | `apt-get install victoria-metrics`, or `go install github.com/VictoriaMetrics/VictoriaMetrics/app/victoria-metrics@v1.151.0` |
//!
//! Servers listen on free ports of the loopback interface, keep their files in temporary folders, and end with their
//! measurement. Settings of the peers are the defaults, except for these:
//!
//! - DuckDB loads the rows of `tsbs` sorted by host and time.
//! - SQLite: `PRIMARY KEY (host, time)`, `WITHOUT ROWID`, an index on time, `ANALYZE`, a write-ahead log, 2 GB of cache and
//!   mapped memory. Queries of intervals name the primary key, because the index on time would take two to four times as long.
//! - chDB: `MergeTree ORDER BY (host, time)`, tags as `LowCardinality(String)`, merged before the queries; results are not
//!   compressed.
//! - QuestDB: a WAL table, `PARTITION BY DAY`, tags as `SYMBOL` without an index; commits are not synced. It
//!   allocates files of its newest partition ahead, which weighs on the bytes of small data.
//! - VictoriaMetrics: no cache of results (`-search.disableCache`, `nocache=1`), merged before the queries. It gets
//!   PromQL, which cannot ask for `newest`; the head of `tsbs/promql.rs` says where it asks for less. `scan` is an export.
//!
//! Times are taken by the client, from sending a query to having the last byte: tables of Arrow (DuckDB, chDB), tuples
//! (SQLite) or JSON that is not parsed (servers). The row `empty` shows the time that this takes by itself. Peers run one
//! after the other, each query once beforehand, and once only if it takes more than a second. In `tsbs` and `tpch` the text
//! of a query in SQL has the number of its round in a comment, because ours, SQLite and QuestDB keep plans by the text.
//! Results of `tsbs` and `load` must have the number of rows and the sum that the program computes from the rows; results
//! of `tpch` must be equal.

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
        // The other parts run all the same.
        if let Err(error) = done {
            eprintln!("{error}");
            code = ExitCode::FAILURE;
        }
    }
    code
}

/// The folder of all temporary files, which is removed when the program ends.
fn scratch() -> std::io::Result<TempDir> {
    let scratch = TempDir::new()?;
    // This fails only if it was called before.
    let _ = tempfile::env::override_temp_dir(scratch.path());
    Ok(scratch)
}
