//! The parts of a bucket: rows and nested tables of one table, its root.
//!
//! ```text
//! key   row
//! 0     options
//! 1     state: counters
//! 2     objects: name -> manifest (`manifest.rs`)
//! 3     chunks: content id, chunk index -> bytes of the chunk
//! 4     hashes: content id, chunk index -> hash and length of the chunk (`chunks.rs`)
//! 5     expiry: expiry, name -> nothing; objects that expire and are not protected
//! 6     ages: time of the last change of the contents, name -> nothing; objects that are not protected
//! 7     shares: content id -> number of objects with these contents beyond the first
//! 8     orphans: content id -> nothing; contents whose chunks have yet to be freed
//! 9     uploads: content id -> upload (`upload.rs`)
//! 10    upload expiry: expiry, content id -> nothing
//! 11    tails: content id, offset -> bytes after the last whole chunk of an upload
//! 12    links: link id -> link (`links.rs`)
//! 13    link expiry: expiry, link id -> nothing
//! ```
//!
//! All numbers in keys are big-endian. The sign bit of a time is inverted, so that keys are in order of time.

use std::borrow::Cow;
use tidalite_base::Corrupt;
use tidalite_kv::{TableReader, Tree, Value};
use tidalite_pager::{Error, PageRead, Result};

/// Maximum length in bytes of a row that is not a chunk. The longest such row is the manifest of an object with much
/// metadata.
const ROW_BYTES_MAX: u64 = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Options,
    State,
    Objects,
    Chunks,
    Hashes,
    Expiry,
    Ages,
    Shares,
    Orphans,
    Uploads,
    UploadExpiry,
    Tails,
    Links,
    LinkExpiry,
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

/// Reads a row of the root; an error if it is missing.
pub(crate) fn row<R: PageRead>(root: &Tree, r: &R, part: Part) -> Result<Vec<u8>> {
    match root.get(r, &part.key())? {
        Some(value) => Ok(row_bytes(&value)?.into_owned()),
        None => Err(damaged(
            "table of a bucket",
            "no such row",
            format!("{part:?}"),
        )),
    }
}

/// The bytes of a row that is not a chunk; an error if it is longer than such a row can be.
pub(crate) fn row_bytes<'v>(value: &'v Value<'_>) -> Result<Cow<'v, [u8]>> {
    if value.len() > ROW_BYTES_MAX {
        return Err(damaged(
            "row of a bucket",
            format!("{} bytes", value.len()),
            ROW_BYTES_MAX,
        ));
    }
    value.bytes()
}

/// Creates the error for a row that no writer writes.
#[cold]
pub(crate) fn damaged(
    what: &str,
    found: impl std::fmt::Display,
    expected: impl std::fmt::Display,
) -> Error {
    Corrupt::new(what, 0, found, expected).into()
}

/// The rows of the objects of a bucket, with their names as keys.
///
/// # Errors
/// A damaged or unreadable page.
pub fn object_rows<'r, R: PageRead>(root: &Tree, r: &'r R) -> Result<TableReader<'r>> {
    part(root, r, Part::Objects)
}
