//! Reads the headers of pages and blocks, and pointers to them, as section 2 of docs/format.md describes.

use crate::bytes::{Fields, checksum};
use crate::error::{Error, Result};

/// Length in bytes of the header in front of every page and block.
pub const HEADER_BYTES: usize = 32;

/// Numbers of the kinds of pages and blocks.
pub mod kind {
    /// The superblock, and the head of the second file.
    pub const SUPERBLOCK: u8 = 1;
    /// A meta record.
    pub const META: u8 = 2;
    /// A branch page of a table's B+tree.
    pub const BRANCH: u8 = 3;
    /// A leaf page of a table's B+tree.
    pub const LEAF: u8 = 4;
    /// A chunk of a value that is too large for a leaf.
    pub const LARGE: u8 = 5;
    /// The root page of the free space.
    pub const FREE_ROOT: u8 = 6;
    /// A directory page of the free space.
    pub const FREE_DIRECTORY: u8 = 7;
    /// A bitmap page of the free space.
    pub const FREE_BITMAP: u8 = 8;
    /// A list of pending ranges: pages that commits have freed and snapshots may still see.
    pub const DEAD_LIST: u8 = 9;
    /// The tail page of the delta, which holds the newest rows of series.
    pub const TAIL: u8 = 10;
    /// A block of a run, which holds rows of series that are in no leaf yet.
    pub const RUN_BLOCK: u8 = 11;
    /// A leaf of a series.
    pub const SERIES_LEAF: u8 = 12;
    /// A tree node of a series.
    pub const SERIES_NODE: u8 = 13;
    /// The statistics of a tree node of a series.
    pub const NODE_STATISTICS: u8 = 14;
    /// The record of the delta, which lists its tail page and runs.
    pub const DELTA_RECORD: u8 = 15;
    /// A directory of the lists of pending ranges.
    pub const DEAD_DIRECTORY: u8 = 16;
    /// The table of pins (named snapshots).
    pub const PINS: u8 = 17;
    /// The commit clock: transactions and the times of their commits.
    pub const CLOCK: u8 = 18;
    /// The root of the free space of the second file.
    pub const SECOND_FREE: u8 = 19;
    /// A leaf of a series in cold form, which is smaller but slower to decode.
    pub const COLD_LEAF: u8 = 20;
    /// A block of the redo log.
    pub const LOG: u8 = 21;
}

/// The header: the 32 bytes in front of every page and block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Checksum of all bytes of the page or block that follow this field.
    pub checksum: u64,
    /// Kind of the page or block, one of the numbers in [`kind`].
    pub kind: u8,
    /// Flags, whose meaning depends on the kind.
    pub flags: u8,
    /// Number of the table or series that owns the page, or another number that depends on the kind.
    pub owner: u64,
    /// The address of the page or block in the file.
    pub address: u64,
    /// The transaction that wrote the page or block.
    pub birth: u64,
}

impl Header {
    /// Reads the header of the block at `address` and compares its checksum.
    ///
    /// # Errors
    /// If the block is shorter than a header, or the checksum does not match its bytes.
    pub fn read(block: &[u8], address: u64) -> Result<Self> {
        let mut fields = Fields::new(block, address);
        let header = Self {
            checksum: fields.u64()?,
            kind: fields.u8()?,
            flags: fields.u8()?,
            owner: fields.u48()?,
            address: fields.u64()?,
            birth: fields.u64()?,
        };
        fields.require(header.checksum == checksum(&block[8..]), "checksum")?;
        Ok(header)
    }

    /// Reads the header of a block to which no pointer leads: the block's kind and address are known from its place.
    ///
    /// # Errors
    /// If the checksum, the kind or the address differs.
    pub fn read_at(block: &[u8], address: u64, kind: u8) -> Result<Self> {
        let header = Self::read(block, address)?;
        if header.kind != kind || header.address != address {
            return Err(Error::damaged(address, "a block of another kind or place"));
        }
        Ok(header)
    }
}

/// A pointer: address, length, kind, checksum and birth of a page or block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pointer {
    /// Address in the file in bytes; 0 for the null pointer.
    pub address: u64,
    /// Length of the page or block in bytes.
    pub length: usize,
    /// Kind of the page or block, one of the numbers in [`kind`].
    pub kind: u8,
    /// The checksum that the header of the page or block must have.
    pub checksum: u64,
    /// The birth (writing transaction) that the header of the page or block must have.
    pub birth: u64,
}

impl Pointer {
    /// Reads a pointer of 32 bytes; `None` for the null pointer.
    ///
    /// # Errors
    /// If the null pointer has bytes that are not zero, or reserved bytes are not zero.
    pub fn read(fields: &mut Fields<'_>) -> Result<Option<Self>> {
        let pointer = Self {
            address: fields.u64()?,
            length: fields.u32()?,
            kind: fields.u8()?,
            checksum: {
                let reserved = fields.take(3)?;
                fields.require(reserved == [0; 3], "reserved bytes of a pointer")?;
                fields.u64()?
            },
            birth: fields.u64()?,
        };
        if pointer.address != 0 {
            return Ok(Some(pointer));
        }
        fields.require(pointer == Self::default(), "a null pointer with contents")?;
        Ok(None)
    }
}

/// A page or block whose header was compared with the pointer to it.
#[derive(Clone, Debug)]
pub struct Block {
    /// All bytes of the page or block, header included.
    pub bytes: Vec<u8>,
    /// The decoded header.
    pub header: Header,
}

impl Block {
    /// Compares bytes with the pointer that led to them, and returns them as a block.
    ///
    /// # Errors
    /// If the bytes are not the block that the pointer describes.
    pub fn check(bytes: Vec<u8>, pointer: &Pointer) -> Result<Self> {
        let header = Header::read(&bytes, pointer.address)?;
        let same = header.kind == pointer.kind
            && header.address == pointer.address
            && header.birth == pointer.birth
            && header.checksum == pointer.checksum;
        if !same {
            return Err(Error::damaged(
                pointer.address,
                "another block than the pointer describes",
            ));
        }
        Ok(Self { bytes, header })
    }

    /// A reader of the fields after the header.
    ///
    /// # Errors
    /// Never fails, because every block has a header.
    pub fn fields(&self) -> Result<Fields<'_>> {
        Fields::from(&self.bytes, HEADER_BYTES, self.header.address)
    }

    /// Creates the error for a rule of the format that this block breaks.
    #[must_use]
    pub fn damaged(&self, reason: &'static str) -> Error {
        Error::damaged(self.header.address, reason)
    }
}
