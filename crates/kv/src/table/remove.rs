//! Removes rows: an edit of the leaf in place, then rebalancing of sparse pages upward.
//!
//! An empty page is freed and removed from its parent. A sparse page is merged with a neighbour if both fit in one page
//! with room to spare; otherwise the entries are divided evenly between the two. A root branch with one child is
//! replaced by the child.

use crate::error::damaged;
use crate::page::edit;
use crate::page::entries::{Bias, Group};
use crate::page::key::{Key, KeyBuf, Rest, free_rest};
use crate::page::node::Node;
use crate::page::row_count::weight;
use crate::table::free::{OldPayload, VisitedPages, reference_bytes};
use crate::table::path::{Path, Step};
use crate::table::split::Split;
use crate::table::tree::Tree;
use tidalite_pager::{Counters, PageWrite, Ptr, Result};

/// A page is sparse if less than 1/`SPARSE_DIV` of its bytes are used.
const SPARSE_DIV: usize = 4;

/// Two pages are merged if at least 1/`MERGE_ROOM_DIV` of the resulting page is free, so that the next insert does not
/// split it again.
const MERGE_ROOM_DIV: usize = 8;

/// Result of rebalancing a sparse page with a neighbour.
enum Rebalanced {
    /// The two pages were left as they were, because a change would gain nothing.
    Left,
    /// The two pages were merged, so their parent has one entry less.
    Merged,
    /// The two pages share their entries evenly; the new separator may have split the parent.
    Shared(Option<Split>),
}

/// One of two neighbouring pages that are to be rebalanced.
struct Side {
    ptr: Ptr,
    bytes: Vec<u8>,
}

impl Tree {
    /// Removes a row; returns true if it existed.
    ///
    /// # Errors
    /// `Corrupt`, `Io`, `DiskFull`: the transaction must be rolled back.
    ///
    /// # Cost
    /// One page copy per level, the first time that a transaction changes the page; none if the key does not exist.
    pub fn remove<W: PageWrite>(&mut self, w: &mut W, key: &[u8]) -> Result<bool> {
        match self.read_path(&*w, key, |_, _, _| Ok(()))? {
            Some((read_path, ())) if read_path.found => {
                let path = self.own_read_path(w, read_path, false)?;
                self.remove_at(w, path, OldPayload::Free)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Removes a row that is known to exist.
    pub(crate) fn remove_payload<W: PageWrite>(
        &mut self,
        w: &mut W,
        key: &[u8],
        old: OldPayload,
    ) -> Result<()> {
        let path = self.own_path(w, key)?;
        self.remove_at(w, path, old)
    }

    /// Removes the row at the end of a descent path.
    fn remove_at<W: PageWrite>(&mut self, w: &mut W, path: Path, old: OldPayload) -> Result<()> {
        let (leaf, at) = (path.leaf, path.leaf.addr);
        let page = w.page_mut(&leaf)?;
        let cell = Node::open(page, 0, at)?.cell(path.index)?;
        let rows = if self.is_multi() {
            weight(cell.payload())
        } else {
            1
        };
        let (tag, bytes) = (cell.tag, reference_bytes(cell.payload()));
        let rest: Option<Rest> = cell.rest.first_chunk().copied();
        edit::remove(page, 0, at, path.index)?;
        if let Some(rest) = rest {
            free_rest(w, &rest, at)?;
        }
        if old == OldPayload::Free {
            self.free_payload(w, tag, &bytes, at, &mut VisitedPages::default())?;
        }
        self.count_rows(w, &path.steps, rows.cast_signed().wrapping_neg())?;
        self.keys = self.keys.saturating_sub(u64::from(self.is_multi()));
        self.rebalance_path(w, path.steps, leaf, false)
    }

    /// Removes all rows and frees every page and extent.
    ///
    /// # Errors
    /// As for `remove`.
    ///
    /// # Cost
    /// Reads every branch, and every leaf whose rows may refer to pages or extents.
    pub fn clear<W: PageWrite>(&mut self, w: &mut W) -> Result<()> {
        if !self.root.is_null() {
            self.free_below(w, &self.root, self.height - 1, &mut VisitedPages::default())?;
        }
        *self = self.emptied();
        Ok(())
    }

    /// Rebalances the tree after a removal from `page`, which lies below the last branch of `steps`. If `all`, any page
    /// of the descent path may be sparse, as after a range delete.
    pub(crate) fn rebalance_path<W: PageWrite>(
        &mut self,
        w: &mut W,
        mut steps: Vec<Step>,
        mut page: Ptr,
        all: bool,
    ) -> Result<()> {
        debug_assert!(
            steps.len() + 1 == usize::from(self.height),
            "the path of this tree"
        );
        let mut level = 0;
        loop {
            let (count, live) = edit::fill(w.page_mut(&page)?, level, page.addr)?;
            let Some(parent) = steps.pop() else {
                return self.reduce_height(w);
            };
            if count == 0 {
                w.free_page(&page);
                remove_child(w, &parent.ptr, level + 1, parent.index)?;
            } else if live * SPARSE_DIV < w.page_size() {
                match self.rebalance(w, &parent, level)? {
                    Rebalanced::Left if !all => return Ok(()),
                    Rebalanced::Left => {}
                    Rebalanced::Merged => {}
                    Rebalanced::Shared(split) => {
                        return self.propagate_split(
                            w,
                            steps,
                            parent.ptr,
                            level + 2,
                            split,
                            Bias::Balance,
                        );
                    }
                }
            } else if !all {
                return Ok(());
            }
            page = parent.ptr;
            level += 1;
        }
    }

    /// Reduces the height of the tree while its root is empty or has only one child.
    pub(crate) fn reduce_height<W: PageWrite>(&mut self, w: &mut W) -> Result<()> {
        while self.height > 0 {
            let (level, root) = (self.height - 1, self.root);
            let only = root_children(w, &root, level)?;
            match only {
                RootChildren::Zero => *self = self.emptied(),
                RootChildren::Single(child) => {
                    self.root = child;
                    self.height = level;
                }
                RootChildren::Several => return Ok(()),
            }
            w.free_page(&root);
        }
        Ok(())
    }

    /// Merges the sparse page of this `level` at `parent` with a neighbour, or shares entries with the neighbour.
    fn rebalance<W: PageWrite>(
        &mut self,
        w: &mut W,
        parent: &Step,
        level: u8,
    ) -> Result<Rebalanced> {
        let (above, at) = (level + 1, parent.ptr.addr);
        let left_index = parent.index.saturating_sub(1);
        let right_index = left_index + 1;
        let (left_ptr, right_ptr, separator) = {
            let page = w.page(&parent.ptr)?;
            let node = Node::open(&page, above, at)?;
            if node.count() <= right_index {
                return Ok(Rebalanced::Left);
            }
            let left = node.child(left_index)?.0;
            let right = node.child(right_index)?.0;
            if left.addr == right.addr {
                return Err(damaged("table branch", at, "a child twice", "once"));
            }
            (left, right, node.stored_key(right_index)?)
        };
        debug_assert!(above < self.height, "the parent is in this tree");
        debug_assert!(w.may_change(&parent.ptr), "the transaction owns the parent");
        let left = side(w, left_ptr)?;
        let right = side(w, right_ptr)?;

        let mut group = self.group(level == 0, w.page_size());
        let first = Node::open(&left.bytes, level, left.ptr.addr)?;
        group.add_page(&first, Key::plain(&[]))?;
        let left_count = group.entries.len();
        group.add_page(
            &Node::open(&right.bytes, level, right.ptr.addr)?,
            separator.key(),
        )?;
        let count = group.entries.len();

        let page_size = w.page_size();
        let own_left = |this: &mut W| -> Result<Ptr> { this.shadow(&left.ptr) };
        if group.page_bytes(0..count) <= page_size - page_size / MERGE_ROOM_DIV {
            let own = own_left(w)?;
            group.write(0..count, level, w.page_mut(&own)?);
            w.free_page(&right.ptr);
            let rows = group.rows(0..count);
            let bytes = w.page_mut(&parent.ptr)?;
            edit::set_child(bytes, above, at, left_index, &own, rows)?;
            edit::remove(bytes, above, at, right_index)?;
            if level == 0 {
                free_rest(w, &separator.rest, at)?;
            }
            debug_assert!(own.addr != right.ptr.addr, "the freed page is not used");
            Counters::bump(&w.counters().pages_merged);
            return Ok(Rebalanced::Merged);
        }
        if group.split_point(page_size, Bias::Balance) == Some(left_count) {
            return Ok(Rebalanced::Left);
        }
        let own = own_left(w)?;
        let own_right = w.shadow(&right.ptr)?;
        let split = self.split(w, &own, Some(own_right), level, &group, Bias::Balance)?;
        let bytes = w.page_mut(&parent.ptr)?;
        edit::set_child(bytes, above, at, left_index, &own, split.left_rows)?;
        edit::remove(bytes, above, at, right_index)?;
        if level == 0 {
            free_rest(w, &separator.rest, at)?;
        }
        let step = Step {
            ptr: parent.ptr,
            index: left_index,
        };
        let further = self.insert_child(w, &step, above, &split, Bias::Balance)?;
        Ok(Rebalanced::Shared(further))
    }
}

fn side<W: PageWrite>(w: &W, ptr: Ptr) -> Result<Side> {
    let bytes = w.page(&ptr)?.to_vec();
    Ok(Side { ptr, bytes })
}

/// Removes a child's entry from its branch.
fn remove_child<W: PageWrite>(w: &mut W, branch: &Ptr, level: u8, index: usize) -> Result<()> {
    debug_assert!(level > 0, "only branches have children");
    let page = w.page_mut(branch)?;
    let (count, _) = edit::fill(page, level, branch.addr)?;
    // The second entry becomes the first and loses its key, whose extent is then freed.
    let given_up = if count > 1 {
        let node = Node::open(page, level, branch.addr)?;
        node.stored_key(index.max(1))?
    } else {
        KeyBuf::default()
    };
    if index > 0 || count == 1 {
        edit::remove(page, level, branch.addr, index)?;
    } else {
        let copy = page.to_vec();
        let mut group = Group::empty(false, copy.len(), false);
        let node = Node::open(&copy, level, branch.addr)?;
        group.add_page(&node, Key::plain(&[]))?;
        group.write(1..count, level, page);
    }
    free_rest(w, &given_up.rest, branch.addr)
}

/// Number of children of a root.
enum RootChildren {
    Zero,
    Single(Ptr),
    Several,
}

fn root_children<W: PageWrite>(w: &W, root: &Ptr, level: u8) -> Result<RootChildren> {
    let page = w.page(root)?;
    let (count, _) = edit::fill(&page, level, root.addr)?;
    match (count, level) {
        (0, _) => Ok(RootChildren::Zero),
        (1, 1..) => Ok(RootChildren::Single(
            Node::open(&page, level, root.addr)?.child(0)?.0,
        )),
        _ => Ok(RootChildren::Several),
    }
}
