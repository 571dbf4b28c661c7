//! The write transaction.
//!
//! Invariants
//! 1. The transaction holds the writer lock, and with it the writer state, until it is dropped. Dropping it, even
//!    during a panic, returns both and undoes all uncommitted changes.
//! 2. The first failed write or allocation, or the first impossible pointer, fails the transaction: every later change
//!    and the commit return the same error. A partial operation is never committed.

use super::dirty::Dirty;
use super::inner::Inner;
use super::inner::Pager;
use super::pin_changes::PinChanges;
use super::savepoints::{Epochs, SavedState, Savepoint};
use super::uncommitted::UncommittedRead;
use super::writer::Writer;
use crate::commit::versions::State;
use crate::error::{Error, Result};
use crate::format::kind::Kind;
use crate::format::layout::is_large_page;
use crate::format::meta::Redo;
use crate::format::meta::USER_BYTES_MAX;
use crate::format::pages::Counters;
use crate::format::ptr::Ptr;
use crate::options::event::Event;
use crate::space::TxnSpace;
use std::sync::Arc;
use tidalite_base::{Corrupt, TxnId};
use tidalite_disk::lock::WriterGuard;
use tidalite_disk::storage::{MoveCheck, WriteBack};
use tidalite_disk::system::Clocks;

/// Number of bytes that a transaction has written to extents, and the progress of their write-back to the medium.
pub(super) struct ExtentWrites {
    pub(super) bytes_written: u64,
    pub(super) write_back: WriteBack,
}

impl ExtentWrites {
    fn new() -> Self {
        Self {
            bytes_written: 0,
            write_back: WriteBack::new(None),
        }
    }
}

/// Changes of a transaction to the redo log.
#[derive(Default)]
pub(super) struct LogChange {
    /// Pages of the redo log that the transaction has created.
    pub(super) new: Option<Redo>,
    /// Whether the transaction has freed the pages of the previous redo log.
    pub(super) is_left: bool,
}

/// A write transaction; only one exists at a time for each file. Dropping it rolls it back.
pub struct WriteTxn {
    pub(super) inner: Arc<Inner>,
    pub(super) writer: Option<Box<Writer>>,
    pub(super) base: Arc<State>,
    /// The user data that the commit will store.
    pub(super) user: Arc<[u8]>,
    pub(super) txn: TxnId,
    pub(super) space: TxnSpace,
    pub(super) dirty: Dirty,
    pub(super) epochs: Epochs,
    pub(super) pins: PinChanges,
    pub(super) extents: ExtentWrites,
    failed: Option<Error>,
    pub(super) log: LogChange,
    /// Whether `Space::stage` was called, because a commit is under way.
    pub(super) staged: bool,
    pub(super) counters: Counters,
    /// The writer lock. It is dropped last, so that the next writer begins only when the writer state is restored.
    /// `None` once a checkpoint has passed it to the next transaction.
    pub(super) guard: Option<WriterGuard>,
}

impl WriteTxn {
    pub(crate) fn begin(inner: Arc<Inner>, guard: WriterGuard) -> Result<Self> {
        inner.files.check_poison()?;
        let look = match inner.files.lock.is_last_writer() {
            true => MoveCheck::Quick,
            false => MoveCheck::Full,
        };
        inner.check_moved(look)?;
        inner.refresh()?;
        let mut writer = inner.take_writer(&inner.state())?;
        if let Err(error) = writer.confirm(&inner) {
            inner.put_writer(writer);
            return Err(error);
        }
        if inner.pipeline.base(inner.state()).txn.0 < writer.meta.txn {
            // The process that made the newest commit was killed before it could publish the commit.
            let state = State::of_meta(&writer.meta, inner.files.page_size);
            inner.publish(&Arc::new(state), true);
        }
        writer.durable_is(inner.pipeline.durable_txn());
        writer.reclaim(&inner);
        writer.space.begin_free_range(writer.last.passing);
        let base = inner.pipeline.base(inner.state());
        let txn = base.txn.next();
        let spare = std::mem::take(&mut writer.spare);
        let mut dirty = Dirty::new(
            inner.files.page_size,
            txn,
            inner.files.options.dirty_bytes_max,
            spare,
        );
        if writer.last.early.begin() {
            dirty.write_behind(&inner.files.storage, inner.files.options.write_behind_bytes);
        } else if writer.last.passing && !inner.files.options.poison_freed {
            dirty.change_in_place(&*inner.files.storage);
        }
        assert!(
            txn.0 > writer.meta.txn,
            "a transaction is newer than the newest record"
        );
        guard.lead();
        Ok(Self {
            dirty,
            inner,
            writer: Some(writer),
            user: Arc::clone(&base.user),
            base,
            txn,
            space: TxnSpace::default(),
            epochs: Epochs::default(),
            pins: PinChanges::default(),
            extents: ExtentWrites::new(),
            failed: None,
            log: LogChange::default(),
            staged: false,
            counters: Counters::default(),
            guard: Some(guard),
        })
    }

    /// Returns the app area of the commit on which this transaction builds, in which the layers above the pager store
    /// their data.
    #[must_use]
    pub fn app(&self) -> &[u8] {
        &self.base.app
    }

    /// Returns the user data that the commit will store: the data set in this transaction, or the data of the
    /// previous commit.
    #[must_use]
    pub fn user_data(&self) -> &[u8] {
        &self.user
    }

    /// Sets the user data: a few bytes in the meta record that readers get with their snapshot, such as the applied
    /// position in a replication log. Later commits keep the user data until they are set again.
    ///
    /// # Errors
    /// `Limit` if the data have more than [`USER_BYTES_MAX`] bytes.
    pub fn set_user_data(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.len() > USER_BYTES_MAX {
            return Err(Error::Limit {
                what: "bytes of user data",
                found: bytes.len() as u64,
                limit: USER_BYTES_MAX as u64,
            });
        }
        self.user = bytes.into();
        Ok(())
    }

    /// Transaction number of the commit on which this transaction builds.
    #[must_use]
    pub fn base_txn(&self) -> TxnId {
        self.base.txn
    }

    /// Wall-clock time of the commit on which this transaction builds, in nanoseconds since 1970.
    #[must_use]
    pub fn base_time_ns(&self) -> i64 {
        self.base.time_ns
    }

    /// Readings of the clocks of this handle ([`Options::clock`](crate::Options::clock)): now, and when the file was
    /// opened.
    #[must_use]
    pub fn clocks(&self) -> (Clocks, Clocks) {
        self.inner.files.clocks()
    }

    /// Passes the event to the logger of this handle, if there is one.
    pub fn log_event(&self, event: &Event) {
        self.inner.files.log(event);
    }

    /// Declares that this transaction frees space: on a full disk it may use the pages reserved for this purpose
    /// ([`Options::reserve_bytes`](crate::Options::reserve_bytes)). If it uses them, its commit fails (`DiskFull`)
    /// unless the transaction frees at least as many pages as it allocates, or leaves at least seven eighths of the
    /// reserve, counting the pages that it frees.
    pub fn free_space(&mut self) {
        self.space.frees_space = true;
    }

    /// Declares that this transaction compacts the file. It then allocates the lowest free pages. Its commit moves
    /// the pages of the free-space structure, of the list of commit times and of the pins that lie at or beyond byte
    /// offset `boundary`, and truncates the free end of the file. The commit is written even if nothing else has
    /// changed.
    pub fn compact(&mut self, boundary: u64) {
        self.space.compacts = true;
        self.space.frees_space = true;
        let boundary = boundary / self.inner.files.page_size as u64;
        self.space.boundary = boundary;
        self.writer().space.move_structure(boundary);
    }

    /// Length of the file in pages.
    #[must_use]
    pub fn file_pages(&self) -> u64 {
        self.end() / self.inner.files.page_size as u64
    }

    /// Number of freed pages that cannot be reused yet, because a snapshot or a durable meta record still needs them.
    #[must_use]
    pub fn pages_waiting(&self) -> u64 {
        let writer = self.writer.as_ref();
        writer.map_or(0, |writer| writer.space.retained_pages())
    }

    /// Number of pages of the redo log, which count as in use.
    #[must_use]
    pub fn log_pages(&self) -> u64 {
        let redo = self.writer.as_ref().and_then(|writer| writer.meta.redo);
        redo.map_or(0, |redo| redo.pages)
    }

    /// Number of free pages reserved for transactions that free space
    /// ([`Options::reserve_bytes`](crate::Options::reserve_bytes)).
    #[must_use]
    pub fn pages_reserved(&self) -> u64 {
        let writer = self.writer.as_ref();
        writer.map_or(0, |writer| writer.reserve_pages(&self.inner.files))
    }

    /// Number of pages of the first file that this transaction has allocated and not returned, and number of pages of
    /// earlier transactions that it has freed.
    #[must_use]
    pub fn pages_changed(&self) -> (u64, u64) {
        (self.space.own_pages, self.space.freed_pages)
    }

    /// Number of pages in use, including freed pages that cannot be reused yet, and number of the first page after
    /// the last of them.
    #[must_use]
    pub fn pages_in_use(&self) -> (u64, u64) {
        let space = self.writer.as_ref().map(|writer| &writer.space);
        space.map_or((0, 0), |space| {
            let own = self.space.own_pages;
            (space.pages() - space.free_pages() - own, space.end())
        })
    }

    /// Saves the current state of the transaction, for `rollback_to`. From then on, pages that the transaction has
    /// already changed are copied before they are changed again; a savepoint costs nothing else. Any number of
    /// savepoints may be nested.
    ///
    /// # Errors
    /// The error that failed the transaction earlier.
    pub fn savepoint(&mut self) -> Result<Savepoint> {
        self.check()?;
        self.prune();
        Ok(self.epochs.savepoint(SavedState {
            user: Arc::clone(&self.user),
            extent_bytes_written: self.extents.bytes_written,
            pins: self.pins.names.clone(),
        }))
    }

    /// Undoes everything since `savepoint`, including an error that failed the transaction since. Pointers to pages
    /// that were valid at the time of the savepoint are valid again. Later savepoints and readers of uncommitted data
    /// end; the savepoint itself stays. The cost is proportional to the undone changes.
    ///
    /// # Errors
    /// `NoSavepoint` if the savepoint belongs to another transaction or was undone by an earlier rollback.
    pub fn rollback_to(&mut self, savepoint: &Savepoint) -> Result<()> {
        let Some(restored) = self.epochs.roll_back(savepoint, &mut self.space) else {
            return Err(Error::NoSavepoint);
        };
        for (page, pages) in restored.released {
            self.release_own(page, pages);
        }
        self.user = restored.kept.user;
        self.extents.bytes_written = restored.kept.extent_bytes_written;
        self.pins.names = restored.kept.pins;
        self.failed = None;
        Ok(())
    }

    /// Creates a reader of the current uncommitted data, for any thread. This transaction continues, and copies pages
    /// before it changes them. The cost is proportional to the number of changed pages, although these are shared,
    /// not copied.
    ///
    /// # Errors
    /// The error that failed the transaction earlier; `Limit` if too many snapshots exist, in all processes together.
    pub fn reader(&mut self) -> Result<UncommittedRead> {
        self.check_usable()?;
        self.prune();
        let slot = UncommittedRead::hold(&self.inner.files, &self.base)?;
        Ok(UncommittedRead {
            slot,
            inner: Arc::clone(&self.inner),
            base: Arc::clone(&self.base),
            txn: self.txn,
            end: self.end(),
            pages: self.dirty.keep(),
            user: Arc::clone(&self.user),
            token: self.epochs.reader(),
            counters: Counters::default(),
        })
    }

    fn prune(&mut self) {
        for (page, pages) in self.epochs.prune() {
            self.release_own(page, pages);
        }
    }

    /// Frees a range that this transaction allocated, so that it can be allocated again.
    pub(super) fn release_own(&mut self, page: u64, pages: u64) {
        if !self.space.own.remove(page, pages) {
            return;
        }
        if !is_large_page(page) {
            for number in page..page + pages {
                self.dirty.remove(number);
            }
        }
        if !is_large_page(page) {
            assert!(
                self.space.own_pages >= pages,
                "more pages are released than were taken"
            );
            self.space.own_pages -= pages;
        }
        self.writer().space.release(page, pages);
    }

    /// Returns the pager of the file to which this transaction writes.
    #[must_use]
    pub fn pager(&self) -> Pager {
        Pager {
            inner: Arc::clone(&self.inner),
        }
    }

    pub(super) fn writer(&mut self) -> &mut Writer {
        match &mut self.writer {
            Some(writer) => writer,
            None => unreachable!("the writer state leaves with the transaction"),
        }
    }

    /// Stores an error that leaves an operation incomplete: from now on every change and the commit return this
    /// error.
    pub(super) fn fail(&mut self, error: Error) -> Error {
        let again = error.clone();
        self.failed.get_or_insert(error);
        again
    }

    pub(super) fn check(&self) -> Result<()> {
        match &self.failed {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Like `check`, but also returns an error in a forked child, which would write to its parent's file.
    pub(super) fn check_usable(&self) -> Result<()> {
        self.inner.files.lock.check_process()?;
        self.check()
    }

    /// Must be called before an access that may touch the file: the page may have to be read back, may be changed in
    /// place, or may cause other pages to be written to make room. Returns an error in a forked child unless all
    /// pages are in private memory.
    pub(super) fn check_shared(&self) -> Result<()> {
        if self.dirty.is_private() {
            self.check()
        } else {
            self.check_usable()
        }
    }

    pub(super) fn alloc(&mut self, pages: u64, extent: bool) -> Result<u64> {
        self.check_usable()?;
        let Some(writer) = &mut self.writer else {
            unreachable!("the writer state leaves with the transaction")
        };
        let page = writer.alloc(&self.inner, &mut self.space, pages, extent, true);
        let page = page.map_err(|error| self.fail(error))?;
        debug_assert!(
            self.space.own.contains(page, pages),
            "an allocation belongs to the transaction"
        );
        self.epochs.allocated(page, pages);
        Ok(page)
    }

    /// Length in bytes of the part of the file that this transaction may read.
    pub(super) fn end(&self) -> u64 {
        let pages = self
            .writer
            .as_ref()
            .map_or(0, |writer| writer.space.pages());
        pages * self.inner.files.page_size as u64
    }

    pub(super) fn put(
        &mut self,
        kind: Kind,
        (owner, origin): (u64, Option<u64>),
        bytes: Arc<[u8]>,
    ) -> Result<Ptr> {
        let page = self.alloc(1, false)?;
        let epoch = self.epochs.current();
        let inserted = self.dirty.insert(
            &*self.inner.files.storage,
            page,
            kind,
            (owner, origin),
            epoch,
            bytes,
        );
        inserted.map_err(|error| self.fail(error))
    }

    pub(super) fn free(&mut self, addr: u64, pages: u64, birth: TxnId) {
        let page_size = self.inner.files.page_size as u64;
        let page = addr / page_size;
        let reason = if !addr.is_multiple_of(page_size) {
            "an address inside a page".into()
        } else if birth == self.txn {
            let owned = self.space.own.contains(page, pages);
            match owned.then(|| self.epochs.free_own(page, pages)).flatten() {
                Some(true) => return self.release_own(page, pages),
                // A savepoint or a reader of uncommitted data still needs the range.
                Some(false) => return,
                None => {}
            }
            "a range that this transaction does not own".into()
        } else {
            let Some(writer) = &mut self.writer else {
                unreachable!("the writer state leaves with the transaction")
            };
            match writer.space.can_free(&self.space, page, pages) {
                Ok(()) if birth < self.txn => {
                    self.epochs.freed_old(page, pages, birth.0);
                    return self.space.free(page, pages, birth.0);
                }
                Ok(()) => "a range of a later transaction".into(),
                Err(reason) => reason,
            }
        };
        let found = format!("the freeing of {pages} pages of {birth}: {reason}");
        let damage = Corrupt::new("page in use", addr, found, "a range in use, freed once");
        self.fail(damage.into());
    }
}

impl Drop for WriteTxn {
    fn drop(&mut self) {
        let Some(mut writer) = self.writer.take() else {
            return;
        };
        if self.staged {
            writer.space.unstage(&self.space);
        }
        let _ = self.epochs.finish();
        writer.spare = self
            .dirty
            .end(self.inner.files.lock.check_process().is_ok());
        writer.space.roll_back(&mut self.space);
        self.inner.put_writer(writer);
    }
}
