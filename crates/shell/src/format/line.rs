//! The mode `line`: one line for each value, and an empty line between rows.

use super::cells::{Cells, names, printable};
use super::writer::Format;
use std::io::{self, Write};
use tidalite_sql::arrow::array::RecordBatch;
use tidalite_sql::arrow::datatypes::Schema;

/// The writer.
pub(super) struct Line {
    names: Vec<String>,
    /// Number of characters of the longest name.
    width: usize,
    null: String,
    is_first: bool,
}

impl Line {
    pub(super) fn new(schema: &Schema, null: String) -> Self {
        let names = names(schema).into_iter();
        let names: Vec<String> = names
            .map(|name| printable(&name, false).into_owned())
            .collect();
        let width = names.iter().map(|name| name.chars().count()).max();
        Self {
            width: width.unwrap_or(0),
            names,
            null,
            is_first: true,
        }
    }
}

impl Format for Line {
    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> io::Result<()> {
        let cells = Cells::new(batch, &self.null)?;
        for row in 0..batch.num_rows() {
            if !std::mem::take(&mut self.is_first) {
                writeln!(out)?;
            }
            for (name, text) in self.names.iter().zip(cells.row(row)) {
                let (text, width) = (text?, self.width);
                writeln!(out, "{name:>width$} = {}", printable(&text, false))?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}
