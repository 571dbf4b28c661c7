//! Returns free space to the file system: free space at the end of the file is truncated, and holes are punched for
//! long free ranges inside the file.
//!
//! Invariants
//! 1. Nothing is cut off that a live snapshot may read. The file stays as long as the page count of each meta record
//!    that opening may find: the durable ones, the unsynced one and the one being written (`least_pages`).
//! 2. Only free pages are punched, and the reserve always stays written.

use super::Writer;
use crate::commit::files::Files;
use crate::commit::shared::Shared;
use crate::options::event::Event;

/// Minimum length in bytes of a free range for which a hole is punched.
pub(super) const PUNCH_BYTES_MIN: u64 = 1 << 20;

/// A redo log longer than 1/`LOG_PART` of the file may be freed at close. It is created again after a few small
/// commits.
const LOG_PART: u64 = 8;

/// At close the file keeps space reserved for growth if it is less than 1/`KEPT_PART` of the file and less than a
/// growth step.
const KEPT_PART: u64 = 32;

impl Writer {
    /// Truncates free space at the end of the file, and punches holes for long free ranges inside the file, one
    /// region per commit. Called after a commit with a meta record.
    pub(crate) fn trim(&mut self, shared: &Shared, compacts: bool) {
        self.trim_large(&shared.files, compacts);
        let page_bytes = shared.files.page_size as u64;
        // A compaction truncates every free page at the end; otherwise a small gain is not worth a truncation.
        let much = if compacts {
            1
        } else {
            (shared.files.options.shrink_bytes / page_bytes).max(1)
        };
        if self.space.free_pages() < much {
            return;
        }
        if self.space.tail_free() >= much.min(self.space.pages() % self.space.region_pages())
            && let Some(least) = self.least_pages(shared, compacts)
        {
            if self.space.describes_too_much(much) {
                self.space.rewrite();
            }
            self.cut(&shared.files, least.max(self.space.described()), much);
        }
        let stretch = PUNCH_BYTES_MIN.min(shared.files.options.shrink_bytes) / page_bytes;
        let stretch = stretch.max(1);
        let kept = much + self.reserve_pages(&shared.files);
        // A compaction punches no holes: it fills the free ranges with data and then truncates the end of the file.
        if compacts || self.cannot_punch || self.space.written_free_pages() < kept + stretch {
            return;
        }
        let end = self.space.pages();
        for (page, pages) in self.space.map.unpunched(stretch) {
            if page + pages == end {
                // This range will be truncated with the end of the file.
                break;
            }
            let pages = pages.min(self.space.written_free_pages().saturating_sub(kept));
            if pages < stretch {
                break;
            }
            match shared
                .files
                .storage
                .punch(page * page_bytes, pages * page_bytes)
            {
                Ok(true) => self.space.map.punch(page, pages),
                // If punching fails, the file only takes more space than necessary.
                Ok(false) | Err(_) => {
                    self.cannot_punch = true;
                    break;
                }
            }
        }
    }

    /// Returns the minimum length of the file in pages after a truncation. It is the maximum of: the end of the pages
    /// that are used or held by snapshots plus a growth step (no growth step in a compaction); the end of any live
    /// snapshot; the page counts of all meta records that opening may find (the durable ones, the unsynced one and
    /// the one being written); the length set by the options. Returns `None` if one of these is unknown.
    fn least_pages(&mut self, shared: &Shared, compacts: bool) -> Option<u64> {
        let mut live = shared.live();
        live.extend(self.space.durable);
        // Entries above `newest` are kept, since the commit being made is not among the live transactions yet.
        let newest = live.iter().max().copied().unwrap_or(0);
        self.ends
            .retain(|txn, _| *txn > newest || live.contains(txn));
        let page_bytes = shared.files.page_size as u64;
        let ahead = if compacts {
            0
        } else {
            self.growth_bytes(&shared.files)
        };
        let mut least = self.space.end() + ahead / page_bytes;
        least = least.max(self.meta.pages);
        for txn in &live {
            least = least.max(*self.ends.get(txn)?);
        }
        Some(least.max(shared.files.bounds.least_bytes() / page_bytes))
    }

    /// Truncates the file to `least` pages if this removes at least `much` pages. Free pages for the reserve are
    /// kept.
    fn cut(&mut self, files: &Files, least: u64, much: u64) {
        let pages = self.space.pages();
        if least >= pages {
            return;
        }
        let missing = self
            .reserve_pages(files)
            .saturating_sub(self.space.written_free_before(least));
        let to = least + missing;
        if to + much <= pages && files.storage.cut(to * files.page_size as u64).is_ok() {
            self.length_unsynced = true;
            self.space.cut(to);
            let page_bytes = files.page_size as u64;
            files.log(&Event::Cut {
                from: pages * page_bytes,
                to: to * page_bytes,
            });
        }
    }

    /// Returns the number of pages in use after the redo log, if the log is a large part of the file and these pages
    /// are few compared with it. Freeing the pages of such a log at close shortens the file.
    pub(crate) fn pages_behind_ballast(&self) -> Option<u64> {
        let redo = self.meta.redo?;
        let behind = self.space.end().saturating_sub(redo.page + redo.pages);
        let ballast = redo.pages > self.space.pages() / LOG_PART && behind < redo.pages / LOG_PART;
        ballast.then_some(behind)
    }

    /// Truncates space that was reserved for growth; called at close, when there are no readers. Pages counted by the
    /// newest durable meta record stay, since the newest meta record of all may belong to a lazy commit and count
    /// fewer pages. Pages counted by the previous durable meta record stay, too, if that record is kept.
    pub(crate) fn cut_at_close(&mut self, shared: &Shared) {
        let page_bytes = shared.files.page_size as u64;
        let durable = shared.pipeline.durable();
        self.durable_is(durable.txn);
        let older = if self.keeps_older(&shared.files.options) {
            let [_, older] = self.space.durable;
            let Some(&pages) = self.ends.get(&older) else {
                // The file length that the previous durable meta record requires is unknown, so the file is not
                // truncated.
                return;
            };
            pages
        } else {
            0
        };
        // A little free space stays at the end of a long file, so that the next handle need not grow it, which takes a
        // sync.
        let step = self.growth_bytes(&shared.files);
        let much = (self.space.pages() / KEPT_PART).min(step / page_bytes);
        let least = self
            .meta
            .pages
            .max(durable.pages)
            .max(older)
            .max(shared.files.bounds.least_bytes() / page_bytes);
        self.cut(&shared.files, least, much.max(1));
    }
}
