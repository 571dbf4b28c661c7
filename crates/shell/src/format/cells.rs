//! Converts values to text.

use super::writer::unreadable;
use std::borrow::Cow;
use std::io;
use tidalite_sql::arrow::array::RecordBatch;
use tidalite_sql::arrow::datatypes::{DataType, Schema};
use tidalite_sql::arrow::util::display::{ArrayFormatter, FormatOptions};

/// The values of a batch as text: times as RFC 3339, nested values in brackets and braces.
pub(super) struct Cells<'b> {
    columns: Vec<ArrayFormatter<'b>>,
}

impl<'b> Cells<'b> {
    pub(super) fn new(batch: &'b RecordBatch, null: &'b str) -> io::Result<Self> {
        let options = FormatOptions::new()
            .with_null(null)
            .with_display_error(false);
        let columns = batch.columns().iter();
        let columns = columns.map(|column| ArrayFormatter::try_new(column.as_ref(), &options));
        let columns = columns.collect::<Result<_, _>>().map_err(unreadable)?;
        Ok(Self { columns })
    }

    /// The texts of one row.
    pub(super) fn row(&self, row: usize) -> impl Iterator<Item = io::Result<String>> {
        let cells = self.columns.iter();
        cells.map(move |column| column.value(row).try_to_string().map_err(unreadable))
    }
}

/// The names of the columns. They may contain any character.
pub(super) fn names(schema: &Schema) -> Vec<String> {
    let fields = schema.fields().iter();
    fields.map(|field| field.name().clone()).collect()
}

/// For each column, whether its values are numbers, which are right-aligned.
pub(super) fn numeric(schema: &Schema) -> Vec<bool> {
    let fields = schema.fields().iter();
    fields.map(|field| is_numeric(field.data_type())).collect()
}

fn is_numeric(ty: &DataType) -> bool {
    match ty {
        DataType::Dictionary(_, value) => is_numeric(value),
        ty => ty.is_numeric(),
    }
}

/// A text without control characters, which could change the state of the terminal. Line breaks are kept if `lines` is
/// set.
pub(super) fn printable(text: &str, lines: bool) -> Cow<'_, str> {
    let escaped = |c: char| c.is_control() && !(lines && c == '\n');
    if !text.chars().any(escaped) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match escaped(c) {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
}
