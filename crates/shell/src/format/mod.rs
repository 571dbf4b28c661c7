//! Writers of results, one for each mode.
//!
//! ```text
//! writer    the trait of all writers
//! cells     values as text
//! boxed     a table with borders
//! csv       comma-separated values
//! json      JSON, as an array or in lines
//! markdown  a Markdown table
//! line      one line for each value
//! plan      the output of EXPLAIN
//! file      Parquet and Arrow
//! ```

mod boxed;
mod cells;
mod csv;
mod file;
mod json;
mod line;
mod markdown;
mod plan;
#[cfg(test)]
mod tests;
mod writer;

use crate::settings::{Mode, Settings};
pub use file::FileBytes;
use tidalite_sql::FileFormat;
use tidalite_sql::arrow::datatypes::SchemaRef;
pub(crate) use writer::Format;

/// Creates the writer for a result. `width` is the maximum width of a table in characters, if limited.
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
        Mode::Parquet => Box::new(FileBytes::new(FileFormat::Parquet, schema)),
        Mode::Arrow => Box::new(FileBytes::new(FileFormat::Arrow, schema)),
    }
}
