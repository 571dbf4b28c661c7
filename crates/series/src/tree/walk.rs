//! The walk over the links of a series' tree, which check, salvage, relocation and cold storage share: top-down, in
//! ascending order of time. A visitor decides at each link whether the node below it is read.

use crate::link::{Entry, Link};
use crate::node::Spine;
use crate::tree::series_tree::SeriesTree;
use tidalite_base::Corrupt;
use tidalite_codec::ColumnType;
use tidalite_pager::{Error, PageRead, Result};

/// Decision of a visitor when the walk reaches a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Continue with the links below this link; a leaf has none.
    Descend,
    /// Skip everything below this link.
    Skip,
    /// End the walk here.
    Stop,
}

/// Receives the links, nodes and damage that a walk meets.
pub(crate) trait Visitor {
    /// Whether the walk reads the statistics of the links. If not, entries have no statistics.
    const STATISTICS: bool = false;

    /// Called for each link to a leaf (level 0) or to a node. The walk itself does not read leaves.
    ///
    /// # Errors
    /// An error ends the walk.
    fn link(&mut self, level: u8, entry: &Entry) -> Result<Step>;

    /// Called for each node that was read, before its links are visited. The links have no statistics if the statistics
    /// are damaged.
    ///
    /// # Errors
    /// An error ends the walk.
    fn node(&mut self, entry: &Entry, spine: &Spine<'_>, links: &[Entry]) -> Result<()> {
        let _ = (entry, spine, links);
        Ok(())
    }

    /// Called if a node is damaged, so that everything below it is skipped, or if only the statistics of a node are
    /// damaged.
    ///
    /// # Errors
    /// An error ends the walk.
    fn damaged(&mut self, entry: &Entry, corrupt: Corrupt) -> Result<()> {
        let _ = entry;
        Err(corrupt.into())
    }
}

impl SeriesTree {
    /// Walks over all links of the tree. Returns false if the visitor ended the walk.
    ///
    /// # Errors
    /// `Io`, and errors of the visitor.
    ///
    /// # Cost
    /// Reads the nodes into which the visitor descends.
    pub(crate) fn walk<R: PageRead, V: Visitor>(&self, r: &R, visitor: &mut V) -> Result<bool> {
        let tops = self.tops_with_levels().rev();
        let open = tops.map(|(level, entry)| match V::STATISTICS {
            true => (level, entry.clone()),
            false => (level, Entry::without_stats(entry.link)),
        });
        walk(r, &self.types, open.collect(), visitor)
    }
}

/// Walks over the links `open`, the last one first, and the links below them. Returns false if the visitor ended the
/// walk.
fn walk<R: PageRead, V: Visitor>(
    r: &R,
    types: &[ColumnType],
    mut open: Vec<(u8, Entry)>,
    visitor: &mut V,
) -> Result<bool> {
    while let Some((level, entry)) = open.pop() {
        match visitor.link(level, &entry)? {
            Step::Stop => return Ok(false),
            Step::Descend if level > 0 => {}
            Step::Descend | Step::Skip => continue,
        }
        let spine = match Spine::open(r, &entry.link, level, types.len()) {
            Err(Error::Corrupt(corrupt)) => {
                visitor.damaged(&entry, corrupt)?;
                continue;
            }
            spine => spine?,
        };
        let wanted = if V::STATISTICS { types } else { &[] };
        let links = match spine.entries(r, wanted) {
            Err(Error::Corrupt(corrupt)) => {
                visitor.damaged(&entry, corrupt)?;
                spine.entries(r, &[])?
            }
            links => links?,
        };
        visitor.node(&entry, &spine, &links)?;
        open.extend(links.into_iter().rev().map(|link| (level - 1, link)));
    }
    Ok(true)
}

/// Visitor that calls a function to decide at each link.
struct Decide<F>(F);

impl<F: FnMut(u8, &Link) -> Step> Visitor for Decide<F> {
    fn link(&mut self, level: u8, entry: &Entry) -> Result<Step> {
        Ok((self.0)(level, &entry.link))
    }
}

impl SeriesTree {
    /// True if `decide` returns [`Step::Stop`] for a link of the tree. Reads only the lists of links in nodes, without
    /// statistics.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    pub(crate) fn any_link<R: PageRead>(
        &self,
        r: &R,
        decide: impl FnMut(u8, &Link) -> Step,
    ) -> Result<bool> {
        Ok(!self.walk(r, &mut Decide(decide))?)
    }

    /// Calls `f` with the link of every leaf, in ascending order, until `f` returns false. Reads nodes only.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    pub fn for_each_leaf_while<R: PageRead>(
        &self,
        r: &R,
        mut f: impl FnMut(&Link) -> bool,
    ) -> Result<()> {
        let leaf = |level, link: &Link| match level {
            0 if !f(link) => Step::Stop,
            _ => Step::Descend,
        };
        self.any_link(r, leaf).map(drop)
    }
}

/// True if `decide` returns [`Step::Stop`] for `link`, whose target has this `level`, or for a link below it. Reads
/// only the lists of links in nodes, without statistics.
///
/// # Errors
/// `Io`, `Corrupt`.
pub(crate) fn any_below<R: PageRead>(
    r: &R,
    types: &[ColumnType],
    level: u8,
    link: &Link,
    decide: impl FnMut(u8, &Link) -> Step,
) -> Result<bool> {
    let open = vec![(level, Entry::without_stats(*link))];
    Ok(!walk(r, types, open, &mut Decide(decide))?)
}
