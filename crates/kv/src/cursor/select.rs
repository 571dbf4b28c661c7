//! Rows by number, the number of a row, and keys that divide a table into equal parts.

use crate::cursor::frame::{CursorState, Frame, Target};
use crate::cursor::tree_cursor::Cursor;
use crate::error::damaged;
use crate::page::node::Node;
use crate::table::tree::Tree;
use tidalite_pager::{PageRead, Result};

impl<R: PageRead> Cursor<'_, R> {
    /// Moves to the row that has exactly `rank` rows before it; in a table of sets, to the key of the key-value pair
    /// with `rank` pairs before it. False if there is no such row.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    ///
    /// # Cost
    /// One page per level; the row counts of a branch's entries before the child are added up.
    pub fn select(&mut self, rank: u64) -> Result<bool> {
        Ok(self.select_within(rank)?.is_some())
    }

    /// Number of rows before the current row; in a table of sets, number of key-value pairs before the first pair of
    /// the current key. `None` if the cursor is not at a row.
    ///
    /// # Errors
    /// `Corrupt`.
    ///
    /// # Cost
    /// Reads no page: adds up the row counts in the pages of the descent path.
    pub fn rank(&self) -> Result<Option<u64>> {
        let frames = self.is_at_row().then(|| self.frames.split_last());
        let Some((leaf, above)) = frames.flatten() else {
            return Ok(None);
        };
        let mut rank = self
            .tree
            .leaf_rows(&leaf.node(), 0..self.steps.index(leaf))?;
        for frame in above {
            let node = frame.node();
            for index in 0..frame.index {
                rank = rank.saturating_add(node.child(index)?.1);
            }
        }
        Ok(Some(rank))
    }

    /// As `select`; returns the number of pairs of the found row that come before the requested pair, or `None` if
    /// there is no such row.
    pub(crate) fn select_within(&mut self, mut rank: u64) -> Result<Option<u64>> {
        self.frames.clear();
        self.leave(CursorState::Before);
        self.entered.1 = None;
        if self.only.is_some() {
            self.descend_from_root(Target::First)?;
            let Some(leaf) = self.frames.last_mut() else {
                return Ok(None);
            };
            leaf.index = usize::try_from(rank).unwrap_or(usize::MAX);
            if leaf.index < leaf.shape.count {
                return Ok(self.read_row(CursorState::After)?.then_some(0));
            }
            self.frames.clear();
            self.leave(CursorState::After);
            return Ok(None);
        }
        if rank >= self.tree.rows {
            self.leave(CursorState::After);
            return Ok(None);
        }
        let mut ptr = self.tree.root;
        for level in (0..self.tree.height).rev() {
            let page = self.reader.page(&ptr)?;
            let node = Node::open(&page, level, ptr.addr)?;
            let mut index = 0;
            let mut next = None;
            while index < node.count() {
                let rows = if level > 0 {
                    let (child, rows) = node.child(index)?;
                    next = Some(child);
                    rows
                } else {
                    self.tree.leaf_rows(&node, index..index + 1)?
                };
                if rank < rows {
                    break;
                }
                rank -= rows;
                index += 1;
            }
            if index == node.count() {
                let found = "fewer rows than the branches count";
                return Err(damaged("table", ptr.addr, found, "every row"));
            }
            let (shape, at) = (node.shape(), ptr.addr);
            self.frames.push(Frame {
                page,
                shape,
                at,
                index,
            });
            if let Some(next) = next {
                ptr = next;
            }
        }
        Ok(self.read_row(CursorState::After)?.then_some(rank))
    }
}

impl Tree {
    /// Keys that divide the rows from one rank (row number) up to another into `parts` of equal size, to within one
    /// row. Returns one key less than `parts`, or fewer if there are not enough rows.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    ///
    /// # Cost
    /// One descent per key.
    pub fn split_range<R: PageRead>(
        &self,
        r: &R,
        (from, to): (u64, u64),
        parts: usize,
    ) -> Result<Vec<Vec<u8>>> {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        let mut cursor = self.cursor(r);
        for rank in cuts(from, to.min(self.rows), parts) {
            if cursor.select(rank)?
                && keys
                    .last()
                    .is_none_or(|last| last.as_slice() < cursor.key())
            {
                keys.push(cursor.key().to_vec());
            }
        }
        Ok(keys)
    }
}

/// The ranks (row numbers) at which each of `parts` equal parts of a rank range begins, except the first part.
pub(crate) fn cuts(from: u64, to: u64, parts: usize) -> impl Iterator<Item = u64> {
    let rows = u128::from(to.saturating_sub(from));
    let parts = (parts.max(1) as u128).min(rows);
    debug_assert!(parts <= rows, "no part is empty");
    (1..parts).map(move |part| from + (rows * part / parts) as u64)
}
