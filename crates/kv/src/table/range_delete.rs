//! Deletes all rows of a range of keys by cutting whole branches off the tree.
//!
//! ```text
//!            from            to
//!        ┌────┊───┬────┬─────┊──┐
//!        [ab  ┊cd][  ] [  ][e┊f ]      pages between the two paths are freed, not read (unless rows may lead to
//!         kept┊   freed      ┊kept     extents or nested tables); the two paths are rewritten and rebalanced
//! ```

use crate::page::entries::Group;
use crate::page::key::{Key, free_rest};
use crate::page::node::Node;
use crate::table::free::VisitedPages;
use crate::table::tree::{HAS_REFERENCES, Tree};
use tidalite_pager::{PageWrite, Ptr, Result};

/// Result of removing a range of rows below a page that the transaction owns.
struct RemovedRange {
    removed: u64,
    /// True if the page has no entries left; the caller must free it.
    empty: bool,
}

impl Tree {
    /// Removes every row with `from <= key < to`; returns the number of removed rows (of key-value pairs, in a table of
    /// sets).
    ///
    /// # Errors
    /// As for `remove`.
    ///
    /// # Cost
    /// Two paths are rewritten, and every page between them is freed. Leaves between them are read only if rows may
    /// refer to extents or nested tables, and in a table of sets, to count the keys.
    pub fn remove_range<W: PageWrite>(&mut self, w: &mut W, from: &[u8], to: &[u8]) -> Result<u64> {
        if from >= to || self.root.is_null() {
            return Ok(0);
        }
        let rows = self.rank(w, to)?.saturating_sub(self.rank(w, from)?);
        if rows == 0 {
            return Ok(0);
        }
        self.root = w.shadow(&self.root)?;
        let (root, level) = (self.root, self.height - 1);
        let bounds = (Some(from), Some(to));
        let mut freed = VisitedPages::default();
        freed.keys = self.is_multi().then_some(0);
        let cut = self.remove_below(w, &root, level, bounds, &mut freed)?;
        self.rows = self.rows.wrapping_sub(cut.removed);
        self.keys = self.keys.saturating_sub(freed.keys.unwrap_or(0));
        if cut.empty {
            w.free_page(&root);
            *self = self.emptied();
            return Ok(cut.removed);
        }
        self.reduce_height(w)?;
        for edge in [from, to] {
            if self.height > 1 {
                let path = self.own_path(w, edge)?;
                self.rebalance_path(w, path.steps, path.leaf, true)?;
            }
        }
        Ok(cut.removed)
    }

    /// Removes the keys `from <= key < to` below an owned page; `None` stands for no bound.
    fn remove_below<W: PageWrite>(
        &self,
        w: &mut W,
        ptr: &Ptr,
        level: u8,
        (from, to): (Option<&[u8]>, Option<&[u8]>),
        freed: &mut VisitedPages,
    ) -> Result<RemovedRange> {
        debug_assert!(
            from.zip(to).is_none_or(|(from, to)| from < to),
            "the range is not empty"
        );
        debug_assert!(w.may_change(ptr), "the transaction owns the page");
        let copy = w.page_mut(ptr)?.to_vec();
        let node = Node::open(&copy, level, ptr.addr)?;
        let mut group = self.group(level == 0, copy.len());
        group.add_page(&node, Key::plain(&[]))?;
        let cut = if level == 0 {
            self.remove_from_leaf(w, &node, &mut group, (from, to), freed)?
        } else {
            let mut children = Vec::with_capacity(node.count());
            for index in 0..node.count() {
                children.push(node.child(index)?);
            }
            let first = from.map_or(Ok(0), |key| node.find_child(w, key))?;
            let last = to.map_or(Ok(node.count() - 1), |key| node.find_child(w, key))?;
            let mut removed = 0u64;
            let mut kept = vec![true; children.len()];
            for index in first..=last.max(first) {
                let (child, rows) = children[index];
                let low = from.filter(|_| index == first);
                let high = to.filter(|_| index == last);
                if low.is_none() && high.is_none() {
                    self.free_below(w, &child, level - 1, freed)?;
                    removed = removed.wrapping_add(rows);
                    kept[index] = false;
                    continue;
                }
                let own = w.shadow(&child)?;
                let cut = self.remove_below(w, &own, level - 1, (low, high), freed)?;
                removed = removed.wrapping_add(cut.removed);
                if cut.empty {
                    w.free_page(&own);
                    kept[index] = false;
                }
                children[index] = (own, rows.wrapping_sub(cut.removed));
            }
            let bytes: Vec<_> = children
                .iter()
                .map(|(ptr, rows)| crate::page::layout::child_bytes(ptr, *rows))
                .collect();
            let mut left = self.group(false, copy.len());
            for (index, entry) in group.entries.iter().enumerate() {
                if !kept[index] || left.entries.is_empty() {
                    // The first remaining entry becomes the first of its branch, where an entry has no key, so the
                    // extent of its key is freed, too.
                    free_rest(w, entry.rest, ptr.addr)?;
                }
                if kept[index] {
                    let mut entry = *entry;
                    entry.payload.bytes = &bytes[index];
                    left.entries.push(entry);
                }
            }
            return write_remaining(w, ptr, level, &left, removed);
        };
        write_remaining(w, ptr, level, &group, cut)
    }

    /// Removes rows from the entries of a leaf; returns the number of removed rows.
    fn remove_from_leaf<W: PageWrite>(
        &self,
        w: &mut W,
        node: &Node<'_>,
        group: &mut Group<'_>,
        (from, to): (Option<&[u8]>, Option<&[u8]>),
        freed: &mut VisitedPages,
    ) -> Result<u64> {
        debug_assert!(
            group.entries.len() == node.count(),
            "the entries of this page"
        );
        let first = from.map_or(Ok((0, false)), |key| node.find(w, key))?.0;
        let last = to
            .map_or(Ok((node.count(), false)), |key| node.find(w, key))?
            .0;
        let last = last.max(first);
        if self.flags & HAS_REFERENCES != 0 {
            for index in first..last {
                let cell = node.cell(index)?;
                free_rest(w, cell.rest, node.at())?;
                self.free_payload(w, cell.tag, cell.payload, node.at(), freed)?;
            }
        }
        group.entries.drain(first..last);
        if let Some(keys) = &mut freed.keys {
            *keys += (last - first) as u64;
        }
        self.leaf_rows(node, first..last)
    }
}

fn write_remaining<W: PageWrite>(
    w: &mut W,
    ptr: &Ptr,
    level: u8,
    left: &Group<'_>,
    removed: u64,
) -> Result<RemovedRange> {
    let count = left.entries.len();
    if count > 0 {
        left.write(0..count, level, w.page_mut(ptr)?);
    }
    Ok(RemovedRange {
        removed,
        empty: count == 0,
    })
}
