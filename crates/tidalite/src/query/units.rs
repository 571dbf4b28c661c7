//! Conversion between nanoseconds since 1970 and the unit of a series.

use crate::series::aggregate::Aggregate;
use crate::types::error::{Error, Result};
use crate::types::schema::Unit;
use crate::types::time::Timestamp;
use std::ops::{Bound, RangeBounds};

/// First and last raw time, both included, of the rows whose time lies within `times`. Empty intervals stay empty.
pub(super) fn interval(times: &impl RangeBounds<Timestamp>, unit: Unit) -> (i64, i64) {
    let step = i128::from(unit.nanos());
    let zero = i128::from(unit.steps_to_1970());
    let floor = |t: &Timestamp| i128::from(t.0).div_euclid(step) + zero;
    let ceil = |t: &Timestamp| -(-i128::from(t.0)).div_euclid(step) + zero;
    let from = match times.start_bound() {
        Bound::Included(t) => ceil(t),
        Bound::Excluded(t) => floor(t) + 1,
        Bound::Unbounded => i64::MIN.into(),
    };
    let to = match times.end_bound() {
        Bound::Included(t) => floor(t),
        Bound::Excluded(t) => ceil(t) - 1,
        Bound::Unbounded => i64::MAX.into(),
    };
    let (min, max) = (i128::from(i64::MIN), i128::from(i64::MAX));
    if from > to || from > max || to < min {
        return (0, -1);
    }
    (from.max(min) as i64, to.min(max) as i64)
}

/// The first raw time at or after these nanoseconds.
pub(super) fn first_at(nanos: i64, unit: Unit) -> i64 {
    let step = i128::from(unit.nanos());
    let first = -(-i128::from(nanos)).div_euclid(step) + i128::from(unit.steps_to_1970());
    first.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// The last raw time at or before these nanoseconds.
pub(super) fn last_at(nanos: i64, unit: Unit) -> i64 {
    nanos.div_euclid(unit.nanos()) + unit.steps_to_1970()
}

/// The last raw time at or before which the current rows at the beginning of `times` lie; `i64::MIN` if `times` has no
/// beginning.
pub(super) fn current_at_start(times: &impl RangeBounds<Timestamp>, unit: Unit) -> i64 {
    let (Bound::Included(t) | Bound::Excluded(t)) = times.start_bound() else {
        return i64::MIN;
    };
    last_at(t.0, unit)
}

/// A raw time in nanoseconds since 1970.
pub(super) fn nanos(raw: i64, unit: Unit) -> Result<i64> {
    let time = unit.timestamp(raw).ok_or_else(|| Error::Timestamp {
        text: unit.text(raw),
        problem: "outside of the years 1677 to 2262, which nanoseconds can tell; cut the interval"
            .to_owned(),
    })?;
    Ok(time.0)
}

/// Converts the times of statistics to nanoseconds since 1970.
pub(super) fn on_clock(aggregate: Aggregate, unit: Unit) -> Result<Aggregate> {
    if let Some((first, last)) = aggregate.times() {
        // All other times lie between these two.
        nanos(first, unit)?;
        nanos(last, unit)?;
    }
    Ok(aggregate.with_times(|raw| nanos(raw, unit).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_holds_the_rows_whose_nanoseconds_lie_in_it() {
        let t = Timestamp;
        let second = 1_000_000_000;
        assert_eq!(interval(&(t(1)..t(second)), Unit::Seconds), (0, -1));
        assert_eq!(interval(&(t(0)..t(second)), Unit::Seconds), (0, 0));
        assert_eq!(interval(&(t(0)..=t(second)), Unit::Seconds), (0, 1));
        assert_eq!(interval(&(t(-1)..t(1)), Unit::Seconds), (0, 0));
        assert_eq!(interval(&(t(-second - 1)..t(0)), Unit::Seconds), (-1, -1));
        assert_eq!(interval(&(t(5)..t(5)), Unit::Nanos), (0, -1));
        assert_eq!(interval(&(t(5)..=t(5)), Unit::Nanos), (5, 5));
        assert_eq!(interval(&.., Unit::Ticks), (i64::MIN, i64::MAX));
        assert_eq!(
            interval(&(Bound::Excluded(t(0)), Bound::Unbounded), Unit::Micros),
            (1, i64::MAX)
        );
        let zero = Unit::Ticks.steps_to_1970();
        assert_eq!(interval(&(t(0)..t(250)), Unit::Ticks), (zero, zero + 2));
        let ends = interval(&(t(i64::MIN)..=t(i64::MAX)), Unit::Nanos);
        assert_eq!(ends, (i64::MIN, i64::MAX));
    }
}
