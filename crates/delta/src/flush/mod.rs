//! Flush: from the write buffer to leaves, tail page and runs.

pub(crate) mod appender;
pub(crate) mod blocks;
pub(crate) mod driver;
pub(crate) mod helpers;
pub(crate) mod linker;
pub(crate) mod threads;
