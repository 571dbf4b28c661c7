//! Output of a command.

use crate::output::{Column, Format, Sheet};
use crate::style::Palette;
use std::io::Write;

/// Streams, colours and width for the output of a command.
pub(crate) struct Terminal<'a> {
    /// The stream for results.
    pub out: &'a mut dyn Write,
    /// Colours of results.
    pub palette: Palette,
    /// Colours of messages on standard error.
    pub messages: Palette,
    /// Width of the terminal in characters, if there is a terminal.
    pub columns: Option<usize>,
}

impl Terminal<'_> {
    /// A sheet of these columns that is written to the results.
    pub(crate) fn sheet(&mut self, format: Format, columns: Vec<Column>) -> Sheet<&mut dyn Write> {
        Sheet::new(&mut *self.out, format, self.palette, columns)
    }
}
