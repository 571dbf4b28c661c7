//! The common interface of databases with a set of values under each key.

use super::{Digest, Result};

/// A key or a value of eight bytes.
pub(crate) type Word = [u8; 8];

/// An iterator over pairs of a key and a value.
pub(crate) type Pairs<'p> = &'p mut dyn Iterator<Item = (Word, Word)>;

/// Function that is called inside a read transaction.
pub(crate) type ReadingSets<'w> = &'w mut dyn FnMut(&mut dyn ReadSets) -> Result<()>;

/// An open database of an engine; dropping it closes the database. Commits are durable.
pub(crate) trait Sets {
    /// Stores ascending pairs, above all existing pairs, in one transaction, by the engine's fastest method.
    fn load(&self, pairs: Pairs<'_>) -> Result<()>;
    /// Stores pairs in one transaction.
    fn put(&self, pairs: Pairs<'_>) -> Result<()>;
    /// Runs a read transaction.
    fn read(&self, work: ReadingSets<'_>) -> Result<()>;
    /// Number of waits for the disk in each commit that are not calls of `fsync` or similar functions.
    fn silent_syncs(&self) -> u64 {
        0
    }
}

/// A snapshot of an engine's database.
pub(crate) trait ReadSets {
    /// Visits all pairs, and returns a digest of them.
    fn scan(&mut self) -> Result<Digest>;
    /// Visits the values of a key, and returns a digest of them.
    fn values(&mut self, key: &Word) -> Result<Digest>;
}
