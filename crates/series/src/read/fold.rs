//! Aggregates: one recursion for an interval, its windows, and its count.
//!
//! 1. A link (or a vector of a leaf) is folded unread when its span lies inside the interval and inside
//!    one window and holds no late row; else the recursion goes one level down.
//! 2. Pieces reach the collector in ascending order of time, so that first, last and the times of
//!    extremes come out right, and one window is open at a time.
//! 3. Window arithmetic is done in 128 bits where 64 would overflow: no origin, width or time is too large.
//! 4. Several columns are folded in one walk: columns here are numbers in the list of those that the collector wants.

use crate::leaf::{Leaf, Reached};
use crate::link::Link;
use crate::node::{NodeStats, Spine};
use crate::tree::SeriesTree;
use std::cell::Cell;
use tidalite_codec::{Parts, Rows, RowsRef, Stats};
use tidalite_pager::{Counters, Error, PageRead, Result};

/// Statistics of one window.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// Its first timestamp; `i64::MIN` when it begins before that.
    pub start: i64,
    /// Its last timestamp, included; `i64::MAX` when it ends after that.
    pub last: i64,
    /// The time of its first row.
    pub first_time: i64,
    /// The time of its last row.
    pub last_time: i64,
    /// The column's statistics in it, of the figures that were asked for.
    pub stats: Stats,
}

/// Windows of equal width.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    width: i64,
    origin: i64,
}

impl Grid {
    pub(crate) fn new(width: i64, origin: i64) -> Result<Self> {
        if width <= 0 {
            return Err(Error::Limit {
                what: "width of a window (at least 1)",
                found: width as u64,
                limit: i64::MAX as u64,
            });
        }
        Ok(Self { width, origin })
    }

    /// First and last timestamp of the window that holds `t`.
    fn window(&self, t: i64) -> (i64, i64) {
        // The division takes several times as long with 128 bits.
        let since = t.checked_sub(self.origin);
        let start = since.and_then(|since| t.checked_sub(since.rem_euclid(self.width)));
        match start.and_then(|start| Some((start, start.checked_add(self.width - 1)?))) {
            Some(window) => window,
            None => self.wide_window(t),
        }
    }

    fn wide_window(&self, t: i64) -> (i64, i64) {
        let (t, width) = (i128::from(t), i128::from(self.width));
        let start = t - (t - i128::from(self.origin)).rem_euclid(width);
        let last = start + width - 1;
        let (min, max) = (i128::from(i64::MIN), i128::from(i64::MAX));
        (start.max(min) as i64, last.min(max) as i64)
    }
}

/// A vector's rank among the pieces; a leaf comes next, then nodes of level 1 and up.
pub(super) const VECTOR_RANK: u8 = 0;

/// Rows that statistics tell of: those of a vector, a leaf, or a node.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    /// Height above the rows, see [`VECTOR_RANK`].
    pub(super) rank: u8,
    /// First timestamp.
    pub(super) begin: i64,
    /// Last timestamp, included.
    pub(super) end: i64,
    /// Rows.
    pub(super) count: u64,
}

impl Piece {
    /// What is below a link that leads to `level`, 0 for a leaf.
    fn of(link: &Link, level: u8) -> Self {
        Self {
            rank: level + VECTOR_RANK + 1,
            begin: link.begin,
            end: link.end,
            count: link.count,
        }
    }
}

/// What becomes of the pieces.
pub(super) trait Collector {
    /// Whether the rows of the piece need not be told apart.
    fn together(&mut self, piece: &Piece) -> bool;
    /// The time up to which pieces behind the one that ends at `end` will be together, as far as it is known: what lies
    /// across it is asked for ahead.
    fn together_up_to(&self, end: i64) -> i64 {
        let _ = end;
        i64::MAX
    }
    /// Takes what a link or vector says of its rows; `merge` takes the statistics of one of the columns in behind those given.
    fn piece(
        &mut self,
        piece: &Piece,
        merge: impl FnMut(usize, &mut Stats) -> Result<()>,
    ) -> Result<()>;
    /// Takes rows, with the columns and no others.
    fn rows(&mut self, rows: RowsRef<'_>);
}

struct Count(u64);

impl Collector for Count {
    fn together(&mut self, _: &Piece) -> bool {
        true
    }

    fn piece(
        &mut self,
        piece: &Piece,
        _: impl FnMut(usize, &mut Stats) -> Result<()>,
    ) -> Result<()> {
        self.0 = self.0.saturating_add(piece.count);
        Ok(())
    }

    fn rows(&mut self, rows: RowsRef<'_>) {
        self.0 += rows.len() as u64;
    }
}

/// Where a window begins and ends, and the rows in it.
#[derive(Clone, Copy)]
struct Open {
    start: i64,
    last: i64,
    first_time: i64,
    last_time: i64,
}

struct Windows<F> {
    grid: Option<Grid>,
    /// The window under way; it has rows.
    open: Option<Open>,
    /// The columns' statistics in it.
    stats: Vec<Stats>,
    f: F,
}

impl<F: FnMut(usize, Window)> Windows<F> {
    /// The open window, which is made the one that holds `t`.
    #[inline]
    fn at(&mut self, t: i64) -> &mut Open {
        let open = self.open.as_ref();
        if open.is_some_and(|open| t < open.start || open.last < t) {
            self.close();
        }
        let grid = self.grid;
        self.open.get_or_insert_with(|| {
            let (start, last) = grid.map_or((i64::MIN, i64::MAX), |grid| grid.window(t));
            Open {
                start,
                last,
                first_time: t,
                last_time: t,
            }
        })
    }

    /// The last timestamp of the window that holds `t`.
    #[inline]
    fn last(&self, t: i64) -> i64 {
        match (&self.open, &self.grid) {
            (_, None) => i64::MAX,
            (Some(open), _) if open.start <= t && t <= open.last => open.last,
            (_, Some(grid)) => grid.window(t).1,
        }
    }

    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        for (column, stats) in self.stats.iter_mut().enumerate() {
            let empty = Stats::empty_with(stats.parts(), stats.column_type());
            let window = Window {
                start: open.start,
                last: open.last,
                first_time: open.first_time,
                last_time: open.last_time,
                stats: std::mem::replace(stats, empty),
            };
            (self.f)(column, window);
        }
    }
}

impl<F: FnMut(usize, Window)> Collector for Windows<F> {
    fn together(&mut self, piece: &Piece) -> bool {
        piece.end <= self.last(piece.begin)
    }

    fn together_up_to(&self, end: i64) -> i64 {
        self.last(end)
    }

    fn piece(
        &mut self,
        piece: &Piece,
        mut merge: impl FnMut(usize, &mut Stats) -> Result<()>,
    ) -> Result<()> {
        self.at(piece.begin).last_time = piece.end;
        for (column, all) in self.stats.iter_mut().enumerate() {
            merge(column, all)?;
        }
        Ok(())
    }

    fn rows(&mut self, mut rows: RowsRef<'_>) {
        while let Some(&time) = rows.times().first() {
            let last = self.at(time).last;
            let times = rows.times();
            // Most windows end soon or not at all here: look ahead in steps that double.
            let mut low = 1;
            let mut step = 1;
            while low + step <= times.len() && times[low + step - 1] <= last {
                low += step;
                step *= 2;
            }
            let high = times.len().min(low + step);
            let cut = low + times[low..high].partition_point(|&t| t <= last);
            self.at(time).last_time = times[cut - 1];
            let own = rows.slice(0..cut);
            for (column, all) in self.stats.iter_mut().enumerate() {
                let (parts, ty) = (all.parts(), all.column_type());
                all.merge_after(&Stats::with(parts, ty, own.times(), own.column(column)));
            }
            rows = rows.slice(cut..rows.len());
        }
    }
}

/// Which column stands where in the late rows of a series.
pub(super) fn chosen<'l>(late: RowsRef<'l>, columns: &[usize]) -> Vec<&'l [u64]> {
    columns.iter().map(|&column| late.column(column)).collect()
}

pub(super) struct Fold<'a, 'l, R, C> {
    r: &'a R,
    tree: &'a SeriesTree,
    /// The columns that the collector wants, in its order.
    columns: &'l [usize],
    /// These columns of the late rows.
    late: RowsRef<'l>,
    /// Late rows before this one are collected.
    late_at: usize,
    from: i64,
    to: i64,
    pub(super) collect: C,
    /// A decoded vector.
    rows: Lent,
    /// Of the columns, how far the statistics of the open leaf were read.
    reached: Vec<Reached>,
}

/// Bytes of a leaf's directory, or of a node's spine, that are asked for ahead. The processor finds the others itself; more
/// requests than it can have under way would keep it waiting.
const AHEAD_BYTES: usize = 1024;

thread_local! {
    /// The decoded vector of the last aggregate of this thread: fresh memory for each one, filled with zeros first, takes as long as a
    /// tenth of a small question.
    static SPARE: Cell<Rows> = const {
        Cell::new(Rows {
            times: Vec::new(),
            columns: Vec::new(),
        })
    };
}

/// Rows that go back to the thread's spare place.
struct Lent(Rows);

impl Lent {
    /// With so many columns; what is in them is of no use.
    fn with_columns(columns: usize) -> Self {
        let mut rows = SPARE.take();
        rows.columns.resize_with(columns, Vec::new);
        Self(rows)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let rows = std::mem::take(&mut self.0);
        // A thread that is ending has no place for them any more.
        let _ = SPARE.try_with(|spare| spare.set(rows));
    }
}

pub(super) fn count<R: PageRead>(
    r: &R,
    tree: &SeriesTree,
    late: RowsRef<'_>,
    from: i64,
    to: i64,
) -> Result<u64> {
    let late = RowsRef::new(late.times(), &[]);
    let mut fold = Fold::new(r, tree, late, (from, to), &[], Count(0));
    fold.run()?;
    Ok(fold.collect.0)
}

/// What is asked of an interval.
#[derive(Clone, Copy)]
pub(super) struct Asked<'c> {
    /// First and last time, both included.
    pub(super) interval: (i64, i64),
    /// Windows, or the interval as one.
    pub(super) grid: Option<Grid>,
    pub(super) columns: &'c [usize],
    /// The figures of each column.
    pub(super) parts: Parts,
}

/// Calls `f` with the windows of each of the columns, by their numbers in `columns`.
pub(super) fn fold<R: PageRead>(
    r: &R,
    tree: &SeriesTree,
    late: RowsRef<'_>,
    asked: Asked<'_>,
    f: impl FnMut(usize, Window),
) -> Result<()> {
    let Asked {
        interval,
        grid,
        columns,
        parts,
    } = asked;
    let empty = |&column: &usize| Stats::empty_with(parts, tree.types[column]);
    let windows = Windows {
        grid,
        open: None,
        stats: columns.iter().map(empty).collect(),
        f,
    };
    let words = chosen(late, columns);
    let late = RowsRef::new(late.times(), &words);
    let mut fold = Fold::new(r, tree, late, interval, columns, windows);
    fold.run()?;
    fold.collect.close();
    Ok(())
}

impl<'a, 'l, R: PageRead, C: Collector> Fold<'a, 'l, R, C> {
    /// `late` has the columns `columns`, in this order.
    pub(super) fn new(
        r: &'a R,
        tree: &'a SeriesTree,
        late: RowsRef<'l>,
        (from, to): (i64, i64),
        columns: &'l [usize],
        collect: C,
    ) -> Self {
        Self {
            r,
            tree,
            columns,
            late: if from <= to {
                late.between(from, to)
            } else {
                late.slice(0..0)
            },
            late_at: 0,
            from,
            to,
            collect,
            rows: Lent::with_columns(columns.len()),
            reached: vec![Reached::default(); columns.len()],
        }
    }

    pub(super) fn run(&mut self) -> Result<()> {
        let tree = self.tree;
        for entry in tree.tops() {
            if self.from > self.to || entry.link.begin > self.to {
                break;
            }
            if self.skip(&entry.link) {
                continue;
            }
            self.late_before(entry.link.begin);
            let is_root = tree
                .root
                .as_ref()
                .is_some_and(|root| std::ptr::eq(root, entry));
            let level = if is_root { tree.height } else { 0 };
            let piece = Piece::of(&entry.link, level);
            if self.foldable(&piece) {
                let columns = self.columns;
                self.collect.piece(&piece, |i, all| {
                    all.merge_after(&entry.stats[columns[i]]);
                    Ok(())
                })?;
            } else {
                self.below(level, &entry.link)?;
            }
        }
        self.late_rows(self.late.len());
        Ok(())
    }

    fn skip(&self, link: &Link) -> bool {
        link.outside(self.from, self.to)
    }

    /// Collects the late rows in front of `time`.
    fn late_before(&mut self, time: i64) {
        let rest = &self.late.times()[self.late_at..];
        if rest.first().is_some_and(|&first| first < time) {
            let stop = self.late_at + rest.partition_point(|&t| t < time);
            self.late_rows(stop);
        }
    }

    fn late_rows(&mut self, stop: usize) {
        let stop = stop.max(self.late_at);
        self.collect.rows(self.late.slice(self.late_at..stop));
        self.late_at = stop;
    }

    /// Whether rows of this span can be taken as a whole. The late rows in front of it are collected.
    fn foldable(&mut self, piece: &Piece) -> bool {
        let (begin, end) = (piece.begin, piece.end);
        let late_inside = self
            .late
            .times()
            .get(self.late_at)
            .is_some_and(|&late| late <= end);
        !late_inside && self.from <= begin && end <= self.to && self.collect.together(piece)
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
        // Blocks of statistics, read when they are asked for.
        let mut stats: Vec<Option<NodeStats<'_>>> = Vec::new();
        stats.resize_with(columns.len(), || None);
        for i in spine.link_at(self.from)..spine.len() {
            let child = spine.link(i);
            if child.begin > self.to {
                break;
            }
            if self.skip(&child) {
                continue;
            }
            self.late_before(child.begin);
            let piece = Piece::of(&child, level - 1);
            if self.foldable(&piece) {
                self.collect.piece(&piece, |column, all| {
                    let (c, place) = (columns[column], &mut stats[column]);
                    let block = match place.take() {
                        Some(block) => block,
                        None => spine.stats(r, c, tree.types[c])?,
                    };
                    place.insert(block).merge(i, all)
                })?;
            } else {
                self.ask_ahead(&spine, i, child.end);
                self.below(level - 1, &child)?;
            }
        }
        Ok(())
    }

    /// Asks for the next child that will be looked into, while child `i` is: most of what it costs is the way to memory.
    fn ask_ahead(&self, spine: &Spine<'_>, i: usize, end: i64) {
        let last = self.collect.together_up_to(end).min(self.to);
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
        if leaf.has_times() {
            // The vector that is cut next. (Payloads of stepped times are none, those of their columns short.)
            let (begin, _) = leaf.span(first);
            let last = self.collect.together_up_to(begin).min(self.to);
            let cut = leaf.vector_at(last);
            if last < leaf.span(cut).1 {
                leaf.prefetch_vector(r, cut, columns);
            }
        }
        self.reached.fill(Reached::default());
        for v in first..leaf.vectors() {
            let (begin, end) = leaf.span(v);
            if begin > self.to {
                break;
            }
            if end < self.from {
                continue;
            }
            self.late_before(begin);
            let piece = Piece {
                rank: VECTOR_RANK,
                begin,
                end,
                count: leaf.rows_of(v) as u64,
            };
            if self.foldable(&piece) {
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
        // Rows of the tree up to the next late one, then that one, which replaces its equals.
        while let Some(&late) = self.late.times().get(self.late_at)
            && late <= end
        {
            let before = rows.lower_bound(late);
            self.collect.rows(rows.slice(0..before));
            let equal = rows.times()[before..].partition_point(|&t| t == late);
            rows = rows.slice(before + equal..rows.len());
            let stop = match rows.times().first() {
                Some(&next) => self.late.lower_bound(next).max(self.late_at + 1),
                None => self.late.times().partition_point(|&t| t <= end),
            };
            self.collect.rows(self.late.slice(self.late_at..stop));
            self.late_at = stop;
        }
        self.collect.rows(rows);
        Ok(())
    }
}
