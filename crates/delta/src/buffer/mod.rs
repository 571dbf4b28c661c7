//! The write buffer, which holds the rows of an open transaction in memory, and the grouping of its rows by series.

pub(crate) mod copies;
pub(crate) mod fast_path;
pub(crate) mod group;
pub(crate) mod grouping;
pub(crate) mod lent;
pub(crate) mod log;
pub(crate) mod overlay;
pub(crate) mod round_robin;
pub(crate) mod round_state;
pub(crate) mod slot;
pub(crate) mod transposed;
pub(crate) mod write_buffer;

#[cfg(test)]
mod tests;
