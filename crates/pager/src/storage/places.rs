//! Pages that a transaction changes where they will lie, in memory of the file itself (decision 0024).

use std::fmt;

/// Memory of a file, for who changes pages there: there is one of these at a time for a storage, and one transaction has it.
///
/// What is changed may reach the medium at any time, in any part and in any order, before anybody says so: only pages that no state
/// shows which may ever be read again are changed here.
pub trait Places: Send + Sync + fmt::Debug {
    /// Whether so many bytes from byte `at` on may be changed here, from now on until whoever asks gives space of the file back:
    /// that can neither fail nor take longer than in other memory.
    fn may(&mut self, at: u64, len: usize) -> bool;

    /// Bytes of which `may` said yes.
    fn bytes(&self, at: u64, len: usize) -> &[u8];

    /// The same, to be changed.
    fn bytes_mut(&mut self, at: u64, len: usize) -> &mut [u8];
}
