//! Converts rows of relations to arrays.

use crate::error::Result;
use crate::relational::types::data_type;
use arrow::array::{
    ArrayBuilder, ArrayRef, BinaryBuilder, BooleanBuilder, PrimitiveBuilder, StringBuilder,
};
use arrow::datatypes::{
    DataType, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, UInt64Type,
};
use tidalite::relation::{CellRef, ColumnType, RowRef};
use tidalite::text::guid_text;

/// Builds the array of a column.
pub(crate) struct ColumnBuilder {
    ty: DataType,
    values: Values,
}

enum Values {
    Bool(BooleanBuilder),
    I16(PrimitiveBuilder<Int16Type>),
    /// Also used for dates.
    I32(PrimitiveBuilder<Int32Type>),
    /// Also used for times.
    I64(PrimitiveBuilder<Int64Type>),
    U64(PrimitiveBuilder<UInt64Type>),
    F32(PrimitiveBuilder<Float32Type>),
    F64(PrimitiveBuilder<Float64Type>),
    Decimal(PrimitiveBuilder<Decimal128Type>),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
}

impl ColumnBuilder {
    /// A builder for the column of row keys: bytes that are never null.
    pub(crate) fn keys() -> Self {
        Self::new(ColumnType::Bytes)
    }

    pub(crate) fn new(kind: ColumnType) -> Self {
        let ty = data_type(kind);
        let values = match &ty {
            DataType::Boolean => Values::Bool(BooleanBuilder::new()),
            DataType::Int16 => Values::I16(PrimitiveBuilder::new()),
            DataType::Int32 | DataType::Date32 => Values::I32(PrimitiveBuilder::new()),
            DataType::Int64 | DataType::Timestamp(..) => Values::I64(PrimitiveBuilder::new()),
            DataType::UInt64 => Values::U64(PrimitiveBuilder::new()),
            DataType::Float32 => Values::F32(PrimitiveBuilder::new()),
            DataType::Float64 => Values::F64(PrimitiveBuilder::new()),
            DataType::Decimal128(..) => Values::Decimal(PrimitiveBuilder::new()),
            DataType::Binary => Values::Bytes(BinaryBuilder::new()),
            _ => Values::Text(StringBuilder::new()),
        };
        Self { ty, values }
    }

    /// Appends a column of a row.
    #[inline]
    pub(crate) fn append(&mut self, row: &RowRef<'_>, column: usize) -> Result<()> {
        self.append_cell(row.cell(column)?);
        Ok(())
    }

    /// Appends a key.
    pub(crate) fn append_key(&mut self, row: &RowRef<'_>) {
        self.append_cell(CellRef::Bytes(row.key_bytes()));
    }

    /// Appends a cell. The engine passes only cells of the column's type; any other cell would become null.
    #[inline]
    pub(crate) fn append_cell(&mut self, cell: CellRef<'_>) {
        match (&mut self.values, cell) {
            (Values::Bool(values), CellRef::Bool(value)) => values.append_value(value),
            (Values::I16(values), CellRef::I64(value)) => values.append_value(value as i16),
            (Values::I32(values), CellRef::I64(value)) => values.append_value(value as i32),
            (Values::I64(values), CellRef::I64(value)) => values.append_value(value),
            (Values::U64(values), CellRef::U64(value)) => values.append_value(value),
            (Values::F32(values), CellRef::F64(value)) => values.append_value(value as f32),
            (Values::F64(values), CellRef::F64(value)) => values.append_value(value),
            (Values::Decimal(values), CellRef::Decimal(value)) => values.append_value(value),
            (Values::Text(values), CellRef::Text(text)) => values.append_value(text),
            (Values::Text(values), CellRef::Guid(guid)) => values.append_value(guid_text(&guid)),
            (Values::Bytes(values), CellRef::Bytes(bytes)) => values.append_value(bytes),
            (values, _) => values.append_null(),
        }
    }

    /// The array of the rows appended so far.
    pub(crate) fn finish(&mut self) -> Result<ArrayRef> {
        let array = match &mut self.values {
            Values::Bool(values) => ArrayBuilder::finish(values),
            Values::I16(values) => ArrayBuilder::finish(values),
            Values::I32(values) => ArrayBuilder::finish(values),
            Values::I64(values) => ArrayBuilder::finish(values),
            Values::U64(values) => ArrayBuilder::finish(values),
            Values::F32(values) => ArrayBuilder::finish(values),
            Values::F64(values) => ArrayBuilder::finish(values),
            Values::Decimal(values) => ArrayBuilder::finish(values),
            Values::Text(values) => ArrayBuilder::finish(values),
            Values::Bytes(values) => ArrayBuilder::finish(values),
        };
        if array.data_type() == &self.ty {
            return Ok(array);
        }
        // Dates, times and decimals are built as numbers of a simpler type.
        let data = array.to_data().into_builder().data_type(self.ty.clone());
        Ok(arrow::array::make_array(data.build()?))
    }
}

impl Values {
    fn append_null(&mut self) {
        match self {
            Self::Bool(values) => values.append_null(),
            Self::I16(values) => values.append_null(),
            Self::I32(values) => values.append_null(),
            Self::I64(values) => values.append_null(),
            Self::U64(values) => values.append_null(),
            Self::F32(values) => values.append_null(),
            Self::F64(values) => values.append_null(),
            Self::Decimal(values) => values.append_null(),
            Self::Text(values) => values.append_null(),
            Self::Bytes(values) => values.append_null(),
        }
    }
}
