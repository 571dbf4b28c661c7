//! Transactions that are lent to appenders: series apart and shared, stretches and series in turn, appenders beside each other and
//! one after the other; rows enough that an appender makes leaves and blocks of runs itself.
//!
//! What the file holds then is said by the model: rows of one series from two appenders that are open at once never have the same time.

use super::names::{APPENDED, SERIES, keeps_several, merge_of, series_name, value_of};
use super::points::{KEPT_ROWS_MAX, insert, inserted, rows_in, series};
use super::shape::Shape;
use crate::model::{Model, Rows};
use std::collections::VecDeque;
use std::ops::Range;
use tidalite::{Appender, MergePolicy, Result, SeriesAppender, WriteTxn};
use tidalite_testkit::rng::Rng;

/// Rows that an appender takes before it may be another's turn.
const TURN_ROWS_MAX: u64 = 300;
/// Times at which stretches begin; small, so that they meet rows that are there.
const START_MAX: u64 = 300;
/// Rows of a stretch that mostly stay beside others in the tail ...
const FEW: (i64, i64) = (1, 40);
/// ... of which two or three are worth blocks of their own, ...
const BLOCKS: (i64, i64) = (270, 400);
/// ... and which is worth a leaf.
const LEAF: (i64, i64) = (520, 800);

/// Rows for one series.
struct Stretch {
    name: String,
    merge: MergePolicy,
    times: Vec<i64>,
    flags: Vec<u64>,
    values: Vec<u64>,
    /// Given as columns, not row by row.
    as_columns: bool,
}

/// What one appender gets, piece by piece.
#[derive(Default)]
struct Feed {
    stretches: Vec<Stretch>,
    /// Which rows of which stretch are next.
    pieces: VecDeque<(usize, Range<usize>)>,
    /// It is dropped at its end, not finished.
    dropped: bool,
}

/// How the series of appenders lie to each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lie {
    /// Each has series between which no other has any.
    Apart,
    /// Any has any; rows of one series have times of their own.
    Among,
    /// An appender begins when the one before has ended, with any series and times.
    OneByOne,
}

/// Lends the transaction to a few appenders, which end before this returns.
///
/// # Errors
/// What the database reports.
pub(crate) fn lend(
    tx: &mut WriteTxn,
    next: &mut Model,
    rng: &mut Rng,
    shape: &Shape,
) -> Result<()> {
    let lie = *rng.pick(&[Lie::Apart, Lie::Apart, Lie::Among, Lie::OneByOne]);
    // With four each has the least memory there is, and a few hundred rows are worth blocks.
    let lent = *rng.pick(&[1, 2, 4, 4]);
    let names = names(tx, next, rng, shape)?;
    let feeds: Vec<_> = (0..lent)
        .map(|n| feed(&names, next, rng, (n, lent), lie))
        .collect();
    for stretch in feeds.iter().flat_map(|feed| &feed.stretches) {
        next.series.entry(stretch.name.clone()).or_default();
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
    for stretch in feeds.iter().flat_map(|feed| &feed.stretches) {
        note(stretch, 0..stretch.times.len(), next);
    }
    Ok(())
}

/// The series that appenders may have, in the order of their numbers; mostly the appenders' own.
fn names(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng, shape: &Shape) -> Result<Vec<String>> {
    let mut names: Vec<_> = (SERIES..SERIES + APPENDED).map(series_name).collect();
    // Rows for which the merge policy counts go through the transaction one at a time, in no order where there are threads.
    if rng.one_in(4) && !shape.threads {
        names.push(series_name(rng.below(SERIES)));
    }
    // Appenders make those that are not there, whose policy is the usual one. What number these get depends on which thread is quicker,
    // and whose rows they are on their numbers: so not where what is written must be the same each time.
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

/// Now and then some rows at the same times that the transaction itself has staged: they are older than all of the appenders.
fn rows_before(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng, feeds: &[Feed]) -> Result<()> {
    for stretch in feeds.iter().flat_map(|feed| &feed.stretches) {
        if !rng.one_in(4) {
            continue;
        }
        let rows = next.series.entry(stretch.name.clone()).or_default();
        let mut series = series(tx, &stretch.name)?;
        for _ in 0..=rng.below(2) {
            let time = *rng.pick(&stretch.times);
            insert(&mut series, rows, (time, 0, value_of(rng)))?;
        }
    }
    Ok(())
}

/// What the `n`-th of `lent` appenders gets.
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
        // The first one's blocks wait, and leaves of the others must not pass them.
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
        // Those of other appenders come between.
        let (every, at) = if lie == Lie::Among { (lent, n) } else { (1, 0) };
        let times = times(rng, count).into_iter();
        let flagged = rng.one_in(4);
        feed.stretches.push(Stretch {
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

/// Times of a stretch: they ascend, or descend, or some come late and some twice.
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
    /// Into pieces: a stretch after the other, or a row of each in turn.
    fn cut(&mut self, rng: &mut Rng) {
        let lengths: Vec<_> = self.stretches.iter().map(|own| own.times.len()).collect();
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

impl Stretch {
    fn row(&self, row: usize) -> (i64, [u64; 2]) {
        (self.times[row], [self.flags[row], self.values[row]])
    }
}

/// Gives rows of a stretch to an appender.
fn give(appender: &mut Appender<'_>, stretch: &Stretch, rows: Range<usize>) -> Result<()> {
    let mut series = appender.series(&stretch.name)?;
    if stretch.as_columns {
        let columns = [&stretch.flags[rows.clone()], &stretch.values[rows.clone()]];
        return series.append_rows(&stretch.times[rows], &columns);
    }
    for row in rows {
        insert_into(&mut series, stretch.row(row))?;
    }
    Ok(())
}

fn insert_into(
    series: &mut SeriesAppender<'_, '_>,
    (time, [flags, value]): (i64, [u64; 2]),
) -> Result<()> {
    series.insert_point(time, flags as i64, f64::from_bits(value))
}

/// What a stretch leaves of which every row was taken.
fn note(stretch: &Stretch, rows: Range<usize>, next: &mut Model) {
    let own = next.series.entry(stretch.name.clone()).or_default();
    for row in rows {
        let done = inserted(stretch.merge, own, stretch.row(row), Ok(()));
        assert!(done.is_ok(), "nothing is refused");
    }
}

/// Where rows may be refused: one by one.
fn try_each(
    appender: &mut Appender<'_>,
    stretch: &Stretch,
    rows: Range<usize>,
    own: &mut Rows,
) -> Result<()> {
    let mut series = appender.series(&stretch.name)?;
    for row in rows {
        let row = stretch.row(row);
        let done = insert_into(&mut series, row);
        inserted(stretch.merge, own, row, done)?;
    }
    Ok(())
}

fn end(appender: Appender<'_>, dropped: bool) -> Result<()> {
    if dropped {
        // What goes wrong the commit tells.
        drop(appender);
        return Ok(());
    }
    appender.finish()
}

/// One thread calls all, in an order of its own.
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
            let stretch = &feed.stretches[own];
            match stretch.merge {
                MergePolicy::Replace | MergePolicy::KeepAll | MergePolicy::KeepDistinct => {
                    give(appender, stretch, rows.clone())?;
                    note(stretch, rows, next);
                }
                _ => {
                    let own = next.series.entry(stretch.name.clone()).or_default();
                    try_each(appender, stretch, rows, own)?;
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

/// Each has a thread of its own.
fn beside(appenders: Vec<Appender<'_>>, feeds: &[Feed]) -> Result<()> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = appenders
            .into_iter()
            .zip(feeds)
            .map(|(mut appender, feed)| {
                scope.spawn(move || {
                    for (own, rows) in &feed.pieces {
                        give(&mut appender, &feed.stretches[*own], rows.clone())?;
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
