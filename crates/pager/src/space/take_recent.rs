//! Recently freed pages, which are recorded if they must be reused first or overwritten with a pattern.
//!
//! Invariants
//! 1. A recorded range was free when it was recorded; each page is checked again before it is taken.

use super::free_space::Space;
use crate::format::layout::is_large_page;

/// Maximum number of recorded ranges; pages of older ranges are allocated like any other free page.
const RECENT_MAX: usize = 4096;

impl Space {
    /// Makes all later transactions allocate the most recently freed pages first.
    pub(crate) fn take_recent_first(&mut self) {
        self.recent.always = true;
    }

    /// Sets whether the running transaction allocates recently freed pages first.
    pub(super) fn prefer_recent(&mut self, now: bool) {
        self.recent.now = now;
    }

    /// Makes this free space record freed ranges, which `freed` returns.
    pub(crate) fn remember_freed(&mut self) {
        self.recent.poison.get_or_insert_default();
    }

    /// Returns ranges of the first file that were freed since the last call, and that are still free.
    pub(crate) fn freed(&mut self) -> Vec<(u64, u64)> {
        let mut freed = self
            .recent
            .poison
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default();
        freed.retain(|&(page, pages)| self.is_all_free(page, pages));
        freed
    }

    pub(super) fn became_free(&mut self, page: u64, pages: u64) {
        if is_large_page(page) {
            return;
        }
        assert!(pages > 0, "a freed range has pages");
        if self.recent.first.len() == RECENT_MAX {
            self.recent.first.pop_front();
        }
        self.recent.first.push_back((page, pages));
        assert!(
            self.recent.first.len() <= RECENT_MAX,
            "more recently freed ranges than are kept"
        );
        if let Some(poison) = &mut self.recent.poison {
            poison.push((page, pages));
        }
    }

    /// Allocates the most recently freed page that is still free and not in a punched hole.
    pub(super) fn take_recent(&mut self) -> Option<u64> {
        if !self.recent.now && !self.recent.always {
            return None;
        }
        while let Some((page, pages)) = self.recent.first.pop_back() {
            let last = page + pages - 1;
            if pages > 1 {
                self.recent.first.push_back((page, pages - 1));
            }
            if self.is_all_free(last, 1) && !self.map.punched.overlaps(last, 1) {
                return Some(self.take_at(last, 1));
            }
        }
        None
    }

    fn is_all_free(&self, page: u64, pages: u64) -> bool {
        (page..page + pages).all(|page| self.map.is_free(page))
    }
}
