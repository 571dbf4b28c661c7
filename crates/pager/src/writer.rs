//! What the one writer needs: the free space and the newest durable record. Growth of the file.
//!
//! Invariants
//! 1. Before a page is reused for the first time after open, the durable record that was found is
//!    rewritten (`confirm`), one block at a time: it may have come from a process that was killed before
//!    its sync, and then only the record before it is on the medium.
//! 2. `length_unsynced` while the file's length may be lost by a power cut; the next durable commit then
//!    syncs the length too, before any meta record relies on it.

use crate::error::{Error, Result};
use crate::layout::meta_at;
use crate::meta::{Confirmation, Meta};
use crate::pager::{Found, Inner};
use crate::seeded::{Bug, active};
use crate::space::{Space, TxnSpace, base};
use crate::storage::Growth;
use crate::superblock::read_failed;
use std::sync::atomic::Ordering;

/// A transaction that has allocated this much, or needs this much at once, is a bulk write.
const BULK_BYTES: u64 = 1 << 20;
/// A bulk write reserves a quarter of what it has written already, at most this.
const BULK_GROWTH_BYTES_MAX: u64 = 64 << 20;

#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) space: Space,
    /// The newest durable record.
    pub(crate) meta: Meta,
    pub(crate) length_unsynced: bool,
    /// How the record is rewritten.
    confirmation: Confirmation,
    /// Copies of the record that were rewritten; 2 when it is confirmed.
    confirmed: usize,
}

impl Writer {
    /// Reads the free space of a record.
    pub(crate) fn load(inner: &Inner, found: Found) -> Result<Self> {
        let Found {
            meta,
            before,
            confirmation,
        } = &found;
        let end = meta.pages * inner.page_size as u64;
        let mut space = base::load(inner.page_size, meta, *before, &|ptr| inner.page(ptr, end))?;
        let len = inner.storage.len().map_err(|error| read_failed(0, error))?;
        let pages = (len / inner.page_size as u64).max(meta.pages);
        let longer = pages > meta.pages;
        if longer {
            // Left by a growth that no commit came to use.
            space.grow(pages);
        }
        Ok(Self {
            space,
            meta: meta.clone(),
            length_unsynced: longer,
            confirmation: *confirmation,
            // Another process that is alive, or was a moment ago, may have said that it is on the medium.
            confirmed: if inner.lock.area.durable().load(Ordering::Acquire) == meta.txn {
                2
            } else {
                0
            },
        })
    }

    /// Makes sure that the record this process stands on is on the medium.
    pub(crate) fn confirm(&mut self, inner: &Inner) -> Result<()> {
        // After a failed write the next attempt goes on with that copy: the other one is sound.
        let Confirmation { number, first } = self.confirmation;
        for step in self.confirmed..2 {
            let at = meta_at(self.meta.pair(), if step == 0 { first } else { 1 - first });
            self.meta.confirmations = number;
            let block = self.meta.encode(at);
            let failed = |error| Error::of_write("meta write", at, block.len() as u64, error);
            inner.storage.write_at(at, &block).map_err(failed)?;
            if let Err(error) = inner.storage.sync() {
                let error = failed(error);
                inner.poison(&error);
                return Err(error);
            }
            self.confirmed = step + 1;
        }
        inner.note_durable(self.meta.txn);
        Ok(())
    }

    /// Frees what no snapshot holds any more.
    pub(crate) fn reclaim(&mut self, inner: &Inner) {
        let mut live = inner.live();
        if !active(Bug::ReuseEarly) {
            live.extend(self.space.durable);
        }
        live.sort_unstable();
        live.dedup();
        self.space.reclaim(&live);
    }

    /// Takes pages for a transaction; the file grows when it must.
    pub(crate) fn alloc(
        &mut self,
        inner: &Inner,
        txn: &mut TxnSpace,
        pages: u64,
        extent: bool,
    ) -> Result<u64> {
        let found = if extent {
            self.space.take_extent(pages)
        } else {
            self.space.take_page()
        };
        let page = match found {
            Some(page) => page,
            None => {
                // From where the free end of the file begins, so that what is grown ahead stays behind.
                let start = self.space.pages() - self.space.tail_free();
                self.grow(inner, txn, pages)?;
                self.space.take_at(start, pages)
            }
        };
        let fresh = txn.own.insert(page, pages);
        assert!(fresh, "pages {page}+{pages} are allocated twice");
        txn.own_pages += pages;
        Ok(page)
    }

    /// Makes the file longer, so that it ends with `pages` free pages at least.
    fn grow(&mut self, inner: &Inner, txn: &TxnSpace, pages: u64) -> Result<()> {
        let page_bytes = inner.page_size as u64;
        let need = pages.saturating_sub(self.space.tail_free());
        if need == 0 {
            return Ok(());
        }
        let options = &inner.options;
        let (old, written) = (self.space.pages(), txn.own_pages * page_bytes);
        let most = options.growth_bytes_max.max(options.growth_bytes_min);
        let step = (old * page_bytes / 8).clamp(options.growth_bytes_min, most);
        let bulk = need * page_bytes >= BULK_BYTES || written >= BULK_BYTES;
        let (step, how) = if bulk {
            let step = step.max((written / 4).min(BULK_GROWTH_BYTES_MAX));
            (need + step / page_bytes, Growth::Reserve)
        } else {
            (need.max(step / page_bytes), Growth::Zeros)
        };
        let (mut more, mut grown) = (step, self.extend(inner, old + step, how));
        if grown.is_err() && step > need {
            (more, grown) = (need, self.extend(inner, old + need, how));
        }
        grown.map_err(|source| {
            let bytes = need * page_bytes;
            Error::of_write("growth", old * page_bytes, bytes, source)
        })?;
        self.space.grow(old + more);
        if how == Growth::Zeros && !active(Bug::GrowthNotDurable) {
            // Ahead, so that the small commits to come find written, durable space.
            self.sync_length(inner)?;
        }
        Ok(())
    }

    fn extend(&mut self, inner: &Inner, pages: u64, how: Growth) -> std::io::Result<()> {
        let grown = inner.storage.grow(pages * inner.page_size as u64, how);
        self.length_unsynced = true;
        grown
    }

    /// Syncs data and length. A failure poisons.
    pub(crate) fn sync_length(&mut self, inner: &Inner) -> Result<()> {
        if let Err(source) = inner.storage.sync_all() {
            let error = Error::Io {
                what: "sync".into(),
                at: 0,
                source,
            };
            inner.poison(&error);
            return Err(error);
        }
        self.length_unsynced = false;
        Ok(())
    }
}
