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
//! 1. A page of the second file is one of: head, used, held or free, like a page of the first. Its number is `first` +
//!    its place there, so that held ranges are on the same lists and follow the same rule.
//! 2. `touched` are the regions that differ from the bitmaps on disk; after a record is written there are none
//!    (`plan`), so the held ranges of a record are used in its bitmaps.
//! 3. Free pages at the file's end may be truncated (`cut`), and free ranges inside punched. The pages that described
//!    removed regions (`gone`) stay in use until a record that does not lead to them was written.

use super::read::ReadPage;
use super::region::Region;
use crate::error::{Error, Result};
use crate::format::header::{HEADER_BYTES, Header};
use crate::format::kind::Kind;
use crate::format::layout::{BITMAP_AT, LARGE_AT, first_page, region_pages};
use crate::format::ptr::{PTR_BYTES, Ptr};
use crate::space::ranges::RangeSet;
use std::collections::BTreeSet;
use tidalite_base::{Corrupt, get_u32, get_u64, put_u32, put_u64};

const UUID_AT: usize = HEADER_BYTES;
const PAGES_AT: usize = UUID_AT + 16;
const NAME_LEN_AT: usize = PAGES_AT + 8;
const COUNT_AT: usize = NAME_LEN_AT + 4;
const NAME_AT: usize = COUNT_AT + 4;
/// Maximum length of the second file's name in the first file.
pub(crate) const NAME_BYTES_MAX: usize = 256;
const DIRECTORIES_AT: usize = NAME_AT + NAME_BYTES_MAX;
const ENTRIES_AT: usize = 64;
const ENTRY_BYTES: usize = PTR_BYTES + 8;
/// Header flags of the pages.
const ROOT: u8 = 0;
const DIRECTORY: u8 = 1;
pub(crate) const BITMAP: u8 = 1;

/// Identity of a second file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LargeId {
    pub(crate) uuid: [u8; 16],
    /// Its name: beside the first file if it has no folder. Empty: unknown.
    pub(crate) name: String,
}

/// A page to write, and the page that it replaces.
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
    page_size: usize,
    /// Page number of its page 0.
    first: u64,
    region_pages: u64,
    pub(crate) id: LargeId,
    pages: u64,
    regions: Vec<Region>,
    touched: BTreeSet<usize>,
    /// Something other than the bitmaps must be written.
    pub(crate) changed: bool,
    root: Ptr,
    directories: Vec<Ptr>,
    bitmaps: Vec<Ptr>,
    /// Bitmaps and directories of truncated regions.
    gone: Vec<Ptr>,
    punched: RangeSet,
    punch_region: usize,
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

/// The file that holds the large values of a record; `None` if there is none.
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
    /// The page number of the first page of the second file.
    pub(crate) fn first_number(page_size: usize) -> u64 {
        LARGE_AT / page_size as u64
    }

    /// For an empty second file.
    pub(crate) fn new(page_size: usize, id: LargeId) -> Self {
        let mut large = Self {
            page_size,
            first: Self::first_number(page_size),
            region_pages: region_pages(page_size),
            id,
            pages: 0,
            regions: Vec::new(),
            touched: BTreeSet::new(),
            changed: false,
            root: Ptr::NULL,
            directories: Vec::new(),
            bitmaps: Vec::new(),
            gone: Vec::new(),
            punched: RangeSet::default(),
            punch_region: 0,
        };
        large.grow(first_page(page_size));
        large.take_at(0, first_page(page_size));
        // Nothing is written before the file holds data.
        large.touched.clear();
        large.changed = false;
        large
    }

    /// Loads the state under a record's root. `first_pages`: length of the first file, which contains a bitmap for each
    /// region; so a damaged length cannot require more memory than the file.
    pub(crate) fn load(
        page_size: usize,
        root: Ptr,
        first_pages: u64,
        read: ReadPage<'_>,
    ) -> Result<Self> {
        let page = read_kind(read, &root, ROOT)?;
        let mut large = Self::new(page_size, id_of(&page, &root)?);
        let pages = get_u64(&page, PAGES_AT);
        let regions = pages.div_ceil(large.region_pages);
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
        large.grow(pages);
        for number in 0..count as usize {
            let ptr = Ptr::decode(&page, DIRECTORIES_AT + number * PTR_BYTES);
            let directory = read_kind(read, &ptr, DIRECTORY)?;
            large.directories.push(ptr);
            for i in 0..per_directory.min(regions as usize - large.bitmaps.len()) {
                let bitmap = Ptr::decode(&directory, ENTRIES_AT + i * ENTRY_BYTES);
                large.load_region(&bitmap, read)?;
            }
        }
        large.root = root;
        large.touched.clear();
        large.changed = false;
        Ok(large)
    }

    fn load_region(&mut self, ptr: &Ptr, read: ReadPage<'_>) -> Result<()> {
        let number = self.bitmaps.len();
        self.bitmaps.push(*ptr);
        let here = (self.pages - number as u64 * self.region_pages).min(self.region_pages);
        let page = super::read::read_kind(read, ptr, Kind::FreeBitmap)?;
        let region = &mut self.regions[number];
        let words = region.words().len();
        for i in 0..words {
            let at = BITMAP_AT + i * 8;
            if at + 8 <= page.len() {
                region.load_word(i, get_u64(&page, at));
            }
        }
        // Bits beyond the end are undefined; the head is used whatever the bitmap says.
        region.load_range(here, words as u64 * 64 - here, false);
        if number == 0 {
            region.load_range(0, first_page(self.page_size).min(here), false);
        }
        region.loaded();
        Ok(())
    }

    /// Sets the name of the file; an empty name keeps the old one.
    pub(crate) fn rename(&mut self, name: &str) {
        if !name.is_empty() && self.id.name != name {
            self.id.name = name.to_owned();
            // Written with the next record, unless the file is still empty.
            self.changed = !self.root.is_null();
        }
    }

    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    pub(crate) fn free_pages(&self) -> u64 {
        self.regions.iter().map(Region::free_count).sum()
    }

    /// All its pages in the first file.
    pub(crate) fn structure(&self) -> impl Iterator<Item = &Ptr> {
        let all = self.bitmaps.iter().chain(&self.directories);
        all.chain(&self.gone)
            .chain([&self.root])
            .filter(|ptr| !ptr.is_null())
    }

    /// The page number of its page 0.
    pub(crate) fn first_page(&self) -> u64 {
        self.first
    }

    /// Whether a free range of this length lies wholly before a place.
    pub(crate) fn fits_before(&mut self, place: u64, pages: u64) -> bool {
        let regions = self.regions.iter_mut().enumerate();
        let mut starts =
            regions.map(|(number, region)| (number as u64 * self.region_pages, region));
        let lowest = starts
            .find_map(|(start, region)| region.find(pages).map(|bit| start.saturating_add(bit)));
        lowest.is_some_and(|at| at + pages <= place)
    }

    /// The place in the second file of a page, if it lies there.
    pub(crate) fn place(&self, page: u64) -> Option<u64> {
        page.checked_sub(self.first)
    }

    pub(crate) fn in_file(&self, place: u64, pages: u64) -> bool {
        place >= first_page(self.page_size)
            && pages > 0
            && place
                .checked_add(pages)
                .is_some_and(|end| end <= self.pages)
    }

    fn for_regions(&mut self, place: u64, pages: u64, mut f: impl FnMut(&mut Region, u64, u64)) {
        let (mut at, end) = (place, place + pages);
        while at < end {
            let number = (at / self.region_pages) as usize;
            let from = at % self.region_pages;
            let len = (self.region_pages - from).min(end - at);
            f(&mut self.regions[number], from, len);
            at += len;
        }
    }

    pub(crate) fn any_free(&mut self, place: u64, pages: u64) -> bool {
        let mut any = false;
        self.for_regions(place, pages, |region, from, len| {
            any |= region.any_free(from, len)
        });
        any
    }

    /// Whether a page is free.
    pub(crate) fn is_free(&self, place: u64) -> bool {
        let region = &self.regions[(place / self.region_pages) as usize];
        region.is_free(place % self.region_pages, 1)
    }

    pub(crate) fn release(&mut self, place: u64, pages: u64) {
        self.for_regions(place, pages, |region, from, len| {
            region.release(from, len);
        });
    }

    fn take_at(&mut self, place: u64, pages: u64) {
        self.for_regions(place, pages, |region, from, len| region.take(from, len));
    }

    /// Marks a range as different from the bitmaps.
    pub(crate) fn note(&mut self, place: u64, pages: u64) {
        let (first, last) = (
            place / self.region_pages,
            (place + pages - 1) / self.region_pages,
        );
        self.touched.extend(first as usize..=last as usize);
    }

    /// Takes a free range inside one region; returns its page number.
    pub(crate) fn take(&mut self, pages: u64) -> Option<u64> {
        for (number, region) in self.regions.iter_mut().enumerate() {
            if let Some(bit) = region.find(pages) {
                region.take(bit, pages);
                let place = number as u64 * self.region_pages + bit;
                self.punched.cut_out(place, pages);
                return Some(self.first + place);
            }
        }
        None
    }

    /// The file length after appending `pages` pages as one range; `None` beyond the capacity of the root.
    pub(crate) fn length_for(&self, pages: u64) -> Option<u64> {
        // The range begins at the free end of the file, and may cross regions.
        let most = directories_max(self.page_size) as u64
            * regions_per_directory(self.page_size) as u64
            * self.region_pages;
        let start = self.end();
        let end = start.checked_add(pages)?;
        (end <= most).then_some(end)
    }

    /// Start of the free end of the file.
    pub(crate) fn end(&self) -> u64 {
        for (number, region) in self.regions.iter().enumerate().rev() {
            let from = number as u64 * self.region_pages;
            let here = (self.pages - from).min(self.region_pages);
            if let Some(last) = region.last_used(here) {
                return from + last + 1;
            }
        }
        0
    }

    /// Takes pages at the free end of the file; returns their page number.
    pub(crate) fn take_tail(&mut self, pages: u64) -> u64 {
        let place = self.end();
        self.take_at(place, pages);
        self.punched.cut_out(place, pages);
        self.first + place
    }

    pub(crate) fn grow(&mut self, pages: u64) {
        let old = self.pages;
        if pages <= old {
            return;
        }
        while (self.regions.len() as u64) * self.region_pages < pages {
            self.regions.push(Region::new(self.region_pages));
        }
        self.pages = pages;
        self.release(old, pages - old);
        self.note(old, pages - old);
        self.changed = true;
    }

    /// Truncates the file here, or after its last used page if that is later.
    pub(crate) fn cut(&mut self, pages: u64) {
        let pages = pages.max(self.end());
        if pages >= self.pages {
            return;
        }
        self.punched.cut_out(pages, self.pages - pages);
        self.pages = pages;
        let regions = pages.div_ceil(self.region_pages) as usize;
        self.regions.truncate(regions);
        if let Some(last) = self.regions.last_mut()
            && !pages.is_multiple_of(self.region_pages)
        {
            last.cut(pages % self.region_pages);
        }
        let directories = regions.div_ceil(regions_per_directory(self.page_size));
        for (list, left) in [
            (&mut self.bitmaps, regions),
            (&mut self.directories, directories),
        ] {
            let gone = list.drain(left.min(list.len())..);
            self.gone.extend(gone.filter(|ptr| !ptr.is_null()));
        }
        // The last directory is rewritten as well, so that it names no removed page.
        self.touched.retain(|region| *region < regions);
        self.touched.extend(regions.checked_sub(1));
        self.changed = true;
    }

    /// Pages of the first file to which the next record does not lead.
    pub(crate) fn gone(&self) -> &[Ptr] {
        &self.gone
    }

    /// Makes the next record rewrite everything.
    pub(crate) fn rewrite(&mut self) {
        self.touched.extend(0..self.regions.len());
        self.changed = true;
    }

    /// Pages that the next record must write, bottom-up; empty if nothing changed.
    pub(crate) fn plan(&self) -> Vec<LargePage> {
        if self.touched.is_empty() && !self.changed {
            return Vec::new();
        }
        let old = |list: &[Ptr], number: usize| list.get(number).copied().unwrap_or(Ptr::NULL);
        let per_directory = regions_per_directory(self.page_size);
        let directories: BTreeSet<usize> = self
            .touched
            .iter()
            .map(|region| region / per_directory)
            .collect();
        let mut pages: Vec<LargePage> = Vec::new();
        for &region in &self.touched {
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

    /// Fills a planned page except its header; `new` are the pages before it, with their pointers.
    pub(crate) fn fill(&self, what: LargeWhat, new: &[(LargeWhat, Ptr)], page: &mut [u8]) {
        let per_directory = regions_per_directory(self.page_size);
        let find = |wanted: LargeWhat, old: Option<&Ptr>| {
            let found = new.iter().find(|(what, _)| *what == wanted);
            found.map_or(old.copied().unwrap_or(Ptr::NULL), |(_, ptr)| *ptr)
        };
        match what {
            LargeWhat::Bitmap(region) => {
                page[9] = BITMAP;
                for (i, word) in self.regions[region].words().iter().enumerate() {
                    put_u64(page, BITMAP_AT + i * 8, *word);
                }
            }
            LargeWhat::Directory(directory) => {
                page[9] = DIRECTORY;
                let first = directory * per_directory;
                for region in first..(first + per_directory).min(self.regions.len()) {
                    let at = ENTRIES_AT + (region - first) * ENTRY_BYTES;
                    let bitmap = find(LargeWhat::Bitmap(region), self.bitmaps.get(region));
                    bitmap.encode(page, at);
                    put_u32(
                        page,
                        at + PTR_BYTES,
                        self.regions[region].free_count() as u32,
                    );
                }
            }
            LargeWhat::Root => {
                page[9] = ROOT;
                page[UUID_AT..PAGES_AT].copy_from_slice(&self.id.uuid);
                put_u64(page, PAGES_AT, self.pages);
                let name = self.id.name.as_bytes();
                put_u32(page, NAME_LEN_AT, name.len() as u32);
                page[NAME_AT..NAME_AT + name.len()].copy_from_slice(name);
                let count = self.regions.len().div_ceil(per_directory);
                put_u32(page, COUNT_AT, count as u32);
                for number in 0..count {
                    let ptr = find(LargeWhat::Directory(number), self.directories.get(number));
                    ptr.encode(page, DIRECTORIES_AT + number * PTR_BYTES);
                }
            }
        }
    }

    /// Makes these pages the base of the next record.
    pub(crate) fn install(&mut self, new: &[(LargeWhat, Ptr)]) {
        if new.is_empty() {
            return;
        }
        self.bitmaps.resize(self.regions.len(), Ptr::NULL);
        let directories = self
            .regions
            .len()
            .div_ceil(regions_per_directory(self.page_size));
        self.directories.resize(directories, Ptr::NULL);
        for (what, ptr) in new {
            match *what {
                LargeWhat::Bitmap(region) => self.bitmaps[region] = *ptr,
                LargeWhat::Directory(number) => self.directories[number] = *ptr,
                LargeWhat::Root => self.root = *ptr,
            }
        }
        self.touched.clear();
        self.gone.clear();
        self.changed = false;
    }

    /// Free ranges of at least `least` pages that are not punched yet, in the region after the last one queried: place
    /// and pages.
    pub(crate) fn unpunched(&mut self, least: u64) -> Vec<(u64, u64)> {
        self.punch_region = (self.punch_region + 1) % self.regions.len().max(1);
        let start = self.punch_region as u64 * self.region_pages;
        let mut found = self.regions[self.punch_region].ranges(least);
        found.retain(|&(bit, pages)| !self.punched.contains(start + bit, pages));
        found
            .iter()
            .map(|&(bit, pages)| (start + bit, pages))
            .collect()
    }

    pub(crate) fn punch(&mut self, place: u64, pages: u64) {
        self.punched.cut_out(place, pages);
        self.punched.insert(place, pages);
    }
}
