//! Encodes documents.

use super::decimal;
use super::tag::{
    DECIMAL, DECIMAL_NEGATIVE, FALSE, FLOAT, INTEGER, LIST, NEGATIVE, NULL, OBJECT, SHORT_TEXT,
    SHORT_TEXT_BYTES_MAX, SMALL, TEXT, TRUE,
};
use crate::containers::document::{DOCUMENT_BYTES_MAX, Document, within};
use crate::containers::value::FieldValue;
use tidalite_pager::Result;

/// Appends the bytes of a document to `bytes`. `number` returns the number of a field's name, and creates it if needed;
/// it must return different numbers for different names.
///
/// # Errors
/// The errors of [`Document::check`]; `Limit` for more than [`crate::DOCUMENT_BYTES_MAX`] bytes; errors of `number`.
/// `bytes` then has its earlier length.
pub fn encode(
    document: &Document,
    number: &mut dyn FnMut(&str) -> Result<u32>,
    bytes: &mut Vec<u8>,
) -> Result<()> {
    document.check()?;
    let start = bytes.len();
    put_varint(document.len() as u64, bytes);
    for (name, value) in document.iter() {
        match number(name) {
            Ok(number) => put_varint(number.into(), bytes),
            Err(error) => {
                bytes.truncate(start);
                return Err(error);
            }
        }
        put_value(value, bytes);
    }
    let len = bytes.len() - start;
    within("bytes of an encoded message", len, DOCUMENT_BYTES_MAX)
        .inspect_err(|_| bytes.truncate(start))
}

/// Appends a value, which must be within the limits of a document.
pub(crate) fn put_value(value: &FieldValue, bytes: &mut Vec<u8>) {
    match value {
        FieldValue::Null => bytes.push(NULL),
        FieldValue::Bool(value) => bytes.push(if *value { TRUE } else { FALSE }),
        FieldValue::Integer(number) => put_integer(*number, bytes),
        FieldValue::Float(number) => put_float(*number, bytes),
        FieldValue::Text(text) => {
            if text.len() <= SHORT_TEXT_BYTES_MAX {
                bytes.push(SHORT_TEXT | text.len() as u8);
            } else {
                bytes.push(TEXT);
                put_varint(text.len() as u64, bytes);
            }
            bytes.extend_from_slice(text.as_bytes());
        }
        FieldValue::List(items) => put_nested(LIST, items.len(), bytes, |bytes| {
            for item in items {
                put_value(item, bytes);
            }
        }),
        FieldValue::Object(fields) => put_nested(OBJECT, fields.len(), bytes, |bytes| {
            for (name, value) in fields {
                put_varint(name.len() as u64, bytes);
                bytes.extend_from_slice(name.as_bytes());
                put_value(value, bytes);
            }
        }),
    }
}

/// Writes a list or an object. Its length is not known until its content is written; the content is moved if the length
/// needs more than one byte.
fn put_nested(tag: u8, count: usize, bytes: &mut Vec<u8>, content: impl FnOnce(&mut Vec<u8>)) {
    bytes.push(tag);
    let at = bytes.len();
    bytes.push(0);
    put_varint(count as u64, bytes);
    content(bytes);
    let len = bytes.len() - at - 1;
    if len < 0x80 {
        bytes[at] = len as u8;
        return;
    }
    let (mut varint, mut used) = ([0; 10], 0);
    each_byte(len as u64, |byte| {
        varint[used] = byte;
        used += 1;
    });
    bytes.splice(at..=at, varint[..used].iter().copied());
}

fn put_integer(number: i128, bytes: &mut Vec<u8>) {
    if (0..i128::from(0xff - SMALL) + 1).contains(&number) {
        bytes.push(SMALL | number as u8);
    } else if number >= 0 {
        put_sized(INTEGER, number as u64, bytes);
    } else {
        put_sized(NEGATIVE, (-1 - number) as u64, bytes);
    }
}

/// Writes `tag` plus the number of bytes that follow, and then a number in as few bytes as possible, at least one.
fn put_sized(tag: u8, number: u64, bytes: &mut Vec<u8>) {
    let len = byte_len(number).max(1);
    bytes.push(tag + len as u8);
    bytes.extend_from_slice(&number.to_le_bytes()[..len]);
}

fn put_float(number: f64, bytes: &mut Vec<u8>) {
    let Some((digits, exponent)) = decimal::split(number) else {
        bytes.push(FLOAT);
        bytes.extend_from_slice(&number.to_le_bytes());
        return;
    };
    let len = byte_len(digits);
    let sign = if number.is_sign_negative() {
        DECIMAL_NEGATIVE
    } else {
        0
    };
    bytes.extend_from_slice(&[DECIMAL + len as u8, sign | exponent]);
    bytes.extend_from_slice(&digits.to_le_bytes()[..len]);
}

/// Number of bytes up to the last one that is not 0.
fn byte_len(number: u64) -> usize {
    (u64::BITS - number.leading_zeros()).div_ceil(8) as usize
}

/// Appends a number as a varint.
pub(crate) fn put_varint(number: u64, bytes: &mut Vec<u8>) {
    each_byte(number, |byte| bytes.push(byte));
}

fn each_byte(mut number: u64, mut put: impl FnMut(u8)) {
    while number >= 0x80 {
        put(number as u8 | 0x80);
        number >>= 7;
    }
    put(number as u8);
}
