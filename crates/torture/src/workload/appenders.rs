//! Transactions that lend series to appenders (threads that add and encode rows): separate or shared series, batches or
//! rows in round robin, appenders that run concurrently or one after another. Batches have enough rows for an appender
//! to build leaves and blocks of runs itself.
//!
//! The model can predict the content, because two appenders that are open at the same time never write the same time of
//! a series.

use super::names::{APPENDED, SERIES, keeps_several, merge_of, series_name, value_of};
use super::points::{KEPT_ROWS_MAX, insert, inserted, rows_in, series};
use super::shape::Shape;
use crate::model::{Model, Rows};
use std::collections::VecDeque;
use std::ops::Range;
use tidalite::{Appender, MergePolicy, Result, SeriesAppender, Steps, WriteTxn};
use tidalite_testkit::rng::Rng;

/// Maximum number of rows that an appender takes before another appender may continue.
const TURN_ROWS_MAX: u64 = 300;
/// Upper bound of the times at which batches start; small, so that batches overlap existing rows.
const START_MAX: u64 = 300;
/// Range of row counts of a batch that usually stays in the tail page, together with rows of other series.
const FEW: (i64, i64) = (1, 40);
/// Range of row counts of a batch; two or three such batches have enough rows for separate blocks of a run.
const BLOCKS: (i64, i64) = (270, 400);
/// Range of row counts of a batch that justifies a leaf of its own.
const LEAF: (i64, i64) = (520, 800);

/// A batch of rows for one series.
struct Batch {
    name: String,
    merge: MergePolicy,
    times: Vec<i64>,
    flags: Vec<u64>,
    values: Vec<u64>,
    /// True if the rows are inserted as columns instead of row by row.
    as_columns: bool,
}

/// The rows for one appender, in pieces.
#[derive(Default)]
struct Feed {
    batches: Vec<Batch>,
    /// The pieces that are left: index of a batch, and a range of its rows.
    pieces: VecDeque<(usize, Range<usize>)>,
    /// True if the appender is dropped at the end instead of being finished.
    dropped: bool,
}

/// How the series of the appenders relate to each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lie {
    /// Each appender has a contiguous range of series that no other appender uses.
    Apart,
    /// Appenders share series, but each appender uses times that no other appender uses.
    Among,
    /// An appender starts after the previous appender has ended, with any series and times.
    OneByOne,
}

/// Lends the transaction to a few appenders, all of which end before this function returns.
///
/// # Errors
/// Returns an error of the database.
pub(crate) fn lend(
    tx: &mut WriteTxn,
    next: &mut Model,
    rng: &mut Rng,
    shape: &Shape,
) -> Result<()> {
    let lie = *rng.pick(&[Lie::Apart, Lie::Apart, Lie::Among, Lie::OneByOne]);
    // With four appenders, each has only the minimum memory, so that a few hundred rows justify blocks of a run.
    let lent = *rng.pick(&[1, 2, 4, 4]);
    let names = names(tx, next, rng, shape)?;
    let feeds: Vec<_> = (0..lent)
        .map(|n| feed(&names, next, rng, (n, lent), lie))
        .collect();
    for batch in feeds.iter().flat_map(|feed| &feed.batches) {
        next.series.entry(batch.name.clone()).or_default();
    }
    rows_before(tx, next, rng, &feeds)?;
    let appenders = tx.appenders(lent)?;
    let one_by_one = lie == Lie::OneByOne;
    if !shape.threads {
        return in_turn(
            appenders.into_iter().zip(feeds).collect(),
            next,
            rng,
            one_by_one,
        );
    }
    let (mut appenders, mut rest) = (appenders.into_iter(), feeds.as_slice());
    while !rest.is_empty() {
        let (now, later) = rest.split_at(if one_by_one { 1 } else { rest.len() });
        beside(appenders.by_ref().take(now.len()).collect(), now)?;
        rest = later;
    }
    for batch in feeds.iter().flat_map(|feed| &feed.batches) {
        note(batch, 0..batch.times.len(), next);
    }
    Ok(())
}

/// The names of the series that appenders may use, ordered by series id; mostly series reserved for appenders.
fn names(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng, shape: &Shape) -> Result<Vec<String>> {
    let mut names: Vec<_> = (SERIES..SERIES + APPENDED).map(series_name).collect();
    // Rows with a merge policy other than `Replace` go through the transaction one at a time, and threads would make
    // the order of these rows random. So runs with threads leave such series out.
    if rng.one_in(4) && !shape.threads {
        names.push(series_name(rng.below(SERIES)));
    }
    // Appenders create missing series, with the default policy. With threads, the ids of new series would depend on
    // timing, and so would the assignment of rows to appenders. So runs with threads create the series beforehand.
    if rng.one_in(3) && !shape.threads {
        names.retain(|name| merge_of(name) == MergePolicy::Replace);
        return Ok(names);
    }
    let mut numbered = Vec::new();
    for name in names {
        next.series.entry(name.clone()).or_default();
        numbered.push((series(tx, &name)?.id(), name));
    }
    numbered.sort();
    Ok(numbered.into_iter().map(|(_, name)| name).collect())
}

/// Sometimes the transaction itself inserts rows at the same times first; these rows are older than all rows of the
/// appenders.
fn rows_before(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng, feeds: &[Feed]) -> Result<()> {
    for batch in feeds.iter().flat_map(|feed| &feed.batches) {
        if !rng.one_in(4) {
            continue;
        }
        let rows = next.series.entry(batch.name.clone()).or_default();
        let mut series = series(tx, &batch.name)?;
        for _ in 0..=rng.below(2) {
            let time = *rng.pick(&batch.times);
            insert(&mut series, rows, (time, 0, value_of(rng)))?;
        }
    }
    Ok(())
}

/// Creates the rows for the `n`-th of `lent` appenders.
fn feed(
    names: &[String],
    next: &Model,
    rng: &mut Rng,
    (n, lent): (usize, usize),
    lie: Lie,
) -> Feed {
    let mut feed = Feed {
        dropped: rng.one_in(4),
        ..Feed::default()
    };
    if rng.one_in(6) {
        return feed;
    }
    let own = match lie {
        Lie::Apart => &names[names.len() * n / lent..names.len() * (n + 1) / lent],
        Lie::Among | Lie::OneByOne => names,
    };
    let usual = *match lie {
        // The blocks of the first appender are flushed late, and leaves of later appenders must not be stored before
        // these blocks.
        Lie::OneByOne if n == 0 => &BLOCKS,
        Lie::OneByOne => rng.pick(&[FEW, LEAF]),
        Lie::Apart | Lie::Among => rng.pick(&[FEW, FEW, BLOCKS, BLOCKS, LEAF]),
    };
    for name in own {
        let left_out = match lie {
            Lie::Apart => false,
            Lie::Among => rng.one_in(2),
            Lie::OneByOne => rng.one_in(4),
        };
        if left_out {
            continue;
        }
        let (least, most) = if rng.one_in(8) { (1, 300) } else { usual };
        let count = rng.between(least, most) as usize;
        let merge = merge_of(name);
        if keeps_several(merge) && next.series.get(name).map_or(0, rows_in) > KEPT_ROWS_MAX {
            continue;
        }
        // The times of the appenders interleave, so that no two appenders use the same time.
        let (every, at) = if lie == Lie::Among { (lent, n) } else { (1, 0) };
        let times = times(rng, count).into_iter();
        let flagged = rng.one_in(4);
        feed.batches.push(Batch {
            name: name.clone(),
            merge,
            times: times.map(|time| time * every as i64 + at as i64).collect(),
            flags: (0..count)
                .map(|_| u64::from(flagged && rng.one_in(50)))
                .collect(),
            values: (0..count).map(|_| value_of(rng).to_bits()).collect(),
            as_columns: rng.one_in(3),
        });
    }
    feed.cut(rng);
    feed
}

/// Creates the times of a batch: ascending, descending, or with some late and some repeated times.
fn times(rng: &mut Rng, count: usize) -> Vec<i64> {
    let start = rng.below(START_MAX) as i64;
    let count = count as i64;
    match rng.below(8) {
        0 => (0..count).map(|i| start + count - i).collect(),
        1 => (0..count)
            .map(|i| start + i + rng.below(5) as i64)
            .collect(),
        _ => (start..start + count).collect(),
    }
}

impl Feed {
    /// Splits the batches into pieces: one batch after another, or one row of each batch in turn.
    fn cut(&mut self, rng: &mut Rng) {
        let lengths: Vec<_> = self.batches.iter().map(|own| own.times.len()).collect();
        if rng.one_in(3) {
            let longest = lengths.iter().copied().max().unwrap_or(0);
            for row in 0..longest {
                let there = lengths.iter().enumerate().filter(|&(_, &rows)| row < rows);
                self.pieces
                    .extend(there.map(|(own, _)| (own, row..row + 1)));
            }
            return;
        }
        for (own, rows) in lengths.into_iter().enumerate() {
            let mut from = 0;
            while from < rows {
                let to = rows.min(from + 1 + rng.index(TURN_ROWS_MAX as usize));
                self.pieces.push_back((own, from..to));
                from = to;
            }
        }
    }
}

impl Batch {
    fn row(&self, row: usize) -> (i64, [u64; 2]) {
        (self.times[row], [self.flags[row], self.values[row]])
    }
}

/// Inserts rows of a batch through an appender.
fn give(appender: &mut Appender<'_>, batch: &Batch, rows: Range<usize>) -> Result<()> {
    let mut series = appender.series(&batch.name)?;
    if batch.as_columns {
        let columns = [&batch.flags[rows.clone()], &batch.values[rows.clone()]];
        return series.append_rows(&batch.times[rows], &columns);
    }
    for row in rows {
        insert_into(&mut series, batch.row(row))?;
    }
    Ok(())
}

fn insert_into(
    series: &mut SeriesAppender<'_, '_>,
    (time, [flags, value]): (i64, [u64; 2]),
) -> Result<()> {
    series.insert_point(Steps(time), flags as i64, f64::from_bits(value))
}

/// Applies rows of a batch to the model, after the database has accepted all of them.
fn note(batch: &Batch, rows: Range<usize>, next: &mut Model) {
    let own = next.series.entry(batch.name.clone()).or_default();
    for row in rows {
        let done = inserted(batch.merge, own, batch.row(row), Ok(()));
        assert!(done.is_ok(), "nothing is refused");
    }
}

/// Inserts rows one by one, because some rows may be refused.
fn try_each(
    appender: &mut Appender<'_>,
    batch: &Batch,
    rows: Range<usize>,
    own: &mut Rows,
) -> Result<()> {
    let mut series = appender.series(&batch.name)?;
    for row in rows {
        let row = batch.row(row);
        let done = insert_into(&mut series, row);
        inserted(batch.merge, own, row, done)?;
    }
    Ok(())
}

fn end(appender: Appender<'_>, dropped: bool) -> Result<()> {
    if dropped {
        // The commit of the transaction reports an error of an appender.
        drop(appender);
        return Ok(());
    }
    appender.finish()
}

/// Feeds all appenders from one thread, in a random order.
fn in_turn(
    mut feeds: Vec<(Appender<'_>, Feed)>,
    next: &mut Model,
    rng: &mut Rng,
    one_by_one: bool,
) -> Result<()> {
    while !feeds.is_empty() {
        let at = if one_by_one {
            0
        } else {
            rng.index(feeds.len())
        };
        let (appender, feed) = &mut feeds[at];
        let mut left = rng.below(TURN_ROWS_MAX) as usize;
        while left > 0
            && let Some((own, rows)) = feed.pieces.pop_front()
        {
            left = left.saturating_sub(rows.len());
            let batch = &feed.batches[own];
            match batch.merge {
                MergePolicy::Replace | MergePolicy::KeepAll | MergePolicy::KeepDistinct => {
                    give(appender, batch, rows.clone())?;
                    note(batch, rows, next);
                }
                _ => {
                    let own = next.series.entry(batch.name.clone()).or_default();
                    try_each(appender, batch, rows, own)?;
                }
            }
        }
        if feed.pieces.is_empty() {
            let (appender, feed) = feeds.swap_remove(at);
            end(appender, feed.dropped)?;
        }
    }
    Ok(())
}

/// Runs each appender on its own thread.
fn beside(appenders: Vec<Appender<'_>>, feeds: &[Feed]) -> Result<()> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = appenders
            .into_iter()
            .zip(feeds)
            .map(|(mut appender, feed)| {
                scope.spawn(move || {
                    for (own, rows) in &feed.pieces {
                        give(&mut appender, &feed.batches[*own], rows.clone())?;
                    }
                    end(appender, feed.dropped)
                })
            })
            .collect();
        let ends = threads.into_iter().map(|thread| thread.join());
        let ends: Vec<_> = ends
            .map(|end| end.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        ends.into_iter().collect()
    })
}
