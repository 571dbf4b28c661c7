//! What one transaction allocated and freed.

use super::ranges::RangeSet;
use crate::format::layout::is_large_page;
use crate::format::meta::Dead;
use crate::format::page_map::PageSet;

/// Room for what a transaction of a few rows frees.
const SINGLE: usize = 28;

/// Ranges that were freed, none of them twice. A transaction of ten thousand random rows frees as many single pages, here and there: their
/// numbers are kept in a table, whose places are found at once, and only what is longer as ranges.
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
            self.single.insert(page);
        } else {
            self.longer.insert(page, pages);
        }
    }

    /// Takes out what `insert` put in.
    fn remove(&mut self, page: u64, pages: u64) {
        if pages == 1 {
            self.single.remove(&page);
        } else {
            self.longer.remove(page, pages);
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

/// What one transaction allocated and freed.
#[derive(Debug, Default)]
pub(crate) struct TxnSpace {
    /// Allocated and not given back.
    pub(crate) own: RangeSet,
    /// Pages of `own`, those of the second file left out.
    pub(crate) own_pages: u64,
    /// Freed, of earlier transactions, in the order in which it was: (page, pages, birth).
    freed: Vec<(u64, u64, u64)>,
    /// The same, without the birth.
    pub(super) freed_all: FreedPages,
    /// Pages of it, those of the second file left out.
    pub(crate) freed_pages: u64,
    /// It may take what is kept for transactions that free space.
    pub(crate) frees_space: bool,
    /// It did.
    pub(crate) took_reserve: bool,
    /// It takes the lowest pages that there are, and the file is cut behind it.
    pub(crate) compacts: bool,
    /// Where it compacts: the page from which on things move.
    pub(crate) boundary: u64,
}

impl TxnSpace {
    pub(crate) fn is_empty(&self) -> bool {
        self.own.iter().next().is_none() && self.freed.is_empty()
    }

    /// A range was allocated.
    pub(crate) fn take(&mut self, page: u64, pages: u64) {
        let fresh = self.own.insert(page, pages);
        assert!(fresh, "pages {page}+{pages} are allocated twice");
        self.own_pages += pages;
    }

    /// A range of an earlier transaction is freed; `Space::can_free` said yes.
    pub(crate) fn free(&mut self, page: u64, pages: u64, birth: u64) {
        self.freed_all.insert(page, pages);
        if !is_large_page(page) {
            self.freed_pages += pages;
        }
        if self.freed.capacity() == 0 {
            self.freed.reserve(SINGLE);
        }
        self.freed.push((page, pages, birth));
    }

    /// This transaction has freed a page of an earlier one.
    pub(crate) fn has_freed(&self, page: u64) -> bool {
        self.freed_all.overlaps(page, 1)
    }

    /// A freed range is in use after all.
    pub(crate) fn unfree(&mut self, page: u64, pages: u64, birth: u64) {
        self.freed_all.remove(page, pages);
        if !is_large_page(page) {
            self.freed_pages -= pages;
        }
        // Going back takes the newest first.
        let freed = self.freed.iter();
        if let Some(at) = freed.rev().position(|range| *range == (page, pages, birth)) {
            self.freed.remove(self.freed.len() - 1 - at);
        }
    }

    /// The freed ranges as they are after the commit of `txn`, ascending.
    pub(crate) fn dead(&self, txn: u64) -> Vec<Dead> {
        let each = self.freed.iter().map(|&(page, pages, birth)| Dead {
            page,
            pages,
            birth,
            freed: txn,
        });
        let mut dead: Vec<Dead> = each.collect();
        dead.sort_unstable_by_key(|range| range.page);
        dead.dedup_by(|next, range| {
            let joins = range.page + range.pages == next.page && range.birth == next.birth;
            if joins {
                range.pages += next.pages;
            }
            joins
        });
        dead
    }

    /// Nothing was done; what was allocated is the caller's to release.
    pub(super) fn forget(&mut self) -> RangeSet {
        self.own_pages = 0;
        self.freed.clear();
        self.freed_all = FreedPages::default();
        self.freed_pages = 0;
        std::mem::take(&mut self.own)
    }
}
