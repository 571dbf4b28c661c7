//! Aggregates restricted to requested figures.
//!
//! An [`Aggregate`] has everything that the tree stores. A chart of means needs no squares, extremes and their times,
//! and should not pay for reading, computing and merging them: a [`Figures`] selects the required figures, and only
//! their values are returned. A figure that was not requested can therefore not be read.

use crate::series::aggregate::Aggregate;
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

    /// Sealed, because an incomplete aggregate must not be visible to users.
    pub trait Sealed: Copy + Sync {
        /// The parts of an aggregate that the figures need.
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

/// The figures that a query returns: one, an array, or a slice if they are known only at run time. The returned values
/// have the same layout. Without a choice a query returns [`AllFigures`].
pub trait Figures: sealed::Sealed {
    /// An [`Aggregate`] for all figures; else the value of one figure, an array of as many, or a vector, where each is
    /// `None` without a value to derive it from.
    type Values: Send;

    /// The values of the figures.
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

/// The parts of an aggregate that all figures together need.
fn parts_of(figures: &[Figure]) -> Parts {
    let parts = figures.iter().map(|figure| figure.parts_needed());
    parts.fold(Parts::COUNTS, Parts::and)
}
