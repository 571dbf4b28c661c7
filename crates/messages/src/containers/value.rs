//! The value of a field of a message.

use std::sync::Arc;

/// The value of a field, as in JSON. Integers are exact: they are never turned into floating-point numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldValue {
    /// JSON `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number without fraction and exponent, from `i64::MIN` to `u64::MAX`.
    Integer(i128),
    /// Any other number. Finite.
    Float(f64),
    /// A text.
    Text(String),
    /// An array.
    List(Vec<FieldValue>),
    /// An object: fields with unique names, in the order in which they were given.
    Object(Vec<(Arc<str>, FieldValue)>),
}

impl FieldValue {
    /// The text, if the value is one.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The integer, if the value is one.
    #[must_use]
    pub fn as_integer(&self) -> Option<i128> {
        match self {
            Self::Integer(number) => Some(*number),
            _ => None,
        }
    }
}

impl From<&str> for FieldValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for FieldValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for FieldValue {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

/// A float that is not finite, which JSON does not have, becomes null.
impl From<f64> for FieldValue {
    fn from(number: f64) -> Self {
        match number.is_finite() {
            true => Self::Float(number),
            false => Self::Null,
        }
    }
}

macro_rules! from_integers {
    ($($integer:ty),*) => {$(
        impl From<$integer> for FieldValue {
            fn from(number: $integer) -> Self {
                Self::Integer(number.into())
            }
        }
    )*};
}
from_integers! { i8, u8, i16, u16, i32, u32, i64, u64 }
