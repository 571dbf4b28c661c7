//! Decodes whole documents.

use super::reader::wrong;
use super::view::{EncodedDocument, EncodedValue};
use crate::containers::document::{
    Document, check_level, check_name, count_values, duplicate_name,
};
use crate::containers::value::FieldValue;
use std::sync::Arc;
use tidalite_base::Corrupt;
use tidalite_pager::{Error, Result};

/// Decodes a document. `name` returns the name that has a number.
///
/// # Errors
/// `Corrupt` for bytes that no encoder writes, and for numbers without a name.
pub(crate) fn decode<'n>(
    bytes: &[u8],
    name: &dyn Fn(u32) -> Option<&'n Arc<str>>,
) -> Result<Document> {
    let encoded = EncodedDocument::new(bytes)?;
    let mut fields = Vec::with_capacity(encoded.len());
    let mut values = encoded.len();
    // Names are compared only if two of their numbers share a bit of this mask, and so may be equal.
    let (mut seen, mut may_repeat) = (0u64, false);
    for field in encoded.fields() {
        let (number, value) = field?;
        let Some(name) = name(number) else {
            let found = format!("number {number}");
            return Err(damaged(found, "the number of a field's name"));
        };
        let bit = 1 << (number % u64::BITS);
        may_repeat |= seen & bit != 0;
        seen |= bit;
        fields.push((Arc::clone(name), owned(value, 1, &mut values)?));
    }
    if may_repeat && duplicate_name(&fields).is_some() {
        return Err(wrong(bytes, "fields with unique names"));
    }
    Ok(Document::of_checked(fields))
}

impl EncodedValue<'_> {
    /// Decodes the value.
    ///
    /// # Errors
    /// [`tidalite_pager::Error::Corrupt`] for bytes that no encoder writes.
    pub fn decode(self) -> Result<FieldValue> {
        owned(self, 1, &mut 1)
    }
}

/// Decodes a value at level `level`. Adds the number of values inside it to `values`.
fn owned(value: EncodedValue<'_>, level: usize, values: &mut usize) -> Result<FieldValue> {
    Ok(match value {
        EncodedValue::Null => FieldValue::Null,
        EncodedValue::Bool(value) => FieldValue::Bool(value),
        EncodedValue::Integer(number) => FieldValue::Integer(number),
        EncodedValue::Float(number) => FieldValue::Float(number),
        EncodedValue::Text(text) => FieldValue::Text(text.to_owned()),
        EncodedValue::List(list) => {
            enter(level + 1, list.len(), values)?;
            let items = list.values();
            let items = items.map(|item| owned(item?, level + 1, values));
            FieldValue::List(items.collect::<Result<_>>()?)
        }
        EncodedValue::Object(object) => {
            enter(level + 1, object.len(), values)?;
            let mut fields = Vec::with_capacity(object.len());
            for field in object.fields() {
                let (name, value) = field?;
                check_name(name).map_err(as_damage)?;
                fields.push((name.into(), owned(value, level + 1, values)?));
            }
            if let Some(name) = duplicate_name(&fields) {
                return Err(damaged(
                    format!("two fields {name:?}"),
                    "fields with unique names",
                ));
            }
            FieldValue::Object(fields)
        }
    })
}

/// Checks the limits for a list or object with `len` values before memory is allocated for it.
fn enter(level: usize, len: usize, values: &mut usize) -> Result<()> {
    check_level(level).map_err(as_damage)?;
    count_values(values, len).map_err(as_damage)
}

/// Turns a violated limit into an error about damage: an encoder would not have stored such a message.
fn as_damage(error: Error) -> Error {
    damaged(error.to_string(), "a message within the limits")
}

#[cold]
fn damaged(found: String, expected: &str) -> Error {
    Corrupt::new("message of a container", 0, found, expected).into()
}
