//! Collectors for the pieces of a fold: rows are counted, skipped, or aggregated by window.
//!
//! Window arithmetic uses 128 bits where 64 would overflow: no origin, width or time is too large.

use crate::link::Link;
use tidalite_codec::{RowsRef, Stats};
use tidalite_pager::{Error, Result};

/// Statistics of one window.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// Its first timestamp; `i64::MIN` if it begins before that.
    pub start: i64,
    /// Its last timestamp, included; `i64::MAX` if it ends after that.
    pub last: i64,
    /// The time of its first row.
    pub first_time: i64,
    /// The time of its last row.
    pub last_time: i64,
    /// The column's statistics in it, for the requested aggregate functions.
    pub stats: Stats,
}

/// How windows divide time.
#[derive(Clone, Copy)]
pub enum WindowGrid<'g> {
    /// Windows of equal width: window k holds the times from `origin + k width` up to, not including,
    /// `origin + (k + 1) width`.
    Even {
        /// Width of a window, at least 1.
        width: i64,
        /// The start of one window.
        origin: i64,
    },
    /// Windows of any width. The function returns the first and the last time of the window that contains a time.
    Calendar(&'g (dyn Fn(i64) -> (i64, i64) + Sync)),
}

impl WindowGrid<'_> {
    /// Refuses a width of 0 or less.
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Self::Even { width, .. } if *width <= 0 => Err(Error::Limit {
                what: "width of a window (at least 1, a negative one counts as 0)",
                found: 0,
                limit: i64::MAX as u64,
            }),
            _ => Ok(()),
        }
    }

    /// First and last timestamp of the window that holds `t`.
    fn window(&self, t: i64) -> (i64, i64) {
        let window = match *self {
            Self::Even { width, origin } => Even { width, origin }.window(t),
            Self::Calendar(window) => window(t),
        };
        debug_assert!(window.0 <= t && t <= window.1, "the window of the time");
        window
    }
}

/// Windows of equal width.
struct Even {
    width: i64,
    origin: i64,
}

impl Even {
    fn window(&self, t: i64) -> (i64, i64) {
        // Division takes several times as long with 128 bits.
        let since = t.checked_sub(self.origin);
        let start = since.and_then(|since| t.checked_sub(since.rem_euclid(self.width)));
        let window = start.and_then(|start| Some((start, start.checked_add(self.width - 1)?)));
        window.unwrap_or_else(|| self.wide_window(t))
    }

    fn wide_window(&self, t: i64) -> (i64, i64) {
        let (t, width) = (i128::from(t), i128::from(self.width));
        let start = t - (t - i128::from(self.origin)).rem_euclid(width);
        let last = start + width - 1;
        let (min, max) = (i128::from(i64::MIN), i128::from(i64::MAX));
        (start.max(min) as i64, last.min(max) as i64)
    }
}

/// A vector's rank among the pieces; then come leaves, then nodes of level 1 and up.
pub(super) const VECTOR_RANK: u8 = 0;

/// Rows covered by one set of statistics: a vector, a leaf, or a node.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    /// Height above the rows, see [`VECTOR_RANK`].
    pub(super) rank: u8,
    /// First timestamp.
    pub(super) begin: i64,
    /// Last timestamp, included.
    pub(super) end: i64,
    /// Number of rows.
    pub(super) count: u64,
}

impl Piece {
    /// The piece below a link that points to `level`, 0 for a leaf.
    pub(super) fn of(link: &Link, level: u8) -> Self {
        debug_assert!(link.begin <= link.end, "links were verified");
        Self {
            rank: level + VECTOR_RANK + 1,
            begin: link.begin,
            end: link.end,
            count: link.count,
        }
    }
}

/// Receives the pieces and rows of a fold.
pub(super) trait Collector {
    /// Whether the piece can be taken as a whole, without its rows.
    fn takes_whole(&mut self, piece: &Piece) -> bool;
    /// The time up to which pieces after the one that ends at `end` can be taken as a whole, as far as known: a piece
    /// that contains this time is prefetched.
    fn takes_whole_up_to(&self, end: i64) -> i64 {
        let _ = end;
        i64::MAX
    }
    /// Takes a whole piece; `merge` merges the statistics of one of the columns into the given statistics of preceding
    /// rows.
    fn piece(
        &mut self,
        piece: &Piece,
        merge: impl FnMut(usize, &mut Stats) -> Result<()>,
    ) -> Result<()>;
    /// Takes rows; their first columns are the requested ones.
    fn rows(&mut self, rows: RowsRef<'_>);
    /// Whether all further pieces and rows can be skipped.
    fn done(&self) -> bool {
        false
    }
}

/// Counts rows.
#[derive(Default)]
pub(super) struct Count {
    pub(super) rows: u64,
}

impl Collector for Count {
    fn takes_whole(&mut self, _: &Piece) -> bool {
        true
    }

    fn piece(
        &mut self,
        piece: &Piece,
        _: impl FnMut(usize, &mut Stats) -> Result<()>,
    ) -> Result<()> {
        self.rows = self.rows.saturating_add(piece.count);
        Ok(())
    }

    fn rows(&mut self, rows: RowsRef<'_>) {
        self.rows += rows.len() as u64;
    }
}

/// Skips a given number of rows, to find the time of the next one.
pub(super) struct Nth {
    left: u64,
    /// The time, and how many of the skipped rows have it.
    pub(super) found: Option<(i64, usize)>,
}

impl Nth {
    /// Skips `rows` rows.
    pub(super) fn after(rows: u64) -> Self {
        let (left, found) = (rows, None);
        Self { left, found }
    }
}

impl Collector for Nth {
    fn takes_whole(&mut self, piece: &Piece) -> bool {
        piece.count <= self.left
    }

    fn piece(
        &mut self,
        piece: &Piece,
        _: impl FnMut(usize, &mut Stats) -> Result<()>,
    ) -> Result<()> {
        assert!(piece.count <= self.left, "the row is behind the piece");
        self.left -= piece.count;
        Ok(())
    }

    fn rows(&mut self, rows: RowsRef<'_>) {
        if self.done() {
            return;
        }
        let times = rows.times();
        let at = usize::try_from(self.left).unwrap_or(usize::MAX);
        match times.get(at) {
            // Rows with equal times arrive together.
            Some(&time) => self.found = Some((time, at - rows.lower_bound(time))),
            None => self.left -= times.len() as u64,
        }
    }

    fn done(&self) -> bool {
        self.found.is_some()
    }
}

/// Bounds of a window, and of the rows in it.
#[derive(Clone, Copy)]
struct Open {
    start: i64,
    last: i64,
    first_time: i64,
    last_time: i64,
}

/// Statistics of columns, per window, or of all rows as one.
pub(super) struct Windows<'g, F> {
    grid: Option<WindowGrid<'g>>,
    /// The current window; it has rows.
    open: Option<Open>,
    /// The columns' statistics in the current window.
    stats: Vec<Stats>,
    f: F,
}

impl<'g, F: FnMut(usize, Window)> Windows<'g, F> {
    /// `stats` holds empty statistics for the columns.
    pub(super) fn new(grid: Option<WindowGrid<'g>>, stats: Vec<Stats>, f: F) -> Self {
        Self {
            grid,
            open: None,
            stats,
            f,
        }
    }

    /// Makes the window that contains `t` the open one, and returns it.
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

    /// The last timestamp of the window that contains `t`.
    #[inline]
    fn last(&self, t: i64) -> i64 {
        match (&self.open, &self.grid) {
            (_, None) => i64::MAX,
            (Some(open), _) if open.start <= t && t <= open.last => open.last,
            (_, Some(grid)) => grid.window(t).1,
        }
    }

    /// Delivers the current window.
    pub(super) fn close(&mut self) {
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

impl<F: FnMut(usize, Window)> Collector for Windows<'_, F> {
    fn takes_whole(&mut self, piece: &Piece) -> bool {
        piece.end <= self.last(piece.begin)
    }

    fn takes_whole_up_to(&self, end: i64) -> i64 {
        self.last(end)
    }

    fn piece(
        &mut self,
        piece: &Piece,
        mut merge: impl FnMut(usize, &mut Stats) -> Result<()>,
    ) -> Result<()> {
        let open = self.at(piece.begin);
        debug_assert!(piece.end <= open.last, "the piece lies in one window");
        open.last_time = piece.end;
        for (column, all) in self.stats.iter_mut().enumerate() {
            merge(column, all)?;
        }
        Ok(())
    }

    fn rows(&mut self, mut rows: RowsRef<'_>) {
        while let Some(&time) = rows.times().first() {
            let last = self.at(time).last;
            let times = rows.times();
            // Most windows end soon, or not within these rows: search ahead with doubling steps.
            let mut low = 1;
            let mut step = 1;
            while low + step <= times.len() && times[low + step - 1] <= last {
                low += step;
                step *= 2;
            }
            let high = times.len().min(low + step);
            let cut = low + times[low..high].partition_point(|&t| t <= last);
            debug_assert!(0 < cut && cut <= times.len(), "every step takes rows");
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
