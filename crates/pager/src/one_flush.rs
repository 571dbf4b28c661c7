//! Commits with one barrier: the record lists what was written together with it, and counts only when all of that is
//! there.
//!
//! Invariants
//! 1. Such a record lists every page that was allocated since the durable record before it, so that whoever finds it
//!    whole and the list true has found the whole commit.
//! 2. A record whose list is not true never ended. It is taken for damaged: opening goes back to the record before,
//!    and its blocks are written over, each synced, before anything else is written (`heal_metas`), so that it cannot
//!    come back.
//! 3. A record whose list is true may still be in the system's cache only. Like every record that is found it is rewritten and synced
//!    before the first page is written (`Writer::confirm`), and that sync covers its pages.
//! 4. Not so after a failed sync: the cache shows pages that no later sync writes. Whether the sync of a record failed is not
//!    known when its process is gone, so the lock area names the record from before it is written until its sync has ended
//!    well. Such a record was not acknowledged, and whoever finds it goes back.

use crate::error::{Error, Result};
use crate::meta::{Flushed, Meta, MetaBlocks};
use crate::seeded::{Bug, active};
use crate::storage::Storage;
use tidalite_base::{Corrupt, TxnId, checksum};

/// Pages are hashed in pieces of this size, so a record lists at most `BYTES_MAX` in few ranges.
const BYTES_MAX: u64 = 1 << 20;
const RANGES_MAX: usize = 64;

/// What opening had to do to find a state that is whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// A `OneFlush` commit that had not ended, or whose pages were damaged since: the file is as of the commit before.
    pub went_back_from: Option<TxnId>,
}

/// The list of these ranges with the checksums of what they hold now; `None` when they are too many or too long.
pub(crate) fn list(
    storage: &dyn Storage,
    page_size: usize,
    ranges: impl Iterator<Item = (u64, u64)>,
) -> Result<Option<Vec<Flushed>>> {
    let (mut listed, mut bytes) = (Vec::new(), 0);
    for (page, pages) in ranges {
        bytes += pages * page_size as u64;
        if bytes > BYTES_MAX || listed.len() == RANGES_MAX || page >= 1 << 48 {
            return Ok(None);
        }
        let Ok(pages) = u16::try_from(pages) else {
            return Ok(None);
        };
        let mut range = Flushed {
            page,
            pages,
            checksum: 0,
        };
        range.checksum = checksum_of(storage, page_size, &range)?;
        listed.push(range);
    }
    Ok(Some(listed))
}

fn checksum_of(storage: &dyn Storage, page_size: usize, range: &Flushed) -> Result<u64> {
    let at = range.page * page_size as u64;
    let mut bytes = vec![0u8; usize::from(range.pages) * page_size];
    match storage.read_at(at, &mut bytes) {
        Ok(()) => Ok(checksum(&bytes)),
        Err(source) => Err(Error::Io {
            what: "read of pages just written".into(),
            at,
            source,
        }),
    }
}

/// True when everything that the record lists is there.
fn is_whole(storage: &dyn Storage, page_size: usize, record: &Meta) -> Result<bool> {
    let Some(ranges) = &record.flushed else {
        return Ok(true);
    };
    let len = storage.len().map_err(|source| Error::Io {
        what: "length".into(),
        at: 0,
        source,
    })?;
    let page_bytes = page_size as u64;
    if record.pages > len / page_bytes {
        return Ok(false);
    }
    let mut bytes = 0;
    for range in ranges {
        let pages = u64::from(range.pages);
        bytes += pages * page_bytes;
        let inside = range.page <= record.pages && range.page + pages <= record.pages;
        // What no writer would list is not read.
        if !inside || bytes > BYTES_MAX {
            return Ok(false);
        }
        if checksum_of(storage, page_size, range)? != range.checksum {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Takes the newest record for damaged when it is not whole, or when it is the one `in_flight`. Nothing is written here.
pub(crate) fn verify(
    storage: &dyn Storage,
    page_size: usize,
    in_flight: u64,
    blocks: &mut MetaBlocks,
) -> Result<Recovery> {
    let (newest, older) = blocks.newest()?;
    let ended = newest.flushed.is_none() || newest.txn != in_flight;
    if active(Bug::OneFlushUnverified) || ended && is_whole(storage, page_size, &newest)? {
        return Ok(Recovery::default());
    }
    if older.is_none_or(|older| older.txn >= newest.txn) {
        // There is nothing to go back to: reading reports what is damaged.
        return Ok(Recovery::default());
    }
    for copy in &mut blocks.copies[newest.pair()] {
        if matches!(copy, Ok(meta) if meta.txn == newest.txn) {
            let what = "record of a commit with one barrier";
            let expected = "the pages that it lists";
            *copy = Err(Corrupt::new(what, 0, "others", expected).into());
        }
    }
    Ok(Recovery {
        went_back_from: Some(TxnId(newest.txn)),
    })
}
