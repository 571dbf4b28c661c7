//! Copies encoded values from message to message without decoding them.

use super::reader::{Reader, wrong};
use super::view::{EncodedDocument, EncodedValue, value};
use tidalite_pager::Result;

const VALUE: &str = "a value of a message";

/// Reads a varint from the beginning of `bytes` and removes it there.
pub(crate) fn take_number(bytes: &mut &[u8]) -> Result<u32> {
    let mut reader = Reader { bytes };
    let number = reader.number().ok_or_else(|| wrong(bytes, "a number"))?;
    *bytes = reader.bytes;
    Ok(number)
}

/// Reads an encoded value from the beginning of `bytes` and removes it there. The value is skipped by its length and
/// not checked.
pub(crate) fn take_value<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8]> {
    let mut reader = Reader { bytes };
    reader.skip().ok_or_else(|| wrong(bytes, VALUE))?;
    let (value, rest) = bytes.split_at(bytes.len() - reader.bytes.len());
    *bytes = rest;
    Ok(value)
}

/// Decodes the value that occupies all of these bytes.
pub(crate) fn value_of(bytes: &[u8]) -> Result<EncodedValue<'_>> {
    let mut reader = Reader { bytes };
    let found = value(&mut reader).filter(|_| reader.bytes.is_empty());
    found.ok_or_else(|| wrong(bytes, VALUE))
}

/// The fields of a document: the number of each name and the encoded value. The values are not checked.
pub(crate) fn raw_fields(document: &[u8]) -> Result<Vec<(u32, &[u8])>> {
    let len = EncodedDocument::new(document)?.len();
    let mut rest = document;
    take_number(&mut rest)?;
    let mut fields = Vec::with_capacity(len);
    for _ in 0..len {
        fields.push((take_number(&mut rest)?, take_value(&mut rest)?));
    }
    match rest {
        [] => Ok(fields),
        rest => Err(wrong(rest, "the end of a message")),
    }
}
