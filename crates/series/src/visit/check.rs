//! Checks every rule of the format for series, and every byte of their leaves and nodes.
//!
//! 1. Every node, directory and payload matches the checksum above it.
//! 2. Links ascend; span, count, bytes and data txn of a link match the contents below.
//! 3. Statistics match the rows: recomputed and compared, the exact ones bit by bit.
//! 4. Leaves lie inside the extents of the table, without overlap; their total size equals the live bytes.
//! 5. Directories have the canonical form that a writer produces.
//! 6. The rest of an extent consists of dead leaves (no longer referenced, but still intact) and zeros.
//!
//! Damage is collected, not returned as an error: a damaged leaf does not end the check.

use crate::extents::{self, ExtentRecord};
use crate::leaf::layout::{LEAF_ALIGN, aligned, is_leaf};
use crate::leaf::reader::Leaf;
use crate::link::{Entry, Link};
use crate::node::Spine;
use crate::tree::series_tree::SeriesTree;
use crate::tree::walk::{Step, Visitor};
use tidalite_base::{Corrupt, SeriesId, TxnId};
use tidalite_codec::{Rows, Stats};
use tidalite_kv::{Tree, UsedPages};
use tidalite_pager::{
    Error, HEADER_BYTES, Header, PageRead, Ptr, Result, expect_zeros, verify_block,
};

/// Damage that affects rows of a series, or the extents table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The series; `None` for the extents table, which all series share.
    pub series: Option<SeriesId>,
    /// The index of the affected column, if only one column is affected.
    pub column: Option<usize>,
    /// First and last time of the affected rows; `None` if no rows are affected.
    pub span: Option<(i64, i64)>,
    /// Byte address in the file; 0 if not applicable.
    pub addr: u64,
    /// Description of the damage, in one sentence.
    pub problem: String,
}

/// Result of a check of series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Descriptions of the problems found, one sentence each.
    pub problems: Vec<String>,
    /// The problems found, each with the rows that it affects.
    pub damages: Vec<Damage>,
    /// Number of tree nodes that were visited.
    pub nodes: u64,
    /// Number of leaves that were reached through the trees.
    pub leaves: u64,
    /// Number of vectors that were decoded.
    pub vectors: u64,
    /// Number of rows in the decoded vectors.
    pub rows: u64,
    /// Number of extents into which leaves are packed.
    pub extents: u64,
    /// Length in bytes of the reached leaves, including the padding to their alignment.
    pub live_bytes: u64,
}

/// The rows that are being checked: damage found now affects them.
#[derive(Clone, Copy, Default)]
struct Affected {
    series: Option<SeriesId>,
    column: Option<usize>,
    span: Option<(i64, i64)>,
}

impl Affected {
    fn of(tree: &SeriesTree, link: &Link) -> Self {
        Self {
            series: Some(tree.id()),
            column: None,
            span: Some((link.begin, link.end)),
        }
    }
}

struct LeafClaim {
    addr: u64,
    bytes: u64,
    end: i64,
    birth: TxnId,
}

/// A check in progress: first every tree, then the extents table.
#[derive(Default)]
pub struct Check {
    /// True if several rows may have equal times.
    equal_times: bool,
    /// If set, links and extents written by this transaction or before are skipped, and rows are not decoded.
    since: Option<TxnId>,
    report: Report,
    leaves: Vec<LeafClaim>,
}

impl Check {
    /// Creates a check that has found nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a check of the blocks written after transaction `since`: it verifies checksums, without decoding rows,
    /// to ensure that all these blocks are present. Older links and extents are skipped.
    #[must_use]
    pub fn since(since: TxnId) -> Self {
        Self {
            since: Some(since),
            ..Self::default()
        }
    }

    fn skips(&self, birth: TxnId) -> bool {
        self.since.is_some_and(|since| birth <= since)
    }

    /// The first damage that was found; `None` if there is no damage.
    #[must_use]
    pub fn first_damage(&self) -> Option<&Damage> {
        self.report.damages.first()
    }

    /// Sets whether the trees checked next may have several rows with equal times.
    pub fn allow_equal_times(&mut self, equal_times: bool) {
        self.equal_times = equal_times;
    }

    /// Records a `Corrupt` error as damage; returns all other errors.
    fn note(&mut self, affected: &Affected, result: Result<()>) -> Result<()> {
        match result {
            Err(Error::Corrupt(corrupt)) => {
                self.damage(affected, corrupt.at, corrupt.to_string());
                Ok(())
            }
            other => other,
        }
    }

    fn damage(&mut self, affected: &Affected, addr: u64, problem: String) {
        debug_assert_eq!(
            self.report.problems.len(),
            self.report.damages.len(),
            "a sentence for each damage"
        );
        let owner = affected
            .series
            .map_or("extents table".to_owned(), |id| id.to_string());
        self.report.problems.push(format!("{owner}: {problem}"));
        self.report.damages.push(Damage {
            series: affected.series,
            column: affected.column,
            span: affected.span,
            addr,
            problem,
        });
    }

    /// Checks a tree, and claims every page range that a node occupies; `extents` later claims the pages of the leaves.
    ///
    /// # Errors
    /// `Io`; damage is recorded in the report.
    pub fn tree<R: PageRead>(
        &mut self,
        r: &R,
        tree: &SeriesTree,
        claim: &mut dyn FnMut(UsedPages),
    ) -> Result<()> {
        let mut before = None;
        for entry in tree.tops() {
            if before.is_some_and(|before| entry.link.begin <= before) {
                let problem = format!("link at {} is out of order", entry.link.begin);
                self.damage(
                    &Affected::of(tree, &entry.link),
                    entry.link.ptr.addr,
                    problem,
                );
            }
            before = Some(entry.link.end);
        }
        let mut visitor = TreeCheck {
            check: self,
            r,
            tree,
            claim,
        };
        tree.walk(r, &mut visitor)?;
        Ok(())
    }

    fn leaf<R: PageRead>(&mut self, r: &R, tree: &SeriesTree, entry: &Entry) -> Result<()> {
        let link = &entry.link;
        self.report.leaves += 1;
        self.report.live_bytes = self.report.live_bytes.saturating_add(link.bytes);
        self.leaves.push(LeafClaim {
            addr: link.ptr.addr,
            bytes: link.bytes,
            end: link.end,
            birth: link.ptr.birth,
        });
        let leaf = Leaf::open(r, link, &tree.types)?;
        expect_owner(&r.block(&link.ptr)?, &link.ptr, tree)?;
        leaf.verify_directory()?;
        expect_zeros(r, link.ptr.addr + leaf.used_bytes() as u64, leaf.padding())?;
        if self.since.is_some() {
            return leaf.verify_payloads(r);
        }
        let mut rows = Rows::with_capacity(tree.types.len(), leaf.count());
        if let Err(error) = leaf.read_all(r, &mut rows) {
            return self.vectors(r, tree, &leaf, error);
        }
        if !self.equal_times && !rows.view().is_sorted_unique() {
            let (found, expected) = ("several rows of one time", "each time once");
            return Err(Corrupt::new("series leaf", link.ptr.addr, found, expected).into());
        }
        self.report.vectors += leaf.vectors() as u64;
        self.report.rows += rows.len() as u64;
        let mut all: Vec<Stats> = tree.types.iter().map(|&ty| Stats::empty(ty)).collect();
        let mut at = 0;
        for v in 0..leaf.vectors() {
            let vector = rows.slice(at..at + leaf.rows_of(v));
            at += vector.len();
            for (c, &ty) in tree.types.iter().enumerate() {
                let own = Stats::of(ty, vector.times(), vector.column(c));
                expect_stats("vector", link, &[leaf.stats(v, c, ty)?], &[own])?;
                all[c].merge_after(&own);
            }
        }
        assert_eq!(at, rows.len(), "the rows of all vectors");
        if link.data_txn < link.ptr.birth {
            let found = format!("data of {}", link.data_txn);
            return Err(Corrupt::new("series leaf", link.ptr.addr, found, link.ptr.birth).into());
        }
        expect_stats("series leaf", link, &entry.stats, &all)
    }

    /// The rows of a leaf could not be read: reports which columns and vectors are damaged.
    fn vectors<R: PageRead>(
        &mut self,
        r: &R,
        tree: &SeriesTree,
        leaf: &Leaf<'_>,
        error: Error,
    ) -> Result<()> {
        let mut named = false;
        for v in 0..leaf.vectors() {
            let mut affected = Affected {
                series: Some(tree.id()),
                column: None,
                span: Some(leaf.span(v)),
            };
            let (mut times, mut words) = (vec![0; leaf.rows_of(v)], vec![0; leaf.rows_of(v)]);
            let found = leaf.times(r, v, &mut times);
            named |= found.is_err();
            self.note(&affected, found)?;
            for c in 0..tree.types.len() {
                affected.column = Some(c);
                let found = leaf.column(r, v, c, &mut words);
                named |= found.is_err();
                self.note(&affected, found)?;
            }
        }
        if named { Ok(()) } else { Err(error) }
    }

    /// Checks the extents table against the leaves of all trees, and checks the bytes between the leaves. The caller
    /// checks the pages of the extents table itself.
    ///
    /// # Errors
    /// `Io`; damage is recorded in the report.
    pub fn extents<R: PageRead>(
        mut self,
        r: &R,
        table: &Tree,
        claim: &mut dyn FnMut(UsedPages),
    ) -> Result<Report> {
        let mut leaves = std::mem::take(&mut self.leaves);
        leaves.sort_unstable_by_key(|leaf| leaf.addr);
        let mut next = 0;
        let mut found = Vec::new();
        let listed = match self.since {
            None => extents::each(table, r, |start, record| {
                found.push((start, record));
                Ok(())
            }),
            Some(since) => table.leaves_since(r, since, &mut |leaf| {
                extents::each(leaf, r, |start, record| {
                    if record.birth > since {
                        found.push((start, record));
                    }
                    Ok(())
                })
            }),
        };
        self.note(&Affected::default(), listed)?;
        for (start, record) in found {
            self.report.extents += 1;
            claim(UsedPages {
                addr: start,
                pages: record.pages,
                what: "packed leaves",
            });
            while next < leaves.len() && leaves[next].addr < start {
                self.damage(
                    &Affected::default(),
                    leaves[next].addr,
                    outside_message(&leaves[next]),
                );
                next += 1;
            }
            let end = start.saturating_add(record.used);
            let inside = leaves[next..].partition_point(|leaf| leaf.addr < end);
            let result = self.extent(r, start, &record, &leaves[next..next + inside]);
            self.note(&Affected::default(), result)?;
            next += inside;
            assert!(next <= leaves.len(), "a leaf lies in one extent");
        }
        for leaf in &leaves[next..] {
            self.damage(&Affected::default(), leaf.addr, outside_message(leaf));
        }
        Ok(self.report)
    }

    fn extent<R: PageRead>(
        &mut self,
        r: &R,
        start: u64,
        record: &ExtentRecord,
        leaves: &[LeafClaim],
    ) -> Result<()> {
        let bad = |found: String, expected: String| {
            Err(Corrupt::new("packed extent", start, found, expected).into())
        };
        let capacity = record.pages.saturating_mul(r.page_size() as u64);
        let room = capacity.checked_sub(record.used);
        let trimmed = room.is_some_and(|room| room < r.page_size() as u64);
        if !trimmed || !record.used.is_multiple_of(LEAF_ALIGN as u64) {
            let found = format!("{} bytes used of {} pages", record.used, record.pages);
            return bad(found, "leaves up to the last page".into());
        }
        let live = leaves
            .iter()
            .fold(0u64, |sum, leaf| sum.saturating_add(leaf.bytes));
        if live != record.live || live == 0 {
            return bad(format!("{} live bytes", record.live), format!("{live}"));
        }
        let mut at = start;
        for leaf in leaves {
            while at < leaf.addr {
                at += dead_leaf(r, at, leaf.addr - at)?;
            }
            if at != leaf.addr || leaf.birth != record.birth || leaf.end > record.last_time {
                let found = format!(
                    "a leaf of {} at {}, up to {}",
                    leaf.birth, leaf.addr, leaf.end
                );
                let expected = format!("{} at {at}, up to {}", record.birth, record.last_time);
                return bad(found, expected);
            }
            at = at.saturating_add(leaf.bytes);
        }
        let end = start.saturating_add(record.used);
        while at < end {
            at += dead_leaf(r, at, end - at)?;
        }
        if at != end {
            return bad(format!("leaves up to {at}"), format!("up to {end}"));
        }
        expect_zeros(r, end, (capacity - record.used) as usize)
    }
}

/// The check of one tree. If the target of a link is damaged, the damage is recorded and the walk continues.
struct TreeCheck<'c, R> {
    check: &'c mut Check,
    r: &'c R,
    tree: &'c SeriesTree,
    claim: &'c mut dyn FnMut(UsedPages),
}

impl<R: PageRead> Visitor for TreeCheck<'_, R> {
    const STATISTICS: bool = true;

    fn link(&mut self, level: u8, entry: &Entry) -> Result<Step> {
        if self.check.skips(entry.link.ptr.birth) {
            return Ok(Step::Skip);
        }
        if level == 0 {
            let result = self.check.leaf(self.r, self.tree, entry);
            self.note(entry, result)?;
        }
        Ok(Step::Descend)
    }

    fn node(&mut self, entry: &Entry, spine: &Spine<'_>, links: &[Entry]) -> Result<()> {
        let extent = spine.extent(&entry.link.ptr, self.r.page_size());
        (self.claim)(UsedPages {
            addr: extent.addr,
            pages: extent.pages,
            what: "series node",
        });
        self.check.report.nodes += 1;
        let padding = extent.pages as usize * self.r.page_size() - spine.node_bytes();
        let result = self.node_matches(entry, (spine.node_bytes(), padding), links);
        self.note(entry, result)
    }

    fn damaged(&mut self, entry: &Entry, corrupt: Corrupt) -> Result<()> {
        self.note(entry, Err(corrupt.into()))
    }
}

impl<R: PageRead> TreeCheck<'_, R> {
    fn note(&mut self, entry: &Entry, result: Result<()>) -> Result<()> {
        self.check
            .note(&Affected::of(self.tree, &entry.link), result)
    }

    /// Checks a node of `bytes` bytes and `padding` zeros: its owner, and that `entry` describes the node's links.
    fn node_matches(
        &self,
        entry: &Entry,
        (bytes, padding): (usize, usize),
        links: &[Entry],
    ) -> Result<()> {
        let (r, tree, link) = (self.r, self.tree, &entry.link);
        expect_zeros(r, link.ptr.addr + bytes as u64, padding)?;
        expect_owner(&r.block(&link.ptr)?, &link.ptr, tree)?;
        let (mut data_txn, mut bytes) = (TxnId(0), 0u64);
        let mut all: Vec<Stats> = tree.types.iter().map(|&ty| Stats::empty(ty)).collect();
        let mut complete = true;
        for own in links {
            data_txn = data_txn.max(own.link.data_txn);
            bytes = bytes.saturating_add(own.link.bytes);
            complete &= own.stats.len() == all.len();
            for (all, own) in all.iter_mut().zip(&own.stats) {
                all.merge_after(own);
            }
        }
        if (data_txn, bytes) != (link.data_txn, link.bytes) {
            let found = format!("{} and {} bytes", link.data_txn, link.bytes);
            let expected = format!("{data_txn} and {bytes} bytes");
            return Err(
                Corrupt::new("link to a series node", link.ptr.addr, found, expected).into(),
            );
        }
        if complete {
            expect_stats("series node", link, &entry.stats, &all)?;
        }
        Ok(())
    }
}

fn outside_message(leaf: &LeafClaim) -> String {
    format!("the leaf at byte {} lies in no packed extent", leaf.addr)
}

/// Verifies a leaf that is no longer referenced; returns its length in bytes.
fn dead_leaf<R: PageRead>(r: &R, addr: u64, room: u64) -> Result<u64> {
    let head_len = Leaf::HEAD_BYTES;
    let bad = |found: String| Err(Corrupt::new("dead leaf", addr, found, "a whole leaf").into());
    if room < head_len as u64 {
        return bad(format!("{room} bytes"));
    }
    let head = r.bytes(addr, head_len)?;
    let (directory, data) = Leaf::lengths(&head);
    let whole = aligned(directory + data) as u64;
    if directory < head_len || whole > room {
        return bad(format!(
            "a directory of {directory} bytes, {data} bytes of payloads"
        ));
    }
    let header = Header::decode(&head);
    if !is_leaf(header.kind) {
        return bad(format!("{:?}", header.kind));
    }
    let ptr = Ptr {
        addr,
        len: directory as u32,
        kind: header.kind,
        checksum: tidalite_base::get_u64(&head, 0),
        birth: header.birth,
    };
    assert!(
        whole > 0 && whole.is_multiple_of(LEAF_ALIGN as u64),
        "every step passes a leaf"
    );
    let block = r.bytes(addr, directory)?;
    verify_block(&block, &ptr)?;
    let leaf = Leaf::parse(block, ptr)?;
    leaf.verify_payloads(r)?;
    expect_zeros(r, addr + leaf.used_bytes() as u64, leaf.padding())?;
    Ok(whole)
}

fn expect_owner(block: &[u8], ptr: &Ptr, tree: &SeriesTree) -> Result<()> {
    let header = Header::decode(&block[..HEADER_BYTES]);
    if header.owner == tree.id().0 {
        return Ok(());
    }
    let found = format!("a block of series {}", header.owner);
    Err(Corrupt::new(format!("{:?}", ptr.kind), ptr.addr, found, tree.id()).into())
}

fn expect_stats(what: &str, link: &Link, stored: &[Stats], rows: &[Stats]) -> Result<()> {
    if stored.is_empty() && !rows.is_empty() {
        // The stored statistics could not be read; that damage is reported elsewhere.
        return Ok(());
    }
    let equal =
        stored.len() == rows.len() && stored.iter().zip(rows).all(|(a, b)| equal_statistics(a, b));
    if equal {
        return Ok(());
    }
    let (found, expected) = (format!("{stored:?}"), format!("{rows:?}"));
    let what = format!("statistics of a {what}");
    Err(Corrupt::new(what, link.ptr.addr, found, expected).into())
}

/// True if statistics are equal bit by bit, except for the sign of a NaN sum, which depends on the processor.
fn equal_statistics(a: &Stats, b: &Stats) -> bool {
    let exact = |s: &Stats| {
        (
            s.count(),
            (s.nan_count(), s.null_count()),
            s.min(),
            s.max(),
            s.first(),
            s.last(),
            s.int_sum(),
        )
    };
    let sums = |s: &Stats| [s.sum(), s.square_sum()];
    let same = |(x, y): (f64, f64)| x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan());
    a.to_bytes() == b.to_bytes()
        || (exact(a) == exact(b) && sums(a).into_iter().zip(sums(b)).all(same))
}
