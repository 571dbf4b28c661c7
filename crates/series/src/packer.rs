//! The stream of leaves that one transaction writes: extents filled from front to back.
//!
//! ```text
//! extent (pages of the file, up to 1 MiB, trimmed when closed)
//! | leaf | leaf | ..... | leaf | zeros to the end of the page |
//!   each on a multiple of 64 bytes, zeros between
//! ```
//!
//! Invariants:
//! 1. An extent is written by only one transaction and starts on its own page, so no page of an earlier commit is
//!    written again before its extent was freed and reclaimed.
//! 2. Every byte of a closed extent up to the end of its last page was written: leaves, or zeros.
//! 3. `live` of an extent is the sum of `Link::bytes` over its leaves that the newest version references. When it falls
//!    to zero, the extent is freed.
//! 4. `buffer` holds the bytes of the open extent from `written` to `used`; they are unreadable until `flush`.

use crate::extents::{self, ExtentRecord};
use crate::leaf::capacity::vectors_max;
use crate::leaf::layout::{LEAF_ALIGN, aligned};
use crate::leaf::writer::OpenLeaf;
use crate::link::{Entry, Link};
use std::collections::BTreeMap;
use tidalite_base::Corrupt;
use tidalite_base::limits::LEAF_VECTORS_MAX;
use tidalite_codec::Stats;
use tidalite_kv::{Relocation, Tree};
use tidalite_pager::{Extent, Header, Kind, PageWrite, Ptr, Result, seal_block};

/// Size in bytes of the first extent of a transaction; each further extent is twice as large, up to the maximum.
const EXTENT_BYTES_FIRST: usize = 64 * 1024;
/// Maximum size of an extent in bytes; a bulk load reaches it.
const EXTENT_BYTES_MAX: usize = 1024 * 1024;
/// Number of buffered bytes at which the buffer is written to the file.
const WRITE_BYTES: usize = 256 * 1024;
/// Maximum number of empty leaves whose memory is kept for reuse.
const SPARE_MAX: usize = 8;
/// Number of dead leaves of older transactions that are collected before the extents table is updated.
const DEAD_MAX: usize = 4096;

struct Open {
    extent: Extent,
    capacity: usize,
    used: usize,
    written: usize,
    live: u64,
    last_time: i64,
}

/// Writes the leaves of one write transaction into extents, and updates the extents table.
pub struct Packer {
    table: Tree,
    open: Option<Open>,
    buffer: Vec<u8>,
    next_bytes: usize,
    /// Closed extents of this transaction, not yet in the extents table, by address.
    closed: BTreeMap<u64, ExtentRecord>,
    /// Address and length in bytes of the dead (no longer referenced) leaves of older transactions.
    dead: Vec<(u64, u64)>,
    /// Memory of closed leaves, for reuse by new leaves.
    #[expect(
        clippy::vec_box,
        reason = "trees hold boxes, which come and go as they are"
    )]
    spare: Vec<Box<OpenLeaf>>,
    /// Buffer in which a leaf is assembled; used by one leaf at a time.
    bytes: Vec<u8>,
    /// Number of bytes of memory that the open leaves of all trees use.
    open_bytes: usize,
    /// Maximum number of vectors in a leaf.
    leaf_vectors: usize,
}

impl Packer {
    /// Creates a packer for one transaction; `table` is the extents table before the transaction.
    #[must_use]
    pub fn new(table: Tree) -> Self {
        Self {
            table,
            open: None,
            buffer: Vec::new(),
            next_bytes: EXTENT_BYTES_FIRST,
            closed: BTreeMap::new(),
            dead: Vec::new(),
            spare: Vec::new(),
            bytes: Vec::new(),
            open_bytes: 0,
            leaf_vectors: LEAF_VECTORS_MAX,
        }
    }

    /// Limits newly written leaves to `vectors` vectors, between one and 16; existing leaves do not change.
    #[must_use]
    pub fn with_leaf_vectors(mut self, vectors: usize) -> Self {
        self.leaf_vectors = vectors.clamp(1, LEAF_VECTORS_MAX);
        self
    }

    /// Maximum number of vectors in a leaf with this many columns.
    pub(crate) fn leaf_vectors(&self, columns: usize) -> usize {
        vectors_max(columns).min(self.leaf_vectors)
    }

    /// Number of bytes of memory that the open leaves of all trees use; `SeriesTree::close_leaf` releases the memory of
    /// a leaf.
    #[must_use]
    pub fn open_bytes(&self) -> usize {
        self.open_bytes
    }

    /// Updates the memory count after an open leaf has grown or shrunk from `before` to `after` bytes.
    pub(crate) fn update_open_bytes(&mut self, before: usize, after: usize) {
        self.open_bytes = self.open_bytes.saturating_sub(before) + after;
    }

    pub(crate) fn take_leaf(&mut self) -> Box<OpenLeaf> {
        let mut leaf = self.spare.pop().unwrap_or_default();
        assert_eq!(leaf.rows(), 0, "a spare leaf is empty");
        leaf.limit_vectors(self.leaf_vectors);
        leaf
    }

    /// Takes back an empty leaf, so that its memory can be reused.
    pub(crate) fn recycle_leaf(&mut self, leaf: Box<OpenLeaf>) {
        assert_eq!(leaf.rows(), 0, "its rows are written");
        if self.spare.len() < SPARE_MAX {
            self.spare.push(leaf);
        }
    }

    /// Writes a leaf and returns the link to it; `leaf` is empty afterwards.
    ///
    /// # Panics
    /// If the leaf has no rows.
    pub(crate) fn write_leaf<W: PageWrite>(
        &mut self,
        w: &mut W,
        leaf: &mut OpenLeaf,
        owner: u64,
    ) -> Result<Entry> {
        assert!(leaf.rows > 0, "a leaf has rows");
        let mut bytes = std::mem::take(&mut self.bytes);
        let directory = leaf.assemble(&mut bytes);
        let size = aligned(bytes.len()) as u64;
        let kind = match leaf.cold {
            true => Kind::SeriesCold,
            false => Kind::SeriesLeaf,
        };
        let ptr = self.append(w, &mut bytes, directory, (kind, owner), leaf.end)?;
        self.bytes = bytes;
        let link = Link {
            ptr,
            begin: leaf.begin,
            end: leaf.end,
            count: leaf.rows as u64,
            data_txn: w.txn(),
            bytes: size,
        };
        let stats: Vec<Stats> = leaf.columns.iter().map(|column| column.stats).collect();
        debug_assert!(
            stats.iter().all(|own| own.count() == link.count),
            "statistics of all rows"
        );
        leaf.empty();
        Ok(Entry { link, stats })
    }

    /// Appends the bytes of a leaf to the open extent: seals the first `directory` bytes as a block and returns the
    /// pointer to that block.
    pub(crate) fn append<W: PageWrite>(
        &mut self,
        w: &mut W,
        leaf: &mut [u8],
        directory: usize,
        (kind, owner): (Kind, u64),
        last_time: i64,
    ) -> Result<Ptr> {
        let size = aligned(leaf.len());
        if self
            .open
            .as_ref()
            .is_some_and(|o| o.used + size > o.capacity)
        {
            self.close(w)?;
        }
        let open = match &mut self.open {
            Some(open) => open,
            none => {
                assert!(self.buffer.is_empty(), "a closed extent was written");
                let bytes = extent_bytes_for(size, self.next_bytes);
                self.next_bytes = (self.next_bytes * 2).min(EXTENT_BYTES_MAX);
                let pages = bytes.div_ceil(w.page_size()) as u64;
                let least = size.div_ceil(w.page_size()) as u64;
                let extent = w.alloc_extent_within(least, pages)?;
                none.insert(Open {
                    capacity: extent.pages as usize * w.page_size(),
                    extent,
                    used: 0,
                    written: 0,
                    live: 0,
                    last_time: i64::MIN,
                })
            }
        };
        assert!(open.used + size <= open.capacity, "room for the leaf");
        let header = Header {
            kind,
            flags: 0,
            owner,
            address: open.extent.addr + open.used as u64,
            birth: w.txn(),
        };
        let ptr = seal_block(&mut leaf[..directory], &header);
        self.buffer.extend_from_slice(leaf);
        self.buffer.resize(self.buffer.len() + size - leaf.len(), 0);
        open.used += size;
        open.live += size as u64;
        open.last_time = open.last_time.max(last_time);
        debug_assert!(ptr.addr.is_multiple_of(LEAF_ALIGN as u64), "aligned");
        assert_eq!(
            open.written + self.buffer.len(),
            open.used,
            "the buffer holds the bytes that are not written"
        );
        assert!(open.live <= open.used as u64, "live leaves were written");
        if self.buffer.len() >= WRITE_BYTES {
            self.flush(w)?;
        }
        Ok(ptr)
    }

    /// Writes all buffered leaves to the pager, so that this transaction can read them.
    ///
    /// # Errors
    /// As `PageWrite::write_extent`.
    pub fn flush<W: PageWrite>(&mut self, w: &mut W) -> Result<()> {
        let Some(open) = &mut self.open else {
            assert!(self.buffer.is_empty(), "buffered leaves have an extent");
            return Ok(());
        };
        assert!(
            open.written + self.buffer.len() <= open.capacity,
            "the buffer fits the extent"
        );
        if !self.buffer.is_empty() {
            w.write_extent(open.extent.addr + open.written as u64, &self.buffer)?;
            open.written += self.buffer.len();
            self.buffer.clear();
        }
        Ok(())
    }

    /// Writes the buffer if it holds the leaf at `addr`, so that this leaf can be read.
    pub(crate) fn make_readable<W: PageWrite>(&mut self, w: &mut W, addr: u64) -> Result<()> {
        let buffered = self.open.as_ref().is_some_and(|o| {
            addr >= o.extent.addr + o.written as u64 && addr < o.extent.addr + o.used as u64
        });
        if buffered { self.flush(w) } else { Ok(()) }
    }

    fn close<W: PageWrite>(&mut self, w: &mut W) -> Result<()> {
        let Some(open) = &self.open else {
            return Ok(());
        };
        let used = open.used;
        let pages = used.div_ceil(w.page_size());
        let padded = pages * w.page_size();
        self.buffer.resize(padded - open.written, 0);
        self.flush(w)?;
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        assert_eq!(open.written, padded, "every byte is written");
        let extent = if padded < open.capacity {
            w.trim_extent(&open.extent, pages as u64)
        } else {
            open.extent
        };
        if open.live == 0 {
            w.free_extent(&extent);
            return Ok(());
        }
        self.closed.insert(
            extent.addr,
            ExtentRecord {
                pages: extent.pages,
                birth: extent.birth,
                live: open.live,
                used: used as u64,
                last_time: open.last_time,
            },
        );
        Ok(())
    }

    /// Records that the leaf at `addr`, which is `bytes` bytes long, is no longer referenced.
    pub(crate) fn mark_dead<W: PageWrite>(
        &mut self,
        w: &mut W,
        addr: u64,
        bytes: u64,
    ) -> Result<()> {
        if let Some(open) = &mut self.open
            && addr >= open.extent.addr
            && addr < open.extent.addr + open.capacity as u64
        {
            open.live = subtract_live(open.live, bytes, open.extent.addr)?;
            return Ok(());
        }
        if let Some((&start, record)) = self.closed.range_mut(..=addr).next_back()
            && addr < start + record.used
        {
            record.live = subtract_live(record.live, bytes, start)?;
            if record.live == 0 {
                let extent = record.extent(start);
                self.closed.remove(&start);
                w.free_extent(&extent);
            }
            return Ok(());
        }
        self.dead.push((addr, bytes));
        if self.dead.len() >= DEAD_MAX {
            self.apply(w)?;
        }
        Ok(())
    }

    /// Subtracts the collected dead leaves from the live bytes of older extents, and frees extents without live bytes.
    fn apply<W: PageWrite>(&mut self, w: &mut W) -> Result<()> {
        self.dead.sort_unstable();
        let mut at = 0;
        while at < self.dead.len() {
            let (first, _) = self.dead[at];
            let Some((start, mut record)) = extents::extent_of(&self.table, w, first)? else {
                return Err(Corrupt::new(
                    "extents table",
                    first,
                    "no extent that holds this leaf",
                    "one",
                )
                .into());
            };
            debug_assert!(start <= first && first - start < record.used, "inside");
            while at < self.dead.len() && self.dead[at].0 - start < record.used {
                record.live = subtract_live(record.live, self.dead[at].1, start)?;
                at += 1;
            }
            if record.live == 0 {
                extents::remove(&mut self.table, w, start)?;
                w.free_extent(&record.extent(start));
            } else {
                extents::put(&mut self.table, w, start, &record)?;
            }
        }
        self.dead.clear();
        Ok(())
    }

    /// Moves pages of the extents table; see `Tree::relocate`.
    ///
    /// # Errors
    /// As `Tree::relocate`.
    pub fn relocate_table<W: PageWrite>(
        &mut self,
        w: &mut W,
        step: &mut Relocation,
        from: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        self.table.relocate(w, step, from)
    }

    /// Ends the stream: writes all buffered leaves, trims the extents, and returns the sealed extents table. More
    /// leaves may be appended afterwards, to a new extent.
    ///
    /// # Errors
    /// `DiskFull`, `Io`; `Corrupt` if the table contradicts the trees.
    pub fn finish<W: PageWrite>(&mut self, w: &mut W) -> Result<Tree> {
        self.close(w)?;
        self.apply(w)?;
        assert!(self.open.is_none() && self.buffer.is_empty(), "all written");
        for (start, record) in std::mem::take(&mut self.closed) {
            extents::put(&mut self.table, w, start, &record)?;
        }
        self.table.seal(w)?;
        Ok(self.table)
    }
}

/// Size in bytes of an extent of about `wanted` bytes whose first leaf has `size` bytes: the extent fits a whole number
/// of such leaves, and later leaves may be slightly longer. Then only a short part is trimmed when the extent is
/// closed. The trimmed part is short because it could not become another extent: pages of trees follow it by then.
fn extent_bytes_for(size: usize, wanted: usize) -> usize {
    let each = size + LEAF_ALIGN;
    let bytes = (wanted / each).max(1) * each;
    debug_assert!(bytes >= size, "room for the first leaf");
    bytes
}

fn subtract_live(live: u64, bytes: u64, start: u64) -> Result<u64> {
    live.checked_sub(bytes).ok_or_else(|| {
        let found = format!("{live} live bytes, {bytes} more dead ones");
        Corrupt::new("extents table", start, found, "no more dead than live").into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidalite_pager::HEADER_BYTES;
    use tidalite_testkit::ScratchPages;

    /// Leaves of a bulk load have similar sizes, so they fill their extents, although pages of trees are allocated
    /// between these extents.
    #[test]
    fn extents_of_a_bulk_load_waste_few_pages() {
        for size in [35_200, 20_800, 1500, 300_000] {
            let mut pages = ScratchPages::new(4096);
            let mut packer = Packer::new(Tree::new(3));
            for i in 0..40_000_000 / size {
                let mut leaf = vec![1; size - i % 60];
                let of = (Kind::SeriesLeaf, 7);
                packer
                    .append(&mut pages, &mut leaf, HEADER_BYTES, of, i as i64)
                    .unwrap();
            }
            packer.finish(&mut pages).unwrap();
            let (allocated, live) = (pages.pages_allocated(), pages.live_pages());
            println!("leaves of {size}: {allocated} pages allocated, {live} stay");
            // Few pages are trimmed, except from the last extent, which is trimmed at the end of the transaction.
            assert!(allocated - live <= 256 + live / 200);
        }
    }

    const PAGE: usize = 4096;
    /// Number of leaves of one page each that fill the first extent of a transaction.
    const LEAVES: usize = EXTENT_BYTES_FIRST / PAGE;

    /// Appends leaves of one page each and returns their addresses.
    fn append(packer: &mut Packer, pages: &mut ScratchPages, leaves: usize) -> Vec<u64> {
        let mut one = || {
            let mut leaf = vec![1; PAGE];
            let of = (Kind::SeriesLeaf, 7);
            packer.append(pages, &mut leaf, HEADER_BYTES, of, 0)
        };
        (0..leaves).map(|_| one().unwrap().addr).collect()
    }

    fn mark_dead(packer: &mut Packer, pages: &mut ScratchPages, leaf: u64) {
        packer.mark_dead(pages, leaf, PAGE as u64).unwrap();
    }

    /// Address, number of live bytes and number of used bytes of each extent.
    fn extents_of(table: &Tree, pages: &ScratchPages) -> Vec<(u64, u64, u64)> {
        let mut all = Vec::new();
        extents::each(table, pages, |addr, record| {
            all.push((addr, record.live, record.used));
            Ok(())
        })
        .unwrap();
        all
    }

    /// Two extents of older transactions are adjacent; the last leaf of the first extent and the first leaf of the
    /// second die together.
    #[test]
    fn a_dead_leaf_after_a_full_extent_is_subtracted_from_its_own_extent() {
        let mut pages = ScratchPages::new(PAGE);
        let mut packer = Packer::new(Tree::new(3));
        let leaves = append(&mut packer, &mut pages, LEAVES + 2);
        let (first, second) = (leaves[0], leaves[LEAVES]);
        let table = packer.finish(&mut pages).unwrap();
        pages.commit();
        let (full, page) = (EXTENT_BYTES_FIRST as u64, PAGE as u64);
        assert_eq!(second, first + full, "the extents touch");
        let whole = [(first, full, full), (second, 2 * page, 2 * page)];
        assert_eq!(extents_of(&table, &pages), whole);

        let mut packer = Packer::new(table);
        mark_dead(&mut packer, &mut pages, leaves[LEAVES - 1]);
        mark_dead(&mut packer, &mut pages, second);
        let table = packer.finish(&mut pages).unwrap();
        let less = [(first, full - page, full), (second, page, 2 * page)];
        assert_eq!(extents_of(&table, &pages), less);
    }

    /// The extent that this transaction fills, or has filled, lies just before an extent of an older transaction.
    #[test]
    fn a_dead_leaf_after_an_extent_of_this_transaction_is_subtracted_from_its_own_extent() {
        for closed in [false, true] {
            let mut pages = ScratchPages::new(PAGE);
            let mut packer = Packer::new(Tree::new(3));
            let new = append(&mut packer, &mut pages, LEAVES);
            let mut older = Packer::new(Tree::new(3));
            let old = append(&mut older, &mut pages, 2);
            packer.table = older.finish(&mut pages).unwrap();
            let (full, page) = (EXTENT_BYTES_FIRST as u64, PAGE as u64);
            assert_eq!(old[0], new[0] + full, "the extents touch");

            if closed {
                packer.close(&mut pages).unwrap();
            }
            mark_dead(&mut packer, &mut pages, old[0]);
            let table = packer.finish(&mut pages).unwrap();
            let found = extents_of(&table, &pages);
            assert_eq!(found, [(new[0], full, full), (old[0], page, 2 * page)]);
        }
    }
}
