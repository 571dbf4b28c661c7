//! Rows of one block of the input, with what was wrong with others.

use crate::import::blocks::{Block, LinesBefore};
use crate::import::local_times::LocalRows;
use crate::import::number::Number;
use crate::import::texts::Texts;
use crate::time::Nanos;
use std::collections::HashMap;

/// A line that could not be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadRow {
    /// Counted from 1, the header included; zero where the reader lost count.
    pub line: u64,
    /// What is wrong with it.
    pub why: String,
}

/// Rows in a row.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Where they stood.
    pub block: Block,
    /// Which of the threads has read it.
    pub reader: usize,
    /// When each row was.
    pub times: Vec<Nanos>,
    /// The byte of the block at which each row begins.
    starts: Vec<u32>,
    /// Number of each row's combination of tags.
    pub tags: Vec<u32>,
    /// The values of each row, one after the other.
    pub values: Vec<Option<Number>>,
    /// The same where the columns have types: words, and numbers of texts.
    pub words: Vec<u64>,
    pub texts: Texts,
    /// Tags of the combinations that come up here for the first time.
    pub combinations: Vec<Vec<String>>,
    /// Lines that are no rows, and how many rows of the batch stand before each.
    pub bad: Vec<(usize, BadRow)>,
    /// Cells that are empty because they are bad, with the row of the batch that each is of.
    pub bad_cells: Vec<(usize, BadRow)>,
    /// Local times that clocks repeat or skip.
    pub local: LocalRows,
}

impl Batch {
    /// Empty, for the rows of a block.
    pub(crate) fn begin(&mut self, block: Block, reader: usize) {
        self.block = block;
        self.reader = reader;
        self.times.clear();
        self.starts.clear();
        self.tags.clear();
        self.values.clear();
        self.words.clear();
        self.texts.truncate(0);
        self.combinations.clear();
        self.bad.clear();
        self.bad_cells.clear();
        self.local.clear();
    }

    /// Ends a row whose values are there.
    pub(crate) fn end_row(&mut self, time: Nanos, start: usize, tags: u32) {
        self.times.push(time);
        // A block is as long as a row may be, and some.
        self.starts.push(u32::try_from(start).unwrap_or(u32::MAX));
        self.tags.push(tags);
    }

    /// The line of a row.
    pub(crate) fn line(&self, row: usize, before: &mut LinesBefore) -> u64 {
        self.block.line_of(self.starts[row] as usize, before)
    }
}

/// The combinations of tags that a thread has met.
#[derive(Debug, Default)]
pub(crate) struct Combinations {
    /// Number of the thread.
    pub reader: usize,
    numbers: HashMap<Vec<String>, u32>,
}

impl Combinations {
    pub(crate) fn of_reader(reader: usize) -> Self {
        Self {
            reader,
            numbers: HashMap::new(),
        }
    }

    /// The number of a combination, which the batch tells if it is new.
    pub(crate) fn number(&mut self, tags: &[String], batch: &mut Batch) -> u32 {
        if let Some(number) = self.numbers.get(tags) {
            return *number;
        }
        let number = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
        self.numbers.insert(tags.to_vec(), number);
        batch.combinations.push(tags.to_vec());
        number
    }
}
