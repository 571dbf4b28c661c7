//! Salvage of a damaged series: the leaves that its tree still reaches, leaves without a tree above them, and the rows
//! that are still readable.

use crate::leaf::layout::is_leaf;
use crate::leaf::reader::Leaf;
use crate::link::{Entry, Link};
use crate::tree::series_tree::SeriesTree;
use crate::tree::walk::{Step, Visitor};
use tidalite_base::{Corrupt, SeriesId};
use tidalite_codec::{ColumnType, Rows};
use tidalite_pager::{Candidate, Error, PageRead, Ptr, Result};

/// The leaves of a damaged tree that can still be reached, and the damaged nodes.
#[derive(Clone, Debug, Default)]
pub struct ReachableLeaves {
    /// Links to leaves, in ascending order. The leaves themselves were not read.
    pub leaves: Vec<Link>,
    /// Links to damaged nodes: the rows below them are lost unless their leaves are found without the tree.
    pub lost: Vec<(Link, Corrupt)>,
}

impl Visitor for ReachableLeaves {
    fn link(&mut self, level: u8, entry: &Entry) -> Result<Step> {
        if level == 0 {
            self.leaves.push(entry.link);
        }
        Ok(Step::Descend)
    }

    fn damaged(&mut self, entry: &Entry, corrupt: Corrupt) -> Result<()> {
        self.lost.push((entry.link, corrupt));
        Ok(())
    }
}

impl SeriesTree {
    /// Finds the leaves that are not below a damaged node.
    ///
    /// # Errors
    /// `Io`.
    ///
    /// # Cost
    /// Reads every node.
    pub fn reachable_leaves<R: PageRead>(&self, r: &R) -> Result<ReachableLeaves> {
        let mut found = ReachableLeaves::default();
        self.walk(r, &mut found)?;
        Ok(found)
    }
}

/// A leaf that was found by its header, without the tree above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrphanLeaf {
    /// Pointer to the directory of the leaf.
    pub ptr: Ptr,
    /// The series to which the rows of the leaf belong.
    pub series: SeriesId,
    /// First timestamp in the leaf.
    pub begin: i64,
    /// Last timestamp in the leaf.
    pub end: i64,
    /// Number of rows in the leaf.
    pub rows: usize,
    /// Number of columns in the leaf.
    pub columns: usize,
}

/// Reads the leaf whose header a search of the file has found, and verifies its directory.
///
/// # Errors
/// `Corrupt` if there is no valid leaf at this place; `Io`.
pub fn orphan_leaf<R: PageRead>(r: &R, found: &Candidate) -> Result<OrphanLeaf> {
    let head = r.bytes(found.header.address, Leaf::HEAD_BYTES)?;
    let (directory, _) = Leaf::lengths(&head);
    let columns = Leaf::columns(&head);
    let mut ptr = found.ptr(directory);
    ptr.kind = found.header.kind;
    if !is_leaf(ptr.kind) {
        let found = format!("{:?}", ptr.kind);
        return Err(Corrupt::new("series leaf", ptr.addr, found, "a leaf").into());
    }
    let leaf = Leaf::parse(r.block(&ptr)?, ptr)?;
    Ok(OrphanLeaf {
        ptr,
        series: SeriesId(found.header.owner),
        begin: leaf.span(0).0,
        end: leaf.end(),
        rows: leaf.count(),
        columns,
    })
}

/// The types of a leaf's columns.
///
/// # Errors
/// `Corrupt`, `Io`.
pub fn leaf_types<R: PageRead>(r: &R, leaf: &OrphanLeaf) -> Result<Vec<ColumnType>> {
    let parsed = Leaf::parse(r.block(&leaf.ptr)?, leaf.ptr)?;
    let types = (0..leaf.columns).map_while(|c| parsed.column_type(c));
    Ok(types.collect())
}

/// The rows of the leaf at `ptr` that are still readable, and the time spans of its damaged vectors. A leaf written
/// before columns were added has fewer columns.
///
/// # Errors
/// `Corrupt` if the directory is damaged; `Io`; `Unsupported` for a leaf in cold form in a build without the feature
/// `cold`.
pub fn leaf_rows<R: PageRead>(r: &R, ptr: &Ptr) -> Result<(Rows, Vec<(i64, i64)>)> {
    let leaf = Leaf::parse(r.block(ptr)?, *ptr)?;
    let columns = leaf.own_columns();
    let mut rows = Rows::with_capacity(columns, leaf.count());
    let mut lost = Vec::new();
    for v in 0..leaf.vectors() {
        let before = rows.len();
        let at = rows.grow(leaf.rows_of(v));
        let mut read = leaf.times(r, v, &mut rows.times[at.clone()]);
        for c in 0..columns {
            read = read.and_then(|()| leaf.column(r, v, c, &mut rows.columns[c][at.clone()]));
        }
        // The error is not damage: the rows are not lost, but this build cannot read them.
        if let Err(error @ Error::Unsupported { .. }) = read {
            return Err(error);
        }
        if read.is_err() || !rows.slice(at).is_sorted() {
            rows.truncate(before);
            lost.push(leaf.span(v));
        }
    }
    debug_assert!(rows.len() <= leaf.count(), "rows of the leaf");
    Ok((rows, lost))
}
