//! Descent paths from the root to a position in a leaf: only read, or with every page owned by the transaction.
//!
//! A descent for writing makes each page on the path the transaction's own (`PageWrite::shadow`) and stores its new
//! address in the parent at once, so the tree is consistent after every step.

use crate::page::edit;
use crate::page::node::Node;
use crate::page::prefetch::slots_ahead;
use crate::table::tree::Tree;
use tidalite_pager::{PageRead, PageWrite, Ptr, Result};

/// A branch on a descent path, owned by the transaction, and the entry that the descent took in this branch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) ptr: Ptr,
    pub(crate) index: usize,
}

/// A descent path to a position in a leaf; the transaction owns all its pages.
pub(crate) struct Path {
    pub(crate) steps: Vec<Step>,
    pub(crate) leaf: Ptr,
    pub(crate) index: usize,
    pub(crate) found: bool,
    /// True if the position is after every row of the table, or at the last row.
    pub(super) at_end: bool,
}

impl Path {
    /// The path to the last row of the table, whose entry is to be replaced.
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

/// A descent path that was only read: the transaction need not own any of its pages yet.
pub(crate) struct ReadPath {
    /// The pages of the path, each with the index of the entry taken in the page; the leaf comes last.
    steps: Vec<Step>,
    pub(crate) found: bool,
    /// True if the key is the last of the table, or would be after an insert.
    pub(crate) last: bool,
}

impl Tree {
    /// Descends to the position of `key`; makes every page on the path the transaction's own.
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
        debug_assert!(
            steps.len() + 1 == usize::from(self.height),
            "one step per branch"
        );
        debug_assert!(w.may_change(&ptr), "the transaction owns the leaf");
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

    /// Reads the path to the position of a key and calls `look` with the leaf, the index, and whether the key was
    /// found. Returns `None` for an empty table.
    pub(crate) fn read_path<R: PageRead, T>(
        &self,
        r: &R,
        key: &[u8],
        look: impl FnOnce(&Node<'_>, usize, bool) -> Result<T>,
    ) -> Result<Option<(ReadPath, T)>> {
        if self.root.is_null() {
            return Ok(None);
        }
        let mut last = true;
        let mut path = Vec::with_capacity(usize::from(self.height));
        let mut ptr = self.root;
        for level in (1..self.height).rev() {
            let page = r.page(&ptr)?;
            let node = Node::open(&page, level, ptr.addr)?;
            let index = node.find_child(r, key)?;
            last &= index + 1 == node.count();
            path.push(Step { ptr, index });
            let (child, rows) = node.child(index)?;
            ptr = child;
            r.prefetch(&ptr, slots_ahead(level, rows));
        }
        let page = r.page(&ptr)?;
        let node = Node::open(&page, 0, ptr.addr)?;
        let (index, found) = node.find(r, key)?;
        last &= index + usize::from(found) == node.count();
        path.push(Step { ptr, index });
        debug_assert!(path.len() == usize::from(self.height), "one step per level");
        let looked = look(&node, index, found)?;
        let read_path = ReadPath {
            steps: path,
            found,
            last,
        };
        Ok(Some((read_path, looked)))
    }

    /// Makes every page on a path that was only read the transaction's own, so that the position need not be searched
    /// again. `at_end` is true if an entry inserted there comes after all rows of the table.
    pub(crate) fn own_read_path<W: PageWrite>(
        &mut self,
        w: &mut W,
        read_path: ReadPath,
        at_end: bool,
    ) -> Result<Path> {
        let mut path = read_path.steps;
        debug_assert!(
            path.len() == usize::from(self.height),
            "the path of this tree"
        );
        let mut above: Option<Step> = None;
        for (step, level) in path.iter_mut().zip((1..=self.height).rev()) {
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
        let Some(leaf) = path.pop() else {
            unreachable!("a path ends with a leaf")
        };
        Ok(Path {
            steps: path,
            leaf: leaf.ptr,
            index: leaf.index,
            found: read_path.found,
            at_end,
        })
    }

    /// Adds `change` to the row counts along a path.
    pub(crate) fn count_rows<W: PageWrite>(
        &mut self,
        w: &mut W,
        steps: &[Step],
        change: i64,
    ) -> Result<()> {
        if change == 0 {
            return Ok(());
        }
        debug_assert!(
            steps.len() + 1 == usize::from(self.height),
            "one step per branch"
        );
        self.rows = self.rows.wrapping_add_signed(change);
        for (level, step) in (1..self.height).rev().zip(steps) {
            let page = w.page_mut(&step.ptr)?;
            edit::change_rows(page, level, step.ptr.addr, step.index, change)?;
        }
        Ok(())
    }
}

/// The index of the entry that leads to `key` in an owned branch, the child of this entry, and whether the entry is the
/// branch's last. Slow path for branches with keys that are too long for a page.
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

/// The position of `key` in an owned leaf, and whether the key was found. Slow path for leaves with keys that are too
/// long for a page.
#[cold]
fn spilled_place<W: PageWrite>(w: &W, ptr: &Ptr, key: &[u8]) -> Result<(usize, bool)> {
    let page = w.page(ptr)?;
    Node::open(&page, 0, ptr.addr)?.find(w, key)
}
