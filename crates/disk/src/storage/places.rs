//! Pages that a transaction changes at their final place, in the memory map of the file
//! (docs/performance/lazy-commits.md).

use std::fmt;

/// Memory of a file in which pages are changed in place. A storage has at most one such value at a time, and one
/// transaction owns it.
///
/// Changed bytes may reach the medium at any time, in any part and in any order, before a sync. Therefore only pages
/// that belong to no state that may ever be read again are changed here.
pub trait Places: Send + Sync + fmt::Debug {
    /// Whether `len` bytes from byte `at` on may be changed here. If so, a change cannot fail and is as fast as in
    /// other memory, until the caller returns space of the file.
    fn may(&mut self, at: u64, len: usize) -> bool;

    /// The bytes of a range for which `may` returned true.
    fn bytes(&self, at: u64, len: usize) -> &[u8];

    /// The mutable bytes of a range for which `may` returned true.
    fn bytes_mut(&mut self, at: u64, len: usize) -> &mut [u8];
}
