//! Nested tables for reading or changing, in pages or in the row of their parent.

pub(crate) mod conversion;
pub(crate) mod table_reader;
pub(crate) mod table_repr;
pub(crate) mod table_writer;
