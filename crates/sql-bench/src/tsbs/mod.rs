//! Queries of the "cpu-only" workload of the time-series benchmark suite (TSBS): hosts that report ten integers every
//! 10 s. Rows and queries are our own; the queries have the suite's names, shortened.
//!
//! ```text
//! data      the rows
//! files     the rows as Arrow batches, and as files that the peers load
//! queries   the queries, by name
//! expected  the correct results of the queries, computed from the rows
//! sql       the queries in the dialects of SQL
//! promql    the queries in PromQL
//! report    prints the table of results
//! ours      Tidalite
//! peers     the other engines, run by a program in Python
//! ```

pub(crate) mod data;
pub(crate) mod expected;
pub(crate) mod files;
pub(crate) mod ours;
pub(crate) mod peers;
mod promql;
pub(crate) mod queries;
pub(crate) mod report;
mod sql;

use crate::options::Options;
use expected::Expected;
use std::error::Error;

/// Runs the queries and prints the table.
pub(crate) fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let queries = queries::all(options);
    let values = data::all(options)?;
    let expected = queries.iter().map(|query| Expected::new(query, &values));
    let expected: Vec<_> = expected.collect();
    let peers = peers::run(options, &values, None, &queries)?;
    let own = ours::run(&values, &queries)?;
    report::print(options, (&queries, &expected), &own, &peers)
}
