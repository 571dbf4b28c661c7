//! Splits the input into blocks that end at the end of a record, to be parsed by several threads in parallel.
//!
//! Invariants:
//! 1. The blocks, concatenated in order, are the input, byte for byte.
//! 2. A block ends after a line end outside quotes, which puts each record within one block. Only the last block may
//!    end otherwise.
//! 3. `line` of a block is the number of its first line in the whole input.
//!
//! Quotes are interpreted as the CSV reader does: a quote at the beginning of a field opens a quotation, two quotes
//! within it stand for one, and a quote inside a field that began without one is an ordinary character.

use crate::import::record::{ROW_BYTES_MAX, endless};
use std::io::{self, Read};
use tidalite_line_protocol::Scanner;

/// Number of bytes that are read at a time, which is also the size of most blocks.
pub(crate) const BLOCK_BYTES: usize = 256 * 1024;

/// The rule that says where a record ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    /// A record ends at the end of a line, unless the line end is within quotes.
    Csv {
        /// The character that separates fields.
        delimiter: u8,
        /// The character that begins comment lines; quotes in such a line are ordinary characters.
        comment: Option<u8>,
    },
    /// A record ends at the end of each line.
    Lines,
    /// A record ends at the end of a line of the line protocol, whose strings may contain line feeds.
    LineProtocol,
}

/// A part of the input that consists of whole records.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// Number of the block, counted from 0.
    pub number: u64,
    /// Number of the line of the block's first byte in the input, counted from 1.
    pub line: u64,
    /// The bytes of the block, which are whole records.
    pub bytes: Vec<u8>,
    /// Whether the block is a single record that ends within quotes, because the input ends there.
    pub is_open: bool,
    /// The character that begins comment lines.
    pub comment: Option<u8>,
}

/// Counts the lines of a block up to offsets that ascend from call to call.
#[derive(Debug, Default)]
pub(crate) struct LinesBefore {
    at: usize,
    lines: u64,
}

impl Block {
    /// Number of the line of the record that begins at this offset; empty lines in front of the record are skipped.
    pub(crate) fn line_of(&self, start: usize, before: &mut LinesBefore) -> u64 {
        self.line_in(&self.bytes, start, before)
    }

    /// Does the same as `line_of`, for a block whose bytes have been taken out and are given as `bytes`.
    pub(crate) fn line_in(&self, bytes: &[u8], start: usize, before: &mut LinesBefore) -> u64 {
        let start = bytes.len().min(start);
        let start = start + lines_to_pass(&bytes[start..], self.comment);
        if start < before.at {
            *before = LinesBefore::default();
        }
        before.lines += lines_in(&bytes[before.at..start]);
        before.at = start;
        self.line + before.lines
    }
}

/// Number of the line with a quote that is opened and never closed; `None` if there is none.
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

/// Number of bytes of line ends at the beginning of the text.
pub(crate) fn empty_lines(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| is_line_end(**byte)).count()
}

/// Number of bytes of line ends and comments at the beginning of the text.
fn lines_to_pass(bytes: &[u8], comment: Option<u8>) -> usize {
    let mut at = empty_lines(bytes);
    while comment.is_some() && bytes.get(at).copied() == comment {
        let rest = &bytes[at..];
        at += rest.iter().take_while(|byte| **byte != b'\n').count();
        at += empty_lines(&bytes[at..]);
    }
    at
}

pub(crate) fn lines_in(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// The state of the scanner: the place of the next byte within a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// The next byte is at the beginning of a field.
    #[default]
    Begin,
    /// The next byte is in a field without quotes, or after a closing quote.
    Field,
    Quoted,
    /// The next byte is in a comment.
    Comment,
    /// The next byte follows a quote within quotes. That quote has closed them, unless the next byte is another quote.
    Quote,
}

/// Splits an input into blocks that consist of whole records.
pub(crate) struct Blocks<R> {
    input: R,
    ends: Ends,
    block_bytes: usize,
    /// Bytes that were read from the input and do not belong to a block yet.
    rest: Vec<u8>,
    /// Number of bytes of `rest` that were scanned; `place` is the state after these.
    looked: usize,
    place: Place,
    /// The state after the scanned bytes of the line protocol.
    scanner: Scanner,
    /// Offset in `rest` of the end of the last complete record.
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
            scanner: Scanner::default(),
            cut: 0,
            number: 0,
            line: 1,
            ended: false,
            failed: None,
        }
    }

    /// Sets the line number of the first byte of the input.
    pub(crate) fn begin_at_line(mut self, line: u64) -> Self {
        self.line = line;
        self
    }

    /// Sets the size in bytes of blocks, for tests.
    #[cfg(test)]
    pub(crate) fn of_bytes(mut self, block_bytes: usize) -> Self {
        self.block_bytes = block_bytes;
        self
    }

    /// Reads the next block; `None` after the last one.
    ///
    /// # Errors
    /// Errors of the input, after all records before the error were returned; a record longer than [`ROW_BYTES_MAX`].
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
                    Ends::Csv { .. } | Ends::LineProtocol => "is a quote not closed?",
                    Ends::Lines => "is this one JSON object per line?",
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
            comment: match self.ends {
                Ends::Csv { comment, .. } => comment,
                Ends::Lines | Ends::LineProtocol => None,
            },
        };
        self.number += 1;
        self.line += lines_in(&block.bytes);
        self.looked = self.looked.saturating_sub(cut);
        self.cut = 0;
        block
    }

    /// Scans the bytes that are new in `rest` for the last end of a record.
    fn look(&mut self) {
        let new = &self.rest[self.looked..];
        if self.ends == Ends::LineProtocol {
            self.look_for_lines();
            return;
        }
        let Ends::Csv { delimiter, comment } = self.ends else {
            if let Some(at) = new.iter().rposition(|byte| *byte == b'\n') {
                self.cut = self.looked + at + 1;
            }
            self.looked = self.rest.len();
            return;
        };
        if new.contains(&b'"') || comment.is_some() {
            self.look_among_quotes(delimiter, comment);
        } else if self.place != Place::Quoted
            && let Some(last) = new.last()
        {
            // If the last byte is a carriage return, a line feed may follow, so the record does not end before the next
            // byte is known.
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

    /// Scans the new bytes of the line protocol.
    fn look_for_lines(&mut self) {
        let new = &self.rest[self.looked..];
        let mut begin = 0;
        // Without strings every line feed ends a line, so only the last line is scanned byte by byte.
        if !new.contains(&b'"')
            && !self.scanner.is_in_string()
            && let Some(at) = new.iter().rposition(|byte| *byte == b'\n')
        {
            begin = at + 1;
            self.cut = self.looked + begin;
            self.scanner = Scanner::default();
        }
        for (at, &byte) in new.iter().enumerate().skip(begin) {
            if self.scanner.next(byte) {
                self.cut = self.looked + at + 1;
            }
        }
        self.looked = self.rest.len();
    }

    /// Whether the byte at this offset of `rest` is the first of a line.
    fn begins_line(&self, at: usize) -> bool {
        at == 0 || is_line_end(self.rest[at - 1])
    }

    fn look_among_quotes(&mut self, delimiter: u8, comment: Option<u8>) {
        let mut place = self.place;
        for (at, &byte) in self.rest.iter().enumerate().skip(self.looked) {
            place = match (place, byte) {
                (Place::Quoted, b'"') => Place::Quote,
                (Place::Quoted, _) => Place::Quoted,
                (Place::Begin | Place::Quote, b'"') => Place::Quoted,
                (Place::Begin, byte) if Some(byte) == comment && self.begins_line(at) => {
                    Place::Comment
                }
                (_, b'\n') => {
                    self.cut = at + 1;
                    Place::Begin
                }
                // For the CSV reader, only a line feed ends a comment.
                (Place::Comment, _) => Place::Comment,
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

    const COMMA: Ends = Ends::Csv {
        delimiter: b',',
        comment: None,
    };

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

    /// The inputs are random bytes with delimiters, line ends and quotes. Blocks of any size must give the same records
    /// as the whole input.
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

    /// The line protocol is divided between its lines, and a line may contain line feeds in a string.
    #[test]
    fn lines_of_the_line_protocol_lie_within_blocks() {
        let lines = |bytes: &[u8]| -> Vec<Vec<u8>> {
            let lines = tidalite_line_protocol::lines(bytes);
            lines.map(|(_, line)| line.to_vec()).collect()
        };
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        for round in 0..1000 {
            let mut text = Vec::new();
            for _ in 0..round % 97 {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                let alphabet: &[u8] = [&b"m v=\"\n\\,"[..], b"m v=1\n,"][round % 2];
                text.push(alphabet[(state >> 33) as usize % alphabet.len()]);
            }
            for size in [1, 2, 3, 7, 30, 200] {
                let blocks = all(&text, Ends::LineProtocol, size);
                let parts = blocks.iter().flat_map(|block| lines(&block.bytes));
                let shown = String::from_utf8_lossy(&text);
                let parts: Vec<Vec<u8>> = parts.collect();
                assert_eq!(parts, lines(&text), "{shown:?} in blocks of {size}");
            }
        }
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
            comment: None,
            bytes: b"a\n\r\n\nb\nc".to_vec(),
        };
        let mut before = LinesBefore::default();
        for (start, line) in [(0, 10), (2, 13), (5, 13), (7, 14), (0, 10), (99, 14)] {
            assert_eq!(block.line_of(start, &mut before), line, "{start}");
        }
    }

    #[test]
    fn rows_before_an_error_are_returned_first() {
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
