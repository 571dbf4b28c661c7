//! Selects the figures that statistics contain.
//!
//! Statistics written to a file have all figures. A reader that needs only a mean does not read, compute or merge
//! squares, extremes and their times. Figures that were not requested are not reported: see
//! [`Stats::parts`](super::Stats::parts).

/// A set of figures. Every set includes the counts of rows, of NaN and of nulls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts(u8);

impl Parts {
    /// Only the counts.
    pub const COUNTS: Self = Self(0);
    /// The sum.
    pub const SUM: Self = Self(1);
    /// The sum of the squares.
    pub const SQUARES: Self = Self(1 << 1);
    /// The smallest and the largest word.
    pub const EXTREMES: Self = Self(1 << 2);
    /// The words of the first and the last row.
    pub const ENDS: Self = Self(1 << 3);
    /// The earliest times of the extremes, and the extremes.
    pub const TIMES: Self = Self(1 << 4 | Self::EXTREMES.0);
    /// All figures.
    pub const ALL: Self = Self(Self::SUM.0 | Self::SQUARES.0 | Self::ENDS.0 | Self::TIMES.0);

    /// The figures of both sets.
    #[must_use]
    #[inline]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether this set contains all of `others`.
    #[must_use]
    #[inline]
    pub const fn has(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// The set as a number, for use as a const parameter of code that is compiled for one set.
    pub(crate) const fn bits(self) -> u8 {
        self.0
    }

    /// Inverse of [`bits`](Self::bits).
    pub(crate) const fn of_bits(bits: u8) -> Self {
        Self(bits)
    }
}
