//! The first error of several steps, and errors of the system.

use tidalite::Result;

/// Notes the first error.
pub(super) fn keep(first: &mut Result<()>, next: Result<()>) {
    if first.is_ok() {
        *first = next;
    }
}

/// An error of the system as one of the database.
pub(super) fn broken(error: std::io::Error) -> tidalite::Error {
    tidalite::Error::TransactionBroken {
        first: error.to_string(),
    }
}
