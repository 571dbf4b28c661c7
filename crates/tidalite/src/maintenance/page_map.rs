//! The file page by page: the use of pages by structure, and the header of a single page.

use crate::database::handle::Database;
use crate::maintenance::check::walk_of;
use crate::types::error::Result;
use tidalite_base::{TxnId, checksum, get_u64};
use tidalite_pager::{HEADER_BYTES, Header, Kind, PageRead};

/// Consecutive pages of one structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageRange<'a> {
    /// The first page's number; multiplied by the page size it is the address.
    pub first: u64,
    /// Number of pages.
    pub pages: u64,
    /// The structure and the kind of page: "table config: table leaf".
    pub what: &'a str,
}

/// The pages of a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Weight {
    /// The structure and the kind of page.
    pub what: String,
    /// Number of pages.
    pub pages: u64,
    /// Number of ranges of consecutive pages: a measure of fragmentation.
    pub ranges: u64,
}

/// The raw contents of one page.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageDump {
    /// The page's number.
    pub number: u64,
    /// The page's address.
    pub address: u64,
    /// The kind given by its header, if it has one for this place.
    pub kind: Option<String>,
    /// The owner id.
    pub owner: u64,
    /// The commit that wrote it.
    pub birth: TxnId,
    /// Whether its checksum is right for a whole page; blocks in extents have other lengths.
    pub sound: bool,
    /// The page's bytes.
    pub bytes: Vec<u8>,
}

impl Database {
    /// Reports the pages of each structure in the newest version; the ranges of one structure ascend. Reads every
    /// table, node and directory; skips damage. For the version checked and for waiting see [`check`](Self::check).
    ///
    /// # Errors
    /// Data that cannot be read at all.
    pub fn pages(&self, f: &mut dyn FnMut(&PageRange<'_>)) -> Result<()> {
        for (what, ranges) in walk_of(self)? {
            for (first, pages) in ranges {
                f(&PageRange {
                    first,
                    pages,
                    what: &what,
                });
            }
        }
        Ok(())
    }

    /// The pages of each structure, the largest first.
    ///
    /// # Errors
    /// As for `pages`.
    pub fn weights(&self) -> Result<Vec<Weight>> {
        let ranges = walk_of(self)?.into_iter();
        let mut weights: Vec<Weight> = ranges
            .map(|(what, ranges)| Weight {
                what,
                pages: ranges.iter().map(|(_, pages)| pages).sum(),
                ranges: ranges.len() as u64,
            })
            .collect();
        weights.sort_by_key(|weight| std::cmp::Reverse(weight.pages));
        Ok(weights)
    }

    /// The raw contents of one page; `None` beyond the file's end. (Pages of a commit of `Durability::None` may not be
    /// there yet.)
    ///
    /// # Errors
    /// An unreadable page.
    pub fn page(&self, number: u64) -> Result<Option<PageDump>> {
        let snapshot = self.pager.begin_read()?;
        let page_size = snapshot.page_size();
        let Some(address) = number.checked_mul(page_size as u64) else {
            return Ok(None);
        };
        let Some(bytes) = self.pager.raw_bytes(address, page_size)? else {
            return Ok(None);
        };
        let header = Header::decode(&bytes);
        let here = header.address == address && header.kind != Kind::None;
        Ok(Some(PageDump {
            number,
            address,
            kind: here.then(|| format!("{:?}", header.kind)),
            owner: header.owner,
            birth: header.birth,
            sound: here
                && bytes.len() > HEADER_BYTES
                && get_u64(&bytes, 0) == checksum(&bytes[8..]),
            bytes,
        }))
    }
}
