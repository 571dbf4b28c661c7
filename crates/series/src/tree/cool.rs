//! Rewrites old leaves in cold form (smaller, but slower to read): leaves before a given time are read, joined to full
//! leaves, and encoded with models (leaf/cold.rs).
//!
//! 1. A leaf in cold form has its own kind, so links alone show which leaves are due; no leaf is read twice for this.
//! 2. Rows do not change. A later modification of a cold leaf rewrites it as a normal leaf; only moving it keeps the
//!    form.

use crate::leaf::capacity::vectors_max;
use crate::link::{Entry, Link};
use crate::node;
use crate::packer::Packer;
use crate::tree::edit::{Edit, Split, rows_below};
use crate::tree::series_tree::{SeriesTree, build_levels};
use crate::tree::walk::{Step, any_below};
use std::collections::BTreeSet;
use tidalite_base::limits::VECTOR_ROWS;
use tidalite_codec::{COLD, Rows, RowsRef};
use tidalite_pager::{Error, Kind, PageRead, PageWrite, Result};

/// Limit and result of one step that rewrites leaves in cold form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cooling {
    /// Number of rows that may still be read; the last leaf may exceed this.
    pub rows_left: u64,
    /// Leaves are rewritten only if this saves at least one n-th of their bytes, where n is this number; with 0 they
    /// are always rewritten.
    pub saving_part: u64,
    /// Number of rows that the step has read.
    pub looked: u64,
    /// Number of rows that the step has rewritten.
    pub rows: u64,
    /// Number of leaves that contained the rewritten rows before.
    pub leaves: u64,
    /// Length in bytes of the leaves that were rewritten.
    pub bytes_before: u64,
    /// Length in bytes of the leaves in cold form that replace them.
    pub bytes_after: u64,
}

/// Leaves that were read and not rewritten because the cold form would save too little: address and birth of each.
pub type KeptHot = BTreeSet<(u64, u64)>;

fn identity(link: &Link) -> (u64, u64) {
    (link.ptr.addr, link.ptr.birth.0)
}

/// True if a link points to a leaf that is to be read and, if that saves enough, rewritten in cold form.
fn is_due(link: &Link, before: i64, kept: &KeptHot) -> bool {
    link.ptr.kind != Kind::SeriesCold && link.end < before && !kept.contains(&identity(link))
}

impl SeriesTree {
    /// Rewrites leaves with all rows before time `before` in cold form, except those in `kept`, to which it adds leaves
    /// that save too little. Returns true if the limit of `step` was reached before all leaves were done. The tree has
    /// changed if the step has rewritten rows.
    ///
    /// # Errors
    /// As `link`; `Unsupported` in a build without the feature `cold`.
    pub fn cool<W: PageWrite>(
        &mut self,
        w: &mut W,
        packer: &mut Packer,
        before: i64,
        step: &mut Cooling,
        kept: &mut KeptHot,
    ) -> Result<bool> {
        if !COLD {
            return Err(Error::Unsupported {
                found: "leaves in cold form were requested".to_owned(),
                expected: "a build with the feature `cold`: turn it on and build again".to_owned(),
            });
        }
        self.close_leaf(w, packer)?;
        let mut pass = CoolingPass {
            before,
            kept,
            step,
            stop: false,
        };
        let (mut edit, root, height, pending) = self.edit(w, packer);
        if let Some(entry) = root.take() {
            let links = edit.cool(*height, vec![entry], &mut pass)?;
            (*root, *height) = build_levels(&mut edit, *height, links, Split::Even)?;
        }
        if !pass.stop {
            let links = std::mem::take(pending);
            *pending = edit.cool(0, links, &mut pass)?;
        }
        Ok(pass.stop)
    }

    /// True if the tree has leaves that `cool` would read. Reads only the lists of links in nodes, without statistics
    /// or leaves.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    pub fn has_warm_leaves<R: PageRead>(&self, r: &R, before: i64, kept: &KeptHot) -> Result<bool> {
        self.any_link(r, due_at(before, kept))
    }
}

/// Visitor function of a walk that stops at the first leaf that is to be rewritten in cold form.
fn due_at(before: i64, kept: &KeptHot) -> impl Fn(u8, &Link) -> Step {
    move |level, link| match level {
        _ if link.begin >= before => Step::Skip,
        0 if is_due(link, before, kept) => Step::Stop,
        _ => Step::Descend,
    }
}

/// The time range and the progress of a step.
struct CoolingPass<'s> {
    before: i64,
    kept: &'s mut KeptHot,
    step: &'s mut Cooling,
    /// True once the limit of rows was reached with a leaf still due.
    stop: bool,
}

impl<W: PageWrite> Edit<'_, W> {
    fn cool(
        &mut self,
        level: u8,
        links: Vec<Entry>,
        pass: &mut CoolingPass<'_>,
    ) -> Result<Vec<Entry>> {
        if level == 0 {
            return self.cool_leaves(links, pass);
        }
        let mut out = Vec::with_capacity(links.len());
        for entry in links {
            let due = due_at(pass.before, pass.kept);
            if pass.stop || !any_below(self.w, self.types, level, &entry.link, due)? {
                out.push(entry);
                continue;
            }
            let node = node::read(self.w, &entry.link, level, self.types)?;
            let rows = pass.step.rows;
            let children = self.cool(level - 1, node.entries, pass)?;
            if pass.step.rows == rows {
                // All leaves below stay as they are.
                out.push(entry);
                continue;
            }
            self.w.free_extent(&node.extent);
            assert_eq!(
                rows_below(&children),
                entry.link.count,
                "cold storage keeps every row"
            );
            out.extend(self.pack(level, &children, Split::Even)?);
        }
        Ok(out)
    }

    /// Joins neighbouring leaves that are due for cold form to leaves that are as full as possible.
    fn cool_leaves(&mut self, links: Vec<Entry>, pass: &mut CoolingPass<'_>) -> Result<Vec<Entry>> {
        let full = (vectors_max(self.types.len()) * VECTOR_ROWS) as u64;
        let mut out = Vec::with_capacity(links.len());
        let (mut group, mut rows) = (Vec::new(), 0);
        for entry in links {
            let due = is_due(&entry.link, pass.before, pass.kept);
            if !due || rows + entry.link.count > full {
                self.cool_group(&mut group, pass, &mut out)?;
                rows = 0;
            }
            pass.stop |= due && pass.step.rows_left == 0;
            if !due || pass.stop {
                out.push(entry);
                continue;
            }
            rows += entry.link.count;
            group.push(entry);
        }
        self.cool_group(&mut group, pass, &mut out)?;
        debug_assert!(node::ascend(&out), "leaves keep their order");
        Ok(out)
    }

    fn cool_group(
        &mut self,
        group: &mut Vec<Entry>,
        pass: &mut CoolingPass<'_>,
        out: &mut Vec<Entry>,
    ) -> Result<()> {
        let mut rows = Rows::new(self.types.len());
        let (mut ends, mut bytes) = (Vec::new(), 0u64);
        for entry in group.iter() {
            rows.extend(self.read_leaf(entry)?.view());
            ends.push(rows.len());
            bytes = bytes.saturating_add(entry.link.bytes);
        }
        if ends.is_empty() {
            return Ok(());
        }
        debug_assert!(rows.view().is_sorted(), "the leaves follow each other");
        let step = &mut *pass.step;
        step.looked += rows.len() as u64;
        step.rows_left = step.rows_left.saturating_sub(rows.len() as u64);
        // Encoding is most of the work, so the joined rows are encoded only if their size is asked for.
        let joined = match step.saving_part > 0 || ends.len() > 1 {
            true => self.cold_bytes(rows.view()),
            false => 0,
        };
        if step.saving_part > 0 && joined > bytes - bytes.div_ceil(step.saving_part) {
            pass.kept
                .extend(group.iter().map(|entry| identity(&entry.link)));
            out.append(group);
            return Ok(());
        }
        for entry in group.drain(..) {
            self.mark_dead(&entry)?;
        }
        step.leaves += ends.len() as u64;
        step.bytes_before = step.bytes_before.saturating_add(bytes);
        step.rows += rows.len() as u64;
        // Joined leaves may be larger than before. A short leaf may be small because its rows have a constant step;
        // this advantage is lost if these rows end up in the middle of a vector of a longer leaf.
        if ends.len() > 1 && joined >= bytes {
            let mut begin = 0;
            for end in ends {
                out.extend(self.cold_leaves(rows.slice(begin..end), step)?);
                begin = end;
            }
        } else {
            out.extend(self.cold_leaves(rows.view(), step)?);
        }
        Ok(())
    }

    /// Length in bytes of a leaf in cold form that holds these rows, which must fit one leaf.
    fn cold_bytes(&mut self, rows: RowsRef<'_>) -> u64 {
        let mut leaf = self.packer.take_leaf();
        leaf.fill_with_cold(self.types, self.states, rows);
        let bytes = leaf.stored_bytes();
        leaf.empty();
        self.packer.recycle_leaf(leaf);
        bytes
    }

    /// Writes rows as leaves in cold form.
    pub(crate) fn cold_leaves(
        &mut self,
        rows: RowsRef<'_>,
        step: &mut Cooling,
    ) -> Result<Vec<Entry>> {
        let mut leaf = self.packer.take_leaf();
        let mut leaves = Vec::new();
        let mut at = 0;
        while at < rows.len() {
            let rest = rows.slice(at..rows.len());
            let taken = leaf.fill_with_cold(self.types, self.states, rest);
            assert!(taken > 0, "an empty leaf takes a vector");
            at += taken;
            let entry = self.packer.write_leaf(self.w, &mut leaf, self.id.0)?;
            step.bytes_after = step.bytes_after.saturating_add(entry.link.bytes);
            leaves.push(entry);
        }
        self.packer.recycle_leaf(leaf);
        Ok(leaves)
    }
}
