//! Converts keys and values of ordered tables to arrays. The types with which a table was created are stored by name;
//! keys and values of unsupported types, such as tuples, are shown as bytes.

use crate::error::{Error, ErrorKind, Result};
use arrow::array::{ArrayRef, BinaryArray, BooleanArray, PrimitiveArray, StringArray};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use datafusion::common::ScalarValue;
use std::sync::Arc;
use tidalite::table::TypeName;
use tidalite::{Ordered, TableKey, TableValue};

/// The type that the bytes of a key or a value encode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F32,
    F64,
    Bool,
    /// A text used as a key; its bytes sort like the text.
    KeyText,
    /// A text used as a value: its plain bytes.
    ValueText,
    Bytes,
}

impl Part {
    /// The part for a type with this name.
    pub(crate) fn of(name: &str, is_key: bool) -> Self {
        let known = [
            (<u8 as Ordered>::NAME, Self::U8),
            (<u16 as Ordered>::NAME, Self::U16),
            (<u32 as Ordered>::NAME, Self::U32),
            (<u64 as Ordered>::NAME, Self::U64),
            (<i8 as Ordered>::NAME, Self::I8),
            (<i16 as Ordered>::NAME, Self::I16),
            (<i32 as Ordered>::NAME, Self::I32),
            (<i64 as Ordered>::NAME, Self::I64),
            (<f32 as Ordered>::NAME, Self::F32),
            (<f64 as Ordered>::NAME, Self::F64),
            (<bool as Ordered>::NAME, Self::Bool),
        ];
        let text = if is_key {
            Self::KeyText
        } else {
            Self::ValueText
        };
        let own = |ty: &TypeName| ty.to_string() == name;
        match known.iter().find(|(ty, _)| own(ty)) {
            Some((_, part)) => *part,
            None if own(&<str as TableKey>::NAME) => text,
            None => Self::Bytes,
        }
    }

    /// The type of the column.
    pub(crate) fn data_type(self) -> DataType {
        match self {
            Self::U8 => DataType::UInt8,
            Self::U16 => DataType::UInt16,
            Self::U32 => DataType::UInt32,
            Self::U64 => DataType::UInt64,
            Self::I8 => DataType::Int8,
            Self::I16 => DataType::Int16,
            Self::I32 => DataType::Int32,
            Self::I64 => DataType::Int64,
            Self::F32 => DataType::Float32,
            Self::F64 => DataType::Float64,
            Self::Bool => DataType::Boolean,
            Self::KeyText | Self::ValueText => DataType::Utf8,
            Self::Bytes => DataType::Binary,
        }
    }

    /// Decodes the bytes of a column, one item for each row; `None` is null.
    pub(crate) fn array(self, rows: &[Option<Vec<u8>>]) -> Result<ArrayRef> {
        Ok(match self {
            Self::U8 => numbers::<UInt8Type>(rows)?,
            Self::U16 => numbers::<UInt16Type>(rows)?,
            Self::U32 => numbers::<UInt32Type>(rows)?,
            Self::U64 => numbers::<UInt64Type>(rows)?,
            Self::I8 => numbers::<Int8Type>(rows)?,
            Self::I16 => numbers::<Int16Type>(rows)?,
            Self::I32 => numbers::<Int32Type>(rows)?,
            Self::I64 => numbers::<Int64Type>(rows)?,
            Self::F32 => numbers::<Float32Type>(rows)?,
            Self::F64 => numbers::<Float64Type>(rows)?,
            Self::Bool => Arc::new(
                decoded::<bool>(rows, bool::from_key)?
                    .into_iter()
                    .collect::<BooleanArray>(),
            ),
            Self::KeyText => {
                let texts = decoded(rows, <str as TableKey>::decode_key)?;
                Arc::new(texts.into_iter().collect::<StringArray>())
            }
            Self::ValueText => {
                let texts = decoded(rows, <str as TableValue>::decode_value)?;
                Arc::new(texts.into_iter().collect::<StringArray>())
            }
            Self::Bytes => Arc::new(rows.iter().map(Option::as_deref).collect::<BinaryArray>()),
        })
    }

    /// The bytes of a key; `None` if the value does not have this type.
    pub(crate) fn key(self, value: &ScalarValue) -> Option<Vec<u8>> {
        Some(match (self, value) {
            (Self::U8, ScalarValue::UInt8(Some(value))) => value.to_key(),
            (Self::U16, ScalarValue::UInt16(Some(value))) => value.to_key(),
            (Self::U32, ScalarValue::UInt32(Some(value))) => value.to_key(),
            (Self::U64, ScalarValue::UInt64(Some(value))) => value.to_key(),
            (Self::I8, ScalarValue::Int8(Some(value))) => value.to_key(),
            (Self::I16, ScalarValue::Int16(Some(value))) => value.to_key(),
            (Self::I32, ScalarValue::Int32(Some(value))) => value.to_key(),
            (Self::I64, ScalarValue::Int64(Some(value))) => value.to_key(),
            (Self::KeyText, ScalarValue::Utf8(Some(value))) => value.key_code().into_owned(),
            (Self::Bytes, ScalarValue::Binary(Some(value))) => value.clone(),
            _ => return None,
        })
    }
}

/// Decodes each row.
fn decoded<T>(
    rows: &[Option<Vec<u8>>],
    decode: impl Fn(&[u8]) -> Option<T>,
) -> Result<Vec<Option<T>>> {
    let row = |bytes: &Option<Vec<u8>>| match bytes {
        None => Ok(None),
        Some(bytes) => match decode(bytes) {
            Some(value) => Ok(Some(value)),
            None => {
                let problem = format!(
                    "{} bytes of a table are not of the type of its column",
                    bytes.len()
                );
                Err(Error::new(ErrorKind::Execution, problem))
            }
        },
    };
    rows.iter().map(row).collect()
}

fn numbers<T: ArrowPrimitiveType>(rows: &[Option<Vec<u8>>]) -> Result<ArrayRef>
where
    T::Native: Ordered,
{
    let values = decoded(rows, T::Native::from_key)?;
    Ok(Arc::new(values.into_iter().collect::<PrimitiveArray<T>>()))
}
