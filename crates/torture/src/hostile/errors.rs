//! Helpers that keep the first error of several steps, and convert I/O errors.

use tidalite::Result;

/// Stores the result `next` in `first` if `first` is no error yet.
pub(super) fn keep(first: &mut Result<()>, next: Result<()>) {
    if first.is_ok() {
        *first = next;
    }
}

/// Converts an I/O error to a database error.
pub(super) fn broken(error: std::io::Error) -> tidalite::Error {
    error.into()
}
