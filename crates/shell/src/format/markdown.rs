//! The mode `markdown`: a table as GitHub renders it.

use super::cells::{Cells, names, numeric, printable};
use super::writer::Format;
use std::io::{self, Write};
use tidalite_sql::arrow::array::RecordBatch;
use tidalite_sql::arrow::datatypes::Schema;

/// The writer.
pub(super) struct Markdown {
    /// The header, until it is written.
    header: Option<String>,
    null: String,
}

impl Markdown {
    pub(super) fn new(schema: &Schema, headers: bool, null: String) -> Self {
        let names = names(schema).into_iter();
        // A table always has a header line.
        let names = names.map(|name| {
            if headers {
                escaped(&name)
            } else {
                String::new()
            }
        });
        let names: Vec<String> = names.collect();
        let rules = numeric(schema).into_iter();
        let rules = rules.map(|numeric| if numeric { "---:" } else { "---" });
        let rules: Vec<&str> = rules.collect();
        let header = format!("| {} |\n| {} |\n", names.join(" | "), rules.join(" | "));
        Self {
            header: Some(header),
            null,
        }
    }

    fn header(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let header = self.header.take().unwrap_or_default();
        out.write_all(header.as_bytes())
    }
}

/// A text, escaped for use in a cell.
fn escaped(text: &str) -> String {
    let text = printable(text, true);
    text.replace('\\', "\\\\")
        .replace('|', "\\|")
        .replace('\n', "<br>")
}

impl Format for Markdown {
    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> io::Result<()> {
        self.header(out)?;
        let cells = Cells::new(batch, &self.null)?;
        for row in 0..batch.num_rows() {
            write!(out, "|")?;
            for text in cells.row(row) {
                write!(out, " {} |", escaped(&text?))?;
            }
            writeln!(out)?;
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.header(out)
    }
}
