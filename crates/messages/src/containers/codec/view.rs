//! Encoded messages, read where they are: nothing is allocated, and values are skipped by their lengths.
//!
//! The bytes may be damaged: each step checks what it reads, and the values that are skipped are not checked.

use super::{
    DECIMAL, DECIMAL_BYTES_MAX, DECIMAL_NEGATIVE, FALSE, FLOAT, INTEGER, LIST, NEGATIVE, NULL,
    OBJECT, SHORT_TEXT, SMALL, TEXT, TRUE, decimal,
};
use crate::containers::document::{DOCUMENT_BYTES_MAX, DOCUMENT_FIELDS_MAX, splits};
use tidalite_base::Corrupt;
use tidalite_pager::{Error, Result};

/// A message in its encoded form.
#[derive(Clone, Copy, Debug)]
pub struct EncodedDocument<'a> {
    len: usize,
    /// The fields, without their number.
    bytes: &'a [u8],
}

/// A value of an encoded message. Lists and objects are decoded as far as they are read.
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
    /// [`Error::Corrupt`] if they do not begin as a message does.
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
    /// [`Error::Corrupt`] for bytes that no encoder writes, up to the end of the field.
    ///
    /// # Cost
    /// Skips the fields before it: a few instructions each, whatever their lengths.
    pub fn get(&self, number: u32) -> Result<Option<EncodedValue<'a>>> {
        let mut reader = Reader { bytes: self.bytes };
        for _ in 0..self.len {
            let at = reader.bytes;
            let found = reader.number().ok_or_else(|| wrong(at, FIELD))?;
            let at = reader.bytes;
            if found == number {
                return reader.value().ok_or_else(|| wrong(at, VALUE)).map(Some);
            }
            reader.skip().ok_or_else(|| wrong(at, VALUE))?;
        }
        Ok(None)
    }

    /// The numbers of the names and the values of the fields, in the order in which they were given. Ends after an
    /// error.
    pub fn fields(&self) -> impl Iterator<Item = Result<(u32, EncodedValue<'a>)>> + use<'a> {
        Items::new(self.len, self.bytes, FIELD, |reader| {
            Some((reader.number()?, reader.value()?))
        })
    }

    /// The numbers of the names and the encoded values of the fields. The values are skipped by their lengths and not
    /// checked. Ends after an error.
    pub(crate) fn raw_fields(&self) -> impl Iterator<Item = Result<(u32, &'a [u8])>> + use<'a> {
        Items::new(self.len, self.bytes, FIELD, |reader| {
            Some((reader.number()?, reader.raw_value()?))
        })
    }
}

impl<'a> EncodedValue<'a> {
    /// The value that is encoded in all of these bytes.
    pub(crate) fn of_raw(bytes: &'a [u8]) -> Result<Self> {
        let mut reader = Reader { bytes };
        let value = reader.value().filter(|_| reader.bytes.is_empty());
        value.ok_or_else(|| wrong(bytes, VALUE))
    }
}

/// Reads a number, as those of names, off the front of `bytes`.
pub(crate) fn take_number(bytes: &mut &[u8]) -> Result<u32> {
    let mut reader = Reader { bytes };
    let number = reader.number().ok_or_else(|| wrong(bytes, "a number"))?;
    *bytes = reader.bytes;
    Ok(number)
}

/// Reads an encoded value off the front of `bytes`. The value is skipped by its length and not checked.
pub(crate) fn take_value<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8]> {
    let mut reader = Reader { bytes };
    let value = reader.raw_value().ok_or_else(|| wrong(bytes, VALUE))?;
    *bytes = reader.bytes;
    Ok(value)
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

    /// The values. Ends after an error.
    pub fn values(&self) -> impl Iterator<Item = Result<EncodedValue<'a>>> + use<'a> {
        Items::new(self.len, self.bytes, VALUE, Reader::value)
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

    /// The names and values of the fields. Ends after an error.
    pub fn fields(&self) -> impl Iterator<Item = Result<(&'a str, EncodedValue<'a>)>> + use<'a> {
        Items::new(self.len, self.bytes, FIELD, |reader| {
            Some((reader.name()?, reader.value()?))
        })
    }

    /// Finds the field with this name, without decoding the others.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for bytes that no encoder writes, up to the end of the field.
    pub fn get(&self, name: &str) -> Result<Option<EncodedValue<'a>>> {
        let mut reader = Reader { bytes: self.bytes };
        for _ in 0..self.len {
            let at = reader.bytes;
            let found = reader.sized().ok_or_else(|| wrong(at, FIELD))?;
            let at = reader.bytes;
            if found == name.as_bytes() {
                return reader.value().ok_or_else(|| wrong(at, VALUE)).map(Some);
            }
            reader.skip().ok_or_else(|| wrong(at, VALUE))?;
        }
        Ok(None)
    }

    /// The value at a dotted path, by the rule of [`crate::Document::find`].
    ///
    /// # Errors
    /// [`Error::Corrupt`] for bytes that no encoder writes.
    pub fn find(&self, path: &str) -> Result<Option<EncodedValue<'a>>> {
        if let Some(value) = self.get(path)? {
            return Ok(Some(value));
        }
        for (outer, rest) in splits(path) {
            if let Some(EncodedValue::Object(inner)) = self.get(outer)?
                && let Some(value) = inner.find(rest)?
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
            // All bytes belong to items.
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

/// Reads values off the front of bytes. `None` for bytes that no encoder writes.
#[derive(Clone, Copy)]
struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    #[inline]
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(len)?;
        self.bytes = rest;
        Some(taken)
    }

    #[inline]
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*byte)
    }

    /// Reads a varint of at most five bytes: numbers of names and lengths need no more.
    #[inline]
    fn number(&mut self) -> Option<u32> {
        let first = self.byte()?;
        if first < 0x80 {
            return Some(first.into());
        }
        let mut number = u64::from(first & 0x7f);
        for shift in [7, 14, 21, 28] {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                // A last byte of 0 would be left out.
                return u32::try_from(number).ok().filter(|_| byte != 0);
            }
        }
        None
    }

    #[inline]
    fn length(&mut self) -> Option<usize> {
        self.number().map(|len| len as usize)
    }

    #[inline]
    fn sized(&mut self) -> Option<&'a [u8]> {
        let len = self.length()?;
        self.take(len)
    }

    fn name(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.sized()?).ok()
    }

    /// The bytes of a value, which are not checked.
    #[inline]
    fn raw_value(&mut self) -> Option<&'a [u8]> {
        let start = self.bytes;
        self.skip()?;
        start.get(..start.len() - self.bytes.len())
    }

    /// Moves behind a value.
    #[inline]
    fn skip(&mut self) -> Option<()> {
        let tag = self.byte()?;
        let len = match tag {
            NULL | FALSE | TRUE | SMALL.. => 0,
            FLOAT => 8,
            TEXT | LIST | OBJECT => self.length()?,
            SHORT_TEXT.. => usize::from(tag - SHORT_TEXT),
            DECIMAL.. => usize::from(tag - DECIMAL) + 1,
            NEGATIVE.. => usize::from(tag - NEGATIVE),
            INTEGER.. => usize::from(tag - INTEGER),
            _ => return None,
        };
        self.take(len).map(|_| ())
    }

    #[inline]
    fn value(&mut self) -> Option<EncodedValue<'a>> {
        let tag = self.byte()?;
        Some(match tag {
            NULL => EncodedValue::Null,
            FALSE | TRUE => EncodedValue::Bool(tag == TRUE),
            FLOAT => {
                let (bytes, rest) = self.bytes.split_first_chunk()?;
                self.bytes = rest;
                let number = f64::from_le_bytes(*bytes);
                EncodedValue::Float(number.is_finite().then_some(number)?)
            }
            TEXT => EncodedValue::Text(std::str::from_utf8(self.sized()?).ok()?),
            LIST | OBJECT => return self.nested(tag),
            SMALL.. => EncodedValue::Integer(i128::from(tag - SMALL)),
            SHORT_TEXT.. => {
                let text = self.take(usize::from(tag - SHORT_TEXT))?;
                EncodedValue::Text(std::str::from_utf8(text).ok()?)
            }
            DECIMAL.. => {
                let exponent = self.byte()?;
                let len = usize::from(tag - DECIMAL);
                let digits = self.integer((len <= DECIMAL_BYTES_MAX).then_some(len)?)?;
                let is_negative = exponent & DECIMAL_NEGATIVE != 0;
                let exponent = exponent & !DECIMAL_NEGATIVE;
                EncodedValue::Float(decimal::join(digits, exponent, is_negative)?)
            }
            NEGATIVE.. => {
                let number = i64::try_from(self.integer(usize::from(tag - NEGATIVE))?).ok()?;
                EncodedValue::Integer(i128::from(-1 - number))
            }
            INTEGER.. => EncodedValue::Integer(self.integer(usize::from(tag - INTEGER))?.into()),
            _ => return None,
        })
    }

    /// Reads an integer of `len` bytes, without zeros at its end but for a single one.
    #[inline]
    fn integer(&mut self, len: usize) -> Option<u64> {
        if len > 8 {
            return None;
        }
        let taken = self.take(len)?;
        if len > 1 && taken[len - 1] == 0 {
            return None;
        }
        let mut number = [0; 8];
        number[..len].copy_from_slice(taken);
        Some(u64::from_le_bytes(number))
    }

    fn nested(&mut self, tag: u8) -> Option<EncodedValue<'a>> {
        let mut inner = Reader {
            bytes: self.sized()?,
        };
        let len = inner.length()?;
        let bytes = inner.bytes;
        // A value has at least one byte, a field of an object three.
        Some(if tag == LIST {
            let len = (len <= bytes.len()).then_some(len)?;
            EncodedValue::List(EncodedList { len, bytes })
        } else {
            let len = (len <= bytes.len() / 3).then_some(len)?;
            EncodedValue::Object(EncodedObject { len, bytes })
        })
    }
}

/// Creates the error for bytes that no encoder writes.
#[cold]
pub(super) fn wrong(bytes: &[u8], expected: &str) -> Error {
    let found = match &bytes[..bytes.len().min(16)] {
        [] => "the end of the bytes".to_owned(),
        bytes => format!("b\"{}\"", bytes.escape_ascii()),
    };
    Corrupt::new("message of a container", 0, found, expected).into()
}
