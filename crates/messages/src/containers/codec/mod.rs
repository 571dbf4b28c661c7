//! Messages as bytes.
//!
//! ```text
//! message   varint number of fields, then for each field: varint number of its name, value
//!
//! value     0x00            null
//!           0x01, 0x02      false, true
//!           0x03            float: f64
//!           0x04            text: varint length, UTF-8
//!           0x05            list: varint length in bytes of the rest, varint number of values, values
//!           0x06            object: varint length in bytes of the rest, varint number of fields,
//!                           for each: varint length of the name, name, value
//!           0x10 + n        integer i in n bytes, n in 1..=8
//!           0x20 + n        integer -1 - i in n bytes, n in 1..=8
//!           0x30 + n        float m / 10^e: u8 (sign in bit 7, e below), m in n bytes, n in 0..=6
//!           0x40 + n        text of n bytes, n in 0..=63
//!           0x80 + i        integer i in 0..=127
//! ```
//!
//! Numbers are little-endian; a varint has 7 bits a byte, the lowest first. The names of a message's own fields are
//! numbers of a dictionary that the caller keeps; names inside objects are stored as text. The first byte of a value tells
//! its length, or where its length stands, so that a reader skips a value without reading it.
//!
//! Each value has one encoding: integers have as few bytes as possible, and a float is a decimal if that is shorter and
//! decoding gives exactly the same float.

mod decimal;
mod decode;
mod encode;
mod view;

pub use decode::decode;
pub use encode::encode;
pub(crate) use encode::put_varint;
pub use view::{EncodedDocument, EncodedList, EncodedObject, EncodedValue};
pub(crate) use view::{take_number, take_value};

const NULL: u8 = 0x00;
const FALSE: u8 = 0x01;
const TRUE: u8 = 0x02;
const FLOAT: u8 = 0x03;
const TEXT: u8 = 0x04;
const LIST: u8 = 0x05;
const OBJECT: u8 = 0x06;
const INTEGER: u8 = 0x10;
const NEGATIVE: u8 = 0x20;
const DECIMAL: u8 = 0x30;
const SHORT_TEXT: u8 = 0x40;
const SMALL: u8 = 0x80;

/// Maximum length in bytes of a text whose length is in its first byte.
const SHORT_TEXT_BYTES_MAX: usize = (SMALL - SHORT_TEXT - 1) as usize;
/// Maximum number of bytes of the digits of a decimal: one more would not be shorter than the float.
const DECIMAL_BYTES_MAX: usize = 6;
/// The bit of a decimal's exponent byte that is set for negative numbers.
const DECIMAL_NEGATIVE: u8 = 0x80;
