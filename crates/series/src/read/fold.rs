//! Aggregates: one recursion for an interval, its windows, its count, and the row at a given rank.
//!
//! 1. A link (or a vector of a leaf) is folded unread, from its statistics, if its span is inside the interval and one
//!    window, and contains no late row; otherwise the recursion descends one level.
//! 2. Pieces reach the collector in ascending order of time, so that first, last and the times of extremes are correct,
//!    and only one window is open at a time.
//! 3. Several columns are folded in one walk: a column number here is an index in the list of the collector's columns.
//!    These are followed by the columns of the ranges that rows must match.
//! 4. A piece is skipped if its statistics rule out a match; it is folded unread only if its statistics show that all
//!    rows match.

use crate::leaf::directory::SectionPosition;
use crate::leaf::reader::Leaf;
use crate::link::Link;
use crate::node::{NodeStats, Spine};
use crate::read::collect::{
    Collector, Count, Nth, Piece, VECTOR_RANK, Window, WindowGrid, Windows,
};
use crate::read::filter::{Matched, ValueRange, match_statistics};
use crate::tree::series_tree::SeriesTree;
use std::cell::Cell;
use tidalite_codec::{Parts, Rows, RowsRef, Stats};
use tidalite_pager::{Counters, PageRead, Result};

/// The given columns of the late rows of a series, in this order.
pub(super) fn select_columns<'l>(late: RowsRef<'l>, columns: &[usize]) -> Vec<&'l [u64]> {
    columns.iter().map(|&column| late.column(column)).collect()
}

pub(super) struct Fold<'a, 'l, R, C> {
    r: &'a R,
    tree: &'a SeriesTree,
    /// The collector's columns, in its order, followed by the columns of the ranges.
    columns: &'l [usize],
    /// Ranges that rows must match.
    ranges: &'l [ValueRange],
    /// The columns `columns` of the late rows.
    late: RowsRef<'l>,
    /// Late rows before this index have been collected.
    late_at: usize,
    from: i64,
    to: i64,
    pub(super) collect: C,
    /// A decoded vector.
    rows: PooledRows,
    /// Buffer for the rows that match the ranges, before they are passed to the collector.
    matching_rows: Rows,
    /// Per column, the position up to which the statistics of the open leaf were read.
    reached: Vec<SectionPosition>,
}

/// Prefetched bytes of a leaf's directory, or of a node's spine. The processor prefetches the rest itself; more
/// requests than it can have in flight would stall it.
const AHEAD_BYTES: usize = 1024;

thread_local! {
    /// The vector buffer of the last aggregate on this thread: allocating and zeroing fresh memory for each one takes a
    /// tenth of the time of a small query.
    static SPARE: Cell<Rows> = const {
        Cell::new(Rows {
            times: Vec::new(),
            columns: Vec::new(),
        })
    };
}

/// Rows that are returned to the thread's spare buffer on drop.
struct PooledRows(Rows);

impl PooledRows {
    /// Takes a buffer with this number of columns; its contents are undefined.
    fn with_columns(columns: usize) -> Self {
        let mut rows = SPARE.take();
        rows.columns.resize_with(columns, Vec::new);
        Self(rows)
    }
}

impl Drop for PooledRows {
    fn drop(&mut self) {
        let rows = std::mem::take(&mut self.0);
        // During thread exit the spare buffer may already be destroyed.
        let _ = SPARE.try_with(|spare| spare.set(rows));
    }
}

/// Counts the rows that match all of the ranges.
pub(super) fn count<R: PageRead>(
    r: &R,
    tree: &SeriesTree,
    late: RowsRef<'_>,
    interval: (i64, i64),
    ranges: &[ValueRange],
) -> Result<u64> {
    let columns: Vec<usize> = ranges.iter().map(ValueRange::column).collect();
    let words = select_columns(late, &columns);
    let late = RowsRef::new(late.times(), &words);
    let mut fold = Fold::new(
        r,
        tree,
        late,
        interval,
        (&columns, ranges),
        Count::default(),
    );
    fold.run()?;
    Ok(fold.collect.rows)
}

/// The time of the row with `n` rows before it, and how many of these have equal time.
pub(super) fn nth<R: PageRead>(
    r: &R,
    tree: &SeriesTree,
    late: RowsRef<'_>,
    n: u64,
) -> Result<Option<(i64, usize)>> {
    let late = RowsRef::new(late.times(), &[]);
    let ever = (i64::MIN, i64::MAX);
    let mut fold = Fold::new(r, tree, late, ever, (&[], &[]), Nth::after(n));
    fold.run()?;
    Ok(fold.collect.found)
}

/// Parameters of an aggregate query.
#[derive(Clone, Copy)]
pub(super) struct AggregateRequest<'c> {
    /// First and last time, both included.
    pub(super) interval: (i64, i64),
    /// The windows; `None` if the whole interval is one window.
    pub(super) grid: Option<WindowGrid<'c>>,
    pub(super) columns: &'c [usize],
    /// The aggregate functions of each column.
    pub(super) parts: Parts,
    /// Ranges that rows must match.
    pub(super) ranges: &'c [ValueRange],
}

/// Calls `f` with the windows of each of the columns, and the column's index in `columns`.
pub(super) fn fold<R: PageRead>(
    r: &R,
    tree: &SeriesTree,
    late: RowsRef<'_>,
    request: AggregateRequest<'_>,
    f: impl FnMut(usize, Window),
) -> Result<()> {
    let AggregateRequest {
        interval,
        grid,
        columns,
        parts,
        ranges,
    } = request;
    if let Some(grid) = &grid {
        grid.check()?;
    }
    for range in ranges {
        range.expect_type(tree.types[range.column()]);
    }
    let empty = |&column: &usize| Stats::empty_with(parts, tree.types[column]);
    let windows = Windows::new(grid, columns.iter().map(empty).collect(), f);
    let filtered = ranges.iter().map(ValueRange::column);
    let columns: Vec<usize> = columns.iter().copied().chain(filtered).collect();
    let words = select_columns(late, &columns);
    let late = RowsRef::new(late.times(), &words);
    let mut fold = Fold::new(r, tree, late, interval, (&columns, ranges), windows);
    fold.run()?;
    fold.collect.close();
    Ok(())
}

impl<'a, 'l, R: PageRead, C: Collector> Fold<'a, 'l, R, C> {
    /// `late` has the columns `columns`, in this order; the columns of the ranges come last.
    pub(super) fn new(
        r: &'a R,
        tree: &'a SeriesTree,
        late: RowsRef<'l>,
        (from, to): (i64, i64),
        (columns, ranges): (&'l [usize], &'l [ValueRange]),
        collect: C,
    ) -> Self {
        assert_eq!(late.column_count(), columns.len(), "the same columns");
        assert!(ranges.len() <= columns.len(), "a column for each range");
        Self {
            r,
            tree,
            columns,
            ranges,
            late: if from <= to {
                late.between(from, to)
            } else {
                late.slice(0..0)
            },
            late_at: 0,
            from,
            to,
            collect,
            rows: PooledRows::with_columns(columns.len()),
            matching_rows: Rows::new(columns.len()),
            reached: vec![SectionPosition::default(); columns.len()],
        }
    }

    pub(super) fn run(&mut self) -> Result<()> {
        let tree = self.tree;
        for (level, entry) in tree.tops_with_levels() {
            if self.from > self.to || entry.link.begin > self.to || self.collect.done() {
                break;
            }
            if self.skip(&entry.link) {
                continue;
            }
            self.collect_late_before(entry.link.begin);
            let piece = Piece::of(&entry.link, level);
            let matched =
                match_statistics(self.ranges, |_, range| Ok(entry.stats[range.column()]))?;
            if matched == Matched::Nothing {
                continue;
            }
            if matched == Matched::All && self.foldable(&piece) {
                let columns = self.columns;
                self.collect.piece(&piece, |i, all| {
                    all.merge_after(&entry.stats[columns[i]]);
                    Ok(())
                })?;
            } else {
                self.below(level, &entry.link)?;
            }
        }
        self.collect_late_rows(self.late.len());
        assert_eq!(self.late_at, self.late.len(), "every late row once");
        Ok(())
    }

    fn skip(&self, link: &Link) -> bool {
        link.outside(self.from, self.to)
    }

    /// Collects the late rows before `time`.
    fn collect_late_before(&mut self, time: i64) {
        let rest = &self.late.times()[self.late_at..];
        if rest.first().is_some_and(|&first| first < time) {
            let stop = self.late_at + rest.partition_point(|&t| t < time);
            self.collect_late_rows(stop);
        }
    }

    fn collect_late_rows(&mut self, stop: usize) {
        let stop = stop.max(self.late_at);
        let rows = self.late.slice(self.late_at..stop);
        collect(
            &mut self.collect,
            self.ranges,
            &mut self.matching_rows,
            rows,
        );
        self.late_at = stop;
    }

    /// Whether the piece can be taken as a whole. Collects the late rows before it.
    fn foldable(&mut self, piece: &Piece) -> bool {
        let (begin, end) = (piece.begin, piece.end);
        debug_assert!(
            self.late
                .times()
                .get(self.late_at)
                .is_none_or(|&late| begin <= late),
            "late rows before the piece were collected"
        );
        let late_inside = self
            .late
            .times()
            .get(self.late_at)
            .is_some_and(|&late| late <= end);
        !late_inside && self.from <= begin && end <= self.to && self.collect.takes_whole(piece)
    }

    fn below(&mut self, level: u8, link: &Link) -> Result<()> {
        if level == 0 {
            self.leaf(link)
        } else {
            self.node(level, link)
        }
    }

    fn node(&mut self, level: u8, link: &Link) -> Result<()> {
        let (r, tree, columns) = (self.r, self.tree, self.columns);
        let spine = Spine::open(r, link, level, tree.types.len())?;
        // Blocks of statistics, read on first use.
        let mut stats: Vec<Option<NodeStats<'_>>> = Vec::new();
        stats.resize_with(columns.len(), || None);
        let filtered = self.ranges.iter();
        let filtered = filtered.map(|range| spine.stats(r, range.column(), range.ty()));
        let filtered = filtered.collect::<Result<Vec<_>>>()?;
        for i in spine.link_at(self.from)..spine.len() {
            let child = spine.link(i);
            if child.begin > self.to || self.collect.done() {
                break;
            }
            if self.skip(&child) {
                continue;
            }
            self.collect_late_before(child.begin);
            let piece = Piece::of(&child, level - 1);
            let matched = match_statistics(self.ranges, |number, _| filtered[number].get(i))?;
            if matched == Matched::Nothing {
                continue;
            }
            if matched == Matched::All && self.foldable(&piece) {
                self.collect.piece(&piece, |column, all| {
                    let (c, slot) = (columns[column], &mut stats[column]);
                    let block = match slot.take() {
                        Some(block) => block,
                        None => spine.stats(r, c, tree.types[c])?,
                    };
                    slot.insert(block).merge(i, all)
                })?;
            } else {
                self.prefetch_next(&spine, i, child.end);
                self.below(level - 1, &child)?;
            }
        }
        Ok(())
    }

    /// Prefetches the next child that will be descended into, while child `i` is processed: most of its cost is memory
    /// latency.
    fn prefetch_next(&self, spine: &Spine<'_>, i: usize, end: i64) {
        let last = self.collect.takes_whole_up_to(end).min(self.to);
        let next = spine.link_at(last);
        if next > i {
            let link = spine.link(next);
            if last < link.end {
                let bytes = AHEAD_BYTES.min(link.ptr.len as usize);
                self.r.prefetch_bytes(link.ptr.addr, bytes);
            }
        }
    }

    fn leaf(&mut self, link: &Link) -> Result<()> {
        let (r, tree, columns) = (self.r, self.tree, self.columns);
        let leaf = Leaf::open(r, link, &tree.types)?;
        let first = leaf.vector_at(self.from);
        debug_assert!(self.late_at <= self.late.len(), "a late row or the end");
        if leaf.has_times() {
            // Prefetches the next vector that cannot be taken as a whole. (Stepped times have no payloads, and the
            // payloads of their columns are short.)
            let (begin, _) = leaf.span(first);
            let last = self.collect.takes_whole_up_to(begin).min(self.to);
            let cut = leaf.vector_at(last);
            if last < leaf.span(cut).1 {
                leaf.prefetch_vector(r, cut, columns);
            }
        }
        self.reached.fill(SectionPosition::default());
        for v in first..leaf.vectors() {
            let (begin, end) = leaf.span(v);
            if begin > self.to || self.collect.done() {
                break;
            }
            if end < self.from {
                continue;
            }
            self.collect_late_before(begin);
            let stats = |_, range: &ValueRange| leaf.stats(v, range.column(), range.ty());
            let matched = match_statistics(self.ranges, stats)?;
            if matched == Matched::Nothing {
                continue;
            }
            let piece = Piece {
                rank: VECTOR_RANK,
                begin,
                end,
                count: leaf.rows_of(v) as u64,
            };
            if matched == Matched::All && self.foldable(&piece) {
                let reached = &mut self.reached;
                self.collect.piece(&piece, |column, all| {
                    leaf.merge_stats(v, columns[column], &mut reached[column], all)
                })?;
            } else {
                self.vector(&leaf, v)?;
            }
        }
        Ok(())
    }

    /// Decodes a vector, cuts it to the interval and merges the late rows within its span.
    fn vector(&mut self, leaf: &Leaf<'a>, v: usize) -> Result<()> {
        Counters::bump(&self.r.counters().vectors_decoded);
        let (begin, end) = leaf.span(v);
        let rows = leaf.rows_of(v);
        let own = &mut self.rows.0;
        own.times.resize(rows, 0);
        leaf.times(self.r, v, &mut own.times)?;
        for (i, (&c, words)) in self.columns.iter().zip(&mut own.columns).enumerate() {
            if let Some(&next) = self.columns.get(i + 1) {
                leaf.prefetch_column(self.r, v, next);
            }
            words.resize(rows, 0);
            leaf.column(self.r, v, c, words)?;
        }
        let own = &*own;
        let times = &own.times;
        let low = if self.from <= begin {
            0
        } else {
            times.partition_point(|&t| t < self.from)
        };
        let high = if end <= self.to {
            rows
        } else {
            times.partition_point(|&t| t <= self.to)
        };
        let mut rows = own.slice(low..high.max(low));
        // Takes the rows of the tree up to the next late row, then that late row, which replaces rows of the tree with
        // equal time.
        while let Some(&late) = self.late.times().get(self.late_at)
            && late <= end
        {
            let before = rows.lower_bound(late);
            collect(
                &mut self.collect,
                self.ranges,
                &mut self.matching_rows,
                rows.slice(0..before),
            );
            let equal = rows.times()[before..].partition_point(|&t| t == late);
            rows = rows.slice(before + equal..rows.len());
            let stop = match rows.times().first() {
                Some(&next) => self.late.lower_bound(next).max(self.late_at + 1),
                None => self.late.times().partition_point(|&t| t <= end),
            };
            let late = self.late.slice(self.late_at..stop);
            collect(
                &mut self.collect,
                self.ranges,
                &mut self.matching_rows,
                late,
            );
            self.late_at = stop;
        }
        collect(
            &mut self.collect,
            self.ranges,
            &mut self.matching_rows,
            rows,
        );
        Ok(())
    }
}

/// Passes the matching rows to the collector; their last columns are the columns of the ranges.
fn collect(
    collector: &mut impl Collector,
    ranges: &[ValueRange],
    matching_rows: &mut Rows,
    rows: RowsRef<'_>,
) {
    if ranges.is_empty() {
        return collector.rows(rows);
    }
    debug_assert_eq!(
        matching_rows.columns.len(),
        rows.column_count(),
        "every column"
    );
    let first = rows.column_count() - ranges.len();
    let matches = |row: usize| {
        let mut own = ranges.iter().enumerate();
        own.all(|(number, range)| range.contains(rows.column(first + number)[row]))
    };
    matching_rows.clear();
    for row in (0..rows.len()).filter(|&row| matches(row)) {
        matching_rows.times.push(rows.times()[row]);
        for (c, column) in matching_rows.columns.iter_mut().enumerate() {
            column.push(rows.column(c)[row]);
        }
    }
    collector.rows(matching_rows.view());
}
