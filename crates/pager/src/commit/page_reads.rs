//! Reads of bytes, pages and blocks of the file. The bytes are borrowed from the memory map or copied, and verified.

use super::files::Files;
use super::shared::Shared;
use super::versions::State;
use crate::error::{Error, Result};
use crate::format::header::verify_block;
use crate::format::layout::{HEAD_BYTES, LARGE_AT};
use crate::format::pages::PageRef;
use crate::format::ptr::Ptr;
use crate::options::Verify;
use tidalite_base::Corrupt;

impl Files {
    /// Reads bytes of the file between its head and `end`, without verification. Borrows them from the memory map if
    /// possible.
    #[inline]
    pub(crate) fn bytes(&self, addr: u64, len: usize, end: u64) -> Result<PageRef<'_>> {
        match self.lent(addr, len, end) {
            Some(bytes) => Ok(PageRef::Borrowed(bytes)),
            None if addr >= LARGE_AT => self.large_bytes(addr, len, true),
            None => self.read_owned(addr, len, end),
        }
    }

    /// Reads bytes of the second file, which stores large values; `addr` is an address as in a pointer.
    #[cold]
    fn large_bytes(&self, addr: u64, len: usize, lend: bool) -> Result<PageRef<'_>> {
        match &self.large {
            Some(large) => large.bytes(addr, len, lend),
            None => {
                // Either the pointer is damaged, or another process added a second file after this handle was opened.
                let found = format!("{len} bytes in a second file");
                let expected =
                    "an address of this file; the database was opened without a second one";
                Err(Corrupt::new("pointer", addr, found, expected).into())
            }
        }
    }

    /// Borrows bytes from the memory map; returns `None` if they are out of range or not mapped.
    #[inline]
    fn lent(&self, addr: u64, len: usize, end: u64) -> Option<&[u8]> {
        let inside = addr.checked_add(len as u64).is_some_and(|to| to <= end);
        if !inside || addr < HEAD_BYTES {
            return None;
        }
        self.storage.mapped(addr, len)
    }

    /// Borrows a page from the memory map for single pages; returns `None` if it is out of range or not mapped.
    #[inline]
    fn lent_page(&self, addr: u64, end: u64) -> Option<&[u8]> {
        let inside = addr
            .checked_add(self.page_size as u64)
            .is_some_and(|to| to <= end);
        if !inside || addr < HEAD_BYTES {
            return None;
        }
        self.storage.mapped_page(addr, self.page_size)
    }

    /// Reads a page by its number, without verification.
    pub(crate) fn page_as_it_is(&self, number: u64, end: u64) -> Result<PageRef<'_>> {
        let addr = number * self.page_size as u64;
        match self.lent_page(addr, end) {
            Some(bytes) => Ok(PageRef::Borrowed(bytes)),
            None => self.read_owned(addr, self.page_size, end),
        }
    }

    #[cold]
    pub(crate) fn read_owned(&self, addr: u64, len: usize, end: u64) -> Result<PageRef<'_>> {
        if addr >= LARGE_AT {
            return self.large_bytes(addr, len, false);
        }
        let inside = addr.checked_add(len as u64).is_some_and(|to| to <= end);
        if !inside || addr < HEAD_BYTES {
            return Err(outside(addr, len, end));
        }
        let mut bytes = vec![0u8; len];
        match self.storage.read_at(addr, &mut bytes) {
            Ok(()) => Ok(PageRef::Owned(bytes.into())),
            Err(source) => Err(Error::of_call(format!("read of {len} bytes"), addr, source)),
        }
    }

    /// Prefetches the beginning of a page into the processor cache.
    #[inline]
    pub(crate) fn prefetch(&self, ptr: &Ptr, bytes: usize, end: u64) {
        if let Some(page) = self.lent_page(ptr.addr, end) {
            tidalite_base::prefetch(&page[..bytes.min(self.page_size)]);
        }
    }

    /// Asks the operating system to read the bytes `addr..addr + bytes` ahead, if they lie before `end`.
    pub(crate) fn read_ahead(&self, addr: u64, bytes: u64, end: u64) {
        if addr.checked_add(bytes).is_some_and(|to| to <= end) {
            // Readahead is only a hint. If it fails, the later read of the bytes reports the error.
            let _ = self.storage.read_ahead(addr, bytes);
        }
    }

    /// Prefetches bytes inside an extent into the processor cache.
    #[inline]
    pub(crate) fn prefetch_bytes(&self, addr: u64, len: usize, end: u64) {
        if let Some(bytes) = self.lent(addr, len, end) {
            tidalite_base::prefetch(bytes);
        }
    }

    #[inline]
    pub(crate) fn expect_page(&self, ptr: &Ptr) -> Result<()> {
        if ptr.len as usize != self.page_size || ptr.addr & (self.page_size as u64 - 1) != 0 {
            return Err(not_a_page(ptr, self.page_size));
        }
        Ok(())
    }

    /// Copies a block or page without touching the memory map. Pages that no snapshot uses may be truncated at any
    /// time, and an access to the map would then raise SIGBUS.
    #[cold]
    pub(crate) fn copied(&self, ptr: &Ptr, end: u64) -> Result<PageRef<'_>> {
        let bytes = self.read_owned(ptr.addr, ptr.len as usize, end)?;
        if self.options.verify != Verify::Never {
            verify_block(&bytes, ptr)?;
        }
        Ok(bytes)
    }

    /// Returns a page of the file for a reader of the commit `state` if the page is mapped, and if it needs no
    /// verification or was verified before. Otherwise returns `None`.
    #[inline(always)]
    pub(crate) fn known_page(&self, state: &State, ptr: &Ptr) -> Option<&[u8]> {
        let is_page =
            ptr.len as usize == self.page_size && ptr.addr & (self.page_size as u64 - 1) == 0;
        if !is_page || ptr.birth.0 > state.written {
            return None;
        }
        let page = self.lent_page(ptr.addr, state.bytes)?;
        let known = match self.options.verify {
            Verify::OnFirstTouch => self.verified.knows(ptr),
            Verify::Always => false,
            Verify::Never => true,
        };
        known.then_some(page)
    }

    /// Reads a whole page of the file, and verifies it as the options require.
    #[inline]
    pub(crate) fn page(&self, ptr: &Ptr, end: u64) -> Result<PageRef<'_>> {
        self.expect_page(ptr)?;
        // In the common case the result is constructed here, in its final place. If another function returned the
        // `Result<PageRef>`, it would be copied, and each copy waits for the stores before it.
        match self.lent_page(ptr.addr, end) {
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

    /// Reads a block inside an extent for a reader, and verifies it as the options require. The table of verified
    /// blocks (`verified_pages.rs`) stores its mark at the page in which the block begins.
    #[inline]
    pub(crate) fn block_once(&self, ptr: &Ptr, end: u64) -> Result<PageRef<'_>> {
        let bytes = self.bytes(ptr.addr, ptr.len as usize, end)?;
        if self.options.verify != Verify::OnFirstTouch || !self.verified.knows(ptr) {
            self.verify(ptr, &bytes)?;
        }
        Ok(bytes)
    }

    /// Reads a block inside an extent, and verifies it unless the options say never. Used by callers that write the
    /// contents elsewhere, and therefore do not trust an earlier verification.
    #[inline]
    pub(crate) fn block(&self, ptr: &Ptr, end: u64) -> Result<PageRef<'_>> {
        let bytes = self.bytes(ptr.addr, ptr.len as usize, end)?;
        if self.options.verify != Verify::Never {
            verify_block(&bytes, ptr)?;
        }
        Ok(bytes)
    }
}

impl Shared {
    /// Reads a whole page for a reader of the commit `state`, from the pages not written yet or from the file.
    #[inline]
    pub(crate) fn page_of(&self, state: &State, ptr: &Ptr) -> Result<PageRef<'_>> {
        if ptr.birth.0 > state.written
            && let Some(bytes) = self.versions.unwritten.get(ptr, self.files.page_size)
        {
            return Ok(PageRef::Owned(bytes));
        }
        self.files.page(ptr, state.bytes)
    }

    /// Like `page_of`, for one of many pages that are read in file order.
    pub(crate) fn page_in_order(&self, state: &State, ptr: &Ptr) -> Result<PageRef<'_>> {
        self.files.expect_page(ptr)?;
        let to = ptr.addr.checked_add(self.files.page_size as u64);
        let inside = ptr.addr >= HEAD_BYTES && to.is_some_and(|to| to <= state.bytes);
        let may_wait = ptr.birth.0 > state.written;
        match self
            .files
            .storage
            .mapped_in_order(ptr.addr, self.files.page_size)
        {
            Some(bytes) if inside && !may_wait => {
                if self.files.options.verify != Verify::OnFirstTouch
                    || !self.files.verified.knows(ptr)
                {
                    self.files.verify(ptr, bytes)?;
                }
                Ok(PageRef::Borrowed(bytes))
            }
            _ => self.page_of(state, ptr),
        }
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
