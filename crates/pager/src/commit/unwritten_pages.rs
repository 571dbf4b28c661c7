//! Pages of commits with `Durability::None`, which are in memory only. Such a commit is visible to this process alone
//! and survives no failure. Its sealed pages wait here until a commit with a meta record writes them to the file.
//! Pages that are freed before that time are never written.
//!
//! Invariants
//! 1. A page of a commit of this process is in the file, or in this collection, or in both. Pages born up to
//!    `State::written` are in the file. Readers of that commit look in this collection for younger pages only, and in
//!    the file for any page not found.
//! 2. A page is removed only when it is in the file, when its number is reused for another page, or when it is free.
//! 3. Only the thread that has the writer lock adds and removes pages.
//! 4. All pages in this collection, including freed pages that a reader still sees, take at most
//!    `Options::unwritten_bytes_max` bytes plus the pages of one transaction.

use crate::format::kind::Kind;
use crate::format::page_map::PageMap;
use crate::format::ptr::Ptr;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tidalite_base::TxnId;

/// A sealed page that is in memory and not in the file yet.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) kind: Kind,
    pub(crate) checksum: u64,
    pub(crate) birth: TxnId,
    /// Whether a commit has freed the page: only older snapshots may still need it.
    pub(crate) is_freed: bool,
    pub(crate) bytes: Arc<[u8]>,
}

#[derive(Debug, Default)]
pub(crate) struct Pages {
    map: PageMap<Waiting>,
    /// All pages born up to this transaction are in the file. `None` if every page in memory is freed.
    written: Option<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Unwritten(RwLock<Pages>);

impl Unwritten {
    fn read(&self) -> RwLockReadGuard<'_, Pages> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lock(&self) -> RwLockWriteGuard<'_, Pages> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the page to which a pointer points, if it is in memory.
    #[cold]
    pub(crate) fn get(&self, ptr: &Ptr, page_size: usize) -> Option<Arc<[u8]>> {
        let pages = self.read();
        let page = pages.map.get(&(ptr.addr / page_size as u64))?;
        let same = page.birth == ptr.birth
            && page.checksum == ptr.checksum
            && page.kind == ptr.kind
            && ptr.addr.is_multiple_of(page_size as u64)
            && ptr.len as usize == page_size;
        same.then(|| Arc::clone(&page.bytes))
    }

    /// Returns the number of pages that are in memory only.
    pub(crate) fn len(&self) -> usize {
        self.read().map.len()
    }

    /// Returns the pages that must be written to the file, by number: pages that newer commits still use and that
    /// `is_wanted` accepts.
    pub(crate) fn to_write(&self, is_wanted: impl Fn(u64) -> bool) -> Vec<(u64, Waiting)> {
        let pages = self.read();
        let each = pages
            .map
            .iter()
            .filter(|(number, page)| !page.is_freed && is_wanted(**number));
        each.map(|(&number, page)| (number, page.clone())).collect()
    }
}

impl Pages {
    /// Adds the pages of a commit that builds on commit `base`. Returns the new `State::written`: pages born up to
    /// this transaction are in the file. `reuse` receives the buffers of replaced pages.
    pub(crate) fn put(
        &mut self,
        base: u64,
        pages: impl Iterator<Item = (u64, Waiting)>,
        mut reuse: impl FnMut(Arc<[u8]>),
    ) -> u64 {
        let written = *self.written.get_or_insert(base);
        assert!(
            written <= base,
            "pages that wait are older than the newest commit"
        );
        for (number, page) in pages {
            debug_assert!(page.birth.0 > base, "a page of an older commit");
            debug_assert!(!page.is_freed, "a freed page of a new commit");
            if let Some(before) = self.map.insert(number, page) {
                reuse(before.bytes);
            }
        }
        written
    }

    /// Marks all pages as freed. Must be called when the free space was read anew from the file: all pages in memory
    /// then belong to commits that will never get a meta record.
    pub(crate) fn bury_all(&mut self) {
        self.written = None;
        self.map.values_mut().for_each(|page| page.is_freed = true);
    }

    /// Marks a page as freed by a commit, if it is in memory.
    pub(crate) fn bury(&mut self, number: u64) {
        if let Some(page) = self.map.get_mut(&number) {
            page.is_freed = true;
        }
    }

    /// Removes the pages that newer commits use; must be called when all of them are written to the file. Freed pages
    /// stay while a reader may still see them (`is_held`).
    pub(crate) fn written(&mut self, mut is_held: impl FnMut(u64) -> bool) {
        self.written = None;
        self.map
            .retain(|&number, page| page.is_freed && is_held(number));
        debug_assert!(
            self.map.values().all(|page| page.is_freed),
            "a page in use left memory without being written"
        );
    }
}
