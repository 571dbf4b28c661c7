//! Which figures statistics have.
//!
//! A writer's have all. A reader that asks for a mean has no use for squares, extremes, and where these are: they are neither
//! read nor made nor merged. What statistics were not asked for they do not tell: see [`Stats::parts`](super::Stats::parts).

/// A set of figures. The counts of rows, of NaN and of nulls are in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts(u8);

impl Parts {
    /// Nothing but the counts.
    pub const COUNTS: Self = Self(0);
    /// The sum.
    pub const SUM: Self = Self(1);
    /// The sum of the squares.
    pub const SQUARES: Self = Self(1 << 1);
    /// The smallest and the greatest word.
    pub const EXTREMES: Self = Self(1 << 2);
    /// The words of the first and the last row.
    pub const ENDS: Self = Self(1 << 3);
    /// The earliest times of the extremes, and these.
    pub const TIMES: Self = Self(1 << 4 | Self::EXTREMES.0);
    /// All there are.
    pub const ALL: Self = Self(Self::SUM.0 | Self::SQUARES.0 | Self::ENDS.0 | Self::TIMES.0);

    /// Those of both.
    #[must_use]
    #[inline]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of these are among them.
    #[must_use]
    #[inline]
    pub const fn has(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// As a number, to compile code for one set.
    pub(crate) const fn bits(self) -> u8 {
        self.0
    }

    /// Undoes [`bits`](Self::bits).
    pub(crate) const fn of_bits(bits: u8) -> Self {
        Self(bits)
    }
}
