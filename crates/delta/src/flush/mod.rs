//! Flush: moves rows from the write buffer to leaves, to the tail page and to runs.

pub(crate) mod appender;
pub(crate) mod blocks;
pub(crate) mod driver;
pub(crate) mod helpers;
pub(crate) mod linker;
pub(crate) mod threads;
