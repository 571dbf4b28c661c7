//! Uses a file in every way that a user would. An error is an answer; a panic is not.

use super::batch_reads;
use super::errors::keep;
use super::files::Files;
use super::maintenance::{around, compacted};
use super::read::read;
use super::write::write;
use tidalite::Result;

/// How a file went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Went {
    /// It was not opened.
    Refused,
    /// Opened; reading it met an error.
    Unreadable,
    /// All of it was read, but a write was refused.
    Unwritable,
    /// All was done.
    Used,
}

/// Opens, checks, reads and writes it, and does so again; and once more from the beginning, to make it compact.
#[must_use]
pub fn exercise(files: &Files) -> Went {
    exercise_telling(files).0
}

/// As [`exercise`], with the first error.
///
/// # Errors
/// Beside how it went.
pub fn exercise_telling(files: &Files) -> (Went, Result<()>) {
    let stored = files.stored();
    let db = match stored.open() {
        Ok(db) => db,
        Err(error) => return (Went::Refused, Err(error)),
    };
    let clean = db.check().is_ok_and(|report| report.is_clean());
    let mut first = around(&db, files, &stored);
    keep(&mut first, batch_reads::all(&db));
    let _ = db.stat().map(|stat| (stat.rows(), stat.bytes_per_row()));
    let read = read(&db);
    let write = write(&db);
    let _ = db.check();
    drop(db);
    if let Ok(db) = stored.open() {
        let _ = db.check();
        let _ = super::read::read(&db);
    }
    let compacted = compacted(&files.stored());
    let went = match (&read, &write) {
        (Err(_), _) => Went::Unreadable,
        (_, Err(_)) => Went::Unwritable,
        _ if clean => Went::Used,
        _ => Went::Unreadable,
    };
    for result in [read, write, compacted] {
        keep(&mut first, result);
    }
    (went, first)
}
