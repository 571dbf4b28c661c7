//! Errors that several files return.

use tidalite_base::Corrupt;
use tidalite_pager::Error;

/// Bytes at an address of the file that are not as the format says.
#[cold]
pub(crate) fn damaged(
    what: &str,
    at: u64,
    found: impl std::fmt::Display,
    expected: impl std::fmt::Display,
) -> Error {
    Error::Corrupt(Corrupt::new(what, at, found, expected))
}

/// A value is asked for where a nested table is, in a table that has none.
#[cold]
pub(crate) fn is_a_table(leaf_at: u64, _: &[u8]) -> Error {
    damaged("row of a table", leaf_at, "a nested table", "a value")
}

/// A user asked for a value where a nested table is, or was to put one there: nothing is damaged.
#[cold]
pub(crate) fn holds_a_table(_: u64, key: &[u8]) -> Error {
    Error::IsTable { key: key.to_vec() }
}

/// What a row holds where something else was looked for.
#[cold]
pub(crate) fn unexpected(found: &str, expected: &str) -> Error {
    Error::Unsupported {
        found: found.into(),
        expected: format!("{expected}: ask for what is there, or remove it first"),
    }
}
