//! The parts of a table of topics: rows and nested tables of one table, its root.
//!
//! ```text
//! key      row
//! 0        options (`options.rs`)
//! 1        state: totals and the next numbers (`state.rs`)
//! 2        nested table: key of a topic -> its message (`key.rs`, `record.rs`)
//! 3        nested table: id of a topic, u64 big-endian -> key of the topic
//! 4        nested table: sets of topic ids (`terms.rs`)
//! 5        nested table: times of expiry (`expiry.rs`)
//! 6        nested table: the newest changes (`feed.rs`)
//! ```

use tidalite_base::Corrupt;
use tidalite_kv::{TableReader, TableWriter, Tree};
use tidalite_pager::{Error, PageRead, PageWrite, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Options,
    State,
    Messages,
    Ids,
    Terms,
    Expiry,
    Feed,
}

impl Part {
    pub(super) fn key(self) -> [u8; 1] {
        [self as u8]
    }
}

/// Opens a part for reading; an empty table if the part does not exist yet.
pub(super) fn part<'r, R: PageRead>(root: &Tree, r: &'r R, part: Part) -> Result<TableReader<'r>> {
    tidalite_kv::part(root, r, &part.key())
}

/// Reads a row; an error if it is missing.
pub(super) fn row<R: PageRead>(root: &Tree, r: &R, part: Part) -> Result<Vec<u8>> {
    match root.get(r, &part.key())? {
        Some(value) => value.to_vec(),
        None => Err(missing(part)),
    }
}

#[cold]
fn missing(part: Part) -> Error {
    Corrupt::new("table of topics", 0, "no such row", format!("{part:?}")).into()
}

/// Changes a part, which is created if it does not exist.
pub(super) fn change<W: PageWrite, T>(
    root: &mut Tree,
    w: &mut W,
    part: Part,
    change: &mut dyn FnMut(&mut W, &mut TableWriter) -> Result<T>,
) -> Result<T> {
    tidalite_kv::change_part(root, w, &part.key(), change)
}

/// The id in the key of a row of the part `Ids`.
pub(super) fn id_of(row: &[u8]) -> Result<u64> {
    match row.try_into() {
        Ok(bytes) => Ok(u64::from_be_bytes(bytes)),
        Err(_) => {
            let found = row.escape_ascii().to_string();
            Err(Corrupt::new("id of a topic", 0, found, "8 bytes").into())
        }
    }
}

/// The rows of the messages of topics, with the keys of the topics.
///
/// # Errors
/// A damaged or unreadable page.
pub fn topic_rows<'r, R: PageRead>(root: &Tree, r: &'r R) -> Result<TableReader<'r>> {
    part(root, r, Part::Messages)
}
