//! Where a transaction takes its pages: side by side, so that they reach the disk with few writes.
//!
//! A sync costs by the stretches that were written: four pages side by side hardly more than one, each further stretch an
//! eighth of the whole (decision 0015). The lowest free pages are single ones, here and there, as soon as the file has been in
//! use for a while. So the lowest free stretch is taken that is as long as the transaction is likely to need: as long as the last
//! one needed, and, once it has taken more, twice as long as that. Where there is none, half as long, but not shorter than
//! `STRETCH_PAGES_MIN`: then the lowest single pages do, lest all that is longer be broken up.
//!
//! Invariants
//! 1. `next..end` lies in one zone. Its pages were free when it was found; each is looked at again when it is taken.

use super::free_space::Space;
use super::placement::Stretch;
use super::zone::Use;

/// A longer stretch than this is not looked for.
const STRETCH_PAGES_MAX: u64 = 512;
/// A shorter one only by a transaction that is likely to need no more.
const STRETCH_PAGES_MIN: u64 = 8;
/// So much of the free end of the file is left to extents: a transaction that frees space on a full disk may have to copy a leaf,
/// and that needs pages side by side.
const TAIL_PAGES: u64 = 64;

impl Space {
    /// A transaction begins. `recent`: its pages are likely to stay in the cache for now, so side by side they cost no less.
    pub(crate) fn begin_stretch(&mut self, recent: bool) {
        self.prefer_recent(recent);
        let taken = self.stretch.taken;
        self.stretch = Stretch {
            // One that takes nothing says nothing.
            before: if taken > 0 {
                taken
            } else {
                self.stretch.before
            },
            missing: self.stretch.missing,
            ..Stretch::default()
        };
    }

    /// Pages became free, and are part of a free stretch this long.
    pub(super) fn free_stretch(&mut self, pages: u64) {
        if pages >= self.stretch.missing {
            self.stretch.missing = u64::MAX;
        }
    }

    /// The file has grown: there may be stretches again.
    pub(super) fn look_again(&mut self) {
        self.stretch.over = false;
        self.stretch.missing = u64::MAX;
    }

    /// Takes pages beside those taken last, or in a new stretch.
    pub(crate) fn take_beside(&mut self, pages: u64) -> Option<u64> {
        if !self.stretch_has(pages) && !self.find_stretch(pages) {
            return None;
        }
        let page = self.stretch.next;
        let zone = &mut self.zones[(page / self.zone_pages) as usize];
        zone.take(page % self.zone_pages, pages);
        if zone.used_for == Use::Any {
            zone.used_for = Use::Pages;
        }
        self.stretch.next += pages;
        self.stretch.taken += pages;
        self.unpunch(page, pages);
        Some(page)
    }

    fn stretch_has(&self, pages: u64) -> bool {
        let (page, end) = (self.stretch.next, self.stretch.end);
        page + pages <= end
            && self.zones[(page / self.zone_pages) as usize].is_free(page % self.zone_pages, pages)
    }

    /// Looks for the next stretch, of at least `least` pages.
    fn find_stretch(&mut self, least: u64) -> bool {
        if self.stretch.over {
            return false;
        }
        let wanted = self.stretch.before.max(self.stretch.taken * 2);
        let mut pages = wanted.min(STRETCH_PAGES_MAX).max(least);
        loop {
            // Looking through all that is free for what is not there would cost more than all else.
            if pages < self.stretch.missing {
                if let Some(page) = self.lowest_stretch(pages) {
                    self.stretch.next = page;
                    self.stretch.end = page + pages;
                    return true;
                }
                self.stretch.missing = pages;
            }
            pages /= 2;
            if pages < least.max(STRETCH_PAGES_MIN) {
                self.stretch.over = least == 1;
                return false;
            }
        }
    }

    /// The lowest stretch of so many free pages where single pages may be.
    fn lowest_stretch(&mut self, pages: u64) -> Option<u64> {
        let end = self.pages - self.tail_free().min(TAIL_PAGES);
        let (zone_pages, punched) = (self.zone_pages, &self.punched);
        let zones = self.zones.iter_mut().enumerate();
        let mut usable = zones.filter(|(_, zone)| zone.used_for != Use::Extents);
        usable.find_map(|(number, zone)| {
            let page = |bit: u64| number as u64 * zone_pages + bit;
            if self.punched_pages == 0 {
                let found = zone.find(pages).map(page);
                return found.filter(|&page| page + pages <= end);
            }
            // What was given back to the file system is taken last.
            let long = zone.stretches(pages).into_iter();
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
    /// Free pages that stay, as the pager keeps a reserve.
    const RESERVE: u64 = 256;
    /// Commits until pages that were freed may be taken again.
    const HELD: usize = 3;

    /// A file that is in use, and what its last commits freed.
    struct File {
        space: Space,
        held: VecDeque<Vec<u64>>,
        hot: Vec<u64>,
        stretches: u64,
    }

    impl File {
        /// Of `pages` pages in use, with a free one here and there, and one page for each place that is changed again and again.
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
                held: VecDeque::new(),
                hot: Vec::new(),
                stretches: 0,
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

        /// Changes these places, and adds pages that are not changed again.
        fn commit(&mut self, places: impl Iterator<Item = usize>, more: u64) {
            if self.held.len() == HELD {
                for page in self.held.pop_front().unwrap() {
                    self.space.release(page, 1);
                }
            }
            self.space.begin_stretch(false);
            let (mut txn, mut freed) = (TxnSpace::default(), Vec::new());
            for place in places {
                freed.push(self.hot[place]);
                self.hot[place] = self.take(&mut txn);
            }
            for _ in 0..more {
                self.take(&mut txn);
            }
            self.held.push_back(freed);
            self.stretches += txn.own.iter().count() as u64;
        }
    }

    /// A leaf of a hundred that take turns, its branch, the root; now and then a leaf more.
    #[test]
    fn a_small_commit_is_one_stretch() {
        let mut file = File::new(2000, 102);
        let before = file.space.pages();
        for n in 0..5000usize {
            file.commit([n % 100, 100, 101].into_iter(), u64::from(n % 30 == 0));
        }
        let stretches = file.stretches as f64 / 5000.0;
        let grown = file.space.pages() - before;
        println!(
            "{stretches:.2} stretches a commit, {grown} pages grown for {}",
            5000 / 30
        );
        assert!(stretches < 1.25, "{stretches} stretches a commit");
        assert!(grown <= 2 * 256, "{grown} pages");
    }

    /// A hundred leaves at once, of which a dozen are full.
    #[test]
    fn a_large_commit_is_few_stretches() {
        let mut file = File::new(2000, 112);
        let before = file.space.pages();
        for _ in 0..300 {
            file.commit(0..112, 12);
        }
        let stretches = file.stretches as f64 / 300.0;
        let grown = file.space.pages() - before;
        println!(
            "{stretches:.2} stretches a commit of 124 pages, {grown} pages grown for {}",
            300 * 12
        );
        assert!(stretches < 10.0, "{stretches} stretches a commit");
        // What is held, the reserve and a step of growth besides.
        assert!(grown <= 300 * 12 + 3 * 124 + 2 * 256, "{grown} pages");
    }
}
