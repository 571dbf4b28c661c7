//! The trait of all writers of results.

use std::io::{self, Write};
use tidalite_sql::arrow::array::RecordBatch;
use tidalite_sql::arrow::error::ArrowError;

/// Writes the batches of one result.
pub(crate) trait Format {
    /// Writes the rows of a batch, or buffers them.
    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> io::Result<()>;

    /// Writes buffered rows and the end of the result.
    fn finish(&mut self, out: &mut dyn Write) -> io::Result<()>;

    /// True if the result ends with a line that shows the number of rows.
    fn counts_rows(&self) -> bool {
        false
    }
}

/// Converts an error for a value that cannot be shown as text.
pub(super) fn unreadable(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        error => io::Error::other(error),
    }
}
