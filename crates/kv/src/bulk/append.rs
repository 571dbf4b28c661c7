//! Bulk insert; rows that ascend after the last row are laid out leaf by leaf.
//!
//! ```text
//! insert ──> the last leaf ──> rows after it, while it has room ──> leaves laid out one after the other (LeafBuilder),
//!            (own)             (edit::try_insert)                   each sealed and linked when it is full
//! ```
//!
//! Invariants
//! 1. The rows of a `LeafBuilder` are in no page yet. They become a page when it is full, when a row belongs elsewhere,
//!    and at the end. Until then the table does not count them.
//! 2. While leaves are linked, `path` is the path from the root to the last leaf's branch; the transaction owns all of
//!    it.
//! 3. Branches count the rows below them, but of the last entries on that path only the lowest is right; `count_last`
//!    finally corrects the others.

use crate::bulk::leaf_builder::LeafBuilder;
use crate::page::edit::{self, Placed};
use crate::page::entries::{Bias, common};
use crate::page::key::{Key, KeyBuf};
use crate::page::layout::{Payload, kind_of, tag};
use crate::page::node::Node;
use crate::page::row_count::weight;
use crate::table::path::Step;
use crate::table::split::Split;
use crate::table::tree::{HAS_REFERENCES, Tree};
use tidalite_pager::{PageWrite, Ptr, Result};

/// A last leaf with more than one part in this many of a page free is rewritten rather than left as it is.
const FREE_DIV: usize = 4;

/// Receives lent rows: key and value.
pub type PutRow<'p> = dyn FnMut(&[u8], &[u8]) -> Result<()> + 'p;

/// The last leaf while rows are appended to it.
pub(crate) struct LastLeaf {
    /// The branches above it, from the root on, each with its last entry.
    pub(crate) path: Vec<Step>,
    pub(crate) leaf: Ptr,
    pub(crate) last_key: Vec<u8>,
    /// Rows added to the leaf that its ancestors do not count yet.
    pending: u64,
}

/// Leaves that are laid out one after the other.
pub(crate) struct LeafRun {
    builder: LeafBuilder,
    /// The branches above the last leaf, from the root on, each with its last entry.
    path: Vec<Step>,
    /// The last linked leaf, and its number of rows.
    last: (Ptr, u64),
    /// The last key in it.
    last_key: Vec<u8>,
}

/// Append position. While it is known, rows may be missing from the table or its counts: `Tree::finish_append`
/// completes them.
#[derive(Default)]
pub(crate) enum BulkPosition {
    #[default]
    Unknown,
    LastLeaf(LastLeaf),
    LeafRun(Box<LeafRun>),
}

impl BulkPosition {
    /// Whether a key is known to be above the last one.
    pub(crate) fn is_below(&self, key: &[u8]) -> bool {
        match self {
            Self::Unknown => false,
            Self::LastLeaf(tail) => key > tail.last_key.as_slice(),
            Self::LeafRun(run) => run.builder.is_below(key),
        }
    }
}

/// The payload of an inline value.
pub(crate) fn inline(value: &[u8]) -> Payload<'_> {
    Payload {
        tag: tag::of(tag::INLINE, value.len()),
        bytes: value,
    }
}

impl Tree {
    /// Inserts many rows. Ascending keys beyond the last one are packed tightly and quickly; others are
    /// inserted by a descent. Returns the number of new keys.
    ///
    /// # Errors
    /// As for `insert`, but after a `Limit` error the rows before it are inserted.
    ///
    /// # Cost
    /// Ascending: a copy of each row and a checksum of each leaf, without descent or search; leaves are filled to the
    /// last entry that fits.
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
        let mut place = BulkPosition::Unknown;
        debug_assert!(!self.is_multi(), "pairs are put in by `PairWriter`");
        for (key, value) in rows {
            self.append_row(w, &mut place, key.as_ref(), value.as_ref())?;
        }
        self.finish_append(w, place)?;
        Ok(self.rows.wrapping_sub(before))
    }

    /// As `append`, for rows that `feed` lends one by one to its callback; they need no memory of their own.
    ///
    /// # Errors
    /// As for `append`, and errors of `feed`: the rows before the error are inserted.
    pub fn append_lent<W: PageWrite>(
        &mut self,
        w: &mut W,
        feed: impl FnOnce(&mut PutRow<'_>) -> Result<()>,
    ) -> Result<u64> {
        let before = self.rows;
        let mut place = BulkPosition::Unknown;
        debug_assert!(!self.is_multi(), "pairs are put in by `PairWriter`");
        let fed = feed(&mut |key, value| self.append_row(w, &mut place, key, value));
        self.finish_append(w, place)?;
        fed?;
        Ok(self.rows.wrapping_sub(before))
    }

    /// Inserts a row, quickly if it follows the one before it.
    #[inline]
    pub(crate) fn append_row<W: PageWrite>(
        &mut self,
        w: &mut W,
        place: &mut BulkPosition,
        key: &[u8],
        value: &[u8],
    ) -> Result<()> {
        if let BulkPosition::LeafRun(run) = place
            && run.builder.push(key, inline(value))
        {
            return Ok(());
        }
        if self.append_otherwise(w, place, key, inline(value))? {
            return Ok(());
        }
        // If this key is refused, the rows before it stay.
        self.insert(w, key, value)?;
        *place = self.end(w)?;
        Ok(())
    }

    /// Inserts the row of a key with its set, quickly if it follows the row before it. False if it must be inserted in
    /// by a descent: the table is complete in that case.
    pub(crate) fn append_set<W: PageWrite>(
        &mut self,
        w: &mut W,
        place: &mut BulkPosition,
        key: &[u8],
        payload: Payload<'_>,
    ) -> Result<bool> {
        if let BulkPosition::LeafRun(run) = place
            && run.builder.push(key, payload)
        {
        } else if !self.append_otherwise(w, place, key, payload)? {
            return Ok(false);
        }
        self.keys += 1;
        if payload.nested() {
            self.flags |= HAS_REFERENCES;
        }
        Ok(true)
    }

    /// Appends a row that does not fit the current append position as it is. False if it must be inserted in the
    /// ordinary way: the table is complete then, and the position unknown.
    fn append_otherwise<W: PageWrite>(
        &mut self,
        w: &mut W,
        place: &mut BulkPosition,
        key: &[u8],
        payload: Payload<'_>,
    ) -> Result<bool> {
        // Rows that need an extent are inserted by a descent: the extent must not be written twice.
        let takes = LeafBuilder::accepts(w.page_size(), key, payload);
        match std::mem::take(place) {
            BulkPosition::LeafRun(mut run) => {
                let follows = takes && run.builder.is_below(key);
                self.link(w, &mut run, !follows)?;
                if follows {
                    run.builder.begin(key, payload);
                    *place = BulkPosition::LeafRun(run);
                    return Ok(true);
                }
                self.count_last(w, &run.path)?;
            }
            BulkPosition::LastLeaf(mut tail) => {
                if takes && key > tail.last_key.as_slice() {
                    if tail.push(w, key, payload)? {
                        *place = BulkPosition::LastLeaf(tail);
                        return Ok(true);
                    }
                    if let Some(mut run) = self.run(w, &tail)? {
                        run.builder.begin(key, payload);
                        *place = BulkPosition::LeafRun(Box::new(run));
                        return Ok(true);
                    }
                }
                self.count_tail(w, &tail)?;
            }
            BulkPosition::Unknown => {}
        }
        Ok(false)
    }

    /// The append position of a complete table.
    pub(crate) fn end<W: PageWrite>(&self, w: &W) -> Result<BulkPosition> {
        Ok(match self.tail(w)? {
            Some(tail) => BulkPosition::LastLeaf(tail),
            None => BulkPosition::Unknown,
        })
    }

    /// Completes the table: links the rows that are held back and corrects the counts.
    pub(crate) fn finish_append<W: PageWrite>(
        &mut self,
        w: &mut W,
        place: BulkPosition,
    ) -> Result<()> {
        match place {
            BulkPosition::Unknown => Ok(()),
            BulkPosition::LastLeaf(tail) => self.count_tail(w, &tail),
            BulkPosition::LeafRun(mut run) => {
                self.link(w, &mut run, true)?;
                self.count_last(w, &run.path)
            }
        }
    }

    /// The last leaf, if the transaction already owns it.
    pub(crate) fn tail<W: PageWrite>(&self, w: &W) -> Result<Option<LastLeaf>> {
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
        Ok(Some(LastLeaf {
            path,
            leaf,
            last_key: node.key(w, node.count() - 1)?,
            pending: 0,
        }))
    }

    /// The path from the root to the last leaf's branch, each with its last entry.
    fn last_path<W: PageWrite>(&self, w: &W) -> Result<Vec<Step>> {
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

    /// Counts appended rows in the branches above the last leaf.
    fn count_tail<W: PageWrite>(&mut self, w: &mut W, tail: &LastLeaf) -> Result<()> {
        debug_assert!(
            tail.path.len() + 1 == usize::from(self.height),
            "the path of this tree"
        );
        if tail.pending == 0 {
            return Ok(());
        }
        self.count_rows(w, &tail.path, tail.pending.cast_signed())
    }

    /// A run of leaves after a full last leaf. `None`, with nothing changed, if the last leaf would have room after a
    /// rewrite.
    fn run<W: PageWrite>(&mut self, w: &mut W, tail: &LastLeaf) -> Result<Option<LeafRun>> {
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
        Ok(Some(LeafRun {
            builder: LeafBuilder::behind(page_size, first_key),
            path: tail.path.clone(),
            last: (tail.leaf, rows),
            last_key: tail.last_key.clone(),
        }))
    }

    /// Makes a page of the laid-out rows and links it after the last leaf; `open`: rows may be added to it soon.
    fn link<W: PageWrite>(&mut self, w: &mut W, run: &mut LeafRun, open: bool) -> Result<()> {
        let rows = run.builder.weight();
        let open = open || run.builder.has_page_sets();
        let key = run.builder.first_key();
        // `key` is above the last key, so the common part ends inside it; it is plain, and so is the separator.
        let separator = KeyBuf::plain(key[..common(&run.last_key, key) + 1].to_vec());
        debug_assert!(run.last_key.as_slice() < key, "leaves ascend");
        debug_assert!(
            run.path.len() + 1 == usize::from(self.height),
            "the path of this tree (invariant 2)"
        );
        let bytes = run.builder.finish(self.page_flags());
        let right = if open {
            let ptr = w.new_page(kind_of(0), self.id)?;
            w.page_mut(&ptr)?.copy_from_slice(bytes);
            ptr
        } else {
            w.add_page(kind_of(0), self.id, bytes)?
        };
        let (left, left_rows) = std::mem::replace(&mut run.last, (right, rows));
        run.builder.copy_last_key(&mut run.last_key);
        self.rows = self.rows.wrapping_add(rows);
        let split = Split {
            left_rows,
            separator,
            right,
            right_rows: rows,
        };
        let Some(parent) = run.path.last_mut() else {
            self.grow_root(w, &left, 1, &split)?;
            run.path = self.last_path(w)?;
            return Ok(());
        };
        let Some(split) = self.insert_child(w, parent, 1, &split, Bias::Ascending)? else {
            parent.index += 1;
            return Ok(());
        };
        let mut above = std::mem::take(&mut run.path);
        if let Some(branch) = above.pop() {
            self.propagate_split(w, above, branch.ptr, 2, Some(split), Bias::Ascending)?;
        }
        run.path = self.last_path(w)?;
        Ok(())
    }

    /// Corrects the row counts of the last entries of the branches on this path.
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

impl LastLeaf {
    /// Adds a row at the end of the leaf; false if it does not fit without a rewrite.
    fn push<W: PageWrite>(&mut self, w: &mut W, key: &[u8], payload: Payload<'_>) -> Result<bool> {
        let page = w.page_mut(&self.leaf)?;
        let (count, _) = edit::fill(page, 0, self.leaf.addr)?;
        debug_assert!(key > self.last_key.as_slice(), "rows ascend");
        let placed = edit::try_insert(page, 0, self.leaf.addr, count, Key::plain(key), payload)?;
        if placed == Placed::No {
            return Ok(false);
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.pending += weight(payload);
        Ok(true)
    }
}
