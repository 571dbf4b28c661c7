//! Keeps the first error of several steps; converts I/O errors.

use tidalite::Result;

/// Stores `next` if it is the first error.
pub(super) fn keep(first: &mut Result<()>, next: Result<()>) {
    if first.is_ok() {
        *first = next;
    }
}

/// Converts an I/O error to a database error.
pub(super) fn broken(error: std::io::Error) -> tidalite::Error {
    error.into()
}
