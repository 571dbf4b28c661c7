//! The output of a command: streams, colours and width.

use crate::output::{Column, Format, Sheet};
use crate::style::Palette;
use std::io::Write;

/// The streams, colours and width that a command uses for its output.
pub(crate) struct Terminal<'a> {
    /// The stream to which results are written.
    pub out: &'a mut dyn Write,
    /// Colours for the results.
    pub palette: Palette,
    /// Colours for messages on standard error.
    pub messages: Palette,
    /// Width of the terminal in characters; `None` if the output is not a terminal.
    pub columns: Option<usize>,
}

impl Terminal<'_> {
    /// Creates a writer of rows with these columns, which writes to the stream of results.
    pub(crate) fn sheet(&mut self, format: Format, columns: Vec<Column>) -> Sheet<&mut dyn Write> {
        Sheet::new(&mut *self.out, format, self.palette, columns)
    }
}
