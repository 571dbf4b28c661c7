//! The B+tree of one table: search, insert and remove.

pub(crate) mod cached_get;
pub(crate) mod free;
pub(crate) mod get;
pub(crate) mod get_many;
pub(crate) mod insert;
pub(crate) mod path;
pub(crate) mod range_delete;
pub(crate) mod redistribute;
pub(crate) mod remove;
pub(crate) mod sequential;
pub(crate) mod split;
pub(crate) mod tree;
