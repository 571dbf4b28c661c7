//! Selects the figures (sum, squares, extremes and so on) that statistics contain.
//!
//! Statistics written to a file have all figures. A reader that needs only a mean does not read, compute or merge
//! squares, extremes and the times of extremes. Figures that were not requested are not reported: see
//! [`Stats::parts`](super::Stats::parts).

/// A set of figures of statistics. Every set includes the counts of rows, of NaN and of nulls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts(u8);

impl Parts {
    /// The set with only the counts.
    pub const COUNTS: Self = Self(0);
    /// The set with the sum of the values.
    pub const SUM: Self = Self(1);
    /// The set with the sum of the squares of the values.
    pub const SQUARES: Self = Self(1 << 1);
    /// The set with the smallest and the largest word.
    pub const EXTREMES: Self = Self(1 << 2);
    /// The set with the words of the first and the last row.
    pub const ENDS: Self = Self(1 << 3);
    /// The set with the extremes and the earliest time of each extreme.
    pub const TIMES: Self = Self(1 << 4 | Self::EXTREMES.0);
    /// The set of all figures.
    pub const ALL: Self = Self(Self::SUM.0 | Self::SQUARES.0 | Self::ENDS.0 | Self::TIMES.0);

    /// The union of both sets.
    #[must_use]
    #[inline]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// True if this set contains all figures of `others`.
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
