//! Pages and extents in memory for tests of data structures, without a file and without durability. They panic on
//! errors that the real pager could notice only later:
//! 1. reading or freeing a free page (addresses are never reused, so a stale pointer is always detected);
//! 2. changing a page that an earlier transaction wrote;
//! 3. writing outside the extents of this transaction;
//! 4. a commit while a page of this transaction was changed after its last seal.
//!
//! A data structure that uses the flags of the page header writes them as byte 9 of its page; sealing a page keeps
//! them.
//!
//! A test finds leaked pages by comparing `live_pages` with the number of pages that a data structure reaches.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tidalite_base::{Corrupt, TxnId};
use tidalite_pager::{
    Counters, DiskError, Error, Extent, Header, Kind, PageRead, PageRef, PageWrite, Ptr, Result,
    seal_block, verify_block,
};

#[derive(Clone, Debug)]
struct Page {
    bytes: Arc<[u8]>,
    kind: Kind,
    owner: u64,
    birth: TxnId,
    sealed: bool,
}

#[derive(Clone, Debug)]
struct StoredExtent {
    bytes: Arc<Vec<u8>>,
    birth: TxnId,
}

#[derive(Clone, Debug, Default)]
struct Content {
    pages: HashMap<u64, Page>,
    /// The extents in use, by address; each holds whole pages.
    extents: BTreeMap<u64, StoredExtent>,
}

impl Content {
    fn page(&self, ptr: &Ptr, writing: Option<TxnId>) -> Result<PageRef<'_>> {
        let Some(page) = self.pages.get(&ptr.addr) else {
            panic!("read of {ptr:?}: no such page, or freed already");
        };
        if writing == Some(ptr.birth) {
            assert_eq!(
                (page.kind, page.birth),
                (ptr.kind, ptr.birth),
                "read of {ptr:?}: another page"
            );
        } else {
            verify_block(&page.bytes, ptr)?;
        }
        Ok(PageRef::Borrowed(&page.bytes))
    }

    fn bytes(&self, addr: u64, len: usize) -> &[u8] {
        let Some((start, stored)) = self.extents.range(..=addr).next_back() else {
            panic!("read of {len} bytes at {addr}: no extent there, or freed already");
        };
        let from = (addr - start) as usize;
        assert!(
            from + len <= stored.bytes.len(),
            "read of {len} bytes at {addr}: outside the extent at {start}, or freed already"
        );
        &stored.bytes[from..from + len]
    }

    fn block(&self, ptr: &Ptr) -> Result<PageRef<'_>> {
        let bytes = self.bytes(ptr.addr, ptr.len as usize);
        verify_block(bytes, ptr)?;
        Ok(PageRef::Borrowed(bytes))
    }

    /// Removes the bytes `[addr, addr + len)` from the extent that holds them; returns the original extent, so that the
    /// change can be undone.
    fn cut(&mut self, addr: u64, len: u64) -> (u64, StoredExtent) {
        let Some((&start, stored)) = self.extents.range(..=addr).next_back() else {
            panic!("free of {len} bytes at {addr}: no extent there, or freed already");
        };
        let stored = stored.clone();
        let (from, to) = ((addr - start) as usize, (addr - start + len) as usize);
        assert!(
            to <= stored.bytes.len(),
            "free of {len} bytes at {addr}: outside the extent at {start}"
        );
        self.extents.remove(&start);
        let part = |bytes: &[u8]| StoredExtent {
            bytes: Arc::new(bytes.to_vec()),
            birth: stored.birth,
        };
        if from > 0 {
            self.extents.insert(start, part(&stored.bytes[..from]));
        }
        if to < stored.bytes.len() {
            self.extents.insert(addr + len, part(&stored.bytes[to..]));
        }
        (start, stored)
    }

    /// Removes all extents that begin in `[addr, addr + len)`.
    fn clear(&mut self, addr: u64, len: u64) {
        let inside: Vec<u64> = self.extents.range(addr..addr + len).map(|e| *e.0).collect();
        for start in inside {
            self.extents.remove(&start);
        }
    }

    fn live_ranges(&self, page_size: usize) -> Vec<(u64, u64)> {
        let pages = self.pages.keys().map(|&addr| (addr, 1));
        let extents = self.extents.iter();
        let extents = extents.map(|(&addr, e)| (addr, (e.bytes.len() / page_size) as u64));
        let mut all: Vec<_> = pages.chain(extents).collect();
        all.sort_unstable();
        all
    }
}

enum Undo {
    NewPage(u64),
    FreedPage(u64, Page),
    NewExtent(u64, u64),
    FreedExtent(u64, StoredExtent),
}

/// Pages and extents in memory, which are changed by one write transaction after another.
pub struct ScratchPages {
    page_size: usize,
    txn: TxnId,
    next_addr: u64,
    content: Content,
    undo: Vec<Undo>,
    counters: Counters,
    pages_allocated: u64,
    bytes_written: u64,
    calls_left: Option<u64>,
}

/// The contents of all pages at some moment, readable from any thread.
pub struct ScratchSnapshot {
    page_size: usize,
    content: Content,
    counters: Counters,
}

impl ScratchPages {
    /// Creates an empty file with pages of this size in bytes, and begins its first transaction.
    #[must_use]
    pub fn new(page_size: usize) -> Self {
        Self {
            page_size,
            txn: TxnId(1),
            next_addr: page_size as u64 * 8,
            content: Content::default(),
            undo: Vec::new(),
            counters: Counters::default(),
            pages_allocated: 0,
            bytes_written: 0,
            calls_left: None,
        }
    }

    /// Commits the transaction and begins the next one.
    ///
    /// # Panics
    /// If a page was changed after its last seal.
    pub fn commit(&mut self) {
        self.assert_sealed();
        self.undo.clear();
        self.txn = self.txn.next();
    }

    /// Undoes everything since the last commit and begins the next transaction.
    pub fn rollback(&mut self) {
        while let Some(step) = self.undo.pop() {
            match step {
                Undo::NewPage(addr) => drop(self.content.pages.remove(&addr)),
                Undo::FreedPage(addr, page) => drop(self.content.pages.insert(addr, page)),
                Undo::NewExtent(addr, len) => self.content.clear(addr, len),
                Undo::FreedExtent(addr, stored) => {
                    self.content.clear(addr, stored.bytes.len() as u64);
                    self.content.extents.insert(addr, stored);
                }
            }
        }
        self.txn = self.txn.next();
    }

    /// A snapshot of the current contents, which later transactions do not change.
    ///
    /// # Panics
    /// If a page was changed after its last seal.
    #[must_use]
    pub fn snapshot(&self) -> ScratchSnapshot {
        self.assert_sealed();
        ScratchSnapshot {
            page_size: self.page_size,
            content: self.content.clone(),
            counters: Counters::default(),
        }
    }

    /// Number of pages in use, including extents.
    #[must_use]
    pub fn live_pages(&self) -> u64 {
        self.live_ranges().iter().map(|(_, pages)| pages).sum()
    }

    /// The ranges of pages in use, as (address, number of pages), ascending: a data structure must claim exactly these
    /// pages.
    #[must_use]
    pub fn live_ranges(&self) -> Vec<(u64, u64)> {
        self.content.live_ranges(self.page_size)
    }

    /// Checks that the claimed ranges (address, number of pages) cover the pages in use exactly once.
    ///
    /// # Panics
    /// On a leak, a double claim, or a claim of pages that are not in use.
    pub fn assert_all_claimed(&self, claims: &[(u64, u64)]) {
        let expand = |ranges: &[(u64, u64)]| -> Vec<u64> {
            let size = self.page_size as u64;
            let each = ranges.iter();
            let mut all: Vec<u64> = each
                .flat_map(|&(addr, pages)| (0..pages).map(move |i| addr + i * size))
                .collect();
            all.sort_unstable();
            all
        };
        let (live, claimed) = (expand(&self.live_ranges()), expand(claims));
        if let Some(pair) = claimed.windows(2).find(|pair| pair[0] == pair[1]) {
            panic!("the page at {} is claimed twice", pair[0]);
        }
        if let Some(addr) = live
            .iter()
            .find(|addr| claimed.binary_search(addr).is_err())
        {
            panic!("the page at {addr} is leaked");
        }
        if let Some(addr) = claimed
            .iter()
            .find(|addr| live.binary_search(addr).is_err())
        {
            panic!("the page at {addr} is claimed but not in use");
        }
    }

    /// Number of pages allocated since the beginning, including extents.
    #[must_use]
    pub fn pages_allocated(&self) -> u64 {
        self.pages_allocated
    }

    /// Number of bytes written to extents since the beginning.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.bytes_written
    }

    /// After `calls` more allocations and extent writes, each further one fails with `DiskFull`. `None` removes this
    /// limit.
    pub fn fail_after(&mut self, calls: Option<u64>) {
        self.calls_left = calls;
    }

    /// Flips one bit of a page or extent, which verification must report as damage.
    ///
    /// # Panics
    /// If nothing is stored at `addr`.
    pub fn flip_bit(&mut self, addr: u64, bit: u8) {
        let base = addr - addr % self.page_size as u64;
        if let Some(page) = self.content.pages.get_mut(&base) {
            Arc::make_mut(&mut page.bytes)[(addr - base) as usize] ^= 1 << bit;
            return;
        }
        let Some((&start, stored)) = self.content.extents.range_mut(..=addr).next_back() else {
            panic!("nothing is at {addr}");
        };
        Arc::make_mut(&mut stored.bytes)[(addr - start) as usize] ^= 1 << bit;
    }

    fn assert_sealed(&self) {
        let open = self.content.pages.iter().find(|(_, page)| !page.sealed);
        if let Some((addr, page)) = open {
            panic!("the page at {addr} ({:?}) was not sealed", page.kind);
        }
    }

    fn count_call(&mut self, needed_bytes: u64) -> Result<()> {
        match &mut self.calls_left {
            Some(0) => Err(Error::Disk(DiskError::DiskFull { needed_bytes })),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn take_addr(&mut self, pages: u64) -> Result<u64> {
        let len = pages * self.page_size as u64;
        self.count_call(len)?;
        let addr = self.next_addr;
        self.next_addr += len;
        self.pages_allocated += pages;
        Ok(addr)
    }

    fn put_page(&mut self, kind: Kind, owner: u64, bytes: Arc<[u8]>) -> Result<Ptr> {
        let addr = self.take_addr(1)?;
        let birth = self.txn;
        let page = Page {
            bytes,
            kind,
            owner,
            birth,
            sealed: false,
        };
        self.content.pages.insert(addr, page);
        self.undo.push(Undo::NewPage(addr));
        Ok(Ptr {
            addr,
            len: self.page_size as u32,
            kind,
            checksum: 0,
            birth,
        })
    }

    fn own_page(&mut self, ptr: &Ptr) -> &mut Page {
        let txn = self.txn;
        let Some(page) = self.content.pages.get_mut(&ptr.addr) else {
            panic!("change of {ptr:?}: no such page, or freed already");
        };
        assert_eq!(
            (page.birth, ptr.birth),
            (txn, txn),
            "change of {ptr:?}: not a page of this transaction"
        );
        page
    }
}

impl PageRead for ScratchPages {
    fn page_size(&self) -> usize {
        self.page_size
    }

    fn page(&self, ptr: &Ptr) -> Result<PageRef<'_>> {
        Counters::bump(&self.counters.pages_read);
        self.content.page(ptr, Some(self.txn))
    }

    fn lent_page(&self, ptr: &Ptr) -> Option<&[u8]> {
        match self.content.page(ptr, Some(self.txn)) {
            Ok(PageRef::Borrowed(bytes)) => {
                Counters::bump(&self.counters.pages_read);
                Some(bytes)
            }
            _ => None,
        }
    }

    fn block(&self, ptr: &Ptr) -> Result<PageRef<'_>> {
        Counters::bump(&self.counters.blocks_read);
        self.content.block(ptr)
    }

    fn bytes(&self, addr: u64, len: usize) -> Result<PageRef<'_>> {
        if addr.saturating_add(len as u64) > self.next_addr {
            let found = format!("{len} bytes");
            let expected = format!("a range before byte {}", self.next_addr);
            return Err(Corrupt::new("range", addr, found, expected).into());
        }
        Ok(PageRef::Borrowed(self.content.bytes(addr, len)))
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}

impl PageWrite for ScratchPages {
    fn txn(&self) -> TxnId {
        self.txn
    }

    fn new_page(&mut self, kind: Kind, owner: u64) -> Result<Ptr> {
        self.put_page(kind, owner, vec![0; self.page_size].into())
    }

    fn shadow(&mut self, ptr: &Ptr) -> Result<Ptr> {
        if ptr.birth == self.txn {
            self.own_page(ptr);
            return Ok(*ptr);
        }
        let bytes: Arc<[u8]> = self.content.page(ptr, None)?.to_vec().into();
        let owner = Header::decode(&bytes).owner;
        let new = self.put_page(ptr.kind, owner, bytes)?;
        self.free_page(ptr);
        Ok(new)
    }

    fn page_mut(&mut self, ptr: &Ptr) -> Result<&mut [u8]> {
        let page = self.own_page(ptr);
        page.sealed = false;
        Ok(Arc::make_mut(&mut page.bytes))
    }

    fn seal_page(&mut self, ptr: &Ptr) -> Result<Ptr> {
        let page = self.own_page(ptr);
        let header = Header {
            kind: page.kind,
            flags: page.bytes[9],
            owner: page.owner,
            address: ptr.addr,
            birth: page.birth,
        };
        page.sealed = true;
        Ok(seal_block(Arc::make_mut(&mut page.bytes), &header))
    }

    fn free_page(&mut self, ptr: &Ptr) {
        let Some(page) = self.content.pages.remove(&ptr.addr) else {
            panic!("free of {ptr:?}: no such page, or freed already");
        };
        assert_eq!(page.birth, ptr.birth, "free of {ptr:?}: another page");
        self.undo.push(Undo::FreedPage(ptr.addr, page));
    }

    fn alloc_extent(&mut self, pages: u64) -> Result<Extent> {
        assert!(pages > 0, "an extent has pages");
        let addr = self.take_addr(pages)?;
        let len = pages as usize * self.page_size;
        let stored = StoredExtent {
            bytes: Arc::new(vec![0; len]),
            birth: self.txn,
        };
        self.content.extents.insert(addr, stored);
        self.undo.push(Undo::NewExtent(addr, len as u64));
        Ok(Extent {
            addr,
            pages,
            birth: self.txn,
        })
    }

    fn write_extent(&mut self, addr: u64, bytes: &[u8]) -> Result<()> {
        self.count_call(bytes.len() as u64)?;
        let txn = self.txn;
        let Some((&start, stored)) = self.content.extents.range_mut(..=addr).next_back() else {
            panic!("write at {addr}: no extent there, or freed already");
        };
        assert_eq!(stored.birth, txn, "write at {addr}: an older extent");
        let from = (addr - start) as usize;
        assert!(
            from + bytes.len() <= stored.bytes.len(),
            "write of {} bytes at {addr}: outside the extent at {start}",
            bytes.len()
        );
        Arc::make_mut(&mut stored.bytes)[from..from + bytes.len()].copy_from_slice(bytes);
        self.bytes_written += bytes.len() as u64;
        Ok(())
    }

    fn trim_extent(&mut self, extent: &Extent, pages: u64) -> Extent {
        assert!(pages <= extent.pages, "a trim makes an extent shorter");
        if pages < extent.pages {
            assert_eq!(extent.birth, self.txn, "trim of an older extent");
            self.free_extent(&Extent {
                addr: extent.addr + pages * self.page_size as u64,
                pages: extent.pages - pages,
                birth: extent.birth,
            });
        }
        Extent { pages, ..*extent }
    }

    fn free_extent(&mut self, extent: &Extent) {
        let (start, stored) = self
            .content
            .cut(extent.addr, extent.pages * self.page_size as u64);
        assert_eq!(
            stored.birth, extent.birth,
            "free of {extent:?}: another extent"
        );
        self.undo.push(Undo::FreedExtent(start, stored));
    }
}

impl PageRead for ScratchSnapshot {
    fn page_size(&self) -> usize {
        self.page_size
    }

    fn page(&self, ptr: &Ptr) -> Result<PageRef<'_>> {
        Counters::bump(&self.counters.pages_read);
        self.content.page(ptr, None)
    }

    fn lent_page(&self, ptr: &Ptr) -> Option<&[u8]> {
        match self.content.page(ptr, None) {
            Ok(PageRef::Borrowed(bytes)) => {
                Counters::bump(&self.counters.pages_read);
                Some(bytes)
            }
            _ => None,
        }
    }

    fn block(&self, ptr: &Ptr) -> Result<PageRef<'_>> {
        Counters::bump(&self.counters.blocks_read);
        self.content.block(ptr)
    }

    fn bytes(&self, addr: u64, len: usize) -> Result<PageRef<'_>> {
        Ok(PageRef::Borrowed(self.content.bytes(addr, len)))
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shadow_leaves_the_snapshot_alone_and_rollback_restores() {
        let mut pages = ScratchPages::new(512);
        let ptr = pages.new_page(Kind::KvLeaf, 3).unwrap();
        pages.page_mut(&ptr).unwrap()[40] = 1;
        let first = pages.seal_page(&ptr).unwrap();
        let extent = pages.alloc_extent(4).unwrap();
        let extent = pages.trim_extent(&extent, 2);
        pages.commit();
        let before = pages.snapshot();

        let ptr = pages.shadow(&first).unwrap();
        assert_ne!(ptr.addr, first.addr);
        assert_eq!(pages.shadow(&ptr).unwrap(), ptr);
        pages.page_mut(&ptr).unwrap()[40] = 2;
        let second = pages.seal_page(&ptr).unwrap();
        assert_eq!(pages.page(&second).unwrap()[40], 2);
        pages.free_extent(&Extent { pages: 1, ..extent });
        assert_eq!(pages.live_pages(), 2);
        assert_eq!(before.page(&first).unwrap()[40], 1);

        pages.rollback();
        assert_eq!(pages.page(&first).unwrap()[40], 1);
        assert_eq!(pages.live_pages(), 3);
        pages.assert_all_claimed(&[(first.addr, 1), (extent.addr, 2)]);
        pages.flip_bit(first.addr + 100, 3);
        assert!(matches!(pages.page(&first), Err(Error::Corrupt(_))));
    }

    #[test]
    #[should_panic(expected = "freed already")]
    fn a_freed_page_cannot_be_read() {
        let mut pages = ScratchPages::new(512);
        let ptr = pages.new_page(Kind::KvLeaf, 3).unwrap();
        pages.free_page(&ptr);
        let _ = pages.page(&ptr);
    }
}
