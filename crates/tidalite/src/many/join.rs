//! Rows of several series side by side, joined on time.

use super::merge::{MergedRows, Source};
use super::{Selection, clock};
use crate::error::Result;
use crate::time::Timestamp;
use std::ops::RangeBounds;

/// Which rows belong together. Of several rows that a series has at one time ([`MergePolicy::KeepAll`](crate::MergePolicy::KeepAll)) the
/// last to arrive is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// Rows of the same time; only times at which every series has one.
    Inner,
    /// Rows of the same time; every time at which any series has one.
    Outer,
    /// For each row of the first series, the last row at or before its time of each other series, if it is at
    /// most `tolerance` nanoseconds older.
    AsOf {
        /// Nanoseconds that a row may be old at most; `i64::MAX` takes any age.
        tolerance: i64,
    },
}

/// Rows of a selection's series side by side; see [`Selection::join`].
pub struct Joined<'s> {
    rows: MergedRows<'s>,
    join: Join,
    /// First time that is told: as-of reads rows of the other series from before it.
    from: i64,
    /// The newest row of each series: its time and words.
    newest: Vec<(Option<i64>, Vec<u64>)>,
    /// Which of `newest` belong to the row that is handed out.
    present: Vec<bool>,
    time: i64,
}

/// Rows that belong together.
pub struct JoinedRow<'r> {
    /// Their time; in an as-of join that of the first series' row.
    pub time: Timestamp,
    newest: &'r [(Option<i64>, Vec<u64>)],
    present: &'r [bool],
}

impl<'r> JoinedRow<'r> {
    /// The words of the row of series `i` of the selection; `None` where it has none.
    ///
    /// # Panics
    /// When there is no such series.
    #[must_use]
    pub fn words(&self, i: usize) -> Option<&'r [u64]> {
        self.present[i].then(|| &self.newest[i].1[..])
    }

    /// When the row of series `i` was measured; in an as-of join at or before `time`.
    ///
    /// # Panics
    /// When there is no such series.
    #[must_use]
    pub fn time_of(&self, i: usize) -> Option<Timestamp> {
        self.newest[i].0.filter(|_| self.present[i]).map(Timestamp)
    }
}

impl Selection<'_> {
    /// The rows of the series within `times` side by side, ascending. An as-of join looks back before the interval
    /// for the rows that were current at its beginning.
    ///
    /// # Errors
    /// A damaged or unreadable block; `Timestamp` for a row whose time does not fit nanoseconds.
    pub fn join(&self, times: impl RangeBounds<Timestamp>, join: Join) -> Result<Joined<'_>> {
        let mut sources = Vec::with_capacity(self.len());
        let mut start = i64::MIN;
        for (i, series) in self.series().iter().enumerate() {
            let unit = series.info().schema.unit;
            let (mut from, mut to) = clock::interval(&times, unit);
            if i == 0 && from <= to {
                start = unit.timestamp(from).map_or(i64::MIN, |t| t.0);
            }
            if i > 0 && matches!(join, Join::AsOf { .. }) {
                // Its steps may be longer than the interval, or none may fall on the beginning: the current row lies before that.
                let current = clock::current_at_start(&times, unit);
                if let Some(row) = series.cursor().search(current)? {
                    to = if from <= to { to } else { row.time };
                    from = row.time;
                }
            }
            sources.push(Source::new(series, from, to));
        }
        let count = sources.len();
        Ok(Joined {
            rows: MergedRows::new(sources)?,
            join,
            from: start,
            newest: vec![(None, Vec::new()); count],
            present: vec![false; count],
            time: 0,
        })
    }
}

impl Joined<'_> {
    /// The next rows that belong together; `None` behind the last.
    ///
    /// # Errors
    /// As for [`Selection::join`].
    #[expect(
        clippy::should_implement_trait,
        reason = "a fallible step that lends, not an iterator"
    )]
    pub fn next(&mut self) -> Result<Option<JoinedRow<'_>>> {
        while self.step()? {
            if self.belongs() {
                return Ok(Some(JoinedRow {
                    time: Timestamp(self.time),
                    newest: &self.newest,
                    present: &self.present,
                }));
            }
        }
        Ok(None)
    }

    /// Takes all rows of the next time; false behind the last.
    fn step(&mut self) -> Result<bool> {
        let Some((time, _)) = self.rows.peek() else {
            return Ok(false);
        };
        self.time = time;
        while let Some((same, series)) = self.rows.peek()
            && same == time
        {
            let (at, words) = &mut self.newest[series];
            *at = Some(time);
            self.rows.take(words)?;
        }
        Ok(true)
    }

    /// Finds what is present; says whether that is a row of the join.
    fn belongs(&mut self) -> bool {
        let (time, join) = (self.time, self.join);
        let tolerance = match join {
            Join::AsOf { tolerance } => tolerance,
            Join::Inner | Join::Outer => 0,
        };
        for ((at, _), present) in self.newest.iter().zip(&mut self.present) {
            *present = at.is_some_and(|at| i128::from(time) - i128::from(at) <= tolerance.into());
        }
        match join {
            Join::Inner => self.present.iter().all(|&present| present),
            Join::Outer => true,
            Join::AsOf { .. } => time >= self.from && self.newest[0].0 == Some(time),
        }
    }
}
