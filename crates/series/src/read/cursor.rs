//! Row-by-row access in both directions. Most steps stay in the decoded vector; only a step beyond its edge accesses
//! the tree.

use crate::read::segments::Segments;
use crate::read::view::View;
use crate::row::Row;
use tidalite_base::Corrupt;
use tidalite_pager::{Error, PageRead, Result};

/// Result of a search for the last row at or before a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// There is no row at or before the time; the cursor is before the first row.
    Nothing,
    /// The cursor is on the last row before the time; there is no row at the time.
    Before,
    /// The cursor is on a row at exactly the time.
    Exact,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Start,
    Row(usize),
    End,
    /// The last step failed, so that the position is unknown.
    Lost,
}

/// A position in a series: on a row, before the first, or after the last.
pub struct Cursor<'a, R> {
    view: View<'a, R>,
    segments: Segments<'a, R>,
    columns: usize,
    /// Number of rows in the loaded segment, a part of the series whose rows are in memory.
    rows: usize,
    at: At,
}

impl<'a, R: PageRead> Cursor<'a, R> {
    pub(super) fn new(view: View<'a, R>, segments: Segments<'a, R>, columns: usize) -> Self {
        Self {
            view,
            segments,
            columns,
            rows: 0,
            at: At::Start,
        }
    }

    /// Puts the cursor on the first or `last` row of the segment if a segment was `reached`; otherwise sets the
    /// position to `otherwise`.
    fn enter(&mut self, reached: bool, last: bool, otherwise: At) -> Result<bool> {
        let mut rows = 0;
        if reached {
            self.segments.load()?;
            rows = self.segments.times().len();
        }
        self.rows = rows;
        self.at = match rows {
            0 => otherwise,
            rows => At::Row(if last { rows - 1 } else { 0 }),
        };
        debug_assert!(!reached || rows > 0, "a segment has rows");
        Ok(matches!(self.at, At::Row(_)))
    }

    /// Moves to the last row at or before time `t`.
    ///
    /// # Errors
    /// `Io`, `Corrupt`. After an error in any step, only `search`, `first` and `last` find a row again; `next` and
    /// `previous` fail.
    pub fn search(&mut self, t: i64) -> Result<Found> {
        self.at = At::Lost;
        let reached = self.segments.seek(t)?;
        if reached {
            self.segments.load()?;
        }
        let behind = self.segments.times().partition_point(|&time| time <= t);
        if !reached || behind == 0 {
            self.at = At::Start;
            return Ok(Found::Nothing);
        }
        debug_assert!(self.segments.span().0 <= t, "it begins by then");
        self.rows = self.segments.times().len();
        self.at = At::Row(behind - 1);
        let exact = self.segments.times()[behind - 1] == t;
        Ok(if exact { Found::Exact } else { Found::Before })
    }

    /// Moves to the row that has `n` rows before it. If there is no such row, moves after the last row and returns
    /// false. The cost equals [`View::nth`].
    ///
    /// # Errors
    /// As `search`.
    pub fn nth(&mut self, n: u64) -> Result<bool> {
        self.at = At::Lost;
        let Some((time, before)) = self.view.nth(n)? else {
            self.at = At::End;
            return Ok(false);
        };
        match time.checked_sub(1) {
            Some(earlier) => {
                self.search(earlier)?;
            }
            None => self.at = At::Start,
        }
        for _ in 0..=before {
            self.next()?;
        }
        Ok(self.time() == Some(time))
    }

    /// Moves to the first row; returns false if the series is empty.
    ///
    /// # Errors
    /// As `search`.
    pub fn first(&mut self) -> Result<bool> {
        self.at = At::Lost;
        let reached = self.segments.first()?;
        self.enter(reached, false, At::Start)
    }

    /// Moves to the last row; returns false if the series is empty.
    ///
    /// # Errors
    /// As `search`.
    pub fn last(&mut self) -> Result<bool> {
        self.at = At::Lost;
        let reached = self.segments.last()?;
        self.enter(reached, true, At::End)
    }

    /// Moves to the next row, or from the position before the first row to the first row; returns false at the end.
    ///
    /// # Errors
    /// As `search`.
    #[expect(
        clippy::should_implement_trait,
        reason = "a step of a cursor, not an iterator"
    )]
    #[inline]
    pub fn next(&mut self) -> Result<bool> {
        match self.at {
            At::Row(row) if row + 1 < self.rows => {
                self.at = At::Row(row + 1);
                Ok(true)
            }
            _ => self.next_segment(),
        }
    }

    #[cold]
    fn next_segment(&mut self) -> Result<bool> {
        match self.at {
            At::Row(_) => {
                self.at = At::Lost;
                let reached = self.segments.next(i64::MAX)?;
                self.enter(reached, false, At::End)
            }
            At::Start => self.first(),
            At::End => Ok(false),
            At::Lost => Err(lost()),
        }
    }

    /// Moves to the previous row, or from the position after the last row to the last row; returns false at the start.
    ///
    /// # Errors
    /// As `search`.
    #[inline]
    pub fn previous(&mut self) -> Result<bool> {
        match self.at {
            At::Row(row) if row > 0 => {
                self.at = At::Row(row - 1);
                Ok(true)
            }
            _ => self.previous_segment(),
        }
    }

    #[cold]
    fn previous_segment(&mut self) -> Result<bool> {
        match self.at {
            At::Row(_) => {
                self.at = At::Lost;
                let reached = self.segments.previous(i64::MIN)?;
                self.enter(reached, true, At::Start)
            }
            At::Start => Ok(false),
            At::End => self.last(),
            At::Lost => Err(lost()),
        }
    }

    /// The timestamp of the current row; `None` if the cursor is not on a row.
    #[must_use]
    #[inline]
    pub fn time(&self) -> Option<i64> {
        match self.at {
            At::Row(row) => self.segments.times().get(row).copied(),
            At::Start | At::End | At::Lost => None,
        }
    }

    /// The value of column `column` in the current row; `None` if the cursor is not on a row.
    #[must_use]
    #[inline]
    pub fn word(&self, column: usize) -> Option<u64> {
        match self.at {
            At::Row(row) => self.segments.words(column).get(row).copied(),
            At::Start | At::End | At::Lost => None,
        }
    }

    /// A copy of the current row; `None` if the cursor is not on a row.
    #[must_use]
    pub fn row(&self) -> Option<Row> {
        let time = self.time()?;
        debug_assert_eq!(self.segments.times().len(), self.rows, "loaded rows");
        let words = (0..self.columns).map(|c| self.word(c));
        Some(Row {
            time,
            words: words.collect::<Option<_>>()?,
        })
    }
}

fn lost() -> Error {
    let found = "a step after an error";
    Corrupt::new("position of a cursor", 0, found, "search, first or last").into()
}

impl<'a, R: PageRead> View<'a, R> {
    /// Creates a cursor over all columns, which stands before the first row.
    #[must_use]
    pub fn cursor(&self) -> Cursor<'a, R> {
        let all: Vec<usize> = (0..self.tree.types.len()).collect();
        Cursor::new(*self, self.segments(&all), all.len())
    }
}
