//! The mode `csv`: comma-separated values.

use super::cells::{Cells, names};
use super::writer::Format;
use std::io::{self, Write};
use tidalite_sql::arrow::array::RecordBatch;
use tidalite_sql::arrow::datatypes::Schema;

/// The writer.
pub(super) struct Csv {
    /// The names of the columns, until they are written.
    header: Option<Vec<String>>,
    null: String,
}

impl Csv {
    pub(super) fn new(schema: &Schema, headers: bool, null: String) -> Self {
        let header = headers.then(|| names(schema));
        Self { header, null }
    }

    fn header(&mut self, out: &mut dyn Write) -> io::Result<()> {
        match self.header.take() {
            Some(names) => Ok(csv::Writer::from_writer(out).write_record(names)?),
            None => Ok(()),
        }
    }
}

impl Format for Csv {
    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> io::Result<()> {
        self.header(out)?;
        let cells = Cells::new(batch, &self.null)?;
        let mut writer = csv::Writer::from_writer(out);
        for row in 0..batch.num_rows() {
            for text in cells.row(row) {
                writer.write_field(text?)?;
            }
            writer.write_record(None::<&[u8]>)?;
        }
        writer.flush()
    }

    fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.header(out)
    }
}
