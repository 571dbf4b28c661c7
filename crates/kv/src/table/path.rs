//! Descent paths: from the root to a place in a leaf, read only, or with every page owned by the transaction.
//!
//! A descent for writing shadows each page on the way and stores its new address in the parent at
//! once, so the tree is whole after every step.

use crate::page::edit;
use crate::page::node::Node;
use crate::page::prefetch::slots_ahead;
use crate::table::tree::Tree;
use tidalite_pager::{PageRead, PageWrite, Ptr, Result};

/// A branch on the way down, owned by the transaction, and the entry taken there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) ptr: Ptr,
    pub(crate) index: usize,
}

/// The way to a leaf, all of it owned by the transaction.
pub(crate) struct Path {
    pub(crate) steps: Vec<Step>,
    pub(crate) leaf: Ptr,
    pub(crate) index: usize,
    pub(crate) found: bool,
    /// The place is behind every row of the table, or what grows there is the last of its rows.
    pub(super) at_end: bool,
}

impl Path {
    /// The place of the last row, for one that takes its place.
    pub(crate) fn to_last(steps: Vec<Step>, leaf: Ptr, index: usize) -> Self {
        Self {
            steps,
            leaf,
            index,
            found: false,
            at_end: true,
        }
    }
}

/// The way to a key as it was read: nothing on it has been made the transaction's own.
pub(crate) struct Trail {
    /// The pages with the entry taken in each, the leaf last.
    steps: Vec<Step>,
    pub(crate) found: bool,
    /// The key is the last one of the table, or would be.
    pub(crate) last: bool,
}

impl Tree {
    /// Descends to where `key` is or would be, making every page on the way the transaction's own.
    pub(crate) fn own_path<W: PageWrite>(&mut self, w: &mut W, key: &[u8]) -> Result<Path> {
        let mut steps = Vec::with_capacity(usize::from(self.height));
        let mut at_end = true;
        let mut ptr = w.shadow(&self.root)?;
        self.root = ptr;
        for level in (1..self.height).rev() {
            let node = Node::open(w.own_page(&ptr)?, level, ptr.addr)?;
            let found = match node.find_plain_child(key)? {
                Some(index) => Some((index, node.child(index)?.0, index + 1 == node.count())),
                None => None,
            };
            let (index, child, last) = match found {
                Some(found) => found,
                None => spilled_child(w, &ptr, level, key)?,
            };
            at_end &= last;
            let own = w.shadow(&child)?;
            if own != child {
                edit::set_child_ptr(w.page_mut(&ptr)?, level, ptr.addr, index, &own)?;
            }
            steps.push(Step { ptr, index });
            ptr = own;
        }
        let page = w.own_page(&ptr)?;
        let (index, found) = if edit::fill(page, 0, ptr.addr)?.0 == 0 {
            (0, false) // the first leaf of an empty table
        } else {
            let node = Node::open(page, 0, ptr.addr)?;
            let (found, count) = (node.find_plain(key)?, node.count());
            let (index, found) = match found {
                Some(found) => found,
                None => spilled_place(w, &ptr, key)?,
            };
            at_end &= index == count;
            (index, found)
        };
        Ok(Path {
            steps,
            leaf: ptr,
            index,
            found,
            at_end,
        })
    }

    /// The way to where a key is or would be, as it is read, and what `look` makes of the leaf and the place in it; `None` in an empty table.
    pub(crate) fn trail<R: PageRead, T>(
        &self,
        r: &R,
        key: &[u8],
        look: impl FnOnce(&Node<'_>, usize, bool) -> Result<T>,
    ) -> Result<Option<(Trail, T)>> {
        if self.root.is_null() {
            return Ok(None);
        }
        let mut last = true;
        let mut way = Vec::with_capacity(usize::from(self.height));
        let mut ptr = self.root;
        for level in (1..self.height).rev() {
            let page = r.page(&ptr)?;
            let node = Node::open(&page, level, ptr.addr)?;
            let index = node.find_child(r, key)?;
            last &= index + 1 == node.count();
            way.push(Step { ptr, index });
            let (child, rows) = node.child(index)?;
            ptr = child;
            r.prefetch(&ptr, slots_ahead(level, rows));
        }
        let page = r.page(&ptr)?;
        let node = Node::open(&page, 0, ptr.addr)?;
        let (index, found) = node.find(r, key)?;
        last &= index + usize::from(found) == node.count();
        way.push(Step { ptr, index });
        let looked = look(&node, index, found)?;
        let trail = Trail {
            steps: way,
            found,
            last,
        };
        Ok(Some((trail, looked)))
    }

    /// Makes every page on a way the transaction's own: found once, the place need not be looked for again. `at_end`: what is put in there
    /// goes behind all that the table holds.
    pub(crate) fn own_trail<W: PageWrite>(
        &mut self,
        w: &mut W,
        trail: Trail,
        at_end: bool,
    ) -> Result<Path> {
        let mut way = trail.steps;
        let mut above: Option<Step> = None;
        for (step, level) in way.iter_mut().zip((1..=self.height).rev()) {
            let own = w.shadow(&step.ptr)?;
            match above {
                None => self.root = own,
                Some(parent) if own != step.ptr => {
                    let page = w.page_mut(&parent.ptr)?;
                    edit::set_child_ptr(page, level, parent.ptr.addr, parent.index, &own)?;
                }
                Some(_) => {}
            }
            step.ptr = own;
            above = Some(*step);
        }
        let Some(leaf) = way.pop() else {
            unreachable!("a way ends with a leaf")
        };
        Ok(Path {
            steps: way,
            leaf: leaf.ptr,
            index: leaf.index,
            found: trail.found,
            at_end,
        })
    }

    /// Changes the rows counted along a path.
    pub(crate) fn count_rows<W: PageWrite>(
        &mut self,
        w: &mut W,
        steps: &[Step],
        change: i64,
    ) -> Result<()> {
        if change == 0 {
            return Ok(());
        }
        self.rows = self.rows.wrapping_add_signed(change);
        for (level, step) in (1..self.height).rev().zip(steps) {
            let page = w.page_mut(&step.ptr)?;
            edit::change_rows(page, level, step.ptr.addr, step.index, change)?;
        }
        Ok(())
    }
}

/// The entry of an owned branch that leads to `key`, its child, and whether it is the last: where spilled keys are in
/// the way.
#[cold]
fn spilled_child<W: PageWrite>(
    w: &W,
    ptr: &Ptr,
    level: u8,
    key: &[u8],
) -> Result<(usize, Ptr, bool)> {
    let page = w.page(ptr)?;
    let node = Node::open(&page, level, ptr.addr)?;
    let index = node.find_child(w, key)?;
    Ok((index, node.child(index)?.0, index + 1 == node.count()))
}

/// The place of `key` in an owned leaf where spilled keys are in the way.
#[cold]
fn spilled_place<W: PageWrite>(w: &W, ptr: &Ptr, key: &[u8]) -> Result<(usize, bool)> {
    let page = w.page(ptr)?;
    Node::open(&page, 0, ptr.addr)?.find(w, key)
}
