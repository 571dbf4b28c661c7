//! Free space: allocation, and the space information of the next record.
//!
//! Invariants
//! 1. A page is one of: head, used, held (dead, but visible to a snapshot) or free. In a record, held pages count as
//!    used and are on a list, so that any process that opens the file knows which pages become free, and when.
//! 2. A range born at b and freed at d is held by every snapshot s with b <= s < d. It is recorded under one of these
//!    (`retained`), in memory or on that holder's stack of lists on disk; when that holder ends, it moves to another
//!    one or becomes free.
//! 3. Ranges in memory under `retained` form the pending list of the next record, or are moved to the stacks by it
//!    (`plan`).
//! 4. `changes` turns the structure under `base` into the state of the next record, unless it has become too long
//!    (`overflow`); `touched` are the regions that differ.
//! 5. Taking a list from a stack changes memory only; its page stays in use until a record without it was written
//!    (`popped`).
//!
//! Work per commit: the ranges that the transaction itself freed, and at most `LISTS_PER_COMMIT` lists of ended
//! holders; more only to avoid growing the file.

use super::base::Base;
use super::large::Large;
use super::lists::Stack;
use super::placement::CurrentRange;
use super::placement::Recent;
use super::ranges::{Changes, RangeSet};
use super::region::{Region, Use};
use super::txn::TxnSpace;
use crate::error::Result;
use crate::format::layout::{first_page, is_large_page, region_pages};
use crate::format::meta::FreedRange;
use crate::format::ptr::Ptr;
use std::collections::{BTreeMap, BTreeSet};

/// Lists that one write transaction takes from the stacks of ended holders: at most 16 x 125 ranges, or 16 x 32,000
/// pages if they are close together.
pub(crate) const LISTS_PER_COMMIT: usize = 16;

/// Maximum number of changes kept: more cannot fit in a meta record.
const CHANGES_MAX: usize = 256;

#[derive(Debug)]
pub(crate) struct Space {
    pub(super) page_size: usize,
    pub(super) region_pages: u64,
    /// Length of the file in pages.
    pub(super) pages: u64,
    pub(super) regions: Vec<Region>,
    /// Zone of the last single page allocated.
    page_region: usize,
    /// Range from which the transaction takes adjacent pages.
    pub(super) current_range: CurrentRange,
    pub(super) recent: Recent,
    /// Dead ranges in memory, by holder.
    pub(super) retained: BTreeMap<u64, Vec<FreedRange>>,
    pub(super) retained_pages: u64,
    /// Dead ranges on disk.
    pub(super) stacks: Vec<Stack>,
    pub(super) directory: Vec<Ptr>,
    /// The directory on disk is out of date.
    pub(super) stacks_changed: bool,
    /// Lists taken from the stacks since the last record.
    pub(super) popped: Vec<Ptr>,
    pub(super) changes: Changes,
    pub(super) overflow: bool,
    pub(super) touched: BTreeSet<usize>,
    pub(super) base: Base,
    /// Free pages that were punched: the file system would have to allocate space for them.
    pub(super) punched: RangeSet,
    pub(super) punched_pages: u64,
    /// Free space of the second file.
    pub(crate) large: Option<Box<Large>>,
    /// The newest two durable transactions.
    pub(crate) durable: [u64; 2],
    /// Counts since the file was opened.
    pub(crate) work: Work,
}

/// Counts of operations, which prove bounds without timing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    /// Lists taken from the stacks of ended holders.
    pub(crate) lists_taken: u64,
    /// Lists written.
    pub(crate) lists_written: u64,
    /// Bitmaps written.
    pub(crate) bitmaps_written: u64,
}

impl Space {
    /// A file of `pages` pages, all used.
    pub(crate) fn new(page_size: usize, pages: u64, base: Base, durable: [u64; 2]) -> Self {
        let mut space = Self {
            page_size,
            region_pages: region_pages(page_size),
            pages: 0,
            regions: Vec::new(),
            page_region: 0,
            current_range: CurrentRange::default(),
            recent: Recent::default(),
            retained: BTreeMap::new(),
            retained_pages: 0,
            stacks: Vec::new(),
            directory: Vec::new(),
            stacks_changed: false,
            popped: Vec::new(),
            changes: Changes::default(),
            overflow: false,
            touched: BTreeSet::new(),
            base,
            punched: RangeSet::default(),
            punched_pages: 0,
            large: None,
            durable,
            work: Work::default(),
        };
        space.add_regions(pages);
        space.pages = pages;
        space
    }

    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    pub(crate) fn free_pages(&self) -> u64 {
        self.regions.iter().map(Region::free_count).sum()
    }

    pub(crate) fn retained_pages(&self) -> u64 {
        self.retained_pages
    }

    pub(crate) fn longest_free(&self) -> u64 {
        self.regions.iter().map(Region::longest).max().unwrap_or(0)
    }

    /// Held ranges in memory.
    pub(crate) fn retained(&self) -> impl Iterator<Item = &FreedRange> {
        self.retained.values().flatten()
    }

    /// Number of held pages by holder, ascending.
    pub(crate) fn retained_by_snapshot(&self) -> Vec<(u64, u64)> {
        let mut retained = BTreeMap::new();
        for (&snapshot_txn, ranges) in &self.retained {
            *retained.entry(snapshot_txn).or_default() +=
                ranges.iter().map(|range| range.pages).sum::<u64>();
        }
        for stack in &self.stacks {
            *retained.entry(stack.snapshot_txn).or_default() += stack.pages;
        }
        retained.into_iter().collect()
    }

    /// Held ranges on disk.
    pub(crate) fn stacks(&self) -> &[Stack] {
        &self.stacks
    }

    /// All pages of the structure except the lists on the stacks; includes the lists taken since the last record.
    pub(crate) fn structure(&self) -> impl Iterator<Item = &Ptr> {
        let own = self.directory.iter().chain(&self.popped);
        let large = self.large.iter().flat_map(|large| large.structure());
        self.base.pages().chain(own).chain(large)
    }

    fn add_regions(&mut self, pages: u64) {
        while (self.regions.len() as u64) * self.region_pages < pages {
            self.regions.push(Region::new(self.region_pages));
        }
    }

    /// Calls `f(region number, region, from, len)` for the part of a range in each region.
    pub(super) fn for_regions(
        &mut self,
        page: u64,
        pages: u64,
        mut f: impl FnMut(usize, &mut Region, u64, u64),
    ) {
        let (mut at, end) = (page, page + pages);
        while at < end {
            let number = (at / self.region_pages) as usize;
            let from = at % self.region_pages;
            let len = (self.region_pages - from).min(end - at);
            f(number, &mut self.regions[number], from, len);
            at += len;
        }
    }

    /// The second file and the place in it, if the page lies there.
    fn in_large(&mut self, page: u64) -> Option<(&mut Large, u64)> {
        if !is_large_page(page) {
            return None;
        }
        let large = self.large.as_deref_mut()?;
        let place = large.place(page)?;
        Some((large, place))
    }

    /// True if the range lies in the file after the head, or in the second file.
    pub(crate) fn in_file(&self, page: u64, pages: u64) -> bool {
        if is_large_page(page) {
            let place =
                |large: &Large| large.place(page).is_some_and(|at| large.in_file(at, pages));
            return self.large.as_deref().is_some_and(place);
        }
        page >= first_page(self.page_size)
            && pages > 0
            && page.checked_add(pages).is_some_and(|end| end <= self.pages)
    }

    pub(crate) fn any_free(&mut self, page: u64, pages: u64) -> bool {
        if let Some((large, place)) = self.in_large(page) {
            return large.any_free(place, pages);
        }
        let mut any = false;
        self.for_regions(page, pages, |_, region, from, len| {
            any |= region.any_free(from, len);
        });
        any
    }

    /// Calls `f` for free ranges, ascending.
    pub(crate) fn for_each_free(&mut self, mut f: impl FnMut(u64)) {
        for page in first_page(self.page_size)..self.pages {
            let region = &self.regions[(page / self.region_pages) as usize];
            if region.is_free(page % self.region_pages, 1) {
                f(page);
            }
        }
    }

    /// Adjusts to a file that has grown.
    pub(crate) fn grow(&mut self, pages: u64) {
        let old = self.pages;
        assert!(pages >= old, "a file only grows");
        if pages == old {
            return;
        }
        self.add_regions(pages);
        self.pages = pages;
        self.search_again();
        let mut touched = std::mem::take(&mut self.touched);
        self.for_regions(old, pages - old, |number, region, from, len| {
            region.release(from, len);
            touched.insert(number);
        });
        self.touched = touched;
    }

    /// Number of free pages at the end of the file, which growth extends.
    pub(crate) fn tail_free(&self) -> u64 {
        let Some(last) = self.pages.checked_sub(1) else {
            return 0;
        };
        let region = &self.regions[(last / self.region_pages) as usize];
        region.run_before(last % self.region_pages + 1)
    }

    /// The length of the file in pages for the next meta record: free pages at the end are left out, down to `least`.
    pub(crate) fn stored_pages(&self, least: u64) -> u64 {
        let mut end = self.pages;
        while end > least {
            let number = ((end - 1) / self.region_pages) as usize;
            let start = number as u64 * self.region_pages;
            if let Some(last) = self.regions[number].last_used(end - start) {
                return (start + last + 1).max(least);
            }
            end = start;
        }
        least
    }

    /// Takes one page, adjacent to the previous one if possible; unpunched pages are preferred while there are any.
    pub(crate) fn take_page(&mut self) -> Option<u64> {
        if let Some(page) = self.take_recent() {
            return Some(page);
        }
        if let Some(page) = self.take_next_to(1) {
            return Some(page);
        }
        let number = self.page_region;
        let usable = |region: &Region| region.used_for != Use::Extents && region.free_count() > 0;
        let (found, bit) = match self.regions.get_mut(number) {
            Some(region) if usable(region) && self.punched_pages == 0 => {
                (number, region.first_free()?)
            }
            Some(region) if usable(region) => match self.written_page(number) {
                Some(bit) => (number, bit),
                None => self.find_page()?,
            },
            _ => self.find_page()?,
        };
        self.page_region = found;
        let region = &mut self.regions[found];
        region.take(bit, 1);
        if region.used_for == Use::Any {
            region.used_for = Use::Pages;
        }
        let page = found as u64 * self.region_pages + bit;
        self.unpunch(page, 1);
        Some(page)
    }

    /// The lowest free page of a region that is not punched.
    fn written_page(&mut self, number: usize) -> Option<u64> {
        let start = number as u64 * self.region_pages;
        let mut bit = self.regions[number].first_free()?;
        while let Some(end) = self.punched.end_of(start + bit) {
            bit = self.regions[number].free_from(end.checked_sub(start)?.min(self.region_pages))?;
        }
        Some(bit)
    }

    fn find_page(&mut self) -> Option<(usize, u64)> {
        if self.punched_pages > 0 && self.punched_pages < self.free_pages() {
            for extents in [false, true] {
                for number in 0..self.regions.len() {
                    if self.regions[number].free_count() > 0
                        && (self.regions[number].used_for == Use::Extents) == extents
                        && let Some(bit) = self.written_page(number)
                    {
                        return Some((number, bit));
                    }
                }
            }
        }
        let number = self.find_page_region()?;
        let bit = self.regions[number].first_free()?;
        Some((number, bit))
    }

    pub(super) fn unpunch(&mut self, page: u64, pages: u64) {
        if self.punched_pages > 0 {
            self.punched_pages -= self.punched.cut_out(page, pages);
        }
    }

    /// Number of free pages that have space in the file system.
    pub(crate) fn written_free_pages(&self) -> u64 {
        self.free_pages() - self.punched_pages
    }

    /// Number of free pages before `end` that have space in the file system; all pages behind `end` are free.
    pub(crate) fn written_free_before(&self, end: u64) -> u64 {
        let behind = self.pages.saturating_sub(end);
        let punched = self.punched.iter().map(|(page, pages)| {
            let until = (page + pages).min(end);
            until.saturating_sub(page)
        });
        self.free_pages()
            .saturating_sub(behind)
            .saturating_sub(punched.sum())
    }

    /// Free ranges of at least `least` pages that are not punched yet, in the region after the last one queried.
    pub(crate) fn unpunched(&mut self, cursor: &mut usize, least: u64) -> Vec<(u64, u64)> {
        if self.regions.is_empty() {
            return Vec::new();
        }
        *cursor = (*cursor + 1) % self.regions.len();
        let start = *cursor as u64 * self.region_pages;
        let mut ranges = self.regions[*cursor].ranges(least);
        ranges.retain(|&(page, pages)| !self.punched.contains(start + page, pages));
        ranges
            .iter()
            .map(|&(page, pages)| (start + page, pages))
            .collect()
    }

    /// Records that these free pages were punched.
    pub(crate) fn punch(&mut self, page: u64, pages: u64) {
        self.unpunch(page, pages);
        self.punched.insert(page, pages);
        self.punched_pages += pages;
    }

    /// End of the used and held pages, in pages.
    pub(crate) fn end(&self) -> u64 {
        self.stored_pages(first_page(self.page_size))
    }

    /// Adjusts to a file truncated to this many pages; the removed pages were free.
    pub(crate) fn cut(&mut self, pages: u64) {
        self.unpunch(pages, self.pages - pages);
        self.pages = pages;
        self.regions
            .truncate(pages.div_ceil(self.region_pages) as usize);
        if let Some(last) = self.regions.last_mut()
            && !pages.is_multiple_of(self.region_pages)
        {
            last.cut(pages % self.region_pages);
        }
        self.page_region = 0;
        self.current_range = CurrentRange::default();
    }

    pub(crate) fn region_pages(&self) -> u64 {
        self.region_pages
    }

    /// Number of pages that the structure on disk describes: the file of a record is at least that long.
    pub(crate) fn described(&self) -> u64 {
        self.base.pages
    }

    /// True if the structure describes at least `slack` pages beyond the end of the used and held ones.
    pub(crate) fn describes_too_much(&self, slack: u64) -> bool {
        self.base.pages >= self.end().saturating_add(slack)
    }

    /// Makes the next record rewrite the structure.
    pub(crate) fn rewrite(&mut self) {
        self.overflow = true;
        self.changes.clear();
    }

    /// Takes the lowest range that is long enough.
    pub(crate) fn take_lowest(&mut self, pages: u64) -> Option<u64> {
        let regions = self.regions.iter_mut().enumerate();
        let (number, bit) = regions
            .filter_map(|(number, region)| region.find(pages).map(|bit| (number, bit)))
            .next()?;
        self.regions[number].take(bit, pages);
        let page = number as u64 * self.region_pages + bit;
        self.unpunch(page, pages);
        Some(page)
    }

    /// Length of the lowest free range of at least `least` pages, counted up to `most`.
    pub(crate) fn lowest_run(&mut self, least: u64, most: u64) -> Option<u64> {
        self.regions.iter_mut().find_map(|region| {
            let bit = region.find(least)?;
            Some(region.run_from(bit, most).min(most))
        })
    }

    /// Makes the next record rewrite the pages of the structure at or beyond a page.
    pub(crate) fn move_structure(&mut self, boundary: u64) {
        let beyond = |ptr: &Ptr| ptr.addr / self.page_size as u64 >= boundary;
        let per_directory = super::base::regions_per_directory(self.page_size);
        let regions = self.base.bitmaps.iter().enumerate();
        let mut touched: Vec<usize> = regions
            .filter(|(_, ptr)| beyond(ptr))
            .map(|(i, _)| i)
            .collect();
        let directories = self.base.directories.iter().enumerate();
        touched.extend(
            directories
                .filter(|(_, ptr)| beyond(ptr))
                .map(|(i, _)| i * per_directory),
        );
        if let Some(large) = self.large.as_deref_mut()
            && large.structure().any(beyond)
        {
            large.rewrite();
        }
        if !touched.is_empty() || self.base.roots.iter().any(beyond) || self.base.pages > boundary {
            self.touched.extend(touched);
            self.rewrite();
        }
    }

    fn find_page_region(&self) -> Option<usize> {
        let with = |extents: bool| {
            self.regions.iter().position(|region| {
                region.free_count() > 0 && (region.used_for == Use::Extents) == extents
            })
        };
        with(false).or_else(|| with(true))
    }

    /// Takes a free range of this length, if there is one.
    pub(crate) fn take_extent(&mut self, pages: u64) -> Option<u64> {
        for pass_pages in [false, true] {
            for (number, region) in self.regions.iter_mut().enumerate() {
                if (region.used_for == Use::Pages) == pass_pages
                    && let Some(bit) = region.find(pages)
                {
                    region.take(bit, pages);
                    if region.used_for == Use::Any {
                        region.used_for = Use::Extents;
                    }
                    let page = number as u64 * self.region_pages + bit;
                    self.unpunch(page, pages);
                    return Some(page);
                }
            }
        }
        None
    }

    /// Takes pages that are known to be free.
    pub(crate) fn take_at(&mut self, page: u64, pages: u64) -> u64 {
        self.for_regions(page, pages, |_, region, from, len| region.take(from, len));
        self.unpunch(page, pages);
        page
    }

    /// Makes pages allocatable that a transaction had taken and not committed.
    pub(crate) fn release(&mut self, page: u64, pages: u64) {
        if let Some((large, place)) = self.in_large(page) {
            return large.release(place, pages);
        }
        let mut longest = 0;
        self.for_regions(page, pages, |_, region, from, len| {
            longest = longest.max(region.release(from, len));
        });
        self.note_free_range(longest);
    }

    /// Undoes the allocations of a transaction.
    pub(crate) fn roll_back(&mut self, txn: &mut TxnSpace) {
        for (page, pages) in txn.forget().iter() {
            self.release(page, pages);
        }
    }

    pub(super) fn note(&mut self, page: u64, pages: u64, used: bool) {
        if let Some((large, place)) = self.in_large(page) {
            return large.note(place, pages);
        }
        let (first, last) = (
            page / self.region_pages,
            (page + pages - 1) / self.region_pages,
        );
        self.touched.extend(first as usize..=last as usize);
        if !self.overflow {
            self.changes.set(page, pages, used);
            if self.changes.len() > CHANGES_MAX {
                self.overflow = true;
                self.changes.clear();
            }
        }
    }

    /// Enters the allocations of a transaction into the next record.
    pub(crate) fn stage(&mut self, txn: &TxnSpace) {
        for (page, pages) in txn.own.iter() {
            self.note(page, pages, true);
        }
    }

    /// Marks the ranges that a transaction has taken in the second file as different from its bitmaps.
    pub(crate) fn note_large(&mut self, txn: &TxnSpace) {
        for (page, pages) in txn.own.iter().filter(|(page, _)| is_large_page(*page)) {
            self.note(page, pages, true);
        }
    }

    /// Reverts `stage`.
    pub(crate) fn unstage(&mut self, txn: &TxnSpace) {
        for (page, pages) in txn.own.iter() {
            self.note(page, pages, false);
        }
        self.overflow = true;
        self.changes.clear();
    }

    /// Completes a commit without a record: the ranges that it freed are initially held by the commit before it.
    pub(crate) fn committed(&mut self, txn: u64, freed_ranges: Vec<FreedRange>) {
        self.retained_pages += freed_ranges.iter().map(|range| range.pages).sum::<u64>();
        if !freed_ranges.is_empty() {
            self.retained
                .entry(txn - 1)
                .or_default()
                .extend(freed_ranges);
        }
    }

    /// Sets the newest durable commit.
    pub(crate) fn durable_is(&mut self, txn: u64) {
        if txn != self.durable[0] {
            self.durable = [txn, self.durable[0]];
        }
    }

    /// Validates a freed range named by the file: inside the file, and not free or freed already.
    pub(crate) fn can_free(&mut self, txn: &TxnSpace, page: u64, pages: u64) -> Result<(), String> {
        if !self.in_file(page, pages) {
            return Err("a range outside the file".into());
        }
        if self.any_free(page, pages) {
            return Err("a range that is free already".into());
        }
        if txn.own.overlaps(page, pages) || txn.freed_all.overlaps(page, pages) {
            return Err("a range that this transaction has allocated or freed".into());
        }
        Ok(())
    }
}
