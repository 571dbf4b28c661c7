//! Consecutive bins of one length.
//!
//! Between two changes of the clocks all bins of days and parts of days have the same length. A reader of many bins
//! takes them as one stretch instead of asking for the begin of each.

/// The bins of this length from some begin on, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) length: i128,
    /// The end of the last bin, in nanoseconds since 1970, where the next stretch begins; the greatest number if the bins
    /// go on for ever.
    pub(crate) end: i128,
}

impl Stretch {
    /// A single bin.
    pub(super) fn single(begin: i128, end: i128) -> Self {
        let length = end - begin;
        Self { length, end }
    }

    /// Bins of this length without a last one.
    pub(super) fn endless(length: i128) -> Self {
        let end = i128::MAX;
        Self { length, end }
    }
}
