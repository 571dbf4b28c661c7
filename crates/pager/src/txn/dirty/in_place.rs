//! Pages that a small transaction changes directly in the memory map of the file, at their final place. Such a page
//! is copied once, from its origin, and needs no write call at the commit (docs/performance/lazy-commits.md).
//!
//! Invariants
//! 1. A page changed in place was allocated by this transaction. No reader uses it, and no commit that opening the
//!    file can find. The system may therefore write its unfinished content to the medium at any time. If the
//!    transaction does not commit, the page is free.
//! 2. The state of the page is `PageState::InPlace`. If a savepoint or a reader of uncommitted data retains it, the
//!    next change makes a copy with a new number; such readers get copies of the bytes.
//! 3. While a background thread writes pages of the transaction, no further page is changed in place: a late write
//!    would overwrite it.
//! 4. `InPlace::pages` is the number of such pages in `Dirty::pages`.

use super::buffers::filled;
use super::dirty_pages::Dirty;
use super::page_state::PageState;
use crate::error::{Error, Result};
use crate::format::kind::Kind;
use crate::format::ptr::Ptr;
use std::sync::Arc;
use tidalite_disk::storage::Storage;

impl Dirty {
    /// Enables changes in place if the storage supports them. Used for transactions that are likely to be followed by
    /// similar transactions, and not by a sync.
    pub(crate) fn change_in_place(&mut self, storage: &dyn Storage) {
        if self.in_place.places.is_none() {
            self.in_place.places = storage.places();
        }
        self.in_place.is_on = self.in_place.places.is_some();
    }

    /// Stops changing further pages in place, because a background thread writes pages of the transaction from now on
    /// (`background.rs`).
    pub(super) fn end_changing_in_place(&mut self) {
        self.in_place.is_on = false;
    }

    /// Adds a dirty page that is a copy of a page of an older commit.
    ///
    /// # Errors
    /// I/O errors, if adding the page causes pages to be written.
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

    /// Finishes the pages changed in place, whose contents are now final, by reporting them to the storage.
    ///
    /// # Errors
    /// I/O errors.
    pub(super) fn end_in_place(&mut self, storage: &dyn Storage) -> Result<()> {
        if self.in_place.pages == 0 {
            return Ok(());
        }
        self.pages_written += self.in_place.pages as u64;
        for &number in self
            .pages
            .iter()
            .filter_map(|(number, page)| page.is_in_place().then_some(number))
        {
            let at = number * self.page_size as u64;
            let bytes = self.in_place.bytes(number, self.page_size);
            let told = storage.changed_in_place(at, bytes);
            told.map_err(|error| Error::of_write("write", at, bytes.len() as u64, error))?;
        }
        Ok(())
    }

    /// Copies pages changed in place into buffers, because this commit does not write its pages and a later commit
    /// will.
    pub(super) fn bring_out(&mut self) {
        if self.in_place.pages == 0 {
            return;
        }
        for (&number, page) in self.pages.iter_mut().filter(|(_, page)| page.is_in_place()) {
            let bytes = self.in_place.bytes(number, self.page_size);
            page.state = PageState::Memory(Arc::from(bytes));
            self.in_memory += 1;
        }
        self.in_place.pages = 0;
    }
}
