//! A whole file in memory, and the second file: sections 1 to 4.

use crate::block::{Block, HEADER_BYTES, Header, Pointer, kind};
use crate::bytes::{Fields, index};
use crate::error::{Error, Result};
use crate::head::{HEAD_BLOCK_BYTES, Meta, Superblock};
use crate::redo;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// Addresses from here on are in the second file.
pub const SECOND_FILE: u64 = 1 << 62;

const SECOND_MAGIC: [u8; 16] = *b"Tidalite values\n";
const SECOND_VERSION: usize = 1;
const SECOND_NAME_BYTES_MAX: usize = 256;
const PINS_MAX: usize = 128;

/// A file whose newest state was chosen.
#[derive(Clone, Debug)]
pub struct Image {
    first: Vec<u8>,
    second: Option<Vec<u8>>,
    superblock: Superblock,
    meta: Meta,
    /// Pages of the log, by address; they take the place of those in the file.
    pages: BTreeMap<u64, Vec<u8>>,
    lost: Option<u64>,
    /// Numbers of the pages that were read.
    read: RefCell<BTreeSet<u64>>,
}

/// A named version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// Its name.
    pub name: String,
    /// Its transaction.
    pub transaction: u64,
    /// Its time, nanoseconds since 1970.
    pub time: i64,
    record: Pointer,
}

/// The second file, as the first one knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecondFile {
    /// Its identity.
    pub uuid: [u8; 16],
    /// Its name, empty where it is not known.
    pub name: String,
    /// Its length in pages; free ones at the end may be missing.
    pub pages: u64,
}

impl Image {
    /// Chooses the newest durable state of a file.
    ///
    /// # Errors
    /// If the head or the log is damaged.
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

    /// Takes in the second file, if this file needs one.
    ///
    /// # Errors
    /// If it is not the second file of this one.
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

    /// The second file, where there is one.
    ///
    /// # Errors
    /// If the root of its free space is damaged.
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

    /// Bytes of a page.
    #[must_use]
    pub fn page_bytes(&self) -> usize {
        self.superblock.page_bytes
    }

    /// The commit that is shown.
    #[must_use]
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Numbers of the pages that were read until now. Pages of the second file have numbers from 2^62 / page size.
    #[must_use]
    pub fn pages_read(&self) -> BTreeSet<u64> {
        self.read.borrow().clone()
    }

    /// Number of pages that the log has made.
    #[must_use]
    pub fn replayed_pages(&self) -> usize {
        self.pages.len()
    }

    /// A transaction that was durable and is missing, because blocks of the log are damaged.
    #[must_use]
    pub fn lost(&self) -> Option<u64> {
        self.lost
    }

    /// The bytes from `address` on.
    ///
    /// # Errors
    /// If the file ends before them.
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

    /// The page or block that a pointer leads to.
    ///
    /// # Errors
    /// If it is another one.
    pub fn block(&self, pointer: &Pointer) -> Result<Block> {
        let begins = pointer.address % SECOND_FILE;
        if pointer.length < HEADER_BYTES || begins < (6 * HEAD_BLOCK_BYTES) as u64 {
            return Err(Error::damaged(pointer.address, "a pointer into the head"));
        }
        Block::check(self.bytes_at(pointer.address, pointer.length)?, pointer)
    }

    /// The page or block that a pointer leads to, which has to be of this kind.
    ///
    /// # Errors
    /// If it is another one.
    pub fn block_of(&self, pointer: &Pointer, kind: u8) -> Result<Block> {
        if pointer.kind != kind {
            return Err(Error::damaged(
                pointer.address,
                "a pointer to another kind of block",
            ));
        }
        self.block(pointer)
    }

    /// The pins, the oldest first.
    ///
    /// # Errors
    /// If their table is damaged.
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

    /// The same file at a pinned version.
    ///
    /// # Errors
    /// If the pinned record is damaged.
    pub fn at_pin(&self, pin: &Pin) -> Result<Self> {
        let record = self.block_of(&pin.record, kind::META)?;
        let meta = Meta::read(&record.bytes, pin.record.address, &self.superblock.uuid)?;
        if meta.transaction != pin.transaction || meta.time != pin.time {
            return Err(record.damaged("a pinned record of another commit"));
        }
        // Its pins and its clock are places without a checksum, and its log means nothing.
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

    /// The clock: transactions and the times of their commits, in nanoseconds since 1970.
    ///
    /// # Errors
    /// If it is damaged.
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

/// UTF-8 of a block.
///
/// # Errors
/// If the bytes are not UTF-8.
pub fn text(bytes: &[u8], of: &Fields<'_>) -> Result<String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| of.damaged("text that is not UTF-8"))
}
