//! Snapshots, through which readers see one version of the whole file.

use super::inner::Inner;
use crate::commit::versions::State;
use crate::error::{Error, Result};
use crate::format::layout::first_page;
use crate::format::meta::Meta;
use crate::format::pages::{Counters, PageRead, PageRef};
use crate::format::pins;
use crate::format::pins::Pin;
use crate::format::ptr::Ptr;
use std::path::Path;
use std::sync::{Arc, Weak};
use tidalite_base::{Corrupt, TxnId};
use tidalite_disk::lock::Lock;
use tidalite_disk::lock::protocol::{self, EVICTABLE, PARKED};
use tidalite_disk::system::Clocks;

/// Maximum ratio of the file length of a pinned version to the current file length. Pages of the version beyond the
/// end of the current file were free, but memory is still allocated for them.
const PINNED_LONGER_MAX: u64 = 1 << 16;

/// A view of the file as of one commit. A snapshot never changes while it exists, in any thread, and its pages are
/// not reused before it is dropped. (An evictable snapshot may lose its pages earlier: see
/// [`Pager::begin_read_evictable`](crate::Pager::begin_read_evictable).)
pub struct Snapshot {
    inner: Arc<Inner>,
    state: Arc<State>,
    /// The slot in the reader table that this snapshot and its clones occupy.
    slot: usize,
    /// State word that this snapshot has stored in its slot.
    word: u64,
    /// Whether the observer of the storage counts this snapshot as a reader. It does not count a snapshot that may be
    /// evicted.
    told: bool,
    counters: Counters,
}

/// The commit that a snapshot showed, without retaining its pages. Another snapshot of the same commit can be begun
/// with it: see [`Pager::begin_read_as`](crate::Pager::begin_read_as).
#[derive(Clone)]
pub struct Shown {
    /// The handle to which the commit belongs. The weak reference does not keep the handle open.
    inner: Weak<Inner>,
    state: Arc<State>,
}

impl Shown {
    /// Returns a snapshot of this commit, if it is the newest commit of this handle.
    #[inline]
    pub(crate) fn begin(&self, inner: &Arc<Inner>) -> Result<Option<Snapshot>> {
        if self.inner.as_ptr() != Arc::as_ptr(inner) {
            return Ok(None);
        }
        Snapshot::begin_as(inner, &self.state)
    }

    /// Whether `snapshot` shows the same commit with the same visibility: a commit of
    /// [`Durability::None`](crate::Durability::None) is visible to all once it is durable.
    #[must_use]
    pub fn is_of(&self, snapshot: &Snapshot) -> bool {
        let (own, other) = (&self.state, &snapshot.state);
        (own.txn, own.word) == (other.txn, other.word)
            && (Arc::ptr_eq(&own.app, &other.app) || own.app == other.app)
    }
}

/// Stores a state word in a slot of the reader table. Returns false if `newest` is not the newest commit, published
/// and of this handle. This is checked after the store, so that no newer commit was published before the slot was
/// visible.
#[inline]
fn enters(inner: &Inner, slot: usize, word: u64, newest: &State) -> bool {
    let published = (inner.files.lock.area.published(), newest.word);
    let own = (&inner.versions.local, newest.txn.0);
    protocol::enter(inner.files.lock.state(slot), word, &[published, own])
}

impl Snapshot {
    /// Begins a snapshot of the newest commit. `kind` is 0, or `EVICTABLE` for a snapshot that may be evicted.
    #[inline]
    pub(crate) fn begin(inner: &Arc<Inner>, kind: u64) -> Result<Self> {
        inner.files.lock.check_process()?;
        let slot = inner.files.lock.take_slot()?;
        let state = loop {
            let state = inner.versions.state.load_full();
            if enters(inner, slot, state.txn.0 | kind, &state) {
                break state;
            }
            if let Err(error) = inner.refresh() {
                inner.files.lock.leave_slot(slot);
                return Err(error);
            }
        };
        Ok(Self::of_slot(inner, slot, state.txn.0 | kind, state))
    }

    /// Begins a snapshot of the commit `state` that cannot be evicted; returns `None` if another commit is the
    /// newest.
    #[inline]
    fn begin_as(inner: &Arc<Inner>, state: &Arc<State>) -> Result<Option<Self>> {
        inner.files.lock.check_process()?;
        let slot = inner.files.lock.take_slot()?;
        let txn = state.txn.0;
        if enters(inner, slot, txn, state) {
            return Ok(Some(Self::of_slot(inner, slot, txn, Arc::clone(state))));
        }
        inner.files.lock.leave_slot(slot);
        Ok(None)
    }

    /// Reports this snapshot to the observer of the storage, unless it may be evicted.
    #[inline]
    fn report_began(&mut self) {
        if !self.is_evictable()
            && let Some(observer) = self.inner.files.observer()
        {
            observer.reader_began(self.state.txn.0);
            self.told = true;
        }
    }

    #[inline]
    fn report_ended(&mut self) {
        if self.told
            && let Some(observer) = self.inner.files.observer()
        {
            observer.reader_ended(self.state.txn.0);
            self.told = false;
        }
    }

    /// Begins a snapshot of a pinned version; returns `None` if there is no pin with this name.
    pub(crate) fn begin_at(inner: &Arc<Inner>, name: &str) -> Result<Option<Self>> {
        loop {
            let newest = Self::begin(inner, 0)?;
            let Some(pin) = newest.pins()?.into_iter().find(|pin| pin.name == name) else {
                return Ok(None);
            };
            let block = inner.files.block(&pin.record, newest.state.bytes)?;
            let meta = Meta::decode(&block, pin.record.addr, &inner.files.superblock.uuid)?;
            drop(block);
            if meta.txn != pin.txn.0 || meta.txn > newest.state.txn.0 {
                let found = format!("transaction {}", meta.txn);
                let expected = format!(
                    "{}, as the pin says, and not newer than the file",
                    pin.txn.0
                );
                return Err(Corrupt::new("pinned record", pin.record.addr, found, expected).into());
            }
            // If the pinned version is longer than the file, this is not damage: its last pages may have been free
            // already when it was pinned, and truncated since.
            let page_size = inner.files.page_size as u64;
            let longest = newest.state.bytes.saturating_mul(PINNED_LONGER_MAX);
            let bytes = meta.pages.checked_mul(page_size);
            let fits = bytes.is_some_and(|bytes| bytes <= longest);
            if !fits || meta.pages < first_page(inner.files.page_size) {
                let found = format!("{} pages of {page_size} bytes", meta.pages);
                let expected = format!("a head at least, and at most {longest} bytes");
                return Err(Corrupt::new("pinned record", pin.record.addr, found, expected).into());
            }
            let slot = inner.files.lock.take_slot()?;
            // The pin exists in the newest commit. While that commit is the newest, the pages of the pinned version
            // are not freed.
            if !enters(inner, slot, meta.txn, &newest.state) {
                inner.files.lock.leave_slot(slot);
                continue;
            }
            let state = State {
                // This value matches no published word, so the pinned version is never treated as the newest commit,
                // even if its number is the newest. It lacks the fields below.
                word: u64::MAX,
                // The meta record of a pin contains only the addresses of these blocks, without checksums.
                pins: Ptr::NULL,
                clock: Ptr::NULL,
                ..State::of_meta(&meta, inner.files.page_size)
            };
            return Ok(Some(Self::of_slot(inner, slot, meta.txn, Arc::new(state))));
        }
    }

    /// Takes a slot in the reader table and stores the published commit `txn` in it. Returns `None` if another commit
    /// is published.
    pub(crate) fn hold(lock: &Lock, txn: u64) -> Result<Option<usize>> {
        let slot = lock.take_slot()?;
        let published = (lock.area.published(), txn);
        if protocol::enter(lock.state(slot), txn, &[published]) {
            return Ok(Some(slot));
        }
        lock.leave_slot(slot);
        Ok(None)
    }

    /// Creates a snapshot of a commit that is already stored in a slot of the reader table; `word` is the state word
    /// of the slot.
    #[inline]
    pub(crate) fn of_slot(inner: &Arc<Inner>, slot: usize, word: u64, state: Arc<State>) -> Self {
        let mut snapshot = Self {
            inner: Arc::clone(inner),
            word,
            state,
            slot,
            told: false,
            counters: Counters::default(),
        };
        snapshot.report_began();
        snapshot
    }

    /// Returns the pins of this version, the oldest first.
    ///
    /// # Errors
    /// `Corrupt` if the table of pins is damaged.
    pub fn pins(&self) -> Result<Vec<Pin>> {
        let end = self.state.bytes;
        pins::read_table(&self.state.pins, &|ptr| self.inner.files.block(ptr, end))
    }

    /// Returns the newest commit made at or before a time: see [`Pager::txn_at`](crate::Pager::txn_at).
    ///
    /// # Errors
    /// `Corrupt` if the list of commit times or the table of pins is damaged.
    pub fn txn_at(&self, time_ns: i64) -> Result<Option<(TxnId, i64)>> {
        let end = self.state.bytes;
        let clock = pins::read_clock(&self.state.clock, &|ptr| self.inner.files.block(ptr, end))?;
        let clock = clock.into_iter().map(|(txn, time)| (TxnId(txn), time));
        let pinned = self.pins()?.into_iter().map(|pin| (pin.txn, pin.time_ns));
        let newest = (self.state.txn, self.state.time_ns);
        let known = clock.chain(pinned).chain([newest]);
        Ok(known.filter(|(_, time)| *time <= time_ns).max())
    }

    pub(crate) fn state(&self) -> &Arc<State> {
        &self.state
    }

    /// Whether the snapshot may be evicted: see [`Pager::begin_read_evictable`](crate::Pager::begin_read_evictable).
    #[must_use]
    pub fn is_evictable(&self) -> bool {
        self.word & EVICTABLE != 0
    }

    /// Moves the snapshot to the newest commit, as the same kind of reader. Its counters are kept, and clones stay at
    /// their commit. Costs as much as dropping the snapshot and beginning another one.
    ///
    /// # Errors
    /// As for [`Pager::begin_read`](crate::Pager::begin_read); the snapshot is then unchanged.
    pub fn renew(&mut self) -> Result<()> {
        let mut newer = Self::begin(&self.inner, self.word & EVICTABLE)?;
        newer.counters = std::mem::take(&mut self.counters);
        *self = newer;
        Ok(())
    }

    /// Parks the snapshot for a while: the writer may evict it when it needs the space. If there are clones of the
    /// snapshot, parking has no effect, and the snapshot is not evicted.
    #[must_use]
    pub fn park(mut self) -> Parked {
        let parked = self.state.txn.0 | PARKED;
        let lock = &self.inner.files.lock;
        // Changing the slot fails if a clone shares the slot, since the clone continues to read.
        let is_parked = lock.exchange(self.slot, self.word, parked);
        if is_parked {
            self.report_ended();
        }
        Parked {
            snapshot: self,
            is_parked,
        }
    }

    fn evicted(&self) -> Error {
        Error::Evicted {
            txn: self.state.txn,
        }
    }

    /// Returns the result of a read that copied its bytes if the snapshot was not evicted meanwhile; otherwise
    /// `Evicted`, even if the read reported damage.
    #[cold]
    fn if_still_here<'a>(&'a self, copied: Result<PageRef<'a>>) -> Result<PageRef<'a>> {
        if self.inner.files.lock.still(self.slot, self.word) {
            copied
        } else {
            Err(self.evicted())
        }
    }

    /// Path of the file with symbolic links resolved, if the file was opened by path.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.inner.files.path.as_deref()
    }

    /// Transaction number of the commit that the snapshot shows.
    #[must_use]
    pub fn txn(&self) -> TxnId {
        self.state.txn
    }

    /// Returns the commit that the snapshot shows, with which later snapshots of the same commit can be begun.
    #[must_use]
    pub fn shown(&self) -> Shown {
        Shown {
            inner: Arc::downgrade(&self.inner),
            state: Arc::clone(&self.state),
        }
    }

    /// Returns the app area of the commit, in which the layers above the pager store their data.
    #[must_use]
    pub fn app(&self) -> &[u8] {
        &self.state.app
    }

    /// User data of the commit, as [`WriteTxn::set_user_data`](crate::WriteTxn::set_user_data) has stored them.
    #[must_use]
    pub fn user_data(&self) -> &[u8] {
        &self.state.user
    }

    /// Wall-clock time of the commit that the snapshot shows, in nanoseconds since 1970.
    #[must_use]
    pub fn commit_time_ns(&self) -> i64 {
        self.state.time_ns
    }

    /// Readings of the clocks of this handle ([`Options::clock`](crate::Options::clock)): now, and when the file was
    /// opened.
    #[must_use]
    pub fn clocks(&self) -> (Clocks, Clocks) {
        self.inner.files.clocks()
    }

    /// Length of the file in bytes as of the commit that the snapshot shows.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.state.bytes
    }
}

/// A parked snapshot, which the writer may evict; see [`Snapshot::park`].
pub struct Parked {
    snapshot: Snapshot,
    is_parked: bool,
}

impl Parked {
    /// Ends parking and returns the snapshot.
    ///
    /// # Errors
    /// `Evicted` if the snapshot was evicted meanwhile.
    pub fn unpark(self) -> Result<Snapshot> {
        let Self {
            mut snapshot,
            is_parked,
        } = self;
        let parked = snapshot.state.txn.0 | PARKED;
        let lock = &snapshot.inner.files.lock;
        if is_parked && !lock.exchange(snapshot.slot, parked, snapshot.word) {
            return Err(snapshot.evicted());
        }
        if is_parked {
            snapshot.report_began();
        }
        Ok(snapshot)
    }

    /// Ends parking and returns the snapshot; if it was evicted, begins a snapshot of the newest commit instead.
    ///
    /// # Errors
    /// As for [`Pager::begin_read`](crate::Pager::begin_read).
    pub fn unpark_or_renew(self) -> Result<Snapshot> {
        let (inner, kind) = (
            Arc::clone(&self.snapshot.inner),
            self.snapshot.word & EVICTABLE,
        );
        match self.unpark() {
            Err(Error::Evicted { .. }) => Snapshot::begin(&inner, kind),
            other => other,
        }
    }

    /// Transaction number of the commit that the parked snapshot shows.
    #[must_use]
    pub fn txn(&self) -> TxnId {
        self.snapshot.state.txn
    }
}

impl Clone for Snapshot {
    fn clone(&self) -> Self {
        self.inner.files.lock.share_slot(self.slot);
        let mut clone = Self {
            inner: Arc::clone(&self.inner),
            state: Arc::clone(&self.state),
            slot: self.slot,
            word: self.word,
            told: false,
            counters: Counters::default(),
        };
        clone.report_began();
        clone
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.report_ended();
        self.inner.files.lock.leave_slot(self.slot);
    }
}

impl PageRead for Snapshot {
    #[inline]
    fn page_size(&self) -> usize {
        self.inner.files.page_size
    }

    #[inline]
    fn page(&self, ptr: &Ptr) -> Result<PageRef<'_>> {
        Counters::bump(&self.counters.pages_read);
        if self.is_evictable() {
            self.inner.files.expect_page(ptr)?;
            if ptr.birth.0 > self.state.written
                && let Some(bytes) = self
                    .inner
                    .versions
                    .unwritten
                    .get(ptr, self.inner.files.page_size)
            {
                return self.if_still_here(Ok(PageRef::Owned(bytes)));
            }
            return self.if_still_here(self.inner.files.copied(ptr, self.state.bytes));
        }
        self.inner.page_of(&self.state, ptr)
    }

    #[inline(always)]
    fn lent_page(&self, ptr: &Ptr) -> Option<&[u8]> {
        if self.is_evictable() {
            return None;
        }
        let page = self.inner.files.known_page(&self.state, ptr)?;
        Counters::bump(&self.counters.pages_read);
        Some(page)
    }

    #[inline]
    fn prefetch(&self, ptr: &Ptr, bytes: usize) {
        self.inner.files.prefetch(ptr, bytes, self.state.bytes);
    }

    #[inline]
    fn reads_single_pages(&self) -> bool {
        self.inner.files.storage.reads_single_pages()
    }

    fn reads_ahead_in_order(&self) -> bool {
        !self.is_evictable() && self.inner.files.storage.reads_ahead_in_order()
    }

    fn page_in_order(&self, ptr: &Ptr) -> Result<PageRef<'_>> {
        if self.is_evictable() {
            return self.page(ptr);
        }
        Counters::bump(&self.counters.pages_read);
        self.inner.page_in_order(&self.state, ptr)
    }

    fn read_ahead(&self, addr: u64, bytes: u64) {
        self.inner.files.read_ahead(addr, bytes, self.state.bytes);
    }

    #[inline]
    fn block(&self, ptr: &Ptr) -> Result<PageRef<'_>> {
        Counters::bump(&self.counters.blocks_read);
        if self.is_evictable() {
            return self.if_still_here(self.inner.files.copied(ptr, self.state.bytes));
        }
        self.inner.files.block_once(ptr, self.state.bytes)
    }

    #[inline]
    fn bytes(&self, addr: u64, len: usize) -> Result<PageRef<'_>> {
        if self.is_evictable() {
            return self.if_still_here(self.inner.files.read_owned(addr, len, self.state.bytes));
        }
        self.inner.files.bytes(addr, len, self.state.bytes)
    }

    #[inline]
    fn prefetch_bytes(&self, addr: u64, len: usize) {
        self.inner.files.prefetch_bytes(addr, len, self.state.bytes);
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}
