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
mod raw;
mod reader;
mod tag;
mod view;

pub(crate) use decode::decode;
pub use encode::encode;
pub(crate) use encode::{put_value, put_varint};
pub(crate) use raw::{raw_fields, take_number, take_value, value_of};
pub use view::{EncodedDocument, EncodedList, EncodedObject, EncodedValue};
