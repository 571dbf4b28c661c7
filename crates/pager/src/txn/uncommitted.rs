//! Reads of the uncommitted data of a write transaction, from any thread.
//!
//! Invariants
//! 1. Pages of the transaction are kept as they were when the reader was created: as shared buffers in memory, or in
//!    the file with the checksum of their bytes. Extents of the transaction are not reused while the reader lives and
//!    the transaction continues.
//! 2. The reader retains the commit `base` with a slot of its own in the reader table, so pages of `base` can be
//!    borrowed even after the transaction ends.
//! 3. Once the transaction has ended (committed, rolled back, or rolled back past this reader), every read of its own
//!    pages returns `Error::Ended`: bytes are copied first, and the end is checked afterwards.

use super::dirty::{CapturedPage, CapturedPages, read_back};
use super::inner::Inner;
use super::savepoints::Token;
use crate::commit::files::Files;
use crate::commit::versions::State;
use crate::error::{Error, Result};
use crate::format::header::verify_block;
use crate::format::pages::{Counters, PageRead, PageRef};
use crate::format::ptr::Ptr;
use std::sync::Arc;
use tidalite_base::{Corrupt, TxnId};
use tidalite_disk::lock::protocol;
use tidalite_disk::system::Clocks;

/// A reader of the uncommitted data of a write transaction, as they were when the reader was created, and of the
/// commit on which the transaction builds. The reader does not see later changes. It ends with the transaction: from
/// then on reads of uncommitted data return `Error::Ended`.
pub struct UncommittedRead {
    pub(super) inner: Arc<Inner>,
    pub(super) base: Arc<State>,
    /// Slot in the reader table in which the commit `base` is stored, so that its pages are retained.
    pub(super) slot: usize,
    pub(super) txn: TxnId,
    /// Length of the file in bytes when the reader was created.
    pub(super) end: u64,
    pub(super) user: Arc<[u8]>,
    pub(super) pages: CapturedPages,
    pub(super) token: Arc<Token>,
    pub(super) counters: Counters,
}

impl UncommittedRead {
    /// Takes a slot in the reader table and stores the commit on which a running transaction builds in it. Returns
    /// the slot.
    pub(super) fn hold(files: &Files, base: &State) -> Result<usize> {
        let slot = files.lock.take_slot()?;
        // It need not be checked whether a newer commit was published, since the transaction already retains this
        // commit.
        protocol::enter(files.lock.state(slot), base.txn.0, &[]);
        if let Some(observer) = files.observer() {
            observer.reader_began(base.txn.0);
        }
        Ok(slot)
    }

    /// Returns the transaction number that the transaction will have when it commits.
    #[must_use]
    pub fn txn(&self) -> TxnId {
        self.txn
    }

    /// Returns the user data that a commit would have stored when the reader was created.
    #[must_use]
    pub fn user_data(&self) -> &[u8] {
        &self.user
    }

    /// Length of the file in bytes when the reader was created.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.end
    }

    /// Readings of the clocks of this handle ([`Options::clock`](crate::Options::clock)): now, and when the file was
    /// opened.
    #[must_use]
    pub fn clocks(&self) -> (Clocks, Clocks) {
        self.inner.files.clocks()
    }

    /// Wall-clock time of the commit on which the transaction builds, in nanoseconds since 1970.
    #[must_use]
    pub fn base_time_ns(&self) -> i64 {
        self.base.time_ns
    }

    /// Whether the transaction has ended, or was rolled back to a savepoint from before this reader.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.token.has_ended()
    }

    fn unless_ended<T>(&self, value: Result<T>) -> Result<T> {
        if self.token.has_ended() {
            return Err(Error::Ended);
        }
        value
    }

    fn own_page(&self, ptr: &Ptr) -> Result<PageRef<'_>> {
        let page_size = self.inner.files.page_size;
        match self.pages.get(&(ptr.addr / page_size as u64)) {
            Some((kind, kept))
                if *kind == ptr.kind && ptr.addr.is_multiple_of(page_size as u64) =>
            {
                match kept {
                    CapturedPage::InMemory(bytes) => Ok(PageRef::Borrowed(bytes)),
                    CapturedPage::OnDisk(sum) => {
                        let storage = &*self.inner.files.storage;
                        let bytes = read_back(storage, ptr.addr, page_size, *sum);
                        Ok(PageRef::Owned(bytes?))
                    }
                }
            }
            _ => {
                let expected = "a page of the transaction";
                Err(Corrupt::new("pointer", ptr.addr, format!("{ptr:?}"), expected).into())
            }
        }
    }
}

impl Drop for UncommittedRead {
    fn drop(&mut self) {
        if let Some(observer) = self.inner.files.observer() {
            observer.reader_ended(self.base.txn.0);
        }
        self.inner.files.lock.leave_slot(self.slot);
    }
}

impl PageRead for UncommittedRead {
    fn page_size(&self) -> usize {
        self.inner.files.page_size
    }

    fn page(&self, ptr: &Ptr) -> Result<PageRef<'_>> {
        Counters::bump(&self.counters.pages_read);
        if ptr.birth == self.txn {
            return self.unless_ended(self.own_page(ptr));
        }
        self.inner.page_of(&self.base, ptr)
    }

    fn reads_single_pages(&self) -> bool {
        self.inner.files.storage.reads_single_pages()
    }

    fn read_ahead(&self, addr: u64, bytes: u64) {
        self.inner.files.read_ahead(addr, bytes, self.base.bytes);
    }

    fn block(&self, ptr: &Ptr) -> Result<PageRef<'_>> {
        Counters::bump(&self.counters.blocks_read);
        if ptr.birth != self.txn {
            return self.inner.files.block(ptr, self.base.bytes);
        }
        let copied = self
            .inner
            .files
            .read_owned(ptr.addr, ptr.len as usize, self.end)
            .and_then(|bytes| verify_block(&bytes, ptr).map(|()| bytes));
        self.unless_ended(copied)
    }

    fn bytes(&self, addr: u64, len: usize) -> Result<PageRef<'_>> {
        // Whether the bytes belong to the transaction is unknown here, so they are copied as if they did.
        self.unless_ended(self.inner.files.read_owned(addr, len, self.end))
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}
