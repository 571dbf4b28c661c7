//! Rewrites JSON that is not one value per line: the elements of an array, or objects over several lines.
//!
//! ```text
//! [ {"a": 1},          {"a": 1}
//!   {"a":       -->    {"a":  2}
//!       2} ]
//! ```
//!
//! The input is not parsed, only divided: strings are recognised, and brackets are counted. Errors are found where the
//! lines are parsed. The memory needed does not depend on the length of the input.

use std::io::{self, Read};

/// Number of bytes that are read from the input at a time.
const PART_BYTES: usize = 64 * 1024;

/// A reader that returns each value of a JSON text on a line of its own.
pub(crate) struct JsonValues<R> {
    input: R,
    raw: Vec<u8>,
    text: Vec<u8>,
    /// Number of bytes of `text` that were returned.
    given: usize,
    array: Array,
    /// Number of open brackets, without the one of the array.
    depth: usize,
    in_string: bool,
    /// Whether the previous byte is a backslash in a string.
    escaped: bool,
    /// Whether the current line has a value or a part of one.
    has_value: bool,
    ended: bool,
}

/// Whether the values are the elements of an array, and where the reader is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Array {
    Before,
    Inside,
    /// After the array, or there is none.
    Outside,
}

impl<R: Read> JsonValues<R> {
    /// Creates a reader of the elements of an array.
    pub(crate) fn of_array(input: R) -> Self {
        Self::new(input, Array::Before)
    }

    /// Creates a reader of values that follow each other.
    pub(crate) fn of_sequence(input: R) -> Self {
        Self::new(input, Array::Outside)
    }

    fn new(input: R, array: Array) -> Self {
        Self {
            input,
            raw: Vec::new(),
            text: Vec::new(),
            given: 0,
            array,
            depth: 0,
            in_string: false,
            escaped: false,
            has_value: false,
            ended: false,
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        self.raw.clear();
        let mut raw = std::mem::take(&mut self.raw);
        let read = (&mut self.input)
            .take(PART_BYTES as u64)
            .read_to_end(&mut raw)?;
        self.text.clear();
        self.given = 0;
        for &byte in &raw {
            self.byte(byte);
        }
        self.raw = raw;
        if read < PART_BYTES {
            self.ended = true;
            if self.array != Array::Outside {
                return Err(io::Error::other(
                    "the JSON array does not end: is the file complete?",
                ));
            }
        }
        Ok(())
    }

    fn byte(&mut self, byte: u8) {
        if self.in_string {
            self.text.push(byte);
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'[' if self.array == Array::Before => self.array = Array::Inside,
            b']' if self.array == Array::Inside && self.depth == 0 => {
                self.end_line();
                self.array = Array::Outside;
            }
            b',' if self.array == Array::Inside && self.depth == 0 => self.end_line(),
            b'{' | b'[' => {
                self.depth += 1;
                self.value(byte);
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.value(byte);
                if self.depth == 0 && self.array == Array::Outside {
                    self.end_line();
                }
            }
            b'\n' | b'\r' => self.text.push(b' '),
            b' ' | b'\t' => self.text.push(byte),
            _ => {
                self.in_string = byte == b'"';
                self.value(byte);
            }
        }
    }

    fn value(&mut self, byte: u8) {
        self.has_value = true;
        self.text.push(byte);
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.has_value) {
            self.text.push(b'\n');
        }
    }
}

impl<R: Read> Read for JsonValues<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.given == self.text.len() {
            if self.ended {
                return Ok(0);
            }
            self.fill()?;
        }
        let rest = &self.text[self.given..];
        let bytes = rest.len().min(buffer.len());
        buffer[..bytes].copy_from_slice(&rest[..bytes]);
        self.given += bytes;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(mut values: JsonValues<&[u8]>) -> io::Result<Vec<String>> {
        let mut text = String::new();
        values.read_to_string(&mut text)?;
        Ok(text.lines().map(|line| line.trim().to_owned()).collect())
    }

    #[test]
    fn each_value_gets_a_line() {
        let array = "\n[\n {\"a\": [1,\n 2]},\r\n{\"b\":\"}],\\\"[\\\\\"} , [1,2],3\n]\n";
        let expected = [
            "{\"a\": [1,  2]}",
            "{\"b\":\"}],\\\"[\\\\\"}",
            "[1,2]",
            "3",
            "",
        ];
        assert_eq!(
            lines(JsonValues::of_array(array.as_bytes())).unwrap(),
            expected
        );
        let sequence = "{\n\"a\":1}{\"b\":[{}]}\n\n{}\n";
        let expected = ["{ \"a\":1}", "{\"b\":[{}]}", "{}", ""];
        assert_eq!(
            lines(JsonValues::of_sequence(sequence.as_bytes())).unwrap(),
            expected
        );
    }

    #[test]
    fn an_array_that_does_not_end_is_an_error() {
        for text in ["[", "[{\"a\":1}", "[{\"a\":1},", "[{\"a\":\"]"] {
            assert!(
                lines(JsonValues::of_array(text.as_bytes())).is_err(),
                "{text}"
            );
        }
        assert!(lines(JsonValues::of_array(&b"[]"[..])).unwrap().is_empty());
    }
}
