//! Statistics of a column over an interval or a window, in the column's own terms.

use tidalite_codec::{ColumnType, Stats};

/// What is known of a column over some rows. Count, extremes, first and last are exact; sums are within
/// 2^-50 of the exact value, relative to the sum of magnitudes.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    stats: Stats,
    /// Of first and last row.
    times: Option<(i64, i64)>,
}

/// A word of a column as a float: the value itself for `F64`, the nearest float for integers.
#[must_use]
pub fn word_as_f64(ty: ColumnType, word: u64) -> f64 {
    match ty {
        ColumnType::F64 => f64::from_bits(word),
        ColumnType::I64 => word as i64 as f64,
        ColumnType::U64 => word as f64,
    }
}

impl Aggregate {
    /// Of no rows.
    pub(crate) fn empty(ty: ColumnType) -> Self {
        Self {
            stats: Stats::empty(ty),
            times: None,
        }
    }

    /// `first` and `last` are the times of first and last row.
    pub(crate) fn new(stats: Stats, first: i64, last: i64) -> Self {
        Self {
            stats,
            times: Some((first, last)),
        }
    }

    /// Takes in what is known of other rows, which may lie anywhere in time.
    pub(crate) fn merge_beside(&mut self, other: &Self) {
        let (Some((first, last)), Some((begin, end))) = (self.times, other.times) else {
            if self.times.is_none() {
                *self = other.clone();
            }
            return;
        };
        self.stats
            .merge_beside(&other.stats, begin < first, end > last);
        self.times = Some((first.min(begin), last.max(end)));
    }

    /// The same on another clock.
    pub(crate) fn with_times(self, time: impl Fn(i64) -> i64) -> Self {
        Self {
            stats: self.stats.with_times(&time),
            times: self.times.map(|(first, last)| (time(first), time(last))),
        }
    }

    /// The statistics as the tree keeps them: words instead of floats, integer sums exact.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Rows.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.stats.count()
    }

    /// Rows whose value is NaN; they count in no other figure but `count`, `first` and `last`.
    #[must_use]
    pub fn nan_count(&self) -> u64 {
        self.stats.nan_count()
    }

    /// Sum of the values; 0 for none.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.stats.sum()
    }

    /// Arithmetic mean; `None` without values.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        self.stats.mean()
    }

    /// Population standard deviation; `None` without values.
    #[must_use]
    pub fn stddev(&self) -> Option<f64> {
        self.stats.stddev()
    }

    /// The smallest value and the earliest time it was seen at.
    #[must_use]
    pub fn min(&self) -> Option<(f64, i64)> {
        self.stats
            .min()
            .map(|(word, time)| (self.float(word), time))
    }

    /// The largest value and the earliest time it was seen at.
    #[must_use]
    pub fn max(&self) -> Option<(f64, i64)> {
        self.stats
            .max()
            .map(|(word, time)| (self.float(word), time))
    }

    /// The first value.
    #[must_use]
    pub fn first(&self) -> Option<f64> {
        self.stats.first().map(|word| self.float(word))
    }

    /// The last value.
    #[must_use]
    pub fn last(&self) -> Option<f64> {
        self.stats.last().map(|word| self.float(word))
    }

    /// The times of the first and the last row; `None` without rows.
    #[must_use]
    pub fn times(&self) -> Option<(i64, i64)> {
        self.times
    }

    fn float(&self, word: u64) -> f64 {
        word_as_f64(self.stats.column_type(), word)
    }
}

/// One window of a column.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// Its first timestamp; `i64::MIN` when it begins before that.
    pub start: i64,
    /// Its last timestamp, included; `i64::MAX` when it ends after that.
    pub last: i64,
    /// The column's statistics in it.
    pub aggregate: Aggregate,
}
