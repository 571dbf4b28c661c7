//! Comparison of the claimed pages with the free space, in which each page is in use, free, or pending.

use super::{Check, PageSet};
use crate::format::layout::{first_page, is_large_page};
use crate::format::meta::FreedRange;
use crate::space::large::Large;
use std::collections::BTreeMap;

impl Check {
    /// Compares the claimed pages of the second file with the free space of that file; reports the differences.
    pub(super) fn compare_large(
        &mut self,
        which: &str,
        free: &PageSet,
        pages: u64,
        retained: &[FreedRange],
    ) {
        let first = Large::first_number(self.page_size as usize);
        let mut waits = PageSet::new(pages);
        for range in retained.iter().filter(|range| is_large_page(range.page)) {
            let from = range.page.saturating_sub(first).min(pages);
            for page in from..from.saturating_add(range.pages).min(pages) {
                if !waits.insert(page) || free.has(page) {
                    self.problem(format!(
                        "page {page} of the second file is listed as free twice ({which})"
                    ));
                }
            }
        }
        let head = first_page(self.page_size as usize);
        for page in head..pages.min(self.captured.large_pages) {
            let (used, free) = (
                self.claimed_large.has(page),
                free.has(page) || waits.has(page),
            );
            if used == free {
                let problem = if used {
                    "in use and free"
                } else {
                    "leaked: neither in use nor free"
                };
                self.problem(format!(
                    "page {page} of the second file {problem} ({which})"
                ));
            }
        }
    }

    /// Returns the use of each page according to the free-space lists: 0 used, 1 free, 2 pending.
    pub(super) fn states(
        &mut self,
        free: &PageSet,
        retained: &[FreedRange],
        which: &str,
    ) -> Vec<u8> {
        let mut state: Vec<u8> = (0..self.pages)
            .map(|page| u8::from(free.has(page)))
            .collect();
        let mut doubly = Vec::new();
        for range in retained {
            for page in range.page..range.page.saturating_add(range.pages).min(self.pages) {
                if state[page as usize] != 0 {
                    doubly.push(page);
                }
                state[page as usize] |= 2;
            }
        }
        for page in doubly {
            self.problem(format!("page {page} is listed as free twice ({which})"));
        }
        state
    }

    pub(super) fn compare(&mut self, which: &str, state: &[u8]) {
        // Adjacent pages with the same kind of problem are reported together.
        let mut runs: BTreeMap<u64, (u64, &str)> = BTreeMap::new();
        let mut last: Option<(u64, &str)> = None;
        for page in first_page(self.page_size as usize)..self.pages {
            let problem = match (self.claimed.has(page), state[page as usize]) {
                (true, 0) | (false, 1 | 2) => None,
                (true, 1) => Some("in use and free"),
                (true, _) => Some("in use and about to become free"),
                (false, 0) => Some("leaked: neither in use nor free"),
                (false, _) => None,
            };
            match (problem, last) {
                (Some(problem), Some((start, same))) if problem == same => {
                    runs.insert(start, (page - start + 1, problem));
                }
                (Some(problem), _) => {
                    runs.insert(page, (1, problem));
                    last = Some((page, problem));
                    continue;
                }
                (None, _) => last = None,
            }
        }
        for (page, (count, problem)) in runs {
            self.problem(format!("page {page} ({count} pages) {problem} ({which})"));
        }
    }
}
