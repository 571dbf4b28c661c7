//! The changed pages of a write transaction.
//!
//! Invariants
//! 1. A page is in memory, or on disk as it was last (`spilled` holds the checksum of all its bytes), or both.
//! 2. `sealed` holds the checksum of the last seal exactly when nothing was changed since.

use crate::error::{Error, Result};
use crate::header::{Header, Kind, seal_block};
use crate::pages::PageRef;
use crate::ptr::Ptr;
use crate::storage::Storage;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Deref;
use std::sync::Arc;
use tidalite_base::{Corrupt, TxnId, checksum};

/// Neighbouring pages are written together, up to this many bytes; more makes later writes of single pages slower
/// (decision 1000).
const WRITE_BYTES_MAX: usize = 64 << 10;

/// Page numbers need no protection against chosen keys: they are ours.
#[derive(Default)]
pub(crate) struct PageHasher(u64);

impl Hasher for PageHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are page numbers");
    }
    fn write_u64(&mut self, page: u64) {
        let mixed = page.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}

/// A page in memory: the transaction's alone, or shared with readers of uncommitted state, who keep what they
/// were given when it is changed.
#[derive(Debug)]
enum Bytes {
    Own(Box<[u8]>),
    Shared(Arc<Box<[u8]>>),
}

impl Bytes {
    fn get_mut(&mut self) -> &mut [u8] {
        if let Self::Shared(shared) = self {
            let own = match Arc::get_mut(shared) {
                Some(bytes) => std::mem::take(bytes),
                None => Box::clone(shared),
            };
            *self = Self::Own(own);
        }
        match self {
            Self::Own(bytes) => bytes,
            Self::Shared(_) => unreachable!("it was made the transaction's own"),
        }
    }

    fn share(&mut self) -> Arc<Box<[u8]>> {
        let shared = match self {
            Self::Own(bytes) => Arc::new(std::mem::take(bytes)),
            Self::Shared(shared) => return Arc::clone(shared),
        };
        *self = Self::Shared(Arc::clone(&shared));
        shared
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

/// A page as a reader of uncommitted state keeps it.
#[derive(Clone, Debug)]
pub(crate) enum Kept {
    InMemory(Arc<Box<[u8]>>),
    /// Written early; the checksum of all its bytes.
    OnDisk(u64),
}

#[derive(Debug)]
struct DirtyPage {
    bytes: Option<Bytes>,
    kind: Kind,
    owner: u64,
    /// The epoch in which it was allocated.
    epoch: u64,
    sealed: Option<u64>,
    spilled: Option<u64>,
    touched: bool,
}

#[derive(Debug)]
pub(crate) struct Dirty {
    page_size: usize,
    txn: TxnId,
    pages: HashMap<u64, DirtyPage, BuildHasherDefault<PageHasher>>,
    /// In the order in which they came into memory; for spilling.
    order: VecDeque<u64>,
    in_memory: usize,
    in_memory_max: usize,
    pub(crate) pages_written: u64,
}

impl Dirty {
    pub(crate) fn new(page_size: usize, txn: TxnId, bytes_max: usize) -> Self {
        Self {
            page_size,
            txn,
            pages: HashMap::default(),
            order: VecDeque::new(),
            in_memory: 0,
            in_memory_max: (bytes_max / page_size).max(16),
            pages_written: 0,
        }
    }

    fn number(&self, ptr: &Ptr) -> u64 {
        ptr.addr / self.page_size as u64
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    pub(crate) fn insert(
        &mut self,
        storage: &dyn Storage,
        page: u64,
        kind: Kind,
        owner: u64,
        epoch: u64,
        bytes: Box<[u8]>,
    ) -> Result<Ptr> {
        self.make_room(storage)?;
        let dirty = DirtyPage {
            bytes: Some(Bytes::Own(bytes)),
            kind,
            owner,
            epoch,
            sealed: None,
            spilled: None,
            touched: true,
        };
        let before = self.pages.insert(page, dirty);
        assert!(before.is_none(), "page {page} is allocated twice");
        self.order.push_back(page);
        self.in_memory += 1;
        Ok(Ptr {
            addr: page * self.page_size as u64,
            len: self.page_size as u32,
            kind,
            checksum: 0,
            birth: self.txn,
        })
    }

    fn unknown(ptr: &Ptr) -> Error {
        let expected = "a page of this transaction";
        Corrupt::new("pointer", ptr.addr, format!("{ptr:?}"), expected).into()
    }

    fn known(&self, ptr: &Ptr) -> Result<&DirtyPage> {
        match self.pages.get(&self.number(ptr)) {
            Some(page)
                if page.kind == ptr.kind && ptr.addr.is_multiple_of(self.page_size as u64) =>
            {
                Ok(page)
            }
            _ => Err(Self::unknown(ptr)),
        }
    }

    /// The epoch in which a page was allocated.
    pub(crate) fn epoch(&self, ptr: &Ptr) -> Result<u64> {
        self.known(ptr).map(|page| page.epoch)
    }

    /// True when the page is on disk only, as it was written early, and will be changed by its seal.
    pub(crate) fn is_spilled_unsealed(&self, ptr: &Ptr) -> bool {
        self.known(ptr)
            .is_ok_and(|page| page.bytes.is_none() && page.sealed.is_none())
    }

    /// Every page as it is now, for a reader of uncommitted state.
    pub(crate) fn keep(&mut self) -> HashMap<u64, (Kind, Kept), BuildHasherDefault<PageHasher>> {
        let each = self.pages.iter_mut();
        each.filter_map(|(&number, page)| {
            let kept = match (&mut page.bytes, page.spilled) {
                (Some(bytes), _) => Kept::InMemory(bytes.share()),
                (None, Some(sum)) => Kept::OnDisk(sum),
                (None, None) => return None,
            };
            Some((number, (page.kind, kept)))
        })
        .collect()
    }

    pub(crate) fn get(&self, storage: &dyn Storage, ptr: &Ptr) -> Result<PageRef<'_>> {
        let page = self.known(ptr)?;
        match &page.bytes {
            Some(bytes) => Ok(PageRef::Borrowed(bytes)),
            None => {
                let bytes = read_back(storage, ptr.addr, self.page_size, page.spilled)?;
                Ok(PageRef::Owned(bytes.into()))
            }
        }
    }

    /// The page in memory, about to be changed.
    fn load(&mut self, storage: &dyn Storage, ptr: &Ptr) -> Result<&mut DirtyPage> {
        let page = self.known(ptr)?;
        let number = self.number(ptr);
        let bytes = match &page.bytes {
            Some(_) => None,
            None => {
                let bytes = read_back(storage, ptr.addr, self.page_size, page.spilled)?;
                Some(Bytes::Own(bytes))
            }
        };
        if bytes.is_some() {
            self.make_room(storage)?;
            self.order.push_back(number);
            self.in_memory += 1;
        }
        let Some(page) = self.pages.get_mut(&number) else {
            return Err(Self::unknown(ptr));
        };
        if bytes.is_some() {
            page.bytes = bytes;
        }
        page.touched = true;
        page.spilled = None;
        Ok(page)
    }

    pub(crate) fn get_mut(&mut self, storage: &dyn Storage, ptr: &Ptr) -> Result<&mut [u8]> {
        let page = self.load(storage, ptr)?;
        page.sealed = None;
        match &mut page.bytes {
            Some(bytes) => Ok(bytes.get_mut()),
            None => unreachable!("load brought it into memory"),
        }
    }

    pub(crate) fn seal(&mut self, storage: &dyn Storage, ptr: &Ptr) -> Result<Ptr> {
        if let Some(sum) = self.known(ptr)?.sealed {
            return Ok(Ptr {
                checksum: sum,
                ..*ptr
            });
        }
        let txn = self.txn;
        let page = self.load(storage, ptr)?;
        let Some(bytes) = &mut page.bytes else {
            unreachable!("load brought it into memory")
        };
        let bytes = bytes.get_mut();
        let header = Header {
            kind: page.kind,
            flags: bytes[9],
            owner: page.owner,
            address: ptr.addr,
            birth: txn,
        };
        let sealed = seal_block(bytes, &header);
        page.sealed = Some(sealed.checksum);
        Ok(sealed)
    }

    /// Tells of every page, all of them sealed, the pointer that leads to it.
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
        let removed = self.pages.remove(&page);
        if removed.as_ref().is_some_and(|page| page.bytes.is_some()) {
            self.in_memory -= 1;
        }
        removed.is_some()
    }

    /// Writes a quarter of the pages early when too many are in memory.
    fn make_room(&mut self, storage: &dyn Storage) -> Result<()> {
        if self.in_memory < self.in_memory_max {
            return Ok(());
        }
        let wanted = self.in_memory_max / 4 + 1;
        let mut chosen = Vec::with_capacity(wanted);
        let mut passes = self.order.len() * 2;
        while chosen.len() < wanted && passes > 0 {
            passes -= 1;
            let Some(number) = self.order.pop_front() else {
                break;
            };
            match self.pages.get_mut(&number) {
                Some(page) if page.bytes.is_some() && page.touched => {
                    page.touched = false;
                    self.order.push_back(number);
                }
                Some(page) if page.bytes.is_some() => chosen.push(number),
                _ => {}
            }
        }
        chosen.sort_unstable();
        chosen.dedup();
        let written = self.write(storage, &chosen, true);
        if written.is_err() {
            self.order.extend(chosen);
            return written;
        }
        for number in chosen {
            if let Some(page) = self.pages.get_mut(&number) {
                page.bytes = None;
                self.in_memory -= 1;
            }
        }
        Ok(())
    }

    /// Writes what is not on disk yet. Every page must be sealed: one that is not would be lost.
    ///
    /// # Errors
    /// When a page was changed after its last seal: a mistake of the structure that owns it, or a hostile file whose tree
    /// has one page in two places. Else the system's.
    pub(crate) fn write_all(&mut self, storage: &dyn Storage) -> Result<()> {
        let mut numbers = Vec::with_capacity(self.pages.len());
        for (&number, page) in &self.pages {
            if page.sealed.is_none() {
                let what = format!("{:?} of {}", page.kind, page.owner);
                let at = number * self.page_size as u64;
                let (found, expected) = ("a changed page that nothing leads to", "one in its tree");
                return Err(Corrupt::new(what, at, found, expected).into());
            }
            if page.spilled.is_none() {
                numbers.push(number);
            }
        }
        numbers.sort_unstable();
        self.write(storage, &numbers, false)
    }

    /// Writes pages in memory, neighbours together. `early`: they may be read back.
    fn write(&mut self, storage: &dyn Storage, numbers: &[u64], early: bool) -> Result<()> {
        let per_write = (WRITE_BYTES_MAX / self.page_size).max(1);
        let mut at = 0;
        let mut buffer = Vec::new();
        while at < numbers.len() {
            let mut end = at + 1;
            while end < numbers.len()
                && end - at < per_write
                && numbers[end] == numbers[end - 1] + 1
            {
                end += 1;
            }
            let group = &numbers[at..end];
            buffer.clear();
            for number in group {
                if let Some(page) = self.pages.get_mut(number)
                    && let Some(bytes) = &page.bytes
                {
                    if group.len() > 1 {
                        buffer.extend_from_slice(bytes);
                    } else {
                        write(storage, number * self.page_size as u64, bytes)?;
                    }
                }
            }
            if group.len() > 1 {
                write(storage, group[0] * self.page_size as u64, &buffer)?;
            }
            for number in group.iter().filter(|_| early) {
                if let Some(page) = self.pages.get_mut(number)
                    && let Some(bytes) = &page.bytes
                {
                    page.spilled = Some(checksum(bytes));
                }
            }
            self.pages_written += group.len() as u64;
            at = end;
        }
        Ok(())
    }
}

/// A page that was written early.
pub(crate) fn read_back(
    storage: &dyn Storage,
    at: u64,
    page_size: usize,
    sum: Option<u64>,
) -> Result<Box<[u8]>> {
    let mut bytes = vec![0u8; page_size].into_boxed_slice();
    storage
        .read_at(at, &mut bytes)
        .map_err(|source| Error::Io {
            what: "read of a page written early".into(),
            at,
            source,
        })?;
    let found = checksum(&bytes);
    if Some(found) != sum {
        let found = format!("checksum {found:016x}");
        let expected = format!("{sum:016x?}");
        return Err(Corrupt::new("page written early", at, found, expected).into());
    }
    Ok(bytes)
}

pub(crate) fn write(storage: &dyn Storage, at: u64, bytes: &[u8]) -> Result<()> {
    let failed = |error| Error::of_write("write", at, bytes.len() as u64, error);
    storage.write_at(at, bytes).map_err(failed)
}
