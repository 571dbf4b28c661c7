//! Conversion between nanoseconds since 1970 and the unit of a series.

use crate::series::aggregate::Aggregate;
use crate::types::error::{Error, Result};
use crate::types::schema::Unit;
use tidalite_time::TimestampError;

/// The first raw time of the unit at or after `nanos`, which is nanoseconds since 1970.
pub(super) fn first_at(nanos: i64, unit: Unit) -> i64 {
    let step = i128::from(unit.nanos());
    let first = -(-i128::from(nanos)).div_euclid(step) + i128::from(unit.steps_to_1970());
    first.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// The last raw time of the unit at or before `nanos`, which is nanoseconds since 1970.
pub(super) fn last_at(nanos: i64, unit: Unit) -> i64 {
    nanos.div_euclid(unit.nanos()) + unit.steps_to_1970()
}

/// Converts a raw time of the unit to nanoseconds since 1970.
pub(super) fn nanos(raw: i64, unit: Unit) -> Result<i64> {
    let time = unit.timestamp(raw).ok_or_else(|| {
        Error::from(TimestampError {
            text: unit.text(raw),
            problem:
                "outside of the years 1677 to 2262, which nanoseconds can tell; cut the interval"
                    .to_owned(),
        })
    })?;
    Ok(time.0)
}

/// Converts the times in an aggregate from the unit of its series to nanoseconds since 1970.
pub(super) fn on_clock(aggregate: Aggregate, unit: Unit) -> Result<Aggregate> {
    if let Some((first, last)) = aggregate.times() {
        // All other times lie between the first and the last, so they can be converted if these two can.
        nanos(first, unit)?;
        nanos(last, unit)?;
    }
    Ok(aggregate.with_times(|raw| nanos(raw, unit).unwrap_or_default()))
}
