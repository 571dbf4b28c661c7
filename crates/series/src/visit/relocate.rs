//! Moves leaves and nodes to other addresses: everything beyond a boundary, and the leaves of sparse extents, are
//! rewritten, a bounded number of pages at a time.
//!
//! Rows do not change; a rewritten leaf has identical values. Nodes are rewritten if something below them moved. The
//! search for blocks to move reads only the spines of nodes, without statistics or leaves.

use crate::extents;
use crate::link::{Entry, Link};
use crate::node;
use crate::packer::Packer;
use crate::tree::cool::Cooling;
use crate::tree::edit::{Edit, Split, rows_below};
use crate::tree::series_tree::{SeriesTree, build_levels};
use crate::tree::walk::{Step, any_below};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use tidalite_kv::{Relocation, Tree};
use tidalite_pager::{Kind, PageRead, PageWrite, Result};

/// Sparse extents are rewritten only if their dead bytes exceed 1/`DEAD_PART_MAX` of the bytes of all extents, plus two
/// pages.
const DEAD_PART_MAX: u64 = 32;
/// Rewriting ends when the dead bytes are at most 1/`DEAD_PART_LEFT` of the bytes of all extents. This limit is far
/// enough below `DEAD_PART_MAX` that the next compaction does not start again.
const DEAD_PART_LEFT: u64 = 64;
/// In an extent with fewer pages than this, the unused end of the last page counts as dead: many such extents together
/// would waste much space.
const SHORT_PAGES: u64 = 8;

/// The blocks to move: everything from a boundary address on, and all leaves of some extents.
#[derive(Clone, Debug, Default)]
pub struct Moving {
    /// Address in bytes; all blocks at or after it are moved.
    pub boundary: u64,
    /// The extents to rewrite, by address, with their length in bytes.
    extents: BTreeMap<u64, u64>,
    /// Number of extents that are rewritten because they are sparse (have many dead bytes).
    sparse: usize,
}

impl Moving {
    /// Reads the extents table. Extents that extend beyond the boundary are to move: leaves before it would keep the
    /// whole extent in place. With `with_sparse`, also sparse extents if more than a 32nd of all bytes is dead: the
    /// sparsest first, until at most a 64th of the remaining extents is dead. The rewriting cost thus stays in
    /// proportion to the space gained.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    pub fn new<R: PageRead>(
        r: &R,
        extents: &Tree,
        boundary: u64,
        with_sparse: bool,
    ) -> Result<Self> {
        let mut moving = Self {
            boundary,
            ..Self::default()
        };
        let page_bytes = r.page_size() as u64;
        let (mut wasteful, mut all_bytes, mut dead_bytes) = (Vec::new(), 0u64, 0u64);
        extents::each(extents, r, |addr, record| {
            let bytes = record.pages * page_bytes;
            if addr < boundary && addr + bytes > boundary {
                moving.extents.insert(addr, record.used);
                return Ok(());
            }
            let is_short = record.pages < SHORT_PAGES;
            let written = if is_short { bytes } else { record.used };
            let dead = written.saturating_sub(record.live);
            all_bytes = all_bytes.saturating_add(bytes);
            dead_bytes = dead_bytes.saturating_add(dead);
            if dead > 0 {
                // The extents need not be sorted more precisely than to a 64th of dead bytes.
                wasteful.push((
                    dead.saturating_mul(64) / bytes.max(1),
                    addr,
                    record.used,
                    dead,
                ));
            }
            Ok(())
        })?;
        wasteful.sort_unstable_by_key(|&(part, addr, ..)| Reverse((part, addr)));
        let mut rest = wasteful.into_iter();
        let too_much = dead_bytes > all_bytes / DEAD_PART_MAX + 2 * page_bytes;
        while with_sparse
            && too_much
            && dead_bytes > all_bytes / DEAD_PART_LEFT
            && let Some((_, addr, used, dead)) = rest.next()
        {
            moving.extents.insert(addr, used);
            moving.sparse += 1;
            dead_bytes = dead_bytes.saturating_sub(dead);
        }
        Ok(moving)
    }

    /// Selects the extents with the most dead bytes relative to their live bytes, until moving their leaves would free
    /// about `wanted` bytes; also returns the number of bytes that this frees. Extents with less than a page of dead
    /// bytes are ignored.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    pub fn most_dead<R: PageRead>(
        r: &R,
        extents: &Tree,
        page_size: u64,
        wanted: u64,
    ) -> Result<(Self, u64)> {
        let mut dead = Vec::new();
        extents::each(extents, r, |addr, record| {
            let room = (record.pages * page_size).saturating_sub(record.live);
            if room >= page_size {
                dead.push((addr, room, record));
            }
            Ok(())
        })?;
        // Sorts the extents so that the one with the least bytes to write per freed byte comes first.
        dead.sort_by(|(a, room, record), (b, other_room, other)| {
            let cost = u128::from(record.live) * u128::from(*other_room);
            let other_cost = u128::from(other.live) * u128::from(*room);
            cost.cmp(&other_cost).then(a.cmp(b))
        });
        let mut moving = Self {
            boundary: u64::MAX,
            ..Self::default()
        };
        let mut free = 0u64;
        for (addr, room, record) in dead {
            if free >= wanted {
                break;
            }
            moving.extents.insert(addr, record.used);
            moving.sparse += 1;
            free = free.saturating_add(room);
        }
        Ok((moving, free))
    }

    /// Number of extents that are rewritten because they are sparse.
    #[must_use]
    pub fn sparse_extents(&self) -> usize {
        self.sparse
    }

    fn moves(&self, addr: u64) -> bool {
        let extent = self.extents.range(..=addr).next_back();
        addr >= self.boundary || extent.is_some_and(|(start, bytes)| addr - start < *bytes)
    }
}

impl SeriesTree {
    /// Moves the blocks selected by `moving`, for rows from time `from` on. Returns the time at which to continue, or
    /// `None` if everything is done. The tree has changed if the step has moved a block.
    ///
    /// # Errors
    /// As `link`.
    pub fn relocate<W: PageWrite>(
        &mut self,
        w: &mut W,
        packer: &mut Packer,
        moving: &Moving,
        step: &mut Relocation,
        from: i64,
    ) -> Result<Option<i64>> {
        self.close_leaf(w, packer)?;
        let mut stop = None;
        let (mut edit, root, height, pending) = self.edit(w, packer);
        if let Some(entry) = root.take() {
            let links = edit.relocate(*height, vec![entry], moving, step, from, &mut stop)?;
            (*root, *height) = build_levels(&mut edit, *height, links, Split::Even)?;
        }
        if stop.is_none() {
            let links = std::mem::take(pending);
            *pending = edit.relocate(0, links, moving, step, from, &mut stop)?;
        }
        Ok(stop)
    }
}

impl<W: PageWrite> Edit<'_, W> {
    fn relocate(
        &mut self,
        level: u8,
        links: Vec<Entry>,
        moving: &Moving,
        step: &mut Relocation,
        from: i64,
        stop: &mut Option<i64>,
    ) -> Result<Vec<Entry>> {
        let moves = |_, link: &Link| match moving.moves(link.ptr.addr) {
            true => Step::Stop,
            false => Step::Descend,
        };
        let rows = rows_below(&links);
        let mut out = Vec::with_capacity(links.len());
        for entry in links {
            if stop.is_none() && step.pages == 0 {
                *stop = Some(entry.link.begin);
            }
            if stop.is_some() || entry.link.end < from {
                out.push(entry);
            } else if level == 0 {
                if !moving.moves(entry.link.ptr.addr) {
                    out.push(entry);
                    continue;
                }
                let rows = self.read_leaf(&entry)?;
                self.mark_dead(&entry)?;
                step.moved(entry.link.bytes.div_ceil(self.w.page_size() as u64));
                out.extend(match entry.link.ptr.kind {
                    Kind::SeriesCold => self.cold_leaves(rows.view(), &mut Cooling::default())?,
                    _ => self.leaves(rows.view(), Split::Even)?,
                });
            } else if !any_below(self.w, self.types, level, &entry.link, moves)? {
                out.push(entry);
            } else {
                let node = node::read(self.w, &entry.link, level, self.types)?;
                self.w.free_extent(&node.extent);
                step.moved(1);
                let children = self.relocate(level - 1, node.entries, moving, step, from, stop)?;
                out.extend(self.pack(level, &children, Split::Even)?);
            }
        }
        assert_eq!(rows_below(&out), rows, "a move keeps every row");
        Ok(out)
    }
}
