//! Walks a series' tree by its links, around damage; compares two versions of it.

use crate::link::Link;
use crate::node::Spine;
use crate::tree::series_tree::SeriesTree;
use tidalite_base::Corrupt;
use tidalite_pager::{Error, PageRead, Result};

/// Visitor of a series' tree.
pub trait Walk {
    /// Called for each link, to a leaf (level 0) or a node. Return true to read the node.
    ///
    /// # Errors
    /// An error ends the walk.
    fn enter(&mut self, level: u8, link: &Link) -> Result<bool>;

    /// Called if an entered node is unusable: everything below is skipped.
    ///
    /// # Errors
    /// An error ends the walk.
    fn damaged(&mut self, link: &Link, corrupt: Corrupt) -> Result<()>;
}

impl SeriesTree {
    /// Walks the links, top-down, in time order. Leaves are reported, not read.
    ///
    /// # Errors
    /// `Io`, and errors of the visitor.
    ///
    /// # Cost
    /// The entered nodes.
    pub fn walk<R: PageRead>(&self, r: &R, visitor: &mut dyn Walk) -> Result<()> {
        let mut open = self.stack();
        while let Some((level, link)) = open.pop() {
            if !visitor.enter(level, &link)? || level == 0 {
                continue;
            }
            match Spine::open(r, &link, level, self.types.len()) {
                Ok(spine) => push_links(&mut open, level, &spine),
                Err(Error::Corrupt(corrupt)) => visitor.damaged(&link, corrupt)?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The links of the record with their levels, the first link last.
    fn stack(&self) -> Vec<(u8, Link)> {
        let mut open: Vec<(u8, Link)> = Vec::new();
        open.extend(self.pending.iter().rev().map(|entry| (0, entry.link)));
        open.extend(self.root.iter().map(|root| (self.height, root.link)));
        open
    }

    /// The times at which the leaves of this version and of `base` differ: calls `f(from, to)` with ascending ranges
    /// that contain every row that was added, changed or removed; they may contain others. Blocks that both versions
    /// share are not read.
    ///
    /// # Errors
    /// `Io`, `Corrupt`, and errors of `f`.
    ///
    /// # Cost
    /// The nodes that only one of the two versions has.
    pub fn changed_since<R: PageRead>(
        &self,
        r: &R,
        base: &Self,
        base_r: &R,
        mut f: impl FnMut(i64, i64) -> Result<()>,
    ) -> Result<()> {
        let (mut new, mut old) = (self.stack(), base.stack());
        let mut range: Option<(i64, i64)> = None;
        loop {
            // Process the link that begins first; if two begin at equal times, the higher one.
            let take_new = match (new.last(), old.last()) {
                (None, None) => break,
                (Some(a), Some(b)) if a.1.ptr == b.1.ptr => {
                    new.pop();
                    old.pop();
                    continue;
                }
                (Some((level, a)), Some((base_level, b))) => {
                    a.begin < b.begin || (a.begin == b.begin && level >= base_level)
                }
                (Some(_), None) => true,
                (None, Some(_)) => false,
            };
            let (stack, reader, tree) = if take_new {
                (&mut new, r, self)
            } else {
                (&mut old, base_r, base)
            };
            let Some((level, link)) = stack.pop() else {
                break;
            };
            if level > 0 {
                let spine = Spine::open(reader, &link, level, tree.types.len())?;
                push_links(stack, level, &spine);
                continue;
            }
            match &mut range {
                Some((_, to)) if link.begin <= *to => *to = (*to).max(link.end),
                _ => {
                    if let Some((from, to)) = range.replace((link.begin, link.end)) {
                        f(from, to)?;
                    }
                }
            }
        }
        match range {
            Some((from, to)) => f(from, to),
            None => Ok(()),
        }
    }
}

fn push_links(open: &mut Vec<(u8, Link)>, level: u8, spine: &Spine<'_>) {
    assert!(level > 0, "a node is above the leaves");
    open.extend((0..spine.len()).rev().map(|i| (level - 1, spine.link(i))));
}
