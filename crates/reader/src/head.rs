//! Reads the head of a file (section 3 of docs/format.md): the superblock and the meta records.

use crate::block::{HEADER_BYTES, Header, Pointer, kind};
use crate::bytes::{Fields, checksum};
use crate::error::{Error, Result};

/// Length in bytes of each block in the head of a file.
pub const HEAD_BLOCK_BYTES: usize = 4096;

/// Distance in bytes from a block of the head to its second copy.
const COPY_BYTES: usize = 3 * HEAD_BLOCK_BYTES;

const MAGIC: [u8; 16] = *b"Tidalite\r\n\x1a\n\0tdl";
const VERSION: usize = 22;
const CHECKSUM_KIND: usize = 1;
const APP_BYTES_MAX: usize = 1536;
const USER_BYTES_MAX: usize = 128;

/// Byte offsets in a meta record of fields that are set to 0 in a copy of the record in the redo log.
const ADDRESS_AT: usize = 16;
const SEQUENCE_AT: usize = 48;
const CONFIRMATIONS_AT: usize = 110;
const BASE_AT: usize = 216;
const BASE_END: usize = 256;

/// The facts of a file that never change, from its superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// Size of a page in bytes.
    pub page_bytes: usize,
    /// Identity of the file.
    pub uuid: [u8; 16],
}

/// Returns the block of the head that begins at offset `at`.
fn head_block(file: &[u8], at: usize) -> Result<&[u8]> {
    let end = at + HEAD_BLOCK_BYTES;
    file.get(at..end)
        .ok_or_else(|| Error::damaged(at as u64, "the file ends within its head"))
}

impl Superblock {
    /// Reads the superblock from either of its two copies.
    ///
    /// # Errors
    /// If both copies are damaged, or a copy names a version or a feature that this reader does not know.
    pub fn read(file: &[u8]) -> Result<Self> {
        let mut found = None;
        for at in [0, COPY_BYTES] {
            let block = head_block(file, at)?;
            if Header::read_at(block, at as u64, kind::SUPERBLOCK).is_ok()
                && block[HEADER_BYTES..][..16] == MAGIC
            {
                found = found.or(Some(Self::read_copy(block, at as u64)?));
            }
        }
        found.ok_or(Error::damaged(0, "no copy of the superblock is whole"))
    }

    fn read_copy(block: &[u8], address: u64) -> Result<Self> {
        let mut fields = Fields::from(block, HEADER_BYTES + 16, address)?;
        let known = |field, value: usize, known: usize| {
            if value == known {
                return Ok(());
            }
            let value = value as u64;
            Err(Error::Unknown { field, value })
        };
        known("format version", fields.u32()?, VERSION)?;
        let page_bytes = fields.u32()?;
        known("kind of checksum", fields.u32()?, CHECKSUM_KIND)?;
        known("reserved bytes of pages", fields.u32()?, 0)?;
        let uuid = fields.id()?;
        fields.skip(16)?;
        let value = fields.u64()?;
        if value != 0 {
            let field = "feature that must be known to read";
            return Err(Error::Unknown { field, value });
        }
        fields.require(
            page_bytes.is_power_of_two() && (512..=262_144).contains(&page_bytes),
            "page size",
        )?;
        Ok(Self { page_bytes, uuid })
    }
}

/// The pages that belong to a redo log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPages {
    /// Number of the first page.
    pub page: u64,
    /// Number of pages.
    pub pages: u64,
}

/// A meta record: the description of one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// The bytes of the block that holds the record.
    pub block: Vec<u8>,
    /// Number of the transaction.
    pub transaction: u64,
    /// Number of this commit in the sequence of durable commits.
    pub sequence: u64,
    /// Wall-clock time of the commit, in nanoseconds since 1970.
    pub time: i64,
    /// Length of the first file in pages.
    pub pages: u64,
    /// The bytes of user data that the commit carries.
    pub user_data: Vec<u8>,
    /// The app area with the roots of the catalog, described in section 9 of docs/format.md.
    pub app: Vec<u8>,
    /// Pointer to the root of the free space of the first file.
    pub free: Option<Pointer>,
    /// Pointer to the table of pins (named snapshots).
    pub pins: Option<Pointer>,
    /// Pointer to the commit clock: transactions and the times of their commits.
    pub clock: Option<Pointer>,
    /// Pointer to the root of the free space of the second file.
    pub large: Option<Pointer>,
    /// The redo log, which holds commits newer than this one.
    pub log: Option<LogPages>,
    /// Changes of the free space since its pages were written: first page, and number of pages times 2, plus 1 if the
    /// pages are used.
    pub changes: Vec<(u64, u64)>,
}

impl Meta {
    /// Reads a meta record that must have `address` in its header.
    ///
    /// # Errors
    /// If the block is no undamaged meta record of the file with this `uuid`.
    pub fn read(block: &[u8], address: u64, uuid: &[u8; 16]) -> Result<Self> {
        let header = Header::read_at(block, address, kind::META)?;
        let mut fields = Fields::from(block, HEADER_BYTES, address)?;
        fields.require(fields.clone().id()? == *uuid, "a record of another file")?;
        fields.skip(16)?;
        let sequence = fields.u64()?;
        let time = fields.i64()?;
        let pages = fields.u64()?;
        let free = Pointer::read(&mut fields)?;
        let app_bytes = fields.u16()?;
        let changes = fields.u16()?;
        let pending = fields.u16()?;
        fields.skip(2 + 4)?;
        let user_bytes = fields.u16()?;
        fields.skip(2)?;
        let _dead = Pointer::read(&mut fields)?;
        let pins = Pointer::read(&mut fields)?;
        let clock = Pointer::read(&mut fields)?;
        fields.skip(BASE_END - BASE_AT)?;
        fields.require(user_bytes <= USER_BYTES_MAX, "bytes of user data")?;
        fields.require(app_bytes <= APP_BYTES_MAX, "bytes of the app area")?;
        let user_data = fields.take(USER_BYTES_MAX)?[..user_bytes].to_vec();
        let app = fields.take(APP_BYTES_MAX)?[..app_bytes].to_vec();
        let large = Pointer::read(&mut fields)?;
        let log = LogPages {
            page: fields.u64()?,
            pages: fields.u64()?,
        };
        fields.skip(8 + 72)?;
        fields.require(
            changes * 16 + pending * 32 <= fields.left(),
            "changes and pending ranges",
        )?;
        let changes = (0..changes)
            .map(|_| Ok((fields.u64()?, fields.u64()?)))
            .collect::<Result<_>>()?;
        Ok(Self {
            block: block.to_vec(),
            transaction: header.birth,
            sequence,
            time,
            pages,
            user_data,
            app,
            free,
            pins,
            clock,
            large,
            log: (log.page != 0).then_some(log),
            changes,
        })
    }

    /// Finds the newest meta record in the head of a file.
    ///
    /// # Errors
    /// If all meta records are damaged, or the file is shorter than the record says.
    pub fn newest(file: &[u8], superblock: &Superblock) -> Result<Self> {
        let mut newest: Option<Self> = None;
        for pair in 0..2 {
            for copy in 0..2 {
                let at = (1 + pair) * HEAD_BLOCK_BYTES + copy * COPY_BYTES;
                let block = head_block(file, at)?;
                let Ok(meta) = Self::read(block, at as u64, &superblock.uuid) else {
                    continue;
                };
                // In a new file the records of both pairs have number 0.
                if meta.sequence > 0 && meta.sequence % 2 != pair as u64 {
                    return Err(Error::damaged(at as u64, "a record in the other pair"));
                }
                if newest
                    .as_ref()
                    .is_none_or(|newest| newest.transaction < meta.transaction)
                {
                    newest = Some(meta);
                }
            }
        }
        let newest = newest.ok_or(Error::damaged(0, "no meta record is whole"))?;
        let bytes = newest.pages.checked_mul(superblock.page_bytes as u64);
        if bytes.is_none_or(|bytes| bytes > file.len() as u64) {
            return Err(Error::damaged(0, "the file was truncated"));
        }
        Ok(newest)
    }

    /// The checksum that the first copy of this record had when it was committed, before confirmations were added to
    /// it.
    #[must_use]
    pub fn committed_checksum(&self) -> u64 {
        let mut block = self.block.clone();
        let copy_a = HEAD_BLOCK_BYTES as u64 * (1 + self.sequence % 2);
        block[ADDRESS_AT..][..8].copy_from_slice(&copy_a.to_le_bytes());
        block[CONFIRMATIONS_AT..][..2].fill(0);
        checksum(&block[8..])
    }

    /// The bytes of the record in the form in which the redo log contains it.
    #[must_use]
    pub fn as_in_log(&self) -> Vec<u8> {
        let mut block = self.block.clone();
        block[ADDRESS_AT..][..8].fill(0);
        block[SEQUENCE_AT..][..8].fill(0);
        block[CONFIRMATIONS_AT..][..2].fill(0);
        block[BASE_AT..BASE_END].fill(0);
        let sum = checksum(&block[8..]);
        block[..8].copy_from_slice(&sum.to_le_bytes());
        block
    }
}
