//! Write-behind: leaves of a large transaction are written while the transaction is still open. The disk works
//! meanwhile, and the commit has fewer pages left to write (docs/performance/durable-commits.md).
//!
//! ```text
//! changes:  oldest leaves, a part at a time, whenever the disk is idle       few are changed again and rewritten
//! write_leaves: all remaining leaves, while branches are sealed                 none are changed again
//! commit:   the pages that point to them
//! ```
//!
//! A page that is changed again is written a second time. If ten thousand random rows are inserted into a table of
//! forty thousand leaves, this happens to an eighth of the pages; in a table of ten thousand leaves, to half of them.
//! Rewrites are therefore counted, and if there are too many, write-behind stops for this transaction and for some
//! after it.
//!
//! Invariants
//! 1. A page that was passed to the background thread is sealed and `PageState::Written`, until it is changed. Until
//!    `drain`, the page may not be in the file yet.
//! 2. Only pages allocated by this transaction are written. No reader sees them before its commit, and if the
//!    transaction is abandoned they are free.

use super::background::BackgroundWriter;
use super::dirty_pages::Dirty;
use super::state::OwnedStorage;
use super::write_out::Reason;
use crate::error::Result;
use std::collections::VecDeque;
use std::sync::Arc;
use tidalite_disk::storage::Storage;

/// Number of parts in which the leaves of a transaction are written. A part is this fraction (1/n) of the size that
/// makes a transaction large (`Options::write_behind_bytes`). The newest part of the pages is not written yet: pages
/// that were changed a moment ago are likely to be changed again.
const PARTS: u64 = 8;
/// Number of times that the disk is checked for idleness, for each part of changed pages.
const ASKED_A_PART: usize = 4;
/// Number of transactions without write-behind after a transaction with too many repeated writes.
const PAUSE: u32 = 15;

/// Decides whether the next transaction uses write-behind; part of the writer state.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WriteBehindChoice {
    large: bool,
    pause: u32,
}

impl WriteBehindChoice {
    /// Must be called when a transaction begins. Returns whether the transaction uses write-behind.
    pub(crate) fn begin(&mut self) -> bool {
        let pauses = self.pause > 0;
        if self.large {
            self.pause = self.pause.saturating_sub(1);
        }
        self.large && !pauses
    }

    /// Records the size of a committed transaction. `for_sync` says whether a sync follows; `write_behind_bytes` is
    /// the size that makes a transaction large, or 0 if write-behind is off.
    pub(crate) fn note(&mut self, dirty: &Dirty, for_sync: bool, write_behind_bytes: u64) {
        let bytes = dirty.pages_written * dirty.page_size as u64;
        let is_large = write_behind_bytes > 0 && bytes >= write_behind_bytes;
        self.large = for_sync && is_large;
        if dirty.write_behind.comes_back() {
            self.pause = PAUSE;
        }
    }
}

impl Dirty {
    /// Switches write-behind on for this transaction. `write_behind_bytes` is the size that makes a transaction
    /// large.
    pub(crate) fn write_behind(&mut self, storage: &Arc<dyn Storage>, write_behind_bytes: u64) {
        self.write_behind.storage = Some(OwnedStorage(Arc::clone(storage)));
        self.write_behind.part =
            (write_behind_bytes / PARTS / self.page_size as u64).max(1) as usize;
    }

    /// Waits until all pages passed to the background thread are in the file.
    ///
    /// # Errors
    /// I/O errors: then no page in memory counts as written.
    pub(crate) fn drain(&mut self) -> Result<()> {
        let Some(background) = &self.write_behind.background else {
            return Ok(());
        };
        match background.drain() {
            Ok(calls) => {
                self.writes += calls;
                Ok(())
            }
            Err(error) => {
                (self.write_behind.storage, self.write_behind.background) = (None, None);
                self.pages.values_mut().for_each(|page| {
                    page.forget_copy();
                });
                Err(error)
            }
        }
    }

    /// Ends the background writes. `here` says whether this is the process that began them, not a forked child.
    pub(super) fn stop_background(&mut self, here: bool) {
        match self.write_behind.background.take() {
            Some(background) if !here => background.leave(),
            background => drop(background),
        }
    }

    /// Seals and writes the leaves of a large transaction, few of which will be changed again. `write_behind_bytes`
    /// is the size that makes a transaction large.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn write_leaves(
        &mut self,
        storage: &Arc<dyn Storage>,
        write_behind_bytes: u64,
    ) -> Result<()> {
        let bytes = (self.in_memory * self.page_size) as u64;
        if write_behind_bytes == 0 || bytes < write_behind_bytes {
            return Ok(());
        }
        self.write_behind.storage = None;
        // From now on, a leaf may be freed and its address reallocated while its write is still under way. Such a
        // late write would overwrite a page that is changed in place at that address.
        self.end_changing_in_place();
        if self.write_behind.background.is_none() {
            self.write_behind.background = BackgroundWriter::if_useful(storage, self.page_size);
        }
        let part = (write_behind_bytes / PARTS / self.page_size as u64).max(1) as usize;
        let written = self.write_behind.written;
        let order: Vec<u64> = self.order.iter().copied().collect();
        for numbers in order.chunks(part) {
            self.write_behind_leaves(&**storage, numbers.to_vec())?;
        }
        // The writes of this function do not count for the rate of repeated writes.
        self.write_behind.written = written;
        Ok(())
    }

    /// Records an allocated page. If enough pages are recorded and the disk is idle, writes the oldest leaves.
    ///
    /// # Errors
    /// I/O errors, if recording the page causes pages to be written.
    pub(super) fn note_for_write_behind(&mut self, storage: &dyn Storage, page: u64) -> Result<()> {
        let write_behind = &mut self.write_behind;
        let Some(own) = &write_behind.storage else {
            return Ok(());
        };
        write_behind.waiting.push_back(page);
        write_behind.not_requested += 1;
        let often = match storage.writes_back() {
            true => ASKED_A_PART,
            false => 1,
        };
        if write_behind.waiting.len() < 2 * write_behind.part
            || write_behind.not_requested * often < write_behind.part
        {
            return Ok(());
        }
        write_behind.not_requested = 0;
        if write_behind.background.is_none() {
            write_behind.background = BackgroundWriter::if_useful(&own.0, self.page_size);
        }
        if write_behind.comes_back() {
            (write_behind.storage, write_behind.waiting) = (None, VecDeque::new());
            return Ok(());
        }
        if write_behind
            .background
            .as_ref()
            .is_none_or(BackgroundWriter::is_idle)
        {
            let numbers = write_behind.waiting.drain(..write_behind.part).collect();
            self.write_behind_leaves(storage, numbers)?;
        }
        Ok(())
    }

    /// Seals and writes those of the given pages that are leaves without pointers to other pages.
    fn write_behind_leaves(&mut self, storage: &dyn Storage, mut numbers: Vec<u64>) -> Result<()> {
        let (page_size, birth) = (self.page_size as u64, self.txn);
        numbers.retain(|number| {
            let page = self.pages.get_mut(number);
            page.is_some_and(|page| page.seal_leaf((number * page_size, birth)))
        });
        self.write_out(storage, &numbers, Reason::Behind)?;
        self.write_behind.written += numbers.len() as u64;
        Ok(())
    }
}
