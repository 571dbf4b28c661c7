//! Places in memory of the file where a transaction changes pages.

use crate::storage::Places;

/// Pages that a transaction changes in place at most. Of more the memory matters, and so does in which order they reach the disk.
const PAGES_MAX: usize = 64;

/// What a transaction changes in place.
#[derive(Debug, Default)]
pub(super) struct InPlace {
    /// Asked for when it is used first, and left to the transactions after.
    pub(super) places: Option<Box<dyn Places>>,
    /// This transaction may.
    pub(super) is_on: bool,
    /// Its pages.
    pub(super) pages: usize,
}

impl InPlace {
    /// For the next transaction.
    pub(super) fn take(&mut self) -> Self {
        (self.is_on, self.pages) = (false, 0);
        std::mem::take(self)
    }

    /// The place for one page more, if it may be changed where it lies.
    pub(super) fn take_place(&mut self, at: u64, len: usize) -> Option<&mut [u8]> {
        let places = self.places.as_mut().filter(|_| self.is_on)?;
        if self.pages == PAGES_MAX || !places.may(at, len) {
            return None;
        }
        self.pages += 1;
        Some(places.bytes_mut(at, len))
    }

    /// The bytes of one of its pages.
    #[inline]
    pub(super) fn bytes(&self, number: u64, page_size: usize) -> &[u8] {
        match &self.places {
            Some(places) => places.bytes(number * page_size as u64, page_size),
            None => unreachable!("there are places where a page is changed in place"),
        }
    }

    /// The same, to be changed.
    #[inline]
    pub(super) fn bytes_mut(&mut self, number: u64, page_size: usize) -> &mut [u8] {
        match &mut self.places {
            Some(places) => places.bytes_mut(number * page_size as u64, page_size),
            None => unreachable!("there are places where a page is changed in place"),
        }
    }
}
