//! Aggregates restricted to requested figures.
//!
//! An [`Aggregate`] has everything that the tree stores. A chart of means needs no squares, extremes and their times,
//! and should not pay for reading, computing and merging them: a [`Figures`] selects the required figures, and only
//! their values are returned. A figure that was not requested can therefore not be read.

use crate::series::aggregate::{Aggregate, Window};
use crate::series::query::Query;
use crate::types::error::Result;
use crate::types::grid::Grid;
use crate::types::into_column::IntoColumn;
use tidalite_codec::Parts;

/// A figure of an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "each is the function of Aggregate of that name"
)]
pub enum Figure {
    Count,
    Sum,
    Mean,
    Stddev,
    Min,
    Max,
    First,
    Last,
}

impl Figure {
    /// The figure; `None` without a value to derive it from.
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
        }
    }

    /// The parts of an aggregate that it needs.
    fn parts(self) -> Parts {
        match self {
            Self::Count => Parts::COUNTS,
            Self::Sum | Self::Mean => Parts::SUM,
            Self::Stddev => Parts::SUM.and(Parts::SQUARES),
            Self::Min | Self::Max => Parts::EXTREMES,
            Self::First | Self::Last => Parts::ENDS,
        }
    }
}

mod sealed {
    /// Sealed, because an incomplete aggregate must not be visible to users.
    pub trait Sealed {}

    impl Sealed for super::Figure {}
    impl<const N: usize> Sealed for [super::Figure; N] {}
    impl Sealed for &[super::Figure] {}
}

/// Figures to request: one, an array, or a slice if they are known only at run time. The returned values have the same
/// layout.
pub trait Figures: sealed::Sealed + Sync {
    /// The value of one figure, an array of as many, or a vector; each is `None` without a value to derive it
    /// from.
    type Values: Send;

    /// The figures one by one.
    fn each(&self) -> &[Figure];

    /// The values of the figures.
    fn of(&self, aggregate: &Aggregate) -> Self::Values;
}

impl Figures for Figure {
    type Values = Option<f64>;

    fn each(&self) -> &[Figure] {
        std::slice::from_ref(self)
    }

    #[inline]
    fn of(&self, aggregate: &Aggregate) -> Self::Values {
        Figure::of(*self, aggregate)
    }
}

impl<const N: usize> Figures for [Figure; N] {
    type Values = [Option<f64>; N];

    fn each(&self) -> &[Figure] {
        self
    }

    #[inline]
    fn of(&self, aggregate: &Aggregate) -> Self::Values {
        self.map(|figure| figure.of(aggregate))
    }
}

impl Figures for &[Figure] {
    type Values = Vec<Option<f64>>;

    fn each(&self) -> &[Figure] {
        self
    }

    fn of(&self, aggregate: &Aggregate) -> Self::Values {
        self.iter().map(|figure| figure.of(aggregate)).collect()
    }
}

/// The parts of an aggregate that all figures together need.
pub(crate) fn parts_of(figures: &impl Figures) -> Parts {
    let parts = figures.each().iter().map(|figure| figure.parts());
    parts.fold(Parts::COUNTS, Parts::and)
}

/// Selected figures of an interval; see [`Query::figures`].
#[derive(Clone)]
pub struct RangeFigures<'s, F> {
    range: Query<'s>,
    figures: F,
}

impl<'s> Query<'s> {
    /// Queries restricted to these figures: their values equal the whole [`Aggregate`]'s, bit by bit.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{Figure, Options, Steps};
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let mut series = tx.series("wind")?;
    /// for time in 0..120_i64 {
    ///     series.insert(Steps(time), time as f64)?;
    /// }
    /// let series = series.view()?;
    /// let means = series.query(..).figures(Figure::Mean).windows(60, 0, 1)?;
    /// assert_eq!(means[1].aggregate, Some(89.5));
    ///
    /// let bands = series.query(..).figures([Figure::Min, Figure::Max]).windows(60, 0, 1)?;
    /// assert_eq!(bands[1].aggregate, [Some(60.0), Some(119.0)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Cost
    /// If windows cut every vector of floats with two decimals, means take two thirds of the time of whole aggregates,
    /// minima and maxima half. Sums and means together cost as much as sums; with extremes or deviations as well,
    /// everything is computed.
    #[must_use]
    pub fn figures<F: Figures>(&self, figures: F) -> RangeFigures<'s, F> {
        RangeFigures {
            range: self.clone(),
            figures,
        }
    }
}

impl<F: Figures> RangeFigures<'_, F> {
    /// Like [`Query::aggregate`].
    ///
    /// # Errors
    /// As for `Query::aggregate`.
    pub fn aggregate(&self, column: impl IntoColumn) -> Result<F::Values> {
        let column = self.range.column(column)?;
        let whole = self.range.summary(column, parts_of(&self.figures))?;
        Ok(self.figures.of(&whole))
    }

    /// Like [`Query::windows`].
    ///
    /// # Errors
    /// As for `Query::windows`.
    pub fn windows(
        &self,
        width: i64,
        origin: i64,
        column: impl IntoColumn,
    ) -> Result<Vec<Window<F::Values>>> {
        let column = self.range.column(column)?;
        let asked = (column, parts_of(&self.figures));
        let chosen = |window| self.chosen(window);
        self.range.windows_with(width, origin, asked, chosen)
    }

    /// Like [`Query::windows_on`].
    ///
    /// # Errors
    /// As for `Query::windows_on`.
    pub fn windows_on(
        &self,
        grid: &Grid,
        column: impl IntoColumn,
    ) -> Result<Vec<Window<F::Values>>> {
        let (width, origin) = grid.in_unit(self.range.series.info().schema.unit)?;
        self.windows(width, origin, column)
    }

    /// Like [`Query::for_each_window`].
    ///
    /// # Errors
    /// As for `Query::for_each_window`.
    pub fn for_each_window(
        &self,
        width: i64,
        origin: i64,
        columns: &[usize],
        mut f: impl FnMut(usize, Window<F::Values>),
    ) -> Result<()> {
        let asked = (columns, parts_of(&self.figures));
        self.range.each_window(width, origin, asked, |column, own| {
            f(column, self.chosen(own))
        })
    }

    fn chosen(&self, window: Window) -> Window<F::Values> {
        Window {
            start: window.start,
            last: window.last,
            aggregate: self.figures.of(&window.aggregate),
        }
    }
}
