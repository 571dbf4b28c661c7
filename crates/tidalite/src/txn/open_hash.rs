//! A hash table that a write transaction has open.

use tidalite_index::HashWriter;

/// A hash table of a write transaction.
#[derive(Debug)]
pub(crate) struct OpenHash {
    /// Id of its table.
    pub(crate) table: u64,
    pub(crate) writer: HashWriter,
}
