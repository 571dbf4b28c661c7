//! The parts of a table of containers: rows and nested tables of one table, its root.
//!
//! ```text
//! key      row
//! 0        options of the table (`options.rs`)
//! 1        state: totals and the next numbers (`state.rs`)
//! 2        nested table: name of a container -> record (`record.rs`)
//! 3        nested table: number of a container -> name, also of dropped containers
//! 4        nested table: container, time, tie -> message (`message.rs`)
//! 5        nested table: name of a field -> number
//! 6        nested table: number of a field -> name
//! 7        nested table: number of a container -> latest value of each field (`latest.rs`)
//! 8        nested table: container, idempotency key -> time at which it was seen (`seen.rs`)
//! 9        nested table: time, container, idempotency key -> nothing
//! 10       nested table: times at which `maintain` has work (`due.rs`)
//! 11       nested table: name, number of a dropped container -> record (`record.rs`)
//! 12       nested table: container, deletion -> deletion (`deletion.rs`)
//! 13       nested table: container, deletion, time, tie -> deleted message
//! 14       nested table: number of a container -> rules of thinning (`thinning.rs`)
//! ```

use tidalite_base::Corrupt;
use tidalite_kv::{TableReader, TableWriter, Tree};
use tidalite_pager::{Error, PageRead, PageWrite, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Options,
    State,
    Containers,
    Numbers,
    Messages,
    Fields,
    FieldNames,
    Latest,
    Seen,
    SeenTimes,
    Due,
    Dropped,
    Deletions,
    Trash,
    Thinning,
}

impl Part {
    pub(crate) fn key(self) -> [u8; 1] {
        [self as u8]
    }
}

/// Opens a part for reading; an empty table if the part does not exist yet.
pub(crate) fn part<'r, R: PageRead>(root: &Tree, r: &'r R, part: Part) -> Result<TableReader<'r>> {
    tidalite_kv::part(root, r, &part.key())
}

/// Changes a part, which is created if it does not exist.
pub(crate) fn change<W: PageWrite, T>(
    root: &mut Tree,
    w: &mut W,
    part: Part,
    change: &mut dyn FnMut(&mut W, &mut TableWriter) -> Result<T>,
) -> Result<T> {
    tidalite_kv::change_part(root, w, &part.key(), change)
}

/// Reads a row of the root; an error if it is missing.
pub(crate) fn row<R: PageRead>(root: &Tree, r: &R, part: Part) -> Result<Vec<u8>> {
    match root.get(r, &part.key())? {
        Some(value) => value.to_vec(),
        None => Err(damaged(
            "table of containers",
            "no such row",
            format!("{part:?}"),
        )),
    }
}

/// Number of bytes of a damaged row that an error shows.
const SHOWN_BYTES_MAX: usize = 64;

/// The first bytes of a damaged row, for an error.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let start = &bytes[..bytes.len().min(SHOWN_BYTES_MAX)];
    format!("{} bytes: {}", bytes.len(), start.escape_ascii())
}

/// Creates the error for bytes of a table of containers that no writer writes.
#[cold]
pub(crate) fn damaged(
    what: &str,
    found: impl std::fmt::Display,
    expected: impl std::fmt::Display,
) -> Error {
    Corrupt::new(what, 0, found, expected).into()
}

/// Checks a number against its limit.
pub(crate) fn within(what: &'static str, found: u64, limit: u64) -> Result<()> {
    match found <= limit {
        true => Ok(()),
        false => Err(Error::Limit { what, found, limit }),
    }
}

/// The rows of the messages of containers. A key consists of the number of the container, the time and the tie.
///
/// # Errors
/// A damaged or unreadable page.
pub fn container_rows<'r, R: PageRead>(root: &Tree, r: &'r R) -> Result<TableReader<'r>> {
    part(root, r, Part::Messages)
}
