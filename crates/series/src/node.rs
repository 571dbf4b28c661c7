//! Tree nodes. A node has a spine of up to 64 links and one block of statistics per column, in an extent of its own. A
//! read accesses only the spine and the requested columns.
//!
//! ```text
//! extent
//! | spine | statistics of column 0 | statistics of column 1 | ... | zeros to the page's end |
//!
//! spine (one block)
//! 0         32     33      34        36  40
//! | header  |level | links | columns | 0 | pointers to statistics | links      |
//! | 32 B    | u8   |  u8   |   u16   |u32| columns x 32 B         | n x 72 B   |
//!
//! statistics of a column (one block)
//! 0         32
//! | header  | n x 104 B |
//! ```
//!
//! The links of a node of level 1 lead to leaves, the links of level n to nodes of level n - 1. They ascend and their
//! spans do not overlap.

use crate::link::{Entry, LINK_BYTES, Link};
use tidalite_base::limits::COLUMNS_MAX;
use tidalite_base::{Corrupt, get_u16, put_u16};
use tidalite_codec::{ColumnType, STATS_BYTES, Stats};
use tidalite_pager::{
    Counters, Extent, HEADER_BYTES, Header, Kind, PTR_BYTES, PageRead, PageRef, PageWrite, Ptr,
    Result, seal_block,
};

/// Maximum number of links in a node.
pub(crate) const NODE_LINKS_MAX: usize = 64;
/// Maximum number of levels in a tree: with two links per node, enough for more leaves than a file can have.
pub(crate) const HEIGHT_MAX: u8 = 48;

const LEVEL_AT: usize = HEADER_BYTES;
const LINKS_AT: usize = LEVEL_AT + 1;
const COLUMNS_AT: usize = LINKS_AT + 1;
const POINTERS_AT: usize = COLUMNS_AT + 6;
const _: () = assert!(POINTERS_AT == 40);

fn spine_bytes(links: usize, columns: usize) -> usize {
    POINTERS_AT + columns * PTR_BYTES + links * LINK_BYTES
}

fn stats_bytes(links: usize) -> usize {
    HEADER_BYTES + links * STATS_BYTES
}

/// A verified spine: the block of a node that lists its links.
pub(crate) struct Spine<'r> {
    block: PageRef<'r>,
    links: usize,
    columns: usize,
    addr: u64,
}

impl<'r> Spine<'r> {
    /// Reads the spine to which `link` points; the spine must be of this `level` and agree with the link. Since the
    /// spans of nodes must nest exactly, a damaged file cannot lead a walk through one node twice.
    pub(crate) fn open<R: PageRead>(
        r: &'r R,
        link: &Link,
        level: u8,
        columns: usize,
    ) -> Result<Self> {
        let ptr = &link.ptr;
        let bad = |found: String, expected: &str| {
            Err(Corrupt::new("series node", ptr.addr, found, expected).into())
        };
        if ptr.kind != Kind::SeriesNode {
            return bad(format!("a link to {:?}", ptr.kind), "a node");
        }
        let block = r.block(ptr)?;
        Counters::bump(&r.counters().nodes_read);
        if block.len() < POINTERS_AT {
            return bad(
                format!("{} bytes", block.len()),
                "at least the fixed fields",
            );
        }
        let links = usize::from(block[LINKS_AT]);
        // A node that was written before the last columns were added to the series has fewer columns.
        let own_columns = usize::from(get_u16(&block, COLUMNS_AT));
        if block[LEVEL_AT] != level || own_columns > columns {
            let found = format!("level {}, {own_columns} columns", block[LEVEL_AT]);
            return bad(found, &format!("level {level}, up to {columns} columns"));
        }
        if links == 0 || links > NODE_LINKS_MAX || block.len() != spine_bytes(links, own_columns) {
            return bad(
                format!("{links} links in {} bytes", block.len()),
                "1 to 64, and room for them",
            );
        }
        let spine = Self {
            block,
            links,
            columns: own_columns,
            addr: ptr.addr,
        };
        let mut before = None;
        let mut count = 0u64;
        for i in 0..links {
            let own = spine.link(i);
            if before.is_some_and(|before| own.begin <= before) || own.end < own.begin {
                return bad(
                    format!("link {i} from {} to {}", own.begin, own.end),
                    "ascending spans",
                );
            }
            before = Some(own.end);
            count = count.saturating_add(own.count);
        }
        let begin = spine.link(0).begin;
        if begin != link.begin || before != Some(link.end) || count != link.count {
            let found = format!("{count} rows from {begin} to {before:?}");
            let expected = format!("{} rows from {} to {}", link.count, link.begin, link.end);
            return bad(found, &expected);
        }
        Ok(spine)
    }

    pub(crate) fn len(&self) -> usize {
        self.links
    }

    #[inline]
    pub(crate) fn link(&self, i: usize) -> Link {
        debug_assert!(i < self.links);
        Link::decode(
            &self.block,
            POINTERS_AT + self.columns * PTR_BYTES + i * LINK_BYTES,
        )
    }

    /// Index of the last link that begins at or before time `t`, or of the first link if all begin later.
    pub(crate) fn link_at(&self, t: i64) -> usize {
        let (mut low, mut high) = (0, self.links);
        while high - low > 1 {
            let middle = (low + high) / 2;
            if self.link(middle).begin <= t {
                low = middle;
            } else {
                high = middle;
            }
        }
        debug_assert!(low < self.links, "a link of the node");
        low
    }

    fn stats_ptr(&self, column: usize) -> Ptr {
        Ptr::decode(&self.block, POINTERS_AT + column * PTR_BYTES)
    }

    /// Reads the statistics of one column for all links of the node.
    pub(crate) fn stats<R: PageRead>(
        &self,
        r: &'r R,
        column: usize,
        ty: ColumnType,
    ) -> Result<NodeStats<'r>> {
        if column >= self.columns {
            let links = (0..self.links).map(|i| self.link(i));
            return Ok(NodeStats {
                block: PageRef::Borrowed(&[]),
                added: links.map(|link| (link.begin, link.count)).collect(),
                ty,
            });
        }
        let ptr = self.stats_ptr(column);
        if ptr.kind != Kind::SeriesStats || ptr.len as usize != stats_bytes(self.links) {
            let found = format!("{:?} of {} bytes for column {column}", ptr.kind, ptr.len);
            return Err(Corrupt::new("series node", self.addr, found, "statistics").into());
        }
        Ok(NodeStats {
            block: r.block(&ptr)?,
            added: Vec::new(),
            ty,
        })
    }

    /// The links of the node with the statistics of the first columns, whose types are `types`.
    pub(crate) fn entries<R: PageRead>(&self, r: &R, types: &[ColumnType]) -> Result<Vec<Entry>> {
        let links = (0..self.links).map(|i| Entry {
            link: self.link(i),
            stats: Vec::with_capacity(types.len()),
        });
        let mut entries: Vec<Entry> = links.collect();
        for (c, &ty) in types.iter().enumerate() {
            let stats = self.stats(r, c, ty)?;
            for (i, entry) in entries.iter_mut().enumerate() {
                entry.stats.push(stats.get(i)?);
            }
        }
        Ok(entries)
    }

    /// The extent that holds the node.
    pub(crate) fn extent(&self, ptr: &Ptr, page_size: usize) -> Extent {
        Extent {
            addr: ptr.addr,
            pages: self.node_bytes().div_ceil(page_size) as u64,
            birth: ptr.birth,
        }
    }

    /// Length in bytes of the node: spine and statistics, without padding.
    pub(crate) fn node_bytes(&self) -> usize {
        self.block.len() + self.columns * stats_bytes(self.links)
    }
}

/// The statistics of one column for all links of a node.
pub(crate) struct NodeStats<'r> {
    block: PageRef<'r>,
    /// First time and row count of each link, for a column that was added after the node was written.
    added: Vec<(i64, u64)>,
    ty: ColumnType,
}

impl NodeStats<'_> {
    /// The column's statistics of the rows below link `i`.
    pub(crate) fn get(&self, i: usize) -> Result<Stats> {
        if let Some(&(begin, count)) = self.added.get(i) {
            return Ok(Stats::of_fill(self.ty, begin, count));
        }
        Ok(Stats::decode(
            self.ty,
            &self.block[HEADER_BYTES + i * STATS_BYTES..],
        )?)
    }

    /// Merges the statistics of link `i` into `all`, which covers the preceding rows. Only the statistics that `all`
    /// was created with are merged.
    #[inline]
    pub(crate) fn merge(&self, i: usize, all: &mut Stats) -> Result<()> {
        if let Some(&(begin, count)) = self.added.get(i) {
            all.merge_after(&Stats::of_fill(self.ty, begin, count));
            return Ok(());
        }
        Ok(all.merge_bytes(&self.block[HEADER_BYTES + i * STATS_BYTES..])?)
    }
}

/// A whole node, read in order to be modified.
pub(crate) struct Node {
    pub(crate) entries: Vec<Entry>,
    pub(crate) extent: Extent,
}

/// Reads a whole node: its links with the statistics of every column.
pub(crate) fn read<R: PageRead>(
    r: &R,
    link: &Link,
    level: u8,
    types: &[ColumnType],
) -> Result<Node> {
    let spine = Spine::open(r, link, level, types.len())?;
    let entries = spine.entries(r, types)?;
    let extent = spine.extent(&link.ptr, r.page_size());
    debug_assert!(ascend(&entries), "the spine was verified");
    Ok(Node { entries, extent })
}

/// Writes a node of `level` with these entries and returns the link to it.
///
/// # Panics
/// If there are no entries, or more than a node can hold.
pub(crate) fn write<W: PageWrite>(
    w: &mut W,
    owner: u64,
    level: u8,
    entries: &[Entry],
) -> Result<Entry> {
    assert!(
        !entries.is_empty() && entries.len() <= NODE_LINKS_MAX,
        "1 to 64 links"
    );
    let columns = entries[0].stats.len();
    assert!(columns <= COLUMNS_MAX, "columns of a series");
    assert!((1..=HEIGHT_MAX).contains(&level), "level {level} of a node");
    assert!(
        entries.iter().all(|entry| entry.stats.len() == columns),
        "statistics of every column"
    );
    assert!(ascend(entries), "links ascend and their spans are disjoint");
    let spine_len = spine_bytes(entries.len(), columns);
    let stats_len = stats_bytes(entries.len());
    let total = spine_len + columns * stats_len;
    let pages = total.div_ceil(w.page_size());
    let extent = w.alloc_extent(pages as u64)?;
    let mut bytes = vec![0; pages * w.page_size()];
    let birth = w.txn();
    let header = |kind, address| Header {
        kind,
        flags: 0,
        owner,
        address,
        birth,
    };
    for c in 0..columns {
        let from = spine_len + c * stats_len;
        let block = &mut bytes[from..from + stats_len];
        for (i, entry) in entries.iter().enumerate() {
            let at = HEADER_BYTES + i * STATS_BYTES;
            block[at..at + STATS_BYTES].copy_from_slice(&entry.stats[c].to_bytes());
        }
        let ptr = seal_block(block, &header(Kind::SeriesStats, extent.addr + from as u64));
        ptr.encode(&mut bytes, POINTERS_AT + c * PTR_BYTES);
    }
    let spine = &mut bytes[..spine_len];
    spine[LEVEL_AT] = level;
    spine[LINKS_AT] = entries.len() as u8;
    put_u16(spine, COLUMNS_AT, columns as u16);
    for (i, entry) in entries.iter().enumerate() {
        entry
            .link
            .encode(spine, POINTERS_AT + columns * PTR_BYTES + i * LINK_BYTES);
    }
    let ptr = seal_block(spine, &header(Kind::SeriesNode, extent.addr));
    w.write_extent(extent.addr, &bytes)?;
    Ok(summary(ptr, entries))
}

/// True if the spans of the links ascend. Two neighbours share a time only in a damaged file, with more rows of equal
/// times than a leaf holds.
pub(crate) fn ascend(entries: &[Entry]) -> bool {
    entries.is_sorted_by(|a, b| a.link.end <= b.link.begin)
}

/// The link to a node that contains `entries`, with merged statistics.
fn summary(ptr: Ptr, entries: &[Entry]) -> Entry {
    let mut stats = entries[0].stats.clone();
    for entry in &entries[1..] {
        for (all, own) in stats.iter_mut().zip(&entry.stats) {
            all.merge_after(own);
        }
    }
    let links = || entries.iter().map(|entry| &entry.link);
    Entry {
        link: Link {
            ptr,
            begin: entries[0].link.begin,
            end: entries[entries.len() - 1].link.end,
            count: links().fold(0, |sum, link| sum.saturating_add(link.count)),
            data_txn: links().map(|link| link.data_txn).max().unwrap_or_default(),
            bytes: links().fold(0, |sum, link| sum.saturating_add(link.bytes)),
        },
        stats,
    }
}
