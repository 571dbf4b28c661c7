//! The steps of a commit that concern the redo log: creating the redo log, freeing its pages, and encoding the entry
//! of the commit.

use super::commit_plan::CommitPlan;
use super::{WriteTxn, dirty};
use crate::commit::redo::area::{
    BYTES_MAX, BYTES_MIN, COMMIT_BYTES_MAX, COMMIT_PAGE_BYTES_MAX, PART_OF_FILE,
};
use crate::commit::redo::{Entry, PageOf, Recorder};
use crate::error::Result;
use crate::format::layout::BLOCK_BYTES;
use crate::format::meta::Meta;
use crate::format::meta::Redo;
use crate::format::pages::PageRef;
use std::sync::Arc;
use tidalite_base::TxnId;

/// Size in bytes of the pieces in which zeros are written.
const ZEROS_BYTES: u64 = 64 << 10;
/// Maximum number of extent bytes of a commit that goes to the redo log. Extents are new and usually compressed, so
/// their differences are as long as the data. The limit is twice the limit of a log entry, since half of the bytes
/// may be the unused ends of last pages.
const COMMIT_EXTENT_BYTES_MAX: u64 = 2 * COMMIT_BYTES_MAX as u64;
/// In a file with a maximum length, the redo log takes at most 1/`PART_OF_BOUNDED` of that length.
const PART_OF_BOUNDED: u64 = 8;
/// Minimum useful length of a redo log in blocks.
const BLOCKS_MIN: u64 = 4;

impl WriteTxn {
    /// Frees the pages of the redo log or creates a log, as the plan says.
    pub(super) fn change_log(&mut self, plan: &CommitPlan) -> Result<()> {
        if plan.leaves_log
            && let Some(redo) = self.writer().meta.redo
        {
            let addr = redo.page * self.inner.files.page_size as u64;
            self.free(addr, redo.pages, TxnId(redo.birth));
            self.check()?;
            self.log.is_left = true;
        }
        if plan.wants_meta {
            self.inner.pipeline.want_meta();
        }
        if plan.creates_log {
            self.make_log()?;
        }
        Ok(())
    }

    /// Whether the commit is too large for the redo log, or will hardly fit into it.
    pub(super) fn is_large(&self) -> bool {
        let bytes = self.space.own_pages * self.inner.files.page_size as u64;
        bytes > COMMIT_PAGE_BYTES_MAX || self.extents.bytes_written > COMMIT_EXTENT_BYTES_MAX
    }

    /// Length in bytes that a redo log would get if it were created now.
    fn log_bytes(&mut self) -> u64 {
        let most = self.inner.files.options.log_bytes.min(BYTES_MAX);
        let most = most.min(self.inner.files.bounds.most_bytes() / PART_OF_BOUNDED);
        let most = most.min(self.writer().log.bytes_most);
        let file_bytes = self.file_pages() * self.inner.files.page_size as u64;
        (file_bytes / PART_OF_FILE).clamp(BYTES_MIN.min(most), most)
    }

    /// Whether the redo log should be replaced: less than half of the pages in use at its creation are still in use,
    /// and it lies far beyond the possible end of the file; or the file has become too large for it.
    pub(super) fn log_is_in_the_way(&mut self, redo: Redo) -> bool {
        let page_bytes = self.inner.files.page_size as u64;
        let much = self.inner.files.options.shrink_bytes / page_bytes;
        let is_small = self.log_bytes() / page_bytes >= 2 * redo.pages;
        let writer = self.writer();
        let in_use = writer.space.pages() - writer.space.free_pages();
        is_small || (in_use < writer.log.made_at / 2 && redo.page > in_use + much)
    }

    /// Allocates pages for the redo log, if there is room, and fills them with zeros, so that later writes overwrite
    /// blocks that are already written.
    fn make_log(&mut self) -> Result<()> {
        let inner = Arc::clone(&self.inner);
        let page_bytes = inner.files.page_size as u64;
        let pages = self.log_bytes() / page_bytes;
        if pages * page_bytes < BLOCKS_MIN * BLOCK_BYTES as u64 {
            return Ok(());
        }
        let Some(writer) = &mut self.writer else {
            unreachable!("the writer state leaves with the transaction")
        };
        // The redo log is allocated as low in the file as possible, since it stays there for long.
        let compacts = std::mem::replace(&mut self.space.compacts, true);
        let taken = writer.alloc(&inner, &mut self.space, pages, true, false);
        self.space.compacts = compacts;
        let page = match taken {
            Ok(page) => page,
            // This commit proceeds without a new redo log. Later commits request at most half the length, so an
            // existing log is not given up for a new one that would not fit.
            Err(error) if error.is_full() => {
                writer.log.bytes_most = pages * page_bytes / 2;
                return Ok(());
            }
            Err(error) => return Err(self.fail(error)),
        };
        writer.log.made_at = writer.space.pages() - writer.space.free_pages();
        let (start, end) = (page * page_bytes, (page + pages) * page_bytes);
        let zeros = vec![0; ZEROS_BYTES as usize];
        let mut at = start;
        while at < end {
            let part = &zeros[..(end - at).min(ZEROS_BYTES) as usize];
            let written = dirty::write(&*inner.files.storage, at, part);
            written.map_err(|error| self.fail(error))?;
            at += part.len() as u64;
        }
        assert_eq!(at, end, "the whole log is zeros");
        assert!(!self.log.is_left, "a commit creates a log or gives it up");
        self.extents.bytes_written += end - start;
        self.log.new = Some(Redo {
            page,
            pages,
            birth: self.txn.0,
        });
        Ok(())
    }

    /// Encodes the log entry of this commit, whose pages are written; returns `None` if it is too large for the redo
    /// log.
    pub(super) fn log_entry(&mut self, record: &Arc<Meta>, twice: bool) -> Result<Option<Entry>> {
        if self.is_large() {
            return Ok(None);
        }
        let mut recorder = self.writer().log.recorder.take().unwrap_or_default();
        let entry = self.encode_for_log(record, &mut recorder, twice);
        self.writer().log.recorder = Some(recorder);
        entry
    }

    fn encode_for_log(
        &self,
        record: &Arc<Meta>,
        recorder: &mut Recorder,
        twice: bool,
    ) -> Result<Option<Entry>> {
        let Some(writer) = &self.writer else {
            unreachable!("the writer state leaves with the transaction")
        };
        let (page_size, end) = (self.inner.files.page_size, self.end());
        let ranges = self.space.own.iter();
        let numbers = ranges.flat_map(|(page, pages)| page..page + pages);
        let mut pages = Vec::with_capacity(self.space.own_pages as usize);
        for number in numbers {
            let (bytes, origin) = match self.dirty.with_origin(number) {
                Some((bytes, origin)) => (PageRef::Borrowed(bytes), origin),
                None => (self.inner.files.page_as_it_is(number, end)?, None),
            };
            let base = match origin {
                Some(origin) => Some((origin, self.inner.files.page_as_it_is(origin, end)?)),
                None => None,
            };
            pages.push((number, base, bytes));
        }
        let each = pages.iter().map(|(page, base, bytes)| PageOf {
            page: *page,
            base: base.as_ref().map(|(number, bytes)| (*number, &**bytes)),
            bytes,
        });
        let records = (record, &writer.meta);
        Ok(Entry::of(records, each, recorder, page_size, twice))
    }
}
