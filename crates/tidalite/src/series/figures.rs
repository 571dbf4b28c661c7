//! Figures: the single statistics of a column that a query may ask for, such as count or mean.
//!
//! An [`Aggregate`] has everything that the tree stores. A chart of means needs no squares, extremes and their times,
//! and should not pay for reading, computing and merging them: a [`Figures`] selects the required statistics, and only
//! their values are returned. A figure that was not requested can therefore not be read.

use crate::series::aggregate::Aggregate;
use tidalite_codec::Parts;

/// A figure: one statistic of an aggregate.
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
    /// The value of this figure; `None` if there are no values to derive it from.
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

    /// The parts of an aggregate that must be computed for this figure.
    fn parts_needed(self) -> Parts {
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
    use tidalite_codec::Parts;

    /// This trait cannot be implemented by users, because they must not see an incomplete aggregate.
    pub trait Sealed: Copy + Sync {
        /// The parts of an aggregate that must be computed for these figures.
        fn parts(&self) -> Parts;
    }

    impl Sealed for super::AllFigures {
        fn parts(&self) -> Parts {
            Parts::ALL
        }
    }

    impl Sealed for super::Figure {
        fn parts(&self) -> Parts {
            super::parts_of(&[*self])
        }
    }

    impl<const N: usize> Sealed for [super::Figure; N] {
        fn parts(&self) -> Parts {
            super::parts_of(self)
        }
    }

    impl Sealed for &[super::Figure] {
        fn parts(&self) -> Parts {
            super::parts_of(self)
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

/// The parts of an aggregate that these figures together need.
fn parts_of(figures: &[Figure]) -> Parts {
    let parts = figures.iter().map(|figure| figure.parts_needed());
    parts.fold(Parts::COUNTS, Parts::and)
}
