//! Rows that ascend in many places of a table at once: those of every sensor, where keys begin with the sensor.
//!
//! ```text
//!   [a a a a b b b]      ──>  [a a a a a  ] [b b b]       rows behind the place get a leaf of their own, once
//!   [a a a a a a a]      ──>  [a a a a a a a] [a]
//! ```
//!
//! The rows behind do not go along to the next leaf: keys of two sensors have less in common, so leaves with both hold fewer rows.
//!
//! Halves, or a share of a neighbour's room (`redistribute.rs`), would never be filled there, and would be written again and again: what ascends
//! leaves full leaves behind instead, and changes one leaf at a time. The last place of a table is found by the descent alone
//! (`Bias::Ascending`).
//!
//! That rows ascend at a place the leaf tells by itself: cells are put in from the end of the page downwards, so the lowest is the newest.
//! When the newest ones are those in front of the place, in their order, the next one is likely to follow them. A page that was
//! written in one go has its cells in this order, too. So at the end of a leaf the first time counts for little: the row is put in as any
//! other, and the leaf is marked (`ASCENDS`). If it becomes full in the same order again, rows do ascend there.

use crate::page::edit::{keep_mark, mark};
use crate::page::entries::{Bias, Entry};
use crate::page::key::Key;
use crate::page::layout::{ASCENDS, FLAGS_AT, Payload};
use crate::page::node::Node;
use crate::table::path::Path;
use crate::table::tree::Tree;
use tidalite_pager::{PageWrite, Ptr, Result};

/// So many of the newest rows must lie in front of a place at the end of a leaf.
const RUN: usize = 4;
/// So many, and one in so many of its rows, in front of a place inside a leaf: fewer may be those of one call, which came to where nothing
/// ascends.
const RUN_INSIDE: usize = 8;
const RUN_INSIDE_DIV: usize = 5;

/// Whether rows ascend at the place where one is to go into a full leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Likely {
    No,
    /// It looks so. A leaf that was written in one go looks the same.
    Perhaps,
    Yes,
}

/// Whether rows ascend at `index` of a full leaf.
pub(crate) fn likely(page: &[u8], leaf: &Ptr, index: usize) -> Result<Likely> {
    let node = Node::open(page, 0, leaf.addr)?;
    let (count, inside) = (node.count(), index < node.count());
    let run = match inside {
        true => RUN_INSIDE.max(count / RUN_INSIDE_DIV),
        false => RUN,
    };
    if index < run {
        return Ok(Likely::No);
    }
    let mut lowest = node.shape().heap;
    for before in (index - run..index).rev() {
        let cell = node.cell(before)?;
        if cell.offset != lowest {
            return Ok(Likely::No);
        }
        lowest += cell.size;
    }
    let known = inside || page[FLAGS_AT] & ASCENDS != 0;
    Ok(if known { Likely::Yes } else { Likely::Perhaps })
}

impl Tree {
    /// Puts an entry that belongs at the path's end, in a full leaf where rows ascend, in. False: the entries do not divide well, and nothing was
    /// changed.
    pub(crate) fn put_ascending<W: PageWrite>(
        &mut self,
        w: &mut W,
        path: &Path,
        key: Key<'_>,
        payload: Payload<'_>,
    ) -> Result<bool> {
        let (leaf, index) = (&path.leaf, path.index);
        let copy = w.own_page(leaf)?.to_vec();
        let mut group = self.group(true, copy.len());
        group.take_in(&Node::open(&copy, 0, leaf.addr)?, Key::plain(&[]))?;
        group.entries.insert(index, Entry::new(key, payload));
        let count = group.entries.len();
        let fits = |range| group.page_bytes(range) <= copy.len();
        // A leaf that began with one row had no prefix until now.
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
        // Those behind the place are probably of a place of their own, and all its rows so far.
        for half in [leaf, &split.right] {
            mark(w.page_mut(half)?);
        }
        let steps = path.steps.clone();
        self.carry(w, steps, *leaf, 1, Some(split), Bias::Balance)?;
        Ok(true)
    }
}
