//! Pages that a transaction changes at their final place, in the memory map of the file
//! (docs/performance/lazy-commits.md).

use std::fmt;

/// Memory of a file in which pages are changed in place. At most one value of this trait exists per storage at a
/// time, and one transaction owns it.
///
/// Before a sync, any part of the changed bytes may reach the medium at any time and in any order. Therefore only
/// pages that belong to no commit that may ever be read again may be changed in place.
pub trait Places: Send + Sync + fmt::Debug {
    /// Whether the `len` bytes from byte offset `at` on may be changed in place. If so, a change cannot fail and is
    /// as fast as in other memory, until the caller returns space of the file to the file system.
    fn may(&mut self, at: u64, len: usize) -> bool;

    /// Returns the bytes of a range for which `may` returned true.
    fn bytes(&self, at: u64, len: usize) -> &[u8];

    /// Returns the mutable bytes of a range for which `may` returned true.
    fn bytes_mut(&mut self, at: u64, len: usize) -> &mut [u8];
}
