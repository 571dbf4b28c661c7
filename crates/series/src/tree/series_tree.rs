//! The tree of a series in memory: the decoded record, and modifications of the tree.
//!
//! 1. `root` is set exactly if `height > 0`; it points to a node of level `height`.
//! 2. `pending` holds links to leaves after everything below `root`, ascending and disjoint. A record holds at most
//!    [`PENDING_MAX`] of them; during a transaction there may be up to `PENDING_OPEN_MAX`, so that a bulk load writes a
//!    node once, when it is full.
//! 3. Rows of the tree are sorted; rows with equal times share one vector, in arrival order. None of this depends on
//!    the delta.
//! 4. `open` is the leaf for the transaction's newest rows; it follows everything else. It cannot be read before it is
//!    closed; every other modification closes it first.

use crate::leaf::writer::OpenLeaf;
use crate::link::Entry;
use crate::node::{HEIGHT_MAX, NODE_LINKS_MAX};
use crate::packer::Packer;
use crate::row::Row;
use crate::tree::edit::{Edit, STANDALONE_ROWS, Split};
use tidalite_base::SeriesId;
use tidalite_base::limits::{COLUMNS_MAX, VECTOR_ROWS};
use tidalite_codec::{ColumnType, EncoderState, RowsRef, Stats};
use tidalite_pager::{Error, PageWrite, Result};

/// Maximum number of pending links in a record.
pub const PENDING_MAX: usize = 8;
/// Maximum number of pending links in memory during a transaction.
const PENDING_OPEN_MAX: usize = 64;

/// The tree of one series.
#[derive(Clone, Debug)]
pub struct SeriesTree {
    pub(crate) id: SeriesId,
    pub(crate) types: Vec<ColumnType>,
    /// One encoder state per column, then the encoder state of the times.
    pub(crate) states: Vec<EncoderState>,
    pub(crate) height: u8,
    pub(crate) root: Option<Entry>,
    pub(crate) pending: Vec<Entry>,
    pub(crate) open: Option<Box<OpenLeaf>>,
    pub(crate) fanout: usize,
}

impl SeriesTree {
    /// Creates an empty tree.
    ///
    /// # Errors
    /// `Limit` with more than 64 columns.
    pub fn new(id: SeriesId, types: &[ColumnType]) -> Result<Self> {
        if types.len() > COLUMNS_MAX {
            return Err(Error::Limit {
                what: "columns of a series",
                found: types.len() as u64,
                limit: COLUMNS_MAX as u64,
            });
        }
        Ok(Self {
            id,
            types: types.to_vec(),
            states: vec![EncoderState::default(); types.len() + 1],
            height: 0,
            root: None,
            pending: Vec::new(),
            open: None,
            fanout: NODE_LINKS_MAX,
        })
    }

    /// Sets the maximum number of links per node, so that tests can build high trees from few rows.
    ///
    /// # Panics
    /// If `fanout` is not between 2 and 64.
    #[must_use]
    pub fn with_fanout(mut self, fanout: usize) -> Self {
        assert!((2..=NODE_LINKS_MAX).contains(&fanout), "links of a node");
        self.fanout = fanout;
        self
    }

    /// The id of the series to which the tree belongs.
    #[must_use]
    pub fn id(&self) -> SeriesId {
        self.id
    }

    /// The types of the columns.
    #[must_use]
    pub fn types(&self) -> &[ColumnType] {
        &self.types
    }

    /// Number of levels of nodes above the leaves; 0 while all links to leaves are pending (stored in the record
    /// itself).
    #[must_use]
    pub fn height(&self) -> u8 {
        self.height
    }

    pub(crate) fn tops(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.tops_with_levels().map(|(_, entry)| entry)
    }

    /// The links in the record, each with the level of its target: 0 for a leaf.
    pub(crate) fn tops_with_levels(&self) -> impl DoubleEndedIterator<Item = (u8, &Entry)> {
        debug_assert!(self.open.is_none(), "rows are read after `close_leaf`");
        let root = self.root.iter().map(|root| (self.height, root));
        root.chain(self.pending.iter().map(|entry| (0, entry)))
    }

    /// Number of rows in the tree.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.tops()
            .fold(0, |sum, entry| sum.saturating_add(entry.link.count))
    }

    /// First and last timestamp in the tree; `None` if the tree is empty.
    #[must_use]
    pub fn span(&self) -> Option<(i64, i64)> {
        let first = self.tops().next()?;
        let last = self.tops().next_back()?;
        Some((first.link.begin, last.link.end))
    }

    /// True if all rows are before `time`, including rows of the open leaf.
    #[must_use]
    pub fn ends_before(&self, time: i64) -> bool {
        if let Some(open) = &self.open {
            return open.span().1 < time;
        }
        let last = self.pending.last().or(self.root.as_ref());
        last.is_none_or(|last| last.link.end < time)
    }

    /// The first row, taken from the statistics; if several rows have its time, the first of them.
    #[must_use]
    pub fn first_row(&self) -> Option<Row> {
        let entry = self.tops().next()?;
        let words = entry.stats.iter().map(Stats::first);
        Some(Row {
            time: entry.link.begin,
            words: words.collect::<Option<_>>()?,
        })
    }

    /// The last row, taken from the statistics; if several rows have its time, the last of them.
    #[must_use]
    pub fn last_row(&self) -> Option<Row> {
        self.tops().next_back()?.last_row()
    }

    /// Number of bytes of memory that the decoded record uses.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let column = size_of::<EncoderState>() + size_of::<ColumnType>();
        let entry = size_of::<Entry>() + self.types.len() * size_of::<Stats>();
        size_of::<Self>() + self.types.len() * column + self.tops().count() * entry
    }

    /// Length in bytes of all leaves, including the padding to their alignment. Nodes are not counted.
    #[must_use]
    pub fn stored_bytes(&self) -> u64 {
        self.tops()
            .fold(0, |sum, entry| sum.saturating_add(entry.link.bytes))
    }

    /// Asserts invariants 1 and 2 above, and that each column has its encoder state and its statistics.
    pub(crate) fn assert_invariants(&self) {
        assert_eq!(self.root.is_some(), self.height > 0, "a root has a height");
        assert_eq!(
            self.states.len(),
            self.types.len() + 1,
            "a state for each column, and for the times"
        );
        let mut before = None;
        for entry in self.root.iter().chain(&self.pending) {
            assert_eq!(
                entry.stats.len(),
                self.types.len(),
                "statistics of every column"
            );
            assert!(
                before.is_none_or(|before| before <= entry.link.begin),
                "links ascend"
            );
            before = Some(entry.link.end);
        }
        if let Some(open) = &self.open {
            assert!(
                before.is_none_or(|before| before <= open.span().0),
                "the open leaf follows everything else"
            );
        }
    }

    pub(crate) fn edit<'a, W: PageWrite>(
        &'a mut self,
        w: &'a mut W,
        packer: &'a mut Packer,
    ) -> (
        Edit<'a, W>,
        &'a mut Option<Entry>,
        &'a mut u8,
        &'a mut Vec<Entry>,
    ) {
        let edit = Edit {
            w,
            packer,
            id: self.id,
            types: &self.types,
            states: &mut self.states,
            fanout: self.fanout,
        };
        (edit, &mut self.root, &mut self.height, &mut self.pending)
    }

    /// Adds rows, which must be sorted, with at most 1024 rows of equal time, to the tree. They replace all existing
    /// rows with these times.
    ///
    /// Rows after all others go to a leaf that stays open for more rows; call `close_leaf` or `save` before reading
    /// them.
    ///
    /// Cost: appended rows are encoded once. Rows between existing ones cause the leaves that they touch, and the nodes
    /// above, to be rewritten.
    ///
    /// # Errors
    /// `DiskFull`, `Io`; `Corrupt` if a leaf that must be merged is damaged. The transaction must then be rolled back.
    ///
    /// # Panics
    /// If the number of columns differs from the number of columns of the series.
    pub fn link<W: PageWrite>(
        &mut self,
        w: &mut W,
        packer: &mut Packer,
        rows: RowsRef<'_>,
    ) -> Result<()> {
        assert_eq!(
            rows.column_count(),
            self.types.len(),
            "the columns of the series"
        );
        debug_assert!(rows.is_sorted(), "rows to link are sorted");
        let Some(&first) = rows.times().first() else {
            return Ok(());
        };
        if let Some(open) = &self.open {
            if open.span().1 < first {
                return self.append(w, packer, rows);
            }
            self.close_leaf(w, packer)?;
        }
        // Divides the rows into three parts: below the root, below the pending links, and after all existing rows.
        let root_end = match (&self.root, self.pending.first()) {
            (None, _) => 0,
            (Some(_), Some(first)) => rows.lower_bound(first.link.begin),
            (Some(root), None) => rows.times().partition_point(|&t| t <= root.link.end),
        };
        let pending_end = match self.pending.last() {
            Some(last) => rows
                .times()
                .partition_point(|&t| t <= last.link.end)
                .max(root_end),
            None => root_end,
        };
        assert!(
            root_end <= pending_end && pending_end <= rows.len(),
            "three parts of the rows"
        );
        let (mut edit, root, height, pending) = self.edit(w, packer);
        if root_end > 0
            && let Some(entry) = root.take()
        {
            let links = edit.insert(*height, vec![entry], rows.slice(0..root_end))?;
            (*root, *height) = build_levels(&mut edit, *height, links, Split::Even)?;
        }
        if pending_end > root_end {
            let links = std::mem::take(pending);
            *pending = edit.insert(0, links, rows.slice(root_end..pending_end))?;
        }
        let mut new = rows.slice(pending_end..rows.len());
        if !new.is_empty()
            && let Some(last) = pending.pop_if(|last| last.link.count < STANDALONE_ROWS as u64)
        {
            // The last leaf has few rows, so it takes the first of the following rows, up to a whole vector.
            let mut few = edit.read_leaf(&last)?;
            assert!(few.len() < STANDALONE_ROWS, "room in its vector");
            edit.mark_dead(&last)?;
            let part = new.slice(0..new.cut(VECTOR_ROWS - few.len()));
            few.extend(part);
            new = new.slice(part.len()..new.len());
            self.append(w, packer, few.view())?;
        }
        self.append(w, packer, new)
    }

    /// Appends rows after all others, to the open leaf.
    fn append<W: PageWrite>(
        &mut self,
        w: &mut W,
        packer: &mut Packer,
        rows: RowsRef<'_>,
    ) -> Result<()> {
        let mut at = 0;
        while at < rows.len() {
            let before = self.open.as_ref().map_or(0, |leaf| leaf.bytes());
            let mut leaf = self.open.take().unwrap_or_else(|| packer.take_leaf());
            at += leaf.fill(&self.types, &mut self.states, rows.slice(at..rows.len()));
            packer.update_open_bytes(before, leaf.bytes());
            let full = leaf.is_full();
            self.open = Some(leaf);
            if full || at < rows.len() {
                self.close_leaf(w, packer)?;
            }
        }
        self.flush_pending(w, packer, PENDING_OPEN_MAX)?;
        if cfg!(debug_assertions) {
            self.assert_invariants();
        }
        Ok(())
    }

    /// Number of bytes of memory that the open leaf uses; 0 if no leaf is open.
    #[must_use]
    pub fn open_bytes(&self) -> usize {
        self.open.as_ref().map_or(0, |leaf| leaf.bytes())
    }

    /// Passes the open leaf to the packer. After `Packer::flush` the rows of this leaf can be read.
    ///
    /// # Errors
    /// `DiskFull`, `Io`; `Corrupt` if a node that receives the link is damaged.
    pub fn close_leaf<W: PageWrite>(&mut self, w: &mut W, packer: &mut Packer) -> Result<()> {
        let Some(mut leaf) = self.open.take() else {
            return Ok(());
        };
        packer.update_open_bytes(leaf.bytes(), 0);
        self.pending
            .push(packer.write_leaf(w, &mut leaf, self.id.0)?);
        packer.recycle_leaf(leaf);
        self.flush_pending(w, packer, PENDING_OPEN_MAX)
    }

    /// Moves the pending links from the record into the tree if there are more than `most`. The last link stays,
    /// because the next rows may join its leaf.
    fn flush_pending<W: PageWrite>(
        &mut self,
        w: &mut W,
        packer: &mut Packer,
        most: usize,
    ) -> Result<()> {
        if self.pending.len() <= most {
            return Ok(());
        }
        let (mut edit, root, height, pending) = self.edit(w, packer);
        let last = pending.split_off(pending.len() - 1);
        let leaves = std::mem::replace(pending, last);
        let (level, links) = match root.take() {
            Some(entry) => (*height, edit.append(*height, &entry, leaves)?),
            None => (0, leaves),
        };
        (*root, *height) = build_levels(&mut edit, level, links, Split::Full)?;
        assert!(self.pending.len() <= most, "only the last link stays");
        Ok(())
    }

    /// Removes the rows `from ..= to` and returns their number. Subtrees within the range are freed by reading only
    /// nodes; at most the two leaves at the edges are rewritten.
    ///
    /// # Errors
    /// As `link`.
    pub fn delete<W: PageWrite>(
        &mut self,
        w: &mut W,
        packer: &mut Packer,
        from: i64,
        to: i64,
    ) -> Result<u64> {
        if from > to {
            return Ok(0);
        }
        self.close_leaf(w, packer)?;
        let before = self.count();
        let (mut edit, root, height, pending) = self.edit(w, packer);
        let links = std::mem::take(pending);
        *pending = edit.delete_range(0, links, from, to)?;
        if let Some(entry) = root.take() {
            let links = edit.delete_range(*height, vec![entry], from, to)?;
            (*root, *height) = build_levels(&mut edit, *height, links, Split::Even)?;
            while *height > 1
                && let Some(entry) = &root
                && let Some(child) = edit.only_child(*height, entry)?
            {
                *root = Some(child);
                *height -= 1;
            }
        }
        self.assert_invariants();
        let after = self.count();
        assert!(after <= before, "rows are only removed");
        Ok(before - after)
    }

    /// Ends this transaction's changes: reduces the pending links to [`PENDING_MAX`] and returns the record's bytes.
    ///
    /// # Errors
    /// As `link`.
    pub fn save<W: PageWrite>(&mut self, w: &mut W, packer: &mut Packer) -> Result<Vec<u8>> {
        self.close_leaf(w, packer)?;
        self.flush_pending(w, packer, PENDING_MAX)?;
        Ok(self.encode())
    }
}

/// Builds nodes above `links` of this `level` until one link is left; returns this link and its level. Links to leaves
/// always get a node above them.
pub(crate) fn build_levels<W: PageWrite>(
    edit: &mut Edit<'_, W>,
    mut level: u8,
    mut links: Vec<Entry>,
    split: Split,
) -> Result<(Option<Entry>, u8)> {
    if links.is_empty() {
        return Ok((None, 0));
    }
    while links.len() > 1 || level == 0 {
        if level >= HEIGHT_MAX {
            return Err(Error::Limit {
                what: "levels of a series tree",
                found: u64::from(level) + 1,
                limit: u64::from(HEIGHT_MAX),
            });
        }
        level += 1;
        links = edit.pack(level, &links, split)?;
    }
    assert_eq!(links.len(), 1, "one root");
    Ok((links.pop(), level))
}
