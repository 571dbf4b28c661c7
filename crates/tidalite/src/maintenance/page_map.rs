//! A map of the file: which structure uses which pages, and the contents of a single page.

use crate::database::handle::Database;
use crate::maintenance::check::walk_of;
use crate::types::error::Result;
use tidalite_base::{TxnId, checksum, get_u64};
use tidalite_pager::{HEADER_BYTES, Header, Kind, PageRead};

/// A range of consecutive pages that belong to one structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageRange<'a> {
    /// Number of the first page; multiplied by the page size it is the address in bytes.
    pub first: u64,
    /// Number of pages in the range.
    pub pages: u64,
    /// The structure and the kind of page, such as "table config: table leaf".
    pub what: &'a str,
}

/// Total of the pages that belong to one structure.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Weight {
    /// The structure and the kind of page, such as "table config: table leaf".
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
    /// Number of the page.
    pub number: u64,
    /// Address of the page in bytes.
    pub address: u64,
    /// The kind of the page, if its header names a kind and this address.
    pub kind: Option<String>,
    /// Owner id in the header: the table or series that the page belongs to.
    pub owner: u64,
    /// The commit that wrote the page, according to the header.
    pub birth: TxnId,
    /// Whether the checksum in the header is right for a whole page. It is not for a block in an extent, which has
    /// another length.
    pub sound: bool,
    /// The page's bytes.
    pub bytes: Vec<u8>,
}

impl Database {
    /// Reports the pages of each structure in the newest version to `f`; the ranges of one structure ascend. To
    /// find the pages, `pages` walks through the structures; pages to which only damaged data leads are left out.
    /// `pages` reads the same version as [`check`](Self::check), and waits for the same commits.
    ///
    /// # Errors
    /// Failed reads, and damage to the data with which the walk begins, such as the roots of the structures. Damage
    /// found during the walk is not an error.
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

    /// Returns the number of pages of each structure, the largest structure first.
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

    /// The raw contents of one page; `None` beyond the file's end. (The file may not contain the pages of a commit of
    /// `Durability::None` yet.)
    ///
    /// # Errors
    /// The page is unreadable.
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
