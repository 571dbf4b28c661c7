//! What one transaction allocated and freed.

use super::ranges::RangeSet;
use crate::layout::is_large_page;
use crate::meta::Dead;
use std::collections::BTreeMap;

/// What one transaction allocated and freed.
#[derive(Debug, Default)]
pub(crate) struct TxnSpace {
    /// Allocated and not given back.
    pub(crate) own: RangeSet,
    /// Pages of `own`, those of the second file left out.
    pub(crate) own_pages: u64,
    /// Freed, of earlier transactions, by birth.
    freed: BTreeMap<u64, RangeSet>,
    /// The same, whatever the birth.
    pub(super) freed_all: RangeSet,
    /// Pages of it, those of the second file left out.
    pub(crate) freed_pages: u64,
    /// It may take what is kept for transactions that free space.
    pub(crate) frees_space: bool,
    /// It did.
    pub(crate) took_reserve: bool,
    /// It takes the lowest pages that there are, and the file is cut behind it.
    pub(crate) compacts: bool,
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
        self.freed.entry(birth).or_default().insert(page, pages);
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
        if let Some(ranges) = self.freed.get_mut(&birth) {
            ranges.remove(page, pages);
            if ranges.iter().next().is_none() {
                self.freed.remove(&birth);
            }
        }
    }

    /// The freed ranges as they are after the commit of `txn`, ascending.
    pub(crate) fn dead(&self, txn: u64) -> Vec<Dead> {
        let births = self.freed.iter();
        let dead = births.flat_map(|(&birth, set)| {
            set.iter().map(move |(page, pages)| Dead {
                page,
                pages,
                birth,
                freed: txn,
            })
        });
        let mut dead: Vec<Dead> = dead.collect();
        dead.sort_unstable_by_key(|range| range.page);
        dead
    }

    /// Nothing was done; what was allocated is the caller's to release.
    pub(super) fn forget(&mut self) -> RangeSet {
        self.own_pages = 0;
        self.freed.clear();
        self.freed_all = RangeSet::default();
        self.freed_pages = 0;
        std::mem::take(&mut self.own)
    }
}
