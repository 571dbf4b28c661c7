//! Aggregates: one recursion for an interval, its windows, and its count.
//!
//! 1. A link (or a vector of a leaf) is folded unread when its span lies inside the interval and inside
//!    one window and holds no late row; else the recursion goes one level down.
//! 2. Pieces reach the collector in ascending order of time, so that first, last and the times of
//!    extremes come out right, and one window is open at a time.
//! 3. Window arithmetic is done in 128 bits: no origin, width or time overflows it.

use crate::leaf::Leaf;
use crate::link::Link;
use crate::node::Spine;
use crate::tree::SeriesTree;
use tidalite_base::limits::VECTOR_ROWS;
use tidalite_codec::{ColumnType, RowsRef, Stats};
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
    /// The column's statistics in it.
    pub stats: Stats,
}

/// Windows of equal width.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    width: i128,
    origin: i128,
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
        Ok(Self {
            width: i128::from(width),
            origin: i128::from(origin),
        })
    }

    /// First and last timestamp of the window that holds `t`.
    fn window(&self, t: i64) -> (i64, i64) {
        let start = i128::from(t) - (i128::from(t) - self.origin).rem_euclid(self.width);
        let last = start + self.width - 1;
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
    /// The column that is decoded where statistics do not do.
    fn column(&self) -> Option<usize>;
    /// Takes what a link or vector says of its rows.
    fn piece(&mut self, piece: &Piece, stats: impl FnOnce() -> Result<Stats>) -> Result<()>;
    /// Takes rows; `words` is empty without a column.
    fn rows(&mut self, times: &[i64], words: &[u64]);
}

struct Count(u64);

impl Collector for Count {
    fn together(&mut self, _: &Piece) -> bool {
        true
    }

    fn column(&self) -> Option<usize> {
        None
    }

    fn piece(&mut self, piece: &Piece, _: impl FnOnce() -> Result<Stats>) -> Result<()> {
        self.0 = self.0.saturating_add(piece.count);
        Ok(())
    }

    fn rows(&mut self, times: &[i64], _: &[u64]) {
        self.0 += times.len() as u64;
    }
}

struct Windows<F> {
    column: usize,
    ty: ColumnType,
    grid: Option<Grid>,
    open: Option<Window>,
    f: F,
}

impl<F: FnMut(Window)> Windows<F> {
    /// The open window, which is made the one that holds `t`.
    fn at(&mut self, t: i64) -> &mut Window {
        if self
            .open
            .as_ref()
            .is_some_and(|open| t < open.start || open.last < t)
        {
            self.close();
        }
        let (ty, grid) = (self.ty, self.grid);
        self.open.get_or_insert_with(|| {
            let (start, last) = grid.map_or((i64::MIN, i64::MAX), |grid| grid.window(t));
            Window {
                start,
                last,
                first_time: t,
                last_time: t,
                stats: Stats::empty(ty),
            }
        })
    }

    fn close(&mut self) {
        if let Some(window) = self.open.take()
            && window.stats.count() > 0
        {
            (self.f)(window);
        }
    }
}

impl<F: FnMut(Window)> Collector for Windows<F> {
    fn together(&mut self, piece: &Piece) -> bool {
        let (begin, end) = (piece.begin, piece.end);
        self.grid.is_none_or(|grid| match &self.open {
            Some(open) if open.start <= begin && begin <= open.last => end <= open.last,
            _ => end <= grid.window(begin).1,
        })
    }

    fn column(&self) -> Option<usize> {
        Some(self.column)
    }

    fn piece(&mut self, piece: &Piece, stats: impl FnOnce() -> Result<Stats>) -> Result<()> {
        let stats = stats()?;
        let window = self.at(piece.begin);
        window.stats.merge_after(&stats);
        window.last_time = piece.end;
        Ok(())
    }

    fn rows(&mut self, mut times: &[i64], mut words: &[u64]) {
        while let Some(&time) = times.first() {
            let ty = self.ty;
            let window = self.at(time);
            let last = window.last;
            // Most windows end soon or not at all here: look ahead in steps that double.
            let mut low = 1;
            let mut step = 1;
            while low + step <= times.len() && times[low + step - 1] <= last {
                low += step;
                step *= 2;
            }
            let high = times.len().min(low + step);
            let rows = low + times[low..high].partition_point(|&t| t <= last);
            let stats = Stats::of(ty, &times[..rows], &words[..rows]);
            window.stats.merge_after(&stats);
            window.last_time = times[rows - 1];
            (times, words) = (&times[rows..], &words[rows..]);
        }
    }
}

pub(super) struct Fold<'a, R, C> {
    r: &'a R,
    tree: &'a SeriesTree,
    late: RowsRef<'a>,
    /// Late rows before this one are collected.
    late_at: usize,
    from: i64,
    to: i64,
    pub(super) collect: C,
    times: Vec<i64>,
    words: Vec<u64>,
}

pub(super) fn count<R: PageRead>(
    r: &R,
    tree: &SeriesTree,
    late: RowsRef<'_>,
    from: i64,
    to: i64,
) -> Result<u64> {
    let mut fold = Fold::new(r, tree, late, (from, to), Count(0));
    fold.run()?;
    Ok(fold.collect.0)
}

pub(super) fn fold<R: PageRead>(
    r: &R,
    tree: &SeriesTree,
    late: RowsRef<'_>,
    interval: (i64, i64),
    column: usize,
    grid: Option<Grid>,
    f: impl FnMut(Window),
) -> Result<()> {
    let windows = Windows {
        column,
        ty: tree.types[column],
        grid,
        open: None,
        f,
    };
    let mut fold = Fold::new(r, tree, late, interval, windows);
    fold.run()?;
    fold.collect.close();
    Ok(())
}

impl<'a, R: PageRead, C: Collector> Fold<'a, R, C> {
    pub(super) fn new(
        r: &'a R,
        tree: &'a SeriesTree,
        late: RowsRef<'a>,
        (from, to): (i64, i64),
        collect: C,
    ) -> Self {
        Self {
            r,
            tree,
            late: if from <= to {
                late.between(from, to)
            } else {
                late.slice(0..0)
            },
            late_at: 0,
            from,
            to,
            collect,
            times: Vec::new(),
            words: Vec::new(),
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
                let column = self.collect.column();
                self.collect
                    .piece(&piece, || Ok(entry.stats[column.unwrap_or_default()]))?;
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
        let rows = self.late.slice(self.late_at..stop.max(self.late_at));
        let words = self.collect.column().map_or(&[][..], |c| rows.column(c));
        self.collect.rows(rows.times(), words);
        self.late_at = stop.max(self.late_at);
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
        let (r, tree) = (self.r, self.tree);
        let spine = Spine::open(r, link, level, tree.types.len())?;
        let mut stats = None;
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
                let column = self.collect.column();
                self.collect.piece(&piece, || {
                    let c = column.unwrap_or_default();
                    let block = match stats.take() {
                        Some(block) => block,
                        None => spine.stats(r, c, tree.types[c])?,
                    };
                    stats.insert(block).get(i)
                })?;
            } else {
                self.below(level - 1, &child)?;
            }
        }
        Ok(())
    }

    fn leaf(&mut self, link: &Link) -> Result<()> {
        let (r, tree) = (self.r, self.tree);
        let leaf = Leaf::open(r, link, &tree.types)?;
        for v in leaf.vector_at(self.from)..leaf.vectors() {
            let (begin, end) = leaf.span(v);
            if begin > self.to {
                break;
            }
            if end < self.from {
                continue;
            }
            self.late_before(begin);
            let column = self.collect.column();
            let piece = Piece {
                rank: VECTOR_RANK,
                begin,
                end,
                count: leaf.rows_of(v) as u64,
            };
            if self.foldable(&piece) {
                self.collect.piece(&piece, || {
                    let c = column.unwrap_or_default();
                    leaf.stats(v, c, tree.types[c])
                })?;
            } else {
                self.vector(&leaf, v, column)?;
            }
        }
        Ok(())
    }

    /// Decodes a vector, cuts it to the interval and merges the late rows within its span.
    fn vector(&mut self, leaf: &Leaf<'a>, v: usize, column: Option<usize>) -> Result<()> {
        Counters::bump(&self.r.counters().vectors_decoded);
        let (begin, end) = leaf.span(v);
        let rows = leaf.rows_of(v);
        self.times.resize(VECTOR_ROWS, 0);
        self.words.resize(VECTOR_ROWS, 0);
        let (times, words) = (&mut self.times[..rows], &mut self.words[..rows]);
        leaf.times(self.r, v, times)?;
        if let Some(c) = column {
            leaf.column(self.r, v, c, words)?;
        }
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
        let (mut times, mut words) = (&times[low..high.max(low)], &words[low..high.max(low)]);
        // Rows of the tree up to the next late one, then that one, which replaces its equals.
        while let Some(&late) = self.late.times().get(self.late_at)
            && late <= end
        {
            let before = times.partition_point(|&t| t < late);
            self.collect.rows(&times[..before], &words[..before]);
            let equal = times[before..].partition_point(|&t| t == late);
            (times, words) = (&times[before + equal..], &words[before + equal..]);
            let stop = match times.first() {
                Some(&next) => self.late.lower_bound(next).max(self.late_at + 1),
                None => self.late.times().partition_point(|&t| t <= end),
            };
            let rows = self.late.slice(self.late_at..stop);
            self.collect
                .rows(rows.times(), column.map_or(&[][..], |c| rows.column(c)));
            self.late_at = stop;
        }
        self.collect.rows(times, words);
        Ok(())
    }
}
