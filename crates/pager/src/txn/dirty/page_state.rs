//! The state of one changed page: where its newest contents are, and whether it is sealed.
//!
//! ```text
//! Memory ──written──> Written ──leaves memory──> File
//!   ^                    │                         │
//!   └──────change────────┴───────read back─────────┘        InPlace ──commit without a record──> Memory
//! ```

use crate::format::header::{Header, seal_block};
use crate::format::kind::Kind;
use crate::format::ptr::Ptr;
use std::sync::Arc;
use tidalite_base::{TxnId, checksum};

/// Offset in bytes of the flags in the header of a page.
pub(super) const FLAGS_AT: usize = 9;

/// Place of the newest contents of a changed page. Buffers belong to the transaction, or are shared with readers of
/// uncommitted data, which keep the old bytes when the page is changed.
#[derive(Debug)]
pub(super) enum PageState {
    /// The contents are in memory only.
    Memory(Arc<[u8]>),
    /// The contents are in memory, and the same contents are in the file or were passed to a thread that writes them
    /// to the file. The number is the checksum of the bytes after the first eight.
    Written(Arc<[u8]>, u64),
    /// The contents are in the file only. The number is the checksum of the bytes after the first eight.
    File(u64),
    /// The contents are in the memory map of the file (`in_place.rs`).
    InPlace,
}

/// A page that the transaction has created or changed.
#[derive(Debug)]
pub(super) struct DirtyPage {
    pub(super) state: PageState,
    pub(super) kind: Kind,
    pub(super) owner: u64,
    /// Number of the page of an older commit from which this page was copied.
    pub(super) origin: Option<u64>,
    /// Epoch (section between savepoints) in which the page was allocated.
    pub(super) epoch: u64,
    /// Checksum from the last time that the page was sealed, if the page was not changed since.
    pub(super) sealed: Option<u64>,
    pub(super) touched: bool,
}

impl DirtyPage {
    /// Whether a pointer has the kind of this page and points to the beginning of a page.
    pub(super) fn is_at(&self, page_size: usize, ptr: &Ptr) -> bool {
        // The page size is a power of two, so the test needs no division.
        self.kind == ptr.kind && ptr.addr & (page_size as u64 - 1) == 0
    }

    /// Returns the buffer of the page, if the page is in a buffer.
    #[inline]
    pub(super) fn buffer(&self) -> Option<&Arc<[u8]>> {
        match &self.state {
            PageState::Memory(bytes) | PageState::Written(bytes, _) => Some(bytes),
            PageState::File(_) | PageState::InPlace => None,
        }
    }

    /// Returns the buffer of the page if its contents are in memory only.
    pub(super) fn unwritten(&self) -> Option<&Arc<[u8]>> {
        match &self.state {
            PageState::Memory(bytes) => Some(bytes),
            _ => None,
        }
    }

    pub(super) fn is_in_place(&self) -> bool {
        matches!(self.state, PageState::InPlace)
    }

    /// Must be called before the page is changed, because a copy in the file is then out of date. Returns whether
    /// there was such a copy.
    #[inline]
    pub(super) fn begin_change(&mut self) -> bool {
        debug_assert!(
            !matches!(self.state, PageState::File(_)),
            "a page that is not in memory is changed"
        );
        self.sealed = None;
        self.forget_copy()
    }

    /// Makes the page count as not written, even if the file has a copy. Returns whether there was such a copy.
    #[inline]
    pub(super) fn forget_copy(&mut self) -> bool {
        if !matches!(self.state, PageState::Written(..)) {
            return false;
        }
        self.change_state(|state| match state {
            PageState::Written(bytes, _) => PageState::Memory(bytes),
            other => other,
        });
        true
    }

    /// Replaces the state of the page by the result of `next`. (While `next` runs, the state is a placeholder.)
    fn change_state(&mut self, next: impl FnOnce(PageState) -> PageState) {
        let state = std::mem::replace(&mut self.state, PageState::File(0));
        self.state = next(state);
    }

    /// Seals a page with the contents `bytes`, which is the buffer of the page or its memory in the map. Returns the
    /// final pointer.
    pub(super) fn seal(
        (kind, owner): (Kind, u64),
        bytes: &mut [u8],
        (address, birth): (u64, TxnId),
    ) -> Ptr {
        let header = Header {
            kind,
            flags: bytes[FLAGS_AT],
            owner,
            address,
            birth,
        };
        seal_block(bytes, &header)
    }

    /// Seals the page if it is a table leaf in memory that points to no other page, and returns whether it was
    /// sealed. Such a leaf need not be written again unless it is changed. A leaf that points to nested tables would
    /// be changed again when the pages of these tables are sealed.
    pub(super) fn seal_leaf(&mut self, at: (u64, TxnId)) -> bool {
        let PageState::Memory(bytes) = &mut self.state else {
            return false;
        };
        if self.kind != Kind::KvLeaf || bytes[FLAGS_AT] != 0 {
            return false;
        }
        if self.sealed.is_none() {
            let sealed = Self::seal((self.kind, self.owner), Arc::make_mut(bytes), at);
            self.sealed = Some(sealed.checksum);
        }
        true
    }

    /// Records that the contents were written to the file, or passed to a thread that writes them.
    pub(super) fn note_written(&mut self) {
        let sealed = self.sealed;
        self.change_state(|state| match state {
            PageState::Memory(bytes) => {
                let sum = sealed.unwrap_or_else(|| checksum(&bytes[8..]));
                PageState::Written(bytes, sum)
            }
            other => other,
        });
    }

    /// Removes the buffer of a page that is in the file, and returns the buffer, if there is one.
    pub(super) fn leave_memory(&mut self) -> Option<Arc<[u8]>> {
        assert!(
            self.unwritten().is_none(),
            "a page leaves memory without a copy in the file"
        );
        let mut buffer = None;
        self.change_state(|state| match state {
            PageState::Written(bytes, sum) => {
                buffer = Some(bytes);
                PageState::File(sum)
            }
            other => other,
        });
        buffer
    }
}
