//! Appending rows one by one: an [`AppendCursor`] is an append cursor that remembers the position of the last row.
//!
//! Invariants
//! 1. The contents of an `AppendCursor` are true of the table with the root and the row count stored in it, provided
//!    that every other change of the table is followed by `forget`. It is only a hint for speed: without it the row is
//!    inserted by a descent.
//! 2. The transaction owns the remembered path; pages that a savepoint or reader has pinned since are detected by
//!    `may_change`.

use crate::bulk::append::inline;
use crate::bulk::leaf_builder::LeafBuilder;
use crate::page::edit::{self, Placed};
use crate::page::key::Key;
use crate::page::layout::Payload;
use crate::table::free::OldPayload;
use crate::table::path::Step;
use crate::table::tree::Tree;
use crate::value::Stored;
use tidalite_pager::{PageWrite, Ptr, Result};

/// Append cursor: the position of the last row of a table, within one transaction. A clone is empty.
#[derive(Debug, Default)]
pub struct AppendCursor {
    /// Number of consecutive rows that were inserted at the end by a descent.
    descents: u32,
    last: Option<LastRow>,
}

#[derive(Debug)]
pub(crate) struct LastRow {
    root: Ptr,
    pub(crate) rows: u64,
    /// The branches above the leaf.
    pub(crate) path: Vec<Step>,
    pub(crate) leaf: Ptr,
    pub(crate) last_key: Vec<u8>,
    /// In a table of multi-values: the position of the last value of the last key, if its set has pages.
    pub(crate) set: Box<AppendCursor>,
}

impl Clone for AppendCursor {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl AppendCursor {
    /// Must be called after any other change of the table.
    #[inline]
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// The position, if the last row of this table is still there.
    pub(crate) fn valid_for(&mut self, tree: &Tree) -> Option<&mut LastRow> {
        self.last.as_mut().filter(|last| last.is_of(tree))
    }

    /// Notes that a row was inserted by a descent; `last`: at the end.
    pub(crate) fn descended<W: PageWrite>(&mut self, tree: &Tree, w: &W, last: bool) -> Result<()> {
        self.last = None;
        self.descents = if last { self.descents + 1 } else { 0 };
        // A single row is not worth searching its position.
        if self.descents > 1 {
            self.remember(tree, w)?;
        }
        Ok(())
    }

    /// Finds the position of the last row.
    pub(crate) fn remember<W: PageWrite>(&mut self, tree: &Tree, w: &W) -> Result<()> {
        self.last = tree.tail(w)?.map(|tail| LastRow {
            root: tree.root,
            rows: tree.rows,
            path: tail.path,
            leaf: tail.leaf,
            last_key: tail.last_key,
            set: Box::default(),
        });
        Ok(())
    }
}

impl LastRow {
    fn is_of(&self, tree: &Tree) -> bool {
        self.root == tree.root && self.rows == tree.rows
    }

    /// Whether all its pages may be changed in place.
    pub(crate) fn may_change<W: PageWrite>(&self, w: &W) -> bool {
        w.may_change(&self.leaf) && self.path.iter().all(|step| w.may_change(&step.ptr))
    }

    /// Adds a row at the end of the leaf; false if it does not fit without a rewrite. Does not change any count.
    pub(crate) fn push<W: PageWrite>(
        &mut self,
        w: &mut W,
        key: &[u8],
        payload: Payload<'_>,
    ) -> Result<bool> {
        let at = self.leaf.addr;
        let page = w.page_mut(&self.leaf)?;
        let (count, _) = edit::fill(page, 0, at)?;
        debug_assert!(key > self.last_key.as_slice(), "rows ascend");
        let placed = edit::try_insert(page, 0, at, count, Key::plain(key), payload)?;
        if placed == Placed::No {
            return Ok(false);
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.set.forget();
        Ok(true)
    }
}

impl Tree {
    /// As `insert`, with a hint: rows that ascend after the last one need neither descent nor search.
    ///
    /// # Errors
    /// As for `insert`.
    ///
    /// # Cost
    /// After the last row: a comparison of keys, a copy, and a count in each branch above.
    pub fn insert_hinted<W: PageWrite>(
        &mut self,
        w: &mut W,
        cursor: &mut AppendCursor,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        if let Some(last) = &mut cursor.last
            && self.append_at_cursor(w, last, key, value)?
        {
            return Ok(false);
        }
        cursor.last = None;
        let stored = Stored::put(w, self.id, key, value)?;
        let put = self.put_payload_noting_end(w, key, stored.payload(), OldPayload::Free);
        let (before, at_end) = stored.free_if_refused(w, put)?;
        cursor.descended(self, w, at_end)?;
        Ok(before > 0)
    }

    /// Inserts a row after all others; false, with nothing changed, if its key is not above the last one. `cursor` is
    /// as for `insert_hinted`.
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
        let known = cursor.last.as_ref().filter(|last| last.is_of(self));
        let above = match known {
            Some(last) => key > last.last_key.as_slice(),
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

    /// Inserts a row after the last one; false, with nothing changed, if it belongs elsewhere, or does not fit the leaf
    /// without a rewrite.
    fn append_at_cursor<W: PageWrite>(
        &mut self,
        w: &mut W,
        last: &mut LastRow,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        if !last.is_of(self)
            || key <= last.last_key.as_slice()
            || !LeafBuilder::accepts(w.page_size(), key, inline(value))
            || !last.may_change(w)
            || !last.push(w, key, inline(value))?
        {
            return Ok(false);
        }
        debug_assert!(last.last_key == key, "the last key of the table");
        self.count_rows(w, &last.path, 1)?;
        last.rows = self.rows;
        Ok(true)
    }
}
