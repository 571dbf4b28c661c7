//! Pages that a transaction changes at their final place, in the memory map of the file
//! (docs/performance/lazy-commits.md).

use std::fmt;

/// Memory of a file for changing pages in place. A storage has at most one of these at a time, and one transaction owns
/// it.
///
/// Changed bytes may reach the medium at any time, in any part and in any order, before a sync. Therefore only pages
/// that belong to no state that may ever be read again are changed here.
pub trait Places: Send + Sync + fmt::Debug {
    /// Whether `len` bytes from byte `at` on may be changed here, until the caller returns space of the file: such a
    /// change cannot fail, and is as fast as in other memory.
    fn may(&mut self, at: u64, len: usize) -> bool;

    /// Bytes for which `may` returned true.
    fn bytes(&self, at: u64, len: usize) -> &[u8];

    /// Mutable bytes for which `may` returned true.
    fn bytes_mut(&mut self, at: u64, len: usize) -> &mut [u8];
}
