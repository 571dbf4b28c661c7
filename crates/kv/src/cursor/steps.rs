//! Position of a forward scan among the row offsets of its leaf.
//!
//! Invariant: `Steps` are empty (`end` is 0), or: `page` holds the bytes of the leaf, lent from the memory map; its
//! cells begin at `heap` and its slots end at `end`; its offsets have two bytes, and the offset of the current row lies
//! at `slot`.

use crate::cursor::frame::Frame;
use crate::page::layout::offset_bytes;
use tidalite_pager::PageRef;

/// Size in bytes of a row offset in pages that support `Steps`.
pub(super) const OFFSET_BYTES: usize = 2;

/// Position of a forward scan among the row offsets of its leaf.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Steps<'r> {
    pub(super) page: &'r [u8],
    pub(super) heap: usize,
    pub(super) slot: usize,
    pub(super) end: usize,
    /// True if the cursor came to the current row by a step, so that it will probably step on.
    pub(super) is_stepping: bool,
}

impl<'r> Steps<'r> {
    /// The steps that follow the row at which this frame stands.
    pub(super) fn from(leaf: &Frame<'r>) -> Self {
        let mut steps = Self {
            is_stepping: true,
            ..Self::default()
        };
        if let PageRef::Borrowed(page) = leaf.page
            && offset_bytes(page.len()) == OFFSET_BYTES
            && leaf.index < leaf.shape.count
        {
            let behind = leaf.shape.count - leaf.index;
            steps.page = page;
            steps.heap = leaf.shape.heap;
            steps.slot = leaf.shape.slots_end - OFFSET_BYTES * behind;
            steps.end = leaf.shape.slots_end;
            debug_assert!(steps.slot < steps.end, "the offset of the row");
        }
        steps
    }

    /// The index of the current row in its leaf.
    pub(super) fn index(&self, leaf: &Frame<'_>) -> usize {
        debug_assert!(self.slot <= self.end, "a slot of the leaf");
        match self.end {
            0 => leaf.index,
            end => leaf.shape.count - (end - self.slot) / OFFSET_BYTES,
        }
    }
}
