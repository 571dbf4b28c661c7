//! Buffers for pages in memory, which are recycled to avoid allocations.

use crate::error::{Error, Result};
use std::sync::Arc;
use tidalite_base::{Corrupt, checksum};
use tidalite_disk::storage::Storage;

/// Returns a page of zeros, in the recycled buffer `buffer` if possible.
pub(crate) fn zeroed(buffer: Option<Arc<[u8]>>, page_size: usize) -> Arc<[u8]> {
    if let Some(mut buffer) = buffer
        && let Some(bytes) = Arc::get_mut(&mut buffer)
    {
        bytes.fill(0);
        return buffer;
    }
    std::iter::repeat_n(0, page_size).collect()
}

/// Returns a copy of a page, in the recycled buffer `buffer` if possible.
pub(crate) fn filled(buffer: Option<Arc<[u8]>>, page: &[u8]) -> Arc<[u8]> {
    if let Some(mut buffer) = buffer
        && let Some(bytes) = Arc::get_mut(&mut buffer)
        && bytes.len() == page.len()
    {
        bytes.copy_from_slice(page);
        return buffer;
    }
    Arc::from(page)
}

/// Reads a page of the transaction that was written to the file before the commit.
pub(crate) fn read_back(
    storage: &dyn Storage,
    at: u64,
    page_size: usize,
    sum: u64,
) -> Result<Arc<[u8]>> {
    let mut bytes = vec![0u8; page_size];
    storage
        .read_at(at, &mut bytes)
        .map_err(|source| Error::of_call("read of a page written early", at, source))?;
    let found = checksum(&bytes[8..]);
    if found != sum {
        let found = format!("checksum {found:016x}");
        let expected = format!("checksum {sum:016x}");
        return Err(Corrupt::new("page written early", at, found, expected).into());
    }
    Ok(bytes.into())
}
