//! A batch: the rows of one block of the input, with the errors of its bad lines and cells.

use crate::import::blocks::{Block, LinesBefore};
use crate::import::local_times::LocalRows;
use crate::import::number::Number;
use crate::import::texts::Texts;
use crate::time::Nanos;
use std::collections::HashMap;

/// The position of a line or cell that could not be used, and the reason.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadRow {
    /// Number of the line, counted from 1 including the header; zero if the number is not known.
    pub line: u64,
    /// The reason why the line or cell could not be used.
    pub why: String,
}

/// The rows of one block.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// The block of the input that the rows were parsed from.
    pub block: Block,
    /// Number of the thread that has parsed the block.
    pub reader: usize,
    /// Time of each row, in nanoseconds since 1970.
    pub times: Vec<Nanos>,
    /// Offset in the block at which each row begins.
    starts: Vec<u32>,
    /// For each row, the number of its combination of tags.
    pub tags: Vec<u32>,
    /// The values of each row, row after row.
    pub values: Vec<Option<Number>>,
    /// The values as stored words, if the columns have types; a text is stored as its number in `texts`.
    pub words: Vec<u64>,
    pub texts: Texts,
    /// The tags of those combinations that occur here for the first time in this thread.
    pub combinations: Vec<Vec<String>>,
    /// Bad lines, each with the number of rows in this batch that precede it.
    pub bad: Vec<(usize, BadRow)>,
    /// Bad cells that are stored as null, each with the number of its row in this batch.
    pub bad_cells: Vec<(usize, BadRow)>,
    /// The rows whose local times clocks repeat or skip.
    pub local: LocalRows,
}

impl Batch {
    /// Clears the batch, to be filled with the rows of this block.
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

    /// Completes a row after its values were pushed.
    pub(crate) fn end_row(&mut self, time: Nanos, start: usize, tags: u32) {
        self.times.push(time);
        // The offset fits in 32 bits, because a block is only a little longer than the longest row.
        self.starts.push(u32::try_from(start).unwrap_or(u32::MAX));
        self.tags.push(tags);
    }

    /// Whether a row is the first of its line: a line of the line protocol has a row for each field.
    pub(crate) fn begins_line(&self, row: usize) -> bool {
        row == 0 || self.starts[row] != self.starts[row - 1]
    }

    /// Whether a row is the last one of a line of the input.
    pub(crate) fn ends_line(&self, row: usize) -> bool {
        row + 1 == self.times.len() || self.begins_line(row + 1)
    }

    /// The number of the line at which a row begins, in the whole input.
    pub(crate) fn line(&self, row: usize, before: &mut LinesBefore) -> u64 {
        self.block.line_of(self.starts[row] as usize, before)
    }
}

/// The byte after each tag of a combination: UTF-8 does not contain it.
pub(crate) const END_OF_TAG: u8 = 0xff;

/// The combinations of tags that one thread has seen so far, with their numbers.
#[derive(Debug, Default)]
pub(crate) struct Combinations {
    /// Number of the thread whose combinations these are.
    pub reader: usize,
    numbers: HashMap<Vec<String>, u32>,
    /// Maps the tags, as one text with `END_OF_TAG` after each, to the number: a row needs one lookup and no copy.
    of_tags: HashMap<Vec<u8>, u32>,
    /// For the line protocol: maps the part of a line before its fields, as written, to the keys of its fields with
    /// their numbers. So the tags of a known series are not parsed again.
    of_lines: HashMap<String, Vec<(String, u32)>>,
}

impl Combinations {
    pub(crate) fn of_reader(reader: usize) -> Self {
        Self {
            reader,
            ..Self::default()
        }
    }

    /// The number of the combination of these tags, with `END_OF_TAG` after each, if it has occurred.
    pub(crate) fn of_tags(&self, tags: &[u8]) -> Option<u32> {
        self.of_tags.get(tags).copied()
    }

    /// The number of the combination of these tags. A combination that is new is added to the batch.
    pub(crate) fn number_of_tags(&mut self, tags: &[u8], batch: &mut Batch) -> u32 {
        if let Some(number) = self.of_tags(tags) {
            return number;
        }
        let mut texts: Vec<String> = tags
            .split(|byte| *byte == END_OF_TAG)
            .map(|text| String::from_utf8_lossy(text).into_owned())
            .collect();
        // After the last end there is nothing.
        texts.pop();
        let number = self.number(&texts, batch);
        self.of_tags.insert(tags.to_vec(), number);
        number
    }

    /// The number of the series of a field of the line protocol, if it was added.
    pub(crate) fn of_line(&self, key: &str, field: &str) -> Option<u32> {
        let mut fields = self.of_lines.get(key)?.iter();
        fields
            .find(|(own, _)| own == field)
            .map(|(_, number)| *number)
    }

    /// Remembers the number of the series of a field of the line protocol.
    pub(crate) fn add_line(&mut self, key: &str, field: &str, number: u32) {
        let fields = self.of_lines.entry(key.to_owned()).or_default();
        fields.push((field.to_owned(), number));
    }

    /// The number of a combination of tags in this thread. A combination that is new is added to the batch.
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
