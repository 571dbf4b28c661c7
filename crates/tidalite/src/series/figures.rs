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
use crate::types::figure::Figure;
use crate::types::interpolation::Interpolation;
use tidalite_codec::Parts;

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

    /// The parts of an aggregate, and the figures from rows, that this figure needs.
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

    /// The computations that a query needs for its figures.
    #[derive(Clone, Copy, Debug)]
    pub struct Needs {
        /// The parts of an aggregate from the statistics in the tree.
        pub(crate) parts: Parts,
        /// The figures from rows.
        pub(crate) rows: RowNeeds,
    }

    /// This trait cannot be implemented by users, because they must not see an incomplete aggregate.
    pub trait Sealed: Copy + Sync {
        /// The computations that these figures need. Fails for a figure with an invalid argument.
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
    /// An [`Aggregate`] for all figures; otherwise the value of the single figure, an array of values, or a vector of
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

/// The computations that these figures need together.
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
