//! Pages that a small transaction changes in memory of the file, where they will lie: they are copied once, from where they were, and are not
//! handed to the system when it commits (decision 0024).
//!
//! Invariants
//! 1. A page that is changed in place was given to this transaction: no state that a reader holds, or that opening the file could come
//!    to, shows it. So whatever the system writes of it, and whenever, nobody misses what was there; given up, it is a free page.
//! 2. It has no bytes in memory, and is not `spilled`. Of a page that a savepoint or a reader of uncommitted state keeps, the next change makes a
//!    copy with a number of its own; such readers get copies of the bytes.
//! 3. While a thread writes pages beside the transaction none begins to be changed in place: what is late would lie over it.
//! 4. `InPlace::pages` counts those of `Dirty::pages`.

use super::buffers::filled;
use super::dirty_pages::Dirty;
use crate::error::{Error, Result};
use crate::format::kind::Kind;
use crate::format::ptr::Ptr;
use crate::storage::Storage;
use std::sync::Arc;

impl Dirty {
    /// From now on pages are changed in place where that may be. For transactions that are likely to be followed by others of their kind, and by no
    /// sync.
    pub(crate) fn change_in_place(&mut self, storage: &dyn Storage) {
        if self.in_place.places.is_none() {
            self.in_place.places = storage.places();
        }
        self.in_place.is_on = self.in_place.places.is_some();
    }

    /// No page more is changed in place: a thread writes pages of the transaction from now on (`background.rs`).
    pub(super) fn end_changing_in_place(&mut self) {
        self.in_place.is_on = false;
    }

    /// Adds a copy of a page of an older commit.
    ///
    /// # Errors
    /// The system's, when pages are written.
    pub(crate) fn insert_copy(
        &mut self,
        storage: &dyn Storage,
        page: u64,
        kind: Kind,
        (owner, origin): (u64, Option<u64>),
        epoch: u64,
        from: &[u8],
    ) -> Result<Ptr> {
        let at = page * self.page_size as u64;
        let Some(bytes) = self.in_place.take_place(at, from.len()) else {
            let bytes = filled(self.buffer(), from);
            return self.insert(storage, page, kind, (owner, origin), epoch, bytes);
        };
        bytes.copy_from_slice(from);
        let told = storage.changed_in_place(at, bytes);
        let ptr = self.enter(page, (kind, owner, origin), epoch, None);
        told.map_err(|error| Error::of_write("write", at, from.len() as u64, error))?;
        Ok(ptr)
    }

    /// The pages that are changed in place are as the commit leaves them.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn end_in_place(&mut self, storage: &dyn Storage) -> Result<()> {
        if self.in_place.pages == 0 {
            return Ok(());
        }
        self.pages_written += self.in_place.pages as u64;
        for &number in self
            .pages
            .iter()
            .filter_map(|(number, page)| page.in_place.then_some(number))
        {
            let at = number * self.page_size as u64;
            let bytes = self.in_place.bytes(number, self.page_size);
            let told = storage.changed_in_place(at, bytes);
            told.map_err(|error| Error::of_write("write", at, bytes.len() as u64, error))?;
        }
        Ok(())
    }

    /// Takes pages that are changed in place into memory: the commit leaves them to a later one to write, as the others.
    pub(super) fn bring_out(&mut self) {
        if self.in_place.pages == 0 {
            return;
        }
        for (&number, page) in self.pages.iter_mut().filter(|(_, page)| page.in_place) {
            let bytes = self.in_place.bytes(number, self.page_size);
            (page.bytes, page.in_place) = (Some(Arc::from(bytes)), false);
            self.in_memory += 1;
        }
        self.in_place.pages = 0;
    }
}
