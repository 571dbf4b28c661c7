//! The format of a backup, and the head of a restored file.
//!
//! ```text
//! head   0         16        20          24     40    48         56      64             72            4168
//!        | magic   | version | page size | uuid | txn | base txn | pages | second pages | meta record | checksum |
//!        | 16 B    | u32     | u32       | 16 B | u64 | u64      | u64   | u64          | 4096 B      | u64      |
//! part   | address u64 | bytes u64 | checksum u64 | bytes, at most 1 MiB                 |
//! end    | 0           | 0         | checksum u64: over the checksums of all parts, in order |
//! ```
//!
//! A backup has any number of parts, in ascending order of their addresses. Addresses in the second file begin at 2^62,
//! so its parts come last.

use crate::error::Result;
use crate::format::layout::{BLOCK_BYTES, HEAD_BYTES, meta_at, superblock_at};
use crate::format::meta::Meta;
use crate::format::superblock::Superblock;
use tidalite_base::{TxnId, checksum, put_u32, put_u64};

pub(super) const MAGIC: [u8; 16] = *b"Tidalite backup\n";
pub(super) const VERSION: u32 = 2;
pub(super) const LARGE_PAGES_AT: usize = 64;
pub(super) const RECORD_AT: usize = 72;
pub(super) const SUM_AT: usize = RECORD_AT + BLOCK_BYTES;
pub(super) const HEAD_LEN: usize = SUM_AT + 8;
const _: () = assert!(LARGE_PAGES_AT + 8 == RECORD_AT && HEAD_LEN == 4176);
/// Maximum number of bytes of pages in one part of a backup.
pub(super) const PART_BYTES: u64 = 1 << 20;

/// Description of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupInfo {
    /// Transaction of the version that the backup restores.
    pub txn: TxnId,
    /// Transaction of the version on which the backup builds; `None` for a full backup.
    pub base: Option<TxnId>,
    /// Number of bytes of pages in the backup.
    pub bytes: u64,
}

/// Progress callback. Its arguments are the number of bytes of the last step, the number of bytes so far, and the
/// expected total. If the callback returns an error, the operation ends.
pub type OnMoved<'f> = dyn FnMut(u64, u64, u64) -> Result<()> + 'f;

pub(super) fn head(meta: &Meta, base_txn: u64, page_size: u32, second_pages: u64) -> Vec<u8> {
    assert!(base_txn <= meta.txn, "a backup builds on an older version");
    let mut head = vec![0u8; HEAD_LEN];
    head[..16].copy_from_slice(&MAGIC);
    put_u32(&mut head, 16, VERSION);
    put_u32(&mut head, 20, page_size);
    head[24..40].copy_from_slice(&meta.uuid);
    put_u64(&mut head, 40, meta.txn);
    put_u64(&mut head, 48, base_txn);
    put_u64(&mut head, 56, meta.pages);
    put_u64(&mut head, LARGE_PAGES_AT, second_pages);
    head[RECORD_AT..SUM_AT].copy_from_slice(&meta.encode(meta_at(0, 0)));
    let sum = checksum(&head[..SUM_AT]);
    put_u64(&mut head, SUM_AT, sum);
    head
}

/// Encodes the head of a database file whose newest meta record is `meta`.
pub(super) fn file_head(meta: &Meta, uuid: [u8; 16], page_size: usize) -> Vec<u8> {
    let superblock = Superblock::new(page_size, uuid);
    let meta = Meta {
        uuid,
        confirmations: 0,
        ..meta.clone()
    };
    let mut bytes = vec![0u8; HEAD_BYTES as usize];
    for copy in [0, 1] {
        let at = superblock_at(copy) as usize;
        bytes[at..at + BLOCK_BYTES].copy_from_slice(&superblock.encode(copy));
        for pair in [0, 1] {
            let at = meta_at(pair, copy);
            bytes[at as usize..at as usize + BLOCK_BYTES].copy_from_slice(&meta.encode(at));
        }
    }
    bytes
}
