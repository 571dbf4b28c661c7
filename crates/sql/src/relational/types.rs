//! Converts types of columns and cells between relations and Arrow.

use crate::error::{Error, ErrorKind, Result};
use crate::types::ZONE;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::common::ScalarValue;
use std::sync::Arc;
use tidalite::relation::{self, Cell, ColumnType};

/// Maximum number of digits of a decimal in Arrow.
const DECIMAL_DIGITS: u8 = 38;

/// The Arrow type of a column.
pub(crate) fn data_type(kind: ColumnType) -> DataType {
    match kind {
        ColumnType::Bool => DataType::Boolean,
        ColumnType::I16 => DataType::Int16,
        ColumnType::I32 => DataType::Int32,
        ColumnType::I64 => DataType::Int64,
        ColumnType::U64 => DataType::UInt64,
        ColumnType::F32 => DataType::Float32,
        ColumnType::F64 => DataType::Float64,
        ColumnType::Bytes => DataType::Binary,
        ColumnType::Decimal { precision, scale } => DataType::Decimal128(precision, scale as i8),
        ColumnType::Date => DataType::Date32,
        ColumnType::Time { unit, zoned } => {
            let unit = match unit {
                relation::TimeUnit::Seconds => TimeUnit::Second,
                relation::TimeUnit::Millis => TimeUnit::Millisecond,
                relation::TimeUnit::Micros => TimeUnit::Microsecond,
                _ => TimeUnit::Nanosecond,
            };
            DataType::Timestamp(unit, zoned.then(|| ZONE.into()))
        }
        // A GUID is represented as text.
        _ => DataType::Utf8,
    }
}

/// The type of a column that can store values of an Arrow type.
///
/// # Errors
/// No such type exists.
pub(crate) fn column_type(ty: &DataType) -> Result<ColumnType> {
    Ok(match ty {
        DataType::Boolean => ColumnType::Bool,
        DataType::Int8 | DataType::Int16 | DataType::UInt8 => ColumnType::I16,
        DataType::Int32 | DataType::UInt16 => ColumnType::I32,
        DataType::Int64 | DataType::UInt32 => ColumnType::I64,
        DataType::UInt64 => ColumnType::U64,
        DataType::Float16 | DataType::Float32 => ColumnType::F32,
        DataType::Float64 => ColumnType::F64,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => ColumnType::Text,
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => ColumnType::Bytes,
        DataType::Decimal128(precision, scale @ 0..) if *precision <= DECIMAL_DIGITS => {
            ColumnType::Decimal {
                precision: *precision,
                scale: *scale as u8,
            }
        }
        DataType::Date32 | DataType::Date64 => ColumnType::Date,
        DataType::Timestamp(unit, zone) => ColumnType::Time {
            unit: match unit {
                TimeUnit::Second => relation::TimeUnit::Seconds,
                TimeUnit::Millisecond => relation::TimeUnit::Millis,
                TimeUnit::Microsecond => relation::TimeUnit::Micros,
                TimeUnit::Nanosecond => relation::TimeUnit::Nanos,
            },
            zoned: zone.is_some(),
        },
        DataType::Dictionary(_, value) => column_type(value)?,
        other => {
            let problem = format!("a column of a table cannot have the type {other}");
            return Err(Error::new(ErrorKind::Plan, problem));
        }
    })
}

/// The columns of a relation as an Arrow schema.
pub(crate) fn schema(schema: &relation::Schema) -> SchemaRef {
    let columns = schema.columns.iter();
    let fields = columns.map(|column| {
        let required = column.not_null || schema.primary_key.contains(&column.name);
        Field::new(&column.name, data_type(column.kind), !required)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The cell for a constant; `None` if the constant has another type than the column, or is not valid for it.
pub(crate) fn cell(kind: ColumnType, value: &ScalarValue) -> Option<Cell> {
    if value.is_null() {
        return (value.data_type() == data_type(kind)).then_some(Cell::Null);
    }
    Some(match (kind, value) {
        (ColumnType::Bool, ScalarValue::Boolean(Some(value))) => Cell::Bool(*value),
        (ColumnType::I16, ScalarValue::Int16(Some(value))) => Cell::I64((*value).into()),
        (ColumnType::I32, ScalarValue::Int32(Some(value))) => Cell::I64((*value).into()),
        (ColumnType::I64, ScalarValue::Int64(Some(value))) => Cell::I64(*value),
        (ColumnType::U64, ScalarValue::UInt64(Some(value))) => Cell::U64(*value),
        (ColumnType::F32, ScalarValue::Float32(Some(value))) => Cell::F64((*value).into()),
        (ColumnType::F64, ScalarValue::Float64(Some(value))) => Cell::F64(*value),
        (ColumnType::Text, ScalarValue::Utf8(Some(value))) => Cell::Text(value.clone()),
        (ColumnType::Guid, ScalarValue::Utf8(Some(value))) => Cell::Guid(guid(value)?),
        (ColumnType::Bytes, ScalarValue::Binary(Some(value))) => Cell::Bytes(value.clone()),
        (ColumnType::Date, ScalarValue::Date32(Some(days))) => Cell::I64((*days).into()),
        (ColumnType::Decimal { precision, scale }, value) => match value {
            ScalarValue::Decimal128(Some(units), own, digits)
                if (*own, *digits) == (precision, scale as i8) =>
            {
                Cell::Decimal(*units)
            }
            _ => return None,
        },
        (ColumnType::Time { .. }, value) if value.data_type() == data_type(kind) => match value {
            ScalarValue::TimestampSecond(Some(time), _)
            | ScalarValue::TimestampMillisecond(Some(time), _)
            | ScalarValue::TimestampMicrosecond(Some(time), _)
            | ScalarValue::TimestampNanosecond(Some(time), _) => Cell::I64(*time),
            _ => return None,
        },
        _ => return None,
    })
}

/// The cell of a column that equals a value of any type; `None` if no cell does.
///
/// # Errors
/// A text that cannot be converted.
pub(crate) fn equal_cell(kind: ColumnType, value: &ScalarValue) -> Result<Option<Cell>> {
    let ty = data_type(kind);
    let found = if value.data_type() == ty {
        cell(kind, value)
    } else if matches!(value, ScalarValue::Utf8(_)) {
        cell(kind, &value.cast_to(&ty)?)
    } else {
        // A number outside the column's range, or between two of its values, equals no cell.
        let cast = value.cast_to(&ty).ok();
        let back = |cast: &ScalarValue| cast.cast_to(&value.data_type());
        let exact = cast.filter(|cast| back(cast).is_ok_and(|back| back == *value));
        exact.and_then(|cast| cell(kind, &cast))
    };
    Ok(found.filter(|cell| *cell != Cell::Null))
}

/// A cell as a constant.
pub(crate) fn constant(kind: ColumnType, cell: &Cell) -> Result<ScalarValue> {
    let ty = data_type(kind);
    let value = match cell {
        Cell::Null => return Ok(ScalarValue::try_from(&ty)?),
        Cell::Bool(value) => ScalarValue::Boolean(Some(*value)),
        Cell::I64(value) => match &ty {
            DataType::Date32 => ScalarValue::Date32(i32::try_from(*value).ok()),
            DataType::Timestamp(unit, zone) => {
                let (value, zone) = (Some(*value), zone.clone());
                match unit {
                    TimeUnit::Second => ScalarValue::TimestampSecond(value, zone),
                    TimeUnit::Millisecond => ScalarValue::TimestampMillisecond(value, zone),
                    TimeUnit::Microsecond => ScalarValue::TimestampMicrosecond(value, zone),
                    TimeUnit::Nanosecond => ScalarValue::TimestampNanosecond(value, zone),
                }
            }
            _ => ScalarValue::Int64(Some(*value)),
        },
        Cell::U64(value) => ScalarValue::UInt64(Some(*value)),
        Cell::F64(value) => ScalarValue::Float64(Some(*value)),
        Cell::Text(text) => ScalarValue::Utf8(Some(text.clone())),
        Cell::Bytes(bytes) => ScalarValue::Binary(Some(bytes.clone())),
        Cell::Guid(guid) => ScalarValue::Utf8(Some(tidalite::text::guid_text(guid))),
        Cell::Decimal(units) => match kind {
            ColumnType::Decimal { precision, scale } => {
                ScalarValue::Decimal128(Some(*units), precision, scale as i8)
            }
            _ => ScalarValue::Null,
        },
    };
    Ok(value.cast_to(&ty)?)
}

/// The bytes of a GUID given as text, with or without hyphens and braces.
pub(crate) fn guid(text: &str) -> Option<[u8; 16]> {
    let digits: String = text
        .trim_matches(['{', '}'])
        .chars()
        .filter(|c| *c != '-')
        .collect();
    if digits.len() != 32 || digits.starts_with('+') {
        return None;
    }
    let value = u128::from_str_radix(&digits, 16).ok()?;
    Some(value.to_be_bytes())
}

/// The error for a text that is not a GUID, in a column of GUIDs.
pub(crate) fn not_a_guid(column: &str, text: &str) -> Error {
    let problem = format!("column {column}: {text:?} is not a GUID: 32 hexadecimal digits");
    Error::new(ErrorKind::Execution, problem)
}
