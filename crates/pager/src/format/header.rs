//! The 32-byte header of every page and of every block inside an extent.
//!
//! ```text
//! 0          8      9       10        16        24        32
//! | checksum | kind | flags | owner   | address | birth   |
//! |   u64    |  u8  |  u8   | 48 bits |   u64   | txn u64 |
//! ```
//!
//! `checksum` is XXH3-64 of everything after it, to the end of the page or block; the pointer to the page or block
//! holds the same value. With the other fields `salvage` identifies pages whose parent is lost: their kind, owner,
//! address and the transaction that wrote them.

use super::kind::Kind;
use super::ptr::Ptr;
use crate::error::Result;
use tidalite_base::{Corrupt, TxnId, checksum, get_u64, put_u64};

/// Length of the header in bytes.
pub const HEADER_BYTES: usize = 32;

const CHECKSUM_AT: usize = 0;
const CHECKSUM_BYTES: usize = 8;
const KIND_AT: usize = CHECKSUM_AT + CHECKSUM_BYTES;
const ADDRESS_AT: usize = KIND_AT + 8;
const BIRTH_AT: usize = ADDRESS_AT + 8;
const _: () = assert!(BIRTH_AT + 8 == HEADER_BYTES);
const _: () = assert!(CHECKSUM_AT == 0, "the checksum covers everything after it");

/// Decoded header of a page or block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Kind of the page or block.
    pub kind: Kind,
    /// Flags, whose meaning depends on the kind of the page or block.
    pub flags: u8,
    /// Id of the table or series to which the page or block belongs, 48 bits.
    pub owner: u64,
    /// Byte offset of the page or block in the file.
    pub address: u64,
    /// Transaction that wrote the page or block.
    pub birth: TxnId,
}

impl Header {
    /// Writes the header, except for its checksum, to the beginning of `bytes`.
    ///
    /// # Panics
    /// If `bytes` is shorter than a header.
    pub fn encode(&self, bytes: &mut [u8]) {
        assert!(self.owner < 1 << 48, "owner ids have 48 bits");
        let word = u64::from(self.kind as u8) | u64::from(self.flags) << 8 | self.owner << 16;
        put_u64(bytes, KIND_AT, word);
        put_u64(bytes, ADDRESS_AT, self.address);
        put_u64(bytes, BIRTH_AT, self.birth.0);
    }

    /// Reads a header without verifying its checksum.
    ///
    /// # Panics
    /// If `bytes` is shorter than a header.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Self {
        let word = get_u64(bytes, KIND_AT);
        Self {
            kind: Kind::from_u8((word & 0xff) as u8),
            flags: (word >> 8 & 0xff) as u8,
            owner: word >> 16,
            address: get_u64(bytes, ADDRESS_AT),
            birth: TxnId(get_u64(bytes, BIRTH_AT)),
        }
    }
}

/// Seals a page or block: writes the header and the checksum into it, and returns the pointer to it.
///
/// # Panics
/// If `bytes` is shorter than a header or longer than the length field of a pointer allows.
#[must_use]
pub fn seal_block(bytes: &mut [u8], header: &Header) -> Ptr {
    assert!(bytes.len() >= HEADER_BYTES, "a block has a header");
    assert!(header.kind != Kind::None, "a block has a kind");
    header.encode(bytes);
    let sum = checksum(&bytes[CHECKSUM_BYTES..]);
    put_u64(bytes, CHECKSUM_AT, sum);
    let len = u32::try_from(bytes.len()).unwrap_or_else(|_| unreachable!("blocks are small"));
    Ptr {
        addr: header.address,
        len,
        kind: header.kind,
        checksum: sum,
        birth: header.birth,
    }
}

/// Verifies `bytes` against `ptr`: checksum (in pointer and header alike), kind, address and birth.
///
/// # Errors
/// `Error::Corrupt` with the first difference.
pub fn verify_block(bytes: &[u8], ptr: &Ptr) -> Result<()> {
    let damaged = |found: String, expected: String| {
        Corrupt::new(format!("{:?}", ptr.kind), ptr.addr, found, expected)
    };
    if bytes.len() != ptr.len as usize || bytes.len() < HEADER_BYTES {
        return Err(damaged(
            format!("{} bytes", bytes.len()),
            format!("{} bytes", ptr.len),
        )
        .into());
    }
    let sum = checksum(&bytes[CHECKSUM_BYTES..]);
    if sum != ptr.checksum {
        return Err(damaged(
            format!("checksum {sum:016x}"),
            format!("checksum {:016x}", ptr.checksum),
        )
        .into());
    }
    let own = get_u64(bytes, CHECKSUM_AT);
    if own != sum {
        return Err(damaged(
            format!("own checksum {own:016x}"),
            format!("own checksum {sum:016x}"),
        )
        .into());
    }
    let header = Header::decode(bytes);
    if header.kind != ptr.kind || header.address != ptr.addr || header.birth != ptr.birth {
        return Err(damaged(
            format!(
                "{:?} of byte {}, {}",
                header.kind, header.address, header.birth
            ),
            format!("{:?} of byte {}, {}", ptr.kind, ptr.addr, ptr.birth),
        )
        .into());
    }
    Ok(())
}
