//! Modifies a tree: copy-on-write from the touched leaves up to the root.
//!
//! Every function here takes links of one level and returns the links that replace them: none, one or several. The
//! level above packs them into nodes again. `level` is the level of a link's target: 0 for a leaf.
//!
//! 1. Links always ascend and their spans are disjoint, even if several rows have equal times; begin, end, count and
//!    statistics of a link always match the rows below it.
//! 2. The target of a replaced link is freed (nodes) or recorded as dead (leaves) in the same step.
//! 3. A node is split when it has more links than the fan-out; it is never merged with a neighbour.

use crate::leaf::reader::Leaf;
use crate::link::{Entry, Link};
use crate::node::{self, Node, Spine};
use crate::packer::Packer;
use tidalite_base::SeriesId;
use tidalite_base::limits::VECTOR_ROWS;
use tidalite_codec::{ColumnType, EncoderState, Rows, RowsRef};
use tidalite_pager::{PageWrite, Result};

/// Minimum number of rows between two leaves that form a separate leaf; fewer rows are merged into a neighbouring leaf.
pub(crate) const STANDALONE_ROWS: usize = VECTOR_ROWS / 2;

/// How links or rows are divided that do not fit into one node or leaf.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Split {
    /// All nodes are full except the last: at the right edge of a tree.
    Full,
    /// The links are divided evenly: in the middle of a tree.
    Even,
}

/// A modification of one tree in progress.
pub(crate) struct Edit<'a, W> {
    pub(crate) w: &'a mut W,
    pub(crate) packer: &'a mut Packer,
    pub(crate) id: SeriesId,
    pub(crate) types: &'a [ColumnType],
    /// One encoder state per column, then the encoder state of the times.
    pub(crate) states: &'a mut [EncoderState],
    pub(crate) fanout: usize,
}

impl<W: PageWrite> Edit<'_, W> {
    /// Writes rows as leaves: full leaves, or leaves of equal size if they replace a leaf that grew too large.
    pub(crate) fn leaves(&mut self, rows: RowsRef<'_>, split: Split) -> Result<Vec<Entry>> {
        let full = self.packer.leaf_vectors(self.types.len()) * VECTOR_ROWS;
        let mut leaf = self.packer.take_leaf();
        let mut leaves = Vec::new();
        let mut at = 0;
        while at < rows.len() {
            let rest = rows.len() - at;
            let take = match split {
                Split::Full => rest.min(full),
                Split::Even => {
                    let even = rest.div_ceil(rest.div_ceil(full));
                    even.next_multiple_of(VECTOR_ROWS).min(rest)
                }
            };
            // Rows with equal times stay in one leaf.
            let take = match rows.slice(at..rows.len()).cut(take) {
                0 => take,
                cut => cut,
            };
            let taken = leaf.fill(self.types, self.states, rows.slice(at..at + take));
            assert!(taken > 0, "an empty leaf takes a vector");
            at += taken;
            leaves.push(self.packer.write_leaf(self.w, &mut leaf, self.id.0)?);
        }
        self.packer.recycle_leaf(leaf);
        assert_eq!(rows_below(&leaves), rows.len() as u64, "every row once");
        debug_assert!(node::ascend(&leaves), "leaves ascend");
        Ok(leaves)
    }

    pub(crate) fn read_leaf(&mut self, entry: &Entry) -> Result<Rows> {
        self.packer.make_readable(self.w, entry.link.ptr.addr)?;
        let leaf = Leaf::open(self.w, &entry.link, self.types)?;
        let mut rows = Rows::with_capacity(self.types.len(), leaf.count());
        leaf.read_all(self.w, &mut rows)?;
        assert_eq!(rows.len() as u64, entry.link.count, "the link was verified");
        Ok(rows)
    }

    fn read_node(&mut self, entry: &Entry, level: u8) -> Result<Node> {
        node::read(self.w, &entry.link, level, self.types)
    }

    pub(crate) fn mark_dead(&mut self, entry: &Entry) -> Result<()> {
        self.packer
            .mark_dead(self.w, entry.link.ptr.addr, entry.link.bytes)
    }

    /// Packs links into nodes of this `level`, and returns the links to these nodes.
    pub(crate) fn pack(&mut self, level: u8, links: &[Entry], split: Split) -> Result<Vec<Entry>> {
        if links.is_empty() {
            return Ok(Vec::new());
        }
        debug_assert!(self.fanout >= 2, "a level has fewer nodes than links");
        let nodes = links.len().div_ceil(self.fanout);
        let size = match split {
            Split::Full => self.fanout,
            Split::Even => links.len().div_ceil(nodes),
        };
        links
            .chunks(size)
            .map(|chunk| node::write(self.w, self.id.0, level, chunk))
            .collect()
    }

    /// Inserts rows below a list of links: each link takes the rows from its start up to the start of the next link;
    /// the first link also takes the rows before it.
    pub(crate) fn insert(
        &mut self,
        level: u8,
        links: Vec<Entry>,
        rows: RowsRef<'_>,
    ) -> Result<Vec<Entry>> {
        let mut out = Vec::with_capacity(links.len() + 1);
        let mut links = links.into_iter().peekable();
        let mut at = 0;
        while let Some(entry) = links.next() {
            let stop = match links.peek() {
                Some(next) => rows.lower_bound(next.link.begin).max(at),
                None => rows.len(),
            };
            let part = rows.slice(at..stop);
            at = stop;
            if part.is_empty() {
                out.push(entry);
            } else if level == 0 {
                out.extend(self.insert_leaf(entry, part)?);
            } else {
                let node = self.read_node(&entry, level)?;
                self.w.free_extent(&node.extent);
                let children = self.insert(level - 1, node.entries, part)?;
                out.extend(self.pack(level, &children, Split::Even)?);
            }
        }
        assert_eq!(at, rows.len(), "every row goes below a link");
        debug_assert!(node::ascend(&out), "links ascend");
        Ok(out)
    }

    /// Inserts rows at a leaf: many rows outside the leaf's time span become separate leaves; other rows are merged
    /// with the leaf.
    fn insert_leaf(&mut self, entry: Entry, rows: RowsRef<'_>) -> Result<Vec<Entry>> {
        let alone = |n: usize| if n >= STANDALONE_ROWS { n } else { 0 };
        let head = alone(rows.lower_bound(entry.link.begin));
        let behind = rows.times().partition_point(|&t| t <= entry.link.end);
        let tail = rows.len() - alone(rows.len() - behind);
        assert!(head <= tail, "rows before the leaf, within it, after it");
        let mut out = self.leaves(rows.slice(0..head), Split::Full)?;
        if head == tail {
            out.push(entry);
        } else {
            out.extend(self.merge_leaf(&entry, rows.slice(head..tail))?);
        }
        out.extend(self.leaves(rows.slice(tail..rows.len()), Split::Full)?);
        Ok(out)
    }

    /// Rewrites a leaf with additional rows; where times are equal, the new rows replace the old rows.
    pub(crate) fn merge_leaf(&mut self, entry: &Entry, rows: RowsRef<'_>) -> Result<Vec<Entry>> {
        let old = self.read_leaf(entry)?;
        self.mark_dead(entry)?;
        let merged = Rows::merge_newest(old.view(), rows);
        self.leaves(merged.view(), Split::Even)
    }

    /// Appends links to leaves after everything below `entry`, which is a node of this `level`.
    pub(crate) fn append(
        &mut self,
        level: u8,
        entry: &Entry,
        leaves: Vec<Entry>,
    ) -> Result<Vec<Entry>> {
        assert!(level > 0, "leaves are appended below a node");
        let node = self.read_node(entry, level)?;
        self.w.free_extent(&node.extent);
        let mut children = node.entries;
        if level == 1 {
            children.extend(leaves);
        } else if let Some(last) = children.pop() {
            children.extend(self.append(level - 1, &last, leaves)?);
        }
        self.pack(level, &children, Split::Full)
    }

    /// Removes the rows `from ..= to` below a list of links.
    pub(crate) fn delete_range(
        &mut self,
        level: u8,
        links: Vec<Entry>,
        from: i64,
        to: i64,
    ) -> Result<Vec<Entry>> {
        let before = rows_below(&links);
        let mut out = Vec::with_capacity(links.len());
        for entry in links {
            if entry.link.outside(from, to) {
                out.push(entry);
            } else if entry.link.inside(from, to) {
                self.free_subtree(level, &entry.link)?;
            } else if level == 0 {
                out.extend(self.delete_from_leaf(entry, from, to)?);
            } else {
                let node = self.read_node(&entry, level)?;
                let children = self.delete_range(level - 1, node.entries, from, to)?;
                if rows_below(&children) == entry.link.count {
                    out.push(entry); // the range lies in a gap between rows, so nothing below this link has changed
                } else {
                    self.w.free_extent(&node.extent);
                    out.extend(self.pack(level, &children, Split::Even)?);
                }
            }
        }
        assert!(rows_below(&out) <= before, "rows are only removed");
        debug_assert!(node::ascend(&out), "links ascend");
        Ok(out)
    }

    fn delete_from_leaf(&mut self, entry: Entry, from: i64, to: i64) -> Result<Vec<Entry>> {
        let mut rows = self.read_leaf(&entry)?;
        let begin = rows.view().lower_bound(from);
        let cut = rows.view().between(from, to).len();
        if cut == 0 {
            return Ok(vec![entry]);
        }
        self.mark_dead(&entry)?;
        rows.remove(begin..begin + cut);
        debug_assert_eq!((rows.len() + cut) as u64, entry.link.count, "the rest");
        self.leaves(rows.view(), Split::Even)
    }

    /// Frees everything below a link: reads the links of nodes, and records leaves as dead without reading them.
    fn free_subtree(&mut self, level: u8, link: &Link) -> Result<()> {
        if level == 0 {
            return self.packer.mark_dead(self.w, link.ptr.addr, link.bytes);
        }
        let spine = Spine::open(self.w, link, level, self.types.len())?;
        let extent = spine.extent(&link.ptr, self.w.page_size());
        let children: Vec<Link> = (0..spine.len()).map(|i| spine.link(i)).collect();
        for child in &children {
            self.free_subtree(level - 1, child)?;
        }
        self.w.free_extent(&extent);
        Ok(())
    }

    /// The only child of a node, if the node has just one child; the node is then freed.
    pub(crate) fn only_child(&mut self, level: u8, entry: &Entry) -> Result<Option<Entry>> {
        debug_assert!(level > 1, "the root stays a node");
        let mut node = self.read_node(entry, level)?;
        if node.entries.len() != 1 {
            return Ok(None);
        }
        self.w.free_extent(&node.extent);
        Ok(node.entries.pop())
    }
}

/// Number of rows below these links.
pub(crate) fn rows_below(entries: &[Entry]) -> u64 {
    let counts = entries.iter().map(|entry| entry.link.count);
    counts.fold(0, u64::saturating_add)
}
