//! Nested tables for reading or changing, stored in pages of their own or in the row of their parent table.

pub(crate) mod conversion;
pub(crate) mod parts;
pub(crate) mod table_reader;
pub(crate) mod table_repr;
pub(crate) mod table_writer;
