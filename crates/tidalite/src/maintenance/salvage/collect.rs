//! Collects all pages and blocks of the file that are identified by their headers and verified.

use crate::maintenance::watch::Running;
use crate::types::error::Result;
use std::collections::HashMap;
use tidalite_base::SeriesId;
use tidalite_delta::LoneBlock;
use tidalite_pager::{Candidate, Error, Kind, PageRead, Ptr, RawFile};
use tidalite_series::OrphanLeaf;

/// Maximum number of bytes whose verification may fail, as a multiple of the file's size: a hostile file may have a
/// header every few bytes.
const EFFORT: u64 = 64;

/// Pages and blocks that were found by scanning the file for their headers.
#[derive(Default)]
pub(super) struct Collected {
    /// Leaves of tables, by owner id of the table.
    pub(super) table_leaves: HashMap<u64, Vec<Ptr>>,
    /// Leaves of series, by series id.
    pub(super) series_leaves: HashMap<SeriesId, Vec<OrphanLeaf>>,
    /// Blocks of sorted runs of the delta.
    pub(super) blocks: Vec<LoneBlock>,
    /// Tail pages of the delta, to which small commits append rows.
    pub(super) tails: Vec<Ptr>,
    /// Record pages of the delta, which list its runs.
    pub(super) records: Vec<Ptr>,
    pub(super) headers: u64,
}

impl Collected {
    pub(super) fn of(raw: &RawFile, running: &mut Running<'_>) -> Result<Self> {
        let mut found = Self::default();
        let free = raw.free_pages();
        let page_size = raw.page_size() as u64;
        let mut effort = raw.len().saturating_mul(EFFORT);
        let mut told = 0;
        raw.scan(&mut |candidate, at| {
            running.done = at;
            running.moved(at - told)?;
            told = at;
            let page = candidate.header.address / page_size;
            // A page that is free according to the newest meta record holds only old contents, which must not be
            // salvaged. If the map of free pages is unreadable, no page counts as free.
            let dead = free
                .as_ref()
                .is_some_and(|free| free.get(page as usize).copied().unwrap_or(false));
            if dead || effort == 0 {
                return Ok(());
            }
            match found.take(raw, &candidate) {
                Ok(bytes) => {
                    found.headers += u64::from(bytes > 0);
                    Ok(())
                }
                Err(Error::Corrupt(_)) => {
                    effort = effort.saturating_sub(64 << 10);
                    Ok(())
                }
                Err(error) => Err(error),
            }
        })?;
        Ok(found)
    }

    /// Collects the page or block that a header announces, if it is valid. Returns its size in bytes, or 0 for a kind
    /// of page that salvage does not use.
    fn take(&mut self, raw: &RawFile, found: &Candidate) -> tidalite_pager::Result<usize> {
        let header = &found.header;
        let page_size = raw.page_size();
        let whole = header.address.is_multiple_of(page_size as u64);
        match header.kind {
            Kind::KvLeaf | Kind::Tail if whole => {
                let ptr = found.ptr(page_size);
                raw.page(&ptr)?;
                match header.kind {
                    Kind::Tail => self.tails.push(ptr),
                    _ => self.table_leaves.entry(header.owner).or_default().push(ptr),
                }
                Ok(page_size)
            }
            Kind::SeriesLeaf | Kind::SeriesCold => {
                let leaf = tidalite_series::orphan_leaf(raw, found)?;
                self.series_leaves
                    .entry(leaf.series)
                    .or_default()
                    .push(leaf);
                Ok(leaf.ptr.len as usize)
            }
            Kind::RunBlock => {
                let room = raw.len() - header.address;
                let block = tidalite_delta::lone_block(raw, found, room)?;
                self.blocks.push(block);
                Ok(block.ptr.len as usize)
            }
            Kind::DeltaRecord if whole => {
                // The header does not contain the length of a delta record; only the pointer to the record does.
                let ptr = record_ptr(raw, found)?;
                self.records.push(ptr);
                Ok(ptr.len as usize)
            }
            _ => Ok(0),
        }
    }
}

/// Finds the length of a delta record by its checksum, and returns a pointer to the record.
fn record_ptr(raw: &RawFile, found: &Candidate) -> tidalite_pager::Result<Ptr> {
    const TRIED: usize = 256;
    let most = (raw.len() - found.header.address).min(64 << 10) as usize;
    let bytes = raw.bytes(found.header.address, most)?.to_vec();
    // A record ends at its last non-zero byte or a few zeros later, and zeros fill its last page. The page after it may
    // contain anything, so each number of pages is tried.
    let pages = most / raw.page_size();
    for count in 1..=pages.max(1) {
        let part = &bytes[..(count * raw.page_size()).min(most)];
        let end = part
            .iter()
            .rposition(|&byte| byte != 0)
            .map_or(0, |at| at + 1);
        for len in end.max(32)..(end + TRIED).min(part.len() + 1) {
            let ptr = found.ptr(len);
            if raw.block(&ptr).is_ok() {
                return Ok(ptr);
            }
        }
    }
    Err(tidalite_base::Corrupt::new(
        "front's record",
        found.header.address,
        "no length",
        "a record",
    )
    .into())
}
