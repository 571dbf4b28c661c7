//! Append cursor: the position of a table's last row, for rows that ascend after it.
//!
//! ```text
//! single rows   ──> the last leaf (Tail), a count in each branch above
//! bulk load     ──> the last leaf, while it has room ──> leaves laid out one after the other (NextLeaf, append.rs)
//! sets          ──> as single rows or as a bulk load; the set of the last key has a cursor of its own
//! ```
//!
//! Invariants
//! 1. A tail is valid while the table has the root and the row count stored in the tail, provided that every other
//!    change of the table is followed by `forget`. It only serves speed: without a tail each row is inserted by a
//!    descent.
//! 2. The transaction owns the remembered path; pages that a savepoint or reader has pinned since are detected by
//!    `may_change`.
//! 3. Between calls of the public functions a tail has no `next` leaf and no uncounted rows.

use crate::bulk::leaf_builder::LeafBuilder;
use crate::page::edit::{self, Placed};
use crate::page::key::Key;
use crate::page::layout::Payload;
use crate::page::node::Node;
use crate::page::row_count::weight;
use crate::table::free::OldPayload;
use crate::table::path::Step;
use crate::table::tree::Tree;
use crate::value::Stored;
use tidalite_pager::{PageWrite, Ptr, Result};

/// Append cursor: the position of the last row of a table, within one transaction. A clone is empty.
#[derive(Debug, Default)]
pub struct AppendCursor {
    /// Number of consecutive rows that were inserted at the end of the table by a descent.
    descents: u32,
    pub(super) tail: Option<Box<Tail>>,
}

/// The last leaf of a table, and the path to it.
#[derive(Debug)]
pub(crate) struct Tail {
    root: Ptr,
    pub(crate) rows: u64,
    /// The branches above the last leaf, from the root on, each with the index of its last entry.
    pub(crate) path: Vec<Step>,
    pub(crate) leaf: Ptr,
    /// The last key in the last leaf.
    pub(crate) last_key: Vec<u8>,
    /// Number of rows added to the last leaf that the branches above do not count yet.
    uncounted: u64,
    /// In a bulk load: the next leaf, which is laid out in memory and in no page yet.
    pub(super) next: Option<NextLeaf>,
    /// In a table of sets: the append position in the set of the table's last key, if that set has pages of its own.
    pub(crate) set: AppendCursor,
}

/// A leaf that a bulk load lays out in memory, to be linked after the last leaf.
#[derive(Debug)]
pub(super) struct NextLeaf {
    pub(super) builder: LeafBuilder,
    /// Number of rows of the leaf before this one.
    pub(super) rows_before: u64,
}

impl Clone for AppendCursor {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl AppendCursor {
    /// Forgets the append position. Must be called after every change of the table that does not use this cursor.
    #[inline]
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// The remembered position; `None` if the table's root or row count has changed since.
    pub(crate) fn tail_of(&mut self, tree: &Tree) -> Option<&mut Tail> {
        self.tail.as_deref_mut().filter(|tail| tail.is_of(tree))
    }

    /// The builder of the next leaf, in a bulk load.
    #[inline]
    pub(super) fn builder(&mut self) -> Option<&mut LeafBuilder> {
        let next = self.tail.as_mut()?.next.as_mut()?;
        Some(&mut next.builder)
    }

    /// True if the append position is known and `key` is greater than the table's last key.
    pub(crate) fn is_below(&self, key: &[u8]) -> bool {
        self.tail.as_ref().is_some_and(|tail| tail.is_below(key))
    }

    /// Counts consecutive rows that were inserted at the end of the table by a descent; `last` is true if the newest
    /// row was one of them.
    pub(crate) fn descended<W: PageWrite>(&mut self, tree: &Tree, w: &W, last: bool) -> Result<()> {
        self.tail = None;
        self.descents = if last { self.descents + 1 } else { 0 };
        // After a single row at the end of the table, a search for the append position does not pay off.
        if self.descents > 1 {
            self.remember(tree, w)?;
        }
        Ok(())
    }

    /// Finds the position of the table's last row and stores it in this cursor.
    pub(crate) fn remember<W: PageWrite>(&mut self, tree: &Tree, w: &W) -> Result<()> {
        self.tail = tree.tail(w)?.map(Box::new);
        Ok(())
    }
}

impl Tail {
    fn is_of(&self, tree: &Tree) -> bool {
        debug_assert!(self.next.is_none(), "a bulk load has ended (invariant 3)");
        self.root == tree.root && self.rows == tree.rows
    }

    /// True if the last leaf and all branches above it may be changed in place.
    pub(crate) fn may_change<W: PageWrite>(&self, w: &W) -> bool {
        w.may_change(&self.leaf) && self.path.iter().all(|step| w.may_change(&step.ptr))
    }

    /// True if `key` is greater than the table's last key, including keys that a bulk load holds back.
    pub(super) fn is_below(&self, key: &[u8]) -> bool {
        match &self.next {
            Some(next) => next.builder.is_below(key),
            None => key > self.last_key.as_slice(),
        }
    }

    /// Adds a row at the end of the last leaf; returns false if the row does not fit without a rewrite of the leaf. The
    /// branches above do not count the new row yet.
    pub(crate) fn push<W: PageWrite>(
        &mut self,
        w: &mut W,
        key: &[u8],
        payload: Payload<'_>,
    ) -> Result<bool> {
        debug_assert!(key > self.last_key.as_slice(), "rows ascend");
        debug_assert!(self.next.is_none(), "no leaf follows");
        let at = self.leaf.addr;
        let page = w.page_mut(&self.leaf)?;
        let (count, _) = edit::fill(page, 0, at)?;
        let placed = edit::try_insert(page, 0, at, count, Key::plain(key), payload)?;
        if placed == Placed::No {
            return Ok(false);
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.uncounted += weight(payload);
        self.set.forget();
        Ok(true)
    }
}

impl Tree {
    /// As `insert`, but rows with ascending keys after the table's last key need neither descent nor search: `cursor`
    /// remembers the position.
    ///
    /// # Errors
    /// As for `insert`.
    ///
    /// # Cost
    /// For a row after the last one: a comparison of keys, a copy of the row, and a new row count in each branch above.
    pub fn insert_hinted<W: PageWrite>(
        &mut self,
        w: &mut W,
        cursor: &mut AppendCursor,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        if let Some(tail) = cursor.tail_of(self)
            && self.append_at_cursor(w, tail, key, value)?
        {
            return Ok(false);
        }
        cursor.tail = None;
        let stored = Stored::put(w, self.id, key, value)?;
        let put = self.put_payload_noting_end(w, key, stored.payload(), OldPayload::Free);
        let (before, at_end) = stored.free_if_refused(w, put)?;
        cursor.descended(self, w, at_end)?;
        Ok(before > 0)
    }

    /// Inserts a row after all other rows; returns false, with nothing changed, if `key` is not greater than the
    /// table's last key. `cursor` is used as in `insert_hinted`.
    ///
    /// # Errors
    /// As for `insert`.
    pub fn append_hinted<W: PageWrite>(
        &mut self,
        w: &mut W,
        cursor: &mut AppendCursor,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        let above = match cursor.tail_of(self) {
            Some(tail) => tail.is_below(key),
            None => {
                let mut last = self.cursor(&*w);
                !last.last()? || key > last.key()
            }
        };
        if above {
            self.insert_hinted(w, cursor, key, value)?;
        }
        Ok(above)
    }

    /// Inserts a row after the last row at the remembered position. Returns false, with nothing changed, if the row
    /// belongs elsewhere, or does not fit the last leaf without a rewrite.
    fn append_at_cursor<W: PageWrite>(
        &mut self,
        w: &mut W,
        tail: &mut Tail,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        let payload = Payload::inline(value);
        if !tail.is_below(key)
            || !LeafBuilder::accepts(w.page_size(), key, payload)
            || !tail.may_change(w)
            || !tail.push(w, key, payload)?
        {
            return Ok(false);
        }
        self.count_tail(w, tail)?;
        Ok(true)
    }

    /// Adds the rows that were appended to the last leaf to the row counts in the branches above.
    pub(crate) fn count_tail<W: PageWrite>(&mut self, w: &mut W, tail: &mut Tail) -> Result<()> {
        debug_assert!(
            tail.path.len() + 1 == usize::from(self.height),
            "the path of this tree"
        );
        let rows = std::mem::take(&mut tail.uncounted);
        self.count_rows(w, &tail.path, rows.cast_signed())?;
        tail.rows = self.rows;
        Ok(())
    }

    /// The last leaf and the path to it; `None` if the transaction does not own the leaf yet.
    fn tail<W: PageWrite>(&self, w: &W) -> Result<Option<Tail>> {
        let path = self.last_path(w)?;
        let leaf = match path.last() {
            None => self.root,
            Some(step) => {
                Node::open(&w.page(&step.ptr)?, 1, step.ptr.addr)?
                    .child(step.index)?
                    .0
            }
        };
        if !w.may_change(&leaf) {
            return Ok(None);
        }
        let page = w.page(&leaf)?;
        let node = Node::open(&page, 0, leaf.addr)?;
        Ok(Some(Tail {
            root: self.root,
            rows: self.rows,
            path,
            leaf,
            last_key: node.key(w, node.count() - 1)?,
            uncounted: 0,
            next: None,
            set: AppendCursor::default(),
        }))
    }

    /// The branches from the root to the parent of the last leaf, each with the index of its last entry.
    pub(super) fn last_path<W: PageWrite>(&self, w: &W) -> Result<Vec<Step>> {
        let mut path = Vec::with_capacity(usize::from(self.height));
        let mut ptr = self.root;
        for level in (1..self.height).rev() {
            let page = w.page(&ptr)?;
            let node = Node::open(&page, level, ptr.addr)?;
            let index = node.count() - 1;
            path.push(Step { ptr, index });
            ptr = node.child(index)?.0;
        }
        debug_assert!(
            path.len() + 1 == usize::from(self.height),
            "one step per branch"
        );
        Ok(path)
    }
}
