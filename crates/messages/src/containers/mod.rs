//! Containers: messages of named sources, as documents with fields, ordered by time.
//!
//! ```text
//! value        the value of a field
//! document     a message: fields with unique names
//! numbers      the numbers in a message
//! codec        messages as bytes
//! json         messages as JSON
//! fields       the fields that a query returns
//! expression   filters, and values computed from messages
//! ```

pub(crate) mod codec;
pub(crate) mod document;
pub(crate) mod expression;
pub(crate) mod fields;
pub(crate) mod json;
pub(crate) mod numbers;
pub(crate) mod value;

#[cfg(test)]
mod tests;
