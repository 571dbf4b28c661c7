//! The rows of a series in segments: vectors of the tree, late rows (not in the tree yet) between vectors, or both
//! merged.
//!
//! 1. Segments ascend, do not overlap and together hold every row once; rows with equal times are in one segment. The
//!    segment of a vector covers the vector's span including the late rows in it; other late rows form separate
//!    segments.
//! 2. Positioning is cheap: `load` decodes rows, and late rows are merged only into vectors whose span contains some.

use crate::read::lines::Lines;
use crate::read::vector::Words;
use crate::read::vector_cursor::VectorCursor;
use crate::tree::series_tree::SeriesTree;
use std::ops::Range;
use tidalite_base::Corrupt;
use tidalite_base::limits::VECTOR_ROWS;
use tidalite_codec::{Rows, RowsRef};
use tidalite_pager::{PageRead, Result};

/// Index of the first row that has the same time as the row at index `at`.
fn first_of_time(times: &[i64], at: usize) -> usize {
    match times.get(at) {
        Some(&time) => times[..at].partition_point(|&t| t < time),
        None => at,
    }
}

/// Where the rows of the current segment are.
#[derive(Clone, Debug)]
enum Source {
    None,
    /// The rows are the current vector of the tree.
    Vector,
    /// The rows are this range of the late rows.
    Late(Range<usize>),
}

/// Where the rows are after the segment was loaded.
#[derive(Clone, Copy, Debug)]
enum Loaded {
    None,
    Vector(usize),
    Late,
    Merged,
}

/// A position among the segments of a series.
pub(crate) struct Segments<'a, R> {
    vectors: VectorCursor<'a, R>,
    late: RowsRef<'a>,
    wanted: Vec<bool>,
    source: Source,
    span: (i64, i64),
    loaded: Loaded,
    merged: Rows,
}

impl<'a, R: PageRead> Segments<'a, R> {
    /// Creates a cursor that is at no segment. `wanted` selects the columns that `load` decodes.
    pub(crate) fn new(
        r: &'a R,
        tree: &'a SeriesTree,
        late: RowsRef<'a>,
        wanted: Vec<bool>,
    ) -> Self {
        assert_eq!(wanted.len(), tree.types.len(), "a choice for each column");
        debug_assert_eq!(late.column_count(), wanted.len(), "the same columns");
        Self {
            vectors: VectorCursor::new(r, tree),
            late,
            merged: Rows::new(wanted.len()),
            wanted,
            source: Source::None,
            span: (0, 0),
            loaded: Loaded::None,
        }
    }

    /// First and last timestamp of the current segment.
    pub(crate) fn span(&self) -> (i64, i64) {
        self.span
    }

    fn set_position(&mut self, source: Source) -> Result<bool> {
        if let Source::Late(rows) = &source {
            assert!(!rows.is_empty(), "a segment has rows");
            assert!(rows.end <= self.late.len(), "late rows");
        }
        self.span = match &source {
            Source::None => self.span,
            Source::Vector => self.vectors.span()?,
            Source::Late(rows) => (
                self.late.times()[rows.start],
                self.late.times()[rows.end - 1],
            ),
        };
        self.loaded = Loaded::None;
        self.source = source;
        Ok(true)
    }

    /// Moves to the segment with the last row at or before time `t`; returns false if all rows are later.
    pub(crate) fn seek(&mut self, t: i64) -> Result<bool> {
        if !matches!(self.source, Source::None) && self.span.0 <= t && t <= self.span.1 {
            return Ok(true);
        }
        self.clear_position(); // an error below leaves the cursor at no segment
        self.vectors.seek(t)?;
        let late = self.late.times();
        let behind = late.partition_point(|&time| time <= t);
        let on_vector = !self.vectors.is_before();
        let end = if on_vector {
            Some(self.vectors.span()?.1)
        } else {
            None
        };
        if behind > 0 && end.is_none_or(|end| end < late[behind - 1]) {
            // The segment begins about half a vector before the found row, so that steps backward stay in it for a
            // while, but not before the end of the tree's vector.
            let gap = end.map_or(0, |end| late.partition_point(|&time| time <= end));
            let from = first_of_time(late, behind.saturating_sub(VECTOR_ROWS / 2)).max(gap);
            // The tree has no rows between the found row and time `t`, but it may have rows after `t`.
            self.set_position(Source::Late(from..behind))
        } else if on_vector {
            self.set_position(Source::Vector)
        } else {
            Ok(false)
        }
    }

    fn clear_position(&mut self) {
        self.source = Source::None;
        self.loaded = Loaded::None;
    }

    /// Moves to the first segment; returns false if the series is empty.
    pub(crate) fn first(&mut self) -> Result<bool> {
        self.vectors.go_before();
        self.forward(None, i64::MAX)
    }

    /// Moves to the last segment; returns false if the series is empty.
    pub(crate) fn last(&mut self) -> Result<bool> {
        self.vectors.go_after();
        self.backward(None, i64::MIN)
    }

    /// Moves to the next segment; returns false if there is none, or it would begin after time `to`.
    pub(crate) fn next(&mut self, to: i64) -> Result<bool> {
        self.forward(Some(self.span.1), to)
    }

    /// Moves to the previous segment; returns false if there is none, or it would end before time `from`.
    pub(crate) fn previous(&mut self, from: i64) -> Result<bool> {
        self.backward(Some(self.span.0), from)
    }

    /// Moves to the first segment after time `after`; returns false if it would begin after time `to`.
    fn forward(&mut self, after: Option<i64>, to: i64) -> Result<bool> {
        self.clear_position();
        if self.vectors.is_before() {
            self.vectors.next()?;
        }
        let mut begin = self.vectors.begin()?;
        while let (Some(time), Some(after)) = (begin, after)
            && time <= after
        {
            self.vectors.next()?;
            begin = self.vectors.begin()?;
        }
        let late = self.late.times();
        let next = after.map_or(0, |after| late.partition_point(|&time| time <= after));
        match (begin, late.get(next)) {
            (begin, Some(&time)) if time <= to && begin.is_none_or(|begin| time < begin) => {
                let stop = begin.map_or(late.len(), |begin| late.partition_point(|&t| t < begin));
                let end = stop.min(next + VECTOR_ROWS);
                // Includes all late rows that have the same time as the last one.
                let end = end + late[end..stop].partition_point(|&t| t == late[end - 1]);
                self.set_position(Source::Late(next..end))?;
            }
            (Some(begin), _) if begin <= to => {
                self.set_position(Source::Vector)?;
            }
            _ => return Ok(false),
        }
        let (begin, end) = self.span;
        self.expect_order(begin <= end && after.is_none_or(|after| after < begin))
    }

    /// Reports damage unless the order of segments `holds`: in a sound file each segment lies wholly after the previous
    /// segment; otherwise a walk might never end.
    fn expect_order(&mut self, holds: bool) -> Result<bool> {
        if holds {
            return Ok(true);
        }
        self.clear_position();
        let (begin, end) = self.span;
        let found = format!("rows from {begin} to {end}");
        let expected = "rows in the order of their times";
        Err(Corrupt::new("vectors of a series", 0, found, expected).into())
    }

    /// Moves to the last segment before time `before`; returns false if it would end before time `from`.
    fn backward(&mut self, before: Option<i64>, from: i64) -> Result<bool> {
        self.clear_position();
        if self.vectors.begin()?.is_none() && !self.vectors.is_before() {
            self.vectors.previous()?;
        }
        let mut end = self.vectors.end()?;
        while let (Some(time), Some(before)) = (end, before)
            && time >= before
        {
            self.vectors.previous()?;
            end = self.vectors.end()?;
        }
        let late = self.late.times();
        let stop = before.map_or(late.len(), |before| {
            late.partition_point(|&time| time < before)
        });
        match (end, stop.checked_sub(1).map(|last| late[last])) {
            (end, Some(time)) if time >= from && end.is_none_or(|end| time > end) => {
                let gap = end.map_or(0, |end| late.partition_point(|&t| t <= end));
                let from = first_of_time(late, stop.saturating_sub(VECTOR_ROWS));
                self.set_position(Source::Late(from.max(gap)..stop))?;
            }
            (Some(end), _) if end >= from => {
                self.set_position(Source::Vector)?;
            }
            _ => return Ok(false),
        }
        let (begin, end) = self.span;
        self.expect_order(begin <= end && before.is_none_or(|before| end < before))
    }

    /// Loads the rows of the segment, so that `times` and `words` return them.
    pub(crate) fn load(&mut self) -> Result<()> {
        if !matches!(self.loaded, Loaded::None) {
            return Ok(());
        }
        self.loaded = match self.source {
            Source::None => Loaded::None,
            Source::Late(_) => Loaded::Late,
            Source::Vector => {
                let rows = self.vectors.load(&self.wanted)?;
                let late = self.late.between(self.span.0, self.span.1);
                if late.is_empty() {
                    Loaded::Vector(rows)
                } else {
                    self.merge(rows, late);
                    Loaded::Merged
                }
            }
        };
        Ok(())
    }

    /// True if the segment is a vector without late rows, with constant steps in its times and columns; `lines` then
    /// describes the segment. Extends the segment by the following vectors up to time `to` in which the lines continue.
    pub(crate) fn load_lines(&mut self, lines: &mut Lines, to: i64) -> Result<bool> {
        if !matches!(self.source, Source::Vector) || !Lines::fit(self.wanted.len()) {
            return Ok(false);
        }
        let late = self.late.times();
        let next = late.get(late.partition_point(|&time| time < self.span.0));
        if next.is_some_and(|&time| time <= self.span.1) {
            return Ok(false);
        }
        let to = next.map_or(to, |&time| to.min(time - 1));
        let end = self.vectors.load_lines(lines, to)?;
        self.span.1 = end.unwrap_or(self.span.1);
        Ok(end.is_some())
    }

    /// Merges the decoded vector with late rows; where times are equal, the late rows replace the rows of the vector.
    fn merge(&mut self, rows: usize, late: RowsRef<'a>) {
        let (old, new) = (self.vectors.times(rows), late.times());
        self.merged.clear();
        self.merged.reserve(rows + new.len());
        let (mut o, mut n) = (0, 0);
        while o < old.len() || n < new.len() {
            let older = n == new.len() || (o < old.len() && old[o] < new[n]);
            let (time, from_late, at) = if older {
                (old[o], false, o)
            } else {
                (new[n], true, n)
            };
            self.merged.times.push(time);
            for (c, column) in self.merged.columns.iter_mut().enumerate() {
                if self.wanted[c] {
                    column.push(if from_late {
                        late.column(c)[at]
                    } else {
                        self.vectors.words(c, rows)[at]
                    });
                }
            }
            if older {
                o += 1;
            } else {
                while o < old.len() && old[o] == time {
                    o += 1;
                }
                n += 1;
            }
        }
        debug_assert!(
            self.merged
                .columns
                .iter()
                .zip(&self.wanted)
                .all(|(column, &wanted)| !wanted || column.len() == self.merged.times.len()),
            "a value of each wanted column for each row"
        );
    }

    /// The times of the loaded segment.
    #[inline]
    pub(crate) fn times(&self) -> &[i64] {
        match (&self.loaded, &self.source) {
            (Loaded::Vector(rows), _) => self.vectors.times(*rows),
            (Loaded::Late, Source::Late(rows)) => &self.late.times()[rows.clone()],
            (Loaded::Merged, _) => &self.merged.times,
            _ => &[],
        }
    }

    /// The values of a wanted column of the loaded segment; empty for a column that is not wanted.
    #[inline]
    pub(crate) fn words(&self, c: usize) -> &[u64] {
        if !self.wanted.get(c).is_some_and(|wanted| *wanted) {
            return &[];
        }
        match (&self.loaded, &self.source) {
            (Loaded::Vector(rows), _) => self.vectors.words(c, *rows),
            (Loaded::Late, Source::Late(rows)) => &self.late.column(c)[rows.clone()],
            (Loaded::Merged, _) => &self.merged.columns[c],
            _ => &[],
        }
    }
}

impl<R: PageRead> Words for Segments<'_, R> {
    fn words(&self, column: usize) -> &[u64] {
        Segments::words(self, column)
    }
}
