//! Statistics of a column over an interval or a window, in the column's own terms.

use crate::types::column::{Column, ColumnType};
use tidalite_codec::{Parts, Stats};

/// Statistics of a column over some rows; for texts, only their number (the words of the first and the last one are
/// among the [statistics](Aggregate::stats)). Count, extremes, first and last are exact; sums are within 2^-50 of the
/// exact value, relative to the sum of magnitudes; the variance, a difference of two such sums, is within 2^-47 of the
/// exact value relative to the mean of the squares, for any leaves and history (for values of mean m and deviation s,
/// its relative error is thus at most 2^-47 (1 + m²/s²)).
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    ty: ColumnType,
    stats: Stats,
    /// Times of the first and the last row.
    times: Option<(i64, i64)>,
}

impl Aggregate {
    /// The aggregate of no rows, with these parts.
    pub(crate) fn empty(column: &Column, parts: Parts) -> Self {
        Self {
            ty: column.ty,
            stats: Stats::empty_with(parts, column.words()),
            times: None,
        }
    }

    /// Creates the aggregate of these statistics. `first` and `last` are the times of the first and the last row.
    pub(crate) fn new(column: &Column, stats: Stats, first: i64, last: i64) -> Self {
        Self {
            ty: column.ty,
            stats,
            times: Some((first, last)),
        }
    }

    /// Merges the statistics of other rows, anywhere in time. At equal times the other rows count as later.
    pub(crate) fn merge_beside(&mut self, other: &Self) {
        let (Some((first, last)), Some((begin, end))) = (self.times, other.times) else {
            if self.times.is_none() {
                *self = other.clone();
            }
            return;
        };
        self.stats
            .merge_beside(&other.stats, begin < first, end >= last);
        self.times = Some((first.min(begin), last.max(end)));
    }

    /// Converts the times.
    pub(crate) fn with_times(self, time: impl Fn(i64) -> i64) -> Self {
        Self {
            ty: self.ty,
            stats: self.stats.with_times(&time),
            times: self.times.map(|(first, last)| (time(first), time(last))),
        }
    }

    /// The statistics as stored in the tree: words instead of floats, integer sums exact, sums of decimals in units.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Number of rows with a value: rows in which the column is null are excluded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.stats.count().saturating_sub(self.stats.null_count())
    }

    /// Number of rows in which the column is null.
    #[must_use]
    pub fn null_count(&self) -> u64 {
        self.stats.null_count()
    }

    /// Number of rows whose value is NaN; they count only in `count`, `first` and `last`.
    #[must_use]
    pub fn nan_count(&self) -> u64 {
        self.stats.nan_count()
    }

    /// Sum of the values; 0 if none exist, and for texts.
    #[must_use]
    pub fn sum(&self) -> f64 {
        if self.ty.is_text() {
            return 0.0;
        }
        self.ty.scaled(self.stats.sum())
    }

    /// Arithmetic mean; `None` without values.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let mean = self.stats.mean().filter(|_| !self.ty.is_text());
        mean.map(|mean| self.ty.scaled(mean))
    }

    /// Population standard deviation: the root of a variance that is within 2^-47 of the mean of the squares, even if
    /// these exceed the range of floats. `None` without values; NaN if a value or the sum is infinite.
    #[must_use]
    pub fn stddev(&self) -> Option<f64> {
        let stddev = self.stats.stddev().filter(|_| !self.ty.is_text());
        stddev.map(|stddev| self.ty.scaled(stddev))
    }

    /// The smallest value and its earliest time. -0.0 is distinguished from 0.0 and lies just before it, so that the
    /// result depends only on the rows; a [filter](crate::Query::filter) for either finds both. NaN and null are
    /// not considered.
    #[must_use]
    pub fn min(&self) -> Option<(f64, i64)> {
        let (word, time) = self.stats.min()?;
        Some((self.ty.number(word)?, time))
    }

    /// The largest value and its earliest time; the zeros as in [`min`](Self::min).
    #[must_use]
    pub fn max(&self) -> Option<(f64, i64)> {
        let (word, time) = self.stats.max()?;
        Some((self.ty.number(word)?, time))
    }

    /// The smallest value.
    pub(crate) fn least(&self) -> Option<f64> {
        self.ty.number(self.stats.min_word()?)
    }

    /// The largest value.
    pub(crate) fn greatest(&self) -> Option<f64> {
        self.ty.number(self.stats.max_word()?)
    }

    /// The value of the first row; `None` if it is null.
    #[must_use]
    pub fn first(&self) -> Option<f64> {
        self.value_of(self.stats.first()?)
    }

    /// The value of the last row; `None` if it is null.
    #[must_use]
    pub fn last(&self) -> Option<f64> {
        self.value_of(self.stats.last()?)
    }

    /// The times of the first and the last row; `None` without rows.
    #[must_use]
    pub fn times(&self) -> Option<(i64, i64)> {
        self.times
    }

    fn value_of(&self, word: u64) -> Option<f64> {
        let null = self.stats.column_type().null() == Some(word);
        self.ty.number(word).filter(|_| !null)
    }
}

/// One window of a column, with its full statistics or with the values of [some figures](crate::Figures).
#[derive(Clone, Debug, PartialEq)]
pub struct Window<A = Aggregate> {
    /// Its first timestamp; `i64::MIN` if it begins before that.
    pub start: i64,
    /// Its last timestamp, included; `i64::MAX` if it ends after that.
    pub last: i64,
    /// The column's statistics in it.
    pub aggregate: A,
}
