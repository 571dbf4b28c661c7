//! Files with rows: CSV, JSON lines, Parquet, Arrow IPC.
//!
//! ```text
//! format   formats and their options
//! read     a file as batches
//! write    batches as a file
//! listing  a file as a table of SQL
//! ```

pub(crate) mod format;
pub(crate) mod listing;
pub(crate) mod read;
pub(crate) mod write;
