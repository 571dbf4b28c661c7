//! Reads the messages of one input in batches; each batch becomes one commit.

use super::source::{Source, Taken, Unread};
use crate::exit::{Failure, Outcome};
use std::io::{BufRead, Read};

/// Maximum number of messages of a batch.
pub(super) const BATCH_MESSAGES: usize = 16_384;

/// Maximum number of bytes of the lines of a batch; the last line may exceed it.
pub(super) const BATCH_BYTES: usize = 16 << 20;

/// Maximum length in bytes of a line. The text of the largest message is shorter than this.
const LINE_BYTES_MAX: u64 = 64 << 20;

/// A batch of messages, with the numbers of its first and its last line.
pub(super) struct Batch {
    pub messages: Vec<Taken>,
    pub first: u64,
    pub last: u64,
    /// Whether the input has ended.
    pub is_last: bool,
}

/// The lines of an input.
pub(super) struct Lines<R> {
    input: R,
    line: Vec<u8>,
    /// Number of lines that were read.
    number: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            line: Vec::new(),
            number: 0,
        }
    }

    fn bad(number: u64, problem: &str) -> Failure {
        Failure::bad_input(format!("line {number}: {problem}"))
    }

    /// Reads the next line; `false` at the end.
    fn next(&mut self) -> Outcome<bool> {
        self.line.clear();
        self.number += 1;
        let limit = LINE_BYTES_MAX + 1;
        let mut input = Read::take(&mut self.input, limit);
        let read = input
            .read_until(b'\n', &mut self.line)
            .map_err(|error| Self::bad(self.number, &format!("reading failed: {error}")))?;
        if read as u64 == limit {
            let most = LINE_BYTES_MAX >> 20;
            let problem = format!("it is longer than {most} MiB; write one JSON object a line");
            return Err(Self::bad(self.number, &problem));
        }
        Ok(read > 0)
    }

    /// Reads the messages of the next lines. Blank lines are skipped.
    pub(super) fn batch(&mut self, source: &mut Source<'_>) -> Outcome<Batch> {
        let (mut unread, mut bytes): (Vec<(u64, Unread)>, usize) = (Vec::new(), 0);
        let mut is_last = false;
        while unread.len() < BATCH_MESSAGES && bytes < BATCH_BYTES {
            if !self.next()? {
                is_last = true;
                break;
            }
            bytes += self.line.len();
            let text = std::str::from_utf8(self.line.trim_ascii())
                .map_err(|_| Self::bad(self.number, "it is not UTF-8"))?;
            if text.is_empty() {
                continue;
            }
            let message = source.read(text);
            let message = message.map_err(|problem| Self::bad(self.number, &problem))?;
            unread.push((self.number, message));
        }
        let texts = unread.iter().filter_map(|(_, message)| message.time_text());
        source.detect(&texts.take(1_000).collect::<Vec<_>>())?;
        let (first, last) = (
            unread.first().map_or(0, |(number, _)| *number),
            unread.last().map_or(0, |(number, _)| *number),
        );
        let messages = unread.into_iter().map(|(number, message)| {
            let taken = source.take(message);
            taken.map_err(|problem| Self::bad(number, &problem))
        });
        Ok(Batch {
            messages: messages.collect::<Outcome<_>>()?,
            first,
            last,
            is_last,
        })
    }
}
