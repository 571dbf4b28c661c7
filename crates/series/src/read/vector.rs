//! The vectors that scans deliver: slices of up to 1024 consecutive rows.

use std::ops::Range;

/// Up to 1024 consecutive rows, borrowed.
#[derive(Clone)]
pub struct Vector<'v> {
    pub(super) times: &'v [i64],
    pub(super) range: Range<usize>,
    pub(super) words: &'v dyn Words,
}

/// The next rows of an interval, either in memory or described by lines.
pub enum NextRows<'v> {
    /// The rows are in memory.
    Vector(Vector<'v>),
    /// The rows are computed by the `Lines` that the caller passed.
    Lines,
}

/// Access to the values of a vector by column.
pub(super) trait Words {
    fn words(&self, column: usize) -> &[u64];
}

impl<'v> Vector<'v> {
    /// A vector of those rows of `times` and `words` that lie in `range`.
    pub(super) fn of(times: &'v [i64], range: Range<usize>, words: &'v dyn Words) -> Self {
        debug_assert!(!range.is_empty(), "a vector has rows");
        Self {
            times: &times[range.clone()],
            range,
            words,
        }
    }

    /// Number of rows; never zero.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a delivered vector has rows")]
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// The timestamps of the rows, ascending.
    #[must_use]
    pub fn times(&self) -> &'v [i64] {
        self.times
    }

    /// The raw values of a requested column; empty for a column that was not requested.
    #[must_use]
    pub fn words(&self, column: usize) -> &'v [u64] {
        let words = self.words.words(column);
        words.get(self.range.clone()).unwrap_or(&[])
    }
}
