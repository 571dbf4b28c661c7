//! Rows of several series side by side, joined on time.
//!
//! 1. A series is *needed* when no row is told at a time at which it has none: all in an inner join, else those that a filter is for.
//! 2. So the next row that is told is not before the next row of any needed series, and all go on from there (a leapfrog join). Not so in an as-of
//!    join: there a row belongs to later times, too.
//! 3. What is told is tested row by row. The filters of a series leave out vectors unread where that changes nothing else: not of the series that an
//!    as-of join looks back into, where the row that is current must be known even if it is not wanted.
//! 4. Backward the same rows are told, the last first. Of the rows that a series has at one time the one that counts is met first then; and in an as-of
//!    join each row of the first series has the others skip to its time, where they stay: the row there may be current for earlier ones, too.

use crate::query::filter::ValueFilter;
use crate::query::merge::{MergedRows, Source};
use crate::query::selection::Selection;
use crate::query::units;
use crate::types::error::{Error, Result};
use crate::types::time::Timestamp;
use std::ops::RangeBounds;
use tidalite_series::{Direction, ValueRange};

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
    /// Of all series; backward in an as-of join, of the first.
    rows: MergedRows<'s>,
    /// The other series then, else none.
    others: Vec<Source<'s>>,
    direction: Direction,
    join: Join,
    /// First time that is told: as-of reads rows of the other series from before it.
    from: i64,
    /// What rows of the series with these places must match.
    filters: Vec<(usize, ValueRange)>,
    /// Whether a series is needed, and how many are.
    needed: Vec<bool>,
    needed_count: usize,
    /// The newest row of each series: its time and words.
    newest: Vec<(Option<i64>, Vec<u64>)>,
    /// The words of a row that does not count.
    passed: Vec<u64>,
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
    ///
    /// # Cost
    /// Reads the rows of all series; in an inner join what lies between two rows of one of them is passed by in the others.
    pub fn join(&self, times: impl RangeBounds<Timestamp>, join: Join) -> Result<Joined<'_>> {
        self.join_matching(times, join, [])
    }

    /// As `join`, but only the rows that all of the filters want, each of the series with its place in the selection: a row is told when that series
    /// has one there, and its value is wanted.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{Join, MemoryStorage, Options, ValueFilter};
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// for (time, power, wind) in [(0_i64, 0.0, 3.0), (1, 900.0, 9.0), (2, 0.0, 9.5)] {
    ///     tx.series("power")?.insert(time, power)?;
    ///     tx.series("wind")?.insert(time, wind)?;
    /// }
    /// tx.commit()?;
    /// let snap = db.begin_read()?;
    /// let both = snap.select("")?; // power, wind
    /// // Wind, and no power: column 1 of a default point is its value.
    /// let idle = [(0, ValueFilter::new(1, ..=0.0)), (1, ValueFilter::new(1, 4.0..))];
    /// let mut rows = both.join_matching(.., Join::Inner, idle)?;
    /// assert_eq!(rows.next()?.map(|row| row.time.0), Some(2));
    /// assert!(rows.next()?.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for `join`; `Schema` for a series or a column that is not there, or a column of texts.
    ///
    /// # Cost
    /// Subtrees, leaves and vectors of a filtered series are passed by unread whose extremes rule a match out, and in the other series what lies
    /// between rows of these. In an as-of join only the first series is passed by, the others are read.
    pub fn join_matching(
        &self,
        times: impl RangeBounds<Timestamp>,
        join: Join,
        filters: impl IntoIterator<Item = (usize, ValueFilter)>,
    ) -> Result<Joined<'_>> {
        self.joined(times, join, filters, Direction::Forward)
    }

    /// As `join`, the last rows first.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{Join, MemoryStorage, Options};
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// for (time, bid, ask) in [(0_i64, 9.9, 10.1), (1, 9.8, 10.0), (2, 9.9, 10.2)] {
    ///     tx.series("bid")?.insert(time, bid)?;
    ///     tx.series("ask")?.insert(time + time % 2, ask)?;
    /// }
    /// tx.commit()?;
    /// let snap = db.begin_read()?;
    /// let both = snap.select("")?; // bid, ask
    /// // The ask at the last bid, and at the one before that.
    /// let mut rows = both.join_reverse(.., Join::AsOf { tolerance: i64::MAX })?;
    /// for expected in [10.2, 10.1] {
    ///     let row = rows.next()?.ok_or("no row")?;
    ///     assert_eq!(f64::from_bits(row.words(1).ok_or("no ask")?[1]), expected);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for `join`.
    ///
    /// # Cost
    /// As for `join`; an as-of join passes by what lies between two rows of the first series in the others.
    pub fn join_reverse(
        &self,
        times: impl RangeBounds<Timestamp>,
        join: Join,
    ) -> Result<Joined<'_>> {
        self.joined(times, join, [], Direction::Backward)
    }

    /// As `join_matching`, the last rows first.
    ///
    /// # Errors
    /// As for `join_matching`.
    ///
    /// # Cost
    /// As for `join_reverse`: filters decide what is told, and pass nothing by by what its extremes are.
    pub fn join_matching_reverse(
        &self,
        times: impl RangeBounds<Timestamp>,
        join: Join,
        filters: impl IntoIterator<Item = (usize, ValueFilter)>,
    ) -> Result<Joined<'_>> {
        self.joined(times, join, filters, Direction::Backward)
    }

    fn joined(
        &self,
        times: impl RangeBounds<Timestamp>,
        join: Join,
        filters: impl IntoIterator<Item = (usize, ValueFilter)>,
        direction: Direction,
    ) -> Result<Joined<'_>> {
        let own = |(place, filter): (usize, ValueFilter)| {
            let series = self.series().get(place).ok_or_else(|| {
                let problem = format!(
                    "there are {} series, filtered is number {place}",
                    self.len()
                );
                Error::Schema { problem }
            })?;
            Ok((place, filter.range(&series.info().schema.columns)?))
        };
        let filters = filters.into_iter().map(own).collect::<Result<Vec<_>>>()?;
        let looks_back = matches!(join, Join::AsOf { .. });
        let mut sources = Vec::with_capacity(self.len());
        let mut start = i64::MIN;
        for (i, series) in self.series().iter().enumerate() {
            let unit = series.info().schema.unit;
            let (mut from, mut to) = units::interval(&times, unit);
            if i == 0 && from <= to {
                start = unit.timestamp(from).map_or(i64::MIN, |t| t.0);
            }
            if i > 0 && looks_back {
                // Its steps may be longer than the interval, or none may fall on the beginning: the current row lies before that.
                let current = units::current_at_start(&times, unit);
                if let Some(row) = series.cursor().search(current)? {
                    to = if from <= to { to } else { row.time };
                    from = row.time;
                }
            }
            let ranges = filters.iter().filter(|(place, _)| *place == i);
            let ranges = ranges.filter(|_| i == 0 || !looks_back);
            let ranges = ranges.map(|(_, range)| *range).collect();
            sources.push(Source::new(series, (from, to), ranges, direction));
        }
        let count = sources.len();
        let filtered = |i: usize| filters.iter().any(|(place, _)| *place == i);
        let needed = |i: usize| !looks_back && (join == Join::Inner || filtered(i));
        let needed: Vec<bool> = (0..count).map(needed).collect();
        let others = match looks_back && direction == Direction::Backward {
            true => sources.drain(1.min(count)..).collect(),
            false => Vec::new(),
        };
        Ok(Joined {
            rows: MergedRows::new(sources, direction)?,
            others,
            direction,
            join,
            from: start,
            filters,
            needed_count: needed.iter().filter(|needed| **needed).count(),
            needed,
            newest: vec![(None, Vec::new()); count],
            passed: Vec::new(),
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
        // As far as the needed series that is furthest ahead, until that is none of them any more.
        let backward = self.direction == Direction::Backward;
        while self.needed_count > 0 {
            let (mut there, mut furthest) = (0, if backward { i64::MAX } else { i64::MIN });
            for (time, series) in self.rows.heads() {
                if self.needed[series] {
                    there += 1;
                    furthest = match backward {
                        true => furthest.min(time),
                        false => furthest.max(time),
                    };
                }
            }
            if there < self.needed_count {
                return Ok(false);
            }
            let is_passed = |(time, _): (i64, usize)| match backward {
                true => time > furthest,
                false => time < furthest,
            };
            if !self.rows.peek().is_some_and(is_passed) {
                break;
            }
            self.rows.skip_to(furthest)?;
        }
        let Some((time, _)) = self.rows.peek() else {
            return Ok(false);
        };
        self.time = time;
        while let Some((same, series)) = self.rows.peek()
            && same == time
        {
            let (at, words) = &mut self.newest[series];
            // Backward the last to arrive is met first.
            let earlier = backward && *at == Some(time);
            *at = Some(time);
            self.rows
                .take(if earlier { &mut self.passed } else { words })?;
        }
        for (other, (at, words)) in self.others.iter_mut().zip(&mut self.newest[1..]) {
            other.skip_to(time);
            *at = other.peek()?;
            if at.is_some() {
                other.look(words);
            }
        }
        Ok(true)
    }

    /// Finds what is present; says whether that is a row of the join.
    fn belongs(&mut self) -> bool {
        let (time, join) = (self.time, self.join);
        let belongs_with = |at: i64| match join {
            Join::AsOf { tolerance } => i128::from(time) - i128::from(at) <= tolerance.into(),
            Join::Inner | Join::Outer => at == time,
        };
        for ((at, _), present) in self.newest.iter().zip(&mut self.present) {
            *present = at.is_some_and(belongs_with);
        }
        let belongs = match join {
            Join::Inner => self.present.iter().all(|&present| present),
            Join::Outer => true,
            Join::AsOf { .. } => time >= self.from && self.newest[0].0 == Some(time),
        };
        let wanted = |(i, range): &(usize, ValueRange)| {
            self.present[*i] && range.holds(self.newest[*i].1[range.column()])
        };
        belongs && self.filters.iter().all(wanted)
    }
}
