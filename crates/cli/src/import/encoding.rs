//! Converts an input in another encoding to UTF-8.

use crate::import::blocks::lines_in;
use encoding_rs::{Decoder, DecoderResult, Encoding};
use std::io::{self, Read};

/// Number of bytes that are read from the input at a time.
const PART_BYTES: usize = 64 * 1024;

/// The encoding that a byte order mark at the beginning of an input shows, if it is not UTF-8.
pub(crate) fn marked(head: &[u8]) -> Option<&'static Encoding> {
    match Encoding::for_bom(head) {
        Some((encoding, _)) if encoding != encoding_rs::UTF_8 => Some(encoding),
        _ => None,
    }
}

/// A reader of UTF-8 that decodes another encoding. A byte order mark is removed. Bytes that the encoding does not
/// have are an error: replacement characters in names would distinguish series that are the same.
pub(crate) struct Decoded<R> {
    input: R,
    encoding: &'static Encoding,
    decoder: Decoder,
    raw: Vec<u8>,
    text: Vec<u8>,
    /// Number of bytes of `text` that were returned.
    given: usize,
    /// Number of line ends in all text that was decoded.
    lines: u64,
    ended: bool,
}

impl<R: Read> Decoded<R> {
    pub(crate) fn new(input: R, encoding: &'static Encoding) -> Self {
        Self {
            input,
            encoding,
            decoder: encoding.new_decoder_with_bom_removal(),
            raw: Vec::new(),
            text: Vec::new(),
            given: 0,
            lines: 0,
            ended: false,
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        self.raw.clear();
        let read = (&mut self.input)
            .take(PART_BYTES as u64)
            .read_to_end(&mut self.raw)?;
        self.ended = read < PART_BYTES;
        let most = self
            .decoder
            .max_utf8_buffer_length_without_replacement(read);
        let most = most.ok_or_else(|| io::Error::other("the input is too long"))?;
        self.text.resize(most, 0);
        self.given = 0;
        let (result, _, written) =
            self.decoder
                .decode_to_utf8_without_replacement(&self.raw, &mut self.text, self.ended);
        self.text.truncate(written);
        self.lines += lines_in(&self.text);
        match result {
            DecoderResult::Malformed(..) => Err(io::Error::other(format!(
                "line {} is not text in {}: choose another one with --encoding",
                self.lines + 1,
                self.encoding.name()
            ))),
            DecoderResult::InputEmpty | DecoderResult::OutputFull => Ok(()),
        }
    }
}

impl<R: Read> Read for Decoded<R> {
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
