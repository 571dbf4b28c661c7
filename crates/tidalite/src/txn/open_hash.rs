//! A hash table or a buffered table that a write transaction has open.

use tidalite_index::{BufferedWriter, HashWriter};

/// A table whose writes are collected by a writer of its own.
#[derive(Debug)]
pub(crate) struct OpenWriter<W> {
    /// Id of the table.
    pub(crate) table: u64,
    pub(crate) writer: W,
}

pub(crate) type OpenHash = OpenWriter<HashWriter>;
pub(crate) type OpenBuffered = OpenWriter<BufferedWriter>;
