//! The mode `box`: a table with borders, for reading.
//!
//! The first rows are held back, because they determine the widths of the columns. Later rows are wrapped to these
//! widths and written in blocks, so that a result of any length needs bounded memory.

use super::cells::{Cells, names, numeric, printable};
use super::writer::Format;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{
    Cell, CellAlignment, ColumnConstraint, ContentArrangement, Row, Table, Width as ColumnWidth,
};
use std::io::{self, Write};
use tidalite_sql::arrow::array::RecordBatch;
use tidalite_sql::arrow::datatypes::Schema;

/// Number of rows that determine the widths of the columns.
const ROWS_HELD_MAX: usize = 10_000;

/// Number of bytes of text that determine the widths, if this limit is reached before the number of rows.
const BYTES_HELD_MAX: usize = 8 << 20;

/// Minimum width in characters, including padding, to which a column is narrowed to fit the terminal. A table with many
/// columns may therefore be wider than the terminal.
const COLUMN_WIDTH_MIN: u16 = 10;

/// Maximum width of a column in characters if no terminal limits the table.
const COLUMN_WIDTH_MAX: u16 = 1_000;

/// The writer.
pub(super) struct Boxed {
    names: Vec<String>,
    numeric: Vec<bool>,
    headers: bool,
    null: String,
    width: Option<u16>,
    held: Vec<Vec<String>>,
    held_bytes: usize,
    /// Widths of the columns, including padding; set when the first block is written.
    widths: Option<Vec<u16>>,
    /// The lower border.
    bottom: String,
}

impl Boxed {
    pub(super) fn new(schema: &Schema, headers: bool, null: String, width: Option<u16>) -> Self {
        Self {
            names: names(schema),
            numeric: numeric(schema),
            headers,
            null,
            width,
            held: Vec::new(),
            held_bytes: 0,
            widths: None,
            bottom: String::new(),
        }
    }

    /// A table with the rows that are held back.
    fn table(&mut self) -> Table {
        let mut table = Table::new();
        table
            .load_preset(UTF8_FULL_CONDENSED)
            .set_content_arrangement(ContentArrangement::Dynamic);
        if self.headers && self.widths.is_none() {
            table.set_header(
                self.names
                    .iter()
                    .map(|name| Cell::new(printable(name, true))),
            );
        }
        for texts in self.held.drain(..) {
            let cells = texts.into_iter().zip(&self.numeric);
            let cells = cells.map(|(text, numeric)| match numeric {
                true => Cell::new(text).set_alignment(CellAlignment::Right),
                false => Cell::new(text),
            });
            table.add_row(Row::from(cells));
        }
        self.held_bytes = 0;
        table
    }

    /// Writes the rows that are held back.
    fn flush(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let mut table = self.table();
        let is_first = self.widths.is_none();
        match &self.widths {
            Some(widths) => {
                let fixed = |width: &u16| ColumnConstraint::Absolute(ColumnWidth::Fixed(*width));
                table.set_constraints(widths.iter().map(fixed));
            }
            None => self.fit(&mut table),
        }
        let mut lines: Vec<String> = table.lines().collect();
        let top = lines.first().map(|border| widths_of(border));
        self.widths.get_or_insert(top.unwrap_or_default());
        self.bottom = lines.pop().unwrap_or_default();
        // Only the first block has an upper border.
        for line in lines.iter().skip(usize::from(!is_first)) {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    /// Narrows columns to the width of the terminal, but not below a minimum.
    fn fit(&self, table: &mut Table) {
        let natural = table.column_max_content_widths();
        let padded = natural.iter().map(|width| width.saturating_add(2));
        let constraints: Vec<ColumnConstraint> = match self.width {
            Some(width) => {
                table.set_width(width);
                let lower = padded.map(|width| width.min(COLUMN_WIDTH_MIN));
                lower
                    .map(|width| ColumnConstraint::LowerBoundary(ColumnWidth::Fixed(width)))
                    .collect()
            }
            None => padded
                .map(|width| width.min(COLUMN_WIDTH_MAX))
                .map(|width| ColumnConstraint::Absolute(ColumnWidth::Fixed(width)))
                .collect(),
        };
        table.set_constraints(constraints);
    }
}

/// The widths of the columns, from the upper border of a table.
fn widths_of(border: &str) -> Vec<u16> {
    let inner = border.trim_matches(['┌', '┐']);
    let columns = inner.split('┬').map(|column| column.chars().count());
    columns
        .map(|width| width.try_into().unwrap_or(u16::MAX))
        .collect()
}

impl Format for Boxed {
    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> io::Result<()> {
        let null = self.null.clone();
        let cells = Cells::new(batch, &null)?;
        for row in 0..batch.num_rows() {
            let texts = cells
                .row(row)
                .map(|text| Ok(printable(&text?, true).into_owned()));
            let texts: Vec<String> = texts.collect::<io::Result<_>>()?;
            self.held_bytes += texts.iter().map(String::len).sum::<usize>();
            self.held.push(texts);
            if self.held.len() >= ROWS_HELD_MAX || self.held_bytes >= BYTES_HELD_MAX {
                self.flush(out)?;
            }
        }
        // Once the widths are known, rows are written without delay.
        if self.widths.is_some() && !self.held.is_empty() {
            self.flush(out)?;
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if !self.held.is_empty() || self.widths.is_none() {
            self.flush(out)?;
        }
        match self.bottom.is_empty() {
            true => Ok(()),
            false => writeln!(out, "{}", self.bottom),
        }
    }

    fn counts_rows(&self) -> bool {
        true
    }
}
