//! The free space of the second file, which holds large values. Its bitmaps are like those for the first file, and are
//! stored in ordinary pages of the first file.
//!
//! ```text
//! root       0..32 header (kind 19, flags 0) | 32 uuid of the second file 16 B | 48 its pages u64
//!            | 56 name's bytes u32 | 60 directories u32 | 64 name, 256 B | 320 Ptr of each directory
//! directory  0..32 header (kind 19, flags 1, owner = its number) | 0
//!            | 64 entries of 40 bytes: bitmap Ptr, free pages u32, 0
//! bitmap     0..32 header (kind 8, flags 1, owner = region) | 0 | 64 one bit a page, set = free
//! ```
//!
//! Invariants
//! 1. A page of the second file is one of: head, used, held or free, like a page of the first. Its page number is
//!    `first` plus its index in the second file, so that held ranges of both files are on the same lists.
//! 2. `touched` are the regions that differ from the bitmaps on disk. Each meta record writes all of them (`plan`),
//!    so the held ranges of a meta record are marked as used in its bitmaps.
//! 3. Free pages at the end of the file may be truncated (`cut`), and holes may be punched for free ranges inside.
//!    The pages that described removed regions (`gone`) stay in use until a meta record that does not point to them
//!    was written.

use super::free_map::FreeMap;
use super::read::ReadPage;
use crate::error::{Error, Result};
use crate::format::header::{HEADER_BYTES, Header};
use crate::format::kind::Kind;
use crate::format::layout::{LARGE_AT, first_page};
use crate::format::ptr::{PTR_BYTES, Ptr};
use std::collections::BTreeSet;
use tidalite_base::{Corrupt, get_u32, get_u64, put_u32, put_u64};

const UUID_AT: usize = HEADER_BYTES;
const PAGES_AT: usize = UUID_AT + 16;
const NAME_LEN_AT: usize = PAGES_AT + 8;
const COUNT_AT: usize = NAME_LEN_AT + 4;
const NAME_AT: usize = COUNT_AT + 4;
/// Maximum length in bytes of the second file's name, as the first file stores it.
pub(crate) const NAME_BYTES_MAX: usize = 256;
const DIRECTORIES_AT: usize = NAME_AT + NAME_BYTES_MAX;
const ENTRIES_AT: usize = 64;
const ENTRY_BYTES: usize = PTR_BYTES + 8;
/// Values of the header flags by which the pages that describe the second file differ.
const ROOT: u8 = 0;
const DIRECTORY: u8 = 1;
pub(crate) const BITMAP: u8 = 1;

/// UUID and name of a second file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LargeId {
    pub(crate) uuid: [u8; 16],
    /// Name of the second file. A name without a folder is relative to the folder of the first file; an empty name
    /// means that the name is unknown.
    pub(crate) name: String,
}

/// A page that the next meta record must write, and the page that it replaces.
pub(crate) struct LargePage {
    pub(crate) what: LargeWhat,
    pub(crate) old: Ptr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LargeWhat {
    Bitmap(usize),
    Directory(usize),
    Root,
}

#[derive(Debug)]
pub(crate) struct Large {
    /// Page number that the first page of the second file has in lists of ranges.
    first: u64,
    pub(crate) id: LargeId,
    pub(crate) map: FreeMap,
    /// Whether pages other than the bitmaps must be written with the next meta record.
    pub(crate) changed: bool,
    root: Ptr,
    directories: Vec<Ptr>,
    bitmaps: Vec<Ptr>,
    /// Bitmap and directory pages of regions that were truncated.
    gone: Vec<Ptr>,
}

fn regions_per_directory(page_size: usize) -> usize {
    (page_size - ENTRIES_AT) / ENTRY_BYTES
}

fn directories_max(page_size: usize) -> usize {
    (page_size - DIRECTORIES_AT) / PTR_BYTES
}

fn damaged(what: &str, ptr: &Ptr, found: impl std::fmt::Display, expected: &str) -> Error {
    let what = format!("free space of the second file: {what}");
    Corrupt::new(what, ptr.addr, found, expected).into()
}

/// Reads the UUID and name of the second file from the page `root`, to which a meta record points. Returns `None` if
/// the pointer is null, because there is no second file.
pub(crate) fn read_id(root: &Ptr, read: ReadPage<'_>) -> Result<Option<LargeId>> {
    if root.is_null() {
        return Ok(None);
    }
    let page = read_kind(read, root, ROOT)?;
    id_of(&page, root).map(Some)
}

fn id_of(page: &[u8], root: &Ptr) -> Result<LargeId> {
    let mut uuid = [0; 16];
    uuid.copy_from_slice(&page[UUID_AT..PAGES_AT]);
    let len = get_u32(page, NAME_LEN_AT) as usize;
    let name = page.get(NAME_AT..NAME_AT + len.min(NAME_BYTES_MAX + 1));
    let name = name.filter(|_| len <= NAME_BYTES_MAX);
    let name = name.and_then(|name| std::str::from_utf8(name).ok());
    match name {
        Some(name) => Ok(LargeId {
            uuid,
            name: name.to_owned(),
        }),
        None => Err(damaged("name", root, len, "at most 256 bytes of text")),
    }
}

fn read_kind<'a>(
    read: ReadPage<'a>,
    ptr: &Ptr,
    flags: u8,
) -> Result<crate::format::pages::PageRef<'a>> {
    let page = super::read::read_kind(read, ptr, Kind::LargeSpace)?;
    let found = Header::decode(&page).flags;
    if found == flags {
        Ok(page)
    } else {
        Err(damaged("page", ptr, found, &format!("flags {flags}")))
    }
}

impl Large {
    /// Returns the page number that the first page of the second file has in lists of ranges.
    pub(crate) fn first_number(page_size: usize) -> u64 {
        LARGE_AT / page_size as u64
    }

    /// Creates the free space of an empty second file.
    pub(crate) fn new(page_size: usize, id: LargeId) -> Self {
        Self {
            first: Self::first_number(page_size),
            id,
            // No pages are written to the first file before the second file contains data.
            map: FreeMap::new(page_size, first_page(page_size)),
            changed: false,
            root: Ptr::NULL,
            directories: Vec::new(),
            bitmaps: Vec::new(),
            gone: Vec::new(),
        }
    }

    /// Loads the free space of the second file from its root page. `first_pages` is the length of the first file.
    /// Since the first file contains a bitmap for each region, its length limits the number of regions, so a damaged
    /// length cannot use up the memory.
    pub(crate) fn load(
        page_size: usize,
        root: Ptr,
        first_pages: u64,
        read: ReadPage<'_>,
    ) -> Result<Self> {
        let page = read_kind(read, &root, ROOT)?;
        let mut large = Self::new(page_size, id_of(&page, &root)?);
        let pages = get_u64(&page, PAGES_AT);
        let regions = pages.div_ceil(large.map.region_pages);
        let (per_directory, count) = (regions_per_directory(page_size), get_u32(&page, COUNT_AT));
        let most = directories_max(page_size);
        let wanted = regions.div_ceil(per_directory as u64);
        let sound = pages >= first_page(page_size)
            && regions <= first_pages
            && wanted <= most as u64
            && u64::from(count) == wanted;
        if !sound {
            let found = format!("{pages} pages in {count} directories");
            return Err(damaged(
                "root",
                &root,
                found,
                "a length and its directories",
            ));
        }
        large.map.grow(pages);
        for number in 0..count as usize {
            let ptr = Ptr::decode(&page, DIRECTORIES_AT + number * PTR_BYTES);
            let directory = read_kind(read, &ptr, DIRECTORY)?;
            large.directories.push(ptr);
            for i in 0..per_directory.min(regions as usize - large.bitmaps.len()) {
                let bitmap = Ptr::decode(&directory, ENTRIES_AT + i * ENTRY_BYTES);
                large.load_region(&bitmap, read)?;
            }
        }
        // The head of the second file is in use, whatever the bitmap says.
        large.map.load_range(0, first_page(page_size), false);
        large.map.loaded();
        large.map.touched.clear();
        large.root = root;
        Ok(large)
    }

    fn load_region(&mut self, ptr: &Ptr, read: ReadPage<'_>) -> Result<()> {
        let number = self.bitmaps.len();
        self.bitmaps.push(*ptr);
        let here = self.map.pages() - self.map.page_at(number, 0);
        let page = super::read::read_kind(read, ptr, Kind::FreeBitmap)?;
        let here = here.min(self.map.region_pages);
        self.map.load_bitmap(number, &page, here);
        Ok(())
    }

    /// Sets the name of the second file; an empty name keeps the old one.
    pub(crate) fn rename(&mut self, name: &str) {
        if !name.is_empty() && self.id.name != name {
            self.id.name = name.to_owned();
            // The name is written with the next meta record, unless the second file is still empty.
            self.changed = !self.root.is_null();
        }
    }

    pub(crate) fn pages(&self) -> u64 {
        self.map.pages()
    }

    pub(crate) fn free_pages(&self) -> u64 {
        self.map.free_pages()
    }

    /// Returns pointers to all pages of the first file that describe the second file.
    pub(crate) fn structure(&self) -> impl Iterator<Item = &Ptr> {
        let all = self.bitmaps.iter().chain(&self.directories);
        all.chain(&self.gone)
            .chain([&self.root])
            .filter(|ptr| !ptr.is_null())
    }

    /// Returns the page number that the first page of the second file has in lists of ranges.
    pub(crate) fn first_page(&self) -> u64 {
        self.first
    }

    /// Whether a free range of `pages` pages lies wholly before index `place` of the second file.
    pub(crate) fn fits_before(&mut self, place: u64, pages: u64) -> bool {
        let lowest = self.map.lowest(pages);
        lowest.is_some_and(|at| at + pages <= place)
    }

    /// Returns the index of a page in the second file, or `None` if the page lies in the first file.
    pub(crate) fn place(&self, page: u64) -> Option<u64> {
        page.checked_sub(self.first)
    }

    pub(crate) fn release(&mut self, place: u64, pages: u64) {
        self.map.release(place, pages);
    }

    /// Allocates a free range of `pages` pages inside one region; returns its page number.
    pub(crate) fn take(&mut self, pages: u64) -> Option<u64> {
        let place = self.map.take_lowest(pages)?;
        Some(self.first + place)
    }

    /// Returns the file length in pages after `pages` pages are allocated at the end as one range; `None` if the root
    /// page cannot describe so many regions.
    pub(crate) fn length_for(&self, pages: u64) -> Option<u64> {
        // The range begins at the free end of the file, and may extend over several regions.
        let most = directories_max(self.map.page_size) as u64
            * regions_per_directory(self.map.page_size) as u64
            * self.map.region_pages;
        let start = self.map.end();
        let end = start.checked_add(pages)?;
        (end <= most).then_some(end)
    }

    /// Allocates pages at the free end of the file; returns the page number of the first.
    pub(crate) fn take_tail(&mut self, pages: u64) -> u64 {
        self.first + self.map.take_at(self.map.end(), pages)
    }

    pub(crate) fn grow(&mut self, pages: u64) {
        if pages > self.map.pages() {
            self.map.grow(pages);
            self.changed = true;
        }
    }

    /// Shortens the map to `pages` pages, or to the end of the last used page if that is later, because the file will
    /// be truncated.
    pub(crate) fn cut(&mut self, pages: u64) {
        let pages = pages.max(self.map.end());
        if pages >= self.map.pages() {
            return;
        }
        self.map.cut(pages);
        let regions = self.map.regions.len();
        let directories = regions.div_ceil(regions_per_directory(self.map.page_size));
        for (list, left) in [
            (&mut self.bitmaps, regions),
            (&mut self.directories, directories),
        ] {
            let gone = list.drain(left.min(list.len())..);
            self.gone.extend(gone.filter(|ptr| !ptr.is_null()));
        }
        // The last directory is rewritten as well, so that it points to no removed page.
        self.map.touched.extend(regions.checked_sub(1));
        self.changed = true;
    }

    /// Returns the pages of the first file to which the next meta record will no longer point.
    pub(crate) fn gone(&self) -> &[Ptr] {
        &self.gone
    }

    /// Makes the next meta record rewrite all pages that describe the second file.
    pub(crate) fn rewrite(&mut self) {
        self.map.touched.extend(0..self.map.regions.len());
        self.changed = true;
    }

    /// Returns the pages that the next meta record must write, each page after the pages to which it points. Empty if
    /// nothing has changed.
    pub(crate) fn plan(&self) -> Vec<LargePage> {
        if self.map.touched.is_empty() && !self.changed {
            return Vec::new();
        }
        let old = |list: &[Ptr], number: usize| list.get(number).copied().unwrap_or(Ptr::NULL);
        let per_directory = regions_per_directory(self.map.page_size);
        let touched = &self.map.touched;
        let directories: BTreeSet<usize> = touched
            .iter()
            .map(|region| region / per_directory)
            .collect();
        let mut pages: Vec<LargePage> = Vec::new();
        for &region in touched {
            let what = LargeWhat::Bitmap(region);
            let old = old(&self.bitmaps, region);
            pages.push(LargePage { what, old });
        }
        for directory in directories {
            let what = LargeWhat::Directory(directory);
            let old = old(&self.directories, directory);
            pages.push(LargePage { what, old });
        }
        pages.push(LargePage {
            what: LargeWhat::Root,
            old: self.root,
        });
        pages
    }

    /// Fills in a planned page except for its header. `new` are the planned pages that are already written, with
    /// pointers to them.
    pub(crate) fn fill(&self, what: LargeWhat, new: &[(LargeWhat, Ptr)], page: &mut [u8]) {
        let per_directory = regions_per_directory(self.map.page_size);
        let find = |wanted: LargeWhat, old: Option<&Ptr>| {
            let found = new.iter().find(|(what, _)| *what == wanted);
            found.map_or(old.copied().unwrap_or(Ptr::NULL), |(_, ptr)| *ptr)
        };
        match what {
            LargeWhat::Bitmap(region) => {
                page[9] = BITMAP;
                self.map.encode_bitmap(region, page);
            }
            LargeWhat::Directory(directory) => {
                page[9] = DIRECTORY;
                let first = directory * per_directory;
                for region in first..(first + per_directory).min(self.map.regions.len()) {
                    let at = ENTRIES_AT + (region - first) * ENTRY_BYTES;
                    let bitmap = find(LargeWhat::Bitmap(region), self.bitmaps.get(region));
                    bitmap.encode(page, at);
                    put_u32(
                        page,
                        at + PTR_BYTES,
                        self.map.regions[region].free_count() as u32,
                    );
                }
            }
            LargeWhat::Root => {
                page[9] = ROOT;
                page[UUID_AT..PAGES_AT].copy_from_slice(&self.id.uuid);
                put_u64(page, PAGES_AT, self.map.pages());
                let name = self.id.name.as_bytes();
                put_u32(page, NAME_LEN_AT, name.len() as u32);
                page[NAME_AT..NAME_AT + name.len()].copy_from_slice(name);
                let count = self.map.regions.len().div_ceil(per_directory);
                put_u32(page, COUNT_AT, count as u32);
                for number in 0..count {
                    let ptr = find(LargeWhat::Directory(number), self.directories.get(number));
                    ptr.encode(page, DIRECTORIES_AT + number * PTR_BYTES);
                }
            }
        }
    }

    /// Adopts the pages `new` after the meta record that refers to them was written.
    pub(crate) fn install(&mut self, new: &[(LargeWhat, Ptr)]) {
        if new.is_empty() {
            return;
        }
        let regions = self.map.regions.len();
        self.bitmaps.resize(regions, Ptr::NULL);
        let directories = regions.div_ceil(regions_per_directory(self.map.page_size));
        self.directories.resize(directories, Ptr::NULL);
        for (what, ptr) in new {
            match *what {
                LargeWhat::Bitmap(region) => self.bitmaps[region] = *ptr,
                LargeWhat::Directory(number) => self.directories[number] = *ptr,
                LargeWhat::Root => self.root = *ptr,
            }
        }
        self.map.touched.clear();
        self.gone.clear();
        debug_assert!(
            self.structure().count() > self.map.regions.len(),
            "a page of the structure is missing"
        );
        self.changed = false;
    }
}
