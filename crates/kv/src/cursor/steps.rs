//! Position of a walk among the row offsets of its leaf.
//!
//! Invariant: `Steps` are empty (`end` is 0), or: `page` are the bytes of the leaf, lent from the map, whose cells begin at `heap` and whose
//! slots end at `end`; its offsets have two bytes, and that of the row lies at `slot`.

use crate::cursor::frame::Frame;
use crate::page::layout::offset_bytes;
use tidalite_pager::PageRef;

/// Bytes of an offset where steps are short.
pub(super) const OFFSET_BYTES: usize = 2;

/// Where a walk is among the offsets of its leaf.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Steps<'r> {
    pub(super) page: &'r [u8],
    pub(super) heap: usize,
    pub(super) slot: usize,
    pub(super) end: usize,
    /// Who came here by a step is likely to go on.
    pub(super) walks: bool,
}

impl<'r> Steps<'r> {
    /// The steps behind the row of this frame.
    pub(super) fn from(leaf: &Frame<'r>) -> Self {
        let mut steps = Self {
            walks: true,
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
        }
        steps
    }

    /// Which row of the leaf the cursor is at.
    pub(super) fn index(&self, leaf: &Frame<'_>) -> usize {
        match self.end {
            0 => leaf.index,
            end => leaf.shape.count - (end - self.slot) / OFFSET_BYTES,
        }
    }
}
