//! Allocations and frees of one transaction.

use super::ranges::RangeSet;
use crate::format::layout::is_large_page;
use crate::format::meta::FreedRange;
use crate::format::page_map::PageSet;

/// Initial capacity of the set of freed single pages: enough for a transaction of a few rows.
const SINGLE: usize = 28;

/// The set of freed ranges. A transaction of ten thousand random rows frees as many scattered single pages. Their
/// numbers are kept in a hash table with constant-time lookup; only longer ranges are kept in a set of ranges.
#[derive(Debug, Default)]
pub(super) struct FreedPages {
    single: PageSet,
    longer: RangeSet,
}

impl FreedPages {
    fn insert(&mut self, page: u64, pages: u64) {
        if pages == 1 {
            if self.single.capacity() == 0 {
                self.single.reserve(SINGLE);
            }
            let fresh = self.single.insert(page);
            debug_assert!(fresh, "page {page} is freed twice");
        } else {
            let fresh = self.longer.insert(page, pages);
            debug_assert!(fresh, "pages {page}+{pages} are freed twice");
        }
    }

    /// Removes a range added by `insert`.
    fn remove(&mut self, page: u64, pages: u64) {
        if pages == 1 {
            let removed = self.single.remove(&page);
            debug_assert!(removed, "page {page} was not freed");
        } else {
            let removed = self.longer.remove(page, pages);
            debug_assert!(removed, "pages {page}+{pages} were not freed");
        }
    }

    pub(super) fn overlaps(&self, page: u64, pages: u64) -> bool {
        let inside = page..page + pages;
        let in_single = if pages <= self.single.len() as u64 {
            inside.clone().any(|page| self.single.contains(&page))
        } else {
            self.single.iter().any(|page| inside.contains(page))
        };
        in_single || self.longer.overlaps(page, pages)
    }
}

/// Allocations and frees of one transaction.
#[derive(Debug, Default)]
pub(crate) struct TxnSpace {
    /// Ranges that the transaction has allocated and not returned.
    pub(crate) own: RangeSet,
    /// Number of pages in `own`, without the second file.
    pub(crate) own_pages: u64,
    /// Freed ranges of earlier transactions in the order of the calls: (page, pages, birth).
    freed: Vec<(u64, u64, u64)>,
    /// The freed ranges without births.
    pub(super) freed_all: FreedPages,
    /// Number of freed pages, without the second file.
    pub(crate) freed_pages: u64,
    /// Whether the transaction may use the reserve, because it frees space.
    pub(crate) frees_space: bool,
    /// Whether the transaction has used the reserve.
    pub(crate) took_reserve: bool,
    /// Whether the transaction compacts: it takes the lowest free pages, and the file is truncated afterwards.
    pub(crate) compacts: bool,
    /// When compacting: data at or beyond this page is moved.
    pub(crate) boundary: u64,
}

impl TxnSpace {
    pub(crate) fn is_empty(&self) -> bool {
        self.own.iter().next().is_none() && self.freed.is_empty()
    }

    /// Records an allocated range.
    pub(crate) fn take(&mut self, page: u64, pages: u64) {
        let fresh = self.own.insert(page, pages);
        assert!(fresh, "pages {page}+{pages} are allocated twice");
        self.own_pages += pages;
    }

    /// Records a freed range of an earlier transaction, which `Space::can_free` accepted.
    pub(crate) fn free(&mut self, page: u64, pages: u64, birth: u64) {
        self.freed_all.insert(page, pages);
        if !is_large_page(page) {
            self.freed_pages += pages;
        }
        if self.freed.capacity() == 0 {
            self.freed.reserve(SINGLE);
        }
        self.freed.push((page, pages, birth));
        debug_assert!(
            !self.own.overlaps(page, pages),
            "an allocation is freed as a range of an earlier transaction"
        );
    }

    /// Whether this transaction has freed this page of an earlier one.
    pub(crate) fn has_freed(&self, page: u64) -> bool {
        self.freed_all.overlaps(page, 1)
    }

    /// Reverts `free` for a range.
    pub(crate) fn unfree(&mut self, page: u64, pages: u64, birth: u64) {
        self.freed_all.remove(page, pages);
        if !is_large_page(page) {
            assert!(
                self.freed_pages >= pages,
                "more frees are undone than were made"
            );
            self.freed_pages -= pages;
        }
        // Search from the end, since a rollback removes the newest ranges first.
        let freed = self.freed.iter();
        if let Some(at) = freed.rev().position(|range| *range == (page, pages, birth)) {
            self.freed.remove(self.freed.len() - 1 - at);
        }
    }

    /// The freed ranges after the commit of `txn`, ascending.
    pub(crate) fn freed_ranges(&self, txn: u64) -> Vec<FreedRange> {
        let each = self.freed.iter().map(|&(page, pages, birth)| FreedRange {
            page,
            pages,
            birth,
            freed: txn,
        });
        let mut freed_ranges: Vec<FreedRange> = each.collect();
        freed_ranges.sort_unstable_by_key(|range| range.page);
        freed_ranges.dedup_by(|next, range| {
            let joins = range.page + range.pages == next.page && range.birth == next.birth;
            if joins {
                range.pages += next.pages;
            }
            joins
        });
        debug_assert!(
            freed_ranges.is_sorted_by(|a, b| a.page + a.pages <= b.page),
            "freed ranges overlap"
        );
        freed_ranges
    }

    /// Clears everything; the caller must release the returned allocations.
    pub(super) fn forget(&mut self) -> RangeSet {
        self.own_pages = 0;
        self.freed.clear();
        self.freed_all = FreedPages::default();
        self.freed_pages = 0;
        std::mem::take(&mut self.own)
    }
}
