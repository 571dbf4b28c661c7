//! The fast path for reading the rows of an interval, in slices of up to 1024. Segments (vectors, or runs of late rows)
//! wholly inside the interval are delivered as decoded, without checking single rows.

use crate::read::lines::Lines;
use crate::read::matching::Matching;
use crate::read::segments::Segments;
use crate::read::vector::{NextRows, Vector};
use crate::read::view::View;
use std::ops::Range;
use tidalite_base::limits::VECTOR_ROWS;
use tidalite_pager::{PageRead, Result};

/// Indexes of those rows of the loaded segment that lie inside the interval.
fn inside<R: PageRead>(segments: &Segments<'_, R>, from: i64, to: i64) -> Range<usize> {
    let (begin, end) = segments.span();
    let times = segments.times();
    debug_assert!(
        times.first() == Some(&begin) && times.last() == Some(&end),
        "the span of the rows"
    );
    let low = if from <= begin {
        0
    } else {
        times.partition_point(|&t| t < from)
    };
    let high = if end <= to {
        times.len()
    } else {
        times.partition_point(|&t| t <= to)
    };
    low..high.max(low)
}

/// The rows of an interval, vector by vector; the caller requests each vector with `next`.
///
/// Invariants: 1. `range` holds the rows of the loaded segment that were not delivered yet. 2. `from` only grows, and
/// no row before it is delivered.
pub struct Scan<'a, R> {
    segments: Segments<'a, R>,
    from: i64,
    to: i64,
    range: Range<usize>,
    state: State,
    /// If set, segments in which no row can match are skipped.
    only: Option<Matching<'a, R>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Before,
    Within,
    After,
}

impl<'a, R: PageRead> Scan<'a, R> {
    pub(super) fn new(segments: Segments<'a, R>, from: i64, to: i64) -> Self {
        let state = if from > to {
            State::After
        } else {
            State::Before
        };
        Self {
            segments,
            from,
            to,
            range: 0..0,
            state,
            only: None,
        }
    }

    /// Restricts the scan to segments in which a row may match.
    pub(super) fn only(mut self, matching: Matching<'a, R>) -> Self {
        self.only = Some(matching);
        self
    }

    /// Skips the remaining rows before time `t`.
    pub fn skip_to(&mut self, t: i64) {
        if t <= self.from {
            return;
        }
        self.from = t;
        if !self.range.is_empty() {
            let times = &self.segments.times()[self.range.clone()];
            self.range.start += times.partition_point(|&time| time < t);
            debug_assert!(self.range.start <= self.range.end, "rows that are left");
        }
    }

    /// The next rows, up to 1024, in ascending order; `None` after the last row.
    ///
    /// # Errors
    /// `Io`, `Corrupt`; after an error the scan returns no more rows.
    #[expect(
        clippy::should_implement_trait,
        reason = "a fallible step that lends, not an iterator"
    )]
    pub fn next(&mut self) -> Result<Option<Vector<'_>>> {
        if self.range.is_empty() && !self.load()? {
            return Ok(None);
        }
        Ok(Some(self.deliver()))
    }

    /// Like `next`, but rows with constant steps are not written to memory: `lines` then describes these rows.
    ///
    /// # Errors
    /// As for `next`.
    pub fn next_rows_or_lines(&mut self, lines: &mut Lines) -> Result<Option<NextRows<'_>>> {
        if self.range.is_empty() {
            if !self.step()? {
                return Ok(None);
            }
            let (begin, end) = self.segments.span();
            if self.from <= begin && end <= self.to {
                self.state = State::After; // an error ends the scan
                if self.segments.load_lines(lines, self.to)? {
                    self.state = State::Within;
                    return Ok(Some(NextRows::Lines));
                }
            }
            if !self.load_current()? && !self.load()? {
                return Ok(None);
            }
        }
        Ok(Some(NextRows::Vector(self.deliver())))
    }

    /// Takes the next rows of the loaded segment.
    fn deliver(&mut self) -> Vector<'_> {
        let stop = self.range.end.min(self.range.start + VECTOR_ROWS);
        let range = self.range.start..stop;
        debug_assert!(!range.is_empty(), "a vector has rows");
        self.range.start = stop;
        Vector {
            times: &self.segments.times()[range.clone()],
            range,
            words: &self.segments,
        }
    }

    /// Loads the next segment that has rows inside the interval; returns false if there is none.
    fn load(&mut self) -> Result<bool> {
        while self.step()? {
            if self.load_current()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Moves to the next segment whose time span overlaps the interval; returns false if there is none.
    fn step(&mut self) -> Result<bool> {
        let segments = &mut self.segments;
        // If an error occurs below, the scan stays at its end.
        let mut before = std::mem::replace(&mut self.state, State::After);
        let mut at_late = false;
        if let Some(only) = &self.only
            && before != State::After
        {
            let behind = match before {
                State::Within => segments.span().1.checked_add(1),
                State::Before | State::After => Some(self.from),
            };
            let start = behind.map(|behind| behind.max(self.from));
            let found = match start {
                Some(start) => only.first_that_may_match(start, self.to)?,
                None => None,
            };
            match found {
                Some((found, is_late)) => {
                    (self.from, before, at_late) = (found, State::Before, is_late);
                }
                None => return Ok(false),
            }
        }
        let mut on = match before {
            State::Before => {
                // `seek` finds a segment of late rows that ends at the sought time; a segment reached by a step from
                // before has all of its rows.
                let behind = self.from.saturating_sub(i64::from(at_late));
                segments.seek(behind)? || segments.first()?
            }
            State::Within => segments.span().1 < self.to && segments.next(self.to)?,
            State::After => false,
        };
        if on && before == State::Within && segments.span().1 < self.from {
            // Many rows may have been skipped, so this seeks the next segment instead of stepping there.
            on = segments.seek(self.from)?;
        }
        while on && segments.span().0 <= self.to {
            if segments.span().1 >= self.from {
                self.state = State::Within;
                return Ok(true);
            }
            on = segments.span().1 < self.to && segments.next(self.to)?;
        }
        Ok(false)
    }

    /// Loads the current segment; returns false if no row of the segment is inside the interval.
    fn load_current(&mut self) -> Result<bool> {
        self.state = State::After;
        self.segments.load()?;
        self.state = State::Within;
        self.range = inside(&self.segments, self.from, self.to);
        Ok(!self.range.is_empty())
    }
}

/// The rows of an interval, the last vector first; the caller requests each vector with `next`. Rows within a vector
/// ascend.
///
/// Invariants: 1. `range` holds the rows of the loaded segment that were not delivered yet. 2. `to` only decreases, and
/// no row after it is delivered.
pub struct ReverseScan<'a, R> {
    segments: Segments<'a, R>,
    from: i64,
    to: i64,
    range: Range<usize>,
    state: State,
}

impl<'a, R: PageRead> ReverseScan<'a, R> {
    pub(super) fn new(segments: Segments<'a, R>, from: i64, to: i64) -> Self {
        let Scan {
            segments,
            range,
            state,
            ..
        } = Scan::new(segments, from, to);
        Self {
            segments,
            from,
            to,
            range,
            state,
        }
    }

    /// Skips the remaining rows after time `t`.
    pub fn skip_to(&mut self, t: i64) {
        if t >= self.to {
            return;
        }
        self.to = t;
        if !self.range.is_empty() {
            let times = &self.segments.times()[self.range.clone()];
            self.range.end = self.range.start + times.partition_point(|&time| time <= t);
            debug_assert!(self.range.end <= self.segments.times().len(), "rows");
        }
    }

    /// The preceding rows, up to 1024, in ascending order within one call; `None` before the first row.
    ///
    /// # Errors
    /// `Io`, `Corrupt`; after an error the scan returns no more rows.
    #[expect(
        clippy::should_implement_trait,
        reason = "a fallible step that lends, not an iterator"
    )]
    pub fn next(&mut self) -> Result<Option<Vector<'_>>> {
        while self.range.is_empty() {
            if !self.step()? {
                return Ok(None);
            }
        }
        let end = self.range.end;
        self.range.end = self.range.start.max(end.saturating_sub(VECTOR_ROWS));
        let segments = &self.segments;
        Ok(Some(Vector::of(
            segments.times(),
            self.range.end..end,
            segments,
        )))
    }

    /// Moves to the preceding segment; returns false if no further segment overlaps the interval.
    fn step(&mut self) -> Result<bool> {
        let segments = &mut self.segments;
        // If an error occurs below, the scan stays at its end.
        let before = std::mem::replace(&mut self.state, State::After);
        let mut on = match before {
            State::Before => segments.seek(self.to)?,
            State::Within => segments.span().0 > self.from && segments.previous(self.from)?,
            State::After => false,
        };
        if on && before == State::Within && segments.span().0 > self.to {
            // Many rows may have been skipped, so this seeks the next segment instead of stepping there.
            on = self.from <= self.to && segments.seek(self.to)?;
        }
        if !on || segments.span().1 < self.from {
            return Ok(false);
        }
        segments.load()?;
        self.range = inside(segments, self.from, self.to);
        self.state = State::Within;
        Ok(true)
    }
}

pub(super) fn reverse<R: PageRead>(
    segments: Segments<'_, R>,
    from: i64,
    to: i64,
    mut f: impl FnMut(&Vector<'_>),
) -> Result<u64> {
    let mut scan = ReverseScan::new(segments, from, to);
    let mut rows = 0;
    while let Some(vector) = scan.next()? {
        rows += vector.len() as u64;
        f(&vector);
    }
    Ok(rows)
}

impl<'a, R: PageRead> View<'a, R> {
    /// Calls `f` with the rows `from ..= to` in ascending order, up to 1024 at a time, and returns their number. Only
    /// the given columns are read.
    ///
    /// # Errors
    /// `Io`, `Corrupt`; `f` has received the rows before the damage.
    ///
    /// # Panics
    /// If a column does not exist.
    pub fn for_each_vector(
        &self,
        from: i64,
        to: i64,
        columns: &[usize],
        mut f: impl FnMut(&Vector<'_>),
    ) -> Result<u64> {
        let mut scan = self.scan(from, to, columns);
        let mut rows = 0;
        while let Some(vector) = scan.next()? {
            rows += vector.len() as u64;
            f(&vector);
        }
        Ok(rows)
    }

    /// As `for_each_vector`, but the caller requests each vector from the returned `Scan`.
    ///
    /// # Panics
    /// If a column does not exist.
    #[must_use]
    pub fn scan(&self, from: i64, to: i64, columns: &[usize]) -> Scan<'a, R> {
        Scan::new(self.segments(columns), from, to)
    }

    /// As `for_each_vector`, but with the last vector first. Rows within a vector ascend.
    ///
    /// # Errors
    /// As `for_each_vector`.
    ///
    /// # Panics
    /// If a column does not exist.
    pub fn for_each_vector_reverse(
        &self,
        from: i64,
        to: i64,
        columns: &[usize],
        f: impl FnMut(&Vector<'_>),
    ) -> Result<u64> {
        reverse(self.segments(columns), from, to, f)
    }

    /// As `for_each_vector_reverse`, but the caller requests each vector from the returned `ReverseScan`.
    ///
    /// # Panics
    /// If a column does not exist.
    #[must_use]
    pub fn scan_reverse(&self, from: i64, to: i64, columns: &[usize]) -> ReverseScan<'a, R> {
        ReverseScan::new(self.segments(columns), from, to)
    }
}

impl<'a, R: PageRead> Matching<'a, R> {
    /// Scans whole vectors; vectors in which no row can match are skipped without being read. The delivered vectors may
    /// contain rows that do not match.
    ///
    /// # Panics
    /// If a column does not exist.
    #[must_use]
    pub fn scan(&self, from: i64, to: i64, columns: &[usize]) -> Scan<'a, R> {
        let segments = self.view.segments(columns);
        Scan::new(segments, from, to).only(self.clone())
    }
}
