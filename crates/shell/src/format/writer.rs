//! The trait of all writers of results.

use std::io::{self, Write};
use tidalite_sql::arrow::array::RecordBatch;
use tidalite_sql::arrow::error::ArrowError;

/// Writes the batches of one result.
pub(crate) trait Format {
    /// Writes the rows of a batch, or holds them back for a while.
    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> io::Result<()>;

    /// Writes rows that were held back, and the end of the result.
    fn finish(&mut self, out: &mut dyn Write) -> io::Result<()>;

    /// True if the result ends with a line that tells the number of rows.
    fn counts_rows(&self) -> bool {
        false
    }
}

/// Converts an error of a value that has no text.
pub(super) fn unreadable(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        error => io::Error::other(error),
    }
}
