//! Rows that rise by constant steps, for a caller that goes from row to row.
//!
//! Decoding a vector and then going through its rows takes the sum of both times: a processor looks ahead a few hundred
//! instructions, and a sum in strict order keeps it waiting all the while. So rows are made a block at a time, and a block
//! takes so few instructions that the next one is made during that wait.

use tidalite_codec::{Line, as_integers};

/// Rows of a block. Fewer, and the call counts; more, and the processor cannot look across it.
const BLOCK_ROWS: usize = 64;

/// The most columns; series with more are read from memory.
const COLUMNS_MAX: usize = 4;

/// The rule of a stretch of rows, and one block of it.
pub struct Lines {
    /// Of the times, then of the columns.
    lines: [Line; 1 + COLUMNS_MAX],
    count: usize,
    rows: usize,
    done: usize,
    block: [Block; 1 + COLUMNS_MAX],
}

/// Aligned: what lies across two cache lines cannot be read back before it has left the processor.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Block([u64; BLOCK_ROWS]);

impl Default for Lines {
    fn default() -> Self {
        Self {
            lines: [Line::integers(0, 0); 1 + COLUMNS_MAX],
            count: 0,
            rows: 0,
            done: 0,
            block: [Block([0; BLOCK_ROWS]); 1 + COLUMNS_MAX],
        }
    }
}

impl Lines {
    /// Whether a series of so many columns can be read so.
    pub(crate) fn fit(columns: usize) -> bool {
        columns <= COLUMNS_MAX
    }

    pub(crate) fn clear(&mut self) {
        (self.count, self.rows, self.done) = (0, 0, 0);
    }

    pub(crate) fn push(&mut self, line: Line) {
        self.lines[self.count] = line;
        self.count += 1;
    }

    /// `rows` rows follow the lines that were pushed.
    pub(crate) fn begin(&mut self, rows: usize) {
        self.rows = rows;
    }

    /// Makes the next block of rows and returns how many they are; 0 behind the last.
    #[inline(never)]
    pub fn next_block(&mut self) -> usize {
        let from = self.done;
        let rows = BLOCK_ROWS.min(self.rows - from);
        if rows > 0 {
            for (line, block) in self.lines[..self.count].iter().zip(&mut self.block) {
                // What is constant stays.
                if from == 0 || !line.is_constant() {
                    line.fill(from, &mut block.0);
                }
            }
            self.done = from + rows;
        }
        rows
    }

    /// The times of the block's first `rows` rows.
    #[must_use]
    #[inline]
    pub fn times(&self, rows: usize) -> &[i64] {
        as_integers(&self.block[0].0[..rows])
    }

    /// The words of a column in the block's first `rows` rows.
    #[must_use]
    #[inline]
    pub fn words(&self, column: usize, rows: usize) -> &[u64] {
        &self.block[1 + column].0[..rows]
    }
}
