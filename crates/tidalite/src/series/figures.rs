//! Figures: the single statistics of a column that a query may ask for, such as count or mean.
//!
//! An [`Aggregate`] has everything that the tree stores. A chart of means needs no squares, extremes and their times,
//! and should not pay for reading, computing and merging them: a [`Figures`] selects the required statistics, and only
//! their values are returned. A figure that was not requested can therefore not be read. Some figures are not in the
//! tree, but are computed from rows (`from_rows`).

use crate::series::aggregate::Aggregate;
use crate::series::from_rows::{FromRows, RowNeeds};
use crate::types::column::ColumnType;
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use crate::types::interpolation::Interpolation;
use tidalite_codec::Parts;

/// A figure: one statistic of a column over an interval or a window.
///
/// Most figures come from the statistics in the tree, whatever the number of rows. Those from
/// [`Median`](Self::Median) on are computed from the rows, which are read once for all of them. For these a row counts
/// only if its value is neither null nor NaN.
///
/// | figure | a window without such rows | several series |
/// |---|---|---|
/// | `Median`, `Percentile`, `Mode` | `None` | of all rows together |
/// | `Distinct` | 0 | of all rows together |
/// | `TimeMean` | as between the rows around it | weighted by the time of each |
/// | `Integral` | as between the rows around it | sum |
/// | `Delta`, `Increase`, `Rate` | `None` | sum |
///
/// Windows that contain no rows at all are not reported, so their part of an integral is missing.
///
/// ```
/// # use std::sync::Arc;
/// use tidalite::{Figure, Grid, Options};
/// use tidalite::query::Interpolation;
/// use tidalite::storage::MemoryStorage;
/// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
/// let mut tx = db.begin_write()?;
/// let mut power = tx.series("power")?;
/// for (time, kilowatts) in [("12:00", 2.0), ("12:30", 4.0), ("13:30", 4.0), ("14:00", 0.0)] {
///     power.insert(format!("2024-06-01T{time}").as_str(), kilowatts)?;
/// }
/// let power = power.view()?;
/// let figures = [Figure::Median, Figure::Integral(Interpolation::Linear)];
/// let hours = power.query(..).figures(figures).windows(Grid::hours(1), "value")?;
/// // Kilowatt seconds; the hour from 13:00 begins between two rows.
/// assert_eq!(hours[0].aggregate, [Some(3.0), Some(3.5 * 3600.0)]);
/// assert_eq!(hours[1].aggregate, [Some(4.0), Some(3.0 * 3600.0)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// Number of rows with a value.
    Count,
    /// Sum of the values.
    Sum,
    /// Arithmetic mean.
    Mean,
    /// Population standard deviation.
    Stddev,
    /// Smallest value.
    Min,
    /// Largest value.
    Max,
    /// Value of the first row.
    First,
    /// Value of the last row.
    Last,
    /// Largest minus smallest value.
    Spread,
    /// The value in the middle: `Percentile(50.0)`.
    Median,
    /// The value below which this percentage of the values lies, from 0 to 100, interpolated between neighbouring
    /// values (`quantile_cont` of SQL, the default of numpy and pandas). Exact up to 100,000 values of a window (16,384
    /// in queries of several series); beyond, estimated by a t-digest, whose rank is off by at most about q (1 - q) / 100 of the rows for q = percentage / 100.
    Percentile(f64),
    /// Number of distinct values, exact, with memory for each. Works for texts, too. 0.0 and -0.0 are one value.
    Distinct,
    /// The most frequent value; of equally frequent ones the smallest. Exact, with memory for each distinct value.
    Mode,
    /// The mean of the column as a function of time: each value weighs as much as the time for which it holds. The
    /// function reaches from the first to the last row of the series; the rows next to a window count, too. `None` if
    /// it covers no time in the window.
    TimeMean(Interpolation),
    /// The integral of the same function, in values times seconds: from power in kW to energy in kWs; divide by 3600
    /// for kWh.
    Integral(Interpolation),
    /// Change of the value: the last value minus the last one before the window, or minus the first value where none is
    /// before. The changes of consecutive windows add up.
    Delta,
    /// Increase of a counter: the sum of the changes from row to row, where a value below the one before it means that
    /// the counter restarted at 0. The first change is that from the last row before the window.
    Increase,
    /// `Increase` per second, from the last row before the window to its last row.
    Rate,
}

impl Figure {
    /// The value of this figure; `None` if there are no values to derive it from, and for a figure that is computed
    /// from rows if the query has not asked for it.
    #[must_use]
    pub fn of(self, aggregate: &Aggregate) -> Option<f64> {
        match self {
            Self::Count => Some(aggregate.count() as f64),
            Self::Sum => Some(aggregate.sum()),
            Self::Mean => aggregate.mean(),
            Self::Stddev => aggregate.stddev(),
            Self::Min => aggregate.least(),
            Self::Max => aggregate.greatest(),
            Self::First => aggregate.first(),
            Self::Last => aggregate.last(),
            Self::Spread => Some(aggregate.greatest()? - aggregate.least()?),
            Self::Distinct => match aggregate.row_figures() {
                Some(rows) => Some(rows.distinct() as f64),
                None => (aggregate.count() == 0).then_some(0.0),
            },
            _ => self.of_rows(aggregate.row_figures()?, aggregate.column_type()),
        }
    }

    fn of_rows(self, rows: &FromRows, ty: ColumnType) -> Option<f64> {
        match self {
            Self::Median => rows.percentile(50.0),
            Self::Percentile(percent) => rows.percentile(percent),
            Self::Mode => rows.mode(ty),
            Self::TimeMean(between) => rows.area(between).mean(),
            Self::Integral(between) => rows.area(between).integral(),
            Self::Delta => rows.change().delta(),
            Self::Increase => rows.change().increase(),
            Self::Rate => rows.change().rate(),
            _ => None,
        }
    }

    /// What must be computed for this figure.
    fn needs(self) -> Result<Needs> {
        let parts = match self {
            Self::Sum | Self::Mean => Parts::SUM,
            Self::Stddev => Parts::SUM.and(Parts::SQUARES),
            Self::Min | Self::Max | Self::Spread => Parts::EXTREMES,
            Self::First | Self::Last => Parts::ENDS,
            _ => Parts::COUNTS,
        };
        let mut rows = RowNeeds::default();
        match self {
            Self::Percentile(percent) if !(0.0..=100.0).contains(&percent) => {
                let problem = format!("percentile {percent}: give a percentage from 0 to 100");
                return Err(Error::from(Cause::Figure { problem }));
            }
            Self::Median | Self::Percentile(_) => rows.quantiles = true,
            Self::Distinct => rows.occurrences = true,
            Self::Mode => (rows.occurrences, rows.mode) = (true, true),
            Self::TimeMean(Interpolation::Previous) | Self::Integral(Interpolation::Previous) => {
                rows.previous = true;
            }
            Self::TimeMean(Interpolation::Linear) | Self::Integral(Interpolation::Linear) => {
                rows.linear = true;
            }
            Self::Delta | Self::Increase | Self::Rate => rows.change = true,
            _ => {}
        }
        Ok(Needs { parts, rows })
    }
}

pub(crate) use sealed::Needs;

mod sealed {
    use super::RowNeeds;
    use crate::types::error::Result;
    use tidalite_codec::Parts;

    /// What a query must compute for its figures.
    #[derive(Clone, Copy, Debug)]
    pub struct Needs {
        /// The parts of an aggregate from the statistics in the tree.
        pub(crate) parts: Parts,
        /// The figures from rows.
        pub(crate) rows: RowNeeds,
    }

    /// This trait cannot be implemented by users, because they must not see an incomplete aggregate.
    pub trait Sealed: Copy + Sync {
        /// What must be computed for these figures. Fails for a figure with an invalid argument.
        fn needs(&self) -> Result<Needs>;
    }

    impl Sealed for super::AllFigures {
        fn needs(&self) -> Result<Needs> {
            Ok(Needs {
                parts: Parts::ALL,
                rows: RowNeeds::default(),
            })
        }
    }

    impl Sealed for super::Figure {
        fn needs(&self) -> Result<Needs> {
            super::needs_of(&[*self])
        }
    }

    impl<const N: usize> Sealed for [super::Figure; N] {
        fn needs(&self) -> Result<Needs> {
            super::needs_of(self)
        }
    }

    impl Sealed for &[super::Figure] {
        fn needs(&self) -> Result<Needs> {
            super::needs_of(self)
        }
    }
}

/// The figures that a query returns: a single one, an array, or a slice if the figures are known only at run time. The
/// returned values have the same layout. A query that does not choose returns [`AllFigures`].
pub trait Figures: sealed::Sealed {
    /// For all figures an [`Aggregate`]; else the value of the single figure, an array of values, or a vector of
    /// values. A value is `None` if there is nothing to derive it from.
    type Values: Send;

    /// Takes the values of these figures from an aggregate.
    fn of(&self, aggregate: Aggregate) -> Self::Values;
}

/// All figures of an [`Aggregate`]: the default of a query.
#[derive(Clone, Copy, Debug)]
pub struct AllFigures;

impl Figures for AllFigures {
    type Values = Aggregate;

    #[inline]
    fn of(&self, aggregate: Aggregate) -> Aggregate {
        aggregate
    }
}

impl Figures for Figure {
    type Values = Option<f64>;

    #[inline]
    fn of(&self, aggregate: Aggregate) -> Self::Values {
        Figure::of(*self, &aggregate)
    }
}

impl<const N: usize> Figures for [Figure; N] {
    type Values = [Option<f64>; N];

    #[inline]
    fn of(&self, aggregate: Aggregate) -> Self::Values {
        self.map(|figure| Figure::of(figure, &aggregate))
    }
}

impl Figures for &[Figure] {
    type Values = Vec<Option<f64>>;

    fn of(&self, aggregate: Aggregate) -> Self::Values {
        self.iter()
            .map(|figure| Figure::of(*figure, &aggregate))
            .collect()
    }
}

/// What must be computed for these figures together.
fn needs_of(figures: &[Figure]) -> Result<Needs> {
    let mut all = Needs {
        parts: Parts::COUNTS,
        rows: RowNeeds::default(),
    };
    for figure in figures {
        let own = figure.needs()?;
        all.parts = all.parts.and(own.parts);
        all.rows = all.rows.and(own.rows);
    }
    Ok(all)
}
