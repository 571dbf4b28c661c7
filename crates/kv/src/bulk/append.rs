//! Bulk insert: rows with ascending keys after the table's last key are laid out leaf by leaf.
//!
//! ```text
//! insert ──> the last leaf ──> rows after it, while it has room ──> leaves laid out one after the other (LeafBuilder),
//!            (own)             (Tail::push)                         each sealed and linked when it is full
//! ```
//!
//! Invariants
//! 1. The rows in the builder of a `NextLeaf` are in no page yet. They become a page when the builder is full, when a
//!    row that does not follow them arrives, and at the end. Until then the table does not count them.
//! 2. While leaves are linked, `Tail::path` is the path from the root to the last leaf's branch; the transaction owns
//!    all of it.
//! 3. A branch stores the row count of each child. In the branches of `Tail::path` the count of the last entry is out
//!    of date, except in the lowest branch; at the end `count_last` corrects the other branches.
//! 4. After an error the cursor has no tail: rows that were held back are lost with the transaction.

use crate::bulk::append_cursor::{AppendCursor, NextLeaf, Tail};
use crate::bulk::leaf_builder::LeafBuilder;
use crate::page::edit;
use crate::page::entries::{Bias, common};
use crate::page::key::KeyBuf;
use crate::page::layout::{Payload, kind_of};
use crate::page::node::Node;
use crate::table::path::Step;
use crate::table::split::Split;
use crate::table::tree::{HAS_REFERENCES, Tree};
use tidalite_pager::{PageWrite, Result};

/// If more than 1/`FREE_DIV` of the last leaf is free, the leaf is rewritten to use this free space; otherwise the leaf
/// stays as it is, and the insert begins a new leaf.
const FREE_DIV: usize = 4;

/// Callback that receives the key and the value of a row, both borrowed.
pub type PutRow<'p> = dyn FnMut(&[u8], &[u8]) -> Result<()> + 'p;

impl Tree {
    /// Inserts many rows. Rows with ascending keys beyond the table's last key are packed tightly and quickly; each
    /// other row is inserted by a descent from the root. Returns the number of new keys.
    ///
    /// # Errors
    /// As for `insert`, but after a `Limit` error the rows before the refused row stay inserted.
    ///
    /// # Cost
    /// For ascending keys: a copy of each row and a checksum of each leaf, without descent or search; leaves are filled
    /// to the last row that fits.
    pub fn append<W, K, V>(
        &mut self,
        w: &mut W,
        rows: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64>
    where
        W: PageWrite,
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        let before = self.rows;
        let mut cursor = AppendCursor::default();
        debug_assert!(!self.is_multi(), "pairs are put in by `PairWriter`");
        for (key, value) in rows {
            self.append_row(w, &mut cursor, key.as_ref(), value.as_ref())?;
        }
        self.finish_append(w, &mut cursor)?;
        Ok(self.rows.wrapping_sub(before))
    }

    /// As `append`, but for rows that need not all be in memory: `feed` passes them one by one to the callback that it
    /// receives.
    ///
    /// # Errors
    /// As for `append`, and errors of `feed`: the rows before the error are inserted.
    pub fn append_lent<W: PageWrite>(
        &mut self,
        w: &mut W,
        feed: impl FnOnce(&mut PutRow<'_>) -> Result<()>,
    ) -> Result<u64> {
        let before = self.rows;
        let mut cursor = AppendCursor::default();
        debug_assert!(!self.is_multi(), "pairs are put in by `PairWriter`");
        let fed = feed(&mut |key, value| self.append_row(w, &mut cursor, key, value));
        self.finish_append(w, &mut cursor)?;
        fed?;
        Ok(self.rows.wrapping_sub(before))
    }

    /// Inserts a row; needs no descent from the root if the row directly follows the row inserted before.
    #[inline]
    pub(crate) fn append_row<W: PageWrite>(
        &mut self,
        w: &mut W,
        cursor: &mut AppendCursor,
        key: &[u8],
        value: &[u8],
    ) -> Result<()> {
        let payload = Payload::inline(value);
        if let Some(builder) = cursor.builder()
            && builder.push(key, payload)
        {
            return Ok(());
        }
        if self.append_otherwise(w, cursor, key, payload)? {
            return Ok(());
        }
        // If `insert` refuses this key, the rows appended before it stay.
        self.insert(w, key, value)?;
        cursor.remember(self, w)
    }

    /// Inserts the row of a key with its set of values, without a descent if the row follows the row inserted before.
    /// Returns false if the caller must insert the row by a descent; no rows are held back in that case.
    pub(crate) fn append_set<W: PageWrite>(
        &mut self,
        w: &mut W,
        cursor: &mut AppendCursor,
        key: &[u8],
        payload: Payload<'_>,
    ) -> Result<bool> {
        if let Some(builder) = cursor.builder()
            && builder.push(key, payload)
        {
        } else if !self.append_otherwise(w, cursor, key, payload)? {
            return Ok(false);
        }
        self.keys += 1;
        if payload.nested() {
            self.flags |= HAS_REFERENCES;
        }
        Ok(true)
    }

    /// Appends a row that the leaf builder did not take. Returns false if the caller must insert the row by a descent;
    /// then no rows are held back, and the cursor has no tail.
    fn append_otherwise<W: PageWrite>(
        &mut self,
        w: &mut W,
        cursor: &mut AppendCursor,
        key: &[u8],
        payload: Payload<'_>,
    ) -> Result<bool> {
        let Some(mut tail) = cursor.tail.take() else {
            return Ok(false);
        };
        // A row that needs an extent is inserted by a descent, because a failed append and a later insert would write
        // the extent twice.
        let follows = LeafBuilder::accepts(w.page_size(), key, payload) && tail.is_below(key);
        let placed = follows
            && (tail.next.is_none() && tail.push(w, key, payload)?
                || self.begin_leaf(w, &mut tail, key, payload)?);
        if placed {
            cursor.tail = Some(tail);
        } else {
            self.complete(w, &mut tail)?;
        }
        Ok(placed)
    }

    /// Completes the table: links the rows that are held back, and corrects the row counts in the branches.
    pub(crate) fn finish_append<W: PageWrite>(
        &mut self,
        w: &mut W,
        cursor: &mut AppendCursor,
    ) -> Result<()> {
        match cursor.tail.take() {
            Some(mut tail) => self.complete(w, &mut tail),
            None => Ok(()),
        }
    }

    fn complete<W: PageWrite>(&mut self, w: &mut W, tail: &mut Tail) -> Result<()> {
        if tail.next.is_none() {
            return self.count_tail(w, tail);
        }
        self.link(w, tail, true)?;
        self.count_last(w, &tail.path)
    }

    /// The last leaf is full: begins the leaf after it with this row. Returns false, with nothing changed, if the last
    /// leaf would have room after a rewrite.
    fn begin_leaf<W: PageWrite>(
        &mut self,
        w: &mut W,
        tail: &mut Tail,
        key: &[u8],
        payload: Payload<'_>,
    ) -> Result<bool> {
        if tail.next.is_some() {
            self.link(w, tail, false)?;
        } else {
            tail.next = self.next_leaf(w, tail)?;
        }
        let Some(next) = &mut tail.next else {
            return Ok(false);
        };
        next.builder.begin(key, payload);
        Ok(true)
    }

    /// Prepares the leaf after the full last leaf of the table. Returns `None`, with nothing changed, if the last leaf
    /// would have room after a rewrite.
    fn next_leaf<W: PageWrite>(&mut self, w: &mut W, tail: &mut Tail) -> Result<Option<NextLeaf>> {
        let page_size = w.page_size();
        let page = w.page(&tail.leaf)?;
        let (_, live) = edit::fill(&page, 0, tail.leaf.addr)?;
        if page_size - live > page_size / FREE_DIV {
            return Ok(None);
        }
        let node = Node::open(&page, 0, tail.leaf.addr)?;
        let (first_key, rows) = (node.key(w, 0)?, self.leaf_rows(&node, 0..node.count())?);
        drop(page);
        self.count_tail(w, tail)?;
        Ok(Some(NextLeaf {
            builder: LeafBuilder::after(page_size, first_key),
            rows_before: rows,
        }))
    }

    /// Writes the laid-out rows to a page and links this page after the last leaf. If `open`, the page stays
    /// changeable, because rows may be added to it soon.
    fn link<W: PageWrite>(&mut self, w: &mut W, tail: &mut Tail, open: bool) -> Result<()> {
        let Some(next) = &mut tail.next else {
            return Ok(());
        };
        let rows = next.builder.weight();
        let open = open || next.builder.has_page_sets();
        let key = next.builder.first_key();
        debug_assert!(tail.last_key.as_slice() < key, "leaves ascend");
        debug_assert!(
            tail.path.len() + 1 == usize::from(self.height),
            "the path of this tree (invariant 2)"
        );
        // The common part of `key` and the last key is shorter than `key`, because `key` is greater. `key` fits a page
        // whole, so the separator does, too.
        let separator = KeyBuf::plain(key[..common(&tail.last_key, key) + 1].to_vec());
        let bytes = next.builder.finish(self.page_flags());
        let right = if open {
            let ptr = w.new_page(kind_of(0), self.id)?;
            w.page_mut(&ptr)?.copy_from_slice(bytes);
            ptr
        } else {
            w.add_page(kind_of(0), self.id, bytes)?
        };
        let left = std::mem::replace(&mut tail.leaf, right);
        let left_rows = std::mem::replace(&mut next.rows_before, rows);
        next.builder.copy_last_key(&mut tail.last_key);
        self.rows = self.rows.wrapping_add(rows);
        let split = Split {
            left_rows,
            separator,
            right,
            right_rows: rows,
        };
        let Some(parent) = tail.path.last_mut() else {
            self.grow_root(w, &left, 1, &split)?;
            tail.path = self.last_path(w)?;
            return Ok(());
        };
        let Some(split) = self.insert_child(w, parent, 1, &split, Bias::Ascending)? else {
            parent.index += 1;
            return Ok(());
        };
        let mut above = std::mem::take(&mut tail.path);
        if let Some(branch) = above.pop() {
            self.propagate_split(w, above, branch.ptr, 2, Some(split), Bias::Ascending)?;
        }
        tail.path = self.last_path(w)?;
        Ok(())
    }

    /// Corrects the row count of the last entry in each branch on this path.
    fn count_last<W: PageWrite>(&self, w: &mut W, path: &[Step]) -> Result<()> {
        let steps = path.iter().rev().zip(path.iter().rev().skip(1));
        for (level, (branch, parent)) in (1u8..).zip(steps) {
            let page = w.page(&branch.ptr)?;
            let node = Node::open(&page, level, branch.ptr.addr)?;
            let mut rows = 0u64;
            for index in 0..node.count() {
                rows = rows.wrapping_add(node.child(index)?.1);
            }
            drop(page);
            let page = w.page_mut(&parent.ptr)?;
            let at = parent.ptr.addr;
            edit::set_child(page, level + 1, at, parent.index, &branch.ptr, rows)?;
        }
        Ok(())
    }
}
