//! The value of a field of a message.

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
    Object(Vec<(String, FieldValue)>),
}
