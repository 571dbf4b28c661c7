//! Converts Arrow arrays to words of series.

use crate::error::{Error, ErrorKind, Result};
use crate::relational::types::guid;
use crate::types::{cast, column_type};
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float32Array, Float64Array, Int64Array, UInt64Array,
};
use arrow::datatypes::{Decimal128Type, Float32Type, Float64Type, Int64Type, UInt64Type};
use tidalite::{Column, ColumnType, Value};

/// The words of a column that does not contain texts.
pub(crate) fn words(column: &Column, array: &ArrayRef) -> Result<Vec<u64>> {
    let array = cast(array, &column_type(column.ty))?;
    let mut words: Vec<u64> = match column.ty {
        ColumnType::F64 => {
            let values: &Float64Array = array.as_primitive::<Float64Type>();
            values
                .values()
                .iter()
                .map(|value| value.to_bits())
                .collect()
        }
        ColumnType::F32 => {
            let values: &Float32Array = array.as_primitive::<Float32Type>();
            let word = |value: &f32| f64::from(*value).to_bits();
            values.values().iter().map(word).collect()
        }
        ColumnType::I64 => {
            let values: &Int64Array = array.as_primitive::<Int64Type>();
            values.values().iter().map(|value| *value as u64).collect()
        }
        ColumnType::U64 => {
            let values: &UInt64Array = array.as_primitive::<UInt64Type>();
            values.values().to_vec()
        }
        ColumnType::Bool => {
            let values: &BooleanArray = array.as_boolean();
            values.values().iter().map(u64::from).collect()
        }
        ColumnType::Decimal(_) => {
            let values = array.as_primitive::<Decimal128Type>();
            let word = |value: &i128| match i64::try_from(*value) {
                Ok(value) => Ok(value as u64),
                Err(_) => Err(problem(column, "a number has too many digits")),
            };
            values.values().iter().map(word).collect::<Result<_>>()?
        }
        _ => return Err(problem(column, "texts have no words")),
    };
    let Some(null) = column.null() else {
        if array.null_count() == 0 {
            return Ok(words);
        }
        if is_flags(column) {
            for (row, word) in words.iter_mut().enumerate() {
                if array.is_null(row) {
                    *word = 0;
                }
            }
            return Ok(words);
        }
        return Err(no_null(column));
    };
    for (row, word) in words.iter_mut().enumerate() {
        if array.is_null(row) {
            *word = null;
        } else if *word == null {
            return Err(problem(
                column,
                "this value stands for null in a column with nulls",
            ));
        }
    }
    Ok(words)
}

/// The value of a row.
pub(crate) fn value(column: &Column, array: &ArrayRef, row: usize) -> Result<Value> {
    if array.is_null(row) {
        return match column.nullable {
            true => Ok(Value::Null),
            false if is_flags(column) => Ok(Value::I64(0)),
            false => Err(no_null(column)),
        };
    }
    Ok(match column.ty {
        ColumnType::String => Value::String(array.as_string::<i32>().value(row).to_owned()),
        ColumnType::Bytes => Value::Bytes(array.as_binary::<i32>().value(row).to_vec()),
        ColumnType::Guid => {
            let text = array.as_string::<i32>().value(row);
            let guid = guid(text).ok_or_else(|| {
                problem(
                    column,
                    format_args!("{text:?} is not a GUID: 32 hexadecimal digits"),
                )
            })?;
            Value::Guid(guid)
        }
        ColumnType::F64 => Value::F64(array.as_primitive::<Float64Type>().value(row)),
        ColumnType::F32 => Value::from(array.as_primitive::<Float32Type>().value(row)),
        ColumnType::I64 => Value::I64(array.as_primitive::<Int64Type>().value(row)),
        ColumnType::U64 => Value::U64(array.as_primitive::<UInt64Type>().value(row)),
        ColumnType::Bool => Value::Bool(array.as_boolean().value(row)),
        ColumnType::Decimal(scale) => {
            let units = array.as_primitive::<Decimal128Type>().value(row);
            let units = i64::try_from(units)
                .map_err(|_| problem(column, "a number has too many digits"))?;
            Value::Decimal(tidalite::Decimal { units, scale })
        }
        _ => return Err(problem(column, "the type is not known")),
    })
}

/// Whether a column is the flags column of the default point: its default value is 0.
fn is_flags(column: &Column) -> bool {
    column.name == "flags" && column.ty == ColumnType::I64
}

fn no_null(column: &Column) -> Error {
    problem(column, "every row needs a value, NULL was given")
}

fn problem(column: &Column, problem: impl std::fmt::Display) -> Error {
    let problem = format!("column {}: {problem}", column.name);
    Error::new(ErrorKind::Execution, problem)
}
