//! Handles inserts in ascending order at many places of a table at once: for example one place per sensor, if keys
//! begin with the sensor.
//!
//! ```text
//!   [a a a a b b b]     ──>  [a a a a a  ] [b b b]       rows after the position get a leaf of their own, once
//!   [a a a a a a a]     ──>  [a a a a a a a] [a]
//! ```
//!
//! The rows after the position do not move along to the next leaf: keys of two sensors have less in common, so leaves
//! with both hold fewer rows.
//!
//! Leaves that were split in halves, or that share a neighbour's room (`redistribute.rs`), would never fill up there,
//! and would be rewritten again and again. Ascending inserts instead leave full leaves behind and change one leaf at a
//! time. For the end of the table the descent alone detects ascending inserts (`Bias::Ascending`).
//!
//! The leaf itself shows whether rows ascend at a position: cells are added from the end of the page downwards, so the
//! lowest is the newest. If the newest rows are the rows just before the position, in their order, the next row will
//! probably follow them. A page that was written in one go has its cells in this order, too. So at the end of a leaf
//! the first detection only counts as a hint: the row is inserted like any other, and the leaf is marked (`ASCENDS`).
//! If the leaf fills up in this order again, rows do ascend there.

use crate::page::edit::{keep_mark, mark};
use crate::page::entries::{Bias, Entry};
use crate::page::key::Key;
use crate::page::layout::{ASCENDS, FLAGS_AT, Payload};
use crate::page::node::Node;
use crate::table::path::Path;
use crate::table::tree::Tree;
use tidalite_pager::{PageWrite, Ptr, Result};

/// Number of the leaf's newest rows that must lie just before the position, if the position is at the end of a leaf.
const RUN: usize = 4;
/// As `RUN`, for a position inside a leaf. The newest rows must then also be at least a fifth of the leaf's rows: fewer
/// may come from a single call at a place where rows do not ascend otherwise.
const RUN_INSIDE: usize = 8;
const RUN_INSIDE_DIV: usize = 5;

/// Whether rows ascend at the position where a row is to be inserted into a full leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SequentialInserts {
    No,
    /// The newest rows of the leaf ascend; but they also ascend if the whole leaf was written at once.
    Maybe,
    Yes,
}

/// Tells whether rows were inserted in ascending order just before `index` of a full leaf.
pub(crate) fn inserts_ascend_at(
    page: &[u8],
    leaf: &Ptr,
    index: usize,
) -> Result<SequentialInserts> {
    let node = Node::open(page, 0, leaf.addr)?;
    let (count, inside) = (node.count(), index < node.count());
    let run = match inside {
        true => RUN_INSIDE.max(count / RUN_INSIDE_DIV),
        false => RUN,
    };
    if index < run {
        return Ok(SequentialInserts::No);
    }
    let mut lowest = node.shape().heap;
    for before in (index - run..index).rev() {
        let cell = node.cell(before)?;
        if cell.offset != lowest {
            return Ok(SequentialInserts::No);
        }
        lowest += cell.size;
    }
    let known = inside || page[FLAGS_AT] & ASCENDS != 0;
    Ok(if known {
        SequentialInserts::Yes
    } else {
        SequentialInserts::Maybe
    })
}

impl Tree {
    /// Inserts an entry into a full leaf where rows ascend, at the end of a descent path. Returns false, with nothing
    /// changed, if the entries do not divide well.
    pub(crate) fn split_at_insert<W: PageWrite>(
        &mut self,
        w: &mut W,
        path: &Path,
        key: Key<'_>,
        payload: Payload<'_>,
    ) -> Result<bool> {
        let (leaf, index) = (&path.leaf, path.index);
        let copy = w.own_page(leaf)?.to_vec();
        let mut group = self.group(true, copy.len());
        group.add_page(&Node::open(&copy, 0, leaf.addr)?, Key::plain(&[]))?;
        group.entries.insert(index, Entry::new(key, payload));
        let count = group.entries.len();
        let fits = |range| group.page_bytes(range) <= copy.len();
        // All entries may fit after a rewrite: a leaf that began with one row had no common prefix until now.
        if fits(0..count) {
            let page = w.page_mut(leaf)?;
            group.write(0..count, 0, page);
            keep_mark(page, &copy);
            return Ok(true);
        }
        let at = (index + 1).min(count - 1);
        if !fits(0..at) || !fits(at..count) {
            return Ok(false);
        }
        let split = self.split_at(w, leaf, None, 0, &group, at)?;
        // The rows after the position, now in a leaf of their own, are probably the beginning of another ascending
        // sequence.
        for half in [leaf, &split.right] {
            mark(w.page_mut(half)?);
        }
        let steps = path.steps.clone();
        self.propagate_split(w, steps, *leaf, 1, Some(split), Bias::Balance)?;
        Ok(true)
    }
}
