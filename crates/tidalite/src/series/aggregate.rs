//! Statistics of a column over an interval or a window, converted from stored words to the values of the column.

use crate::series::from_rows::FromRows;
use crate::types::column::{Column, ColumnType};
use tidalite_codec::{Parts, Stats};

/// Statistics of a column over some rows; for texts, only their number (the words of the first and the last text are
/// among the [statistics](Aggregate::stats)). Count, extremes, first and last are exact; sums are within 2^-50 of the
/// exact value, relative to the sum of magnitudes; the variance, a difference of two such sums, is within 2^-47 of the
/// exact value relative to the mean of the squares, however the rows are divided into leaves (for values of mean m and
/// deviation s, its relative error is thus at most 2^-47 (1 + m²/s²)).
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    ty: ColumnType,
    stats: Stats,
    /// Times of the first and the last row; `None` if there are no rows.
    times: Option<(i64, i64)>,
    /// Figures that are computed from rows, if the query has asked for any.
    from_rows: Option<Box<FromRows>>,
}

impl Aggregate {
    /// Creates the aggregate of no rows, to which statistics with these parts can be added.
    pub(crate) fn empty(column: &Column, parts: Parts) -> Self {
        Self {
            ty: column.ty,
            stats: Stats::empty_with(parts, column.words()),
            times: None,
            from_rows: None,
        }
    }

    /// Creates an aggregate from these statistics. `first` and `last` are the times of the first and the last row.
    pub(crate) fn new(column: &Column, stats: Stats, first: i64, last: i64) -> Self {
        Self {
            ty: column.ty,
            stats,
            times: Some((first, last)),
            from_rows: None,
        }
    }

    pub(crate) fn set_from_rows(&mut self, from_rows: FromRows) {
        self.from_rows = Some(Box::new(from_rows));
    }

    /// Limits the memory of an aggregate that is kept, to be merged with others.
    pub(crate) fn keep(mut self) -> Self {
        if let Some(rows) = &mut self.from_rows {
            rows.keep();
        }
        self
    }

    /// The figures that are computed from rows; `None` if the query has asked for none of them.
    pub(crate) fn row_figures(&self) -> Option<&FromRows> {
        self.from_rows.as_deref()
    }

    /// The type of the column.
    pub(crate) fn column_type(&self) -> ColumnType {
        self.ty
    }

    /// Merges the statistics of other rows, which may have any times. At equal times the other rows count as later.
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
        if let (Some(own), Some(other)) = (&mut self.from_rows, &other.from_rows) {
            own.merge(other);
        }
    }

    /// Applies `time` to every time in the aggregate.
    pub(crate) fn with_times(self, time: impl Fn(i64) -> i64) -> Self {
        Self {
            ty: self.ty,
            stats: self.stats.with_times(&time),
            times: self.times.map(|(first, last)| (time(first), time(last))),
            from_rows: self.from_rows,
        }
    }

    /// The statistics as the tree stores them: words instead of floats, exact sums of integers, and decimals in units
    /// of their last digit.
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

    /// Number of rows whose value is NaN; such rows count only in `count`, `first` and `last`.
    #[must_use]
    pub fn nan_count(&self) -> u64 {
        self.stats.nan_count()
    }

    /// Sum of the values; 0 if there are no values, and for texts.
    #[must_use]
    pub fn sum(&self) -> f64 {
        if self.ty.is_text() {
            return 0.0;
        }
        self.ty.scaled(self.stats.sum())
    }

    /// Arithmetic mean; `None` if there are no values.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let mean = self.stats.mean().filter(|_| !self.ty.is_text());
        mean.map(|mean| self.ty.scaled(mean))
    }

    /// Population standard deviation: the root of a variance that is within 2^-47 of the mean of the squares, even if
    /// the squares exceed the range of floats. `None` if there are no values; NaN if a value or the sum is infinite.
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

    /// The largest value and its earliest time. -0.0 lies just before 0.0, as in [`min`](Self::min).
    #[must_use]
    pub fn max(&self) -> Option<(f64, i64)> {
        let (word, time) = self.stats.max()?;
        Some((self.ty.number(word)?, time))
    }

    /// The smallest value; `None` if there are no values.
    pub(crate) fn least(&self) -> Option<f64> {
        self.ty.number(self.stats.min_word()?)
    }

    /// The largest value; `None` if there are no values.
    pub(crate) fn greatest(&self) -> Option<f64> {
        self.ty.number(self.stats.max_word()?)
    }

    /// The value of the first row; `None` if it is null or there are no rows.
    #[must_use]
    pub fn first(&self) -> Option<f64> {
        self.value_of(self.stats.first()?)
    }

    /// The value of the last row; `None` if it is null or there are no rows.
    #[must_use]
    pub fn last(&self) -> Option<f64> {
        self.value_of(self.stats.last()?)
    }

    /// The times of the first and the last row; `None` if there are no rows.
    #[must_use]
    pub fn times(&self) -> Option<(i64, i64)> {
        self.times
    }

    fn value_of(&self, word: u64) -> Option<f64> {
        let null = self.stats.column_type().null() == Some(word);
        self.ty.number(word).filter(|_| !null)
    }
}

/// Statistics of one column in one window: all, or only [some figures](crate::Figures).
#[derive(Clone, Debug, PartialEq)]
pub struct Window<A = Aggregate> {
    /// First time of the window; `i64::MIN` if the window begins before that.
    pub start: i64,
    /// Last time of the window, included; `i64::MAX` if the window ends after that.
    pub last: i64,
    /// Statistics of the column over the rows in the window.
    pub aggregate: A,
}
