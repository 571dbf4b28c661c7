//! A nested table, or a set of values, stored in the row of its parent.

pub(crate) mod fixed_width;
pub(crate) mod inline_table;
pub(crate) mod packed_set;
