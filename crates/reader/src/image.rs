//! A whole file in memory, together with its second file (sections 1 to 4 of docs/format.md).

use crate::block::{Block, HEADER_BYTES, Header, Pointer, kind};
use crate::bytes::{Fields, index};
use crate::error::{Error, Result};
use crate::head::{HEAD_BLOCK_BYTES, Meta, Superblock};
use crate::redo;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// The first address that lies in the second file.
pub const SECOND_FILE: u64 = 1 << 62;

const SECOND_MAGIC: [u8; 16] = *b"Tidalite values\n";
const SECOND_VERSION: usize = 1;
const SECOND_NAME_BYTES_MAX: usize = 256;
const PINS_MAX: usize = 128;

/// A file in memory, in its newest durable state.
#[derive(Clone, Debug)]
pub struct Image {
    first: Vec<u8>,
    second: Option<Vec<u8>>,
    superblock: Superblock,
    meta: Meta,
    /// Pages that the redo log has changed, by address; they replace the pages in the file.
    pages: BTreeMap<u64, Vec<u8>>,
    lost: Option<u64>,
    /// Numbers of the pages that were read so far.
    read: RefCell<BTreeSet<u64>>,
}

/// A pin: a named snapshot of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// Name of the pin.
    pub name: String,
    /// The transaction whose state is pinned.
    pub transaction: u64,
    /// Time of that transaction's commit, in nanoseconds since 1970.
    pub time: i64,
    record: Pointer,
}

/// Properties of the second file, as the first file records them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecondFile {
    /// Identity of the second file.
    pub uuid: [u8; 16],
    /// Name of the second file; empty if it is not known.
    pub name: String,
    /// Length of the second file in pages; free pages at its end may be missing.
    pub pages: u64,
}

impl Image {
    /// Reads the file `first` and chooses its newest durable state.
    ///
    /// # Errors
    /// If the head or the redo log is damaged.
    pub fn open(first: Vec<u8>) -> Result<Self> {
        let superblock = Superblock::read(&first)?;
        let record = Meta::newest(&first, &superblock)?;
        let replayed = redo::replay(&first, &superblock, record)?;
        Ok(Self {
            first,
            second: None,
            superblock,
            meta: replayed.meta,
            pages: replayed.pages,
            lost: replayed.lost,
            read: RefCell::default(),
        })
    }

    /// Adds the second file to this file, if this file needs one.
    ///
    /// # Errors
    /// If `second` is not the second file that belongs to this file.
    pub fn attach(&mut self, second: Vec<u8>) -> Result<()> {
        let Some(SecondFile { uuid, .. }) = self.second_file()? else {
            return Ok(());
        };
        for at in [0, 3 * HEAD_BLOCK_BYTES] {
            let Some(block) = second.get(at..at + HEAD_BLOCK_BYTES) else {
                continue;
            };
            if Header::read_at(block, at as u64, kind::SUPERBLOCK).is_err() {
                continue;
            }
            let mut fields = Fields::from(block, HEADER_BYTES, at as u64)?;
            let magic = fields.id()?;
            let version = fields.u32()?;
            let page_bytes = fields.u32()?;
            fields.skip(4)?;
            let same = magic == SECOND_MAGIC
                && version == SECOND_VERSION
                && page_bytes == self.page_bytes()
                && fields.id()? == uuid
                && fields.id()? == self.superblock.uuid;
            if same {
                self.second = Some(second);
                return Ok(());
            }
        }
        Err(Error::SecondFile)
    }

    /// The properties of the second file; `None` if there is no second file.
    ///
    /// # Errors
    /// If the root of the second file's free space is damaged.
    pub fn second_file(&self) -> Result<Option<SecondFile>> {
        let Some(pointer) = self.meta.large else {
            return Ok(None);
        };
        let root = self.block_of(&pointer, kind::SECOND_FREE)?;
        let mut fields = root.fields()?;
        let uuid = fields.id()?;
        let pages = fields.u64()?;
        let bytes = fields.u32()?;
        let _directories = fields.u32()?;
        fields.require(
            root.header.flags == 0 && bytes <= SECOND_NAME_BYTES_MAX,
            "the root of the second file",
        )?;
        let name = text(fields.take(bytes)?, &fields)?;
        Ok(Some(SecondFile { uuid, name, pages }))
    }

    /// Size of a page in bytes.
    #[must_use]
    pub fn page_bytes(&self) -> usize {
        self.superblock.page_bytes
    }

    /// The meta record of the commit whose contents this image shows.
    #[must_use]
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Numbers of the pages that were read so far. Pages of the second file have numbers from 2^62 / page size on.
    #[must_use]
    pub fn pages_read(&self) -> BTreeSet<u64> {
        self.read.borrow().clone()
    }

    /// Number of pages that were changed by replaying the redo log.
    #[must_use]
    pub fn replayed_pages(&self) -> usize {
        self.pages.len()
    }

    /// A transaction that was durable but is missing, because blocks of the redo log are damaged; `None` if none is
    /// missing.
    #[must_use]
    pub fn lost(&self) -> Option<u64> {
        self.lost
    }

    /// The `length` bytes from `address` on.
    ///
    /// # Errors
    /// If the file ends before these bytes.
    pub fn bytes_at(&self, address: u64, length: usize) -> Result<Vec<u8>> {
        let page_bytes = self.page_bytes() as u64;
        let (file, begin) = if address >= SECOND_FILE {
            let second = self.second.as_ref().ok_or(Error::SecondFile)?;
            (second, SECOND_FILE)
        } else {
            (&self.first, 0)
        };
        let mut bytes = Vec::new();
        let mut at = address;
        while bytes.len() < length {
            let page = at / page_bytes * page_bytes;
            let within = index(at - page);
            let taken = (self.page_bytes() - within).min(length - bytes.len());
            let part = match self.pages.get(&page) {
                Some(made) => made.get(within..within + taken),
                None => {
                    let from = index(at - begin);
                    file.get(from..from.saturating_add(taken))
                }
            };
            let part = part.ok_or(Error::damaged(address, "beyond the end of the file"))?;
            bytes.extend_from_slice(part);
            self.read.borrow_mut().insert(page / page_bytes);
            at += taken as u64;
        }
        Ok(bytes)
    }

    /// Reads the page or block to which a pointer leads.
    ///
    /// # Errors
    /// If the bytes there do not match the pointer.
    pub fn block(&self, pointer: &Pointer) -> Result<Block> {
        let begins = pointer.address % SECOND_FILE;
        if pointer.length < HEADER_BYTES || begins < (6 * HEAD_BLOCK_BYTES) as u64 {
            return Err(Error::damaged(pointer.address, "a pointer into the head"));
        }
        Block::check(self.bytes_at(pointer.address, pointer.length)?, pointer)
    }

    /// Reads the page or block to which a pointer leads and which must have this kind.
    ///
    /// # Errors
    /// If the bytes there do not match the pointer or the kind.
    pub fn block_of(&self, pointer: &Pointer, kind: u8) -> Result<Block> {
        if pointer.kind != kind {
            return Err(Error::damaged(
                pointer.address,
                "a pointer to another kind of block",
            ));
        }
        self.block(pointer)
    }

    /// Reads the pins (named snapshots), the oldest first.
    ///
    /// # Errors
    /// If the table of pins is damaged.
    pub fn pins(&self) -> Result<Vec<Pin>> {
        let Some(pointer) = self.meta.pins else {
            return Ok(Vec::new());
        };
        let block = self.block_of(&pointer, kind::PINS)?;
        let mut fields = block.fields()?;
        let count = fields.u32()?;
        fields.skip(4)?;
        fields.require(count <= PINS_MAX, "too many pins")?;
        let mut pins: Vec<Pin> = Vec::new();
        for _ in 0..count {
            let record = Pointer::read(&mut fields)?;
            let record = record.ok_or_else(|| fields.damaged("a pin without a record"))?;
            let transaction = fields.u64()?;
            let time = fields.i64()?;
            let bytes = fields.u16()?;
            let name = text(fields.take(bytes)?, &fields)?;
            fields.require(
                pins.last()
                    .is_none_or(|last| last.transaction <= transaction),
                "pins do not ascend",
            )?;
            pins.push(Pin {
                name,
                transaction,
                time,
                record,
            });
        }
        Ok(pins)
    }

    /// The same file as it was at a pin (named snapshot).
    ///
    /// # Errors
    /// If the pinned record is damaged.
    pub fn at_pin(&self, pin: &Pin) -> Result<Self> {
        let record = self.block_of(&pin.record, kind::META)?;
        let meta = Meta::read(&record.bytes, pin.record.address, &self.superblock.uuid)?;
        if meta.transaction != pin.transaction || meta.time != pin.time {
            return Err(record.damaged("a pinned record of another commit"));
        }
        // The pins and the clock of the pinned record are addresses without checksums, and its redo log has no meaning
        // any more.
        let meta = Meta {
            pins: None,
            clock: None,
            log: None,
            ..meta
        };
        Ok(Self {
            meta,
            ..self.clone()
        })
    }

    /// Reads the commit clock: transactions and the times of their commits, in nanoseconds since 1970.
    ///
    /// # Errors
    /// If the commit clock is damaged.
    pub fn clock(&self) -> Result<Vec<(u64, i64)>> {
        let Some(pointer) = self.meta.clock else {
            return Ok(Vec::new());
        };
        let block = self.block_of(&pointer, kind::CLOCK)?;
        let mut fields = block.fields()?;
        let count = fields.u32()?;
        fields.skip(4)?;
        let entries = (0..count).map(|_| Ok((fields.u64()?, fields.i64()?)));
        let entries = entries.collect::<Result<Vec<_>>>()?;
        let ascend = |pair: &[(u64, i64)]| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1;
        if entries.windows(2).all(ascend) {
            Ok(entries)
        } else {
            Err(block.damaged("the clock does not ascend"))
        }
    }
}

/// Converts bytes of a block to text.
///
/// # Errors
/// If the bytes are not UTF-8.
pub fn text(bytes: &[u8], of: &Fields<'_>) -> Result<String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| of.damaged("text that is not UTF-8"))
}
