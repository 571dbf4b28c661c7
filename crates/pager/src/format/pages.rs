//! What the structures above see of the file: pages and extents under a snapshot (`PageRead`), and
//! the one copy-on-write primitive under a write transaction (`PageWrite`).
//!
//! A structure holds a root `Ptr`; an operation takes the root and a writer and returns a new root.
//! Inside a write transaction, a pointer to a page that this transaction owns has
//! `birth == writer.txn()` and a checksum that is not yet valid. Before commit each structure *seals*
//! its own pages bottom-up: for every child whose birth is this transaction, seal the child, store the
//! returned `Ptr` in the parent, then seal the parent.

use super::kind::Kind;
use super::ptr::Ptr;
use crate::error::Result;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tidalite_base::{Corrupt, TxnId};

/// Bytes of the file, borrowed from the map or from a dirty page, or owned.
#[derive(Clone, Debug)]
pub enum PageRef<'a> {
    /// Borrowed from the read-only map, or from the transaction's own page.
    Borrowed(&'a [u8]),
    /// Read into memory.
    Owned(Arc<[u8]>),
}

impl Deref for PageRef<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Owned(bytes) => bytes,
        }
    }
}

/// Counts of what a reader or writer did. They prove structure without a clock.
/// Counted with a plain load and store: exact for one thread, a lower bound when several share a snapshot.
#[derive(Debug, Default)]
pub struct Counters {
    /// Pages read (kv pages and other whole pages), cached or not.
    pub pages_read: AtomicU64,
    /// Blocks read inside extents (leaf directories, vectors, tree nodes, run blocks).
    pub blocks_read: AtomicU64,
    /// Vectors decoded.
    pub vectors_decoded: AtomicU64,
    /// Series tree nodes read.
    pub nodes_read: AtomicU64,
    /// Pages of older commits, or held by a savepoint, that were copied to be changed.
    pub pages_copied: AtomicU64,
    /// Full pages of tables that gave a part to a new one, alone or together with a neighbour.
    pub pages_split: AtomicU64,
    /// Sparse pages of tables that became one with a neighbour.
    pub pages_merged: AtomicU64,
}

impl Counters {
    /// Adds what another one has counted.
    pub fn add(&self, other: &Self) {
        let pairs = [
            (&self.pages_read, &other.pages_read),
            (&self.blocks_read, &other.blocks_read),
            (&self.vectors_decoded, &other.vectors_decoded),
            (&self.nodes_read, &other.nodes_read),
            (&self.pages_copied, &other.pages_copied),
            (&self.pages_split, &other.pages_split),
            (&self.pages_merged, &other.pages_merged),
        ];
        for (own, other) in pairs {
            own.store(
                own.load(Ordering::Relaxed) + other.load(Ordering::Relaxed),
                Ordering::Relaxed,
            );
        }
    }

    /// Adds one to a counter.
    pub fn bump(counter: &AtomicU64) {
        counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

/// A contiguous range of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Byte offset of its first page.
    pub addr: u64,
    /// Pages.
    pub pages: u64,
    /// The transaction that allocated it.
    pub birth: TxnId,
}

/// A view of the file that does not change while it is borrowed.
pub trait PageRead {
    /// Bytes of a page.
    fn page_size(&self) -> usize;

    /// The whole page that `ptr` names, verified on first touch.
    ///
    /// # Errors
    /// `Corrupt` when checksum, kind, address or birth differ; `Io` when the file cannot be read.
    fn page(&self, ptr: &Ptr) -> Result<PageRef<'_>>;

    /// The same page, if it is lent and was verified before: quick to ask, and quick to answer. `None` says nothing but that `page` is to be
    /// asked.
    #[inline]
    fn lent_page(&self, ptr: &Ptr) -> Option<&[u8]> {
        let _ = ptr;
        None
    }

    /// A hint that the first `bytes` bytes of this page will be needed soon. Reads and verifies nothing.
    #[inline]
    fn prefetch(&self, ptr: &Ptr, bytes: usize) {
        let _ = (ptr, bytes);
    }

    /// True when a page that is not in memory is read alone, while the caller waits (in files that are large beside the memory of the
    /// machine): who walks does well to ask ahead then, by `read_ahead`.
    #[inline]
    fn reads_alone(&self) -> bool {
        false
    }

    /// A hint that these bytes of the file will be needed soon: the system begins to read those that are not in memory, and nobody waits for
    /// them. A call of the system.
    #[inline]
    fn read_ahead(&self, addr: u64, bytes: u64) {
        let _ = (addr, bytes);
    }

    /// True when the system reads around a page of `page_of_stretch` although it reads others alone: leaves that lie one behind the other
    /// need not be asked for then.
    #[inline]
    fn reads_stretches(&self) -> bool {
        false
    }

    /// As `page`, for one of many pages that are read in the order in which they lie in the file, megabytes of them. Elsewhere than there it
    /// costs much: up to megabytes are read around each page.
    ///
    /// # Errors
    /// As for `page`.
    fn page_of_stretch(&self, ptr: &Ptr) -> Result<PageRef<'_>> {
        self.page(ptr)
    }

    /// A block inside an extent, at most 64 KiB, verified on first touch by a snapshot, and every time by a writer.
    ///
    /// # Errors
    /// As for `page`.
    fn block(&self, ptr: &Ptr) -> Result<PageRef<'_>>;

    /// Bytes inside an extent, *not* verified: the caller holds a checksum of its own for them.
    ///
    /// # Errors
    /// `Corrupt` when the range lies outside the file; `Io` when the file cannot be read.
    fn bytes(&self, addr: u64, len: usize) -> Result<PageRef<'_>>;

    /// A hint that these bytes inside an extent will be needed soon. Reads and verifies nothing.
    #[inline]
    fn prefetch_bytes(&self, addr: u64, len: usize) {
        let _ = (addr, len);
    }

    /// What was read so far.
    fn counters(&self) -> &Counters;
}

/// Checks bytes that belong to an extent but to nothing in it: they are zero. So damage to them is found, too.
///
/// # Errors
/// `Corrupt` when a byte is set or the range lies outside the file; `Io`.
pub fn expect_zeros<R: PageRead + ?Sized>(r: &R, addr: u64, len: usize) -> Result<()> {
    if len == 0 || r.bytes(addr, len)?.iter().all(|&byte| byte == 0) {
        return Ok(());
    }
    Err(Corrupt::new("padding", addr, "bytes set", format!("{len} zeros")).into())
}

/// A write transaction as the structures see it.
pub trait PageWrite: PageRead {
    /// The number that this transaction will have; the birth of everything it writes.
    fn txn(&self) -> TxnId;

    /// Allocates a zeroed page that this transaction owns. The pointer's checksum is not valid until
    /// `seal_page`.
    ///
    /// # Errors
    /// `DiskFull`, `Io`.
    fn new_page(&mut self, kind: Kind, owner: u64) -> Result<Ptr>;

    /// Allocates a page that holds these bytes, of which the first 32 are filled in here, and seals it: for pages that will hardly be
    /// changed again by this transaction. They may be written to the file soon, many at once.
    ///
    /// # Errors
    /// As for `new_page` and `seal_page`.
    fn add_page(&mut self, kind: Kind, owner: u64, bytes: &[u8]) -> Result<Ptr> {
        let ptr = self.new_page(kind, owner)?;
        self.page_mut(&ptr)?.copy_from_slice(bytes);
        self.seal_page(&ptr)
    }

    /// A page that holds what `ptr` names and that this transaction may change: the same page when it is
    /// owned already and held by no savepoint, else a copy under a new address (the old one is freed).
    ///
    /// # Errors
    /// As for `page` and `new_page`.
    fn shadow(&mut self, ptr: &Ptr) -> Result<Ptr>;

    /// True when `shadow` would return this very pointer: the page is the transaction's own, and neither a
    /// savepoint nor a reader of uncommitted state holds it as it is. Ask again after an operation of another
    /// structure; pointers kept from before may have come to be held.
    fn may_change(&self, ptr: &Ptr) -> bool {
        ptr.birth == self.txn()
    }

    /// The bytes of a page that this transaction owns, for writing; the first 32 are the header and
    /// are filled by `seal_page`.
    ///
    /// # Errors
    /// `Io` when the page was spilled and cannot be read back.
    fn page_mut(&mut self, ptr: &Ptr) -> Result<&mut [u8]>;

    /// The same to be looked at, and perhaps changed then: it is brought into memory, and stays sealed.
    ///
    /// # Errors
    /// As for `page_mut`.
    fn own_page(&mut self, ptr: &Ptr) -> Result<&[u8]> {
        Ok(self.page_mut(ptr)?)
    }

    /// The final pointer of a page of this transaction that was not changed since it was sealed; `None` also when that is not known. (Pages below it may have been changed.)
    fn sealed(&self, ptr: &Ptr) -> Option<Ptr> {
        let _ = ptr;
        None
    }

    /// Writes header and checksum and returns the final pointer. The page may be changed and sealed
    /// again until commit.
    ///
    /// # Errors
    /// `Io`.
    fn seal_page(&mut self, ptr: &Ptr) -> Result<Ptr>;

    /// Frees a page: at once when this transaction owns it, else when no snapshot sees it.
    fn free_page(&mut self, ptr: &Ptr);

    /// Allocates contiguous pages.
    ///
    /// # Errors
    /// `DiskFull`, `Io`.
    fn alloc_extent(&mut self, pages: u64) -> Result<Extent>;

    /// Allocates an extent of up to `pages` pages, at least `least`. It is shorter than `pages` only in a transaction that compacts the file:
    /// there it fills the lowest free stretch that has `least` pages.
    ///
    /// # Errors
    /// As for `alloc_extent`.
    fn alloc_extent_within(&mut self, least: u64, pages: u64) -> Result<Extent> {
        let _ = least;
        self.alloc_extent(pages)
    }

    /// The same for a value of so many bytes: in the second file when the database has one and the value is large enough.
    ///
    /// # Errors
    /// As for `alloc_extent`.
    fn alloc_value(&mut self, pages: u64, bytes: u64) -> Result<Extent> {
        let _ = bytes;
        self.alloc_extent(pages)
    }

    /// Whether a value of so many pages that lies in the second file would come to lie at a lower address if it were written anew.
    fn value_gets_lower(&mut self, extent: &Extent) -> bool {
        let _ = extent;
        false
    }

    /// Writes into an extent of this transaction. It goes to the file at once; nobody can see it before the commit.
    ///
    /// # Errors
    /// `Io`, `DiskFull`.
    fn write_extent(&mut self, addr: u64, bytes: &[u8]) -> Result<()>;

    /// Gives the last pages of an extent of this transaction back, so that `pages` stay.
    fn trim_extent(&mut self, extent: &Extent, pages: u64) -> Extent;

    /// Frees an extent: at once when this transaction owns it, else when no snapshot sees it.
    fn free_extent(&mut self, extent: &Extent);
}
