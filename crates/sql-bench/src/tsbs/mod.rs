//! Queries of the "cpu-only" workload of the time-series benchmark suite (TSBS): hosts that report ten integers every
//! 10 s. Rows and queries are our own; the names of the queries are the suite's, shortened.
//!
//! ```text
//! data      the rows
//! queries   the queries, by name
//! report    the table
//! ours      Tidalite
//! peers     DuckDB and SQLite, run by a program in Python
//! ```

pub(crate) mod data;
pub(crate) mod ours;
mod peers;
mod queries;
mod report;

use crate::options::Options;
use std::error::Error;

/// Runs the queries and prints the table.
pub(crate) fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let queries = queries::all(options);
    let peers = match options.peers {
        true => peers::run(options, &queries)?,
        false => Vec::new(),
    };
    let own = ours::run(options, &queries)?;
    report::print(options, &own, &peers)
}
