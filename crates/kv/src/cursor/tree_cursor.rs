//! A cursor: a position among the rows of a table in one snapshot.
//!
//! Invariants:
//! 1. `place` is `At` exactly when `frames` is the whole path from root to leaf, each with a valid index,
//!    and `key` holds the row's whole key.
//! 2. A cursor that ran off an end remembers which end, so that a loop on `next` or `previous` ends once.
//! 3. After an error the cursor is off the table, before its first row.
//! 4. While `steps` is not empty, `place` is `At` and `steps` gives the current row; the index in the leaf's frame may
//!    then be an earlier row (`cursor/steps.rs`).
//! 5. Each step forward to another leaf arrives at a greater key than the last such step, each step backward at a
//!    smaller one. Otherwise a scan of a few pages of a hostile file could run forever.

use crate::cursor::frame::{CursorState, Frame, Target};
use crate::cursor::prefetcher::Prefetcher;
use crate::cursor::row_key::RowKey;
use crate::cursor::steps::Steps;
use crate::error::{corrupt_by_table, damaged, key_holds_table};
use crate::page::key::read_rest;
use crate::page::layout::tag;
use crate::page::node::Node;
use crate::page::prefetch::{HEADS_AHEAD_BYTES, prefetch_slots, slots_ahead};
use crate::table::tree::Tree;
use crate::value::{self, Value};
use std::cmp::Ordering;
use std::ops::Range;
use tidalite_pager::{PageRead, PageRef, Ptr, Result};

/// A cursor: steps through a table in either direction and seeks.
///
/// Every move returns whether the cursor is at a row afterwards. A new cursor is before the first row.
pub struct Cursor<'r, R> {
    pub(super) tree: Tree,
    pub(super) reader: &'r R,
    pub(super) frames: Vec<Frame<'r>>,
    pub(super) key: RowKey,
    /// Tag of the current row's payload, which encodes type and length, and the payload's offset in the leaf.
    pub(super) payload: (u32, usize),
    pub(super) place: CursorState,
    pub(super) steps: Steps<'r>,
    /// Whether steps are expected after the next forward seek: true initially, and after a seek that was followed by
    /// steps.
    pub(super) continues: bool,
    /// True if the last seek has prefetched the rows after its target.
    pub(super) has_prefetched: bool,
    /// The key at which the last step from leaf to leaf arrived, and the step's direction (`Greater`: forward); `None`
    /// before the first such step after a seek.
    pub(super) entered: (Vec<u8>, Option<Ordering>),
    /// The prefetcher; used only if the kernel reads each page alone (`PageRead::reads_single_pages`).
    pub(super) prefetcher: Option<Box<Prefetcher<'r>>>,
    /// The only leaf of an inline table, which is stored in the row of its parent table; `None` for a table with pages.
    pub(super) only: Option<PageRef<'r>>,
}

impl Tree {
    /// Creates a cursor that stands before the first row.
    pub fn cursor<'r, R: PageRead>(&self, r: &'r R) -> Cursor<'r, R> {
        Cursor {
            tree: *self,
            reader: r,
            frames: Vec::new(),
            key: RowKey::default(),
            payload: (0, 0),
            place: CursorState::Before,
            steps: Steps::default(),
            continues: true,
            has_prefetched: false,
            entered: (Vec::new(), None),
            prefetcher: None,
            only: None,
        }
    }
}

impl<'r, R: PageRead> Cursor<'r, R> {
    /// A cursor over a table that is empty or consists of one leaf in memory.
    pub(crate) fn over(tree: Tree, r: &'r R, only: Option<PageRef<'r>>) -> Self {
        Self {
            only,
            ..tree.cursor(r)
        }
    }

    /// The leaf of the current row, the tag and the range of the row's payload in that leaf, and the leaf's address.
    ///
    /// # Panics
    /// When the cursor is not at a row.
    pub(crate) fn payload_place(&self) -> (&PageRef<'r>, (u32, Range<usize>), u64) {
        let Some(leaf) = self.frames.last().filter(|_| self.place == CursorState::At) else {
            panic!("the cursor is not at a row");
        };
        let (tag, at) = self.payload;
        (&leaf.page, (tag, at..at + tag::len(tag)), leaf.at)
    }

    /// The id that the pages of this cursor's table carry.
    pub(crate) fn owner(&self) -> u64 {
        self.tree.id
    }

    /// True if the current row holds a nested table, not a value.
    ///
    /// # Panics
    /// When the cursor is not at a row.
    #[must_use]
    pub fn is_nested(&self) -> bool {
        assert!(self.place == CursorState::At, "the cursor is not at a row");
        tag::kind(self.payload.0) >= tag::NESTED
    }

    /// The tag (type and length) and the bytes of the current row's payload; `None` if the cursor is not at a row.
    pub(crate) fn payload(&self) -> Option<(u32, &[u8])> {
        let leaf = self
            .frames
            .last()
            .filter(|_| self.place == CursorState::At)?;
        let (tag, at) = self.payload;
        Some((tag, &leaf.page[at..at + tag::len(tag)]))
    }

    pub(crate) fn reader(&self) -> &'r R {
        self.reader
    }

    /// True if the cursor is at the first row of the table.
    #[must_use]
    pub fn on_first(&self) -> bool {
        let Some((leaf, above)) = self.frames.split_last() else {
            return false;
        };
        let first = self.steps.index(leaf) == 0;
        self.is_at_row() && first && above.iter().all(|frame| frame.index == 0)
    }

    /// True if the cursor is at the last row of the table.
    #[must_use]
    pub fn on_last(&self) -> bool {
        let Some((leaf, above)) = self.frames.split_last() else {
            return false;
        };
        let last = self.steps.index(leaf) + 1 == leaf.shape.count;
        let ends = |frame: &Frame<'_>| frame.index + 1 == frame.shape.count;
        self.is_at_row() && last && above.iter().all(ends)
    }

    /// True if a step forward ran off the end of the table, or the table is empty.
    #[must_use]
    pub fn eof(&self) -> bool {
        self.place == CursorState::After || self.tree.is_empty() && self.only.is_none()
    }

    /// Moves the cursor to before the first row of another table, or of another version of the same table, read through
    /// `r`.
    pub fn renew(&mut self, tree: &Tree, r: &'r R) {
        (self.tree, self.reader) = (*tree, r);
        (self.only, self.prefetcher) = (None, None);
        self.frames.clear();
        self.entered.1 = None;
        self.leave(CursorState::Before);
    }

    /// True if the cursor is at a row.
    #[must_use]
    pub fn is_at_row(&self) -> bool {
        self.place == CursorState::At
    }

    /// The key of the current row.
    ///
    /// # Panics
    /// When the cursor is not at a row.
    #[must_use]
    #[inline]
    pub fn key(&self) -> &[u8] {
        assert!(self.place == CursorState::At, "the cursor is not at a row");
        &self.key
    }

    /// The value of the current row.
    ///
    /// # Errors
    /// `Corrupt`.
    ///
    /// # Panics
    /// When the cursor is not at a row.
    pub fn value(&self) -> Result<Value<'r>> {
        let Some(leaf) = self.frames.last().filter(|_| self.place == CursorState::At) else {
            panic!("the cursor is not at a row");
        };
        let (tag, at) = self.payload;
        let range = at..at + tag::len(tag);
        if tag::kind(tag) == tag::INLINE {
            return Ok(Value::inline(leaf.page.clone(), range));
        }
        let page_size = self.reader.page_size();
        match value::reference(tag, &leaf.page[range], page_size, leaf.at)? {
            Some(found) => Ok(Value::referenced(self.reader, found)),
            None => Err(corrupt_by_table(leaf.at, self.key())),
        }
    }

    /// As `value`, but a nested table is reported as a mistake of the user (`IsTable`), not as damage.
    ///
    /// # Errors
    /// `Corrupt`; `IsTable` for a nested table.
    ///
    /// # Panics
    /// When the cursor is not at a row.
    pub fn plain_value(&self) -> Result<Value<'r>> {
        match self.is_nested() {
            true => Err(key_holds_table(0, self.key())),
            false => self.value(),
        }
    }

    /// The value of the current row, borrowed from its leaf; `None` for a nested table, and for a value that is stored
    /// outside the leaf.
    ///
    /// # Panics
    /// When the cursor is not at a row.
    #[must_use]
    #[inline]
    pub fn value_slice(&self) -> Option<&[u8]> {
        let (tag, at) = self.payload;
        let page = self.leaf_bytes();
        (tag::kind(tag) == tag::INLINE).then(|| &page[at..at + tag::len(tag)])
    }

    /// The same as `value_slice`, as a `Result`.
    ///
    /// # Errors
    /// This function never fails.
    ///
    /// # Panics
    /// As `value_slice`.
    pub fn inline_value(&self) -> Result<Option<&[u8]>> {
        Ok(self.value_slice())
    }

    /// Moves to the first row.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn first(&mut self) -> Result<bool> {
        self.descend_from_root(Target::First)?;
        self.read_row(CursorState::Before)
    }

    /// Moves to the last row.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn last(&mut self) -> Result<bool> {
        self.descend_from_root(Target::Last)?;
        self.read_row(CursorState::After)
    }

    /// Moves to the row with the smallest key that is not below `key` (its ceiling).
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn seek_ge(&mut self, key: &[u8]) -> Result<bool> {
        self.seek_place(key)?;
        if self.off_leaf_end() {
            return self.climb_forward();
        }
        // Prefetches the following rows while the processor waits for the row that was found.
        self.has_prefetched = std::mem::take(&mut self.continues);
        if self.has_prefetched {
            self.prefetch_rows(1);
        }
        self.read_row(CursorState::After)
    }

    /// Moves to the row with the smallest key above `key`.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn seek_gt(&mut self, key: &[u8]) -> Result<bool> {
        if self.seek_ge(key)? && *self.key == *key {
            return self.next();
        }
        Ok(self.is_at_row())
    }

    /// Moves to the row with the greatest key that is not above `key` (its floor).
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn seek_le(&mut self, key: &[u8]) -> Result<bool> {
        let found = self.seek_place(key)?;
        if found {
            return self.read_row(CursorState::Before);
        }
        self.step_back()
    }

    /// Moves to the row with the greatest key below `key`.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn seek_lt(&mut self, key: &[u8]) -> Result<bool> {
        self.seek_place(key)?;
        self.step_back()
    }

    /// Moves to the row with exactly this key. If it does not exist, the cursor stands where `seek_ge` leaves it, and
    /// the result is false.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.continues = false;
        Ok(self.seek_ge(key)? && *self.key == *key)
    }

    /// Moves to the previous row; from the position after the last row to the last row. Returns false at the beginning.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn previous(&mut self) -> Result<bool> {
        match self.place {
            CursorState::Before => Ok(false),
            CursorState::After => self.last(),
            CursorState::At => self.step_back(),
        }
    }

    /// Descends to the leaf that would hold `key`, and there to the first entry not below `key`, which may be one past
    /// the last entry. Returns true if that entry has exactly this key.
    fn seek_place(&mut self, key: &[u8]) -> Result<bool> {
        self.descend_from_root(Target::To(key))
    }

    fn off_leaf_end(&self) -> bool {
        let leaf = self.frames.last();
        leaf.is_some_and(|leaf| leaf.index >= leaf.shape.count)
    }

    pub(super) fn descend_from_root(&mut self, target: Target<'_>) -> Result<bool> {
        self.frames.clear();
        self.leave(CursorState::Before);
        (self.entered.1, self.has_prefetched) = (None, false);
        if let Some(page) = &self.only {
            let page = page.clone();
            let node = Node::open(&page, 0, 0)?;
            let (shape, at) = (node.shape(), 0);
            let (index, found) = match target {
                Target::First | Target::Next => (0, false),
                Target::Last => (node.count() - 1, false),
                Target::To(key) => node.find(self.reader, key)?,
            };
            self.frames.push(Frame {
                page,
                shape,
                at,
                index,
            });
            return Ok(found);
        }
        if self.tree.root.is_null() {
            return Ok(false);
        }
        self.descend(self.tree.root, self.tree.height - 1, target)
    }

    /// Descends from this page to a leaf and adds a frame for each page. Returns true if the leaf has the key of
    /// `Target::To`.
    pub(super) fn descend(
        &mut self,
        mut ptr: Ptr,
        mut level: u8,
        target: Target<'_>,
    ) -> Result<bool> {
        let mut ahead = HEADS_AHEAD_BYTES;
        loop {
            let page = match target {
                Target::Next => self.page_of_step(&ptr, level)?,
                _ => match self.reader.lent_page(&ptr) {
                    Some(page) => {
                        prefetch_slots(page, ahead);
                        PageRef::Borrowed(page)
                    }
                    None => self.reader.page(&ptr)?,
                },
            };
            let node = Node::open(&page, level, ptr.addr)?;
            let shape = node.shape();
            let (index, found) = match target {
                Target::First | Target::Next => (0, false),
                Target::Last => (node.count() - 1, false),
                Target::To(key) if level > 0 => (node.find_child(self.reader, key)?, false),
                Target::To(key) => node.find(self.reader, key)?,
            };
            let child = (level > 0).then(|| node.child(index)).transpose()?;
            let at = ptr.addr;
            if let Some((child, rows)) = child {
                (ptr, ahead) = (child, slots_ahead(level, rows));
                if let Target::Next = target {
                    self.reader.prefetch(&ptr, HEADS_AHEAD_BYTES);
                }
            }
            self.frames.push(Frame {
                page,
                shape,
                at,
                index,
            });
            debug_assert!(
                self.frames.len() + usize::from(level) == usize::from(self.tree.height),
                "one frame per level"
            );
            if child.is_none() {
                return Ok(found);
            }
            level -= 1;
        }
    }

    /// Moves from a position in a leaf, which may be past the leaf's end, to the previous row.
    fn step_back(&mut self) -> Result<bool> {
        let Some(leaf) = self.frames.last_mut() else {
            self.leave(CursorState::Before);
            return Ok(false);
        };
        leaf.index = self.steps.index(leaf);
        if leaf.index > 0 {
            leaf.index -= 1;
            if self.place == CursorState::At {
                return self.read_row_in_leaf();
            }
            return self.read_row(CursorState::Before);
        }
        let stepped = self.place == CursorState::At;
        self.leave(CursorState::Before);
        self.request_leaves(false);
        self.frames.pop();
        while let Some(frame) = self.frames.last_mut() {
            if frame.index > 0 {
                frame.index -= 1;
                let (child, _) = frame.node().child(frame.index)?;
                let level = frame.shape.level - 1;
                self.descend(child, level, Target::Last)?;
                self.notify_prefetcher();
                let found = self.read_row(CursorState::Before)?;
                return match stepped {
                    true => self.expect_order(Ordering::Less),
                    false => Ok(found),
                };
            }
            self.frames.pop();
        }
        Ok(false)
    }

    /// After a step to another leaf, checks that the key is greater (forward) or smaller (backward) than the key of the
    /// last such step: a damaged file could otherwise make a scan endless.
    pub(super) fn expect_order(&mut self, order: Ordering) -> Result<bool> {
        debug_assert!(self.place == CursorState::At, "the step arrived at a row");
        let (entered, direction) = &mut self.entered;
        if *direction == Some(order) && self.key[..].cmp(&entered[..]) != order {
            let at = self.frames.last().map_or(0, |leaf| leaf.at);
            self.frames.clear();
            self.leave(CursorState::Before);
            let found = "a leaf that was visited before";
            return Err(damaged("order of a table", at, found, "ascending keys"));
        }
        *direction = Some(order);
        entered.clear();
        entered.extend_from_slice(&self.key);
        Ok(true)
    }

    /// Leaves the current row: sets the new state, and ends the steps by row offsets.
    #[inline]
    pub(super) fn leave(&mut self, place: CursorState) {
        (self.place, self.steps) = (place, Steps::default());
    }

    /// Reads the key of the row to which the frames lead, in a leaf that was just entered. Without frames the cursor
    /// goes to `end`.
    pub(super) fn read_row(&mut self, end: CursorState) -> Result<bool> {
        let Some(leaf) = self.frames.last() else {
            self.leave(end);
            return Ok(false);
        };
        debug_assert!(
            self.only.is_some() || self.frames.len() == usize::from(self.tree.height),
            "the whole path (invariant 1)"
        );
        debug_assert!(leaf.index < leaf.shape.count, "the row exists");
        self.key.enter(leaf.node().prefix());
        self.read_row_in_leaf()
    }

    /// Reads the key of another row of the current leaf.
    #[inline]
    pub(super) fn read_row_in_leaf(&mut self) -> Result<bool> {
        self.leave(CursorState::Before);
        let Some(leaf) = self.frames.last() else {
            return Err(damaged("cursor", 0, "no leaf", "a leaf"));
        };
        let Some((tag, suffix, payload_at)) = leaf.shape.plain_row(&leaf.page, leaf.index) else {
            return self.read_spilled_row();
        };
        self.payload = (tag, payload_at);
        self.key.take(&leaf.page, suffix.start, suffix.len());
        self.place = CursorState::At;
        Ok(true)
    }

    /// As `read_row_in_leaf`, for a key that is too long for its page.
    #[cold]
    fn read_spilled_row(&mut self) -> Result<bool> {
        let Some(leaf) = self.frames.last() else {
            return Ok(false);
        };
        let cell = leaf.node().other_cell(leaf.index)?;
        self.payload = (cell.tag, cell.payload_at);
        self.key.take_any(cell.suffix);
        let mut whole = self.key.lend();
        read_rest(self.reader, cell.rest, leaf.at, &mut whole)?;
        self.key.put(whole);
        self.place = CursorState::At;
        Ok(true)
    }
}

impl<R> Clone for Cursor<'_, R> {
    /// Creates another cursor at the same position.
    fn clone(&self) -> Self {
        Self {
            tree: self.tree,
            reader: self.reader,
            frames: self.frames.clone(),
            key: self.key.clone(),
            payload: self.payload,
            place: self.place,
            steps: self.steps,
            continues: self.continues,
            has_prefetched: self.has_prefetched,
            entered: self.entered.clone(),
            prefetcher: None,
            only: self.only.clone(),
        }
    }
}
