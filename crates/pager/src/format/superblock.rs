//! The superblock: the constants of a file, stored in two copies of 4 KiB each.
//!
//! ```text
//! 0        32      48        52          56         60         64     80           88          96            104  4096
//! | header | magic | version | page size | checksum | reserved | uuid | compatible | read-only | incompatible | 0.. |
//! | 32 B   | 16 B  | u32     | u32       | kind u32 | u32      | 16 B | features   | features  | features u64 |     |
//! ```
//!
//! The header is the common block header: kind 1, owner 0, the copy's own address, birth 1. `checksum kind` 1 is
//! XXH3-64. `reserved` is the number of bytes kept free at the end of each page (0 in this version). Features are bit
//! sets. A library may ignore unknown compatible features; it must know all read-only features to write the file, and
//! all incompatible features to read it.

use super::header::{HEADER_BYTES, Header, seal_block, verify_block};
use super::kind::Kind;
use super::layout::{BLOCK_BYTES, page_size_ok, superblock_at};
use super::ptr::Ptr;
use crate::error::{Error, Result};
use std::io;
use tidalite_base::{Corrupt, TxnId, checksum, get_u32, get_u64, put_u32, put_u64};
use tidalite_disk::storage::Storage;

/// Magic number after the header. A transfer of the file in text mode would change the line ends or the zero byte of
/// the magic number, so it is detected.
pub(crate) const MAGIC: [u8; 16] = *b"Tidalite\r\n\x1a\n\0tdl";
/// The format version that this library writes.
pub(crate) const FORMAT_VERSION: u32 = 22;
const CHECKSUM_XXH3: u32 = 1;

const MAGIC_AT: usize = HEADER_BYTES;
const VERSION_AT: usize = MAGIC_AT + MAGIC.len();
const PAGE_SIZE_AT: usize = VERSION_AT + 4;
const CHECKSUM_KIND_AT: usize = PAGE_SIZE_AT + 4;
const RESERVED_AT: usize = CHECKSUM_KIND_AT + 4;
const UUID_AT: usize = RESERVED_AT + 4;
const COMPATIBLE_AT: usize = UUID_AT + 16;
const READ_ONLY_AT: usize = COMPATIBLE_AT + 8;
const INCOMPATIBLE_AT: usize = READ_ONLY_AT + 8;
const END: usize = INCOMPATIBLE_AT + 8;
const _: () = assert!(END == 104);

/// Features that this library supports: none yet.
const READ_ONLY_KNOWN: u64 = 0;
const INCOMPATIBLE_KNOWN: u64 = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Superblock {
    pub(crate) page_size: usize,
    pub(crate) uuid: [u8; 16],
    pub(crate) compatible: u64,
    pub(crate) read_only: u64,
    pub(crate) incompatible: u64,
}

/// Writes the header and the checksum of the first (0) or second (1) copy of the superblock.
pub(crate) fn seal_copy(block: &mut [u8], copy: usize) {
    assert_eq!(block.len(), BLOCK_BYTES, "a superblock is one block");
    let header = Header {
        kind: Kind::Superblock,
        flags: 0,
        owner: 0,
        address: superblock_at(copy),
        birth: TxnId(1),
    };
    let _ = seal_block(block, &header);
}

impl Superblock {
    pub(crate) fn new(page_size: usize, uuid: [u8; 16]) -> Self {
        Self {
            page_size,
            uuid,
            compatible: 0,
            read_only: 0,
            incompatible: 0,
        }
    }

    pub(crate) fn encode(&self, copy: usize) -> Vec<u8> {
        assert!(page_size_ok(self.page_size), "a page size of the format");
        let mut block = vec![0u8; BLOCK_BYTES];
        block[MAGIC_AT..VERSION_AT].copy_from_slice(&MAGIC);
        put_u32(&mut block, VERSION_AT, FORMAT_VERSION);
        put_u32(&mut block, PAGE_SIZE_AT, self.page_size as u32);
        put_u32(&mut block, CHECKSUM_KIND_AT, CHECKSUM_XXH3);
        block[UUID_AT..COMPATIBLE_AT].copy_from_slice(&self.uuid);
        put_u64(&mut block, COMPATIBLE_AT, self.compatible);
        put_u64(&mut block, READ_ONLY_AT, self.read_only);
        put_u64(&mut block, INCOMPATIBLE_AT, self.incompatible);
        seal_copy(&mut block, copy);
        block
    }

    /// Decodes one copy of the superblock. After the error `Corrupt` the caller must try the other copy;
    /// `Unsupported` is final.
    fn decode(block: &[u8], copy: usize) -> Result<Self> {
        verify_own(block, Kind::Superblock, superblock_at(copy))?;
        let damaged = |what: &str, found: String, expected: &str| {
            Error::from(Corrupt::new(
                format!("superblock: {what}"),
                superblock_at(copy),
                found,
                expected,
            ))
        };
        if block[MAGIC_AT..VERSION_AT] != MAGIC {
            let found = format!("{:02x?}", &block[MAGIC_AT..VERSION_AT]);
            return Err(damaged("magic number", found, "Tidalite's"));
        }
        let version = get_u32(block, VERSION_AT);
        if version != FORMAT_VERSION {
            let next = if version < FORMAT_VERSION {
                "take the data out with the version of this library that wrote it"
            } else {
                "open it with a newer version of this library"
            };
            return Err(Error::Unsupported {
                found: format!("a file of format version {version}"),
                expected: format!("version {FORMAT_VERSION}: {next}"),
            });
        }
        let incompatible = get_u64(block, INCOMPATIBLE_AT);
        if incompatible & !INCOMPATIBLE_KNOWN != 0 {
            return Err(Error::Unsupported {
                found: format!("a file with the incompatible features {incompatible:#x}"),
                expected: format!(
                    "none but {INCOMPATIBLE_KNOWN:#x}: open it with a newer version of this library"
                ),
            });
        }
        let kind = get_u32(block, CHECKSUM_KIND_AT);
        if kind != CHECKSUM_XXH3 || get_u32(block, RESERVED_AT) != 0 {
            return Err(Error::Unsupported {
                found: format!(
                    "a file with checksum kind {kind} and {} bytes reserved a page",
                    get_u32(block, RESERVED_AT)
                ),
                expected: format!(
                    "checksum kind {CHECKSUM_XXH3} with 0 bytes reserved: open it with the version of this library that wrote it"
                ),
            });
        }
        let page_size = get_u32(block, PAGE_SIZE_AT) as usize;
        if !page_size_ok(page_size) {
            let expected = "a power of two from 512 to 262144";
            return Err(damaged("page size", page_size.to_string(), expected));
        }
        let mut uuid = [0u8; 16];
        uuid.copy_from_slice(&block[UUID_AT..COMPATIBLE_AT]);
        Ok(Self {
            page_size,
            uuid,
            compatible: get_u64(block, COMPATIBLE_AT),
            read_only: get_u64(block, READ_ONLY_AT),
            incompatible,
        })
    }

    /// Returns an error if this library may read but not write the file, because it does not know a feature of the
    /// file.
    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.read_only & !READ_ONLY_KNOWN == 0 {
            return Ok(());
        }
        Err(Error::Unsupported {
            found: format!("a file with the features {:#x} for writing", self.read_only),
            expected: format!("none but {READ_ONLY_KNOWN:#x}: open it read-only"),
        })
    }
}

/// Verifies a block of the head by its own header, since no pointer to the block exists.
pub(crate) fn verify_own(block: &[u8], kind: Kind, address: u64) -> Result<()> {
    let header = Header::decode(block);
    let ptr = Ptr {
        addr: address,
        len: block.len() as u32,
        kind,
        checksum: checksum(&block[8..]),
        birth: header.birth,
    };
    verify_block(block, &ptr)
}

/// Reads a block of the head of the file; bytes beyond the file's end read as zero.
pub(crate) fn read_block(storage: &dyn Storage, at: u64) -> Result<Vec<u8>> {
    let mut block = vec![0u8; BLOCK_BYTES];
    let len = storage.len().map_err(|error| read_failed(at, error))?;
    let there = len.saturating_sub(at).min(BLOCK_BYTES as u64) as usize;
    storage
        .read_at(at, &mut block[..there])
        .map_err(|error| read_failed(at, error))?;
    Ok(block)
}

pub(crate) fn read_failed(at: u64, source: io::Error) -> Error {
    Error::of_call("read", at, source)
}

/// Loads the superblock from an intact copy; also returns the error of each damaged copy.
pub(crate) fn load(storage: &dyn Storage) -> Result<(Superblock, [Option<Error>; 2])> {
    let blocks = [
        read_block(storage, superblock_at(0)),
        read_block(storage, superblock_at(1)),
    ];
    let mut magic_seen = false;
    let mut first_bytes = String::from("nothing (an empty file)");
    if let Ok(block) = &blocks[0]
        && !storage.is_empty().map_err(|error| read_failed(0, error))?
    {
        first_bytes = format!("`{}`", block[..16].escape_ascii());
    }
    let copies = [0, 1].map(|copy| {
        let block = match &blocks[copy] {
            Ok(block) => block,
            Err(error) => return Err(error.clone()),
        };
        magic_seen |= block[MAGIC_AT..VERSION_AT] == MAGIC;
        Superblock::decode(block, copy)
    });
    for copy in &copies {
        if let Err(error @ Error::Unsupported { .. }) = copy {
            return Err(error.clone());
        }
    }
    match copies {
        [Ok(superblock), other] => Ok((superblock, [None, other.err()])),
        [Err(error), Ok(superblock)] => Ok((superblock, [Some(error), None])),
        [Err(error), Err(_)] if magic_seen || error.is_io() => Err(error),
        [Err(_), Err(_)] => Err(Error::NotADatabase { found: first_bytes }),
    }
}
