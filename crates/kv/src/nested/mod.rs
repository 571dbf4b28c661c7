//! A table for reading or changing, whether it lies in pages or in the row of its parent.

pub(crate) mod table_reader;
pub(crate) mod table_writer;
