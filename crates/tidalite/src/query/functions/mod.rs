//! Row-by-row functions: one value in, one value out.
//!
//! ```text
//! dot          Dot                       a value with its time
//! mod          Dots, DotFunctions        a column of a range as (time, value); the functions by name
//! change       difference, derivative, rate
//! mean         Mean                      a mean beside each row
//! moving       means of the last rows, or of the last interval of time
//! exponential  means of all rows so far, older ones weighing less
//! errors       values minus such a mean of earlier values
//! running      cumulative sum
//! two          Combined                  arithmetic of columns of two series, joined on time
//! top          SelectionQuery::top, bottom    the series with the largest or smallest figure
//! frequent     SpaceSaving               the values that come most often, or weigh most
//! ```
//!
//! All functions are iterators over iterators: only the values needed for a mean are collected. Rows without a number
//! (nulls, texts) are skipped, so `difference` compares the rows before and after them.

mod change;
mod dot;
mod errors;
mod exponential;
mod frequent;
mod mean;
mod moving;
mod running;
mod top;
mod two;

pub use change::{Derivative, Difference, Rate};
pub use dot::Dot;
pub use errors::Errors;
pub use exponential::{ExponentialMean, ExponentialMeanOver};
pub use frequent::{Frequent, SpaceSaving};
pub use moving::{MovingMean, MovingMeanOver};
pub use running::CumulativeSum;
pub use two::Combined;

use crate::series::figures::Figures;
use crate::series::query::Query;
use crate::txn::pages::Pages;
use crate::types::column::Column;
use crate::types::error::{Error, Result};
use crate::types::into_column::IntoColumn;
use tidalite_series::{Scan, ValueRange};

/// Iterator over the values of a column, ascending in time, returned by [`Query::dots`].
pub struct Dots<'s> {
    scan: Scan<'s, Pages<'s>>,
    filters: Vec<ValueRange>,
    column: &'s Column,
    index: usize,
    times: Vec<i64>,
    words: Vec<u64>,
    at: usize,
    failed: bool,
}

impl<'s, F: Figures> Query<'s, F> {
    /// The values of a column one by one, as floats (the nearest one for integers and decimals), without nulls.
    /// They ascend in time, also of a reversed query.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{Options, Steps};
    /// use tidalite::functions::DotFunctions;
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let mut series = tx.series("meter")?;
    /// for (time, value) in [(0_i64, 10.0), (2_i64, 14.0), (4_i64, 3.0)] {
    ///     series.insert(Steps(time), value)?;
    /// }
    /// let series = series.view()?;
    /// // A counter that restarted: 3 since then, not -11.
    /// let rates = series.query(..).dots("value")?.rate(1).map(|dot| Ok(dot?.value));
    /// assert_eq!(rates.collect::<tidalite::Result<Vec<f64>>>()?, [2.0, 1.5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Schema` if the column does not exist or has texts. The iterator yields an error for a damaged or unreadable
    /// block, and then ends.
    pub fn dots(&self, column: impl IntoColumn) -> Result<Dots<'s>> {
        let column = self.column(column)?;
        let own = &self.series.info().schema.columns[column];
        if own.ty.is_text() {
            return Err(own.problem("texts have no value to count with"));
        }
        let (from, to) = self.ends()?;
        let filtered = self.filters.iter().map(ValueRange::column);
        let columns: Vec<usize> = [column].into_iter().chain(filtered).collect();
        let view = self.series.view();
        Ok(Dots {
            scan: match self.filters.is_empty() {
                true => view.scan(from, to, &columns),
                false => view.matching(self.filters.clone()).scan(from, to, &columns),
            },
            filters: self.filters.clone(),
            column: own,
            index: column,
            times: Vec::new(),
            words: Vec::new(),
            at: 0,
            failed: false,
        })
    }
}

impl Iterator for Dots<'_> {
    type Item = Result<Dot>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            while let (Some(&time), Some(&word)) =
                (self.times.get(self.at), self.words.get(self.at))
            {
                self.at += 1;
                if let Some(value) = self.column.f64(word) {
                    return Some(Ok(Dot { time, value }));
                }
            }
            if self.failed {
                return None;
            }
            self.at = 0;
            self.times.clear();
            self.words.clear();
            match self.scan.next() {
                Ok(Some(vector)) if self.filters.is_empty() => {
                    self.times.extend_from_slice(vector.times());
                    self.words.extend_from_slice(vector.words(self.index));
                }
                Ok(Some(vector)) => {
                    for (row, &time) in vector.times().iter().enumerate() {
                        let holds =
                            |range: &ValueRange| range.contains(vector.words(range.column())[row]);
                        if self.filters.iter().all(holds) {
                            self.times.push(time);
                            self.words.push(vector.words(self.index)[row]);
                        }
                    }
                }
                Ok(None) => return None,
                Err(error) => {
                    self.failed = true;
                    return Some(Err(Error::from(error)));
                }
            }
        }
    }
}

/// Row-by-row functions for any iterator of values in time order.
pub trait DotFunctions: Iterator<Item = Result<Dot>> + Sized {
    /// Each value minus the previous value; the first row yields nothing.
    fn difference(self) -> Difference<Self> {
        Difference::new(self)
    }

    /// The change of the value per `per` steps of time, from each row to the next, reported at the later row. Two rows
    /// of the same time yield nothing.
    fn derivative(self, per: i64) -> Derivative<Self> {
        Derivative::new(self, per)
    }

    /// The change per `per` steps of time, like `derivative`, of a counter: a value that falls means that the counter
    /// has restarted at 0.
    fn rate(self, per: i64) -> Rate<Self> {
        Rate::new(self, per)
    }

    /// The mean of the last `rows` values, or of fewer at the beginning; if `rows` is 0, of the newest value alone.
    fn moving_mean(self, rows: usize) -> MovingMean<Self> {
        MovingMean::new(self, rows)
    }

    /// The mean of the values in the last `width` steps of time: after `time - width`, up to `time`. If `width` is
    /// below 1, the value itself.
    fn moving_mean_over(self, width: i64) -> MovingMeanOver<Self> {
        MovingMeanOver::new(self, width)
    }

    /// The exponential mean of all values so far: weights fall per row by the factor `(span - 1) / (span + 1)`, so that
    /// the mean age of the values equals that in a moving mean of `span` rows. If `span` is below 2, the value itself.
    /// Values that are not finite are excluded (one would stay in the mean for ever); before the first finite value the
    /// mean is NaN.
    ///
    /// ```
    /// use tidalite::functions::{Dot, DotFunctions};
    /// let rows = [(0, 1.0), (10, 4.0), (20, 2.0)];
    /// let values = || rows.into_iter().map(|(time, value)| Ok(Dot { time, value }));
    /// let means = values().exponential_mean(3).map(|dot| Ok(dot?.value));
    /// assert_eq!(means.collect::<tidalite::Result<Vec<f64>>>()?, [1.0, 3.0, (2.0 + 4.0 / 2.0 + 1.0 / 4.0) / 1.75]);
    /// // The deviation of each value from the mean before it.
    /// let errors = values().exponential_mean(3).errors().map(|dot| Ok(dot?.value));
    /// assert_eq!(errors.collect::<tidalite::Result<Vec<f64>>>()?, [3.0, -1.0]);
    /// # Ok::<(), tidalite::Error>(())
    /// ```
    fn exponential_mean(self, span: usize) -> ExponentialMean<Self> {
        ExponentialMean::new(self, span)
    }

    /// The exponential mean like `exponential_mean`, but with weights that fall with time, to 1/e in each
    /// `time_constant`: for rows at irregular intervals. If `time_constant` is below 1, the value itself.
    fn exponential_mean_over(self, time_constant: i64) -> ExponentialMeanOver<Self> {
        ExponentialMeanOver::new(self, time_constant)
    }

    /// The sum of all values so far, compensated: the error does not grow with the number of rows.
    fn cumulative_sum(self) -> CumulativeSum<Self> {
        CumulativeSum::new(self)
    }
}

impl<I: Iterator<Item = Result<Dot>>> DotFunctions for I {}
