//! Shrinking the file: free space at its end is cut off, long free ranges inside are punched, i.e. returned to the file
//! system.
//!
//! Invariants
//! 1. Nothing is cut that a live snapshot may read, nor below the page count of any of these records: opening may find
//!    any of the durable ones, the unsynced one and the one being written (`least_pages`).
//! 2. Only free pages are punched, and the reserve always stays written.

use super::Writer;
use crate::commit::files::Files;
use crate::commit::shared::Shared;
use crate::options::event::Event;

/// Minimum length of a free range to punch.
pub(super) const PUNCH_BYTES_MIN: u64 = 1 << 20;

/// A log that exceeds this part of the file (1/n) is given up at close: it is recreated after a few small commits.
const LOG_PART: u64 = 8;

/// At close the file keeps space grown ahead if that is less than this part of it (1/n), and less than a step.
const KEPT_PART: u64 = 32;

impl Writer {
    /// After a durable commit: cuts free space off the file's end, and punches long free ranges inside it,
    /// a region a commit.
    pub(crate) fn trim(&mut self, shared: &Shared, compacts: bool) {
        self.trim_large(&shared.files, compacts);
        let page_bytes = shared.files.page_size as u64;
        // A compaction cuts to the page: nothing is grown ahead for it.
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
        // A compaction fills the free ranges, and cuts off the rest.
        if compacts || self.cannot_punch || self.space.written_free_pages() < kept + stretch {
            return;
        }
        let end = self.space.pages();
        for (page, pages) in self.space.map.unpunched(stretch) {
            if page + pages == end {
                // This range is cut with the file's end.
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
                // On failure the file only takes more space than necessary.
                Ok(false) | Err(_) => {
                    self.cannot_punch = true;
                    break;
                }
            }
        }
    }

    /// Minimum length of the file after a cut: the end of the used and held pages plus a growth step (none in a
    /// compaction), the end of any live snapshot, the page counts of all records that opening may find (the durable
    /// ones, the unsynced one and the one being written), and the length set by the options. `None` if the end of one of
    /// these is unknown.
    fn least_pages(&mut self, shared: &Shared, compacts: bool) -> Option<u64> {
        let mut live = shared.live();
        live.extend(self.space.durable);
        // The commit being made is not among them yet.
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

    /// Cuts the file if at least `much` can be cut. The reserve stays.
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

    /// Number of pages behind the log, if the log is a large part of the file and these pages are few compared with it.
    pub(crate) fn pages_behind_ballast(&self) -> Option<u64> {
        let redo = self.meta.redo?;
        let behind = self.space.end().saturating_sub(redo.page + redo.pages);
        let ballast = redo.pages > self.space.pages() / LOG_PART && behind < redo.pages / LOG_PART;
        ballast.then_some(behind)
    }

    /// At close, when there are no readers: cuts space grown ahead. Pages counted by the newest durable record stay:
    /// the newest record of all may be a shorter lazy one. Pages counted by the previous durable record stay too, if it
    /// is kept.
    pub(crate) fn cut_at_close(&mut self, shared: &Shared) {
        let page_bytes = shared.files.page_size as u64;
        let durable = shared.pipeline.durable();
        self.durable_is(durable.txn);
        let older = if self.keeps_older(&shared.files.options) {
            let [_, older] = self.space.durable;
            let Some(&pages) = self.ends.get(&older) else {
                // The file length it requires is unknown.
                return;
            };
            pages
        } else {
            0
        };
        // A little free space stays at the end of a long file for the next opener: growth takes a sync.
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
