//! Searches a key in one page: first by heads (the first four bytes of each key suffix), then by suffixes if heads are
//! equal.

use crate::page::key;
use crate::page::layout::{HEAD_BYTES, head_of};
use crate::page::node::Node;
use std::cmp::Ordering;
use tidalite_pager::{PageRead, Result};

/// Maximum number of heads that a search counts linearly, instead of halving the range. A full page of 4 KiB has about
/// as many entries.
const HEADS_COUNTED: usize = 256;

impl Node<'_> {
    /// The first entry at or after `from` whose key is not below `key`, and whether that entry's key equals `key`.
    /// Entries before `from` are assumed to be below `key`. `None` if the search meets a key that is too long for its
    /// page.
    #[inline]
    fn search(&self, key: &[u8], from: usize) -> Result<Option<(usize, bool)>> {
        debug_assert!(from <= self.count(), "the search begins in the page");
        let prefix = self.prefix();
        let Some(suffix) = key.strip_prefix(prefix) else {
            let end = if key < prefix { from } else { self.count() };
            return Ok(Some((end, false)));
        };
        let head = head_of(suffix);
        let mut low = self.first_head(from, self.count(), |found| found < head);
        if low == self.count() || self.head(low) != head {
            return Ok(Some((low, false)));
        }
        // Entries with equal heads are rare; they are searched by comparing whole suffixes.
        let mut high = low + 1;
        if high < self.count() && self.head(high) == head {
            high = self.first_head(high, self.count(), |found| found <= head);
        }
        while low < high {
            let middle = low + (high - low) / 2;
            let Some(cell) = self.plain_cell(middle) else {
                self.other_cell(middle)?;
                return Ok(None);
            };
            match cell.suffix.cmp(suffix) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok(Some((middle, true))),
                Ordering::Greater => high = middle,
            }
        }
        Ok(Some((low, false)))
    }

    /// As `search`, but also reads the bytes of long keys that lie outside the page, if their first bytes are equal.
    #[cold]
    fn search_spilled(&self, r: &dyn PageRead, key: &[u8], from: usize) -> Result<(usize, bool)> {
        debug_assert!(from <= self.count(), "the search begins in the page");
        let (mut low, mut high) = (from, self.count());
        let Some(suffix) = key.strip_prefix(self.prefix()) else {
            let end = if key < self.prefix() { low } else { high };
            return Ok((end, false));
        };
        while low < high {
            let middle = low + (high - low) / 2;
            let cell = self.cell(middle)?;
            let first = cell.suffix.len();
            let order = if cell.rest.is_empty() {
                cell.suffix.cmp(suffix)
            } else if suffix.len() <= first {
                // The key of this cell is longer than its part in the page, so it is greater than a key that equals
                // that part.
                cell.suffix.cmp(suffix).then(Ordering::Greater)
            } else {
                match cell.suffix.cmp(&suffix[..first]) {
                    Ordering::Equal => {
                        let rest = key::reference(cell.rest, r.page_size(), self.at)?;
                        rest.compare(r, &suffix[first..])?
                    }
                    decided => decided,
                }
            };
            match order {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok((middle, true)),
                Ordering::Greater => high = middle,
            }
        }
        Ok((low, false))
    }

    /// The first entry in `from..to` for whose head `below` returns false.
    #[inline]
    fn first_head(&self, from: usize, to: usize, below: impl Fn(u32) -> bool) -> usize {
        let Some(heads) = self.heads.get(from..to) else {
            return to;
        };
        from + first_head(heads, below)
    }

    /// Leaf only: the estimated fraction of the keys between the row at `index` and the next row that are below `key`,
    /// assuming that keys are spread evenly.
    #[inline]
    pub(crate) fn share(&self, index: usize, key: &[u8]) -> Option<f32> {
        let suffix = key.strip_prefix(self.prefix())?;
        let head_at = |index: usize| self.heads.get(index).map(|head| u32::from_le_bytes(*head));
        let (low, high) = (head_at(index)?, head_at(index + 1)?);
        let (above, span) = (head_of(suffix).checked_sub(low)?, high.checked_sub(low)?);
        (above < span).then(|| above as f32 / span as f32)
    }

    /// Leaf only: the first entry that is not below `key`, and whether that entry's key equals `key`.
    #[inline]
    pub(crate) fn find<R: PageRead>(&self, r: &R, key: &[u8]) -> Result<(usize, bool)> {
        match self.search(key, 0)? {
            Some(found) => Ok(found),
            None => self.search_spilled(r, key, 0),
        }
    }

    /// As `find`, but reads no other page; `None` if bytes of a key that lie outside the page would have to be read.
    #[inline]
    pub(crate) fn find_plain(&self, key: &[u8]) -> Result<Option<(usize, bool)>> {
        self.search(key, 0)
    }

    /// Branch only: the index of the entry whose subtree would hold `key`.
    #[inline]
    pub(crate) fn find_child<R: PageRead>(&self, r: &R, key: &[u8]) -> Result<usize> {
        let (index, found) = match self.search(key, 1)? {
            Some(found) => found,
            None => self.search_spilled(r, key, 1)?,
        };
        debug_assert!(index > 0, "the first key of a branch is not compared");
        Ok(if found { index } else { index - 1 })
    }

    /// As `find_child`, but reads no other page; `None` if bytes of a key that lie outside the page would have to be
    /// read.
    #[inline]
    pub(crate) fn find_plain_child(&self, key: &[u8]) -> Result<Option<usize>> {
        let found = self.search(key, 1)?;
        Ok(found.map(|(index, found)| if found { index } else { index - 1 }))
    }
}

/// The index of the first head for which `below` returns false. The heads for which it returns true must come first.
#[inline(always)]
pub(super) fn first_head(heads: &[[u8; HEAD_BYTES]], below: impl Fn(u32) -> bool) -> usize {
    let mut base = 0;
    let mut left = heads.len();
    // The start of the range depends on the data through a conditional move, not a branch that may be mispredicted.
    while left > HEADS_COUNTED {
        let half = left / 2;
        let jump = below(u32::from_le_bytes(heads[base + half - 1]));
        base += if jump { half } else { 0 };
        left -= half;
    }
    // The remaining heads are counted in vector registers: no load waits for the one before, so a page that
    // is not in the processor's cache costs one wait instead of one per step of a search.
    let rest = &heads[base..base + left];
    let counted = rest
        .iter()
        .map(|head| u32::from(below(u32::from_le_bytes(*head))));
    debug_assert!(base + left <= heads.len(), "the counted heads exist");
    base + counted.sum::<u32>() as usize
}
