//! The modes `json` and `jsonl`: rows as JSON objects. Numbers, booleans, NULL, lists and structs become the
//! corresponding JSON values; times become strings.

use super::writer::{Format, unreadable};
use std::io::{self, Write};
use tidalite_sql::arrow::array::RecordBatch;
use tidalite_sql::arrow::error::ArrowError;
use tidalite_sql::arrow::json::writer::{JsonFormat, LineDelimited};
use tidalite_sql::arrow::json::{Writer, WriterBuilder};

/// The format of a single array with one row per line.
#[derive(Debug, Default)]
pub(super) struct Array;

impl JsonFormat for Array {
    fn start_stream<W: Write>(&self, writer: &mut W) -> Result<(), ArrowError> {
        Ok(writer.write_all(b"[")?)
    }

    fn start_row<W: Write>(&self, writer: &mut W, is_first_row: bool) -> Result<(), ArrowError> {
        let separator: &[u8] = if is_first_row { b"\n" } else { b",\n" };
        Ok(writer.write_all(separator)?)
    }

    fn end_stream<W: Write>(&self, writer: &mut W) -> Result<(), ArrowError> {
        Ok(writer.write_all(b"\n]\n")?)
    }
}

/// The writer.
pub(super) struct Json<F: JsonFormat> {
    /// Writes into a buffer, which is cleared after each batch.
    writer: Writer<Vec<u8>, F>,
}

impl Json<Array> {
    pub(super) fn array() -> Self {
        Self::new()
    }
}

impl Json<LineDelimited> {
    pub(super) fn lines() -> Self {
        Self::new()
    }
}

impl<F: JsonFormat> Json<F> {
    fn new() -> Self {
        let builder = WriterBuilder::new().with_explicit_nulls(true);
        Self {
            writer: builder.build(Vec::new()),
        }
    }

    fn empty_buffer(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let buffer = self.writer.get_mut();
        out.write_all(buffer)?;
        buffer.clear();
        Ok(())
    }
}

impl<F: JsonFormat> Format for Json<F> {
    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> io::Result<()> {
        self.writer.write(batch).map_err(unreadable)?;
        self.empty_buffer(out)
    }

    fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.writer.finish().map_err(unreadable)?;
        self.empty_buffer(out)
    }
}
