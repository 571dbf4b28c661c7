//! One changed page: where its newest content is, and whether it is sealed.
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

/// Offset of the flags in a page's header.
pub(super) const FLAGS_AT: usize = 9;

/// Where the newest content of a changed page is. Buffers belong to the transaction, or are shared with readers of
/// uncommitted state, which keep the old bytes when the page is changed.
#[derive(Debug)]
pub(super) enum PageState {
    /// In memory only.
    Memory(Arc<[u8]>),
    /// In memory, and with the same content in the file, or handed to a thread that writes it there. The number is the
    /// checksum of the bytes after the first eight.
    Written(Arc<[u8]>, u64),
    /// In the file only, with the same kind of checksum.
    File(u64),
    /// In the memory map of the file (`in_place.rs`).
    InPlace,
}

/// A changed page.
#[derive(Debug)]
pub(super) struct DirtyPage {
    pub(super) state: PageState,
    pub(super) kind: Kind,
    pub(super) owner: u64,
    /// The page of an older commit of which this is a changed copy.
    pub(super) origin: Option<u64>,
    /// The epoch in which it was allocated.
    pub(super) epoch: u64,
    /// The checksum of the last seal, if nothing was changed since.
    pub(super) sealed: Option<u64>,
    pub(super) touched: bool,
}

impl DirtyPage {
    /// Whether a pointer has the kind of this page and points to the beginning of a page.
    pub(super) fn is_at(&self, page_size: usize, ptr: &Ptr) -> bool {
        // The page size is a power of two, so no division is needed.
        self.kind == ptr.kind && ptr.addr & (page_size as u64 - 1) == 0
    }

    /// The buffer, if the page has one.
    #[inline]
    pub(super) fn buffer(&self) -> Option<&Arc<[u8]>> {
        match &self.state {
            PageState::Memory(bytes) | PageState::Written(bytes, _) => Some(bytes),
            PageState::File(_) | PageState::InPlace => None,
        }
    }

    /// The buffer of a page whose content is in memory only.
    pub(super) fn unwritten(&self) -> Option<&Arc<[u8]>> {
        match &self.state {
            PageState::Memory(bytes) => Some(bytes),
            _ => None,
        }
    }

    pub(super) fn is_in_place(&self) -> bool {
        matches!(self.state, PageState::InPlace)
    }

    /// Called before a change, which makes a copy in the file out of date. Returns whether there was such a copy.
    #[inline]
    pub(super) fn begin_change(&mut self) -> bool {
        debug_assert!(
            !matches!(self.state, PageState::File(_)),
            "a page that is not in memory is changed"
        );
        self.sealed = None;
        self.forget_copy()
    }

    /// Treats the page as not written, even if the file has a copy. Returns whether there was such a copy.
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

    /// Replaces the state by the result of `next`. (While `next` runs, the page has a placeholder state.)
    fn change_state(&mut self, next: impl FnOnce(PageState) -> PageState) {
        let state = std::mem::replace(&mut self.state, PageState::File(0));
        self.state = next(state);
    }

    /// Seals a page with this content. `bytes`: its buffer, or its place in the memory map.
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

    /// Seals a table leaf in memory that points to no other page. It need not be written again unless it is changed. A
    /// leaf that points to nested tables would be changed again when these are sealed. Returns false for any other
    /// page.
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

    /// Notes that the content was written to the file, or handed to a thread that writes it.
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

    /// Gives up the buffer of a page that is in the file.
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
