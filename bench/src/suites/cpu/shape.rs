//! The rows of the suite `cpu`, and the queries that Tidalite and SQLite answer.

use std::path::Path;

use crate::engine::Result;

pub(crate) const HOSTS: usize = 100;
pub(crate) const METRICS: usize = 10;
pub(crate) const MINUTE: i64 = 60_000_000_000;
pub(crate) const HOUR: i64 = 60 * MINUTE;

/// Answer to a query: number of rows or windows found, and the sum of their values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Answer {
    pub(crate) found: u64,
    pub(crate) sum: f64,
}

/// A query; it covers the times `from <= t < to`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Question {
    /// Maxima of the first `metrics` metrics of a host, in windows of length `width`.
    Max {
        host: usize,
        metrics: usize,
        from: i64,
        to: i64,
        width: i64,
    },
    /// Means of the first `metrics` metrics, by hour and host.
    Mean { metrics: usize, from: i64, to: i64 },
    /// First metric of the newest row of every host.
    Latest,
    /// Second metric of the rows in which the first metric is above 90.
    Above { from: i64, to: i64 },
    /// Sum and count of the first metric over all rows.
    Sum,
}

/// A row of a host.
pub(crate) struct Row {
    pub(crate) host: usize,
    pub(crate) time: i64,
    /// The metrics of the row, in hundredths or as integers.
    pub(crate) metrics: [i32; METRICS],
}

/// A database of Tidalite or of SQLite.
pub(crate) trait Side: Sized {
    fn create(dir: &Path, decimals: bool) -> Result<Self>;
    /// Writes rows in one durable transaction.
    fn write(&mut self, rows: &[Row]) -> Result<()>;
    fn ask(&self, question: Question) -> Result<Answer>;
    /// Makes the files as small as the engine can.
    fn shrink(&mut self) -> Result<()>;
}
