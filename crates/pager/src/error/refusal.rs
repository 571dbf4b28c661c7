//! Reasons of refused calls.

/// The reason of [`Error::Refused`](crate::Error::Refused), by which a program can decide how to react.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Nothing has the requested name, id or place.
    NotFound,
    /// The name or the place of the new item is taken.
    AlreadyExists,
    /// The name, the topic or the filter is invalid.
    InvalidName,
    /// The options, the token, the text or another argument cannot be used.
    InvalidInput,
    /// The stored content is of another type than the call expects, or has other options.
    WrongType,
}
