//! The encoded form of messages.
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
//! Numbers are little-endian; a varint has 7 bits per byte, the lowest bits first. The name of a message's field is
//! stored as its number in a dictionary, which the caller keeps; names inside objects are stored as text. The first
//! byte of a value gives its length or says where the length is stored, so a reader skips a value without reading it.
//!
//! Each value has exactly one encoding: integers use as few bytes as possible, and a float is stored as a decimal if
//! that is shorter and decodes to exactly the same float.

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
