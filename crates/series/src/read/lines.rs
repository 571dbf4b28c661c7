//! Rows that rise by constant steps, for a caller that goes from row to row.
//!
//! Decoding a vector and then going through its rows takes the sum of both times: a processor looks ahead a few hundred
//! instructions, and a sum in strict order keeps it waiting all the while. So such rows are not put into memory at all. Each
//! word is made where it is used, in a handful of instructions that depend on the number of the row and on nothing before
//! it: they are done while the sum waits. (Blocks of 64 rows, made just ahead, were a tenth slower.)

use tidalite_codec::LineWords;

/// The most columns; series with more are read from memory.
const COLUMNS_MAX: usize = 4;

/// The rule of a stretch of rows.
pub struct Lines {
    /// Of the times, then of the columns.
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
    /// Whether a series of so many columns can be read so.
    pub(crate) fn fit(columns: usize) -> bool {
        columns <= COLUMNS_MAX
    }

    pub(crate) fn clear(&mut self) {
        (self.count, self.rows) = (0, 0);
    }

    pub(crate) fn push(&mut self, line: LineWords) {
        self.lines[self.count] = line;
        self.count += 1;
    }

    /// `rows` rows follow the lines that were pushed.
    pub(crate) fn begin(&mut self, rows: usize) {
        self.rows = rows;
    }

    /// Rows of the stretch.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Its times.
    #[must_use]
    pub fn times(&self) -> LineWords {
        self.lines[0]
    }

    /// The words of a column.
    ///
    /// # Panics
    /// When there is no such column.
    #[must_use]
    pub fn column(&self, column: usize) -> LineWords {
        assert!(1 + column < self.count, "a column of the series");
        self.lines[1 + column]
    }
}
