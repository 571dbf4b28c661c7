//! Where a command prints.

use crate::output::{Column, Format, Sheet};
use crate::style::Palette;
use std::io::Write;

/// Where a command prints.
pub(crate) struct Terminal<'a> {
    /// Results.
    pub out: &'a mut dyn Write,
    /// Colours of results.
    pub palette: Palette,
    /// Colours of messages on standard error.
    pub messages: Palette,
    /// Columns of the terminal, where there is one.
    pub columns: Option<usize>,
}

impl Terminal<'_> {
    /// Rows of these columns to where results go.
    pub(crate) fn sheet(&mut self, format: Format, columns: Vec<Column>) -> Sheet<&mut dyn Write> {
        Sheet::new(&mut *self.out, format, self.palette, columns)
    }
}
