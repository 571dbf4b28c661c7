//! Candlesticks: statistics of parts of the tree, delivered without splitting these parts. Their number depends on the
//! level in the tree, or on the maximum time span of a candle. Nothing below a part is read, except for the parts at
//! the ends of the interval and parts that overlap late rows (rows that are not in the tree yet). (Akumuli's numeric
//! B+tree has such candlesticks by level.)
//!
//! 1. Candles ascend, do not overlap, and together cover each row of the interval once.
//! 2. `open` is the candle that collects smaller pieces and rows; it is delivered before any later candle.

use crate::node::NODE_LINKS_MAX;
use crate::read::collect::{Collector, Piece, VECTOR_RANK};
use tidalite_base::limits::{LEAF_VECTORS_MAX, VECTOR_ROWS};
use tidalite_codec::{ColumnType, RowsRef, Stats};
use tidalite_pager::Result;

/// Maximum size of a candle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CandleSize {
    /// Each candle covers a part of the tree at this level: at level 0 a vector of up to 1024 rows, at level 1 a leaf
    /// of up to 16 vectors, from level 2 on a node of up to 64 links.
    Level(u8),
    /// A candle joins neighbouring parts while its first and last row are less than this time apart.
    Width(u64),
}

/// Statistics of neighbouring rows: first and last value, extremes, count, sum and so on.
#[derive(Clone, Debug, PartialEq)]
pub struct Candle {
    /// The time of the candle's first row.
    pub first_time: i64,
    /// The time of the candle's last row.
    pub last_time: i64,
    /// The statistics of the column over the rows of the candle.
    pub stats: Stats,
}

pub(super) struct Candles<F> {
    ty: ColumnType,
    size: CandleSize,
    open: Option<Candle>,
    f: F,
}

impl<F: FnMut(Candle)> Candles<F> {
    /// Creates a collector that passes the candles of one column to `f`.
    pub(super) fn new(ty: ColumnType, size: CandleSize, f: F) -> Self {
        Self {
            ty,
            size,
            open: None,
            f,
        }
    }

    pub(super) fn close(&mut self) {
        if let Some(candle) = self.open.take() {
            (self.f)(candle);
        }
    }

    /// Maximum number of rows in a candle at this level: as many as the largest part of the tree at this level has.
    fn room(level: u8) -> u64 {
        let leaves = (NODE_LINKS_MAX as u64).saturating_pow(u32::from(level.saturating_sub(1)));
        let leaf = if level > VECTOR_RANK {
            LEAF_VECTORS_MAX as u64
        } else {
            1
        };
        leaves.saturating_mul(leaf * VECTOR_ROWS as u64)
    }

    /// Adds the statistics of rows that follow the rows added before; begins a new candle if these rows do not fit the
    /// open candle.
    fn gather(&mut self, first_time: i64, last_time: i64, stats: &Stats) {
        let fits = self.open.as_ref().is_some_and(|open| match self.size {
            CandleSize::Level(level) => {
                open.stats.count().saturating_add(stats.count()) <= Self::room(level)
            }
            CandleSize::Width(width) => last_time.abs_diff(open.first_time) < width,
        });
        if !fits {
            self.close();
        }
        let open = self.open.get_or_insert_with(|| Candle {
            first_time,
            last_time,
            stats: Stats::empty(self.ty),
        });
        open.stats.merge_after(stats);
        open.last_time = last_time;
    }
}

impl<F: FnMut(Candle)> Collector for Candles<F> {
    fn takes_whole(&mut self, piece: &Piece) -> bool {
        match self.size {
            CandleSize::Level(level) => piece.rank <= level,
            CandleSize::Width(width) => piece.end.abs_diff(piece.begin) < width,
        }
    }

    fn piece(
        &mut self,
        piece: &Piece,
        mut merge: impl FnMut(usize, &mut Stats) -> Result<()>,
    ) -> Result<()> {
        debug_assert!(self.takes_whole(piece), "the piece fits a candle");
        let mut stats = Stats::empty(self.ty);
        merge(0, &mut stats)?;
        let whole = self.size == CandleSize::Level(piece.rank);
        if whole {
            self.close();
        }
        self.gather(piece.begin, piece.end, &stats);
        if whole {
            self.close();
        }
        Ok(())
    }

    fn rows(&mut self, rows: RowsRef<'_>) {
        let (mut times, mut words) = (rows.times(), rows.column(0));
        while let Some(&first) = times.first() {
            let rows = match self.size {
                // Rows with equal times stay in one candle.
                CandleSize::Level(_) => match times.get(VECTOR_ROWS) {
                    None => times.len(),
                    Some(&next) => match times.partition_point(|&t| t < next) {
                        0 => VECTOR_ROWS,
                        cut => cut.min(VECTOR_ROWS),
                    },
                },
                CandleSize::Width(width) => {
                    let from = self.open.as_ref().map_or(first, |open| open.first_time);
                    let fit = times.partition_point(|&t| t.abs_diff(from) < width);
                    if fit > 0 {
                        fit
                    } else {
                        times.partition_point(|&t| t.abs_diff(first) < width).max(1)
                    }
                }
            };
            assert!((1..=times.len()).contains(&rows), "every step takes rows");
            let stats = Stats::of(self.ty, &times[..rows], &words[..rows]);
            self.gather(first, times[rows - 1], &stats);
            (times, words) = (&times[rows..], &words[rows..]);
        }
    }
}
