//! Bulk pages: pages that are complete when they are added, and rarely changed again. Many adjacent bulk pages are
//! written at once, while they are in the processor's cache, and the system is asked to start writing them to the
//! medium. The sync of the commit then has little left to do (docs/performance/durable-commits.md and
//! docs/performance/table-inserts.md).
//!
//! Invariants
//! 1. A bulk page that was written is sealed; it is then only in the file.
//! 2. No bulk page is written before a transaction has added `KEPT_BYTES`, unless memory is short. The redo log needs
//!    the pages of a small commit in memory.

use super::buffers::filled;
use super::dirty_pages::Dirty;
use super::page_state::{DirtyPage, PageState};
use super::write_out::Reason;
use crate::error::Result;
use crate::format::kind::Kind;
use crate::format::ptr::Ptr;
use std::sync::Arc;
use tidalite_disk::storage::Storage;

/// Size in bytes of the bulk pages that are kept in memory before the first of them are written.
const KEPT_BYTES: usize = 4 << 20;

/// Size in bytes of the bulk pages that are written at a time afterwards.
const PART_BYTES: usize = 256 << 10;

impl Dirty {
    /// Adds a bulk page with these bytes and seals it.
    ///
    /// # Errors
    /// I/O errors, if adding the page causes pages to be written.
    pub(crate) fn add_bulk(
        &mut self,
        storage: &dyn Storage,
        page: u64,
        (kind, owner): (Kind, u64),
        epoch: u64,
        bytes: &[u8],
    ) -> Result<Ptr> {
        if self.enough_wait() {
            self.write_bulk(storage)?;
        }
        self.make_room(storage)?;
        let mut bytes = filled(self.buffer(), bytes);
        let at = (page * self.page_size as u64, self.txn);
        let sealed = DirtyPage::seal((kind, owner), Arc::make_mut(&mut bytes), at);
        let dirty = DirtyPage {
            state: PageState::Memory(bytes),
            kind,
            owner,
            origin: None,
            epoch,
            sealed: Some(sealed.checksum),
            touched: false,
        };
        let before = self.pages.insert(page, dirty);
        assert!(before.is_none(), "page {page} is allocated twice");
        self.in_memory += 1;
        self.bulk.waiting.push(page);
        Ok(sealed)
    }

    fn enough_wait(&self) -> bool {
        let enough = if self.bulk.has_begun {
            PART_BYTES
        } else {
            KEPT_BYTES
        };
        self.bulk.waiting.len() * self.page_size >= enough
    }

    /// Writes the bulk pages that wait in memory.
    pub(super) fn write_bulk(&mut self, storage: &dyn Storage) -> Result<()> {
        self.drain()?;
        let mut numbers = std::mem::take(&mut self.bulk.waiting);
        let (pages, order) = (&self.pages, &mut self.order);
        numbers.retain(|number| {
            let page = pages.get(number).filter(|page| page.buffer().is_some());
            let is_sealed = |page: &DirtyPage| page.sealed.is_some() && page.unwritten().is_some();
            if page.is_some_and(|page| !is_sealed(page)) {
                // The page was changed since it was added, so it is written later like any other page.
                order.push_back(*number);
            }
            page.is_some_and(is_sealed)
        });
        self.write_out(storage, &numbers, Reason::Bulk)?;
        for number in &numbers {
            let bytes = self.page_size as u64;
            self.bulk.write_back.ask(storage, number * bytes, bytes);
        }
        numbers.clear();
        (self.bulk.waiting, self.bulk.has_begun) = (numbers, true);
        Ok(())
    }
}
