//! The interface of databases with multi-values.

use super::{Digest, Result};

/// A key or a value.
pub(crate) type Word = [u8; 8];

/// A sequence of pairs.
pub(crate) type Pairs<'p> = &'p mut dyn Iterator<Item = (Word, Word)>;

/// Work inside a read transaction.
pub(crate) type ReadingSets<'w> = &'w mut dyn FnMut(&mut dyn ReadSets) -> Result<()>;

/// An open database; dropping it closes it. Commits are durable.
pub(crate) trait Sets {
    /// Stores ascending pairs above all others in one transaction, by the engine's fastest method.
    fn load(&self, pairs: Pairs<'_>) -> Result<()>;
    /// Stores pairs in one transaction.
    fn put(&self, pairs: Pairs<'_>) -> Result<()>;
    /// Runs a read transaction.
    fn read(&self, work: ReadingSets<'_>) -> Result<()>;
    /// Number of waits on the disk in each commit that are not calls of `fsync` or similar functions.
    fn silent_syncs(&self) -> u64 {
        0
    }
}

/// A snapshot.
pub(crate) trait ReadSets {
    /// Visits all pairs.
    fn scan(&mut self) -> Result<Digest>;
    /// Visits the values of a key.
    fn values(&mut self, key: &Word) -> Result<Digest>;
}
