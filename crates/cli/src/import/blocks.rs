//! The bytes of an input in blocks that end where a record ends, so that threads can take them apart beside each other.
//!
//! Invariants:
//! 1. The blocks in order are the input, byte for byte.
//! 2. A block ends behind the end of a line that stands in no quotes: a record lies within one block. Only the last one ends otherwise.
//! 3. `line` of a block counts the lines before it, in whichever blocks they are.
//!
//! What is in quotes is what the reader of CSV takes for it: a quote at the beginning of a field opens, two within are one, and one
//! inside a field that began otherwise is a character like any.

use crate::import::record::{ROW_BYTES_MAX, endless};
use std::io::{self, Read};

/// Bytes that are read at a time, and of most blocks.
pub(crate) const BLOCK_BYTES: usize = 256 * 1024;

/// Where a record ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    /// At the end of a line, unless it stands in quotes.
    Csv {
        /// Between the fields.
        delimiter: u8,
    },
    /// At the end of each line.
    Lines,
}

/// Some of the input.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// Counted from 0.
    pub number: u64,
    /// The line of its first byte, counted from 1.
    pub line: u64,
    /// Whole records.
    pub bytes: Vec<u8>,
    /// One record, which ends with the input although a quote is open.
    pub is_open: bool,
}

/// Counts the lines of a block up to places that ascend.
#[derive(Debug, Default)]
pub(crate) struct LinesBefore {
    at: usize,
    lines: u64,
}

impl Block {
    /// The line of a record that begins at this byte, or behind empty lines that do.
    pub(crate) fn line_of(&self, start: usize, before: &mut LinesBefore) -> u64 {
        self.line_in(&self.bytes, start, before)
    }

    /// The same while its bytes are lent elsewhere.
    pub(crate) fn line_in(&self, bytes: &[u8], start: usize, before: &mut LinesBefore) -> u64 {
        let start = bytes.len().min(start);
        let start = start + empty_lines(&bytes[start..]);
        if start < before.at {
            *before = LinesBefore::default();
        }
        before.lines += lines_in(&bytes[before.at..start]);
        before.at = start;
        self.line + before.lines
    }
}

/// The line of a quote that is opened and not closed.
pub(crate) fn open_quote(bytes: &[u8], delimiter: u8) -> Option<u64> {
    let (mut place, mut opened) = (Place::Begin, None);
    for (at, &byte) in bytes.iter().enumerate() {
        let before = place;
        place = match (place, byte) {
            (Place::Quoted, b'"') => Place::Quote,
            (Place::Quoted, _) => Place::Quoted,
            (Place::Begin | Place::Quote, b'"') => Place::Quoted,
            (_, byte) if is_line_end(byte) || byte == delimiter => Place::Begin,
            _ => Place::Field,
        };
        if before == Place::Begin && place == Place::Quoted {
            opened = Some(at);
        }
    }
    let opened = opened.filter(|_| place == Place::Quoted)?;
    Some(1 + lines_in(&bytes[..opened]))
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// Bytes of the empty lines that a text begins with.
pub(crate) fn empty_lines(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| is_line_end(**byte)).count()
}

pub(crate) fn lines_in(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// What the next byte stands in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// At the beginning of a field.
    #[default]
    Begin,
    /// In a field without quotes, or behind the quotes.
    Field,
    Quoted,
    /// Behind a quote within quotes: it ends them, or another one follows.
    Quote,
}

/// An input taken apart.
pub(crate) struct Blocks<R> {
    input: R,
    ends: Ends,
    block_bytes: usize,
    /// What was read and is in no block yet.
    rest: Vec<u8>,
    /// Of which so many bytes were looked at, and what comes behind them.
    looked: usize,
    place: Place,
    /// Where the last record of `rest` ends, as far as was looked.
    cut: usize,
    number: u64,
    line: u64,
    ended: bool,
    failed: Option<io::Error>,
}

impl<R: Read> Blocks<R> {
    pub(crate) fn new(input: R, ends: Ends) -> Self {
        Self {
            input,
            ends,
            block_bytes: BLOCK_BYTES,
            rest: Vec::new(),
            looked: 0,
            place: Place::default(),
            cut: 0,
            number: 0,
            line: 1,
            ended: false,
            failed: None,
        }
    }

    /// The first byte stands in this line.
    pub(crate) fn begin_at_line(mut self, line: u64) -> Self {
        self.line = line;
        self
    }

    /// With blocks of another size.
    #[cfg(test)]
    pub(crate) fn of_bytes(mut self, block_bytes: usize) -> Self {
        self.block_bytes = block_bytes;
        self
    }

    /// The next block; none behind the last.
    ///
    /// # Errors
    /// What the input reports, once all records before it were handed out; a record beyond [`ROW_BYTES_MAX`].
    pub(crate) fn next(&mut self) -> io::Result<Option<Block>> {
        loop {
            if !self.ended {
                self.read();
                self.look();
            }
            let is_last = self.ended && self.failed.is_none();
            let is_open = is_last && self.place == Place::Quoted && self.cut == 0;
            let cut = match is_last && (is_open || self.place != Place::Quoted) {
                true => self.rest.len(),
                false => self.cut,
            };
            if cut > 0 {
                let block = self.cut_off(cut);
                return Ok(Some(Block { is_open, ..block }));
            }
            if let Some(error) = self.failed.take() {
                self.rest.clear();
                return Err(error);
            }
            if self.ended {
                return Ok(None);
            }
            if self.rest.len() as u64 > ROW_BYTES_MAX + self.block_bytes as u64 {
                self.ended = true;
                self.rest.clear();
                return Err(endless(match self.ends {
                    Ends::Csv { .. } => "is a quote opened and not closed?",
                    Ends::Lines => "is this one JSON object a line?",
                }));
            }
        }
    }

    fn read(&mut self) {
        let wanted = match self.block_bytes.checked_sub(self.rest.len()) {
            Some(wanted) if wanted > 0 => wanted,
            _ => self.block_bytes,
        };
        let read = (&mut self.input)
            .take(wanted as u64)
            .read_to_end(&mut self.rest);
        match read {
            Ok(read) => self.ended = read < wanted,
            Err(error) => (self.ended, self.failed) = (true, Some(error)),
        }
    }

    fn cut_off(&mut self, cut: usize) -> Block {
        let mut rest = Vec::with_capacity(self.block_bytes.max(self.rest.len() - cut));
        rest.extend_from_slice(&self.rest[cut..]);
        let mut bytes = std::mem::replace(&mut self.rest, rest);
        bytes.truncate(cut);
        let block = Block {
            number: self.number,
            line: self.line,
            bytes,
            is_open: false,
        };
        self.number += 1;
        self.line += lines_in(&block.bytes);
        self.looked = self.looked.saturating_sub(cut);
        self.cut = 0;
        block
    }

    /// Looks for the last end of a record in what is new.
    fn look(&mut self) {
        let new = &self.rest[self.looked..];
        let Ends::Csv { delimiter } = self.ends else {
            if let Some(at) = new.iter().rposition(|byte| *byte == b'\n') {
                self.cut = self.looked + at + 1;
            }
            self.looked = self.rest.len();
            return;
        };
        if new.contains(&b'"') {
            self.look_among_quotes(delimiter);
        } else if self.place != Place::Quoted
            && let Some(last) = new.last()
        {
            // A return may be followed by the rest of this end of a line.
            let behind_return = || {
                let returns = new[..new.len() - 1].iter();
                returns.clone().rposition(|byte| *byte == b'\r')
            };
            let end = new.iter().rposition(|byte| *byte == b'\n');
            if let Some(at) = end.or_else(behind_return) {
                self.cut = self.looked + at + 1;
            }
            self.place = match *last {
                byte if is_line_end(byte) || byte == delimiter => Place::Begin,
                _ => Place::Field,
            };
        }
        self.looked = self.rest.len();
    }

    fn look_among_quotes(&mut self, delimiter: u8) {
        let mut place = self.place;
        for (at, &byte) in self.rest.iter().enumerate().skip(self.looked) {
            place = match (place, byte) {
                (Place::Quoted, b'"') => Place::Quote,
                (Place::Quoted, _) => Place::Quoted,
                (Place::Begin | Place::Quote, b'"') => Place::Quoted,
                (_, b'\n') => {
                    self.cut = at + 1;
                    Place::Begin
                }
                (_, b'\r') => {
                    if self.rest.get(at + 1).is_some_and(|next| *next != b'\n') {
                        self.cut = at + 1;
                    }
                    Place::Begin
                }
                (_, byte) if byte == delimiter => Place::Begin,
                _ => Place::Field,
            };
        }
        self.place = place;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use csv::ByteRecord;

    const COMMA: Ends = Ends::Csv { delimiter: b',' };

    fn all(text: &[u8], ends: Ends, size: usize) -> Vec<Block> {
        let mut blocks = Blocks::new(text, ends).of_bytes(size);
        std::iter::from_fn(|| blocks.next().unwrap()).collect()
    }

    fn records(bytes: &[u8]) -> Vec<Vec<Vec<u8>>> {
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .from_reader(bytes);
        let (mut record, mut read) = (ByteRecord::new(), Vec::new());
        while reader.read_byte_record(&mut record).unwrap() {
            read.push(record.iter().map(<[u8]>::to_vec).collect());
        }
        read
    }

    /// Random bytes, with all that ends and quotes: the records of the blocks are those of the whole, whatever the size of the blocks.
    #[test]
    fn records_lie_within_blocks() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut quoted_ends = 0;
        for round in 0..3000 {
            let mut text = Vec::new();
            for _ in 0..round % 97 {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                // Some rounds have no quotes, some no line feeds.
                let alphabet: &[u8] =
                    [&b"ab,\"\"\n\r1"[..], b"ab,,\n\r12", b"a,,\"\"\r12"][round % 3];
                text.push(alphabet[(state >> 33) as usize % alphabet.len()]);
            }
            let whole = records(&text);
            quoted_ends += usize::from(whole.iter().flatten().flatten().any(|byte| *byte == b'\n'));
            for size in [1, 2, 3, 7, 30, 200] {
                let blocks = all(&text, COMMA, size);
                let joined: Vec<u8> = blocks
                    .iter()
                    .flat_map(|block| block.bytes.clone())
                    .collect();
                assert_eq!(joined, text);
                let mut line = 1;
                let mut parts = Vec::new();
                for (number, block) in blocks.iter().enumerate() {
                    assert_eq!((block.number, block.line), (number as u64, line));
                    line += lines_in(&block.bytes);
                    parts.extend(records(&block.bytes));
                }
                let shown = String::from_utf8_lossy(&text);
                assert_eq!(parts, whole, "{shown:?} in blocks of {size}");
            }
        }
        assert!(quoted_ends > 100, "{quoted_ends}");
    }

    #[test]
    fn long_inputs_come_in_more_than_one_block() {
        let line = b"2014-06-01,\"a,\"\"\nb\",1\r\n";
        let text = line.repeat(1000);
        for (ends, size) in [(COMMA, 100), (Ends::Lines, 100), (COMMA, BLOCK_BYTES)] {
            let blocks = all(&text, ends, size);
            let expected = if size == 100 { 200 } else { 1 };
            assert!(blocks.len() >= expected, "{}", blocks.len());
            let last = &blocks[blocks.len() - 1];
            assert_eq!(last.line + lines_in(&last.bytes), 2001);
        }
    }

    #[test]
    fn lines_are_counted_behind_empty_ones() {
        let block = Block {
            number: 0,
            line: 10,
            is_open: false,
            bytes: b"a\n\r\n\nb\nc".to_vec(),
        };
        let mut before = LinesBefore::default();
        for (start, line) in [(0, 10), (2, 13), (5, 13), (7, 14), (0, 10), (99, 14)] {
            assert_eq!(block.line_of(start, &mut before), line, "{start}");
        }
    }

    #[test]
    fn what_was_read_before_an_error_comes_first() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("it broke"))
            }
        }
        let mut blocks = Blocks::new((&b"a,1\nb,2\nc,"[..]).chain(Broken), COMMA);
        let block = blocks.next().unwrap().unwrap();
        assert_eq!(block.bytes, b"a,1\nb,2\n");
        assert_eq!(blocks.next().unwrap_err().to_string(), "it broke");
        assert!(blocks.next().unwrap().is_none());
    }

    #[test]
    fn a_record_without_an_end_does_not_fill_the_memory() {
        for (ends, told) in [(COMMA, "a quote"), (Ends::Lines, "JSON")] {
            let endless = (&b"a,1\nb,\""[..]).chain(io::repeat(b'x'));
            let mut blocks = Blocks::new(endless, ends);
            assert_eq!(blocks.next().unwrap().unwrap().bytes, b"a,1\n");
            let error = blocks.next().unwrap_err();
            assert!(error.to_string().contains(told), "{error}");
            assert!(blocks.next().unwrap().is_none());
        }
    }
}
