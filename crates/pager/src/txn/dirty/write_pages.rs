//! Writes pages to the file through system calls.

use crate::error::{Error, Result};
use tidalite_disk::storage::{Storage, WriteBack};

/// Maximum number of bytes of adjacent pages that are written by one call; more would slow later writes of single
/// pages (docs/performance/durable-commits.md).
const WRITE_BYTES_MAX: usize = 64 << 10;

/// Hint for writing pages: it says whether a sync follows or the pages are likely to be overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteHint {
    /// No sync is about to follow, and the pages are likely to be overwritten soon, so `Storage::write_passing` is
    /// used.
    Passing,
    /// It is unknown whether a sync follows.
    Plain,
    /// A sync follows, and the pages are unlikely to be overwritten before it.
    ForSync,
}

/// Writes pages, adjacent pages together; returns the number of ranges. If a sync follows, calls `ask` with each
/// range whose write-back to the medium should start.
pub(super) fn write_pages(
    storage: &dyn Storage,
    ask: impl Fn(u64, u64),
    page_size: usize,
    mut pages: Vec<(u64, &[u8])>,
    hint: WriteHint,
) -> Result<u64> {
    pages.sort_unstable_by_key(|(number, _)| *number);
    let per_write = (WRITE_BYTES_MAX / page_size).max(1);
    let (mut pieces, mut writes) = (Vec::with_capacity(per_write), 0);
    let mut write_back = WriteBack::new(Some((pages.len() * page_size) as u64));
    let passing = hint == WriteHint::Passing;
    let neighbours = pages.chunk_by(|(number, _), (next, _)| number + 1 == *next);
    for group in neighbours.flat_map(|stretch| stretch.chunks(per_write)) {
        let at = group[0].0 * page_size as u64;
        let bytes = (group.len() * page_size) as u64;
        let failed = |error| Error::of_write("write", at, bytes, error);
        match group {
            [(_, bytes)] if !passing => write(storage, at, bytes)?,
            _ => {
                pieces.clear();
                pieces.extend(group.iter().map(|(_, bytes)| *bytes));
                let written = if passing {
                    storage.write_passing(at, &pieces)
                } else {
                    storage.write_pieces(at, &pieces)
                };
                written.map_err(failed)?;
            }
        }
        writes += 1;
        if hint == WriteHint::ForSync
            && let Some((at, len)) = write_back.note(at, bytes)
        {
            ask(at, len);
        }
    }
    Ok(writes)
}

pub(crate) fn write(storage: &dyn Storage, at: u64, bytes: &[u8]) -> Result<()> {
    let failed = |error| Error::of_write("write", at, bytes.len() as u64, error);
    storage.write_at(at, bytes).map_err(failed)
}
