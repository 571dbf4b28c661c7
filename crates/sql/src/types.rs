//! Arrow types for times and for columns of series.

use crate::error::Result;
use arrow::array::{Array, ArrayRef};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ScalarValue;
use tidalite::{ColumnType, Unit};

/// The zone of all times: they count from 1970-01-01 UTC.
pub(crate) const ZONE: &str = "UTC";

/// Digits of a decimal: an `i64` has up to 19.
const DECIMAL_DIGITS: u8 = 19;

/// The type of the times of a table.
pub(crate) fn time_type(unit: TimeUnit) -> DataType {
    DataType::Timestamp(unit, Some(ZONE.into()))
}

/// The Arrow unit in which times with this unit are shown. Arrow has no unit of 100 ns, so such times are shown in
/// nanoseconds.
pub(crate) fn arrow_unit(unit: Unit) -> TimeUnit {
    match unit {
        Unit::Seconds => TimeUnit::Second,
        Unit::Millis => TimeUnit::Millisecond,
        Unit::Micros => TimeUnit::Microsecond,
        Unit::Nanos | Unit::Ticks => TimeUnit::Nanosecond,
    }
}

/// Length of a unit in nanoseconds.
pub(crate) fn nanos_of(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}

/// Nanoseconds since 1970 of a constant time; `None` for null and for other types.
pub(crate) fn constant_nanos(value: &ScalarValue) -> Option<i128> {
    let (time, unit) = match value {
        ScalarValue::TimestampSecond(time, _) => (time, TimeUnit::Second),
        ScalarValue::TimestampMillisecond(time, _) => (time, TimeUnit::Millisecond),
        ScalarValue::TimestampMicrosecond(time, _) => (time, TimeUnit::Microsecond),
        ScalarValue::TimestampNanosecond(time, _) => (time, TimeUnit::Nanosecond),
        _ => return None,
    };
    Some(i128::from((*time)?) * i128::from(nanos_of(unit)))
}

/// Nanoseconds of a constant interval without months; `None` for null and for other values.
pub(crate) fn interval_nanos(value: &ScalarValue) -> Option<i128> {
    const NANOS_PER_DAY: i128 = 86_400_000_000_000;
    const NANOS_PER_MILLI: i128 = 1_000_000;
    match value {
        ScalarValue::IntervalMonthDayNano(Some(interval)) if interval.months == 0 => {
            Some(i128::from(interval.days) * NANOS_PER_DAY + i128::from(interval.nanoseconds))
        }
        ScalarValue::IntervalDayTime(Some(interval)) => Some(
            i128::from(interval.days) * NANOS_PER_DAY
                + i128::from(interval.milliseconds) * NANOS_PER_MILLI,
        ),
        _ => None,
    }
}

/// The Arrow type of a column of a series.
pub(crate) fn column_type(ty: ColumnType) -> DataType {
    match ty {
        ColumnType::F64 => DataType::Float64,
        ColumnType::F32 => DataType::Float32,
        ColumnType::I64 => DataType::Int64,
        ColumnType::U64 => DataType::UInt64,
        ColumnType::Bool => DataType::Boolean,
        ColumnType::Decimal(scale) => DataType::Decimal128(DECIMAL_DIGITS, scale as i8),
        ColumnType::Bytes => DataType::Binary,
        // A GUID is represented as text.
        _ => DataType::Utf8,
    }
}

/// The type of a column that has these two types in different series of a metric: a type to which both can be
/// converted.
pub(crate) fn common_type(one: &DataType, other: &DataType) -> DataType {
    use DataType::{Binary, Decimal128, Float32, Float64, Int64, UInt64};
    match (one, other) {
        _ if one == other => one.clone(),
        (Decimal128(digits, scale), Decimal128(more, finer)) => {
            // The digits before the decimal point must still fit.
            let before =
                (i16::from(*digits) - i16::from(*scale)).max(i16::from(*more) - i16::from(*finer));
            let scale = *scale.max(finer);
            let digits = (before + i16::from(scale)).min(38);
            Decimal128(digits as u8, scale)
        }
        (
            Int64 | UInt64 | Float32 | Float64 | Decimal128(..),
            Int64 | UInt64 | Float32 | Float64 | Decimal128(..),
        ) => Float64,
        (Binary, _) | (_, Binary) => Binary,
        _ => DataType::Utf8,
    }
}

/// Casts an array; returns an error if a value does not fit.
pub(crate) fn cast(array: &ArrayRef, ty: &DataType) -> Result<ArrayRef> {
    if array.data_type() == ty {
        return Ok(ArrayRef::clone(array));
    }
    let strict = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    Ok(cast_with_options(array, ty, &strict)?)
}

/// Converts between times of a series, in steps of its unit, and times of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clock {
    /// Units of the table in one step of the series.
    factor: i64,
    /// The step of the series at 1970-01-01.
    zero: i64,
}

impl Clock {
    /// The conversion for a table whose unit is at least as fine as the unit of the series.
    pub(crate) fn new(series: Unit, table: TimeUnit) -> Self {
        debug_assert!(
            series.nanos() % nanos_of(table) == 0,
            "a table counts finer"
        );
        Self {
            factor: series.nanos() / nanos_of(table),
            zero: series.steps_to_1970(),
        }
    }

    /// Whether times of the series and of the table are equal numbers.
    pub(crate) fn is_same(self) -> bool {
        self.factor == 1 && self.zero == 0
    }

    /// The table's time of a step; `None` if it is outside the range of the table's unit.
    pub(crate) fn time(self, step: i64) -> Option<i64> {
        step.checked_sub(self.zero)?.checked_mul(self.factor)
    }

    /// The first step at or after a time of the table, and the last step at or before it; both are clamped to the range
    /// of steps.
    pub(crate) fn steps(self, time: i64) -> (i64, i64) {
        let (time, factor) = (i128::from(time), i128::from(self.factor));
        let before = time.div_euclid(factor);
        let after = before + i128::from(time.rem_euclid(factor) != 0);
        let step = |index: i128| {
            let step = index + i128::from(self.zero);
            step.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
        };
        (step(after), step(before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_times_convert_both_ways() {
        let seconds = Clock::new(Unit::Seconds, TimeUnit::Millisecond);
        assert_eq!(seconds.time(-2), Some(-2000));
        assert_eq!(seconds.steps(-1500), (-1, -2));
        assert_eq!(seconds.steps(2000), (2, 2));
        assert_eq!(seconds.time(i64::MAX), None);
        let ticks = Clock::new(Unit::Ticks, TimeUnit::Nanosecond);
        assert_eq!(ticks.time(Unit::Ticks.steps_to_1970() + 3), Some(300));
        assert_eq!(ticks.steps(250), {
            let zero = Unit::Ticks.steps_to_1970();
            (zero + 3, zero + 2)
        });
    }

    #[test]
    fn decimals_of_two_scales_keep_all_digits() {
        let one = DataType::Decimal128(19, 2);
        let other = DataType::Decimal128(19, 6);
        assert_eq!(common_type(&one, &other), DataType::Decimal128(23, 6));
        assert_eq!(common_type(&one, &DataType::Int64), DataType::Float64);
        assert_eq!(common_type(&one, &DataType::Utf8), DataType::Utf8);
    }
}
