//! Rows with constant steps, which are computed one by one for a caller that iterates row by row.
//!
//! Decoding a vector and then iterating over its rows takes the sum of both times: a processor looks ahead a few
//! hundred instructions, and a caller that adds values up in strict order stalls it throughout. Such rows are therefore
//! not materialized. Each value is computed where it is used, in a few instructions that depend only on the row number:
//! they execute while the caller's addition waits. (Blocks of 64 rows, computed just ahead, were a tenth slower.)

use tidalite_codec::LineWords;

/// Maximum number of columns; rows of series with more columns are decoded into memory first.
const COLUMNS_MAX: usize = 4;

/// Consecutive rows whose times and values are linear functions of the row number.
pub struct Lines {
    /// The line of the times, then the lines of the columns.
    lines: [LineWords; 1 + COLUMNS_MAX],
    count: usize,
    rows: usize,
}

impl Default for Lines {
    fn default() -> Self {
        Self {
            lines: [LineWords::default(); 1 + COLUMNS_MAX],
            count: 0,
            rows: 0,
        }
    }
}

impl Lines {
    /// True if a series with this many columns can be read as lines.
    pub(crate) fn fit(columns: usize) -> bool {
        columns <= COLUMNS_MAX
    }

    pub(crate) fn clear(&mut self) {
        (self.count, self.rows) = (0, 0);
    }

    pub(crate) fn push(&mut self, line: LineWords) {
        debug_assert!(self.count <= COLUMNS_MAX, "a line per column");
        self.lines[self.count] = line;
        self.count += 1;
    }

    /// Sets the number of rows, after the lines of the times and the columns were pushed.
    pub(crate) fn begin(&mut self, rows: usize) {
        debug_assert!(self.count > 0 && rows > 0, "rows with a line of times");
        self.rows = rows;
    }

    /// Number of rows that the lines describe.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The line that computes the times.
    #[must_use]
    pub fn times(&self) -> LineWords {
        self.lines[0]
    }

    /// The line that computes the values of a column.
    ///
    /// # Panics
    /// If the column does not exist.
    #[must_use]
    pub fn column(&self, column: usize) -> LineWords {
        assert!(1 + column < self.count, "a column of the series");
        self.lines[1 + column]
    }
}
