//! Snapshots: what readers hold.

use crate::error::Result;
use crate::pager::{Inner, State};
use crate::pages::{Counters, PageRead, PageRef};
use crate::ptr::Ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tidalite_base::TxnId;

/// The file as of one commit. It never changes while it is held, in any thread; what it sees is not
/// reused before it is dropped.
pub struct Snapshot {
    inner: Arc<Inner>,
    state: Arc<State>,
    /// In the reader table, for as long as this or a clone lives.
    slot: usize,
    counters: Counters,
}

impl Snapshot {
    pub(crate) fn begin(inner: &Arc<Inner>) -> Result<Self> {
        inner.lock.check_process()?;
        let slot = inner.lock.take_slot()?;
        let state = loop {
            let state = inner.state.load_full();
            // Both are looked at after the slot was written: nothing newer was shown before it was seen.
            if inner.lock.enter(slot, state.txn.0, state.word)
                && inner.local.load(Ordering::SeqCst) == state.txn.0
            {
                break state;
            }
            if let Err(error) = inner.refresh() {
                inner.lock.leave_slot(slot);
                return Err(error);
            }
        };
        if let Some(observer) = inner.observer() {
            observer.reader_began(state.txn.0);
        }
        Ok(Self {
            inner: Arc::clone(inner),
            state,
            slot,
            counters: Counters::default(),
        })
    }

    pub(crate) fn state(&self) -> &Arc<State> {
        &self.state
    }

    /// Which commit this is.
    #[must_use]
    pub fn txn(&self) -> TxnId {
        self.state.txn
    }

    /// What the layers above stored with that commit.
    #[must_use]
    pub fn app(&self) -> &[u8] {
        &self.state.app
    }

    /// The user data of that commit, see [`WriteTxn::set_user_data`](crate::WriteTxn::set_user_data).
    #[must_use]
    pub fn user_data(&self) -> &[u8] {
        &self.state.user
    }

    /// When it was committed, nanoseconds since 1970 by the wall clock.
    #[must_use]
    pub fn commit_time_ns(&self) -> i64 {
        self.state.time_ns
    }

    /// Bytes of the file as of that commit.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.state.bytes
    }
}

impl Clone for Snapshot {
    fn clone(&self) -> Self {
        self.inner.lock.share_slot(self.slot);
        if let Some(observer) = self.inner.observer() {
            observer.reader_began(self.state.txn.0);
        }
        Self {
            inner: Arc::clone(&self.inner),
            state: Arc::clone(&self.state),
            slot: self.slot,
            counters: Counters::default(),
        }
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        if let Some(observer) = self.inner.observer() {
            observer.reader_ended(self.state.txn.0);
        }
        self.inner.lock.leave_slot(self.slot);
    }
}

impl PageRead for Snapshot {
    #[inline]
    fn page_size(&self) -> usize {
        self.inner.page_size
    }

    #[inline]
    fn page(&self, ptr: &Ptr) -> Result<PageRef<'_>> {
        Counters::bump(&self.counters.pages_read);
        self.inner.page(ptr, self.state.bytes)
    }

    #[inline]
    fn prefetch(&self, ptr: &Ptr, bytes: usize) {
        self.inner.prefetch(ptr, bytes, self.state.bytes);
    }

    #[inline]
    fn block(&self, ptr: &Ptr) -> Result<PageRef<'_>> {
        Counters::bump(&self.counters.blocks_read);
        self.inner.block(ptr, self.state.bytes)
    }

    #[inline]
    fn bytes(&self, addr: u64, len: usize) -> Result<PageRef<'_>> {
        self.inner.bytes(addr, len, self.state.bytes)
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}
