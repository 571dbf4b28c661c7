//! The cases: which program of the article, how many series, how long, in what batches.

use super::records::Source;
use crate::lmdb_engine::SEGMENT_POINTS;

/// The result of anything that can go wrong here.
pub(crate) use crate::engine::Result;

/// A program of the article, on one set of data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// `01`, `03`, `04` or `06`; with an `r` on the hard set.
    pub(crate) name: &'static str,
    /// Whether the data is the hard set.
    pub(crate) hard: bool,
    /// Whether the records are trades.
    pub(crate) trades: bool,
    /// Number of series.
    pub(crate) series: usize,
    /// Rows of each series.
    pub(crate) rows_each: u64,
    /// Rows written to a series before the next one gets its turn.
    pub(crate) batch: u64,
}

/// As in the article; fewer when that would leave a series less rows than it has of 100 million.
const SERIES_MAX: u64 = 10_000;
const SERIES_ROWS_MIN: u64 = 10_000;

/// Every case with about `points` points, in the order in which they run.
pub(crate) fn all(points: u64) -> Vec<Plan> {
    let many = (points / SERIES_ROWS_MIN).clamp(1, SERIES_MAX);
    let shape = |name, series: u64, batch| {
        let rows_each = (points / series).max(1);
        let batch = if batch == 0 { rows_each } else { batch };
        let (hard, trades) = (false, name == "06");
        Plan {
            name,
            hard,
            trades,
            series: series as usize,
            rows_each,
            batch,
        }
    };
    let hard = |name, plan: Plan| Plan {
        name,
        hard: true,
        ..plan
    };
    let (one, batches) = (shape("01", 1, 0), shape("03", many, 250));
    let (turns, trades) = (shape("04", many, 1), shape("06", 1, 0));
    vec![
        one,
        hard("01r", one),
        batches,
        hard("03r", batches),
        turns,
        hard("04r", turns),
        trades,
        hard("06r", trades),
    ]
}

impl Plan {
    /// Rows of all series.
    pub(crate) fn rows(&self) -> u64 {
        self.series as u64 * self.rows_each
    }

    fn row_bytes(&self) -> u64 {
        if self.trades { 40 } else { 24 }
    }

    /// The most that either side's file may take: the peer's raw points, a page and more for each
    /// series' last segment.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.rows() * self.row_bytes() / 16 * 17 + self.series as u64 * 8192 + (16 << 20)
    }

    /// What either side may need on its heap: the peer a segment for each series.
    pub(crate) fn heap_bytes(&self) -> u64 {
        self.series as u64 * SEGMENT_POINTS as u64 * self.row_bytes() + (16 << 20)
    }
}

/// Takes the rows as a program writes them.
pub(crate) trait Writer<P> {
    /// Turns to a series and inserts these records, one by one.
    fn batch(&mut self, series: usize, records: impl Iterator<Item = P>) -> Result<()>;
}

/// The loop of the article's programs: a batch to every series, until all have their rows.
pub(crate) fn write_all<P>(
    plan: &Plan,
    source: &mut impl Source<P>,
    writer: &mut impl Writer<P>,
) -> Result<()> {
    let mut from = 0;
    while from < plan.rows_each {
        let count = plan.batch.min(plan.rows_each - from);
        for series in 0..plan.series {
            writer.batch(series, source.records(series, from, count))?;
        }
        from += count;
    }
    Ok(())
}
