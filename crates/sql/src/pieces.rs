//! Converts words of a series to Arrow arrays.

use crate::error::Result;
use crate::types::{ZONE, column_type};
use arrow::array::{
    ArrayRef, BinaryBuilder, BooleanArray, Decimal128Array, Float32Array, PrimitiveArray,
    StringBuilder,
};
use arrow::buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Float64Type, Int64Type, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt64Type,
};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use tidalite::text::guid_text;
use tidalite::{ColumnType, Series, Value};

/// Creates the array of a column from its words, in the type that [`column_type`] gives.
pub(crate) fn column(series: &Series<'_>, number: usize, words: Vec<u64>) -> Result<ArrayRef> {
    let own = &series.info().schema.columns[number];
    if own.ty.is_text() {
        return texts(series, number, &words);
    }
    let nulls = own.null().and_then(|null| nulls_of(&words, null));
    Ok(match own.ty {
        ColumnType::I64 => plain::<Int64Type>(words, nulls),
        ColumnType::U64 => plain::<UInt64Type>(words, nulls),
        ColumnType::F32 => {
            let values = words.iter().map(|&word| f64::from_bits(word) as f32);
            Arc::new(Float32Array::new(values.collect(), nulls))
        }
        ColumnType::Bool => {
            let values = words.iter().map(|&word| word == 1).collect();
            Arc::new(BooleanArray::new(values, nulls))
        }
        ColumnType::Decimal(_) => {
            let values = words.iter().map(|&word| i128::from(word as i64));
            let array = Decimal128Array::new(values.collect(), nulls);
            Arc::new(array.with_data_type(column_type(own.ty)))
        }
        _ => plain::<Float64Type>(words, nulls),
    })
}

/// Marks the words that differ from the null of the column; `None` if all of them do.
fn nulls_of(words: &[u64], null: u64) -> Option<NullBuffer> {
    let found = words.contains(&null);
    found.then(|| words.iter().map(|&word| word != null).collect())
}

/// An array whose values are the words themselves.
fn plain<T: ArrowPrimitiveType>(words: Vec<u64>, nulls: Option<NullBuffer>) -> ArrayRef {
    let rows = words.len();
    let values = ScalarBuffer::<T::Native>::new(Buffer::from_vec(words), 0, rows);
    Arc::new(PrimitiveArray::<T>::new(values, nulls))
}

/// Creates the array of times in the unit of the table.
pub(crate) fn times(unit: TimeUnit, times: Vec<i64>) -> ArrayRef {
    fn array<T: arrow::datatypes::ArrowTimestampType>(times: Vec<i64>) -> ArrayRef {
        Arc::new(PrimitiveArray::<T>::new(times.into(), None).with_timezone(ZONE))
    }
    match unit {
        TimeUnit::Second => array::<TimestampSecondType>(times),
        TimeUnit::Millisecond => array::<TimestampMillisecondType>(times),
        TimeUnit::Microsecond => array::<TimestampMicrosecondType>(times),
        TimeUnit::Nanosecond => array::<TimestampNanosecondType>(times),
    }
}

/// Reads texts. Equal words stand for the same text, so each text is read once for an array.
fn texts(series: &Series<'_>, number: usize, words: &[u64]) -> Result<ArrayRef> {
    let own = &series.info().schema.columns[number];
    let mut known: HashMap<u64, Vec<u8>> = HashMap::new();
    let mut strings = StringBuilder::new();
    let mut bytes = BinaryBuilder::new();
    let is_bytes = column_type(own.ty) == DataType::Binary;
    for &word in words {
        if own.is_null(word) {
            match is_bytes {
                true => bytes.append_null(),
                false => strings.append_null(),
            }
            continue;
        }
        let text = match known.entry(word) {
            Entry::Occupied(text) => text.into_mut(),
            Entry::Vacant(place) => place.insert(match series.value(number, word)? {
                Value::String(text) => text.into_bytes(),
                Value::Bytes(bytes) => bytes,
                Value::Guid(guid) => guid_text(&guid).into_bytes(),
                other => other.to_string().into_bytes(),
            }),
        };
        match is_bytes {
            true => bytes.append_value(text),
            false => strings.append_value(String::from_utf8_lossy(text)),
        }
    }
    Ok(match is_bytes {
        true => Arc::new(bytes.finish()),
        false => Arc::new(strings.finish()),
    })
}
