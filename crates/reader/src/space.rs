//! Reads the free space (section 4 of docs/format.md). A reader does not need it to show rows; this reader uses it to
//! check that every page that it reads is in use.

use crate::block::{Block, Pointer, kind};
use crate::bytes::Fields;
use crate::error::{Error, Result};
use crate::image::{Image, SECOND_FILE};
use std::collections::BTreeMap;

/// Number of bytes in front of the bits of a bitmap page, and of the entries of a directory page.
const HEAD_BYTES: usize = 64;

const ENTRY_BYTES: usize = 40;

/// Knows for each page of both files whether the page is in use.
#[derive(Debug)]
pub struct Space {
    first: Structure,
    second: Structure,
    /// Changes since the bitmaps were written: first page, number of pages, and whether these pages are used.
    changes: Vec<(u64, u64, bool)>,
    /// Number of the first page of the second file.
    second_begins: u64,
    /// Number of pages in the head of either file, which are always in use.
    head_pages: u64,
}

/// Bitmaps by zone (a group of pages); all pages of a zone without a bitmap are free.
#[derive(Debug, Default)]
struct Structure {
    pages: u64,
    zone_pages: u64,
    bitmaps: BTreeMap<u64, Vec<u8>>,
}

impl Structure {
    fn is_used(&self, page: u64) -> bool {
        if page >= self.pages {
            return false;
        }
        let within = page % self.zone_pages;
        let bitmap = self.bitmaps.get(&(page / self.zone_pages));
        bitmap.is_some_and(|bits| bits[(within / 8) as usize] >> (within % 8) & 1 == 0)
    }

    fn read_first(image: &Image, root: &Pointer) -> Result<Self> {
        let mut structure = Self::new(image);
        let mut directories = 0;
        let mut next = Some(*root);
        while let Some(pointer) = next {
            let root = image.block_of(&pointer, kind::FREE_ROOT)?;
            let mut fields = root.fields()?;
            structure.pages = fields.u64()?;
            fields.skip(40)?;
            next = Pointer::read(&mut fields)?;
            let count = fields.u32()?;
            fields.require(next.is_none() || count > 0, "an empty root of free space")?;
            fields.skip(12)?;
            for _ in 0..count {
                let pointer = Pointer::read(&mut fields)?;
                let pointer = pointer.ok_or_else(|| root.damaged("a root without a directory"))?;
                let directory = image.block_of(&pointer, kind::FREE_DIRECTORY)?;
                structure.read_directory(image, &directory, directories, 0)?;
                directories += 1;
            }
        }
        structure.check()
    }

    fn read_second(image: &Image, root: &Pointer) -> Result<Self> {
        let mut structure = Self::new(image);
        let root = image.block_of(root, kind::SECOND_FREE)?;
        let mut fields = root.fields()?;
        fields.skip(16)?;
        structure.pages = fields.u64()?;
        fields.skip(4)?;
        let count = fields.u32()?;
        fields.skip(256)?;
        for number in 0..count as u64 {
            let pointer = Pointer::read(&mut fields)?;
            let pointer = pointer.ok_or_else(|| root.damaged("a root without a directory"))?;
            let directory = image.block_of(&pointer, kind::SECOND_FREE)?;
            structure.read_directory(image, &directory, number, 1)?;
        }
        structure.check()
    }

    fn new(image: &Image) -> Self {
        Self {
            pages: 0,
            zone_pages: 8 * (image.page_bytes() - HEAD_BYTES) as u64,
            bitmaps: BTreeMap::new(),
        }
    }

    fn read_directory(
        &mut self,
        image: &Image,
        directory: &Block,
        number: u64,
        flags: u8,
    ) -> Result<()> {
        let entries = ((image.page_bytes() - HEAD_BYTES) / ENTRY_BYTES) as u64;
        let mut fields = directory.fields()?;
        fields.require(
            directory.header.owner == number && directory.header.flags == flags,
            "the number of a directory of free space",
        )?;
        fields.skip(32)?;
        for zone in entries * number..entries * (number + 1) {
            let pointer = Pointer::read(&mut fields)?;
            fields.skip(ENTRY_BYTES - 32)?;
            let Some(pointer) = pointer else { continue };
            let bitmap = image.block_of(&pointer, kind::FREE_BITMAP)?;
            let owner = bitmap.header.owner;
            if owner != zone || bitmap.header.flags != flags {
                return Err(bitmap.damaged("a bitmap of another zone"));
            }
            let bits = Fields::from(&bitmap.bytes, HEAD_BYTES, pointer.address)?.rest();
            self.bitmaps.insert(zone, bits.to_vec());
        }
        Ok(())
    }

    fn check(self) -> Result<Self> {
        let zones = self.pages.div_ceil(self.zone_pages);
        let whole = self.zone_pages.div_ceil(8) as usize;
        let holds = self.bitmaps.keys().all(|zone| *zone < zones)
            && self.bitmaps.values().all(|bits| bits.len() == whole);
        if holds {
            Ok(self)
        } else {
            Err(Error::damaged(0, "the bitmaps of the free space"))
        }
    }
}

impl Space {
    /// Reads the free space of both files.
    ///
    /// # Errors
    /// If the free space is damaged.
    pub fn read(image: &Image) -> Result<Self> {
        let meta = image.meta();
        let page_bytes = image.page_bytes() as u64;
        let first = match &meta.free {
            Some(root) => Structure::read_first(image, root)?,
            None => Structure::new(image),
        };
        let second = match &meta.large {
            Some(root) => Structure::read_second(image, root)?,
            None => Structure::new(image),
        };
        let mut changes: Vec<(u64, u64, bool)> = Vec::new();
        for &(page, pages) in &meta.changes {
            let last = changes.last();
            let ascend = last.is_none_or(|(before, count, _)| before + count <= page);
            let end = page.checked_add(pages >> 1);
            if !ascend || pages < 2 || end.is_none() {
                return Err(Error::damaged(0, "the changes of the free space"));
            }
            changes.push((page, pages >> 1, pages & 1 == 1));
        }
        Ok(Self {
            first,
            second,
            changes,
            second_begins: SECOND_FILE / page_bytes,
            head_pages: 24_576_u64.div_ceil(page_bytes),
        })
    }

    /// True if the page with this number is in use.
    #[must_use]
    pub fn is_used(&self, page: u64) -> bool {
        if page % self.second_begins < self.head_pages {
            return true;
        }
        let mut changes = self.changes.iter();
        let change = changes.find(|(first, pages, _)| (*first..first + pages).contains(&page));
        match change {
            Some((.., used)) => *used,
            None if page >= self.second_begins => self.second.is_used(page - self.second_begins),
            None => self.first.is_used(page),
        }
    }
}
