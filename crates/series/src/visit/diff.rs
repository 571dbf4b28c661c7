//! The difference between two versions of a series' tree.

use crate::link::Link;
use crate::node::Spine;
use crate::tree::series_tree::SeriesTree;
use tidalite_pager::{PageRead, Result};

impl SeriesTree {
    /// Finds the times at which the leaves of this version and of the version `base` differ: calls `f(from, to)` with
    /// ascending ranges that contain every row that was added, changed or removed; the ranges may contain other rows.
    /// Blocks that both versions share are not read.
    ///
    /// # Errors
    /// `Io`, `Corrupt`, and errors of `f`.
    ///
    /// # Cost
    /// Reads the nodes that only one of the two versions has.
    pub fn changed_since<R: PageRead>(
        &self,
        r: &R,
        base: &Self,
        base_r: &R,
        mut f: impl FnMut(i64, i64) -> Result<()>,
    ) -> Result<()> {
        let stack = |tree: &Self| {
            let tops = tree.tops_with_levels().rev();
            tops.map(|(level, entry)| (level, entry.link)).collect()
        };
        let (mut new, mut old): (Vec<(u8, Link)>, Vec<_>) = (stack(self), stack(base));
        let mut range: Option<(i64, i64)> = None;
        loop {
            // Processes the link that begins first; if two links begin at the same time, the link of the higher level.
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
                stack.extend((0..spine.len()).rev().map(|i| (level - 1, spine.link(i))));
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
