//! A range of rows as a double-ended iterator.
//!
//! The number of remaining rows is computed from the counts in the branches (two ranks). So the length is exact, and
//! the two ends meet without comparing keys.

use crate::cursor::tree_cursor::Cursor;
use crate::error::damaged;
use crate::table::tree::Tree;
use crate::value::Value;
use std::ops::{Bound, RangeBounds};
use tidalite_pager::{PageRead, Result};

/// Rows of a range, from either end. The iterator ends after an error.
pub struct Range<'r, R> {
    front: Cursor<'r, R>,
    back: Cursor<'r, R>,
    start: Bound<Vec<u8>>,
    end: Bound<Vec<u8>>,
    left: u64,
}

impl Tree {
    /// All rows of the table.
    ///
    /// # Errors
    /// As for `range`; at present this function never fails.
    pub fn iter<'r, R: PageRead>(&self, r: &'r R) -> Result<Range<'r, R>> {
        self.range::<_, Vec<u8>>(r, ..)
    }

    /// The rows with keys in `bounds`. Bounds in the wrong order give an empty range.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    ///
    /// # Cost
    /// A descent for the rank of each bound, another for an excluded start and for an included end; then one for the
    /// first row from each end.
    pub fn range<'r, R, K>(&self, r: &'r R, bounds: impl RangeBounds<K>) -> Result<Range<'r, R>>
    where
        R: PageRead,
        K: AsRef<[u8]>,
    {
        let owned = |bound: Bound<&K>| bound.map(|key| key.as_ref().to_vec());
        let (start, end) = (owned(bounds.start_bound()), owned(bounds.end_bound()));
        let before = match &start {
            Bound::Unbounded => 0,
            Bound::Included(key) => self.rank(r, key)?,
            Bound::Excluded(key) => self.rank(r, key)? + u64::from(self.contains(r, key)?),
        };
        let upto = match &end {
            Bound::Unbounded => self.rows,
            Bound::Excluded(key) => self.rank(r, key)?,
            Bound::Included(key) => self
                .rank(r, key)?
                .wrapping_add(u64::from(self.contains(r, key)?)),
        };
        Ok(Range {
            front: self.cursor(r),
            back: self.cursor(r),
            start,
            end,
            left: upto.saturating_sub(before),
        })
    }
}

impl<'r, R: PageRead> Range<'r, R> {
    /// Number of rows not yet taken from either end.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "an iterator, not a container")]
    pub fn len(&self) -> u64 {
        self.left
    }

    fn step_front(&mut self) -> Result<(Vec<u8>, Value<'r>)> {
        let there = if self.front.is_at_row() {
            self.front.next()?
        } else {
            match &self.start {
                Bound::Unbounded => self.front.first()?,
                Bound::Included(key) => self.front.seek_ge(key)?,
                Bound::Excluded(key) => self.front.seek_gt(key)?,
            }
        };
        row(&self.front, there, self.left)
    }

    fn step_back(&mut self) -> Result<(Vec<u8>, Value<'r>)> {
        let there = if self.back.is_at_row() {
            self.back.previous()?
        } else {
            match &self.end {
                Bound::Unbounded => self.back.last()?,
                Bound::Included(key) => self.back.seek_le(key)?,
                Bound::Excluded(key) => self.back.seek_lt(key)?,
            }
        };
        row(&self.back, there, self.left)
    }

    fn take(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<(Vec<u8>, Value<'r>)>,
    ) -> Option<Result<(Vec<u8>, Value<'r>)>> {
        if self.left == 0 {
            return None;
        }
        let row = step(self);
        self.left = if row.is_ok() { self.left - 1 } else { 0 };
        Some(row)
    }
}

fn row<'r, R: PageRead>(
    cursor: &Cursor<'r, R>,
    there: bool,
    left: u64,
) -> Result<(Vec<u8>, Value<'r>)> {
    if !there {
        let found = format!("{left} rows less than its branches count");
        return Err(damaged("table", 0, found, "every row"));
    }
    Ok((cursor.key().to_vec(), cursor.value()?))
}

impl<'r, R: PageRead> Iterator for Range<'r, R> {
    type Item = Result<(Vec<u8>, Value<'r>)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.take(Self::step_front)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, usize::try_from(self.left).ok())
    }
}

impl<R: PageRead> DoubleEndedIterator for Range<'_, R> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.take(Self::step_back)
    }
}
