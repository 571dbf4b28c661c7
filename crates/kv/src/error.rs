//! Errors that several files return.

use tidalite_base::Corrupt;
use tidalite_pager::{Error, Refusal};

/// Creates a `Corrupt` error for bytes at an address of the file that violate the format.
#[cold]
pub(crate) fn damaged(
    what: &str,
    at: u64,
    found: impl std::fmt::Display,
    expected: impl std::fmt::Display,
) -> Error {
    Error::Corrupt(Corrupt::new(what, at, found, expected))
}

/// Creates an error for a read that finds a nested table in a table that cannot have nested tables: the file is
/// damaged.
#[cold]
pub(crate) fn corrupt_by_table(leaf_at: u64, _: &[u8]) -> Error {
    damaged("row of a table", leaf_at, "a nested table", "a value")
}

/// Creates an error for a user who reads or puts a value under a key that holds a nested table; the file is not
/// damaged.
#[cold]
pub(crate) fn key_holds_table(_: u64, key: &[u8]) -> Error {
    Error::IsTable { key: key.to_vec() }
}

/// Creates an error for a row that holds another type of content than the caller expects.
#[cold]
pub(crate) fn unexpected(found: &str, expected: &str) -> Error {
    let expected = format!("{expected}: read the existing row as it is, or remove it first");
    Error::refused(Refusal::WrongType, found, expected)
}
