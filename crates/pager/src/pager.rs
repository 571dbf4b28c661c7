//! The open file.
//!
//! Invariants
//! 1. `published.state` is the newest commit of this process; `published.older` knows every older one that
//!    a reader may still hold. A state that is not the newest gets no new readers.
//! 2. Whoever holds the turn owns the writer state; it is in `writer` whenever nobody holds the turn.
//! 3. After a failed sync or meta write `poisoned` is set for good: nothing more is acknowledged.

use crate::error::{Error, Result};
use crate::layout::HEAD_BYTES;
use crate::meta::{Confirmation, Meta};
use crate::options::{Options, Verify};
use crate::pages::PageRef;
use crate::ptr::Ptr;
use crate::snapshot::Snapshot;
use crate::storage::{Observer, Storage};
use crate::superblock::Superblock;
use crate::turns::Turns;
use crate::txn::WriteTxn;
use crate::verified::Verified;
use crate::verify_block;
use crate::writer::Writer;
use std::fs::File;
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use tidalite_base::{Corrupt, TxnId};

/// One commit as readers see it.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) txn: TxnId,
    pub(crate) bytes: u64,
    pub(crate) app: Arc<[u8]>,
    pub(crate) user: Arc<[u8]>,
    pub(crate) time_ns: i64,
}

#[derive(Debug)]
pub(crate) struct Published {
    pub(crate) state: Arc<State>,
    older: Vec<(u64, Weak<State>)>,
}

enum WriterSlot {
    /// The free space was not read yet.
    Unread,
    Here(Box<Writer>),
    /// Whoever holds the turn has it.
    Taken,
}

pub(crate) struct Inner {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) superblock: Superblock,
    pub(crate) page_size: usize,
    pub(crate) options: Options,
    pub(crate) verified: Verified,
    published: Mutex<Published>,
    pub(crate) turns: Arc<Turns>,
    writer: Mutex<WriterSlot>,
    /// The newest durable record and the one before, as found at open.
    pub(crate) found: (Meta, u64, Confirmation),
    poisoned: OnceLock<String>,
    pub(crate) observed: bool,
    pub(crate) _lock: Option<File>,
}

/// One open file. Clones share it.
#[derive(Clone)]
pub struct Pager {
    pub(crate) inner: Arc<Inner>,
}

/// Figures about the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stat {
    /// Bytes of a page.
    pub page_size: usize,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Pages of the file, its head included.
    pub pages_total: u64,
    /// Pages that can be allocated now.
    pub pages_free: u64,
    /// Pages that are dead but seen by a snapshot or needed by the newest durable states.
    pub pages_pending: u64,
    /// The longest free stretch, at most.
    pub longest_free_pages: u64,
    /// The newest commit.
    pub txn: TxnId,
    /// Its wall-clock time, nanoseconds since 1970.
    pub commit_time_ns: i64,
    /// The file's identity.
    pub uuid: [u8; 16],
}

impl Pager {
    /// A snapshot of the newest commit; any number, in any thread.
    #[must_use]
    pub fn begin_read(&self) -> Snapshot {
        Snapshot::new(Arc::clone(&self.inner), self.inner.state())
    }

    /// Begins the write transaction; waits for others, first come first served.
    ///
    /// # Errors
    /// `ReadOnly`, `Poisoned`; what reading the free space or confirming the newest state meets.
    pub fn begin_write(&self) -> Result<WriteTxn> {
        self.inner.check_writable()?;
        WriteTxn::begin(Arc::clone(&self.inner), self.inner.turns.wait())
    }

    /// Begins the write transaction unless another one is under way (then `None`).
    ///
    /// # Errors
    /// As for `begin_write`.
    pub fn try_begin_write(&self) -> Result<Option<WriteTxn>> {
        self.inner.check_writable()?;
        let Some(turn) = self.inner.turns.try_take() else {
            return Ok(None);
        };
        WriteTxn::begin(Arc::clone(&self.inner), turn).map(Some)
    }

    /// Bytes of a page.
    #[must_use]
    pub fn page_size(&self) -> usize {
        self.inner.page_size
    }

    /// The file's identity.
    #[must_use]
    pub fn uuid(&self) -> [u8; 16] {
        self.inner.superblock.uuid
    }

    /// How the file was opened.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.inner.options
    }

    /// Figures about the file. Waits for a write transaction under way.
    ///
    /// # Errors
    /// What reading the free space meets.
    pub fn stat(&self) -> Result<Stat> {
        let _turn = self.inner.turns.wait();
        let mut writer = self.inner.take_writer()?;
        writer.reclaim(&self.inner);
        let state = self.inner.state();
        let stat = Stat {
            page_size: self.inner.page_size,
            file_bytes: writer.space.pages() * self.inner.page_size as u64,
            pages_total: writer.space.pages(),
            pages_free: writer.space.free_pages(),
            pages_pending: writer.space.held_pages(),
            longest_free_pages: writer.space.longest_free(),
            txn: state.txn,
            commit_time_ns: state.time_ns,
            uuid: self.inner.superblock.uuid,
        };
        self.inner.put_writer(writer);
        Ok(stat)
    }
}

impl Drop for Inner {
    /// Gives space back that the file grew ahead by, when it is a step or more. Nobody reads any more;
    /// the newest durable record does not count these pages.
    fn drop(&mut self) {
        let slot = self
            .writer
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        let WriterSlot::Here(writer) = slot else {
            return;
        };
        if self.options.read_only || self.poisoned.get().is_some() {
            return;
        }
        let page_bytes = self.page_size as u64;
        let slack = writer.space.pages().saturating_sub(writer.meta.pages) * page_bytes;
        if slack >= self.options.growth_bytes_min {
            // If it fails, the file is only longer than it needs to be.
            drop(self.storage.cut(writer.meta.pages * page_bytes));
        }
    }
}

impl Inner {
    pub(crate) fn new(
        storage: Arc<dyn Storage>,
        superblock: Superblock,
        options: Options,
        found: (Meta, u64, Confirmation),
        lock: Option<File>,
    ) -> Self {
        let meta = &found.0;
        let state = Arc::new(State {
            txn: TxnId(meta.txn),
            bytes: meta.pages * superblock.page_size as u64,
            app: Arc::clone(&meta.app),
            user: Arc::clone(&meta.user),
            time_ns: meta.time_ns,
        });
        Self {
            observed: storage.observer().is_some(),
            storage,
            page_size: superblock.page_size,
            verified: Verified::new(superblock.page_size),
            superblock,
            options,
            published: Mutex::new(Published {
                state,
                older: Vec::new(),
            }),
            turns: Arc::default(),
            writer: Mutex::new(WriterSlot::Unread),
            found,
            poisoned: OnceLock::new(),
            _lock: lock,
        }
    }

    pub(crate) fn published(&self) -> MutexGuard<'_, Published> {
        self.published
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn state(&self) -> Arc<State> {
        Arc::clone(&self.published().state)
    }

    pub(crate) fn publish(&self, state: State) {
        let mut published = self.published();
        let old = std::mem::replace(&mut published.state, Arc::new(state));
        published.older.push((old.txn.0, Arc::downgrade(&old)));
    }

    /// The transactions that readers hold, and the newest one, ascending.
    pub(crate) fn live(&self) -> Vec<u64> {
        let mut published = self.published();
        published
            .older
            .retain(|(_, state)| state.strong_count() > 0);
        // What a reader did with its state comes before what we do to the pages that it saw.
        fence(Ordering::Acquire);
        let mut live: Vec<u64> = published.older.iter().map(|(txn, _)| *txn).collect();
        live.push(published.state.txn.0);
        live
    }

    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.options.read_only {
            return Err(Error::ReadOnly);
        }
        self.check_poison()
    }

    pub(crate) fn check_poison(&self) -> Result<()> {
        match self.poisoned.get() {
            Some(first) => Err(Error::Poisoned {
                first: first.clone(),
            }),
            None => Ok(()),
        }
    }

    /// From now on nothing more is acknowledged.
    pub(crate) fn poison(&self, error: &Error) {
        let _ = self.poisoned.set(error.to_string());
    }

    pub(crate) fn observer(&self) -> Option<&dyn Observer> {
        if self.observed {
            self.storage.observer()
        } else {
            None
        }
    }

    /// The writer state; reads the free space the first time. Only for who holds the turn.
    pub(crate) fn take_writer(&self) -> Result<Box<Writer>> {
        let mut slot = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *slot, WriterSlot::Taken) {
            WriterSlot::Here(writer) => Ok(writer),
            WriterSlot::Unread => {
                let loaded = Writer::load(self).map(Box::new);
                if loaded.is_err() {
                    *slot = WriterSlot::Unread;
                }
                loaded
            }
            WriterSlot::Taken => Err(Error::Poisoned {
                first: "a panic lost the state of the writer".into(),
            }),
        }
    }

    pub(crate) fn put_writer(&self, writer: Box<Writer>) {
        let mut slot = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        *slot = WriterSlot::Here(writer);
    }

    /// Bytes of the file between the head and `end`.
    #[inline]
    pub(crate) fn bytes(&self, addr: u64, len: usize, end: u64) -> Result<PageRef<'_>> {
        match self.lent(addr, len, end) {
            Some(bytes) => Ok(PageRef::Borrowed(bytes)),
            None => self.read_owned(addr, len, end),
        }
    }

    /// Bytes lent from the map. `None`: outside, or not mapped.
    #[inline]
    fn lent(&self, addr: u64, len: usize, end: u64) -> Option<&[u8]> {
        let inside = addr.checked_add(len as u64).is_some_and(|to| to <= end);
        if !inside || addr < HEAD_BYTES {
            return None;
        }
        self.storage.mapped(addr, len)
    }

    #[cold]
    pub(crate) fn read_owned(&self, addr: u64, len: usize, end: u64) -> Result<PageRef<'_>> {
        let inside = addr.checked_add(len as u64).is_some_and(|to| to <= end);
        if !inside || addr < HEAD_BYTES {
            return Err(outside(addr, len, end));
        }
        let mut bytes = vec![0u8; len];
        match self.storage.read_at(addr, &mut bytes) {
            Ok(()) => Ok(PageRef::Owned(bytes.into())),
            Err(source) => Err(Error::Io {
                what: format!("read of {len} bytes"),
                at: addr,
                source,
            }),
        }
    }

    /// A whole page, verified as the options say.
    #[inline]
    pub(crate) fn page(&self, ptr: &Ptr, end: u64) -> Result<PageRef<'_>> {
        if ptr.len as usize != self.page_size || ptr.addr & (self.page_size as u64 - 1) != 0 {
            return Err(not_a_page(ptr, self.page_size));
        }
        // The common case makes the result once and in one place: a `Result<PageRef>` that is passed
        // on is copied, and each copy waits for the stores before it.
        match self.lent(ptr.addr, self.page_size, end) {
            Some(bytes) => {
                if self.options.verify != Verify::OnFirstTouch || !self.verified.knows(ptr) {
                    self.verify(ptr, bytes)?;
                }
                Ok(PageRef::Borrowed(bytes))
            }
            None => {
                let bytes = self.read_owned(ptr.addr, self.page_size, end)?;
                if self.options.verify != Verify::OnFirstTouch || !self.verified.knows(ptr) {
                    self.verify(ptr, &bytes)?;
                }
                Ok(bytes)
            }
        }
    }

    #[cold]
    fn verify(&self, ptr: &Ptr, bytes: &[u8]) -> Result<()> {
        if self.options.verify != Verify::Never {
            verify_block(bytes, ptr)?;
            self.verified.learn(ptr);
        }
        Ok(())
    }

    /// A block inside an extent, verified unless the options say never.
    #[inline]
    pub(crate) fn block(&self, ptr: &Ptr, end: u64) -> Result<PageRef<'_>> {
        let bytes = self.bytes(ptr.addr, ptr.len as usize, end)?;
        if self.options.verify != Verify::Never {
            verify_block(&bytes, ptr)?;
        }
        Ok(bytes)
    }
}

#[cold]
fn outside(addr: u64, len: usize, end: u64) -> Error {
    Corrupt::new(
        "pointer",
        addr,
        format!("{len} bytes at {addr}"),
        format!("a range between {HEAD_BYTES} and {end}"),
    )
    .into()
}

#[cold]
fn not_a_page(ptr: &Ptr, page_size: usize) -> Error {
    Corrupt::new(
        format!("pointer to a {:?} page", ptr.kind),
        ptr.addr,
        format!("{} bytes", ptr.len),
        format!("{page_size} bytes at a multiple of that"),
    )
    .into()
}
