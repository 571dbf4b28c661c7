//! The cases: a program of the article that this suite reproduces, with the number of series, rows and batches.

use std::collections::BTreeMap;

use crate::lmdb_engine::SEGMENT_POINTS;
use crate::records::{Source, splitmix};

/// Result of every fallible operation of this suite.
pub(crate) use crate::engine::Result;

/// A program of the article that this suite reproduces, run on one set of data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// The number of the program in the article that this suite reproduces: `01`, `03`, `04` or `06`; with an `r` for
    /// the data that is harder to compress; `04-2` with encoding on the second core.
    pub(crate) name: &'static str,
    /// True if the data is the set that is harder to compress.
    pub(crate) hard: bool,
    /// True if the records are trades, false if they are points.
    pub(crate) trades: bool,
    /// Number of series.
    pub(crate) series: usize,
    /// Number of rows in each series.
    pub(crate) rows_each: u64,
    /// Number of rows that are written to a series before the program switches to the next series.
    pub(crate) batch: u64,
    pub(crate) order: Order,
    /// Number of helper threads that Tidalite uses.
    pub(crate) sealing: usize,
}

/// Order in which a program writes its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// In ascending order of time.
    Ascending,
    /// The rows are written in ascending order of time and committed; then every row is overwritten with an equal row.
    Again,
    /// From the newest row to the oldest.
    Descending,
    /// In ascending order of time, but one row in twenty comes some thousand rows late.
    Late,
}

/// Maximum number of series, as in the article that this suite reproduces; there are fewer if a series would otherwise
/// have fewer rows than with 100 million points.
const SERIES_MAX: u64 = 10_000;
const SERIES_ROWS_MIN: u64 = 10_000;

/// All cases with about `points` points, in the order of execution.
pub(crate) fn all(points: u64) -> Vec<Plan> {
    let many = (points / SERIES_ROWS_MIN).clamp(1, SERIES_MAX);
    let shape = |name, series: u64, batch| {
        let rows_each = (points / series).max(1);
        let batch = if batch == 0 { rows_each } else { batch };
        let (hard, trades, order) = (false, name == "06", Order::Ascending);
        Plan {
            order,
            sealing: 0,
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
    // If rows are not in ascending order, the peer (the published engine on LMDB) moves a point from each segment to
    // the next and rewrites all these segments, a segment of 200 KB for nearly every such row. The capacity of a
    // transaction therefore limits the number of rows.
    let ordered = |name, order, most: u64| {
        let rows_each = (one.rows_each / 10).min(most).max(1);
        Plan {
            name,
            order,
            rows_each,
            batch: rows_each,
            ..one
        }
    };
    let again = Plan {
        name: "01-again",
        order: Order::Again,
        ..one
    };
    // With encoding on the second core, only the writing differs.
    let helped = Plan {
        name: "04-2",
        sealing: 1,
        ..turns
    };
    vec![
        one,
        hard("01r", one),
        again,
        ordered("01-desc", Order::Descending, DESCENDING_MAX),
        ordered("01-late", Order::Late, LATE_MAX),
        batches,
        hard("03r", batches),
        turns,
        helped,
        hard("04r", turns),
        trades,
        hard("06r", trades),
    ]
}

impl Plan {
    /// Total number of rows in all series.
    pub(crate) fn rows(&self) -> u64 {
        self.series as u64 * self.rows_each
    }

    fn row_bytes(&self) -> u64 {
        if self.trades { 40 } else { 24 }
    }

    /// Maximum file size in bytes of Tidalite or the peer: the peer's raw points, plus a page and more for the last
    /// segment of each series.
    pub(crate) fn file_bytes(&self) -> u64 {
        let ordered = self.order == Order::Ascending;
        // In other orders the peer leaves sparse segments, and pages of segments that were rewritten.
        let room = if ordered { 1 } else { 8 };
        self.rows() * self.row_bytes() / 16 * 17 * room + self.series as u64 * 8192 + (64 << 20)
    }

    /// Size in bytes of the peer's memory map, which is sparse. If rows are not ascending, the peer rewrites segments
    /// repeatedly, and LMDB does not reuse their pages within a transaction.
    pub(crate) fn map_bytes(&self) -> u64 {
        let ordered = self.order == Order::Ascending;
        self.file_bytes() + if ordered { 0 } else { 32 << 30 }
    }

    /// Maximum heap use in bytes of Tidalite or the peer: the peer has a segment in memory for each series.
    pub(crate) fn heap_bytes(&self) -> u64 {
        self.series as u64 * SEGMENT_POINTS as u64 * self.row_bytes() + (16 << 20)
    }
}

/// Receives the rows in the order in which a program writes them.
pub(crate) trait Writer<P> {
    /// Switches to a series and inserts these records one by one.
    fn batch(&mut self, series: usize, records: impl Iterator<Item = P>) -> Result<()>;
}

/// The loop of the article's programs that this suite reproduces: a batch for every series, until all series have their
/// rows.
pub(crate) fn write_all<P>(
    plan: &Plan,
    source: &mut impl Source<P>,
    writer: &mut impl Writer<P>,
) -> Result<()> {
    match plan.order {
        Order::Descending => return descending(plan, source, writer),
        Order::Late => return late(plan, source, writer),
        Order::Ascending | Order::Again => {}
    }
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

/// Maximum number of rows of the cases `01-desc` and (below) `01-late`.
const DESCENDING_MAX: u64 = 16_000;
const LATE_MAX: u64 = 100_000;

/// Number of rows that are generated at once if they are not written in order.
const AT_ONCE: u64 = 1 << 16;

fn descending<P>(
    plan: &Plan,
    source: &mut impl Source<P>,
    writer: &mut impl Writer<P>,
) -> Result<()> {
    for series in 0..plan.series {
        let mut left = plan.rows_each;
        while left > 0 {
            let count = AT_ONCE.min(left);
            left -= count;
            let mut records: Vec<P> = source.records(series, left, count).collect();
            records.reverse();
            writer.batch(series, records.into_iter())?;
        }
    }
    Ok(())
}

/// Writes rows in order, but delays every twentieth row until 1,000 to 9,191 others have been written.
fn late<P>(plan: &Plan, source: &mut impl Source<P>, writer: &mut impl Writer<P>) -> Result<()> {
    for series in 0..plan.series {
        // The key begins with the number of the row to wait for; among rows that wait for the same row, the earlier
        // comes first.
        let mut waiting: BTreeMap<(u64, u64), P> = BTreeMap::new();
        let mut from = 0;
        while from < plan.rows_each {
            let count = AT_ONCE.min(plan.rows_each - from);
            let mut records = Vec::with_capacity(count as usize);
            for (row, record) in (from..).zip(source.records(series, from, count)) {
                let mut state = row;
                let random = splitmix(&mut state);
                if random.is_multiple_of(20) {
                    waiting.insert((row + 1000 + (random >> 32) % 8192, row), record);
                } else {
                    records.push(record);
                }
                while waiting
                    .first_key_value()
                    .is_some_and(|(key, _)| key.0 <= row)
                {
                    records.extend(waiting.pop_first().map(|(_, record)| record));
                }
            }
            writer.batch(series, records.into_iter())?;
            from += count;
        }
        writer.batch(series, waiting.into_values())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{Counting, Reading};

    struct Times(Vec<i64>);

    impl Writer<Reading> for Times {
        fn batch(&mut self, _: usize, records: impl Iterator<Item = Reading>) -> Result<()> {
            self.0.extend(records.map(|record| record.time));
            Ok(())
        }
    }

    #[test]
    fn every_row_is_written_once_in_its_order() {
        let plans = all(1_000_000);
        for name in ["01-desc", "01-late"] {
            let plan = plans.iter().find(|plan| plan.name == name).unwrap();
            let mut times = Times(Vec::new());
            write_all(plan, &mut Counting, &mut times).unwrap();
            let late = times.0.windows(2).filter(|pair| pair[0] > pair[1]).count();
            match plan.order {
                Order::Descending => assert_eq!(late as u64, plan.rows_each - 1),
                _ => assert!((4000..6000).contains(&late), "{late}"),
            }
            times.0.sort_unstable();
            let all: Vec<i64> = (1..=plan.rows_each as i64).collect();
            assert!(times.0 == all, "{name}");
        }
    }
}
