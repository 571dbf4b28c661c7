//! Reads of a write transaction: pages that it has changed, and pages of the commit on which it builds.

use super::WriteTxn;
use crate::error::Result;
use crate::format::pages::{Counters, PageRead, PageRef};
use crate::format::ptr::Ptr;

impl PageRead for WriteTxn {
    #[inline]
    fn page_size(&self) -> usize {
        self.inner.files.page_size
    }

    #[inline]
    fn page(&self, ptr: &Ptr) -> Result<PageRef<'_>> {
        Counters::bump(&self.counters.pages_read);
        if ptr.birth == self.txn {
            return self.dirty.get(&*self.inner.files.storage, ptr);
        }
        self.inner.page_of(&self.base, ptr)
    }

    #[inline]
    fn lent_page(&self, ptr: &Ptr) -> Option<&[u8]> {
        if ptr.birth == self.txn {
            return None;
        }
        let page = self.inner.files.known_page(&self.base, ptr)?;
        Counters::bump(&self.counters.pages_read);
        Some(page)
    }

    #[inline]
    fn prefetch(&self, ptr: &Ptr, bytes: usize) {
        if ptr.birth != self.txn {
            self.inner.files.prefetch(ptr, bytes, self.base.bytes);
        }
    }

    #[inline]
    fn reads_single_pages(&self) -> bool {
        self.inner.files.storage.reads_single_pages()
    }

    fn reads_ahead_in_order(&self) -> bool {
        self.inner.files.storage.reads_ahead_in_order()
    }

    fn page_in_order(&self, ptr: &Ptr) -> Result<PageRef<'_>> {
        if ptr.birth == self.txn {
            return self.page(ptr);
        }
        Counters::bump(&self.counters.pages_read);
        self.inner.page_in_order(&self.base, ptr)
    }

    fn read_ahead(&self, addr: u64, bytes: u64) {
        self.inner.files.read_ahead(addr, bytes, self.base.bytes);
    }

    #[inline]
    fn block(&self, ptr: &Ptr) -> Result<PageRef<'_>> {
        Counters::bump(&self.counters.blocks_read);
        self.inner.files.block(ptr, self.end())
    }

    #[inline]
    fn bytes(&self, addr: u64, len: usize) -> Result<PageRef<'_>> {
        self.inner.files.bytes(addr, len, self.end())
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}
