//! Cursors over the rows of a table, and their read-ahead.

pub(crate) mod forward;
pub(crate) mod frame;
pub(crate) mod prefetcher;
pub(crate) mod row_key;
pub(crate) mod select;
pub(crate) mod sequential_range;
pub(crate) mod steps;
pub(crate) mod tree_cursor;
