//! The writer's view of the second file: extents for transactions, growth, holes, and truncation.
//!
//! Invariants
//! 1. The second file may be shorter than its free-space lists say, by free pages at its end, because only the next
//!    meta record stores the new length after a truncation. Before an extent is allocated, the file is grown to the
//!    end of that extent.
//! 2. Only free pages are cut off. Pages reachable from a live snapshot, a pin or one of the newest durable meta
//!    records are not free.

use super::Writer;
use super::truncate::PUNCH_BYTES_MIN;
use crate::commit::files::Files;
use crate::commit::shared::Shared;
use crate::error::{Error, Result};
use crate::format::layout::{LARGE_AT, is_large_page};
use crate::options::event::Event;
use crate::space::TxnSpace;

/// Minimum and maximum number of bytes by which the second file grows beyond the need: an eighth of its length within
/// these limits.
const STEP_MIN: u64 = 1 << 20;
const STEP_MAX: u64 = 64 << 20;

impl Writer {
    /// Allocates an extent of the second file for a transaction, and grows the second file if necessary.
    pub(crate) fn alloc_large(
        &mut self,
        shared: &Shared,
        txn: &mut TxnSpace,
        pages: u64,
    ) -> Result<u64> {
        let (page_bytes, mut retries) = (shared.files.page_size as u64, 0);
        let grown = |source| Error::of_write("growth", LARGE_AT, pages * page_bytes, source);
        let page = loop {
            let (Some(large), Some(file)) = (self.space.large.as_deref_mut(), &shared.files.large)
            else {
                return self.alloc(shared, txn, pages, true, true);
            };
            if let Some(page) = large.take(pages) {
                assert!(page >= large.first_page(), "a page of the second file");
                let place = page - large.first_page();
                match file.grow((place + pages) * page_bytes, 0) {
                    Ok(()) => break page,
                    Err(error) => {
                        large.release(place, pages);
                        return Err(grown(error));
                    }
                }
            }
            if self.take_lists(&shared.files, 1) {
                continue;
            }
            if self.wait_for_long_reader(shared, retries, false) {
                retries += 1;
                continue;
            }
            let Some(large) = self.space.large.as_deref_mut() else {
                continue;
            };
            let Some(length) = large.length_for(pages) else {
                let bytes_max = large.pages() * page_bytes;
                let needed_bytes = pages * page_bytes;
                return Err(Error::FileFull {
                    needed_bytes,
                    bytes_max,
                });
            };
            let step = if txn.compacts {
                0
            } else {
                step_of(large.pages() * page_bytes)
            };
            match file.grow(length * page_bytes, step) {
                Ok(()) => {
                    large.grow(length);
                    break large.take_tail(pages);
                }
                Err(error) => {
                    let error = grown(error);
                    if !error.is_full() || !self.wait_for_long_reader(shared, retries, true) {
                        return Err(error);
                    }
                    retries += 1;
                }
            }
        };
        assert!(is_large_page(page), "a page of the second file");
        let fresh = txn.own.insert(page, pages);
        assert!(fresh, "pages {page}+{pages} are allocated twice");
        Ok(page)
    }

    /// Truncates free space at the end of the second file, and punches holes for long free ranges inside it, one
    /// region per commit. Called after a commit with a meta record.
    pub(super) fn trim_large(&mut self, files: &Files, compacts: bool) {
        self.cut_large(files, compacts);
        let (Some(large), Some(file)) = (self.space.large.as_deref_mut(), &files.large) else {
            return;
        };
        let page_bytes = files.page_size as u64;
        if self.cannot_punch_large || large.free_pages() * page_bytes < files.options.shrink_bytes {
            return;
        }
        for (place, pages) in large.map.unpunched((PUNCH_BYTES_MIN / page_bytes).max(1)) {
            match file.storage.punch(place * page_bytes, pages * page_bytes) {
                Ok(true) => large.map.punch(place, pages),
                Ok(false) | Err(_) => {
                    self.cannot_punch_large = true;
                    break;
                }
            }
        }
    }

    /// Truncates the second file if much space is gained. Keeps one growth step, unless the file is being compacted.
    fn cut_large(&mut self, files: &Files, compacts: bool) {
        let (Some(large), Some(file)) = (self.space.large.as_deref_mut(), &files.large) else {
            return;
        };
        let page_bytes = files.page_size as u64;
        let Ok(len) = file.storage.len() else {
            return;
        };
        let end = large.map.end() * page_bytes;
        let (kept, much) = match (compacts, step_of(end)) {
            (true, _) => (0, files.options.growth_bytes_min.min(STEP_MIN)),
            (false, step) => (step, files.options.shrink_bytes.max(step)),
        };
        let to = (end + kept).next_multiple_of(page_bytes);
        if !file.storage.resizes() || to + much.max(1) > len || file.storage.cut(to).is_err() {
            return;
        }
        large.cut(to / page_bytes);
        files.log(&Event::CutSecond { from: len, to });
    }
}

fn step_of(bytes: u64) -> u64 {
    (bytes / 8).clamp(STEP_MIN, STEP_MAX)
}
