//! Rows of several series side by side, joined on time.
//!
//! 1. A series is *needed* if every result contains a row of this series: all series in an inner join, otherwise the
//!    series with a filter.
//! 2. The next result is therefore not before the next row of any needed series, and all series skip to that time (a
//!    leapfrog join). An as-of join cannot skip, because there a row also belongs to later times.
//! 3. Every result is tested row by row. A filter also skips whole vectors unread, except in the series that an as-of
//!    join joins to the first one: the current row of such a series must be known even if the filter rejects it.
//! 4. A backward join gives the same results in reverse order. If a series has several rows at one time, the valid row
//!    then comes first. In a backward as-of join each row of the first series makes the other series skip to its time.
//!    They stay there, because their row may also be current for earlier rows of the first series.

use crate::query::many::{Member, SelectionQuery};
use crate::query::merge::{MergedRows, Source};
use crate::series::figures::Figures;
use crate::types::error::Result;
use crate::types::instant::Steps;
use tidalite_series::{Direction, ValueRange};
use tidalite_time::Timestamp;

/// The rule by which rows are matched. If a series has several rows at one time
/// ([`MergePolicy::KeepAll`](crate::MergePolicy::KeepAll)), the row that arrived last is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// Matches rows of the same time, only at times at which every series has a row.
    Inner,
    /// Matches rows of the same time, at every time at which any series has a row.
    Outer,
    /// Matches each row of the first series with the last row at or before its time of each other series, if that row
    /// is at most `tolerance` nanoseconds older.
    AsOf {
        /// Maximum age in nanoseconds of a matched row; `i64::MAX` accepts any age.
        tolerance: i64,
    },
}

/// The joined rows of several series, returned by [`SelectionQuery::join`]; [`next`](Self::next) reads them one by one.
pub struct Joined<'s> {
    /// The merged rows of all series; in a backward as-of join, only of the first series.
    rows: MergedRows<'s>,
    /// The series other than the first in a backward as-of join; otherwise empty.
    others: Vec<Source<'s>>,
    direction: Direction,
    join: Join,
    /// Time of the earliest possible result. An as-of join also reads earlier rows, of the other series.
    from: i64,
    /// Filters of rows, each with the index of the series that it applies to.
    filters: Vec<(usize, ValueRange)>,
    /// Whether each series is needed (every result contains a row of it), and the number of needed series.
    needed: Vec<bool>,
    needed_count: usize,
    /// Time and words of the newest row of each series, up to the current time of the join.
    newest: Vec<(Option<i64>, Vec<u64>)>,
    /// Buffer for the words of a row that the join passes over.
    passed: Vec<u64>,
    /// Whether each entry of `newest` belongs to the current result.
    present: Vec<bool>,
    time: i64,
}

/// A result of a join: at most one row of each series.
pub struct JoinedRow<'r> {
    /// Time of the joined rows; in an as-of join, time of the first series' row.
    pub time: Timestamp,
    newest: &'r [(Option<i64>, Vec<u64>)],
    present: &'r [bool],
}

impl<'r> JoinedRow<'r> {
    /// The stored words of the row of series `i` of the selection, one per column; `None` if that series has no row in
    /// this result.
    ///
    /// # Panics
    /// If the series does not exist.
    #[must_use]
    pub fn words(&self, i: usize) -> Option<&'r [u64]> {
        self.present[i].then(|| &self.newest[i].1[..])
    }

    /// The time of the row of series `i`, if that series has a row in this result; in an as-of join this time is at or
    /// before `time`.
    ///
    /// # Panics
    /// If the series does not exist.
    #[must_use]
    pub fn time_of(&self, i: usize) -> Option<Timestamp> {
        self.newest[i].0.filter(|_| self.present[i]).map(Timestamp)
    }
}

impl<'s, F: Figures> SelectionQuery<'s, '_, F> {
    /// Joins the rows of the series, in ascending order of time, or from the last one on if [reversed](Self::reverse).
    /// An as-of join looks back before the interval for the rows that were current at its beginning. With
    /// [filters](Self::filter_series), a result requires that each filtered series has a row there that matches.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{Options, Steps};
    /// use tidalite::query::Join;
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// for (time, power, wind) in [(0, 0.0, 3.0), (1, 900.0, 9.0), (2, 0.0, 9.5)] {
    ///     tx.series("power")?.insert(Steps(time), power)?;
    ///     tx.series("wind")?.insert(Steps(time), wind)?;
    /// }
    /// tx.commit()?;
    /// let snap = db.begin_read()?;
    /// let both = snap.select("")?; // power, wind
    /// // Wind, and zero power.
    /// let idle = both.query(..).filter_series(0, "value", ..=0.0).filter_series(1, "value", 4.0..);
    /// let mut rows = idle.join(Join::Inner)?;
    /// assert_eq!(rows.next()?.map(|row| row.time.0), Some(2));
    /// assert!(rows.next()?.is_none());
    /// // The wind at the last power, and at the one before it.
    /// let mut rows = both.query(..).reverse().join(Join::AsOf { tolerance: i64::MAX })?;
    /// for expected in [9.5, 9.0] {
    ///     let row = rows.next()?.ok_or("no row")?;
    ///     assert_eq!(f64::from_bits(row.words(1).ok_or("no wind")?[1]), expected);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Schema` if a filtered series or column does not exist, or a filtered column has texts; a damaged or unreadable
    /// block; `InvalidInput` if a row's time does not fit nanoseconds.
    ///
    /// # Cost
    /// Reads the rows of all series; in an inner join, data between two rows of one series is skipped in the others. In
    /// ascending order, subtrees, leaves and vectors of a filtered series are skipped unread if their extremes exclude
    /// a match, and so is the data between the remaining rows in the other series. In an as-of join only the first
    /// series is skipped through, and the other series are read; if the join is reversed, the data between two rows of
    /// the first series is skipped in the other series.
    pub fn join(&self, join: Join) -> Result<Joined<'s>> {
        let times = self.times()?;
        let direction = self.direction;
        let looks_back = matches!(join, Join::AsOf { .. });
        let mut sources = Vec::with_capacity(self.members.len());
        let mut start = i64::MIN;
        for (i, Member { series, filters }) in self.members.iter().enumerate() {
            let unit = series.info().schema.unit;
            let (mut from, mut to) = times.in_unit(unit);
            if i == 0 && from <= to {
                start = unit.timestamp(from).map_or(i64::MIN, |t| t.0);
            }
            if i > 0 && looks_back {
                // The series' steps may be longer than the interval, or none may coincide with its beginning: then the
                // row that is current at the beginning has an earlier time.
                let current = times.current_in(unit);
                if let Some(row) = series.cursor().search(Steps(current))? {
                    to = if from <= to { to } else { row.time };
                    from = row.time;
                }
            }
            let ranges = match i == 0 || !looks_back {
                true => filters.clone(),
                false => Vec::new(),
            };
            sources.push(Source::new(series, (from, to), ranges, direction));
        }
        let count = sources.len();
        let filtered = |i: usize| !self.members[i].filters.is_empty();
        let needed = |i: usize| !looks_back && (join == Join::Inner || filtered(i));
        let needed: Vec<bool> = (0..count).map(needed).collect();
        let others = match looks_back && direction == Direction::Backward {
            true => sources.drain(1.min(count)..).collect(),
            false => Vec::new(),
        };
        let each = self.members.iter().enumerate();
        let filters = each.flat_map(|(i, own)| own.filters.iter().map(move |range| (i, *range)));
        Ok(Joined {
            rows: MergedRows::new(sources, direction)?,
            others,
            direction,
            join,
            from: start,
            filters: filters.collect(),
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
    /// Reads the next result of the join; returns `None` after the last.
    ///
    /// # Errors
    /// As for [`SelectionQuery::join`].
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

    /// Reads all rows of the next time into `newest`; returns false after the last row.
    fn step(&mut self) -> Result<bool> {
        // Skips to the next row of the needed series that is furthest ahead; repeats until all needed series are there.
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
            // In a backward join, the row of this time that arrived last comes first. It is the valid row; the others
            // are passed over.
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

    /// Determines which series have a row in the result at the current time; returns whether this is a result of the
    /// join.
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
            self.present[*i] && range.contains(self.newest[*i].1[range.column()])
        };
        belongs && self.filters.iter().all(wanted)
    }
}
