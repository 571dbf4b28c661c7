//! Free space: allocation, and the free-space part of the next meta record.
//!
//! Invariants
//! 1. A page is one of: head, used, held (freed, but visible to a snapshot) or free. In a meta record, held pages
//!    count as used and are on a list, so that any process that opens the file knows which pages become free, and
//!    when.
//! 2. A range born at b and freed at d is held by every snapshot s with b <= s < d. It is recorded under one of these
//!    (`pending`), in memory or on that holder's stack of lists on disk. When that holder ends, the range moves to
//!    another holder or becomes free.
//! 3. Pending ranges in memory form the pending list of the next meta record, or that meta record moves them to the
//!    stacks (`plan`).
//! 4. `changes` lists the differences between the structure on disk (`base`) and the free space of the next meta
//!    record, unless the list has become too long (`overflow`). `touched` are the regions that differ.
//! 5. Taking a list from a stack changes memory only. The page of the list stays in use until a meta record without
//!    it was written (`popped`).
//!
//! The work per commit is bounded: it processes the ranges that the transaction itself freed, and at most
//! `LISTS_PER_COMMIT` lists of ended holders. It processes more lists only to avoid growing the file.

use super::base::Base;
use super::free_map::FreeMap;
use super::large::Large;
use super::lists::Stack;
use super::pending::Pending;
use super::placement::CurrentRange;
use super::placement::Recent;
use super::ranges::Changes;
use super::region::{Region, Use};
use super::txn::TxnSpace;
use crate::error::Result;
use crate::format::layout::{first_page, is_large_page};
use crate::format::meta::FreedRange;
use crate::format::ptr::Ptr;

/// Maximum number of list pages that one write transaction takes from the stacks of holders that have ended. These
/// lists have at most 16 x 125 ranges, or 16 x 32,000 pages if the pages are close together.
pub(crate) const LISTS_PER_COMMIT: usize = 16;

/// Maximum number of changes kept in memory, since more do not fit into a meta record.
const CHANGES_MAX: usize = 256;

#[derive(Debug)]
pub(crate) struct Space {
    /// Free pages of the first file.
    pub(crate) map: FreeMap,
    /// Region in which the last single page was allocated.
    page_region: usize,
    /// Range from which the transaction allocates adjacent pages.
    pub(super) current_range: CurrentRange,
    pub(super) recent: Recent,
    /// Freed ranges that snapshots still see (held ranges).
    pub(super) pending: Pending,
    pub(super) changes: Changes,
    pub(super) overflow: bool,
    pub(super) base: Base,
    /// Free space of the second file, if there is one.
    pub(crate) large: Option<Box<Large>>,
    /// Transaction numbers of the newest two durable commits, the newest first.
    pub(crate) durable: [u64; 2],
    /// Counters of the operations since the file was opened.
    pub(crate) work: Work,
}

/// Counters of operations. Tests use them to prove bounds without measuring time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    /// Number of list pages taken from the stacks of holders that have ended.
    pub(crate) lists_taken: u64,
    /// Number of list pages written.
    pub(crate) lists_written: u64,
    /// Number of bitmap pages written.
    pub(crate) bitmaps_written: u64,
}

impl Space {
    /// Creates the free space of a file of `pages` pages, all of which are in use.
    pub(crate) fn new(page_size: usize, pages: u64, base: Base, durable: [u64; 2]) -> Self {
        Self {
            map: FreeMap::new(page_size, pages),
            page_region: 0,
            current_range: CurrentRange::default(),
            recent: Recent::default(),
            pending: Pending::default(),
            changes: Changes::default(),
            overflow: false,
            base,
            large: None,
            durable,
            work: Work::default(),
        }
    }

    /// Asserts the invariants that hold for any file, damaged or not. Must be called before a meta record is written,
    /// and after it was read.
    pub(crate) fn check(&self) {
        self.map.check();
        if let Some(large) = &self.large {
            large.map.check();
        }
        assert!(
            self.durable[0] >= self.durable[1],
            "the durable states are out of order"
        );
        assert!(
            !self.overflow || self.changes.len() == 0,
            "changes are listed that were given up"
        );
        assert!(
            self.changes.len() <= CHANGES_MAX,
            "more changes than a record can list"
        );
        self.pending.check();
    }

    pub(crate) fn pages(&self) -> u64 {
        self.map.pages()
    }

    pub(crate) fn free_pages(&self) -> u64 {
        self.map.free_pages()
    }

    pub(crate) fn retained_pages(&self) -> u64 {
        self.pending.pages
    }

    pub(crate) fn longest_free(&self) -> u64 {
        self.map
            .regions
            .iter()
            .map(Region::longest)
            .max()
            .unwrap_or(0)
    }

    /// Returns the held ranges (freed, but visible to a snapshot) in memory.
    pub(crate) fn retained(&self) -> impl Iterator<Item = &FreedRange> {
        self.pending.in_memory()
    }

    /// Returns the number of held pages for each holder (the transaction of a snapshot, pin or savepoint), in
    /// ascending order of holders.
    pub(crate) fn retained_by_snapshot(&self) -> Vec<(u64, u64)> {
        self.pending.by_snapshot()
    }

    /// Returns the stacks of list pages with the held ranges in the file.
    pub(crate) fn stacks(&self) -> &[Stack] {
        &self.pending.stacks
    }

    /// Returns pointers to all pages of the free-space structure except the list pages on the stacks. Includes list
    /// pages taken from stacks since the last meta record.
    pub(crate) fn structure(&self) -> impl Iterator<Item = &Ptr> {
        let own = self.pending.directory.iter().chain(&self.pending.popped);
        let large = self.large.iter().flat_map(|large| large.structure());
        self.base.pages().chain(own).chain(large)
    }

    /// If the page lies in the second file, returns the free space of that file and the index of the page in it.
    fn in_large(&mut self, page: u64) -> Option<(&mut Large, u64)> {
        if !is_large_page(page) {
            return None;
        }
        let large = self.large.as_deref_mut()?;
        let place = large.place(page)?;
        Some((large, place))
    }

    /// Whether the range lies inside the first file and after its head, or inside the second file.
    pub(crate) fn in_file(&self, page: u64, pages: u64) -> bool {
        if is_large_page(page) {
            let place = |large: &Large| {
                large
                    .place(page)
                    .is_some_and(|at| large.map.in_file(at, pages))
            };
            return self.large.as_deref().is_some_and(place);
        }
        self.map.in_file(page, pages)
    }

    pub(crate) fn any_free(&mut self, page: u64, pages: u64) -> bool {
        if let Some((large, place)) = self.in_large(page) {
            return large.map.any_free(place, pages);
        }
        self.map.any_free(page, pages)
    }

    /// Calls `f` with the number of every free page of the first file, in ascending order.
    pub(crate) fn for_each_free(&mut self, mut f: impl FnMut(u64)) {
        let pages = first_page(self.map.page_size)..self.map.pages();
        pages
            .filter(|&page| self.map.is_free(page))
            .for_each(&mut f);
    }

    /// Adds free pages at the end, because the file has grown to `pages` pages.
    pub(crate) fn grow(&mut self, pages: u64) {
        if pages > self.pages() {
            self.search_again();
        }
        self.map.grow(pages);
    }

    /// Number of free pages at the end of the file. If the file grows, the new pages follow them.
    pub(crate) fn tail_free(&self) -> u64 {
        let Some(last) = self.pages().checked_sub(1) else {
            return 0;
        };
        let (number, bit) = self.map.place(last);
        self.map.regions[number].run_before(bit + 1)
    }

    /// Returns the length of the file in pages for the next meta record. Free pages at the end are not counted, but
    /// the length is at least `least`.
    pub(crate) fn stored_pages(&self, least: u64) -> u64 {
        self.map.end_from(least)
    }

    /// Allocates one page, adjacent to the previous page if possible. Pages in punched holes are allocated only if
    /// there are no other free pages.
    pub(crate) fn take_page(&mut self) -> Option<u64> {
        if let Some(page) = self.take_recent() {
            return Some(page);
        }
        if let Some(page) = self.take_next_to(1) {
            return Some(page);
        }
        let number = self.page_region;
        let usable = |region: &Region| region.used_for != Use::Extents && region.free_count() > 0;
        let unpunched = self.map.punched_pages() == 0;
        let (found, bit) = match self.map.regions.get_mut(number) {
            Some(region) if usable(region) && unpunched => (number, region.first_free()?),
            Some(region) if usable(region) => match self.written_page(number) {
                Some(bit) => (number, bit),
                None => self.find_page()?,
            },
            _ => self.find_page()?,
        };
        self.page_region = found;
        let page = self.map.take_at(self.map.page_at(found, bit), 1);
        self.map.regions[found].mark(Use::Pages);
        Some(page)
    }

    /// Returns the lowest free page of region `number` that is not in a punched hole.
    fn written_page(&mut self, number: usize) -> Option<u64> {
        let start = self.map.page_at(number, 0);
        let region = &mut self.map.regions[number];
        let mut bit = region.first_free()?;
        while let Some(end) = self.map.punched.end_of(start + bit) {
            bit = region.free_from(end.checked_sub(start)?.min(self.map.region_pages))?;
        }
        Some(bit)
    }

    fn find_page(&mut self) -> Option<(usize, u64)> {
        if (1..self.free_pages()).contains(&self.map.punched_pages()) {
            for extents in [false, true] {
                for number in 0..self.map.regions.len() {
                    let region = &self.map.regions[number];
                    if region.free_count() > 0
                        && (region.used_for == Use::Extents) == extents
                        && let Some(bit) = self.written_page(number)
                    {
                        return Some((number, bit));
                    }
                }
            }
        }
        let number = self.find_page_region()?;
        let bit = self.map.regions[number].first_free()?;
        Some((number, bit))
    }

    /// Number of free pages for which the file system has allocated space.
    pub(crate) fn written_free_pages(&self) -> u64 {
        self.map.written_free_pages()
    }

    /// Number of free pages before page `end` for which the file system has allocated space; all pages from `end` on
    /// must be free.
    pub(crate) fn written_free_before(&self, end: u64) -> u64 {
        let behind = self.pages().saturating_sub(end);
        let punched = self.map.punched.iter().map(|(page, pages)| {
            let until = (page + pages).min(end);
            until.saturating_sub(page)
        });
        self.free_pages()
            .saturating_sub(behind)
            .saturating_sub(punched.sum())
    }

    /// Number of the first page after all pages that are in use or still held by a snapshot, pin or savepoint.
    pub(crate) fn end(&self) -> u64 {
        self.map.end()
    }

    /// Removes free pages at the end, because the file was truncated to `pages` pages.
    pub(crate) fn cut(&mut self, pages: u64) {
        self.map.cut(pages);
        self.page_region = 0;
        self.current_range = CurrentRange::default();
    }

    pub(crate) fn region_pages(&self) -> u64 {
        self.map.region_pages
    }

    /// Number of pages that the free-space structure in the file describes. The file of a meta record is at least
    /// that long.
    pub(crate) fn described(&self) -> u64 {
        self.base.pages
    }

    /// Whether the free-space structure describes at least `slack` pages beyond the last page that is in use or held.
    pub(crate) fn describes_too_much(&self, slack: u64) -> bool {
        self.base.pages >= self.end().saturating_add(slack)
    }

    /// Makes the next meta record rewrite the free-space structure in the file, because a list of changes would not
    /// be correct.
    pub(crate) fn rewrite(&mut self) {
        self.overflow = true;
        self.changes.clear();
    }

    /// Allocates the lowest free range that has `pages` pages; returns its first page.
    pub(crate) fn take_lowest(&mut self, pages: u64) -> Option<u64> {
        self.map.take_lowest(pages)
    }

    /// Length of the lowest free range of at least `least` pages, counted up to `most` pages.
    pub(crate) fn lowest_run(&mut self, least: u64, most: u64) -> Option<u64> {
        self.map.regions.iter_mut().find_map(|region| {
            let bit = region.find(least)?;
            Some(region.run_from(bit, most).min(most))
        })
    }

    /// Makes the next meta record rewrite the pages of the free-space structure at or beyond page `boundary`, so that
    /// these pages move.
    pub(crate) fn move_structure(&mut self, boundary: u64) {
        let beyond = |ptr: &Ptr| ptr.addr / self.map.page_size as u64 >= boundary;
        let per_directory = super::base::regions_per_directory(self.map.page_size);
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
            self.map.touched.extend(touched);
            self.rewrite();
        }
    }

    fn find_page_region(&self) -> Option<usize> {
        let with = |extents: bool| {
            self.map.regions.iter().position(|region| {
                region.free_count() > 0 && (region.used_for == Use::Extents) == extents
            })
        };
        with(false).or_else(|| with(true))
    }

    /// Allocates a free range of `pages` pages, if there is one; returns its first page.
    pub(crate) fn take_extent(&mut self, pages: u64) -> Option<u64> {
        for pass_pages in [false, true] {
            let mut regions = self.map.regions.iter_mut().enumerate();
            let found = regions.find_map(|(number, region)| {
                let wanted = (region.used_for == Use::Pages) == pass_pages;
                Some((number, wanted.then(|| region.find(pages)).flatten()?))
            });
            if let Some((number, bit)) = found {
                self.map.regions[number].mark(Use::Extents);
                return Some(self.map.take_at(self.map.page_at(number, bit), pages));
            }
        }
        None
    }

    /// Allocates pages that are known to be free; returns the first page.
    pub(crate) fn take_at(&mut self, page: u64, pages: u64) -> u64 {
        self.map.take_at(page, pages)
    }

    /// Makes pages allocatable, for example pages that a transaction has allocated and not committed.
    pub(crate) fn release(&mut self, page: u64, pages: u64) {
        if let Some((large, place)) = self.in_large(page) {
            large.release(place, pages);
            return;
        }
        let longest = self.map.release(page, pages);
        self.note_free_range(longest);
    }

    /// Frees the pages that a transaction has allocated, because the transaction is rolled back.
    pub(crate) fn roll_back(&mut self, txn: &mut TxnSpace) {
        for (page, pages) in txn.forget().iter() {
            self.release(page, pages);
        }
        debug_assert!(txn.is_empty(), "a transaction keeps pages after its end");
    }

    pub(super) fn note(&mut self, page: u64, pages: u64, used: bool) {
        if let Some((large, place)) = self.in_large(page) {
            return large.map.touch(place, pages);
        }
        self.map.touch(page, pages);
        if !self.overflow {
            self.changes.set(page, pages, used);
            if self.changes.len() > CHANGES_MAX {
                self.overflow = true;
                self.changes.clear();
            }
        }
    }

    /// Adds the allocations of a transaction to the changes that the next meta record lists.
    pub(crate) fn stage(&mut self, txn: &TxnSpace) {
        for (page, pages) in txn.own.iter() {
            self.note(page, pages, true);
        }
    }

    /// Marks the regions of the second file in which a transaction has allocated ranges as different from their
    /// bitmaps in the file.
    pub(crate) fn note_large(&mut self, txn: &TxnSpace) {
        for (page, pages) in txn.own.iter().filter(|(page, _)| is_large_page(*page)) {
            self.note(page, pages, true);
        }
    }

    /// Reverts `stage`, because the commit of the transaction has failed.
    pub(crate) fn unstage(&mut self, txn: &TxnSpace) {
        for (page, pages) in txn.own.iter() {
            self.note(page, pages, false);
        }
        self.overflow = true;
        self.changes.clear();
    }

    /// Completes a commit without a meta record: the ranges that it freed are held for the commit before it.
    pub(crate) fn committed(&mut self, txn: u64, freed_ranges: &[FreedRange]) {
        debug_assert!(
            freed_ranges
                .iter()
                .all(|range| range.birth < txn && range.freed == txn),
            "a range that another transaction freed"
        );
        self.pending.add(txn - 1, freed_ranges);
    }

    /// Records that the commit `txn` is the newest durable one.
    pub(crate) fn durable_is(&mut self, txn: u64) {
        assert!(txn >= self.durable[0], "the durable state goes back");
        if txn != self.durable[0] {
            self.durable = [txn, self.durable[0]];
        }
    }

    /// Checks a range that a transaction wants to free. The file may be damaged, so the range may be wrong: it must
    /// lie inside the file, and must not be free or freed already.
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
