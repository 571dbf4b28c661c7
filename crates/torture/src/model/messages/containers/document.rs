//! The size of an encoded document, from the description of the format, and the numbers of a document.

use std::sync::Arc;
use tidalite::containers::{Document, FieldValue};

/// Number of bytes that are counted for a message in addition to its document: key, flags and time of reception.
const HEAD_BYTES: u64 = 16 + 9;
/// Number of bytes of the number of messages for which a message stands.
const SEVERAL_BYTES: u64 = 4;
/// Greatest exponent of a decimal, and number of bits of its digits.
const EXPONENT_MAX: i32 = 11;
const DIGITS_BITS: u32 = 48;

/// Number of bytes that a message counts with.
pub(super) fn message_bytes(document: &Document, stands_for: u32) -> u64 {
    let fields = document.iter();
    // All numbers of fields are below 128: one byte.
    let fields: usize = fields.map(|(_, value)| 1 + value_bytes(value)).sum();
    let document = varint_bytes(document.len()) + fields;
    let several = if stands_for > 1 { SEVERAL_BYTES } else { 0 };
    HEAD_BYTES + several + document as u64
}

fn varint_bytes(number: usize) -> usize {
    let bits = usize::BITS - number.leading_zeros();
    bits.div_ceil(7).max(1) as usize
}

/// Number of bytes of an unsigned integer without its leading zeros.
fn integer_bytes(number: u64) -> usize {
    (u64::BITS - number.leading_zeros()).div_ceil(8) as usize
}

fn value_bytes(value: &FieldValue) -> usize {
    match value {
        FieldValue::Null | FieldValue::Bool(_) => 1,
        FieldValue::Integer(number) => match *number {
            0..128 => 1,
            number if number < 0 => 1 + integer_bytes((-1 - number) as u64).max(1),
            number => 1 + integer_bytes(number as u64),
        },
        FieldValue::Float(number) => float_bytes(number.abs()),
        FieldValue::Text(text) => match text.len() {
            len @ 0..64 => 1 + len,
            len => 1 + varint_bytes(len) + len,
        },
        FieldValue::List(values) => {
            let values_len: usize = values.iter().map(value_bytes).sum();
            nested_bytes(varint_bytes(values.len()) + values_len)
        }
        FieldValue::Object(fields) => {
            let of_field = |(name, value): &(Arc<str>, FieldValue)| {
                varint_bytes(name.len()) + name.len() + value_bytes(value)
            };
            let fields_len: usize = fields.iter().map(of_field).sum();
            nested_bytes(varint_bytes(fields.len()) + fields_len)
        }
    }
}

fn nested_bytes(rest: usize) -> usize {
    1 + varint_bytes(rest) + rest
}

/// A decimal with the smallest exponent that gives exactly this float, otherwise the float itself.
fn float_bytes(number: f64) -> usize {
    let digits = (0..=EXPONENT_MAX).find_map(|exponent| {
        let power = 10_f64.powi(exponent);
        let digits = (number * power).round();
        let fits = digits < (1_u64 << DIGITS_BITS) as f64 && digits / power == number;
        fits.then_some(digits as u64)
    });
    digits.map_or(1 + size_of::<f64>(), |digits| 2 + integer_bytes(digits))
}

/// The numbers of a document with the paths of their fields, as the text of a row of the series; `None` without
/// numbers.
pub(super) fn row_of(document: &Document) -> Option<String> {
    let mut cells = Vec::new();
    let fields = document.iter();
    fields.for_each(|(name, value)| add_cells(name, value, &mut cells));
    (!cells.is_empty()).then(|| row_text(cells))
}

fn add_cells(path: &str, value: &FieldValue, cells: &mut Vec<(String, String)>) {
    match value {
        FieldValue::Integer(number) => cells.push((path.to_owned(), number.to_string())),
        FieldValue::Float(number) => cells.push((path.to_owned(), float_text(*number))),
        FieldValue::Object(fields) => {
            for (name, value) in fields {
                add_cells(&format!("{path}.{name}"), value, cells);
            }
        }
        _ => {}
    }
}

/// A float as text; a whole number as the integer with its value, because a column has one type for both.
pub(super) fn float_text(number: f64) -> String {
    format!("{number}")
}

/// The cells of a row, by name of the column.
pub(super) fn row_text(mut cells: Vec<(String, String)>) -> String {
    cells.sort();
    let cells = cells
        .iter()
        .map(|(path, number)| format!(" {path}={number}"));
    cells.collect()
}
