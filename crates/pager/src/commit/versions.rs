//! The newest commit that readers of this handle see.

use super::files::Files;
use super::found::Found;
use super::unwritten_pages::Unwritten;
use crate::error::Result;
use crate::format::meta::Meta;
use crate::format::ptr::Ptr;
use arc_swap::ArcSwap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tidalite_base::TxnId;
use tidalite_disk::lock::Lock;
use tidalite_disk::lock::protocol;

/// One commit as readers see it.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) txn: TxnId,
    /// The value of the lock area's word `published` while this is the newest commit. It differs from `txn` only for
    /// commits that are visible only to this process.
    pub(crate) word: u64,
    pub(crate) bytes: u64,
    /// Pages born up to this transaction are in the file; younger pages may be in `Versions::unwritten`.
    pub(crate) written: u64,
    pub(crate) app: Arc<[u8]>,
    pub(crate) user: Arc<[u8]>,
    pub(crate) time_ns: i64,
    /// Pointer to the page with the table of pins.
    pub(crate) pins: Ptr,
    pub(crate) clock: Ptr,
    /// In a read-only handle: the meta record from which the free space of this commit can be read.
    pub(crate) found: Option<Arc<Found>>,
}

impl State {
    pub(crate) fn of_meta(meta: &Meta, page_size: usize) -> Self {
        Self {
            txn: TxnId(meta.txn),
            word: meta.txn,
            bytes: meta.pages * page_size as u64,
            written: u64::MAX,
            app: Arc::clone(&meta.app),
            user: Arc::clone(&meta.user),
            time_ns: meta.time_ns,
            pins: meta.pins,
            clock: meta.clock,
            found: None,
        }
    }

    pub(crate) fn of(found: Found, page_size: usize, read_only: bool) -> Self {
        let mut state = Self::of_meta(&found.meta, page_size);
        state.found = read_only.then(|| Arc::new(found));
        state
    }
}

/// The newest commit of this handle, and the pages of commits that are not written to the file yet.
pub(crate) struct Versions {
    pub(crate) state: ArcSwap<State>,
    /// The transaction number of `state`. A reader that begins checks this number again after it has stored the
    /// number in its reader slot, since a newer commit may have been published in between.
    pub(crate) local: AtomicU64,
    pub(crate) unwritten: Unwritten,
    /// Lock that a thread takes to change `state`.
    publishing: Mutex<()>,
}

impl Versions {
    pub(crate) fn new(state: State) -> Self {
        Self {
            local: AtomicU64::new(state.txn.0),
            state: ArcSwap::from_pointee(state),
            unwritten: Unwritten::default(),
            publishing: Mutex::new(()),
        }
    }

    /// Returns the newest commit that this handle knows.
    pub(crate) fn state(&self) -> Arc<State> {
        self.state.load_full()
    }

    fn show(&self, state: Arc<State>) {
        debug_assert!(
            self.publishing.try_lock().is_err(),
            "the state changes outside of the lock"
        );
        let txn = state.txn.0;
        self.state.store(state);
        self.local.store(txn, Ordering::SeqCst);
    }

    /// Publishes a commit of this handle, to all handles or only to readers of this process. This handle must hold
    /// the writer lock. A published commit is never replaced by an older one.
    pub(crate) fn publish(&self, lock: &Lock, state: &Arc<State>, to_all: bool) {
        let _publishing = self
            .publishing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let published = lock.area.published();
        let before = published.load(Ordering::SeqCst);
        let word = if to_all {
            state.txn.0.max(before)
        } else {
            before
        };
        let shown = self.state();
        let newest = if state.txn > shown.txn { state } else { &shown };
        assert!(
            newest.txn >= shown.txn,
            "an older commit replaces a newer one"
        );
        assert!(word >= before, "the published commit goes back");
        assert!(
            !to_all || newest.txn.0 >= state.txn.0,
            "a published commit is not shown"
        );
        if newest.word == word {
            self.show(Arc::clone(newest));
        } else {
            let newest = State::clone(newest);
            self.show(Arc::new(State { word, ..newest }));
        }
        if word > before {
            protocol::publish(published, word);
        }
    }

    /// Adopts the newest commit that another handle has published.
    #[cold]
    pub(crate) fn refresh(&self, files: &Files) -> Result<()> {
        let _publishing = self
            .publishing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let known = self.state.load().word;
        let (storage, superblock) = (&*files.storage, &files.superblock);
        if let Some(found) = Found::published(storage, superblock, &files.lock, Some(known))? {
            let state = State::of(found, files.page_size, files.options.read_only);
            self.show(Arc::new(state));
        }
        Ok(())
    }
}
