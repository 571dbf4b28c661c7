//! Steps a cursor forward: within a leaf without a function call, and from leaf to leaf.
//!
//! ```text
//! next ──> in the leaf, by its offsets (Steps)
//!    └──> the first step after a seek, the last rows of a page, long keys and values ──> the next leaf
//! ```
//!
//! Prefetches are hints: unverified bytes only decide which addresses are fetched from memory.

use crate::cursor::frame::{CursorState, Target};
use crate::cursor::prefetcher::Prefetcher;
use crate::cursor::steps::{OFFSET_BYTES, Steps};
use crate::cursor::tree_cursor::Cursor;
use crate::page::prefetch::SLOTS_AHEAD_BYTES_MAX;
use crate::page::row::ShortRow;
use std::cmp::Ordering;
use tidalite_base::prefetch_at;
use tidalite_pager::{PageRead, PageRef, Ptr, Result};

/// Number of rows whose cells a scan prefetches ahead of its position, because cells lie in the page in no particular
/// order.
const CELLS_AHEAD: usize = 8;

/// Size in bytes of a cache line. The first cache line of a row is prefetched, and also a later one if the row is long.
const LINE_BYTES: usize = 64;

impl<'r, R: PageRead> Cursor<'r, R> {
    /// Moves the cursor to the next row; from the position before the first row to the first row. False at the end.
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
        self.next_after_leaf_steps()
    }

    /// Moves to the next row if it is in the same leaf and short; otherwise returns false and changes nothing. Always
    /// inlined: as a call it took half of a scan's time.
    #[inline(always)]
    pub fn next_in_leaf(&mut self) -> bool {
        let Steps { page, end, .. } = self.steps;
        let slot = self.steps.slot + OFFSET_BYTES;
        debug_assert!(end == 0 || self.place == CursorState::At, "invariant 4");
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

    /// The bytes of the leaf that holds the current row.
    ///
    /// # Panics
    /// When the cursor is not at a row.
    #[inline(always)]
    pub(super) fn leaf_bytes(&self) -> &[u8] {
        if self.steps.end != 0 {
            return self.steps.page;
        }
        match self.frames.last() {
            Some(leaf) if self.place == CursorState::At => &leaf.page,
            _ => panic!("the cursor is not at a row"),
        }
    }

    #[inline(never)]
    fn next_after_leaf_steps(&mut self) -> Result<bool> {
        match self.place {
            CursorState::Before => self.first(),
            CursorState::After => Ok(false),
            CursorState::At => {
                let is_stepping = self.steps.is_stepping;
                let Some(leaf) = self.frames.last_mut() else {
                    return Ok(false);
                };
                leaf.index = self.steps.index(leaf) + 1;
                if leaf.index >= leaf.shape.count {
                    return Ok(self.climb_forward()? && self.expect_order(Ordering::Greater)?);
                }
                if is_stepping {
                    leaf.shape
                        .prefetch_cell(&leaf.page, leaf.index + CELLS_AHEAD);
                } else {
                    if !std::mem::take(&mut self.has_prefetched) {
                        self.prefetch_rows(0);
                    }
                    self.continues = true;
                    self.prefetch_next_leaf(2 * CELLS_AHEAD);
                }
                let found = self.read_row_in_leaf();
                self.begin_steps();
                found
            }
        }
    }

    /// If the cursor is at a row, makes the following steps read the row offsets of the leaf directly.
    fn begin_steps(&mut self) {
        if let (CursorState::At, Some(leaf)) = (self.place, self.frames.last()) {
            debug_assert!(leaf.shape.level == 0, "the last frame is a leaf");
            self.steps = Steps::from(leaf);
        }
    }

    /// Prefetches rows of the current leaf, beginning `behind` rows after the current row.
    #[inline(always)]
    pub(super) fn prefetch_rows(&self, behind: usize) {
        if let Some(leaf) = self.frames.last() {
            let first = leaf.index + behind;
            leaf.shape
                .prefetch_rows(&leaf.page, first..first + CELLS_AHEAD);
        }
    }

    /// Prefetches the slots (row offsets) of the next leaf if fewer than `near` rows are left in the current leaf.
    fn prefetch_next_leaf(&self, near: usize) {
        let Some((leaf, above)) = self.frames.split_last() else {
            return;
        };
        if leaf.shape.count - leaf.index < near
            && let Some(branch) = above.last()
            && branch.index + 1 < branch.shape.count
            && let Ok((next, _)) = branch.node().child(branch.index + 1)
        {
            // Neighbouring leaves have about as many slots.
            let slots = leaf.shape.slots_end.min(SLOTS_AHEAD_BYTES_MAX);
            self.reader.prefetch(&next, slots);
        }
    }

    /// Moves from the end of a leaf to the first row of the next leaf; returns false at the end of the table.
    pub(super) fn climb_forward(&mut self) -> Result<bool> {
        self.leave(CursorState::Before);
        self.request_leaves(true);
        self.frames.pop();
        while let Some(frame) = self.frames.last_mut() {
            frame.index += 1;
            if frame.index < frame.shape.count {
                let (child, _) = frame.node().child(frame.index)?;
                let level = frame.shape.level - 1;
                self.descend(child, level, Target::Next)?;
                self.notify_prefetcher();
                // A scan that steps from leaf to leaf will need the following leaf soon, and its pointer is known now.
                self.prefetch_rows(0);
                self.prefetch_next_leaf(usize::MAX);
                let found = self.read_row(CursorState::After);
                self.begin_steps();
                return found;
            }
            self.frames.pop();
        }
        self.leave(CursorState::After);
        Ok(false)
    }

    /// Requests leaves from the disk in advance, when the cursor is about to step to the next or the previous leaf.
    pub(super) fn request_leaves(&mut self, forward: bool) {
        if !self.reader.reads_single_pages() {
            return;
        }
        let Some((leaf, branches)) = self.frames.split_last() else {
            return;
        };
        let fits = |prefetcher: &&mut Box<Prefetcher<'r>>| {
            prefetcher.forward == forward && prefetcher.entered == leaf.at
        };
        match self.prefetcher.as_mut().filter(fits) {
            Some(prefetcher) => prefetcher.follow(self.reader),
            None => {
                let prefetcher = Prefetcher::at(self.reader, branches, forward);
                let prefetcher = self.prefetcher.insert(Box::new(prefetcher));
                prefetcher.follow(self.reader);
            }
        }
    }

    /// Reads the page that a forward step leads to.
    pub(super) fn page_of_step(&mut self, ptr: &Ptr, level: u8) -> Result<PageRef<'r>> {
        let sequential = self
            .prefetcher
            .as_mut()
            .and_then(|prefetcher| prefetcher.sequential.as_mut());
        let holds = match (sequential, self.frames.last(), level) {
            (Some(sequential), Some(branch), 0) => sequential.holds(branch.at, ptr),
            (Some(sequential), _, 1) => sequential.holds_branch(ptr),
            _ => false,
        };
        match holds {
            true => self.reader.page_in_order(ptr),
            false => self.reader.page(ptr),
        }
    }

    /// Tells the prefetcher which leaf the cursor has entered by a step.
    pub(super) fn notify_prefetcher(&mut self) {
        if let (Some(prefetcher), Some(leaf)) = (&mut self.prefetcher, self.frames.last()) {
            prefetcher.entered = leaf.at;
        }
    }
}
