//! Steps forward: in a leaf without a call, and from leaf to leaf.
//!
//! ```text
//! next ──> in the leaf, by its offsets (Steps)
//!    └──> the first step after a seek, the last rows of a page, long keys and values ──> the next leaf
//! ```
//!
//! Invariants
//! 1. `Steps` are empty (`end` is 0), or: `page` are the bytes of the leaf, lent from the map, whose cells begin at `heap` and whose
//!    slots end at `end`; its offsets have two bytes, and that of the row lies at `slot`.
//! 2. What is asked for ahead is a hint: bytes that nobody has verified yet decide only what is fetched from memory.

use crate::cursor::tree_cursor::{Cursor, Frame, Place, Way};
use crate::page::node::offset_bytes;
use crate::page::prefetch::SLOTS_AHEAD_BYTES_MAX;
use crate::page::row::ShortRow;
use std::cmp::Ordering;
use tidalite_base::prefetch_at;
use tidalite_pager::{PageRead, PageRef, Result};

/// Rows whose cells a walk asks the processor for before it comes to them: cells lie in no order.
const CELLS_AHEAD: usize = 8;

/// Of a row ahead its first line is asked for, and one behind it if it is long.
const LINE_BYTES: usize = 64;

/// Bytes of an offset where steps are short.
const OFFSET_BYTES: usize = 2;

/// Where a walk is among the offsets of its leaf.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Steps<'r> {
    page: &'r [u8],
    heap: usize,
    slot: usize,
    end: usize,
    /// Who came here by a step is likely to go on.
    walks: bool,
}

impl<'r> Steps<'r> {
    /// The steps behind the row of this frame.
    fn from(leaf: &Frame<'r>) -> Self {
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

impl<'r, R: PageRead> Cursor<'r, R> {
    /// To the next row; from before the first row to the first.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    #[expect(
        clippy::should_implement_trait,
        reason = "a cursor goes both ways and can fail"
    )]
    #[inline(always)]
    pub fn next(&mut self) -> Result<bool> {
        if self.next_in_leaf() {
            return Ok(true);
        }
        self.next_elsewhere()
    }

    /// To the next row if it is in the same leaf and a short one: else false, and nothing has changed. By force: as a call this took
    /// half of a walk's time.
    #[inline(always)]
    pub fn next_in_leaf(&mut self) -> bool {
        let Steps { page, end, .. } = self.steps;
        let slot = self.steps.slot + OFFSET_BYTES;
        if slot >= end {
            return false;
        }
        let Some(row) = ShortRow::at(page, self.steps.heap, slot) else {
            return false;
        };
        if !self.key.take_block(row.suffix, row.suffix_len) {
            return false;
        }
        let ahead = slot + CELLS_AHEAD * OFFSET_BYTES;
        if ahead < end
            && let Some(offset) = page.get(ahead..).and_then(<[u8]>::first_chunk)
        {
            let offset = usize::from(u16::from_le_bytes(*offset));
            prefetch_at(page, offset);
            prefetch_at(page, offset + row.bytes.min(LINE_BYTES));
        }
        self.payload = (row.tag, row.payload_at);
        self.steps.slot = slot;
        true
    }

    /// The leaf that the cursor is in.
    ///
    /// # Panics
    /// When it is not at a row.
    #[inline(always)]
    pub(super) fn leaf_bytes(&self) -> &[u8] {
        if self.steps.end != 0 {
            return self.steps.page;
        }
        match self.frames.last() {
            Some(leaf) if self.place == Place::At => &leaf.page,
            _ => panic!("the cursor is not at a row"),
        }
    }

    #[inline(never)]
    fn next_elsewhere(&mut self) -> Result<bool> {
        match self.place {
            Place::Before => self.first(),
            Place::After => Ok(false),
            Place::At => {
                let walks = self.steps.walks;
                let Some(leaf) = self.frames.last_mut() else {
                    return Ok(false);
                };
                leaf.index = self.steps.index(leaf) + 1;
                if leaf.index >= leaf.shape.count {
                    return Ok(self.climb_forward()? && self.expect_order(Ordering::Greater)?);
                }
                if walks {
                    leaf.shape.ask_for(&leaf.page, leaf.index + CELLS_AHEAD);
                } else {
                    if !std::mem::take(&mut self.asked) {
                        self.ask_for_rows(0);
                    }
                    self.goes_on = true;
                    self.ask_for_next_leaf(2 * CELLS_AHEAD);
                }
                let found = self.settle_in_leaf();
                self.walk_on();
                found
            }
        }
    }

    /// The next steps go by the leaf's offsets, if the cursor is at a row.
    fn walk_on(&mut self) {
        if let (Place::At, Some(leaf)) = (self.place, self.frames.last()) {
            self.steps = Steps::from(leaf);
        }
    }

    /// Asks for the next rows of the leaf, beginning so many behind the index.
    #[inline(always)]
    pub(super) fn ask_for_rows(&self, behind: usize) {
        if let Some(leaf) = self.frames.last() {
            let first = leaf.index + behind;
            leaf.shape
                .ask_for_rows(&leaf.page, first..first + CELLS_AHEAD);
        }
    }

    /// Asks for the slots of the leaf behind this one if fewer than so many rows are left.
    fn ask_for_next_leaf(&self, near: usize) {
        let Some((leaf, above)) = self.frames.split_last() else {
            return;
        };
        if leaf.shape.count - leaf.index < near
            && let Some(branch) = above.last()
            && branch.index + 1 < branch.shape.count
            && let Ok((next, _)) = branch.node().child(branch.index + 1)
        {
            // Neighbours are alike.
            let slots = leaf.shape.slots_end.min(SLOTS_AHEAD_BYTES_MAX);
            self.reader.prefetch(&next, slots);
        }
    }

    /// From past the end of a leaf to the first row of the next one.
    pub(super) fn climb_forward(&mut self) -> Result<bool> {
        self.leave(Place::Before);
        self.ask_for_leaves(true);
        self.frames.pop();
        while let Some(frame) = self.frames.last_mut() {
            frame.index += 1;
            if frame.index < frame.shape.count {
                let (child, _) = frame.node().child(frame.index)?;
                let level = frame.shape.level - 1;
                self.descend(child, level, Way::Next)?;
                self.tell_scout();
                // Whoever steps from leaf to leaf wants the next one, too; the way there is known now.
                self.ask_for_rows(0);
                self.ask_for_next_leaf(usize::MAX);
                let found = self.settle(Place::After);
                self.walk_on();
                return found;
            }
            self.frames.pop();
        }
        self.leave(Place::After);
        Ok(false)
    }
}
