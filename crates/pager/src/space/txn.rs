//! Pages that one transaction has allocated and freed.

use super::ranges::RangeSet;
use crate::format::layout::is_large_page;
use crate::format::meta::FreedRange;
use crate::format::page_map::PageSet;

/// Initial capacity of the set of freed single pages, which is enough for a transaction of a few rows.
const SINGLE: usize = 28;

/// The set of freed ranges. A transaction of ten thousand random rows frees ten thousand scattered single pages. The
/// numbers of single pages are in a hash table with constant-time lookup; only longer ranges are in a set of ranges.
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

    /// Removes a range that was added by `insert`.
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

/// Pages that one transaction has allocated and freed.
#[derive(Debug, Default)]
pub(crate) struct TxnSpace {
    /// Ranges that the transaction has allocated and not returned.
    pub(crate) own: RangeSet,
    /// Number of pages in `own` that belong to the first file.
    pub(crate) own_pages: u64,
    /// Ranges of earlier transactions that this transaction has freed, in the order of the calls: first page, number
    /// of pages, birth.
    freed: Vec<(u64, u64, u64)>,
    /// The ranges in `freed` as a set, without births.
    pub(super) freed_all: FreedPages,
    /// Number of freed pages of the first file.
    pub(crate) freed_pages: u64,
    /// Whether the transaction may use the reserve, because it frees space.
    pub(crate) frees_space: bool,
    /// Whether the transaction has used pages of the reserve.
    pub(crate) took_reserve: bool,
    /// Whether the transaction compacts the file: it allocates the lowest free pages, and the file is truncated
    /// afterwards.
    pub(crate) compacts: bool,
    /// Page number used when the transaction compacts the file: data at or beyond this page are moved.
    pub(crate) boundary: u64,
}

impl TxnSpace {
    pub(crate) fn is_empty(&self) -> bool {
        self.own.iter().next().is_none() && self.freed.is_empty()
    }

    /// Records a range that the transaction has allocated.
    pub(crate) fn take(&mut self, page: u64, pages: u64) {
        let fresh = self.own.insert(page, pages);
        assert!(fresh, "pages {page}+{pages} are allocated twice");
        self.own_pages += pages;
    }

    /// Records that the transaction frees a range of an earlier transaction, which `Space::can_free` has accepted.
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

    /// Whether this transaction has freed the page `page` of an earlier transaction.
    pub(crate) fn has_freed(&self, page: u64) -> bool {
        self.freed_all.overlaps(page, 1)
    }

    /// Reverts `free` for a range, because the transaction is rolled back to a savepoint.
    pub(crate) fn unfree(&mut self, page: u64, pages: u64, birth: u64) {
        self.freed_all.remove(page, pages);
        if !is_large_page(page) {
            assert!(
                self.freed_pages >= pages,
                "more frees are undone than were made"
            );
            self.freed_pages -= pages;
        }
        // The search begins at the end, since a rollback removes the newest ranges first.
        let freed = self.freed.iter();
        if let Some(at) = freed.rev().position(|range| *range == (page, pages, birth)) {
            self.freed.remove(self.freed.len() - 1 - at);
        }
    }

    /// Returns the freed ranges in ascending order, as the commit `txn` records them.
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

    /// Forgets all allocations and frees. The caller must release the returned allocations.
    pub(super) fn forget(&mut self) -> RangeSet {
        self.own_pages = 0;
        self.freed.clear();
        self.freed_all = FreedPages::default();
        self.freed_pages = 0;
        std::mem::take(&mut self.own)
    }
}
