//! Stretches of consecutive bins with the same length.
//!
//! Between two clock changes, all bins of days and parts of days have the same length. A reader of many bins processes
//! them as one stretch instead of computing the start of each.

/// Consecutive bins with this length in nanoseconds, from some start on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) length: i128,
    /// The end of the last bin in nanoseconds since 1970, which is where the next stretch begins; the greatest number
    /// if the bins continue for ever.
    pub(crate) end: i128,
}

impl Stretch {
    /// A single bin.
    pub(super) fn single(begin: i128, end: i128) -> Self {
        let length = end - begin;
        Self { length, end }
    }

    /// Infinitely many bins of this length.
    pub(super) fn endless(length: i128) -> Self {
        let end = i128::MAX;
        Self { length, end }
    }
}
