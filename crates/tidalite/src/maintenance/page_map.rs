//! The file page by page: which structure takes which pages, and what one page says of itself.

use crate::database::handle::Database;
use crate::maintenance::check::walk_of;
use crate::types::error::Result;
use tidalite_base::{TxnId, checksum, get_u64};
use tidalite_pager::{HEADER_BYTES, Header, Kind, PageRead};

/// Neighbouring pages that a structure takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageRange<'a> {
    /// The first page's number: its address is that times the bytes of a page.
    pub first: u64,
    /// Pages.
    pub pages: u64,
    /// Which structure, and what there: "table config: table leaf".
    pub what: &'a str,
}

/// What a structure takes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Weight {
    /// Which structure, and what there.
    pub what: String,
    /// Pages.
    pub pages: u64,
    /// Stretches of neighbouring pages: the more, the more scattered.
    pub stretches: u64,
}

/// One page as it stands in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageDump {
    /// Its number.
    pub number: u64,
    /// Its address.
    pub address: u64,
    /// What its header says it is, where it has one for this place.
    pub kind: Option<String>,
    /// Whose it is.
    pub owner: u64,
    /// When it was written.
    pub birth: TxnId,
    /// Whether its own checksum is right for a whole page; blocks in extents have other lengths.
    pub sound: bool,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Database {
    /// Shows which structure takes which pages, in the newest version: ranges of one structure ascend. Reads every
    /// table, node and directory; damage is passed over. Which version, and whom it waits for: as for [`check`](Self::check).
    ///
    /// # Errors
    /// What cannot be read at all.
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

    /// What each structure takes, the heaviest first.
    ///
    /// # Errors
    /// As for `pages`.
    pub fn weights(&self) -> Result<Vec<Weight>> {
        let ranges = walk_of(self)?.into_iter();
        let mut weights: Vec<Weight> = ranges
            .map(|(what, ranges)| Weight {
                what,
                pages: ranges.iter().map(|(_, pages)| pages).sum(),
                stretches: ranges.len() as u64,
            })
            .collect();
        weights.sort_by_key(|weight| std::cmp::Reverse(weight.pages));
        Ok(weights)
    }

    /// One page as it stands in the file; `None` beyond its end. (Pages of a commit of `Durability::None` may not stand there yet.)
    ///
    /// # Errors
    /// What cannot be read.
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
