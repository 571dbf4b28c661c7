//! The memory map in which a transaction changes pages in place.

use tidalite_disk::storage::Places;

/// Maximum number of pages that a transaction changes in place. With more pages, memory use and the order of disk
/// writes matter, which changes in place leave to the system.
const PAGES_MAX: usize = 64;

/// Pages that a transaction changes in place.
#[derive(Debug, Default)]
pub(super) struct InPlace {
    /// Memory map of the file, obtained on first use and passed on to later transactions.
    pub(super) places: Option<Box<dyn Places>>,
    /// Whether this transaction may change pages in place.
    pub(super) is_on: bool,
    /// Number of pages that this transaction changes in place.
    pub(super) pages: usize,
}

impl InPlace {
    /// Returns the memory map for the next transaction to use, and resets this value.
    pub(super) fn take(&mut self) -> Self {
        (self.is_on, self.pages) = (false, 0);
        std::mem::take(self)
    }

    /// Returns the bytes of the map for one more page, if the page at offset `at` may be changed in place.
    pub(super) fn take_place(&mut self, at: u64, len: usize) -> Option<&mut [u8]> {
        let places = self.places.as_mut().filter(|_| self.is_on)?;
        if self.pages == PAGES_MAX || !places.may(at, len) {
            return None;
        }
        self.pages += 1;
        Some(places.bytes_mut(at, len))
    }

    /// Returns the bytes of a page that is changed in place.
    #[inline]
    pub(super) fn bytes(&self, number: u64, page_size: usize) -> &[u8] {
        match &self.places {
            Some(places) => places.bytes(number * page_size as u64, page_size),
            None => unreachable!("there are places where a page is changed in place"),
        }
    }

    /// Returns the mutable bytes of a page that is changed in place.
    #[inline]
    pub(super) fn bytes_mut(&mut self, number: u64, page_size: usize) -> &mut [u8] {
        match &mut self.places {
            Some(places) => places.bytes_mut(number * page_size as u64, page_size),
            None => unreachable!("there are places where a page is changed in place"),
        }
    }
}
