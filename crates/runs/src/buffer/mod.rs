//! The write buffer: rows of an open transaction, in memory.

pub(crate) mod away;
pub(crate) mod copies;
pub(crate) mod group;
pub(crate) mod grouping;
pub(crate) mod log;
pub(crate) mod overlay;
pub(crate) mod round_robin;
pub(crate) mod rounds;
pub(crate) mod slot;
pub(crate) mod staging;
pub(crate) mod transposed;

#[cfg(test)]
mod tests;
