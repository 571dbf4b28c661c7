//! Converts arrays to rows of relations.

use crate::error::Result;
use crate::relational::types::{data_type, guid, not_a_guid};
use crate::types::cast;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type,
    Int64Type, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt64Type,
};
use tidalite::relation::{Cell, Column, ColumnType};

/// The arrays of a batch, converted to the types of a relation's columns.
pub(crate) struct Rows {
    columns: Vec<(Column, ArrayRef)>,
}

impl Rows {
    /// Converts the arrays; returns an error if a value does not fit.
    pub(crate) fn new(columns: &[Column], arrays: &[ArrayRef]) -> Result<Self> {
        let convert = |(column, array): (&Column, &ArrayRef)| {
            let array = cast(array, &data_type(column.kind))?;
            Ok((column.clone(), array))
        };
        let columns = columns.iter().zip(arrays).map(convert);
        Ok(Self {
            columns: columns.collect::<Result<_>>()?,
        })
    }

    /// The cells of a row.
    pub(crate) fn row(&self, row: usize) -> Result<Vec<Cell>> {
        let cells = self.columns.iter();
        cells
            .map(|(column, array)| cell(column, array, row))
            .collect()
    }
}

fn cell(column: &Column, array: &ArrayRef, row: usize) -> Result<Cell> {
    if array.is_null(row) {
        return Ok(Cell::Null);
    }
    Ok(match array.data_type() {
        DataType::Boolean => Cell::Bool(array.as_boolean().value(row)),
        DataType::Int16 => Cell::I64(array.as_primitive::<Int16Type>().value(row).into()),
        DataType::Int32 => Cell::I64(array.as_primitive::<Int32Type>().value(row).into()),
        DataType::Int64 => Cell::I64(array.as_primitive::<Int64Type>().value(row)),
        DataType::UInt64 => Cell::U64(array.as_primitive::<UInt64Type>().value(row)),
        DataType::Float32 => Cell::F64(array.as_primitive::<Float32Type>().value(row).into()),
        DataType::Float64 => Cell::F64(array.as_primitive::<Float64Type>().value(row)),
        DataType::Date32 => Cell::I64(array.as_primitive::<Date32Type>().value(row).into()),
        DataType::Decimal128(..) => {
            Cell::Decimal(array.as_primitive::<Decimal128Type>().value(row))
        }
        DataType::Timestamp(unit, _) => Cell::I64(match unit {
            TimeUnit::Second => array.as_primitive::<TimestampSecondType>().value(row),
            TimeUnit::Millisecond => array.as_primitive::<TimestampMillisecondType>().value(row),
            TimeUnit::Microsecond => array.as_primitive::<TimestampMicrosecondType>().value(row),
            TimeUnit::Nanosecond => array.as_primitive::<TimestampNanosecondType>().value(row),
        }),
        DataType::Binary => Cell::Bytes(array.as_binary::<i32>().value(row).to_vec()),
        _ => {
            let text = array.as_string::<i32>().value(row);
            if column.kind != ColumnType::Guid {
                return Ok(Cell::Text(text.to_owned()));
            }
            let problem = || not_a_guid(&column.name, text);
            Cell::Guid(guid(text).ok_or_else(problem)?)
        }
    })
}
