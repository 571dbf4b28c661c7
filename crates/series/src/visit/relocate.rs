//! Moving leaves and nodes: whatever lies beyond a boundary, and whatever lies in sparse extents, is written anew, a bounded
//! number of pages at a time.
//!
//! Rows stay as they are; a leaf that is read and written again has the same words. Nodes are rewritten where something below them
//! moved. To find out, the spines of nodes are read, no statistics and no leaf.

use crate::extents;
use crate::link::{Entry, Link};
use crate::node::{self, Spine};
use crate::packer::Packer;
use crate::tree::cool::Cooling;
use crate::tree::edit::{Edit, Split};
use crate::tree::series_tree::{SeriesTree, raise};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use tidalite_kv::{Relocation, Tree};
use tidalite_pager::{Kind, PageRead, PageWrite, Result};

/// Sparse extents are rewritten when more than this part of all extents is dead, and two pages ...
const DEAD_PART_MAX: u64 = 32;
/// ... until no more than this part is. What a compaction leaves is far enough from the bound that the next one does not begin again.
const DEAD_PART_LEFT: u64 = 64;
/// In an extent of fewer pages, the end of the last page counts as dead: many of them together would waste much.
const SHORT_PAGES: u64 = 8;

/// What is to move: addresses from a boundary on, and all leaves of some extents.
#[derive(Clone, Debug, Default)]
pub struct Moving {
    /// Byte address from which on things move.
    pub boundary: u64,
    /// Extents that are written anew: address and bytes.
    extents: BTreeMap<u64, u64>,
    /// How many of them because they are sparse.
    sparse: usize,
}

impl Moving {
    /// Reads the extents table. To move are extents that reach across the boundary: leaves before it keep the whole extent in place. With
    /// `with_sparse` also sparse extents where more than a 32nd of all bytes is dead: the sparsest ones first, until no more than a 64th is
    /// dead in those that stay. So no more is rewritten than the space is worth.
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
                // A 64th is as exact as the order need be.
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

    /// Leaves in the extents that have the most dead bytes for what they keep, until about `wanted` bytes are free when these have moved; and
    /// how many that are. Extents that are dead by less than a page count for nothing.
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
        // The cheapest first: the least to write for what becomes free.
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

    /// Extents that are written anew because much of them is dead.
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
    /// Moves what is to move, of rows from time `from` on. Returns the time with which to go on, `None` when all is done. The tree has changed
    /// when the step has moved something.
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
            (*root, *height) = raise(&mut edit, *height, links, Split::Even)?;
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
                self.bury(&entry)?;
                step.moved(entry.link.bytes.div_ceil(self.w.page_size() as u64));
                out.extend(match entry.link.ptr.kind {
                    Kind::SeriesCold => self.cold_leaves(rows.view(), &mut Cooling::default())?,
                    _ => self.leaves(rows.view(), Split::Even)?,
                });
            } else if !self.moves_below(level, &entry.link, moving)? {
                out.push(entry);
            } else {
                let node = node::read(self.w, &entry.link, level, self.types)?;
                self.w.free_extent(&node.extent);
                step.moved(1);
                let children = self.relocate(level - 1, node.entries, moving, step, from, stop)?;
                out.extend(self.pack(level, &children, Split::Even)?);
            }
        }
        Ok(out)
    }

    /// True when a node or something below it is to move.
    fn moves_below(&mut self, level: u8, link: &Link, moving: &Moving) -> Result<bool> {
        if moving.moves(link.ptr.addr) {
            return Ok(true);
        }
        if level == 0 {
            return Ok(false);
        }
        let spine = Spine::open(self.w, link, level, self.types.len())?;
        let children: Vec<Link> = (0..spine.len()).map(|i| spine.link(i)).collect();
        for child in &children {
            if self.moves_below(level - 1, child, moving)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
