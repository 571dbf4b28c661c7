//! Tables of sets: each key has a sorted set of values.

pub(crate) mod append;
pub(crate) mod append_cursor;
pub(crate) mod set_cursor;
pub(crate) mod set_table;
pub(crate) mod values;
