//! Values during an evaluation.

use super::source::ValueRef;
use crate::containers::codec::EncodedValue;
use crate::containers::document::is_integer;
use crate::containers::numbers::FieldNumber;
use crate::containers::value::FieldValue;
use std::borrow::Cow;
use std::cmp::Ordering;
use tidalite_pager::Result;
use tidalite_time::Timestamp;

/// A value. Texts are borrowed from the message or the expression where possible.
#[derive(Clone, Debug)]
pub(super) enum Value<'v> {
    Null,
    Bool(bool),
    Integer(i128),
    /// Finite.
    Float(f64),
    Text(Cow<'v, str>),
    /// A list or an object.
    Nested(ValueRef<'v>),
}

impl<'v> Value<'v> {
    pub(super) fn of_field(value: ValueRef<'v>) -> Self {
        match value {
            ValueRef::Null => Self::Null,
            ValueRef::Bool(value) => Self::Bool(value),
            ValueRef::Integer(number) => Self::Integer(number),
            ValueRef::Float(number) => Self::Float(number),
            ValueRef::Text(text) => Self::Text(Cow::Borrowed(text)),
            ValueRef::Nested(FieldValue::List(_) | FieldValue::Object(_))
            | ValueRef::Encoded(EncodedValue::List(_) | EncodedValue::Object(_)) => {
                Self::Nested(value)
            }
            // A source that a caller implements may wrap any value.
            ValueRef::Nested(value) => Self::of_field(value.into()),
            ValueRef::Encoded(value) => Self::of_field(value.into()),
        }
    }

    pub(super) fn of_time(time: Option<Timestamp>) -> Self {
        time.map_or(Self::Null, |time| Self::Integer(time.0.into()))
    }

    pub(super) fn of_number(number: FieldNumber) -> Self {
        match number {
            FieldNumber::Integer(number) => Self::Integer(number),
            FieldNumber::Float(number) => Self::Float(number),
        }
    }

    pub(super) fn number(&self) -> Option<FieldNumber> {
        match self {
            Self::Integer(number) => Some(FieldNumber::Integer(*number)),
            Self::Float(number) => Some(FieldNumber::Float(*number)),
            _ => None,
        }
    }

    /// The kind of the value, as it is named in errors.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a float",
            Self::Text(_) => "a text",
            Self::Nested(
                ValueRef::Nested(FieldValue::List(_)) | ValueRef::Encoded(EncodedValue::List(_)),
            ) => "a list",
            Self::Nested(_) => "an object",
        }
    }

    /// Whether two values that are not null are equal; `None` if both are lists or objects, which are not compared.
    pub(super) fn equals(&self, other: &Self) -> Option<bool> {
        match (self, other) {
            (Self::Nested(_), Self::Nested(_)) => None,
            (Self::Bool(a), Self::Bool(b)) => Some(a == b),
            _ => Some(self.order(other).is_some_and(Ordering::is_eq)),
        }
    }

    /// The order of two numbers or two texts.
    pub(super) fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
            _ => Some(self.number()?.compare(other.number()?)),
        }
    }

    /// The value as a field; `None` for an integer that a field cannot hold.
    pub(super) fn into_field(self) -> Result<Option<FieldValue>> {
        Ok(Some(match self {
            Self::Null => FieldValue::Null,
            Self::Bool(value) => FieldValue::Bool(value),
            Self::Integer(number) if !is_integer(number) => return Ok(None),
            Self::Integer(number) => FieldValue::Integer(number),
            Self::Float(number) => FieldValue::Float(number),
            Self::Text(text) => FieldValue::Text(text.into_owned()),
            Self::Nested(ValueRef::Nested(value)) => value.clone(),
            Self::Nested(ValueRef::Encoded(value)) => value.decode()?,
            // `of_field` creates no other values.
            Self::Nested(_) => FieldValue::Null,
        }))
    }
}
