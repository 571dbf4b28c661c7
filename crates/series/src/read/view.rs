//! A series as a reader sees it: the tree merged with the late rows.
//!
//! Late rows are the sorted rows of the delta. They are newer than the tree and replace all its rows with equal times.
//! Several rows with one time therefore come from one source.

use crate::read::candles::{Candle, CandleSize, Candles};
use crate::read::collect::{Window, WindowGrid};
use crate::read::filter::ValueRange;
use crate::read::fold::{self, AggregateRequest, Fold};
use crate::read::segments;
use crate::row::Row;
use crate::tree::series_tree::SeriesTree;
use tidalite_codec::{Parts, RowsRef};
use tidalite_pager::{PageRead, Result};

/// A series as a reader sees it.
pub struct View<'a, R> {
    pub(super) r: &'a R,
    pub(crate) tree: &'a SeriesTree,
    pub(super) late: RowsRef<'a>,
}

// Not derived, because a derived `Clone` would require that `R` implements it.
impl<R> Clone for View<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for View<'_, R> {}

fn row_of(rows: RowsRef<'_>, row: usize) -> Row {
    let words = (0..rows.column_count()).map(|c| rows.column(c)[row]);
    Row {
        time: rows.times()[row],
        words: words.collect(),
    }
}

impl<'a, R: PageRead> View<'a, R> {
    /// Reads `tree` through `r`, overlaid with `late` rows.
    ///
    /// A writer that reads its own changes calls `SeriesTree::close_leaf` and `Packer::flush` first.
    ///
    /// # Panics
    /// If the columns of the late rows differ from the series'.
    #[must_use]
    pub fn new(r: &'a R, tree: &'a SeriesTree, late: RowsRef<'a>) -> Self {
        assert_eq!(
            late.column_count(),
            tree.types.len(),
            "the columns of the series"
        );
        debug_assert!(late.is_sorted(), "late rows are sorted");
        debug_assert!(tree.open.is_none(), "its newest rows can be read");
        Self { r, tree, late }
    }

    /// First and last timestamp.
    #[must_use]
    pub fn span(&self) -> Option<(i64, i64)> {
        let late = self
            .late
            .times()
            .first()
            .copied()
            .zip(self.late.times().last().copied());
        match (self.tree.span(), late) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (one, other) => one.or(other),
        }
    }

    pub(super) fn segments(&self, columns: &[usize]) -> segments::Segments<'a, R> {
        let mut wanted = vec![false; self.tree.types.len()];
        for &c in columns {
            wanted[c] = true;
        }
        segments::Segments::new(self.r, self.tree, self.late, wanted)
    }

    /// The time of the row with `n` rows before it, and how many of these rows have the same time; `None` if there are
    /// no more than `n`. Leaves before it are counted, not read, unless they overlap late rows.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    pub fn nth(&self, n: u64) -> Result<Option<(i64, usize)>> {
        fold::nth(self.r, self.tree, self.late, n)
    }

    /// The first row. Reads nothing.
    #[must_use]
    pub fn first(&self) -> Option<Row> {
        let late = (!self.late.is_empty()).then(|| row_of(self.late, 0));
        match (self.tree.first_row(), late) {
            // For equal times, the late rows replace the others.
            (Some(old), Some(late)) if old.time < late.time => Some(old),
            (old, late) => late.or(old),
        }
    }

    /// The last row; if several rows have its time, the last to arrive. Reads nothing.
    #[must_use]
    pub fn last(&self) -> Option<Row> {
        let late = self.late.len().checked_sub(1);
        let late = late.map(|last| row_of(self.late, last));
        match (self.tree.last_row(), late) {
            (Some(old), Some(late)) if old.time > late.time => Some(old),
            (old, late) => late.or(old),
        }
    }

    /// Number of rows from `from` to `to`, both included. Decodes the times of at most two vectors, and of vectors that
    /// overlap late rows.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    pub fn count(&self, from: i64, to: i64) -> Result<u64> {
        fold::count(self.r, self.tree, self.late, (from, to), &[])
    }

    /// Some aggregate functions of a column over the rows `from ..= to` that match all `ranges`, with the times of the
    /// first and the last of these rows; `None` without rows. Without ranges, reads at most two nodes per level and
    /// decodes at most two vectors, plus vectors that overlap late rows.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    ///
    /// # Panics
    /// If a column does not exist, or if the type of a range differs from its column's.
    pub fn summary(
        &self,
        from: i64,
        to: i64,
        column: usize,
        parts: Parts,
        ranges: &[ValueRange],
    ) -> Result<Option<Candle>> {
        let request = AggregateRequest {
            interval: (from, to),
            grid: None,
            columns: &[column],
            parts,
            ranges,
        };
        let mut whole = None;
        fold::fold(self.r, self.tree, self.late, request, |_, window| {
            whole = Some(Candle {
                first_time: window.first_time,
                last_time: window.last_time,
                stats: window.stats,
            });
        })?;
        Ok(whole)
    }

    /// Statistics of a column over parts of the tree within `from ..= to`, ascending.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    ///
    /// # Panics
    /// If the column does not exist.
    pub fn candles(
        &self,
        from: i64,
        to: i64,
        column: usize,
        size: CandleSize,
        f: impl FnMut(Candle),
    ) -> Result<()> {
        let candles = Candles::new(self.tree.types[column], size, f);
        let columns = [column];
        let words = fold::select_columns(self.late, &columns);
        let late = RowsRef::new(self.late.times(), &words);
        let mut fold = Fold::new(
            self.r,
            self.tree,
            late,
            (from, to),
            (&columns, &[]),
            candles,
        );
        fold.run()?;
        fold.collect.close();
        Ok(())
    }

    /// Some aggregate functions of several columns for each window of the grid with rows in `interval` that match all
    /// `ranges`, ascending, in one walk: `f` is called for each column with a window, and with the column's index in
    /// `columns`.
    ///
    /// # Errors
    /// `Io`, `Corrupt`; `Limit` if the width of the windows is not positive.
    ///
    /// # Panics
    /// As for `summary`.
    pub fn windows_of(
        &self,
        interval: (i64, i64),
        grid: WindowGrid<'_>,
        (columns, parts): (&[usize], Parts),
        ranges: &[ValueRange],
        f: impl FnMut(usize, Window),
    ) -> Result<()> {
        let request = AggregateRequest {
            interval,
            grid: Some(grid),
            columns,
            parts,
            ranges,
        };
        fold::fold(self.r, self.tree, self.late, request, f)
    }
}
