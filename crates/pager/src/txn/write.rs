//! Page operations of a write transaction for the crates above the pager, with copy-on-write.

use super::{WriteTxn, dirty};
use crate::error::Result;
use crate::format::header::Header;
use crate::format::kind::Kind;
use crate::format::layout::LARGE_AT;
use crate::format::pages::{Counters, Extent, PageWrite};
use crate::format::ptr::Ptr;
use tidalite_base::TxnId;

impl WriteTxn {
    /// Copies a page of an older commit, which stays unchanged; returns a pointer to the copy.
    fn copy_of_old(&mut self, ptr: &Ptr) -> Result<Ptr> {
        self.check_usable()?;
        let page = self.inner.page_of(&self.base, ptr)?;
        let owner = Header::decode(&page).owner;
        let origin = ptr.addr / self.inner.files.page_size as u64;
        let Some(writer) = &mut self.writer else {
            unreachable!("the writer state leaves with the transaction")
        };
        let taken = writer.alloc(&self.inner, &mut self.space, 1, false, true);
        let number = match taken {
            Ok(number) => number,
            Err(error) => {
                drop(page);
                return Err(self.fail(error));
            }
        };
        self.epochs.allocated(number, 1);
        let copied = self.dirty.insert_copy(
            &*self.inner.files.storage,
            number,
            ptr.kind,
            (owner, Some(origin)),
            self.epochs.current(),
            &page,
        );
        drop(page);
        copied.map_err(|error| self.fail(error))
    }
}

impl PageWrite for WriteTxn {
    fn txn(&self) -> TxnId {
        self.txn
    }

    fn new_page(&mut self, kind: Kind, owner: u64) -> Result<Ptr> {
        let bytes = dirty::zeroed(self.dirty.buffer(), self.inner.files.page_size);
        self.put(kind, (owner, None), bytes)
    }

    fn add_page(&mut self, kind: Kind, owner: u64, bytes: &[u8]) -> Result<Ptr> {
        let page = self.alloc(1, false)?;
        let epoch = self.epochs.current();
        let storage = &*self.inner.files.storage;
        let added = self
            .dirty
            .add_bulk(storage, page, (kind, owner), epoch, bytes);
        added.map_err(|error| self.fail(error))
    }

    fn shadow(&mut self, ptr: &Ptr) -> Result<Ptr> {
        let new = if ptr.birth == self.txn {
            if self.epochs.may_change(self.dirty.epoch(ptr)?) {
                return Ok(*ptr);
            }
            let buffer = self.dirty.buffer();
            let page = self.dirty.get(&*self.inner.files.storage, ptr)?;
            let (origin, bytes) = (self.dirty.origin(ptr)?, dirty::filled(buffer, &page));
            let owner = Header::decode(&bytes).owner;
            self.put(ptr.kind, (owner, origin), bytes)?
        } else {
            self.copy_of_old(ptr)?
        };
        self.free_page(ptr);
        self.check()?;
        Counters::bump(&self.counters.pages_copied);
        Ok(new)
    }

    fn may_change(&self, ptr: &Ptr) -> bool {
        let held = |epoch: u64| !self.epochs.may_change(epoch);
        ptr.birth == self.txn && (self.epochs.is_quiet() || !self.dirty.epoch(ptr).is_ok_and(held))
    }

    fn page_mut(&mut self, ptr: &Ptr) -> Result<&mut [u8]> {
        self.check_shared()?;
        self.dirty.get_mut(&*self.inner.files.storage, ptr)
    }

    fn own_page(&mut self, ptr: &Ptr) -> Result<&[u8]> {
        self.check_shared()?;
        self.dirty.get_own(&*self.inner.files.storage, ptr)
    }

    fn sealed(&self, ptr: &Ptr) -> Option<Ptr> {
        self.dirty.sealed(ptr)
    }

    fn seal_page(&mut self, ptr: &Ptr) -> Result<Ptr> {
        self.check_shared()?;
        if !self.may_change(ptr) && self.dirty.is_spilled_unsealed(ptr) {
            // Sealing will rewrite the page in the file, where a reader of uncommitted data may expect the earlier
            // contents, so such readers are ended.
            self.epochs.end_readers();
        }
        self.dirty.seal(&*self.inner.files.storage, ptr)
    }

    fn free_page(&mut self, ptr: &Ptr) {
        self.free(ptr.addr, 1, ptr.birth);
    }

    fn alloc_extent(&mut self, pages: u64) -> Result<Extent> {
        assert!(pages > 0, "an extent has pages");
        let page = self.alloc(pages, true)?;
        Ok(Extent {
            addr: page * self.inner.files.page_size as u64,
            pages,
            birth: self.txn,
        })
    }

    fn alloc_extent_within(&mut self, least: u64, pages: u64) -> Result<Extent> {
        let found = match self.space.compacts {
            true => self.writer().space.lowest_run(least, pages),
            false => None,
        };
        self.alloc_extent(found.unwrap_or(pages))
    }

    fn alloc_value(&mut self, pages: u64, bytes: u64) -> Result<Extent> {
        if self.inner.files.large.is_none() || bytes < self.inner.files.options.large_values_min {
            return self.alloc_extent(pages);
        }
        assert!(pages > 0, "an extent has pages");
        self.check_usable()?;
        let Some(writer) = &mut self.writer else {
            unreachable!("the writer state leaves with the transaction")
        };
        let page = writer.alloc_large(&self.inner, &mut self.space, pages);
        let page = page.map_err(|error| self.fail(error))?;
        self.epochs.allocated(page, pages);
        Ok(Extent {
            addr: page * self.inner.files.page_size as u64,
            pages,
            birth: self.txn,
        })
    }

    fn value_gets_lower(&mut self, extent: &Extent) -> bool {
        self.fits_lower(extent)
    }

    fn write_extent(&mut self, addr: u64, bytes: &[u8]) -> Result<()> {
        self.check_usable()?;
        let page_size = self.inner.files.page_size as u64;
        let last = (addr + bytes.len().max(1) as u64 - 1) / page_size;
        let page = addr / page_size;
        assert!(
            self.space.own.contains(page, last - page + 1),
            "a write of {} bytes at {addr} is outside the extents of this transaction",
            bytes.len()
        );
        self.extents.bytes_written += bytes.len() as u64;
        self.dirty.drain().map_err(|error| self.fail(error))?;
        let storage = &*self.inner.files.storage;
        let (large, written) = match &self.inner.files.large {
            Some(large) if addr >= LARGE_AT => (true, large.write(addr, bytes)),
            _ => (false, dirty::write(storage, addr, bytes)),
        };
        if written.is_ok() && !large {
            self.extents
                .write_back
                .ask(storage, addr, bytes.len() as u64);
        }
        written.map_err(|error| self.fail(error))
    }

    fn trim_extent(&mut self, extent: &Extent, pages: u64) -> Extent {
        assert!(pages <= extent.pages, "a trim makes an extent shorter");
        if pages < extent.pages {
            let addr = extent.addr + pages * self.inner.files.page_size as u64;
            self.free(addr, extent.pages - pages, extent.birth);
        }
        Extent { pages, ..*extent }
    }

    fn free_extent(&mut self, extent: &Extent) {
        self.free(extent.addr, extent.pages, extent.birth);
    }
}
