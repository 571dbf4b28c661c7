//! Questions that are worth it are shared out among threads: pieces of an interval, or series of many.
//!
//! Invariants
//! 1. Answers are those of one thread, bit by bit: what is shared out are whole windows or whole series, and what is merged is merged in the
//!    order in which one thread would do it.
//! 2. As of `helpers.rs`, which has the threads.

use crate::series::helpers::{Helpers, VECTORS_MIN};
use crate::series::range::Range;
use crate::series::read::Series;
use crate::txn::pages::Pages;
use crate::types::error::Result;
use tidalite_base::limits::VECTOR_ROWS;

impl<'a> Helpers<'a> {
    /// As `of`, for series of which all are read by one snapshot.
    pub(crate) fn of_all(series: &[&Series<'a>]) -> Option<Self> {
        let helpers = series.first()?.helpers()?;
        let same = |series: &&Series<'_>| match series.pages() {
            Pages::Snapshot(own) => std::ptr::eq(*own, helpers.snapshot),
            _ => false,
        };
        (series.len() > 1 && series.iter().all(same)).then_some(helpers)
    }

    /// Asks each of the series; answers are in their order.
    pub(crate) fn ask_each<T: Send>(
        &self,
        series: &[&Series<'_>],
        ask: impl Fn(usize, &Series<'_>) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let each = series.len().div_ceil(self.pieces()).max(1);
        let states: Vec<_> = series.iter().map(|series| series.movable()).collect();
        let parts = states.len().div_ceil(each);
        let answers = self.share_out(parts, |snapshot, part| {
            let from = part * each;
            let part = states[from..].iter().take(each).enumerate();
            part.map(|(at, state)| ask(from + at, &state.on(snapshot)))
                .collect::<Result<Vec<T>>>()
        })?;
        Ok(answers.into_iter().flatten().collect())
    }

    /// Asks the intervals of a series; answers are in their order.
    pub(crate) fn ask_parts<T: Send>(
        &self,
        series: &Series<'_>,
        parts: &[(i64, i64)],
        ask: impl Fn(Range<'_>) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let state = series.movable();
        self.share_out(parts.len(), |snapshot, part| {
            let series = &state.on(snapshot);
            let (from, to) = parts[part];
            ask(Range { series, from, to })
        })
    }
}

impl Range<'_> {
    /// Cuts the interval into up to `parts` parts of about as many rows each, in ascending order, one behind the other: for threads of
    /// one's own, or to go on later. No part is without rows, unless there are none at all.
    ///
    /// # Errors
    /// A damaged or unreadable block.
    ///
    /// # Cost
    /// A few [counts](Range::count) for each part.
    pub fn split(&self, parts: usize) -> Result<Vec<Self>> {
        let whole = vec![*self];
        let Some((first, last)) = self.series.span() else {
            return Ok(whole);
        };
        let (low, high) = (self.from.max(first), self.to.min(last));
        if low > high || parts < 2 {
            return Ok(whole);
        }
        let rows = self.series.view().count(low, high)?;
        let mut ends = Vec::new();
        let (mut from, mut before) = (low, 0);
        for part in 1..parts as u64 {
            let wanted = (u128::from(rows) * u128::from(part) / parts as u128) as u64;
            // A row more or less in fifty does not matter.
            let near = rows / parts as u64 / 50;
            let Some(end) = self.end_of(wanted - before.min(wanted), near, (from, high))? else {
                continue;
            };
            ends.push(end.time);
            before += end.rows;
            from = end.time + 1;
        }
        let mut from = self.from;
        let mut all = Vec::with_capacity(ends.len() + 1);
        for to in ends {
            all.push(Self { from, to, ..*self });
            from = to + 1;
        }
        all.push(Self { from, ..*self });
        Ok(all)
    }

    /// Up to which time, below `high`, about so many rows lie from `low` on, and how many they are; `None` without any, or with all.
    fn end_of(&self, wanted: u64, near: u64, (low, high): (i64, i64)) -> Result<Option<End>> {
        // Up to `below` there are fewer, up to `above` more.
        let (mut below, mut above) = (i128::from(low) - 1, i128::from(high));
        let mut best: Option<End> = None;
        while above - below > 1 {
            let time = (below + (above - below) / 2) as i64;
            let rows = self.series.view().count(low, time)?;
            if rows > 0
                && best.is_none_or(|best| rows.abs_diff(wanted) < best.rows.abs_diff(wanted))
            {
                best = Some(End { time, rows });
            }
            if rows.abs_diff(wanted) <= near {
                break;
            }
            if rows < wanted {
                below = time.into();
            } else {
                above = time.into();
            }
        }
        Ok(best)
    }

    /// Asks parts of the interval that have about as many rows each, on the threads at hand
    /// ([`Options::scan_threads`](crate::Options::scan_threads)), and returns the answers in the order of the parts. How many parts there are is not
    /// promised: one in a transaction, and for few rows.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tidalite::{MemoryStorage, Options};
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// # let mut tx = db.begin_write()?;
    /// # for time in 0..1000_i64 { tx.series("wind")?.insert(time, 0.5)?; }
    /// # tx.commit()?;
    /// let snap = db.begin_read()?;
    /// let wind = snap.series("wind")?.expect("it is there");
    /// let energy = wind.all().in_parallel(|part| {
    ///     let mut sum = 0.0;
    ///     part.for_each_vector(|rows| sum += rows.f64(1).iter().map(|speed| speed.powi(3)).sum::<f64>())?;
    ///     Ok(sum)
    /// })?;
    /// assert_eq!(energy.iter().sum::<f64>(), 125.0);
    /// # Ok::<(), tidalite::Error>(())
    /// ```
    ///
    /// # Errors
    /// That of the first part that fails; a damaged or unreadable block.
    ///
    /// # Panics
    /// When `ask` does.
    pub fn in_parallel<T: Send>(
        &self,
        ask: impl Fn(Range<'_>) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let Some(helpers) = self.series.helpers() else {
            return Ok(vec![ask(*self)?]);
        };
        let vectors = self.count()? / VECTOR_ROWS as u64;
        if vectors < VECTORS_MIN {
            return Ok(vec![ask(*self)?]);
        }
        let parts = self.split(helpers.pieces())?;
        let parts: Vec<_> = parts.iter().map(|part| (part.from, part.to)).collect();
        helpers.ask_parts(self.series, &parts, ask)
    }

    /// The intervals that `windows` are best asked by: whole windows, as many in each; `None` where one thread is as quick.
    pub(crate) fn parts_of_windows(
        &self,
        width: i64,
        origin: i64,
    ) -> Result<Option<Vec<(i64, i64)>>> {
        let (Some(helpers), Some((first, last))) = (self.series.helpers(), self.series.span())
        else {
            return Ok(None);
        };
        let (low, high) = (self.from.max(first), self.to.min(last));
        if width < 1 || low > high {
            return Ok(None);
        }
        let window = |time: i64| (i128::from(time) - i128::from(origin)).div_euclid(width.into());
        let (first, windows) = (window(low), window(high) - window(low) + 1);
        if windows < VECTORS_MIN.into()
            || self.series.view().count(low, high)? / (VECTOR_ROWS as u64) < VECTORS_MIN
        {
            return Ok(None);
        }
        let pieces = helpers.pieces() as i128;
        let begin = |piece: i128| {
            let window = first + windows * piece / pieces;
            i128::from(origin) + window * i128::from(width)
        };
        let part = |piece: i128| {
            // The first and the last reach as far as the interval does; the others begin and end within the span.
            let from = if piece == 0 {
                self.from
            } else {
                begin(piece) as i64
            };
            let to = if piece + 1 == pieces {
                self.to
            } else {
                (begin(piece + 1) - 1) as i64
            };
            (from, to)
        };
        Ok(Some((0..pieces).map(part).collect()))
    }
}

/// Where a part of an interval ends.
#[derive(Clone, Copy)]
struct End {
    time: i64,
    rows: u64,
}
