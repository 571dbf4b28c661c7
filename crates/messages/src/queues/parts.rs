//! The parts of a queue: rows and nested tables of one table, its root.
//!
//! ```text
//! key      row
//! 0        options
//! 1        state: counters of the queue
//! 2        nested table: id -> message
//! 3        nested table: name -> group
//! 4        nested table: sets of open ids, by group
//! 5        nested table: marks of open ids, by group
//! 6        nested table: leases, by group
//! 7        nested table: sets of ready ids, by group and priority
//! 8        nested table: sets of leased and delayed ids, by group and time
//! 9        nested table: heads of lanes, by group
//! 10       nested table: sets of waiting ids, by group and lane
//! 11       nested table: sets of dead ids, by group
//! 12       nested table: sets of ids that expire, by time
//! 13       nested table: idempotency key -> time, id
//! 14       nested table: time, id -> idempotency key
//! ```

use tidalite_base::Corrupt;
use tidalite_kv::{TableReader, TableWriter, Tree};
use tidalite_pager::{Error, PageRead, PageWrite, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Options,
    State,
    Messages,
    Groups,
    Open,
    Marks,
    Leases,
    Ready,
    Due,
    Heads,
    Waiting,
    Dead,
    Expiry,
    Seen,
    SeenTimes,
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
            "table of a queue",
            "no such row",
            format!("{part:?}"),
        )),
    }
}

/// Creates the error for bytes of a queue that no writer writes.
#[cold]
pub(crate) fn damaged(
    what: &str,
    found: impl std::fmt::Display,
    expected: impl std::fmt::Display,
) -> Error {
    Corrupt::new(what, 0, found, expected).into()
}

/// The rows of the messages of a queue. A key is the id as 8 bytes, big-endian.
///
/// # Errors
/// A damaged or unreadable page.
pub fn queue_rows<'r, R: PageRead>(root: &Tree, r: &'r R) -> Result<TableReader<'r>> {
    part(root, r, Part::Messages)
}
