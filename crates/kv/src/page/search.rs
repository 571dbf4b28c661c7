//! Searches a key in one page: first by heads, then by suffixes if heads are equal.

use crate::page::key;
use crate::page::layout::{HEAD_BYTES, head_of};
use crate::page::node::Node;
use std::cmp::Ordering;
use tidalite_pager::{PageRead, Result};

/// Up to this many heads, the search counts the heads that are below, instead of halving the range. A full page of 4
/// KiB has about as many.
const HEADS_COUNTED: usize = 256;

impl Node<'_> {
    /// The first entry at or after `from` whose key is not below `key`, and whether it is equal.
    /// Entries before `from` are assumed to be below. `None` if the search meets a spilled key.
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
        // Equal heads are rare; a run of them is searched by whole suffixes.
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

    /// As `search`, but reads the rests of spilled keys when their first bytes are equal.
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
                // The cell's key is longer than its part in the page.
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

    /// The first entry in `from..to` whose head is not `below`.
    #[inline]
    fn first_head(&self, from: usize, to: usize, below: impl Fn(u32) -> bool) -> usize {
        let Some(heads) = self.heads.get(from..to) else {
            return to;
        };
        from + first_head(heads, below)
    }

    /// Leaf: the first entry that is not below `key`, and whether it equals `key`.
    #[inline]
    pub(crate) fn find<R: PageRead>(&self, r: &R, key: &[u8]) -> Result<(usize, bool)> {
        match self.search(key, 0)? {
            Some(found) => Ok(found),
            None => self.search_spilled(r, key, 0),
        }
    }

    /// As `find`, but without a reader; `None` if the rest of a spilled key would have to be read.
    #[inline]
    pub(crate) fn find_plain(&self, key: &[u8]) -> Result<Option<(usize, bool)>> {
        self.search(key, 0)
    }

    /// Branch: the entry whose subtree would hold `key`.
    #[inline]
    pub(crate) fn find_child<R: PageRead>(&self, r: &R, key: &[u8]) -> Result<usize> {
        let (index, found) = match self.search(key, 1)? {
            Some(found) => found,
            None => self.search_spilled(r, key, 1)?,
        };
        debug_assert!(index > 0, "the first key of a branch is not compared");
        Ok(if found { index } else { index - 1 })
    }

    /// As `find_child`, but without a reader; `None` if the rest of a spilled key would have to be read.
    #[inline]
    pub(crate) fn find_plain_child(&self, key: &[u8]) -> Result<Option<usize>> {
        let found = self.search(key, 1)?;
        Ok(found.map(|(index, found)| if found { index } else { index - 1 }))
    }
}

/// The first head that is not `below`. All heads for which `below` is true come first.
#[inline(always)]
pub(super) fn first_head(heads: &[[u8; HEAD_BYTES]], below: impl Fn(u32) -> bool) -> usize {
    let mut base = 0;
    let mut left = heads.len();
    // The step depends on the data through a conditional move, not a branch.
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
