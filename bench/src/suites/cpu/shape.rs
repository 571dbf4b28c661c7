//! The rows of the comparison, and the questions that both sides answer.

use std::path::Path;

use crate::engine::Result;

pub(crate) const HOSTS: usize = 100;
pub(crate) const METRICS: usize = 10;
pub(crate) const MINUTE: i64 = 60_000_000_000;
pub(crate) const HOUR: i64 = 60 * MINUTE;

/// What a question came to: things found, and the sum of their values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Answer {
    pub(crate) found: u64,
    pub(crate) sum: f64,
}

/// A question; times are `from <= t < to`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Question {
    /// Maxima of the first `metrics` of a host by windows of `width`.
    Max {
        host: usize,
        metrics: usize,
        from: i64,
        to: i64,
        width: i64,
    },
    /// Means of the first `metrics` by hour and host.
    Mean { metrics: usize, from: i64, to: i64 },
    /// First metric of the newest row of every host.
    Latest,
    /// Second metric of the rows whose first is above 90.
    Above { from: i64, to: i64 },
    /// Sum and count of the first metric.
    Sum,
}

/// One row of a host.
pub(crate) struct Row {
    pub(crate) host: usize,
    pub(crate) time: i64,
    /// In hundredths, or whole.
    pub(crate) metrics: [i32; METRICS],
}

/// A database of either side.
pub(crate) trait Side: Sized {
    fn create(dir: &Path, decimals: bool) -> Result<Self>;
    /// One durable transaction.
    fn write(&mut self, rows: &[Row]) -> Result<()>;
    fn ask(&self, question: Question) -> Result<Answer>;
    /// Stores what there is in as few bytes as can be.
    fn shrink(&mut self) -> Result<()>;
}
