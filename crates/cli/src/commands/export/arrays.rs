//! Collects rows as arrays, for Parquet and Arrow.

use super::heads::{Head, Kind};
use crate::exit::{Exit, Failure, Outcome};
use crate::output::Cell;
use std::io::Write;
use std::sync::Arc;
use tidalite::{ColumnType, Decimal, Unit};
use tidalite_shell::FileBytes;
use tidalite_shell::sql::FileFormat;
use tidalite_shell::sql::arrow::array::builder::{
    BinaryBuilder, BooleanBuilder, Decimal128Builder, Float32Builder, Float64Builder, Int64Builder,
    StringBuilder, StringDictionaryBuilder, UInt64Builder,
};
use tidalite_shell::sql::arrow::array::{ArrayRef, RecordBatch};
use tidalite_shell::sql::arrow::compute::cast;
use tidalite_shell::sql::arrow::datatypes::{
    DataType, Field, Int32Type, Schema, SchemaRef, TimeUnit,
};
use tidalite_shell::sql::arrow::error::ArrowError;

/// Number of rows that become one batch.
const BATCH_ROWS: usize = 8192;

/// Maximum number of digits of a decimal: an `i64` has up to 19 digits.
const DECIMAL_DIGITS: u8 = 19;

/// Maximum number of digits of decimals with different scales: a decimal with a smaller scale gets up to 18 additional
/// digits.
const DECIMALS_DIGITS: u8 = 38;

/// A writer of rows.
pub(super) struct Arrays<'w> {
    out: &'w mut dyn Write,
    file: FileBytes,
    schema: SchemaRef,
    builders: Vec<Builder>,
    /// Number of rows in the builders.
    rows: usize,
}

enum Builder {
    Names(StringDictionaryBuilder<Int32Type>),
    Time(Int64Builder, DataType),
    Bool(BooleanBuilder),
    I64(Int64Builder),
    U64(UInt64Builder),
    F32(Float32Builder),
    F64(Float64Builder),
    Decimal(Decimal128Builder, u8),
    Bytes(BinaryBuilder),
    Text(StringBuilder),
}

impl<'w> Arrays<'w> {
    /// Creates a writer of rows with these columns. Times are counted from 1970 in `unit`.
    pub(super) fn new(
        out: &'w mut dyn Write,
        format: FileFormat,
        unit: Unit,
        heads: &[Head],
    ) -> Outcome<Self> {
        let mut builders = Vec::with_capacity(heads.len());
        let mut fields = Vec::with_capacity(heads.len());
        for head in heads {
            let mut builder = Builder::new(head.kind, unit);
            let empty = builder.finish().map_err(failed)?;
            let nullable = head.kind != Kind::Time;
            fields.push(Field::new(&head.name, empty.data_type().clone(), nullable));
            builders.push(builder);
        }
        let schema = Arc::new(Schema::new(fields));
        Ok(Self {
            out,
            file: FileBytes::new(format, &schema),
            schema,
            builders,
            rows: 0,
        })
    }

    pub(super) fn row(&mut self, cells: &[Cell]) -> Outcome {
        for (builder, cell) in self.builders.iter_mut().zip(cells) {
            builder.append(cell);
        }
        self.rows += 1;
        match self.rows >= BATCH_ROWS {
            true => self.batch(),
            false => Ok(()),
        }
    }

    fn batch(&mut self) -> Outcome {
        let arrays = self.builders.iter_mut().map(Builder::finish);
        let batch = arrays
            .collect::<Result<Vec<_>, _>>()
            .and_then(|arrays| RecordBatch::try_new(Arc::clone(&self.schema), arrays));
        self.file.batch(&batch.map_err(failed)?, self.out)?;
        self.rows = 0;
        Ok(())
    }

    pub(super) fn finish(mut self) -> Outcome {
        if self.rows > 0 {
            self.batch()?;
        }
        self.file.finish(self.out)?;
        Ok(self.out.flush()?)
    }
}

fn failed(error: ArrowError) -> Failure {
    Failure::new(Exit::Failure, error)
}

impl Builder {
    fn new(kind: Kind, unit: Unit) -> Self {
        let ty = match kind {
            Kind::Names => return Self::Names(StringDictionaryBuilder::new()),
            Kind::Time => {
                let unit = match unit {
                    Unit::Seconds => TimeUnit::Second,
                    Unit::Millis => TimeUnit::Millisecond,
                    Unit::Micros => TimeUnit::Microsecond,
                    _ => TimeUnit::Nanosecond,
                };
                let ty = DataType::Timestamp(unit, Some("UTC".into()));
                return Self::Time(Int64Builder::new(), ty);
            }
            Kind::Decimals(scale) => return Self::decimals(DECIMALS_DIGITS, scale),
            Kind::Values(ty) => ty,
        };
        match ty {
            ColumnType::Bool => Self::Bool(BooleanBuilder::new()),
            ColumnType::I64 => Self::I64(Int64Builder::new()),
            ColumnType::U64 => Self::U64(UInt64Builder::new()),
            ColumnType::F32 => Self::F32(Float32Builder::new()),
            ColumnType::F64 => Self::F64(Float64Builder::new()),
            ColumnType::Decimal(scale) => Self::decimals(DECIMAL_DIGITS, scale),
            ColumnType::Bytes => Self::Bytes(BinaryBuilder::new()),
            _ => Self::Text(StringBuilder::new()),
        }
    }

    fn decimals(digits: u8, scale: u8) -> Self {
        let ty = DataType::Decimal128(digits, scale.cast_signed());
        Self::Decimal(Decimal128Builder::new().with_data_type(ty), scale)
    }

    /// Appends a cell; if it does not fit the type of the column, it becomes null.
    fn append(&mut self, cell: &Cell) {
        match self {
            Self::Names(names) => match cell {
                Cell::Series(series) => names.append_value(series.label()),
                Cell::Text(text) => names.append_value(text),
                _ => names.append_null(),
            },
            Self::Time(values, _) | Self::I64(values) => values.append_option(match cell {
                Cell::Int(value) => Some(*value),
                _ => None,
            }),
            Self::U64(values) => values.append_option(match cell {
                Cell::Unsigned(value) => Some(*value),
                _ => None,
            }),
            Self::Bool(values) => values.append_option(match cell {
                Cell::Bool(value) => Some(*value),
                _ => None,
            }),
            #[expect(
                clippy::cast_possible_truncation,
                reason = "the cell holds a float of 32 bits"
            )]
            Self::F32(values) => values.append_option(number(cell).map(|value| value as f32)),
            Self::F64(values) => values.append_option(number(cell)),
            Self::Decimal(values, scale) => values.append_option(match cell {
                Cell::Decimal(value) => units(*value, *scale),
                _ => None,
            }),
            Self::Bytes(values) => match cell {
                Cell::Text(digits) => values.append_option(bytes(digits)),
                _ => values.append_null(),
            },
            Self::Text(values) => values.append_option(text(cell)),
        }
    }

    /// The array of the cells appended so far.
    fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            Self::Names(names) => Arc::new(names.finish()),
            Self::Time(values, ty) => return cast(&values.finish(), ty),
            Self::Bool(values) => Arc::new(values.finish()),
            Self::I64(values) => Arc::new(values.finish()),
            Self::U64(values) => Arc::new(values.finish()),
            Self::F32(values) => Arc::new(values.finish()),
            Self::F64(values) => Arc::new(values.finish()),
            Self::Decimal(values, _) => Arc::new(values.finish()),
            Self::Bytes(values) => Arc::new(values.finish()),
            Self::Text(values) => Arc::new(values.finish()),
        })
    }
}

/// The value of a cell as a double.
#[expect(
    clippy::cast_precision_loss,
    reason = "columns of several types become doubles"
)]
fn number(cell: &Cell) -> Option<f64> {
    Some(match cell {
        Cell::Float(value) | Cell::Computed(value) => *value,
        Cell::Int(value) => *value as f64,
        Cell::Unsigned(value) => *value as f64,
        Cell::Bool(value) => f64::from(u8::from(*value)),
        Cell::Decimal(value) => value.to_f64(),
        _ => return None,
    })
}

/// A decimal as an integer: in units of its last digit, with `scale` digits after the point.
fn units(value: Decimal, scale: u8) -> Option<i128> {
    let digits = scale.checked_sub(value.scale)?;
    i128::from(value.units).checked_mul(10_i128.checked_pow(digits.into())?)
}

/// The bytes that the hexadecimal digits represent.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    pairs.map(byte).collect()
}

fn text(cell: &Cell) -> Option<String> {
    Some(match cell {
        Cell::Text(text) => text.clone(),
        Cell::Float(value) => value.to_string(),
        Cell::Int(value) => value.to_string(),
        Cell::Unsigned(value) => value.to_string(),
        Cell::Bool(value) => value.to_string(),
        Cell::Decimal(value) => value.to_string(),
        _ => return None,
    })
}
