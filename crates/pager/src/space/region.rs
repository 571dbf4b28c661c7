//! One region of the file: the pages that one bitmap page describes. A set bit stands for a free page.
//!
//! Invariants
//! 1. `count` is the number of set bits of `free`; `longest` is at least the length of its longest run.
//! 2. No set bit of `free` lies before word `first`.

/// Main use of a region. Single pages and extents prefer different regions, so that single pages do not break up the
/// long free ranges that extents need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Use {
    Any = 0,
    Pages = 1,
    Extents = 2,
}

impl Use {
    pub(crate) fn from_u8(number: u8) -> Self {
        match number {
            1 => Self::Pages,
            2 => Self::Extents,
            _ => Self::Any,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Region {
    free: Vec<u64>,
    count: u64,
    longest: u64,
    first: usize,
    pub(crate) used_for: Use,
}

/// Calls `f` with the index and the mask of each word of a bitmap that contains bits of `[from, from + len)`.
fn for_words(from: u64, len: u64, mut f: impl FnMut(usize, u64)) {
    let (mut at, end) = (from, from + len);
    while at < end {
        let bits = (64 - at % 64).min(end - at);
        let mask = if bits == 64 {
            u64::MAX
        } else {
            ((1 << bits) - 1) << (at % 64)
        };
        f((at / 64) as usize, mask);
        at += bits;
    }
}

impl Region {
    /// Creates a region of `pages` pages, none of which is free.
    pub(crate) fn new(pages: u64) -> Self {
        assert!(pages > 0, "a region has pages");
        let words = pages.div_ceil(64) as usize;
        Self {
            free: vec![0; words],
            count: 0,
            longest: 0,
            first: words,
            used_for: Use::Any,
        }
    }

    /// Asserts that the count, the longest range and the first free page of the region fit its bitmap.
    pub(super) fn check(&self) {
        debug_assert_eq!(
            self.free
                .iter()
                .map(|word| u64::from(word.count_ones()))
                .sum::<u64>(),
            self.count,
            "free pages of a region are miscounted"
        );
        assert!(
            self.longest <= self.count,
            "a free range is longer than all free pages"
        );
        assert!(self.first <= self.free.len(), "a word of the region");
        debug_assert!(
            self.free[..self.first].iter().all(|&word| word == 0),
            "a free page lies before the first one"
        );
    }

    /// Sets the use of the region (single pages or extents), if the use is not determined yet.
    pub(super) fn mark(&mut self, used_for: Use) {
        if self.used_for == Use::Any {
            self.used_for = used_for;
        }
    }

    pub(crate) fn free_count(&self) -> u64 {
        self.count
    }

    pub(crate) fn longest(&self) -> u64 {
        self.longest
    }

    pub(crate) fn words(&self) -> &[u64] {
        &self.free
    }

    /// Number of free pages among the first `len` pages of the region.
    pub(crate) fn free_among(&self, len: u64) -> u64 {
        let mut count = 0;
        for_words(0, len, |word, mask| {
            count += u64::from((self.free[word] & mask).count_ones());
        });
        count
    }

    /// Returns the last used page before index `len`, if there is one.
    pub(crate) fn last_used(&self, len: u64) -> Option<u64> {
        let mut end = len;
        while end > 0 {
            let (word, bits) = ((end - 1) / 64, (end - 1) % 64 + 1);
            let used = !self.free[word as usize] << (64 - bits);
            if used != 0 {
                return Some(end - 1 - u64::from(used.leading_zeros()));
            }
            end = word * 64;
        }
        None
    }

    /// Whether all pages of the range are free.
    pub(crate) fn is_free(&self, from: u64, len: u64) -> bool {
        let mut all = true;
        for_words(from, len, |word, mask| {
            all &= self.free[word] & mask == mask
        });
        all
    }

    /// Whether any page of the range is free.
    pub(crate) fn any_free(&self, from: u64, len: u64) -> bool {
        let mut any = false;
        for_words(from, len, |word, mask| any |= self.free[word] & mask != 0);
        any
    }

    /// Sets a word of the bitmap, while the free space is loaded.
    pub(crate) fn load_word(&mut self, word: usize, bits: u64) {
        self.free[word] = bits;
    }

    /// Marks a range of pages as free or used, while the free space is loaded.
    pub(crate) fn load_range(&mut self, from: u64, len: u64, free: bool) {
        for_words(from, len, |word, mask| {
            if free {
                self.free[word] |= mask;
            } else {
                self.free[word] &= !mask;
            }
        });
    }

    /// Completes loading: computes the counts after all bits were set.
    pub(crate) fn loaded(&mut self) {
        let ones = self.free.iter().map(|word| u64::from(word.count_ones()));
        self.count = ones.sum();
        self.longest = self.count;
        self.first = 0;
        self.check();
    }

    /// Marks pages as free; returns the length of the free range around them.
    pub(crate) fn release(&mut self, from: u64, len: u64) -> u64 {
        let mut already = 0;
        for_words(from, len, |word, mask| {
            already |= self.free[word] & mask;
            self.free[word] |= mask;
        });
        assert_eq!(
            already, 0,
            "pages {from}+{len} of a region are free already"
        );
        self.count += len;
        self.first = self.first.min((from / 64) as usize);
        let start = from - self.run_before(from);
        let run = self.run_from(start, u64::MAX);
        assert!(run >= len, "the range is part of the free range around it");
        self.longest = self.longest.max(run);
        run
    }

    /// Marks the free pages from index `from` on, `len` of them, as used.
    pub(crate) fn take(&mut self, from: u64, len: u64) {
        let mut all = true;
        for_words(from, len, |word, mask| {
            all &= self.free[word] & mask == mask;
            self.free[word] &= !mask;
        });
        assert!(all, "pages {from}+{len} of a region are not free");
        assert!(len <= self.count, "more pages are taken than were free");
        self.count -= len;
        self.longest = self.longest.min(self.count);
    }

    /// Returns the index of the lowest free page, if there is one.
    pub(crate) fn first_free(&mut self) -> Option<u64> {
        let found = self.free[self.first..].iter().position(|&word| word != 0);
        let Some(found) = found else {
            self.first = self.free.len();
            return None;
        };
        self.first += found;
        debug_assert!(self.free[self.first] != 0, "a word with a free page");
        Some(self.first as u64 * 64 + u64::from(self.free[self.first].trailing_zeros()))
    }

    /// Returns the index of the lowest free page at or after index `at`, if there is one.
    pub(crate) fn free_from(&self, at: u64) -> Option<u64> {
        let end = self.free.len() as u64 * 64;
        let found = self.next_free(at, end);
        debug_assert!(found >= at.min(end), "the search went back");
        (found < end).then_some(found)
    }

    /// Returns the free ranges of at least `len` pages, each as first index and number of pages.
    pub(crate) fn ranges(&self, len: u64) -> Vec<(u64, u64)> {
        let end = self.free.len() as u64 * 64;
        let (mut found, mut at) = (Vec::new(), self.next_free(0, end));
        while at < end && len <= self.longest {
            let run = self.run_from(at, u64::MAX);
            if run >= len {
                found.push((at, run));
            }
            at = self.next_free(at + run.max(1), end);
        }
        found
    }

    /// Marks the pages from index `len` on as used, because the file was truncated.
    pub(crate) fn cut(&mut self, len: u64) {
        let bits = self.free.len() as u64 * 64;
        for_words(len, bits - len, |word, mask| self.free[word] &= !mask);
        let ones = self.free.iter().map(|word| u64::from(word.count_ones()));
        self.count = ones.sum();
        self.longest = self.longest.min(self.count);
        self.check();
    }

    /// Returns the start of the first free range of at least `len` pages, if there is one.
    pub(crate) fn find(&mut self, len: u64) -> Option<u64> {
        assert!(len > 0, "a range has pages");
        if len > self.longest {
            return None;
        }
        let (mut at, mut longest) = (self.first_free()?, 0);
        let end = self.free.len() as u64 * 64;
        while at < end {
            let run = self.run_from(at, len);
            if run >= len {
                debug_assert!(self.is_free(at, len), "a found range is free");
                return Some(at);
            }
            longest = longest.max(run);
            at = self.next_free(at + run, end);
        }
        self.longest = longest;
        None
    }

    /// Returns the index of the first free page at or after `at`; `end`, the number of bits, if there is none.
    fn next_free(&self, at: u64, end: u64) -> u64 {
        let mut word = (at / 64) as usize;
        if at >= end {
            return end;
        }
        let mut bits = self.free[word] >> (at % 64) << (at % 64);
        while bits == 0 {
            word += 1;
            if word == self.free.len() {
                return end;
            }
            bits = self.free[word];
        }
        word as u64 * 64 + u64::from(bits.trailing_zeros())
    }

    /// Number of consecutive free pages from index `at` on; the count stops soon after `enough`.
    pub(crate) fn run_from(&self, at: u64, enough: u64) -> u64 {
        let mut run = 0;
        let mut at = at;
        while let Some(&word) = self.free.get((at / 64) as usize) {
            let ones = u64::from((!(word >> (at % 64))).trailing_zeros()).min(64 - at % 64);
            run += ones;
            at += ones;
            if !at.is_multiple_of(64) || ones == 0 || run >= enough {
                break;
            }
        }
        run
    }

    /// Length in pages of the free range that ends right before index `at`.
    pub(crate) fn run_before(&self, at: u64) -> u64 {
        let mut run = 0;
        let mut at = at;
        while at > 0 {
            let word = self.free[((at - 1) / 64) as usize];
            let bits = (at - 1) % 64 + 1;
            let ones = u64::from((!(word << (64 - bits))).leading_zeros()).min(bits);
            run += ones;
            at -= ones;
            if ones < bits {
                break;
            }
        }
        run
    }
}
