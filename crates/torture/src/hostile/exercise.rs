//! Uses a file in every way in which a user could. An error is acceptable; a panic is not.

use super::batch_reads;
use super::errors::keep;
use super::files::Files;
use super::maintenance::{around, compacted};
use super::read::read;
use super::write::write;
use tidalite::Result;

/// How far the use of a file came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Went {
    /// The file could not be opened.
    Refused,
    /// The file was opened, but reading returned an error.
    Unreadable,
    /// Everything was read, but a write returned an error.
    Unwritable,
    /// All operations succeeded.
    Used,
}

/// Opens, checks, reads and writes the file, then reopens and reads it again; also compacts a copy of the original
/// file.
#[must_use]
pub fn exercise(files: &Files) -> Went {
    exercise_telling(files).0
}

/// Like [`exercise`], but also returns the first error.
///
/// # Errors
/// The first error is returned beside the outcome.
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
