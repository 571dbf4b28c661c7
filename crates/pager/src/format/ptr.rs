//! Pointers to pages and blocks. A pointer contains the checksum of its target, as in a Merkle tree.
//!
//! ```text
//! 0        8      12   13    16         24         32
//! | address | len  |kind| 0   | checksum | birth    |
//! |   u64   | u32  | u8 | 3 B |   u64    | txn u64  |
//! ```
//!
//! `address` is a byte offset in the file. `checksum` covers the bytes of the target except the first eight (which hold
//! the same checksum, see `header`). `birth` is the transaction that wrote the target; reclaim, backup and checks use
//! it without reading the target. A null pointer is all zero.

use super::kind::Kind;
use tidalite_base::{TxnId, get_u32, get_u64, put_u32, put_u64};

/// Length in bytes of an encoded pointer.
pub const PTR_BYTES: usize = 32;

/// Pointer to a page or block: its address, length, kind, checksum and birth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ptr {
    /// Byte offset of the target in the file; 0 for the null pointer.
    pub addr: u64,
    /// Length of the target in bytes (a whole page, or a block inside an extent).
    pub len: u32,
    /// Kind of the page or block.
    pub kind: Kind,
    /// XXH3-64 checksum of the target without its first eight bytes; 0 while the page is still being changed.
    pub checksum: u64,
    /// Transaction that wrote the target.
    pub birth: TxnId,
}

impl Ptr {
    /// The null pointer, which has no target.
    pub const NULL: Self = Self {
        addr: 0,
        len: 0,
        kind: Kind::None,
        checksum: 0,
        birth: TxnId(0),
    };

    /// Whether this is the null pointer.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.addr == 0
    }

    /// Writes the pointer as 32 bytes at offset `at` of `bytes`.
    ///
    /// # Panics
    /// If `bytes` is too short.
    pub fn encode(&self, bytes: &mut [u8], at: usize) {
        put_u64(bytes, at, self.addr);
        put_u32(bytes, at + 8, self.len);
        put_u32(bytes, at + 12, u32::from(self.kind as u8));
        put_u64(bytes, at + 16, self.checksum);
        put_u64(bytes, at + 24, self.birth.0);
    }

    /// Reads a pointer from the 32 bytes at offset `at`. An unknown kind reads as `Kind::None`; verification of the
    /// target then fails with a typed error.
    ///
    /// # Panics
    /// If `bytes` is too short.
    #[must_use]
    #[inline]
    pub fn decode(bytes: &[u8], at: usize) -> Self {
        Self {
            addr: get_u64(bytes, at),
            len: get_u32(bytes, at + 8),
            kind: Kind::from_u8(bytes[at + 12]),
            checksum: get_u64(bytes, at + 16),
            birth: TxnId(get_u64(bytes, at + 24)),
        }
    }
}
