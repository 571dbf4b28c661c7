//! Allocation of adjacent pages, so that a commit takes few writes.
//!
//! The cost of a sync depends on the number of ranges written: four adjacent pages cost hardly more than one, and each
//! further range costs an eighth more (docs/performance/durable-commits.md). In a file that has been in use for a while
//! the lowest free pages are scattered. So a transaction looks for the lowest free range of the length that it is
//! likely to need. This is the number of pages that the previous transaction took, or twice the number already taken if
//! that is more. If there is no such range, it tries half the length, down to `RANGE_PAGES_MIN`. Below that it takes
//! the lowest single pages, to avoid breaking up longer ranges.
//!
//! Invariants
//! 1. `next..end` lies in one region. Its pages were free when it was found; each is checked again when it is taken.

use super::free_space::Space;
use super::placement::CurrentRange;
use super::region::Use;

/// Maximum length in pages of the free range that a transaction searches for.
const RANGE_PAGES_MAX: u64 = 512;
/// Minimum length in pages of a free range that is searched for. A transaction that is likely to need fewer pages
/// searches for a shorter range.
const RANGE_PAGES_MIN: u64 = 8;
/// Number of pages at the free end of the file that are left for extents. A transaction that frees space on a full
/// disk may have to copy a leaf, which needs adjacent pages.
const TAIL_PAGES: u64 = 64;

impl Space {
    /// Prepares the choice of free pages for a new transaction. With `recent`, recently freed pages are allocated
    /// first; this is for a transaction whose pages are likely to stay in the system's cache for now, so that
    /// adjacent pages would not be cheaper.
    pub(crate) fn begin_free_range(&mut self, recent: bool) {
        self.prefer_recent(recent);
        let taken = self.current_range.taken;
        self.current_range = CurrentRange {
            // Transactions without allocations are ignored, since they give no estimate of the number of pages.
            before: if taken > 0 {
                taken
            } else {
                self.current_range.before
            },
            missing: self.current_range.missing,
            ..CurrentRange::default()
        };
    }

    /// Records that pages were freed, and that they now belong to a free range of this length.
    pub(super) fn note_free_range(&mut self, pages: u64) {
        if pages >= self.current_range.missing {
            self.current_range.missing = u64::MAX;
        }
    }

    /// Forgets that no free range was found, because the file has grown.
    pub(super) fn search_again(&mut self) {
        self.current_range.over = false;
        self.current_range.missing = u64::MAX;
    }

    /// Allocates pages after the pages allocated last, or at the beginning of a new free range. Returns the first
    /// page.
    pub(crate) fn take_next_to(&mut self, pages: u64) -> Option<u64> {
        assert!(pages > 0, "a range has pages");
        if !self.range_has(pages) && !self.find_free_range(pages) {
            return None;
        }
        let page = self.map.take_at(self.current_range.next, pages);
        let (number, _) = self.map.place(page);
        self.map.regions[number].mark(Use::Pages);
        self.current_range.next += pages;
        self.current_range.taken += pages;
        assert!(
            self.current_range.next <= self.current_range.end,
            "more pages are taken than the range has"
        );
        Some(page)
    }

    fn range_has(&self, pages: u64) -> bool {
        let (page, end) = (self.current_range.next, self.current_range.end);
        let (number, bit) = self.map.place(page);
        page + pages <= end && self.map.regions[number].is_free(bit, pages)
    }

    /// Finds a new free range of at least `least` pages, from which the next pages are allocated; returns false if
    /// there is none.
    fn find_free_range(&mut self, least: u64) -> bool {
        if self.current_range.over {
            return false;
        }
        let wanted = self.current_range.before.max(self.current_range.taken * 2);
        let mut pages = wanted.min(RANGE_PAGES_MAX).max(least);
        loop {
            // A search that is known to fail is skipped: searching all free space would cost more than the rest of
            // the commit.
            if pages < self.current_range.missing {
                if let Some(page) = self.lowest_free_range(pages) {
                    self.current_range.next = page;
                    self.current_range.end = page + pages;
                    assert_eq!(
                        self.map.place(page).0,
                        self.map.place(page + pages - 1).0,
                        "the range lies in one region"
                    );
                    return true;
                }
                self.current_range.missing = pages;
            }
            pages /= 2;
            if pages < least.max(RANGE_PAGES_MIN) {
                self.current_range.over = least == 1;
                return false;
            }
        }
    }

    /// Returns the first page of the lowest free range of this length, outside of regions used for extents.
    fn lowest_free_range(&mut self, pages: u64) -> Option<u64> {
        let end = self.pages() - self.tail_free().min(TAIL_PAGES);
        let no_punched = self.map.punched_pages() == 0;
        let (region_pages, punched) = (self.map.region_pages, &self.map.punched);
        let regions = self.map.regions.iter_mut().enumerate();
        let mut usable = regions.filter(|(_, region)| region.used_for != Use::Extents);
        usable.find_map(|(number, region)| {
            let page = |bit: u64| number as u64 * region_pages + bit;
            if no_punched {
                let found = region.find(pages).map(page);
                return found.filter(|&page| page + pages <= end);
            }
            // Ranges in punched holes are not used here, so that their pages are allocated last.
            let long = region.ranges(pages).into_iter();
            long.map(|(bit, _)| page(bit))
                .find(|&page| page + pages <= end && !punched.overlaps(page, pages))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::TxnSpace;
    use super::super::base::Base;
    use crate::format::layout::first_page;
    use crate::space::free_space::Space;
    use std::collections::VecDeque;

    const PAGE: usize = 4096;
    /// Number of free pages that are never allocated, like the reserve of the pager.
    const RESERVE: u64 = 256;
    /// Number of commits after which freed pages may be allocated again.
    const HELD: usize = 3;

    /// A simulated file, with the pages that its last commits have freed.
    struct File {
        space: Space,
        retained: VecDeque<Vec<u64>>,
        hot: Vec<u64>,
        ranges: u64,
    }

    impl File {
        /// Creates a file with `pages` used pages, scattered free pages, and `hot` pages that are changed repeatedly.
        fn new(pages: u64, hot: usize) -> Self {
            let first = first_page(PAGE);
            let mut space = Space::new(PAGE, first, Base::default(), [1, 1]);
            space.grow(first + pages);
            for page in first..first + pages {
                space.take_at(page, 1);
            }
            for page in (first..first + pages).step_by(40) {
                space.release(page, 1);
            }
            let mut file = Self {
                space,
                retained: VecDeque::new(),
                hot: Vec::new(),
                ranges: 0,
            };
            let mut txn = TxnSpace::default();
            file.hot = (0..hot).map(|_| file.take(&mut txn)).collect();
            file
        }

        fn take(&mut self, txn: &mut TxnSpace) -> u64 {
            while self.space.free_pages() <= RESERVE {
                self.space.grow(self.space.pages() + 256);
            }
            let page = self.space.take_page().unwrap();
            txn.take(page, 1);
            page
        }

        /// Simulates a commit that changes the hot pages with these indices, and adds `more` pages that are not
        /// changed again.
        fn commit(&mut self, places: impl Iterator<Item = usize>, more: u64) {
            if self.retained.len() == HELD {
                for page in self.retained.pop_front().unwrap() {
                    self.space.release(page, 1);
                }
            }
            self.space.begin_free_range(false);
            let (mut txn, mut freed) = (TxnSpace::default(), Vec::new());
            for place in places {
                freed.push(self.hot[place]);
                self.hot[place] = self.take(&mut txn);
            }
            for _ in 0..more {
                self.take(&mut txn);
            }
            self.retained.push_back(freed);
            self.ranges += txn.own.iter().count() as u64;
        }
    }

    /// Each commit changes one of a hundred leaves in turn, with its branch and the root; occasionally it adds a
    /// leaf. The pages of a commit must usually form one range.
    #[test]
    fn a_small_commit_is_one_range() {
        let mut file = File::new(2000, 102);
        let before = file.space.pages();
        for n in 0..5000usize {
            file.commit([n % 100, 100, 101].into_iter(), u64::from(n % 30 == 0));
        }
        let ranges = file.ranges as f64 / 5000.0;
        let grown = file.space.pages() - before;
        println!(
            "{ranges:.2} ranges a commit, {grown} pages grown for {}",
            5000 / 30
        );
        assert!(ranges < 1.25, "{ranges} ranges a commit");
        assert!(grown <= 2 * 256, "{grown} pages");
    }

    /// Each commit changes a hundred leaves; a dozen of these are full and therefore split. The pages of a commit must
    /// form few ranges.
    #[test]
    fn a_large_commit_is_few_ranges() {
        let mut file = File::new(2000, 112);
        let before = file.space.pages();
        for _ in 0..300 {
            file.commit(0..112, 12);
        }
        let ranges = file.ranges as f64 / 300.0;
        let grown = file.space.pages() - before;
        println!(
            "{ranges:.2} ranges a commit of 124 pages, {grown} pages grown for {}",
            300 * 12
        );
        assert!(ranges < 10.0, "{ranges} ranges a commit");
        // The file may grow only for the pages that are retained, the reserve and one growth step.
        assert!(grown <= 300 * 12 + 3 * 124 + 2 * 256, "{grown} pages");
    }
}
