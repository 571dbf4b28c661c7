//! The bytes of a table in contiguous memory, read without verification: like a memory map of pages that are already
//! verified, and like a file with damage that no checksum detects.

use crate::Tree;
use std::cell::RefCell;
use tidalite_base::{Corrupt, TxnId};
use tidalite_pager::{
    Counters, DiskError, Error, Extent, Kind, PageRead, PageRef, PageWrite, Ptr, Result,
};

/// The image of a file, read without verification.
pub(super) struct RawPages {
    page_size: usize,
    pub(super) bytes: Vec<u8>,
    counters: Counters,
}

impl RawPages {
    /// Creates an image with a single unused page.
    pub(super) fn new(page_size: usize) -> Self {
        Self {
            page_size,
            bytes: vec![0; page_size],
            counters: Counters::default(),
        }
    }

    /// Creates an image with the tree's pages and extents at their addresses in the file.
    pub(super) fn of<R: PageRead>(tree: &Tree, pages: &R) -> Self {
        let copier = Copier {
            inner: pages,
            seen: RefCell::default(),
        };
        let mut end = 0;
        tree.check(&copier, &mut |claim| {
            end = end.max(claim.addr + claim.pages * pages.page_size() as u64);
        })
        .unwrap();
        let mut bytes = vec![0; end as usize];
        for (addr, part) in copier.seen.into_inner() {
            bytes[addr as usize..addr as usize + part.len()].copy_from_slice(&part);
        }
        Self {
            page_size: pages.page_size(),
            bytes,
            counters: Counters::default(),
        }
    }
}

impl PageRead for RawPages {
    fn page_size(&self) -> usize {
        self.page_size
    }

    #[inline]
    fn page(&self, ptr: &Ptr) -> Result<PageRef<'_>> {
        if ptr.len as usize != self.page_size {
            return Err(Corrupt::new("page", ptr.addr, ptr.len, self.page_size).into());
        }
        self.bytes(ptr.addr, self.page_size)
    }

    fn block(&self, ptr: &Ptr) -> Result<PageRef<'_>> {
        self.bytes(ptr.addr, ptr.len as usize)
    }

    #[inline]
    fn bytes(&self, addr: u64, len: usize) -> Result<PageRef<'_>> {
        let from = usize::try_from(addr).unwrap_or(usize::MAX);
        let part = self.bytes.get(from..from.saturating_add(len));
        let Some(part) = part else {
            return Err(Corrupt::new("range", addr, len, "a range of the file").into());
        };
        Ok(PageRef::Borrowed(part))
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}

struct Copier<'a, R> {
    inner: &'a R,
    seen: RefCell<Vec<(u64, Vec<u8>)>>,
}

impl<R: PageRead> PageRead for Copier<'_, R> {
    fn page_size(&self) -> usize {
        self.inner.page_size()
    }

    fn page(&self, ptr: &Ptr) -> Result<PageRef<'_>> {
        let page = self.inner.page(ptr)?;
        self.seen.borrow_mut().push((ptr.addr, page.to_vec()));
        Ok(page)
    }

    fn block(&self, ptr: &Ptr) -> Result<PageRef<'_>> {
        let block = self.inner.block(ptr)?;
        self.seen.borrow_mut().push((ptr.addr, block.to_vec()));
        Ok(block)
    }

    fn bytes(&self, addr: u64, len: usize) -> Result<PageRef<'_>> {
        self.inner.bytes(addr, len)
    }

    fn counters(&self) -> &Counters {
        self.inner.counters()
    }
}

/// The id of the transaction that changes an image.
const RAW_TXN: TxnId = TxnId(1 << 40);

/// Maximum size in bytes of an image: when pages are damaged, a write must not use unbounded memory.
const RAW_BYTES_MAX: usize = 64 << 20;

impl RawPages {
    fn extend(&mut self, bytes: usize) -> Result<u64> {
        if self.bytes.len() + bytes > RAW_BYTES_MAX {
            return Err(Error::Disk(DiskError::DiskFull {
                needed_bytes: bytes as u64,
            }));
        }
        let addr = self.bytes.len().next_multiple_of(self.page_size);
        self.bytes.resize(addr + bytes, 0);
        Ok(addr as u64)
    }
}

impl PageWrite for RawPages {
    fn txn(&self) -> TxnId {
        RAW_TXN
    }

    fn new_page(&mut self, kind: Kind, _owner: u64) -> Result<Ptr> {
        Ok(Ptr {
            addr: self.extend(self.page_size)?,
            len: self.page_size as u32,
            kind,
            checksum: 0,
            birth: RAW_TXN,
        })
    }

    fn shadow(&mut self, ptr: &Ptr) -> Result<Ptr> {
        if ptr.birth == RAW_TXN {
            return Ok(*ptr);
        }
        let copy = self.page(ptr)?.to_vec();
        let new = self.new_page(ptr.kind, 0)?;
        self.page_mut(&new)?.copy_from_slice(&copy);
        Ok(new)
    }

    fn page_mut(&mut self, ptr: &Ptr) -> Result<&mut [u8]> {
        self.page(ptr)?;
        let from = ptr.addr as usize;
        Ok(&mut self.bytes[from..from + self.page_size])
    }

    fn seal_page(&mut self, ptr: &Ptr) -> Result<Ptr> {
        Ok(*ptr)
    }

    fn free_page(&mut self, _ptr: &Ptr) {}

    fn alloc_extent(&mut self, pages: u64) -> Result<Extent> {
        Ok(Extent {
            addr: self.extend(pages as usize * self.page_size)?,
            pages,
            birth: RAW_TXN,
        })
    }

    fn write_extent(&mut self, addr: u64, bytes: &[u8]) -> Result<()> {
        self.bytes[addr as usize..addr as usize + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn trim_extent(&mut self, extent: &Extent, _pages: u64) -> Extent {
        *extent
    }

    fn free_extent(&mut self, _extent: &Extent) {}
}
