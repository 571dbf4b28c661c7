//! Rows of one block of the input, with the errors of its bad lines and cells.

use crate::import::blocks::{Block, LinesBefore};
use crate::import::local_times::LocalRows;
use crate::import::number::Number;
use crate::import::texts::Texts;
use crate::time::Nanos;
use std::collections::HashMap;

/// A line or cell that could not be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadRow {
    /// Number of the line, counted from 1 with the header; zero if it is not known.
    pub line: u64,
    /// The reason.
    pub why: String,
}

/// The rows of one block.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// The block that holds the rows.
    pub block: Block,
    /// Number of the thread that has parsed it.
    pub reader: usize,
    /// Time of each row.
    pub times: Vec<Nanos>,
    /// Offset in the block at which each row begins.
    starts: Vec<u32>,
    /// Number of each row's combination of tags.
    pub tags: Vec<u32>,
    /// The values of each row, row after row.
    pub values: Vec<Option<Number>>,
    /// The values if the columns have types: raw words; for texts, their numbers in `texts`.
    pub words: Vec<u64>,
    pub texts: Texts,
    /// Tags of the combinations that occur here for the first time.
    pub combinations: Vec<Vec<String>>,
    /// Bad lines, each with the number of rows of the batch before it.
    pub bad: Vec<(usize, BadRow)>,
    /// Bad cells that are stored as null, each with its row in the batch.
    pub bad_cells: Vec<(usize, BadRow)>,
    /// Rows with local times that clocks repeat or skip.
    pub local: LocalRows,
}

impl Batch {
    /// Clears the batch for the rows of a block.
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

    /// Ends a row whose values have been pushed.
    pub(crate) fn end_row(&mut self, time: Nanos, start: usize, tags: u32) {
        self.times.push(time);
        // Offsets fit in 32 bits: a block is little longer than the longest row.
        self.starts.push(u32::try_from(start).unwrap_or(u32::MAX));
        self.tags.push(tags);
    }

    /// The line number of a row.
    pub(crate) fn line(&self, row: usize, before: &mut LinesBefore) -> u64 {
        self.block.line_of(self.starts[row] as usize, before)
    }
}

/// The combinations of tags that a thread has seen.
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

    /// The number of a combination. A new combination is added to the batch.
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
