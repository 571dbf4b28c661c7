//! Files with rows: CSV, JSON lines, Parquet, Arrow IPC.
//!
//! ```text
//! format   formats and their options
//! read     reads files as batches
//! write    writes batches to files
//! listing  files as tables of SQL
//! ```

pub(crate) mod format;
pub(crate) mod listing;
pub(crate) mod read;
pub(crate) mod write;
