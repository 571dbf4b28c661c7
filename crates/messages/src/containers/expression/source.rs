//! The messages on which expressions are evaluated.

use crate::containers::codec::{EncodedDocument, EncodedValue};
use crate::containers::document::Document;
use crate::containers::fields::EncodedPath;
use crate::containers::value::FieldValue;
use tidalite_pager::{Error, Refusal, Result};
use tidalite_time::Timestamp;

/// A value of a field, borrowed.
#[derive(Clone, Copy, Debug)]
pub enum ValueRef<'a> {
    /// `null`, or a missing field.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer, from `i64::MIN` to `u64::MAX`.
    Integer(i128),
    /// A floating-point number. Finite.
    Float(f64),
    /// A text.
    Text(&'a str),
    /// A list or an object.
    Nested(&'a FieldValue),
    /// An encoded list or object.
    Encoded(EncodedValue<'a>),
}

impl<'a> From<&'a FieldValue> for ValueRef<'a> {
    fn from(value: &'a FieldValue) -> Self {
        match value {
            FieldValue::Null => Self::Null,
            FieldValue::Bool(value) => Self::Bool(*value),
            FieldValue::Integer(number) => Self::Integer(*number),
            FieldValue::Float(number) => Self::Float(*number),
            FieldValue::Text(text) => Self::Text(text),
            FieldValue::List(_) | FieldValue::Object(_) => Self::Nested(value),
        }
    }
}

impl<'a> From<EncodedValue<'a>> for ValueRef<'a> {
    fn from(value: EncodedValue<'a>) -> Self {
        match value {
            EncodedValue::Null => Self::Null,
            EncodedValue::Bool(value) => Self::Bool(value),
            EncodedValue::Integer(number) => Self::Integer(number),
            EncodedValue::Float(number) => Self::Float(number),
            EncodedValue::Text(text) => Self::Text(text),
            EncodedValue::List(_) | EncodedValue::Object(_) => Self::Encoded(value),
        }
    }
}

/// A message on which an expression is evaluated.
pub trait FieldSource {
    /// The value at the dotted path `path`, by the rule of [`Document::find`]; null if it does not exist. `index` is
    /// the index of the path in [`crate::Expression::fields`], for sources that look the paths up beforehand.
    ///
    /// # Errors
    /// If the message cannot be read. The evaluation ends with this error.
    fn field(&self, index: usize, path: &str) -> Result<ValueRef<'_>>;

    /// Time of the message.
    fn time(&self) -> Option<Timestamp> {
        None
    }

    /// Time at which the message was received.
    fn received(&self) -> Option<Timestamp> {
        None
    }
}

impl FieldSource for Document {
    fn field(&self, _: usize, path: &str) -> Result<ValueRef<'_>> {
        Ok(self.find(path).map_or(ValueRef::Null, ValueRef::from))
    }
}

/// A document with its times.
#[derive(Clone, Copy, Debug)]
pub struct MessageFields<'a> {
    /// The fields.
    pub document: &'a Document,
    /// Time of the message.
    pub time: Option<Timestamp>,
    /// Time at which the message was received.
    pub received: Option<Timestamp>,
}

impl FieldSource for MessageFields<'_> {
    fn field(&self, index: usize, path: &str) -> Result<ValueRef<'_>> {
        self.document.field(index, path)
    }

    fn time(&self) -> Option<Timestamp> {
        self.time
    }

    fn received(&self) -> Option<Timestamp> {
        self.received
    }
}

/// An encoded message with its times. Only the fields that an expression reads are decoded.
#[derive(Clone, Copy, Debug)]
pub struct EncodedFields<'a> {
    /// The message.
    pub document: EncodedDocument<'a>,
    /// The paths of the expression's fields: [`EncodedPath::all`] of [`crate::Expression::fields`].
    pub paths: &'a [EncodedPath],
    /// Time of the message.
    pub time: Option<Timestamp>,
    /// Time at which the message was received.
    pub received: Option<Timestamp>,
}

impl FieldSource for EncodedFields<'_> {
    fn field(&self, index: usize, path: &str) -> Result<ValueRef<'_>> {
        let resolved = self.paths.get(index).ok_or_else(|| {
            Error::refused(
                Refusal::InvalidInput,
                format!("{} paths, without {path:?}", self.paths.len()),
                "the paths of all fields of the expression",
            )
        })?;
        let value = resolved.find(&self.document)?;
        Ok(value.map_or(ValueRef::Null, ValueRef::from))
    }

    fn time(&self) -> Option<Timestamp> {
        self.time
    }

    fn received(&self) -> Option<Timestamp> {
        self.received
    }
}
