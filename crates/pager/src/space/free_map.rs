//! Free pages of one file: a bitmap per region, and the free ranges whose space was returned to the file system
//! (punched holes). Each of the two files has such a map.
//!
//! Invariants
//! 1. There are as many regions as a file of `pages` pages needs. Bits beyond `pages` are not set.
//! 2. `touched` are the regions that differ from their bitmaps on disk.
//! 3. Punched pages are free, and `punched_pages` counts them.

use super::ranges::RangeSet;
use super::region::Region;
use crate::format::layout::{BITMAP_AT, first_page, region_pages};
use std::collections::BTreeSet;
use tidalite_base::{get_u64, put_u64};

#[derive(Debug)]
pub(crate) struct FreeMap {
    pub(super) page_size: usize,
    pub(super) region_pages: u64,
    /// Length of the file in pages.
    pages: u64,
    pub(super) regions: Vec<Region>,
    pub(super) touched: BTreeSet<usize>,
    /// Free pages in punched holes: before they are used, the file system would have to allocate space for them
    /// again.
    pub(super) punched: RangeSet,
    punched_pages: u64,
    /// The region that `unpunched` searched in its last call.
    punch_region: usize,
}

impl FreeMap {
    /// Creates a map for a file of `pages` pages, all of which are in use.
    pub(super) fn new(page_size: usize, pages: u64) -> Self {
        let mut map = Self {
            page_size,
            region_pages: region_pages(page_size),
            pages,
            regions: Vec::new(),
            touched: BTreeSet::new(),
            punched: RangeSet::default(),
            punched_pages: 0,
            punch_region: 0,
        };
        map.add_regions();
        map
    }

    /// Asserts the invariants. Must be called before a meta record is written, and after its bitmaps were read.
    pub(super) fn check(&self) {
        assert_eq!(
            self.regions.len() as u64,
            self.pages.div_ceil(self.region_pages),
            "a region is missing, or one too many"
        );
        assert!(
            self.punched_pages <= self.pages,
            "more pages are punched than there are"
        );
        debug_assert!(
            self.touched
                .last()
                .is_none_or(|&last| last < self.regions.len()),
            "a region behind the end of the file has changed"
        );
        debug_assert_eq!(
            self.punched.iter().map(|(_, pages)| pages).sum::<u64>(),
            self.punched_pages,
            "punched pages are miscounted"
        );
        if cfg!(debug_assertions) {
            self.punched.check();
            self.regions.iter().for_each(Region::check);
            let (mut free, mut used) = (0, 0);
            for (number, region) in self.regions.iter().enumerate() {
                let here = self.pages_of(number);
                let among = region.free_among(here);
                assert_eq!(
                    among,
                    region.free_count(),
                    "pages behind the end of the file are free"
                );
                free += among;
                used += here - among;
            }
            assert_eq!(free + used, self.pages, "pages are neither free nor used");
        }
    }

    fn add_regions(&mut self) {
        while (self.regions.len() as u64) * self.region_pages < self.pages {
            self.regions.push(Region::new(self.region_pages));
        }
    }

    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    pub(crate) fn free_pages(&self) -> u64 {
        self.regions.iter().map(Region::free_count).sum()
    }

    /// Number of free pages for which the file system has allocated space.
    pub(crate) fn written_free_pages(&self) -> u64 {
        let free = self.free_pages();
        assert!(self.punched_pages <= free, "a used page is punched");
        free - self.punched_pages
    }

    pub(super) fn punched_pages(&self) -> u64 {
        self.punched_pages
    }

    /// Number of pages of region `number` that lie in the file.
    fn pages_of(&self, number: usize) -> u64 {
        let from = number as u64 * self.region_pages;
        self.pages.saturating_sub(from).min(self.region_pages)
    }

    /// Returns the number of the region that contains a page, and the index of the page in that region.
    #[inline]
    pub(super) fn place(&self, page: u64) -> (usize, u64) {
        (
            (page / self.region_pages) as usize,
            page % self.region_pages,
        )
    }

    /// Returns the number of the page at index `bit` of region `number`.
    #[inline]
    pub(super) fn page_at(&self, number: usize, bit: u64) -> u64 {
        debug_assert!(bit < self.region_pages, "a place inside the region");
        number as u64 * self.region_pages + bit
    }

    /// Splits a range at region boundaries and calls `f(region, from, len)` for each part.
    pub(super) fn for_regions(
        &mut self,
        page: u64,
        pages: u64,
        mut f: impl FnMut(&mut Region, u64, u64),
    ) {
        assert!(
            page + pages <= self.pages,
            "pages {page}+{pages} lie behind the end of the file"
        );
        let (mut at, end) = (page, page + pages);
        while at < end {
            let (number, from) = self.place(at);
            let len = (self.region_pages - from).min(end - at);
            f(&mut self.regions[number], from, len);
            at += len;
        }
    }

    /// Whether the range lies inside the file and after its head.
    pub(crate) fn in_file(&self, page: u64, pages: u64) -> bool {
        page >= first_page(self.page_size)
            && pages > 0
            && page.checked_add(pages).is_some_and(|end| end <= self.pages)
    }

    pub(crate) fn any_free(&mut self, page: u64, pages: u64) -> bool {
        let mut any = false;
        self.for_regions(page, pages, |region, from, len| {
            any |= region.any_free(from, len);
        });
        any
    }

    /// Whether a page is free; false for pages beyond the end of the file.
    pub(crate) fn is_free(&self, page: u64) -> bool {
        let (number, bit) = self.place(page);
        page < self.pages && self.regions[number].is_free(bit, 1)
    }

    /// Marks the regions of a page range as different from their bitmaps in the file.
    pub(super) fn touch(&mut self, page: u64, pages: u64) {
        assert!(pages > 0, "a changed range has pages");
        let (first, last) = (self.place(page).0, self.place(page + pages - 1).0);
        assert!(last < self.regions.len(), "a changed page of the file");
        self.touched.extend(first..=last);
    }

    /// Adds free pages at the end of the map, because the file has grown to `pages` pages.
    pub(super) fn grow(&mut self, pages: u64) {
        let old = self.pages;
        assert!(pages >= old, "a file only grows");
        if pages > old {
            self.pages = pages;
            self.add_regions();
            self.release(old, pages - old);
            self.touch(old, pages - old);
        }
    }

    /// Removes free pages at the end of the map, because the file was truncated to `pages` pages.
    pub(super) fn cut(&mut self, pages: u64) {
        assert!(pages <= self.pages, "a cut makes a file shorter");
        self.unpunch(pages, self.pages - pages);
        self.pages = pages;
        let regions = pages.div_ceil(self.region_pages) as usize;
        self.regions.truncate(regions);
        if let Some(last) = self.regions.last_mut()
            && !pages.is_multiple_of(self.region_pages)
        {
            last.cut(pages % self.region_pages);
        }
        self.touched.retain(|region| *region < regions);
    }

    /// Marks pages as free; returns the length of the longest free range around them within a region.
    pub(super) fn release(&mut self, page: u64, pages: u64) -> u64 {
        let mut longest = 0;
        self.for_regions(page, pages, |region, from, len| {
            longest = longest.max(region.release(from, len));
        });
        longest
    }

    /// Marks pages that are known to be free as used; returns the first page.
    pub(super) fn take_at(&mut self, page: u64, pages: u64) -> u64 {
        self.for_regions(page, pages, |region, from, len| region.take(from, len));
        self.unpunch(page, pages);
        page
    }

    /// Returns the first page of the lowest free range of `pages` pages inside one region.
    pub(super) fn lowest(&mut self, pages: u64) -> Option<u64> {
        let mut regions = self.regions.iter_mut().enumerate();
        let found = regions.find_map(|(number, region)| Some((number, region.find(pages)?)));
        found.map(|(number, bit)| self.page_at(number, bit))
    }

    /// Allocates the lowest free range of `pages` pages inside one region; returns its first page.
    pub(super) fn take_lowest(&mut self, pages: u64) -> Option<u64> {
        let page = self.lowest(pages)?;
        Some(self.take_at(page, pages))
    }

    /// Number of the first page after the last used page.
    pub(crate) fn end(&self) -> u64 {
        self.end_from(first_page(self.page_size))
    }

    /// Number of the first page after the last used page, but at least `least`.
    pub(super) fn end_from(&self, least: u64) -> u64 {
        let mut end = self.pages;
        while end > least {
            let (number, last) = self.place(end - 1);
            let start = self.page_at(number, 0);
            if let Some(used) = self.regions[number].last_used(last + 1) {
                return (start + used + 1).max(least);
            }
            end = start;
        }
        least
    }

    /// Records that these pages will be written, so that the file system allocates space for them again.
    pub(super) fn unpunch(&mut self, page: u64, pages: u64) {
        if self.punched_pages > 0 {
            self.punched_pages -= self.punched.cut_out(page, pages);
        }
    }

    /// Returns free ranges of at least `least` pages in one region that are not punched yet, each as first page and
    /// number of pages. Each call searches the next region.
    pub(crate) fn unpunched(&mut self, least: u64) -> Vec<(u64, u64)> {
        if self.regions.is_empty() {
            return Vec::new();
        }
        self.punch_region = (self.punch_region + 1) % self.regions.len();
        let start = self.page_at(self.punch_region, 0);
        let ranges = self.regions[self.punch_region].ranges(least).into_iter();
        let ranges = ranges.map(|(bit, pages)| (start + bit, pages));
        ranges
            .filter(|&(page, pages)| !self.punched.contains(page, pages))
            .collect()
    }

    /// Records that the space of these free pages was returned to the file system.
    pub(crate) fn punch(&mut self, page: u64, pages: u64) {
        self.unpunch(page, pages);
        let fresh = self.punched.insert(page, pages);
        assert!(fresh, "pages {page}+{pages} are punched twice");
        self.punched_pages += pages;
        debug_assert!(
            (page..page + pages).all(|page| self.is_free(page)),
            "a used page is punched"
        );
    }

    /// Sets the bits of a region from its bitmap page, which describes `here` pages. Called while the free space is
    /// loaded.
    pub(super) fn load_bitmap(&mut self, number: usize, bitmap: &[u8], here: u64) {
        let region = &mut self.regions[number];
        let words = region.words().len();
        for (word, bits) in bitmap[BITMAP_AT..].chunks_exact(8).take(words).enumerate() {
            region.load_word(word, get_u64(bits, 0));
        }
        // Bits beyond the described pages are undefined in the bitmap, so they are cleared.
        let bits = words as u64 * 64;
        assert!(here <= bits, "a bitmap describes its region");
        region.load_range(here, bits - here, false);
    }

    /// Marks a page range as free or used, while the free space is loaded.
    pub(super) fn load_range(&mut self, page: u64, pages: u64, free: bool) {
        self.for_regions(page, pages, |region, from, len| {
            region.load_range(from, len, free);
        });
    }

    /// Completes loading, after all bitmaps and ranges were set.
    pub(super) fn loaded(&mut self) {
        self.regions.iter_mut().for_each(Region::loaded);
        self.check();
    }

    /// Encodes the bitmap of region `number` into a page.
    pub(super) fn encode_bitmap(&self, number: usize, page: &mut [u8]) {
        for (i, word) in self.regions[number].words().iter().enumerate() {
            put_u64(page, BITMAP_AT + i * 8, *word);
        }
    }
}
