//! A position in a packed set of values, which is read in place in the row of its key.
//!
//! Invariants
//! 1. The constructor has checked the values: the count is right, they ascend, and nothing follows them.
//! 2. `index` is below `count`.

use crate::inline::fixed_width::FixedWidthKeys;
use crate::inline::inline_table;
use crate::page::overflow::PageSlice;
use tidalite_pager::Result;

#[derive(Clone, Debug)]
pub(crate) struct PackedSet<'r> {
    set: PageSlice<'r>,
    /// Offset of the first value in the bytes of the set.
    begin: usize,
    size: usize,
    count: usize,
    index: usize,
}

impl<'r> PackedSet<'r> {
    /// A position at the first value of the set; `None` if the set is not packed.
    pub(crate) fn of(set: &PageSlice<'r>, at: u64) -> Result<Option<Self>> {
        let Some((begin, values)) = inline_table::packed(set, at)? else {
            return Ok(None);
        };
        let (size, count) = (values.size(), values.count());
        debug_assert!(
            begin + size * count == set.len(),
            "nothing follows the values"
        );
        let set = set.clone();
        Ok((count > 0).then_some(Self {
            set,
            begin,
            size,
            count,
            index: 0,
        }))
    }

    fn nth(&self, index: usize) -> &[u8] {
        debug_assert!(index < self.count, "the value exists");
        &self.set[self.begin + index * self.size..][..self.size]
    }

    /// The values from the current value to the last.
    pub(crate) fn rest(&self) -> impl Iterator<Item = &[u8]> {
        let values = &self.set[self.begin..];
        (self.index..self.count).map(move |index| &values[index * self.size..][..self.size])
    }

    /// The current value.
    pub(crate) fn value(&self) -> &[u8] {
        self.nth(self.index)
    }

    pub(crate) fn count(&self) -> u64 {
        self.count as u64
    }

    pub(crate) fn on_first(&self) -> bool {
        self.index == 0
    }

    pub(crate) fn on_last(&self) -> bool {
        self.index + 1 == self.count
    }

    /// Number of values below `value`; if `or_equal`, number of values that are not above it.
    fn below(&self, value: &[u8], or_equal: bool) -> usize {
        let values = FixedWidthKeys::new(&self.set[self.begin..], self.size, self.count);
        values.map_or(0, |values| values.below(value, or_equal))
    }

    /// Moves to the value with this index; returns false, without a move, if there is no such value.
    pub(crate) fn select(&mut self, rank: u64) -> bool {
        let there = rank < self.count();
        if there {
            self.index = rank as usize;
        }
        debug_assert!(self.index < self.count, "invariant 2");
        there
    }

    pub(crate) fn last(&mut self) -> bool {
        debug_assert!(self.count > 0, "a set has a value");
        self.select(self.count() - 1)
    }

    /// Moves to the first value that is not below `value`; returns false, without a move, if there is none.
    pub(crate) fn seek_ge(&mut self, value: &[u8]) -> bool {
        self.select(self.below(value, false) as u64)
    }

    /// Moves to the last value that is not above `value`; returns false, without a move, if there is none.
    pub(crate) fn seek_le(&mut self, value: &[u8]) -> bool {
        match self.below(value, true) {
            0 => false,
            below => self.select(below as u64 - 1),
        }
    }

    pub(crate) fn next(&mut self) -> bool {
        self.select(self.index as u64 + 1)
    }

    pub(crate) fn previous(&mut self) -> bool {
        !self.on_first() && self.select(self.index as u64 - 1)
    }
}
