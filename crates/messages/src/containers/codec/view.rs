//! Reads encoded messages in place: nothing is allocated, and values are skipped by their lengths.
//!
//! The bytes may be damaged: each step checks the bytes that it reads, but values that are skipped are not checked.

use super::decimal;
use super::reader::{Reader, wrong};
use super::tag::{
    DECIMAL, DECIMAL_BYTES_MAX, DECIMAL_NEGATIVE, FALSE, FLOAT, INTEGER, LIST, NEGATIVE, NULL,
    OBJECT, SHORT_TEXT, SMALL, TEXT, TRUE,
};
use crate::containers::document::{
    DOCUMENT_BYTES_MAX, DOCUMENT_FIELDS_MAX, DOCUMENT_LEVELS_MAX, splits,
};
use tidalite_pager::Result;

/// A message in its encoded form.
#[derive(Clone, Copy, Debug)]
pub struct EncodedDocument<'a> {
    len: usize,
    /// The encoded fields, without the number of fields.
    bytes: &'a [u8],
}

/// A value of an encoded message. Lists and objects are decoded only as far as they are read.
#[derive(Clone, Copy, Debug)]
pub enum EncodedValue<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer, from `i64::MIN` to `u64::MAX`.
    Integer(i128),
    /// A floating-point number. Finite.
    Float(f64),
    /// A text.
    Text(&'a str),
    /// A list.
    List(EncodedList<'a>),
    /// An object.
    Object(EncodedObject<'a>),
}

/// A list of an encoded message.
#[derive(Clone, Copy, Debug)]
pub struct EncodedList<'a> {
    len: usize,
    bytes: &'a [u8],
}

/// An object of an encoded message.
#[derive(Clone, Copy, Debug)]
pub struct EncodedObject<'a> {
    len: usize,
    bytes: &'a [u8],
}

impl<'a> EncodedDocument<'a> {
    /// Opens the bytes of a message.
    ///
    /// # Errors
    /// [`tidalite_pager::Error::Corrupt`] if they do not begin as a message does.
    pub fn new(bytes: &'a [u8]) -> Result<Self> {
        let mut reader = Reader { bytes };
        let len = reader.length().filter(|&len| {
            // A field has at least two bytes.
            len <= DOCUMENT_FIELDS_MAX.min(reader.bytes.len() / 2)
        });
        match len {
            Some(len) if bytes.len() <= DOCUMENT_BYTES_MAX => Ok(Self {
                len,
                bytes: reader.bytes,
            }),
            _ => Err(wrong(bytes, "the number of fields of a message")),
        }
    }

    /// Number of fields.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the message has no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Finds the field whose name has this number, without decoding the others.
    ///
    /// # Errors
    /// [`tidalite_pager::Error::Corrupt`] for bytes that no encoder writes, up to the end of the field.
    ///
    /// # Cost
    /// Skips the fields before it: a few instructions for each, whatever their lengths.
    pub fn get(&self, number: u32) -> Result<Option<EncodedValue<'a>>> {
        let mut reader = Reader { bytes: self.bytes };
        for _ in 0..self.len {
            let at = reader.bytes;
            let found = reader.number().ok_or_else(|| wrong(at, FIELD))?;
            let at = reader.bytes;
            if found == number {
                return value(&mut reader).ok_or_else(|| wrong(at, VALUE)).map(Some);
            }
            reader.skip().ok_or_else(|| wrong(at, VALUE))?;
        }
        Ok(None)
    }

    /// The fields in the order in which they were given: the number of each name and the value. The iterator ends after
    /// an error.
    pub fn fields(&self) -> impl Iterator<Item = Result<(u32, EncodedValue<'a>)>> + use<'a> {
        Items::new(self.len, self.bytes, FIELD, |reader| {
            Some((reader.number()?, value(reader)?))
        })
    }
}

impl<'a> EncodedList<'a> {
    /// Number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the list has no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The values. The iterator ends after an error.
    pub fn values(&self) -> impl Iterator<Item = Result<EncodedValue<'a>>> + use<'a> {
        Items::new(self.len, self.bytes, VALUE, value)
    }
}

impl<'a> EncodedObject<'a> {
    /// Number of fields.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the object has no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The names and values of the fields. The iterator ends after an error.
    pub fn fields(&self) -> impl Iterator<Item = Result<(&'a str, EncodedValue<'a>)>> + use<'a> {
        Items::new(self.len, self.bytes, FIELD, |reader| {
            Some((reader.name()?, value(reader)?))
        })
    }

    /// Finds the field with this name, without decoding the others.
    ///
    /// # Errors
    /// [`tidalite_pager::Error::Corrupt`] for bytes that no encoder writes, up to the end of the field.
    pub fn get(&self, name: &str) -> Result<Option<EncodedValue<'a>>> {
        let mut reader = Reader { bytes: self.bytes };
        for _ in 0..self.len {
            let at = reader.bytes;
            let found = reader.sized().ok_or_else(|| wrong(at, FIELD))?;
            let at = reader.bytes;
            if found == name.as_bytes() {
                return value(&mut reader).ok_or_else(|| wrong(at, VALUE)).map(Some);
            }
            reader.skip().ok_or_else(|| wrong(at, VALUE))?;
        }
        Ok(None)
    }

    /// The value at a dotted path, by the rule of [`crate::Document::find`].
    ///
    /// # Errors
    /// [`tidalite_pager::Error::Corrupt`] for bytes that no encoder writes.
    pub fn find(&self, path: &str) -> Result<Option<EncodedValue<'a>>> {
        self.find_within(path, DOCUMENT_LEVELS_MAX)
    }

    /// Finds a value at most `levels` levels below this one. Damaged bytes may have more levels, which would exhaust
    /// the stack.
    fn find_within(&self, path: &str, levels: usize) -> Result<Option<EncodedValue<'a>>> {
        let Some(levels) = levels.checked_sub(1) else {
            return Err(wrong(self.bytes, "a message within the limit of levels"));
        };
        if let Some(value) = self.get(path)? {
            return Ok(Some(value));
        }
        for (outer, rest) in splits(path) {
            if let Some(EncodedValue::Object(inner)) = self.get(outer)?
                && let Some(value) = inner.find_within(rest, levels)?
            {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }
}

const FIELD: &str = "a field of a message";
const VALUE: &str = "a value of a message";

/// Iterates over encoded items.
struct Items<'a, T> {
    left: usize,
    reader: Reader<'a>,
    what: &'static str,
    read: fn(&mut Reader<'a>) -> Option<T>,
}

impl<'a, T> Items<'a, T> {
    fn new(
        left: usize,
        bytes: &'a [u8],
        what: &'static str,
        read: fn(&mut Reader<'a>) -> Option<T>,
    ) -> Self {
        let reader = Reader { bytes };
        Self {
            left,
            reader,
            what,
            read,
        }
    }
}

impl<T> Iterator for Items<'_, T> {
    type Item = Result<T>;

    #[inline]
    fn next(&mut self) -> Option<Result<T>> {
        let at = self.reader.bytes;
        if self.left == 0 {
            // No bytes must follow the items.
            self.reader.bytes = &[];
            return (!at.is_empty())
                .then(|| Err(wrong(at, "the end of a message, list or object")));
        }
        let Some(item) = (self.read)(&mut self.reader) else {
            self.left = 0;
            self.reader.bytes = &[];
            return Some(Err(wrong(at, self.what)));
        };
        self.left -= 1;
        Some(Ok(item))
    }
}

/// Reads a value from the beginning of the reader's bytes. `None` for bytes that no encoder writes.
#[inline]
pub(super) fn value<'a>(reader: &mut Reader<'a>) -> Option<EncodedValue<'a>> {
    let tag = reader.byte()?;
    Some(match tag {
        NULL => EncodedValue::Null,
        FALSE | TRUE => EncodedValue::Bool(tag == TRUE),
        FLOAT => {
            let (bytes, rest) = reader.bytes.split_first_chunk()?;
            reader.bytes = rest;
            let number = f64::from_le_bytes(*bytes);
            EncodedValue::Float(number.is_finite().then_some(number)?)
        }
        TEXT => EncodedValue::Text(std::str::from_utf8(reader.sized()?).ok()?),
        LIST | OBJECT => return nested(reader, tag),
        SMALL.. => EncodedValue::Integer(i128::from(tag - SMALL)),
        SHORT_TEXT.. => {
            let text = reader.take(usize::from(tag - SHORT_TEXT))?;
            EncodedValue::Text(std::str::from_utf8(text).ok()?)
        }
        DECIMAL.. => {
            let exponent = reader.byte()?;
            let len = usize::from(tag - DECIMAL);
            let digits = reader.integer((len <= DECIMAL_BYTES_MAX).then_some(len)?)?;
            let is_negative = exponent & DECIMAL_NEGATIVE != 0;
            let exponent = exponent & !DECIMAL_NEGATIVE;
            EncodedValue::Float(decimal::join(digits, exponent, is_negative)?)
        }
        NEGATIVE.. => {
            let len = usize::from(tag - NEGATIVE);
            let number = i64::try_from(reader.integer((len > 0).then_some(len)?)?).ok()?;
            EncodedValue::Integer(i128::from(-1 - number))
        }
        INTEGER.. => {
            let number = reader.integer(usize::from(tag - INTEGER))?;
            // Smaller integers are stored in the first byte.
            let number = (number > u64::from(u8::MAX - SMALL)).then_some(number)?;
            EncodedValue::Integer(number.into())
        }
        _ => return None,
    })
}

fn nested<'a>(reader: &mut Reader<'a>, tag: u8) -> Option<EncodedValue<'a>> {
    let mut inner = Reader {
        bytes: reader.sized()?,
    };
    let len = inner.length()?;
    let bytes = inner.bytes;
    // A value needs at least one byte, and a field of an object at least three.
    Some(if tag == LIST {
        let len = (len <= bytes.len()).then_some(len)?;
        EncodedValue::List(EncodedList { len, bytes })
    } else {
        let len = (len <= bytes.len() / 3).then_some(len)?;
        EncodedValue::Object(EncodedObject { len, bytes })
    })
}
