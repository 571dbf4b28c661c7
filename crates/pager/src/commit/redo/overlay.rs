//! A storage that shows pages rebuilt from the redo log in place of those in the file. Read-only handles use it,
//! since they must not write these pages to the file.
//!
//! Invariants
//! 1. As soon as a newer commit is published, the pages are in the file (`redo::write_replayed` writes them first),
//!    and the overlay is void. Its pages stay in memory, because readers may still borrow slices of them.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tidalite_disk::storage::{Growth, Observer, Storage};

pub(crate) struct Overlay {
    below: Arc<dyn Storage>,
    page_size: usize,
    pages: BTreeMap<u64, Vec<u8>>,
    void: AtomicBool,
}

impl Overlay {
    pub(crate) fn new(
        below: Arc<dyn Storage>,
        page_size: usize,
        pages: BTreeMap<u64, Vec<u8>>,
    ) -> Self {
        debug_assert!(
            pages.values().all(|page| page.len() == page_size),
            "the overlay consists of whole pages"
        );
        Self {
            below,
            page_size,
            pages,
            void: AtomicBool::new(false),
        }
    }

    /// Returns the rebuilt pages that intersect the byte range `[at, at + len)`, each with its byte offset.
    fn over(&self, at: u64, len: usize) -> impl Iterator<Item = (u64, &[u8])> {
        let size = self.page_size as u64;
        let to = at.saturating_add(len as u64).div_ceil(size);
        let from = if self.void.load(Ordering::Acquire) {
            to
        } else {
            (at / size).min(to)
        };
        let pages = self.pages.range(from..to);
        pages.map(move |(number, page)| (number * size, &**page))
    }

    fn lent<'a>(
        &'a self,
        at: u64,
        len: usize,
        below: impl FnOnce() -> Option<&'a [u8]>,
    ) -> Option<&'a [u8]> {
        let Some((start, page)) = self.over(at, len).next() else {
            return below();
        };
        // A range that crosses a page boundary cannot be borrowed; the caller reads and copies such a range.
        page.get(at.checked_sub(start)? as usize..)?.get(..len)
    }
}

impl Storage for Overlay {
    fn read_at(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        let end = at.saturating_add(bytes.len() as u64);
        if end > self.len()? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // A power failure may have undone growth of the file. Bytes beyond the end of the file that are in no rebuilt
        // page belong to free pages.
        let below = self.below.len()?.clamp(at, end) - at;
        let (there, behind) = bytes.split_at_mut(below as usize);
        self.below.read_at(at, there)?;
        behind.fill(0);
        for (start, page) in self.over(at, bytes.len()) {
            let (from, to) = (start.max(at), (start + page.len() as u64).min(end));
            let part = &page[(from - start) as usize..(to - start) as usize];
            bytes[(from - at) as usize..(to - at) as usize].copy_from_slice(part);
        }
        Ok(())
    }

    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync(&self) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync_all(&self) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn len(&self) -> io::Result<u64> {
        let last = self.pages.keys().next_back();
        let end = last.map_or(0, |page| (page + 1) * self.page_size as u64);
        Ok(self.below.len()?.max(end))
    }

    fn resizes(&self) -> bool {
        self.below.resizes()
    }

    fn refresh(&self) -> io::Result<()> {
        self.void.store(true, Ordering::Release);
        self.below.refresh()
    }

    fn grow(&self, _: u64, _: Growth) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn mapped(&self, at: u64, len: usize) -> Option<&[u8]> {
        self.lent(at, len, || self.below.mapped(at, len))
    }

    fn mapped_page(&self, at: u64, len: usize) -> Option<&[u8]> {
        self.lent(at, len, || self.below.mapped_page(at, len))
    }

    fn mapped_in_order(&self, at: u64, len: usize) -> Option<&[u8]> {
        self.lent(at, len, || self.below.mapped_in_order(at, len))
    }

    fn reads_ahead_in_order(&self) -> bool {
        self.below.reads_ahead_in_order()
    }

    fn lock_in_memory(&self, bytes: u64) -> io::Result<u64> {
        self.below.lock_in_memory(bytes)
    }

    fn read_ahead(&self, at: u64, len: u64) -> io::Result<()> {
        self.below.read_ahead(at, len)
    }

    fn reads_single_pages(&self) -> bool {
        self.below.reads_single_pages()
    }

    fn observer(&self) -> Option<&dyn Observer> {
        self.below.observer()
    }
}

#[cfg(test)]
mod tests {
    use super::Overlay;
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use tidalite_disk::storage::{MemoryStorage, Storage};

    /// A power failure may have undone growth of the file. The pages beyond the end of the file must then be read
    /// from the redo log.
    #[test]
    fn pages_behind_the_end_of_the_file_are_read_with_those_before() {
        let below = Arc::new(MemoryStorage::from_image(vec![1; 8]));
        let pages = BTreeMap::from([(1, vec![2; 4]), (3, vec![3; 4])]);
        let over = Overlay::new(below, 4, pages);
        assert_eq!(over.len().expect("a length"), 16);
        let mut bytes = [9; 14];
        over.read_at(2, &mut bytes).expect("all of it is there");
        assert_eq!(bytes, [1, 1, 2, 2, 2, 2, 0, 0, 0, 0, 3, 3, 3, 3]);
        assert!(over.read_at(3, &mut bytes).is_err());
    }
}
