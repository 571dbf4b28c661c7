//! Reads the arguments of functions: times, numbers and constants.

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, make_array};
use arrow::datatypes::{DataType, Float64Type, Int64Type, IntervalUnit, Schema, TimeUnit};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use std::sync::Arc;

pub(super) const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Unit of a type of times.
pub(super) fn unit_of(ty: &DataType) -> Result<TimeUnit> {
    match ty {
        DataType::Timestamp(unit, _) => Ok(*unit),
        other => exec_err!("found a {other}, expected a timestamp"),
    }
}

/// Whether a timestamp type has no zone, or UTC under any of its names.
pub(super) fn is_utc(ty: &DataType) -> bool {
    match ty {
        DataType::Timestamp(_, None) => true,
        DataType::Timestamp(_, Some(zone)) => is_utc_name(zone),
        _ => false,
    }
}

/// Whether a name is a name of UTC.
pub(super) fn is_utc_name(zone: &str) -> bool {
    let names = ["UTC", "Etc/UTC", "Z", "+00:00", "+00", "+0000"];
    names.iter().any(|name| zone.eq_ignore_ascii_case(name))
}

/// The type to which a time argument is converted: timestamps keep their type, dates and texts become timestamps in
/// nanoseconds.
pub(super) fn time_type(function: &str, found: &DataType) -> Result<DataType> {
    match found {
        DataType::Timestamp(_, _) => Ok(found.clone()),
        DataType::Date32 | DataType::Date64 | DataType::Null => {
            Ok(DataType::Timestamp(TimeUnit::Nanosecond, None))
        }
        text if is_text(text) => Ok(DataType::Timestamp(TimeUnit::Nanosecond, None)),
        other => plan_err!("{function}: the time is a {other}, expected a timestamp"),
    }
}

/// The type to which a width argument is converted.
pub(super) fn width_type(function: &str, found: &DataType) -> Result<DataType> {
    match found {
        DataType::Interval(_) => Ok(DataType::Interval(IntervalUnit::MonthDayNano)),
        DataType::Duration(_) | DataType::Null => Ok(found.clone()),
        text if is_text(text) => Ok(DataType::Utf8),
        other => plan_err!("{function}: the width is a {other}, expected an interval"),
    }
}

/// The type to which a numeric argument is converted.
pub(super) fn number_type(function: &str, name: &str, found: &DataType) -> Result<DataType> {
    if found.is_numeric() || found.is_null() {
        return Ok(DataType::Float64);
    }
    if let DataType::Dictionary(_, value) = found {
        return number_type(function, name, value);
    }
    plan_err!("{function}: the {name} is a {found}, expected a number")
}

/// Whether a type is a text type.
pub(super) fn is_text(ty: &DataType) -> bool {
    match ty {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, value) => is_text(value),
        _ => false,
    }
}

/// The text of a constant; `None` for null and for other types.
pub(super) fn text(value: &ScalarValue) -> Option<&str> {
    value.try_as_str().flatten()
}

/// Returns an error unless the number of arguments is in `at_least ..= at_most`.
pub(super) fn check_count(
    function: &str,
    found: usize,
    (at_least, at_most): (usize, usize),
) -> Result<()> {
    if (at_least..=at_most).contains(&found) {
        return Ok(());
    }
    if at_least == at_most {
        return plan_err!("{function}: found {found} arguments, expected {at_least}");
    }
    plan_err!("{function}: found {found} arguments, expected {at_least} to {at_most}")
}

/// Times of an array of timestamps, in steps of its unit.
pub(super) fn times(array: &ArrayRef) -> Result<Int64Array> {
    unit_of(array.data_type())?;
    let array = retyped(array, &DataType::Int64)?;
    Ok(array.as_primitive::<Int64Type>().clone())
}

/// Numbers of an array that was converted to [`number_type`].
pub(super) fn numbers(array: &ArrayRef) -> Result<&Float64Array> {
    match array.as_primitive_opt::<Float64Type>() {
        Some(numbers) => Ok(numbers),
        None => exec_err!("found a {}, expected numbers", array.data_type()),
    }
}

/// The same 64-bit values with another type of the same width.
pub(super) fn retyped(array: &dyn Array, ty: &DataType) -> Result<ArrayRef> {
    let data = array.to_data().into_builder().data_type(ty.clone());
    Ok(make_array(data.build()?))
}

/// A timestamp of a type, from steps of its unit.
pub(super) fn timestamp(steps: Option<i64>, ty: &DataType) -> Result<ScalarValue> {
    let array = retyped(&Int64Array::from(vec![steps]), ty)?;
    ScalarValue::try_from_array(&array, 0)
}

/// The value of an argument that must be the same for all rows.
pub(super) fn constant(
    function: &str,
    name: &str,
    expr: &Arc<dyn PhysicalExpr>,
) -> Result<ScalarValue> {
    let no_rows = RecordBatch::new_empty(Arc::new(Schema::empty()));
    match expr.evaluate(&no_rows) {
        Ok(ColumnarValue::Scalar(value)) => Ok(value),
        _ => plan_err!("{function}: the {name} is {expr}, expected a constant"),
    }
}

/// A constant number.
pub(super) fn constant_number(
    function: &str,
    name: &str,
    expr: &Arc<dyn PhysicalExpr>,
) -> Result<f64> {
    let value = constant(function, name, expr)?;
    match value.cast_to(&DataType::Float64) {
        Ok(ScalarValue::Float64(Some(number))) if number.is_finite() => Ok(number),
        _ => plan_err!("{function}: the {name} is {value}, expected a finite number"),
    }
}
