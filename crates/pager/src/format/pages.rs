//! Access to the file for the crates above the pager: pages and extents under a snapshot (`PageRead`), and
//! copy-on-write pages under a write transaction (`PageWrite`).
//!
//! A data structure is identified by a root `Ptr`; an operation on it takes the root and a writer and returns a new
//! root. Inside a write transaction, a pointer to a page that this transaction owns has `birth == writer.txn()` and a
//! checksum that is not valid yet. Before the commit each structure *seals* its own pages bottom-up: for every child
//! born in this transaction, it seals the child, stores the returned `Ptr` in the parent, then seals the parent.

use super::kind::Kind;
use super::ptr::Ptr;
use crate::error::Result;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tidalite_base::{Corrupt, TxnId};

/// Bytes of the file, borrowed from the memory map or from a dirty page, or owned.
#[derive(Clone, Debug)]
pub enum PageRef<'a> {
    /// The bytes are borrowed from the read-only memory map, or from a dirty page of the transaction.
    Borrowed(&'a [u8]),
    /// The bytes were copied into memory.
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

/// Counters of the work of a reader or writer. Tests use them to check costs without measuring time. A counter is
/// incremented by a plain load and store: it is exact for one thread, and a lower bound if several threads share a
/// snapshot.
#[derive(Debug, Default)]
pub struct Counters {
    /// Number of pages read (pages of tables and other whole pages), including pages that were in memory.
    pub pages_read: AtomicU64,
    /// Number of blocks read inside extents (leaf directories, vectors, tree nodes, blocks of runs).
    pub blocks_read: AtomicU64,
    /// Number of vectors decoded.
    pub vectors_decoded: AtomicU64,
    /// Number of nodes of series trees read.
    pub nodes_read: AtomicU64,
    /// Number of pages copied before a change because they belong to older commits or are retained by a savepoint.
    pub pages_copied: AtomicU64,
    /// Number of full table pages that were split into a new page, alone or together with a neighbour.
    pub pages_split: AtomicU64,
    /// Number of sparse table pages that were merged with a neighbour.
    pub pages_merged: AtomicU64,
}

impl Counters {
    /// Adds the counts of `other` to these counts.
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

    /// Adds one to a counter without an atomic addition, which is faster. Concurrent calls may lose counts.
    pub fn bump(counter: &AtomicU64) {
        counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

/// A contiguous range of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Byte offset of the first page of the extent in the file.
    pub addr: u64,
    /// Number of pages.
    pub pages: u64,
    /// Transaction that allocated the extent.
    pub birth: TxnId,
}

/// A view of the file that is constant while it is borrowed.
pub trait PageRead {
    /// Returns the page size in bytes.
    fn page_size(&self) -> usize;

    /// Returns the whole page to which `ptr` points, verified on first access.
    ///
    /// # Errors
    /// `Corrupt` if checksum, kind, address or birth differ; `Io` if the file cannot be read.
    fn page(&self, ptr: &Ptr) -> Result<PageRef<'_>>;

    /// Fast path of `page`: returns the page to which `ptr` points if it can be borrowed without copying and was
    /// verified before. `None` only means that `page` must be called.
    #[inline]
    fn lent_page(&self, ptr: &Ptr) -> Option<&[u8]> {
        let _ = ptr;
        None
    }

    /// Hints that the first `bytes` bytes of this page will be needed soon. Reads and verifies nothing.
    #[inline]
    fn prefetch(&self, ptr: &Ptr, bytes: usize) {
        let _ = (ptr, bytes);
    }

    /// Whether the system reads a page that is not in memory without readahead. This is so in files that are large
    /// compared with the memory of the machine. Scans should then prefetch by `read_ahead`.
    #[inline]
    fn reads_single_pages(&self) -> bool {
        false
    }

    /// Hints that these bytes of the file will be needed soon: the system starts to read bytes that are not in
    /// memory, without waiting. Costs a system call.
    #[inline]
    fn read_ahead(&self, addr: u64, bytes: u64) {
        let _ = (addr, bytes);
    }

    /// Whether the system reads ahead for `page_in_order` although it does not for other reads. Callers then need not
    /// prefetch consecutive leaves.
    #[inline]
    fn reads_ahead_in_order(&self) -> bool {
        false
    }

    /// Like `page`, for a scan that reads megabytes of pages in file order. Costly for any other access, since the
    /// system may read megabytes around each page.
    ///
    /// # Errors
    /// As for `page`.
    fn page_in_order(&self, ptr: &Ptr) -> Result<PageRef<'_>> {
        self.page(ptr)
    }

    /// Returns a block inside an extent, at most 64 KiB. A snapshot verifies the block on first access, a writer
    /// every time.
    ///
    /// # Errors
    /// As for `page`.
    fn block(&self, ptr: &Ptr) -> Result<PageRef<'_>>;

    /// Returns bytes inside an extent, which are *not* verified: the caller must have a checksum of its own.
    ///
    /// # Errors
    /// `Corrupt` if the range lies outside the file; `Io` if the file cannot be read.
    fn bytes(&self, addr: u64, len: usize) -> Result<PageRef<'_>>;

    /// Hints that these bytes inside an extent will be needed soon. Reads and verifies nothing.
    #[inline]
    fn prefetch_bytes(&self, addr: u64, len: usize) {
        let _ = (addr, len);
    }

    /// Counters of the work of this reader.
    fn counters(&self) -> &Counters;
}

/// Expands to all methods of `PageRead`, for a type that contains another reader. `$call!(self, pages => call)` must
/// evaluate to `call`, with `pages` bound to that reader.
#[macro_export]
macro_rules! forward_page_read {
    ($call:ident) => {
        #[inline]
        fn page_size(&self) -> usize {
            $call!(self, pages => pages.page_size())
        }

        #[inline]
        fn page(&self, ptr: &$crate::Ptr) -> $crate::Result<$crate::PageRef<'_>> {
            $call!(self, pages => pages.page(ptr))
        }

        #[inline]
        fn lent_page(&self, ptr: &$crate::Ptr) -> Option<&[u8]> {
            $call!(self, pages => pages.lent_page(ptr))
        }

        #[inline]
        fn prefetch(&self, ptr: &$crate::Ptr, bytes: usize) {
            $call!(self, pages => pages.prefetch(ptr, bytes))
        }

        #[inline]
        fn reads_single_pages(&self) -> bool {
            $call!(self, pages => pages.reads_single_pages())
        }

        #[inline]
        fn read_ahead(&self, addr: u64, bytes: u64) {
            $call!(self, pages => pages.read_ahead(addr, bytes))
        }

        #[inline]
        fn reads_ahead_in_order(&self) -> bool {
            $call!(self, pages => pages.reads_ahead_in_order())
        }

        #[inline]
        fn page_in_order(&self, ptr: &$crate::Ptr) -> $crate::Result<$crate::PageRef<'_>> {
            $call!(self, pages => pages.page_in_order(ptr))
        }

        #[inline]
        fn block(&self, ptr: &$crate::Ptr) -> $crate::Result<$crate::PageRef<'_>> {
            $call!(self, pages => pages.block(ptr))
        }

        #[inline]
        fn bytes(&self, addr: u64, len: usize) -> $crate::Result<$crate::PageRef<'_>> {
            $call!(self, pages => pages.bytes(addr, len))
        }

        #[inline]
        fn prefetch_bytes(&self, addr: u64, len: usize) {
            $call!(self, pages => pages.prefetch_bytes(addr, len))
        }

        #[inline]
        fn counters(&self) -> &$crate::Counters {
            $call!(self, pages => pages.counters())
        }
    };
}

/// Binds the reader to which a reference points.
macro_rules! of_reference {
    ($own:expr, $pages:ident => $call:expr) => {{
        let $pages: &R = $own;
        $call
    }};
}

impl<R: PageRead> PageRead for &R {
    forward_page_read!(of_reference);
}

/// Verifies that the unused bytes `addr..addr + len` of an extent are zero, so that damage to unused bytes is
/// detected as well.
///
/// # Errors
/// `Corrupt` if a byte is not zero or the range lies outside the file; `Io`.
pub fn expect_zeros<R: PageRead + ?Sized>(r: &R, addr: u64, len: usize) -> Result<()> {
    if len == 0 || r.bytes(addr, len)?.iter().all(|&byte| byte == 0) {
        return Ok(());
    }
    Err(Corrupt::new("padding", addr, "bytes set", format!("{len} zeros")).into())
}

/// Interface of a write transaction, through which the crates above the pager change pages.
pub trait PageWrite: PageRead {
    /// Returns the number of this transaction, which is the birth of every page that it writes.
    fn txn(&self) -> TxnId;

    /// Allocates a zeroed page owned by this transaction. The pointer's checksum is not valid until `seal_page`.
    ///
    /// # Errors
    /// `DiskFull`, `Io`.
    fn new_page(&mut self, kind: Kind, owner: u64) -> Result<Ptr>;

    /// Allocates a page with these bytes, fills in its header (the first 32 bytes), and seals it. Meant for pages
    /// that this transaction is unlikely to change again. Such pages may be written to the file soon, many at once.
    ///
    /// # Errors
    /// As for `new_page` and `seal_page`.
    fn add_page(&mut self, kind: Kind, owner: u64, bytes: &[u8]) -> Result<Ptr> {
        let ptr = self.new_page(kind, owner)?;
        self.page_mut(&ptr)?.copy_from_slice(bytes);
        self.seal_page(&ptr)
    }

    /// Returns a page with the contents of `ptr` that this transaction may change. If this transaction owns the page
    /// already and no savepoint retains it, the same page is returned; otherwise a copy at a new address, and the old
    /// page is freed.
    ///
    /// # Errors
    /// As for `page` and `new_page`.
    fn shadow(&mut self, ptr: &Ptr) -> Result<Ptr>;

    /// Whether `shadow` would return the same pointer: this transaction owns the page, and neither a savepoint nor a
    /// reader of uncommitted data retains it. Must be checked again after operations on other structures, since a
    /// savepoint or reader may have been created meanwhile.
    fn may_change(&self, ptr: &Ptr) -> bool {
        ptr.birth == self.txn()
    }

    /// Returns the mutable bytes of a page that this transaction owns. The first 32 bytes are the header, which
    /// `seal_page` fills in.
    ///
    /// # Errors
    /// `Io` if the page was written to the file early and cannot be read back.
    fn page_mut(&mut self, ptr: &Ptr) -> Result<&mut [u8]>;

    /// Returns the bytes of a page that this transaction owns, for a caller that may change the page later. Loads the
    /// page into memory, but the page stays sealed.
    ///
    /// # Errors
    /// As for `page_mut`.
    fn own_page(&mut self, ptr: &Ptr) -> Result<&[u8]> {
        Ok(self.page_mut(ptr)?)
    }

    /// Returns the final pointer of a page that this transaction owns if the page is unchanged since it was sealed.
    /// Returns `None` also if it is unknown whether the page was changed. (Pages below the page may have changed.)
    fn sealed(&self, ptr: &Ptr) -> Option<Ptr> {
        let _ = ptr;
        None
    }

    /// Writes the header and the checksum of a page and returns the final pointer to the page. Until the commit, the
    /// page may be changed and sealed again.
    ///
    /// # Errors
    /// `Io`.
    fn seal_page(&mut self, ptr: &Ptr) -> Result<Ptr>;

    /// Frees a page: at once if this transaction owns it, otherwise when no snapshot can read it any more.
    fn free_page(&mut self, ptr: &Ptr);

    /// Allocates contiguous pages.
    ///
    /// # Errors
    /// `DiskFull`, `Io`.
    fn alloc_extent(&mut self, pages: u64) -> Result<Extent>;

    /// Allocates an extent of at least `least` and at most `pages` pages. The extent is shorter than `pages` only in
    /// a transaction that compacts the file, where it fills the lowest free range of at least `least` pages.
    ///
    /// # Errors
    /// As for `alloc_extent`.
    fn alloc_extent_within(&mut self, least: u64, pages: u64) -> Result<Extent> {
        let _ = least;
        self.alloc_extent(pages)
    }

    /// Like `alloc_extent`, for a value of `bytes` bytes: allocates in the second file if there is one and the value
    /// is large enough.
    ///
    /// # Errors
    /// As for `alloc_extent`.
    fn alloc_value(&mut self, pages: u64, bytes: u64) -> Result<Extent> {
        let _ = bytes;
        self.alloc_extent(pages)
    }

    /// Whether rewriting a value of the second file would move it to a lower address.
    fn value_gets_lower(&mut self, extent: &Extent) -> bool {
        let _ = extent;
        false
    }

    /// Writes `bytes` to an extent that this transaction has allocated. The bytes are written to the file at once;
    /// readers do not see them before the commit.
    ///
    /// # Errors
    /// `Io`, `DiskFull`.
    fn write_extent(&mut self, addr: u64, bytes: &[u8]) -> Result<()>;

    /// Shortens an extent that this transaction has allocated to `pages` pages, and frees the other pages. Returns
    /// the shortened extent.
    fn trim_extent(&mut self, extent: &Extent, pages: u64) -> Extent;

    /// Frees an extent: at once if this transaction owns it, otherwise when no snapshot can read it any more.
    fn free_extent(&mut self, extent: &Extent);
}
