//! Pages that are added whole and rarely changed again: the pages of bulk loads. They are written while they are in the
//! processor's cache, many adjacent ones at once, and the system is asked to start writing them to the medium: the sync
//! of the commit then has little left to do (decisions 0020, 0204).
//!
//! Invariants
//! 1. A page written here is sealed, and `spilled` with the same checksum, like a page written early for lack of
//!    memory.
//! 2. Nothing is written before a transaction has added `KEPT_BYTES`, unless memory is short: the log of small commits
//!    needs its pages in memory.

use super::buffers::filled;
use super::dirty_pages::{Dirty, DirtyPage, FLAGS_AT};
use super::write_out::{WriteHint, write_pages};
use crate::error::Result;
use crate::format::header::{Header, seal_block};
use crate::format::kind::Kind;
use crate::format::ptr::Ptr;
use crate::storage::Storage;
use std::sync::Arc;

/// Bytes of whole pages kept in memory at first.
const KEPT_BYTES: usize = 4 << 20;

/// Bytes written at a time afterwards.
const PART_BYTES: usize = 256 << 10;

impl Dirty {
    /// Adds a page with these bytes and seals it.
    ///
    /// # Errors
    /// I/O errors, if pages are written.
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
        let header = Header {
            kind,
            flags: bytes[FLAGS_AT],
            owner,
            address: page * self.page_size as u64,
            birth: self.txn,
        };
        let sealed = seal_block(Arc::make_mut(&mut bytes), &header);
        let dirty = DirtyPage {
            bytes: Some(bytes),
            in_place: false,
            kind,
            owner,
            origin: None,
            epoch,
            sealed: Some(sealed.checksum),
            spilled: None,
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

    /// Writes the waiting whole pages.
    pub(super) fn write_bulk(&mut self, storage: &dyn Storage) -> Result<()> {
        self.drain()?;
        let mut numbers = std::mem::take(&mut self.bulk.waiting);
        let (pages, order) = (&self.pages, &mut self.order);
        numbers.retain(|number| {
            let page = pages.get(number).filter(|page| page.bytes.is_some());
            let is_whole = |page: &DirtyPage| page.sealed.is_some() && page.spilled.is_none();
            if page.is_some_and(|page| !is_whole(page)) {
                // Changed since: it is spilled like any other page.
                order.push_back(*number);
            }
            page.is_some_and(is_whole)
        });
        let in_memory = numbers.iter().filter_map(|number| {
            let bytes = self.pages.get(number)?.bytes.as_ref()?;
            Some((*number, &**bytes))
        });
        self.writes += write_pages(
            storage,
            |at, len| storage.write_back(at, len),
            self.page_size,
            in_memory.collect(),
            WriteHint::Plain,
        )?;
        self.pages_written += numbers.len() as u64;
        for number in &numbers {
            if let Some(page) = self.pages.get_mut(number)
                && let Some(bytes) = page.bytes.take()
            {
                page.spilled = page.sealed;
                self.in_memory -= 1;
                self.keep_buffer(bytes);
            }
            let bytes = self.page_size as u64;
            self.bulk.write_back.ask(storage, number * bytes, bytes);
        }
        numbers.clear();
        (self.bulk.waiting, self.bulk.has_begun) = (numbers, true);
        Ok(())
    }
}
