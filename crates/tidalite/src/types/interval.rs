//! Intervals of raw times.

use std::ops::{Bound, RangeBounds};

/// The interval of all times.
pub(crate) const EVER: (i64, i64) = (i64::MIN, i64::MAX);

/// First and last time of an interval, both included; `(0, -1)` for an empty one.
pub(crate) fn inclusive(times: &impl RangeBounds<i64>) -> (i64, i64) {
    let from = match times.start_bound() {
        Bound::Included(&t) => Some(t),
        Bound::Excluded(&t) => t.checked_add(1),
        Bound::Unbounded => Some(i64::MIN),
    };
    let to = match times.end_bound() {
        Bound::Included(&t) => Some(t),
        Bound::Excluded(&t) => t.checked_sub(1),
        Bound::Unbounded => Some(i64::MAX),
    };
    match (from, to) {
        (Some(from), Some(to)) if from <= to => (from, to),
        _ => (0, -1),
    }
}
