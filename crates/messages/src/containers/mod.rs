//! Containers: messages of named sources, as documents with fields, ordered by time.
//!
//! ```text
//! value        the value of a field
//! document     a message: fields with unique names
//! ```

pub(crate) mod document;
pub(crate) mod value;
