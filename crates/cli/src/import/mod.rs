//! CSV in: bytes, columns, rows.
//!
//! ```text
//! source   a file, plain or gzipped, or standard input; counts what was read
//! layout   which column is the time, which are tags, which are values
//! rows     one CSV line becomes a time, tags and values, or a complaint with its line number
//! load     rows into series of a database
//! ```

pub(crate) mod layout;
pub(crate) mod load;
pub(crate) mod rows;
pub(crate) mod source;
