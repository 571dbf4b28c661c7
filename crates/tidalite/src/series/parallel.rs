//! Large queries distributed over threads: parts of an interval, or single series of many.
//!
//! Invariants
//! 1. Results equal the results of one thread, bit by bit: only whole windows or whole series are distributed, and
//!    results are merged in the order in which one thread would do it.
//! 2. The invariants of `helpers.rs`, which provides the threads, hold.

use crate::series::figures::Figures;
use crate::series::helpers::{Helpers, VECTORS_MIN};
use crate::series::nearest::Direction;
use crate::series::query::Query;
use crate::series::read::Series;
use crate::txn::pages::Pages;
use crate::types::error::Result;
use crate::types::grid::StepGrid;
use tidalite_base::limits::VECTOR_ROWS;

impl<'a> Helpers<'a> {
    /// The helpers for a query of several series; `None` unless all of them are read through one snapshot.
    pub(crate) fn of_all(series: &[&Series<'a>]) -> Option<Self> {
        let helpers = series.first()?.helpers()?;
        let same = |series: &&Series<'_>| match series.pages() {
            Pages::Snapshot(own) => std::ptr::eq(*own, helpers.snapshot),
            _ => false,
        };
        (series.len() > 1 && series.iter().all(same)).then_some(helpers)
    }

    /// Queries each of the series; results are in their order.
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

    /// Queries the intervals of a series; results are in their order.
    pub(crate) fn ask_parts<T: Send, F: Figures>(
        &self,
        query: &Query<'_, F>,
        parts: &[(i64, i64)],
        ask: impl Fn(Query<'_, F>) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let state = query.series.movable();
        self.share_out(parts.len(), |snapshot, part| {
            let series = &state.on(snapshot);
            ask(query.part(series, parts[part]))
        })
    }
}

impl<F: Figures> Query<'_, F> {
    /// Divides the interval into up to `parts` consecutive parts with about equal numbers of rows, in ascending order:
    /// for the caller's own threads, or to continue later. No part is empty, unless there are no rows at all: filters
    /// are not considered, every part has the filters of the query.
    ///
    /// # Errors
    /// A damaged or unreadable block.
    ///
    /// # Cost
    /// A few [counts](Query::count) for each part.
    pub fn split(&self, parts: usize) -> Result<Vec<Self>> {
        let settled = self.settled()?;
        settled.split_settled(parts)
    }

    fn split_settled(&self, parts: usize) -> Result<Vec<Self>> {
        let whole = vec![self.clone()];
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
            // A part may have two percent more or fewer rows than the others.
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
            all.push(self.part(self.series, (from, to)));
            from = to + 1;
        }
        all.push(self.part(self.series, (from, self.to)));
        Ok(all)
    }

    /// Finds the time (below `high`) such that about `wanted` rows lie between `low` and it; returns that time and the
    /// exact number of rows. `None` if the number would be zero or include all rows.
    fn end_of(&self, wanted: u64, near: u64, (low, high): (i64, i64)) -> Result<Option<End>> {
        // The wanted time lies between `below`, up to which there are too few rows, and `above`, up to which there are
        // too many.
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

    /// Queries parts of the interval with about equal numbers of rows, on the available threads
    /// ([`Options::scan_threads`](crate::Options::scan_threads)), and returns the results in the order of the parts.
    /// The number of parts is unspecified: one in a transaction, and for few rows.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tidalite::{Options, Steps};
    /// # use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// # let mut tx = db.begin_write()?;
    /// # for time in 0..1000_i64 { tx.series("wind")?.insert(Steps(time), 0.5)?; }
    /// # tx.commit()?;
    /// let snap = db.begin_read()?;
    /// let wind = snap.series("wind")?.expect("it is there");
    /// let energy = wind.query(..).in_parallel(|part| {
    ///     let mut sum = 0.0;
    ///     part.for_each_vector(|rows| sum += rows.f64(1).iter().map(|speed| speed.powi(3)).sum::<f64>())?;
    ///     Ok(sum)
    /// })?;
    /// assert_eq!(energy.iter().sum::<f64>(), 125.0);
    /// # Ok::<(), tidalite::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error of the first part that fails; a damaged or unreadable block.
    ///
    /// # Panics
    /// If `ask` panics.
    pub fn in_parallel<T: Send>(
        &self,
        ask: impl Fn(Query<'_, F>) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let Some(helpers) = self.series.helpers() else {
            return Ok(vec![ask(self.settled()?)?]);
        };
        let settled = self.settled()?;
        let rows = self.series.view().count(settled.from, settled.to)?;
        if rows / (VECTOR_ROWS as u64) < VECTORS_MIN {
            return Ok(vec![ask(settled)?]);
        }
        let mut parts = settled.split_settled(helpers.pieces())?;
        if self.direction == Direction::Backward {
            parts.reverse();
        }
        let parts: Vec<_> = parts.iter().map(|part| (part.from, part.to)).collect();
        helpers.ask_parts(&settled, &parts, ask)
    }

    /// The best parts for `windows`: an equal number of whole windows each; `None` if one thread is as fast.
    pub(crate) fn parts_of_windows(&self, grid: &StepGrid) -> Result<Option<Vec<(i64, i64)>>> {
        let (Some(helpers), Some((first, last))) = (self.series.helpers(), self.series.span())
        else {
            return Ok(None);
        };
        let (low, high) = (self.from.max(first), self.to.min(last));
        let has_no_windows = matches!(grid, StepGrid::Even { width, .. } if *width < 1);
        if has_no_windows || low > high {
            return Ok(None);
        }
        let first = grid.index(low);
        let windows = grid.index(high) - first + 1;
        if windows < VECTORS_MIN.into()
            || self.series.view().count(low, high)? / (VECTOR_ROWS as u64) < VECTORS_MIN
        {
            return Ok(None);
        }
        let pieces = helpers.pieces() as i128;
        let begin = |piece: i128| grid.start(first + windows * piece / pieces);
        let part = |piece: i128| {
            // The first and the last part extend to the ends of the interval; the others begin and end within the span.
            let from = if piece == 0 { self.from } else { begin(piece) };
            let to = if piece + 1 == pieces {
                self.to
            } else {
                begin(piece + 1) - 1
            };
            (from, to)
        };
        Ok(Some((0..pieces).map(part).collect()))
    }
}

/// The end of a part of an interval.
#[derive(Clone, Copy)]
struct End {
    time: i64,
    rows: u64,
}
