//! Iterates over the links to leaves: first the leaves below the root, then the pending links of the record.

use crate::link::Link;
use crate::node::Spine;
use crate::tree::series_tree::SeriesTree;
use tidalite_pager::{PageRead, Result};

#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Before,
    /// The cursor is at the link of a lowest-level node to which `stack` leads.
    Tree,
    Pending(usize),
    After,
}

/// A position among the leaves of a tree. A step reads a node only when it leaves the current node.
pub(crate) struct LeafCursor<'a, R> {
    r: &'a R,
    tree: &'a SeriesTree,
    /// Path from the root: each node and the index of the link taken. Empty, or `height` long.
    stack: Vec<(Spine<'a>, usize)>,
    at: At,
}

impl<'a, R: PageRead> LeafCursor<'a, R> {
    /// Creates a cursor that stands before the first leaf.
    pub(crate) fn new(r: &'a R, tree: &'a SeriesTree) -> Self {
        Self {
            r,
            tree,
            stack: Vec::new(),
            at: At::Before,
        }
    }

    /// The link to the current leaf; `None` if the cursor is at no leaf.
    pub(crate) fn link(&self) -> Option<Link> {
        match self.at {
            At::Before | At::After => None,
            At::Tree => self.stack.last().map(|(spine, i)| spine.link(*i)),
            At::Pending(i) => Some(self.tree.pending[i].link),
        }
    }

    pub(crate) fn is_before(&self) -> bool {
        self.at == At::Before
    }

    /// Moves to the last leaf that begins at or before time `t`, or before the first leaf if all begin later.
    pub(crate) fn seek(&mut self, t: i64) -> Result<()> {
        let pending = self
            .tree
            .pending
            .partition_point(|entry| entry.link.begin <= t);
        if pending > 0 {
            self.at = At::Pending(pending - 1);
        } else if self
            .tree
            .root
            .as_ref()
            .is_some_and(|root| root.link.begin <= t)
        {
            self.descend_from_root(|spine| spine.link_at(t))?;
        } else {
            self.at = At::Before;
        }
        Ok(())
    }

    fn descend_from_root(&mut self, choose: impl Fn(&Spine<'a>) -> usize) -> Result<()> {
        self.stack.clear();
        if let Some(root) = &self.tree.root {
            self.descend(root.link, choose)?;
            self.at = At::Tree;
        }
        Ok(())
    }

    /// Descends from `link` to a node of the lowest level; `choose` returns the index of the link to take in each node.
    fn descend(&mut self, mut link: Link, choose: impl Fn(&Spine<'a>) -> usize) -> Result<()> {
        while self.stack.len() < usize::from(self.tree.height) {
            let level = self.tree.height - self.stack.len() as u8;
            let spine = Spine::open(self.r, &link, level, self.tree.types.len())?;
            let i = choose(&spine);
            link = spine.link(i);
            assert!(i < spine.len(), "a link of the node");
            self.stack.push((spine, i));
        }
        assert_eq!(
            self.stack.len(),
            usize::from(self.tree.height),
            "a path to the lowest level"
        );
        Ok(())
    }

    /// Moves to the next leaf; from the last leaf to the position after it.
    pub(crate) fn next(&mut self) -> Result<()> {
        let pending = self.tree.pending.len();
        match self.at {
            At::Before if self.tree.root.is_some() => return self.descend_from_root(|_| 0),
            At::Tree => {
                while let Some((spine, i)) = self.stack.last_mut() {
                    if *i + 1 < spine.len() {
                        *i += 1;
                        let link = spine.link(*i);
                        return self.descend(link, |_| 0);
                    }
                    self.stack.pop();
                }
                self.at = if pending > 0 {
                    At::Pending(0)
                } else {
                    At::After
                };
            }
            At::Before if pending > 0 => self.at = At::Pending(0),
            At::Pending(i) if i + 1 < pending => self.at = At::Pending(i + 1),
            At::Before | At::Pending(_) | At::After => self.at = At::After,
        }
        Ok(())
    }

    /// Moves to the previous leaf; from the first leaf to the position before it.
    pub(crate) fn previous(&mut self) -> Result<()> {
        let pending = self.tree.pending.len();
        match self.at {
            At::After if pending > 0 => self.at = At::Pending(pending - 1),
            At::Pending(i) if i > 0 => self.at = At::Pending(i - 1),
            At::After | At::Pending(_) if self.tree.root.is_some() => {
                return self.descend_from_root(|spine| spine.len() - 1);
            }
            At::Tree => {
                while let Some((spine, i)) = self.stack.last_mut() {
                    if *i > 0 {
                        *i -= 1;
                        let link = spine.link(*i);
                        return self.descend(link, |spine| spine.len() - 1);
                    }
                    self.stack.pop();
                }
                self.at = At::Before;
            }
            At::Before | At::Pending(_) | At::After => self.at = At::Before,
        }
        Ok(())
    }

    /// Moves to the position after the last leaf.
    pub(crate) fn go_after(&mut self) {
        self.at = At::After;
    }
}
