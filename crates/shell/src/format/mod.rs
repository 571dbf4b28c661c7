//! Writers of results, one for each mode.
//!
//! ```text
//! cells     values as text
//! boxed     a table with borders
//! csv       comma-separated values
//! json      JSON, as an array or in lines
//! markdown  a Markdown table
//! line      one line for each value
//! plan      the output of EXPLAIN
//! ```

mod boxed;
mod cells;
mod csv;
mod json;
mod line;
mod markdown;
mod plan;
#[cfg(test)]
mod tests;

use crate::settings::{Mode, Settings};
use std::io::{self, Write};
use tidalite_sql::arrow::array::RecordBatch;
use tidalite_sql::arrow::datatypes::SchemaRef;
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

/// Creates the writer for a result. `width` is the maximum width of a table in characters, if there is one.
pub(crate) fn format(
    settings: &Settings,
    width: Option<u16>,
    schema: &SchemaRef,
) -> Box<dyn Format> {
    let (headers, null) = (settings.headers, settings.null().to_owned());
    match settings.mode {
        Mode::Box if plan::is_plan(schema) => Box::new(plan::Plan),
        Mode::Box => Box::new(boxed::Boxed::new(schema, headers, null, width)),
        Mode::Csv => Box::new(csv::Csv::new(schema, headers, null)),
        Mode::Json => Box::new(json::Json::array()),
        Mode::JsonLines => Box::new(json::Json::lines()),
        Mode::Markdown => Box::new(markdown::Markdown::new(schema, headers, null)),
        Mode::Line => Box::new(line::Line::new(schema, null)),
    }
}

/// Converts an error of a value that has no text.
fn unreadable(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        error => io::Error::other(error),
    }
}
