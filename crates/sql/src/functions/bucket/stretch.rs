//! Consecutive bins of one length.
//!
//! Between two changes of the clocks all bins of days and parts of days have the same length. A reader of many bins
//! takes them as one stretch instead of asking for the begin of each.

/// The bins `begin + n * length` before `end`, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) begin: i128,
    pub(crate) length: i128,
    /// The end of the last bin, where the next stretch begins; the greatest number if the bins go on for ever.
    pub(crate) end: i128,
}

impl Stretch {
    /// A single bin.
    pub(super) fn single(begin: i128, end: i128) -> Self {
        Self {
            begin,
            length: end - begin,
            end,
        }
    }

    /// The last bin of the calendar.
    pub(super) fn unlimited(begin: i128) -> Self {
        Self::endless(begin, i128::MAX)
    }

    /// Bins of this length without a last one.
    pub(super) fn endless(begin: i128, length: i128) -> Self {
        Self {
            begin,
            length,
            end: i128::MAX,
        }
    }
}
