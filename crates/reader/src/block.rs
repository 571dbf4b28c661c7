//! Headers and pointers: section 2.

use crate::bytes::{Fields, checksum};
use crate::error::{Error, Result};

/// Bytes of a header.
pub const HEADER_BYTES: usize = 32;

/// Kinds of pages and blocks.
pub mod kind {
    /// The superblock, and the head of the second file.
    pub const SUPERBLOCK: u8 = 1;
    /// A meta record.
    pub const META: u8 = 2;
    /// A branch of a table.
    pub const BRANCH: u8 = 3;
    /// A leaf of a table.
    pub const LEAF: u8 = 4;
    /// A chunk of a large value.
    pub const LARGE: u8 = 5;
    /// A root of the free space.
    pub const FREE_ROOT: u8 = 6;
    /// A directory of the free space.
    pub const FREE_DIRECTORY: u8 = 7;
    /// A bitmap of the free space.
    pub const FREE_BITMAP: u8 = 8;
    /// A list of dead ranges.
    pub const DEAD_LIST: u8 = 9;
    /// The tail page of the delta.
    pub const TAIL: u8 = 10;
    /// A block of a run.
    pub const RUN_BLOCK: u8 = 11;
    /// A leaf of a series.
    pub const SERIES_LEAF: u8 = 12;
    /// A node of a series.
    pub const SERIES_NODE: u8 = 13;
    /// Statistics of a node.
    pub const NODE_STATISTICS: u8 = 14;
    /// The record of the delta.
    pub const DELTA_RECORD: u8 = 15;
    /// A directory of dead ranges.
    pub const DEAD_DIRECTORY: u8 = 16;
    /// The table of pins.
    pub const PINS: u8 = 17;
    /// The clock.
    pub const CLOCK: u8 = 18;
    /// Free space of the second file.
    pub const SECOND_FREE: u8 = 19;
    /// A leaf in cold form.
    pub const COLD_LEAF: u8 = 20;
    /// A block of the log.
    pub const LOG: u8 = 21;
}

/// The 32 bytes in front of every page and block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Checksum of the bytes that follow it.
    pub checksum: u64,
    /// One of [`kind`].
    pub kind: u8,
    /// For the kind's own use.
    pub flags: u8,
    /// Table or series, or the kind's own use.
    pub owner: u64,
    /// The place of the block.
    pub address: u64,
    /// Transaction that wrote it.
    pub birth: u64,
}

impl Header {
    /// Reads the header of a block and compares its checksum.
    ///
    /// # Errors
    /// If the block is shorter than a header, or other bytes than were written.
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

    /// Reads the header of a block that no pointer leads to: kind and address are known from its place.
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

/// Place and contents of a page or block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pointer {
    /// Byte offset; 0 for the null pointer.
    pub address: u64,
    /// Bytes.
    pub length: usize,
    /// One of [`kind`].
    pub kind: u8,
    /// The checksum in the header.
    pub checksum: u64,
    /// The birth in the header.
    pub birth: u64,
}

impl Pointer {
    /// Reads 32 bytes; `None` for the null pointer.
    ///
    /// # Errors
    /// If a null pointer has other bytes than zeros, or reserved bytes are not zero.
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

/// A page or block whose header was compared with its pointer.
#[derive(Clone, Debug)]
pub struct Block {
    /// All bytes, header included.
    pub bytes: Vec<u8>,
    /// The header.
    pub header: Header,
}

impl Block {
    /// Compares bytes with the pointer that led to them.
    ///
    /// # Errors
    /// If they are not the block that the pointer describes.
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

    /// The fields behind the header.
    ///
    /// # Errors
    /// Never: a block has a header.
    pub fn fields(&self) -> Result<Fields<'_>> {
        Fields::from(&self.bytes, HEADER_BYTES, self.header.address)
    }

    /// The error of a rule broken in this block.
    #[must_use]
    pub fn damaged(&self, reason: &'static str) -> Error {
        Error::damaged(self.header.address, reason)
    }
}
