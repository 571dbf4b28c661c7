//! The changed pages of a write transaction.
//!
//! Invariants
//! 1. Each page is in one state (`PageState`). `in_memory` counts the pages with a buffer, `in_place.pages` those
//!    changed in place; the others are in the file only.
//! 2. `DirtyPage::sealed` holds the checksum of the last seal exactly if the page was not changed since.

use super::buffers::read_back;
use super::page_state::{DirtyPage, PageState};
use super::places::InPlace;
use super::state::{BulkPages, WriteBehind};
use super::write_pages::{WriteHint, write_pages};
use crate::commit::unwritten_pages::Waiting;
use crate::error::{Error, Result};
use crate::format::kind::Kind;
use crate::format::page_map::PageMap;
use crate::format::pages::PageRef;
use crate::format::ptr::Ptr;
use std::collections::VecDeque;
use std::sync::Arc;
use tidalite_base::{Corrupt, TxnId};
use tidalite_disk::storage::Storage;

/// Maximum size in bytes of the page buffers that a transaction leaves to the next one, so that the next need not
/// allocate buffers.
const SPARE_BYTES_MAX: usize = 2 << 20;

/// Maximum capacity of the page map that a transaction leaves to the next one.
const SPARE_PAGES_MAX: usize = 1024;

/// A dirty page as a reader of uncommitted data has captured it.
#[derive(Clone, Debug)]
pub(crate) enum CapturedPage {
    InMemory(Arc<[u8]>),
    /// The page was written to the file before the commit. The number is the checksum of its bytes after the first
    /// eight.
    OnDisk(u64),
}

pub(crate) type CapturedPages = PageMap<(Kind, CapturedPage)>;

type Pages = PageMap<DirtyPage>;

/// Memory that a transaction leaves to the next one.
#[derive(Debug, Default)]
pub(crate) struct Recycled {
    /// Page buffers that are not in use.
    buffers: Vec<Arc<[u8]>>,
    /// A page map without entries, kept because its capacity is allocated.
    pages: Pages,
    order: VecDeque<u64>,
    in_place: InPlace,
}

#[derive(Debug)]
pub(crate) struct Dirty {
    pub(super) page_size: usize,
    pub(super) txn: TxnId,
    pub(super) pages: Pages,
    /// Page numbers in the order in which the pages came into memory; when memory is short, the oldest pages are
    /// written first.
    pub(super) order: VecDeque<u64>,
    pub(super) in_memory: usize,
    pub(super) in_memory_max: usize,
    /// Page buffers that are not in use.
    spare: Vec<Arc<[u8]>>,
    pub(super) in_place: InPlace,
    pub(super) bulk: BulkPages,
    pub(super) write_behind: WriteBehind,
    pub(crate) pages_written: u64,
    /// Number of write calls by which pages were written.
    pub(crate) writes: u64,
    /// Number of pages that were written early to make room in memory, followed by the number of such pages that were
    /// read back for a change.
    pub(crate) spilled: u64,
    pub(crate) read_back: u64,
}

impl Dirty {
    /// Creates an empty set of dirty pages. `spare` is the result of `take_recycled` of the previous transaction.
    pub(crate) fn new(page_size: usize, txn: TxnId, bytes_max: usize, spare: Recycled) -> Self {
        Self {
            page_size,
            txn,
            pages: spare.pages,
            order: spare.order,
            in_memory: 0,
            in_memory_max: (bytes_max / page_size).max(16),
            spare: spare.buffers,
            in_place: spare.in_place,
            bulk: BulkPages::default(),
            write_behind: WriteBehind::default(),
            pages_written: 0,
            writes: 0,
            spilled: 0,
            read_back: 0,
        }
    }

    /// Asserts that the page counters are correct.
    pub(super) fn check(&self) {
        assert!(
            self.in_memory + self.in_place.pages <= self.pages.len(),
            "more pages in memory than pages"
        );
        debug_assert_eq!(
            self.pages
                .values()
                .filter(|page| page.buffer().is_some())
                .count(),
            self.in_memory,
            "pages in memory are miscounted"
        );
        debug_assert_eq!(
            self.pages
                .values()
                .filter(|page| page.is_in_place())
                .count(),
            self.in_place.pages,
            "pages changed in place are miscounted"
        );
    }

    fn number(&self, ptr: &Ptr) -> u64 {
        number(self.page_size, ptr)
    }

    /// Whether every page is in a buffer, and thus in memory that is private to this process.
    #[inline]
    pub(crate) fn is_private(&self) -> bool {
        self.in_memory == self.pages.len()
    }

    /// Whether every page is in memory, not only in the file.
    #[inline]
    fn is_in_memory(&self) -> bool {
        self.in_memory + self.in_place.pages == self.pages.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Returns a recycled buffer with arbitrary contents, for `filled`.
    pub(crate) fn buffer(&mut self) -> Option<Arc<[u8]>> {
        self.spare.pop()
    }

    /// Keeps a buffer for later use, unless the buffer is shared.
    pub(super) fn keep_buffer(&mut self, mut bytes: Arc<[u8]>) {
        if self.spare.len() * self.page_size < SPARE_BYTES_MAX && Arc::get_mut(&mut bytes).is_some()
        {
            self.spare.push(bytes);
        }
    }

    /// Ends an abandoned transaction: background writes stop before its pages are reallocated. `here` says whether
    /// this is the process that began the transaction, not a forked child.
    pub(crate) fn end(&mut self, here: bool) -> Recycled {
        self.stop_background(here);
        self.take_recycled()
    }

    /// Drops all pages, and returns their buffers, which the next transaction will reuse.
    pub(crate) fn take_recycled(&mut self) -> Recycled {
        let (mut pages, mut order) = (
            std::mem::take(&mut self.pages),
            std::mem::take(&mut self.order),
        );
        for (_, page) in pages.drain() {
            if let PageState::Memory(bytes) | PageState::Written(bytes, _) = page.state {
                self.keep_buffer(bytes);
            }
        }
        order.clear();
        // Clearing a map takes time proportional to its capacity, however few entries it has. Large maps are
        // therefore replaced.
        if pages.capacity().max(order.capacity()) > SPARE_PAGES_MAX {
            (pages, order) = (Pages::default(), VecDeque::new());
        }
        Recycled {
            buffers: std::mem::take(&mut self.spare),
            pages,
            order,
            in_place: self.in_place.take(),
        }
    }

    /// Recycles the buffer of a page of an earlier commit that waited in memory and is no longer needed.
    pub(crate) fn reuse(&mut self, bytes: Arc<[u8]>) {
        self.keep_buffer(bytes);
    }

    pub(crate) fn insert(
        &mut self,
        storage: &dyn Storage,
        page: u64,
        kind: Kind,
        (owner, origin): (u64, Option<u64>),
        epoch: u64,
        bytes: Arc<[u8]>,
    ) -> Result<Ptr> {
        self.make_room(storage)?;
        let ptr = self.enter(page, (kind, owner, origin), epoch, Some(bytes));
        self.order.push_back(page);
        self.in_memory += 1;
        self.note_for_write_behind(storage, page)?;
        Ok(ptr)
    }

    /// Adds an unsealed page. If `bytes` is `None`, the page is changed in place, in the memory map of the file.
    pub(super) fn enter(
        &mut self,
        page: u64,
        (kind, owner, origin): (Kind, u64, Option<u64>),
        epoch: u64,
        bytes: Option<Arc<[u8]>>,
    ) -> Ptr {
        let dirty = DirtyPage {
            state: bytes.map_or(PageState::InPlace, PageState::Memory),
            kind,
            owner,
            origin,
            epoch,
            sealed: None,
            touched: true,
        };
        let before = self.pages.insert(page, dirty);
        assert!(before.is_none(), "page {page} is allocated twice");
        Ptr {
            addr: page * self.page_size as u64,
            len: self.page_size as u32,
            kind,
            checksum: 0,
            birth: self.txn,
        }
    }

    fn known(&self, ptr: &Ptr) -> Result<&DirtyPage> {
        match self.pages.get(&self.number(ptr)) {
            Some(page) if page.is_at(self.page_size, ptr) => Ok(page),
            _ => Err(unknown(ptr)),
        }
    }

    /// Returns the epoch (section between savepoints) in which a page was allocated.
    pub(crate) fn epoch(&self, ptr: &Ptr) -> Result<u64> {
        self.known(ptr).map(|page| page.epoch)
    }

    /// Returns the page of an older commit from which a page was copied, if any.
    pub(crate) fn origin(&self, ptr: &Ptr) -> Result<Option<u64>> {
        self.known(ptr).map(|page| page.origin)
    }

    /// Returns the bytes of a page that is in memory, and the page from which it was copied.
    pub(crate) fn with_origin(&self, number: u64) -> Option<(&[u8], Option<u64>)> {
        let page = self.pages.get(&number)?;
        let bytes = match &page.state {
            PageState::InPlace => self.in_place.bytes(number, self.page_size),
            _ => page.buffer()?,
        };
        Some((bytes, page.origin))
    }

    /// Whether a page was written to the file early, is not in memory, and is not sealed, so that sealing would
    /// change it.
    pub(crate) fn is_spilled_unsealed(&self, ptr: &Ptr) -> bool {
        self.known(ptr)
            .is_ok_and(|page| matches!(page.state, PageState::File(_)) && page.sealed.is_none())
    }

    /// Captures every page as it is now, for a reader of uncommitted data.
    pub(crate) fn keep(&self) -> CapturedPages {
        let each = self.pages.iter().map(|(&number, page)| {
            let kept = match &page.state {
                PageState::Memory(bytes) | PageState::Written(bytes, _) => {
                    CapturedPage::InMemory(Arc::clone(bytes))
                }
                PageState::InPlace => {
                    let bytes = self.in_place.bytes(number, self.page_size);
                    CapturedPage::InMemory(bytes.into())
                }
                PageState::File(sum) => CapturedPage::OnDisk(*sum),
            };
            (number, (page.kind, kept))
        });
        each.collect()
    }

    pub(crate) fn get(&self, storage: &dyn Storage, ptr: &Ptr) -> Result<PageRef<'_>> {
        let page = self.known(ptr)?;
        match &page.state {
            PageState::Memory(bytes) | PageState::Written(bytes, _) => Ok(PageRef::Borrowed(bytes)),
            PageState::InPlace => {
                let bytes = self.in_place.bytes(self.number(ptr), self.page_size);
                Ok(PageRef::Borrowed(bytes))
            }
            PageState::File(sum) => {
                let bytes = read_back(storage, ptr.addr, self.page_size, *sum)?;
                Ok(PageRef::Owned(bytes))
            }
        }
    }

    /// Reads a page that was written early into memory again.
    #[cold]
    fn bring_in(&mut self, storage: &dyn Storage, ptr: &Ptr) -> Result<()> {
        let PageState::File(sum) = self.known(ptr)?.state else {
            return Ok(());
        };
        let bytes = read_back(storage, ptr.addr, self.page_size, sum)?;
        self.make_room(storage)?;
        let number = self.number(ptr);
        self.order.push_back(number);
        self.in_memory += 1;
        let Some(page) = self.pages.get_mut(&number) else {
            return Err(unknown(ptr));
        };
        page.state = PageState::Written(bytes, sum);
        self.read_back += 1;
        Ok(())
    }

    pub(crate) fn get_mut(&mut self, storage: &dyn Storage, ptr: &Ptr) -> Result<&mut [u8]> {
        if !self.is_in_memory() {
            self.bring_in(storage, ptr)?;
        }
        let page = own(&mut self.pages, self.page_size, ptr)?;
        page.touched = true;
        if page.begin_change() {
            self.write_behind.again += 1;
        }
        Ok(bytes_mut(
            page,
            &mut self.in_place,
            ptr.addr,
            self.page_size,
        ))
    }

    /// Returns a page that the caller may inspect and then change.
    pub(crate) fn get_own(&mut self, storage: &dyn Storage, ptr: &Ptr) -> Result<&[u8]> {
        if !self.is_in_memory() {
            self.bring_in(storage, ptr)?;
        }
        let number = self.number(ptr);
        let page = own(&mut self.pages, self.page_size, ptr)?;
        page.touched = true;
        match page.buffer() {
            Some(bytes) => Ok(bytes),
            None => Ok(self.in_place.bytes(number, self.page_size)),
        }
    }

    pub(crate) fn seal(&mut self, storage: &dyn Storage, ptr: &Ptr) -> Result<Ptr> {
        let txn = self.txn;
        if !self.is_in_memory() && self.known(ptr)?.sealed.is_none() {
            self.bring_in(storage, ptr)?;
        }
        let page = own(&mut self.pages, self.page_size, ptr)?;
        if let Some(checksum) = page.sealed {
            return Ok(Ptr { checksum, ..*ptr });
        }
        page.touched = true;
        page.begin_change();
        let owned = (page.kind, page.owner);
        let bytes = bytes_mut(page, &mut self.in_place, ptr.addr, self.page_size);
        let sealed = DirtyPage::seal(owned, bytes, (ptr.addr, txn));
        page.sealed = Some(sealed.checksum);
        Ok(sealed)
    }

    /// Returns the final pointer of a page that is unchanged since it was sealed.
    pub(crate) fn sealed(&self, ptr: &Ptr) -> Option<Ptr> {
        let page = self.known(ptr).ok()?;
        let checksum = page.sealed?;
        Some(Ptr { checksum, ..*ptr })
    }

    /// Calls `tell` with the final pointer of every sealed page.
    pub(crate) fn for_each_sealed(&self, mut tell: impl FnMut(&Ptr)) {
        for (&number, page) in &self.pages {
            if let Some(checksum) = page.sealed {
                tell(&Ptr {
                    addr: number * self.page_size as u64,
                    len: self.page_size as u32,
                    kind: page.kind,
                    checksum,
                    birth: self.txn,
                });
            }
        }
    }

    pub(crate) fn remove(&mut self, page: u64) -> bool {
        let Some(removed) = self.pages.remove(&page) else {
            return false;
        };
        match removed.state {
            PageState::Memory(bytes) | PageState::Written(bytes, _) => {
                assert!(self.in_memory > 0, "a page in memory is counted");
                self.in_memory -= 1;
                self.keep_buffer(bytes);
            }
            PageState::InPlace => {
                assert!(
                    self.in_place.pages > 0,
                    "a page changed in place is counted"
                );
                self.in_place.pages -= 1;
            }
            PageState::File(_) => {}
        }
        true
    }

    /// Checks that every page is sealed before a commit; an unsealed page would be lost.
    ///
    /// # Errors
    /// If a page was changed after it was last sealed. The reason is a bug of the structure that owns the page, or a
    /// hostile file whose tree contains one page twice.
    pub(crate) fn expect_sealed(&self) -> Result<()> {
        self.check();
        for (&number, page) in &self.pages {
            if page.sealed.is_none() {
                let what = format!("{:?} of {}", page.kind, page.owner);
                let at = number * self.page_size as u64;
                let (found, expected) = ("a changed page that nothing leads to", "one in its tree");
                return Err(Corrupt::new(what, at, found, expected).into());
            }
        }
        Ok(())
    }

    /// Writes all pages that are not in the file yet, and waiting pages of earlier commits.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn write_all(
        &mut self,
        storage: &dyn Storage,
        waiting: &[(u64, Waiting)],
        hint: WriteHint,
    ) -> Result<()> {
        self.drain()?;
        let own = self.pages.iter();
        let own = own.filter_map(|(&number, page)| Some((number, &**page.unwritten()?)));
        let before = waiting.iter().map(|(number, page)| (*number, &*page.bytes));
        let pages: Vec<_> = own.chain(before).collect();
        self.pages_written += pages.len() as u64;
        let ask = |at, len| self.write_behind.ask(storage, at, len);
        self.writes += write_pages(storage, ask, self.page_size, pages, hint)?;
        self.end_in_place(storage)
    }

    /// Returns the numbers of the pages that are not in the file.
    pub(crate) fn numbers_unwritten(&self) -> Vec<u64> {
        let each = self.pages.iter();
        each.filter(|(_, page)| page.unwritten().is_some() || page.is_in_place())
            .map(|(&number, _)| number)
            .collect()
    }

    /// Number of pages in memory or changed in place.
    pub(crate) fn pages_in_memory(&self) -> usize {
        self.in_memory + self.in_place.pages
    }

    /// Removes all pages that are only in memory, which must be sealed, and returns them for a later commit to write.
    pub(crate) fn take_unwritten(&mut self) -> impl Iterator<Item = (u64, Waiting)> + use<> {
        self.bring_out();
        let birth = self.txn;
        let pages = std::mem::take(&mut self.pages).into_iter();
        pages.filter_map(move |(number, page)| {
            let PageState::Memory(bytes) = page.state else {
                return None;
            };
            let waiting = Waiting {
                kind: page.kind,
                checksum: page.sealed?,
                birth,
                is_freed: false,
                bytes,
            };
            Some((number, waiting))
        })
    }
}

/// Returns a page of the transaction for a change. Borrows only the page map, so the counters of `Dirty` remain
/// usable.
fn own<'p>(pages: &'p mut Pages, page_size: usize, ptr: &Ptr) -> Result<&'p mut DirtyPage> {
    match pages.get_mut(&number(page_size, ptr)) {
        Some(page) if page.is_at(page_size, ptr) => Ok(page),
        _ => Err(unknown(ptr)),
    }
}

/// Returns the bytes of a page whose change has begun (`DirtyPage::begin_change`).
fn bytes_mut<'p>(
    page: &'p mut DirtyPage,
    in_place: &'p mut InPlace,
    addr: u64,
    page_size: usize,
) -> &'p mut [u8] {
    match &mut page.state {
        PageState::Memory(bytes) => Arc::make_mut(bytes),
        PageState::InPlace => in_place.bytes_mut(addr / page_size as u64, page_size),
        PageState::Written(..) | PageState::File(_) => {
            unreachable!("a change begins with the page in memory")
        }
    }
}

fn number(page_size: usize, ptr: &Ptr) -> u64 {
    ptr.addr >> page_size.trailing_zeros()
}

fn unknown(ptr: &Ptr) -> Error {
    let expected = "a page of this transaction";
    Corrupt::new("pointer", ptr.addr, format!("{ptr:?}"), expected).into()
}
