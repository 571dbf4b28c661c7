//! Rows in ascending order: leaves laid out one after the other, and the append position after the last row.

pub(crate) mod append;
pub(crate) mod append_cursor;
pub(crate) mod leaf_builder;
