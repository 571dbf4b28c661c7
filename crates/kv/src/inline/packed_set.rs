//! A set of values of one length that lies packed in its row: a place among them, without a copy.
//!
//! Invariants
//! 1. The values were looked at when it was made: as many as are told, ascending, and nothing behind them.
//! 2. `index` is below `count`.

use crate::inline::fixed_width::Even;
use crate::inline::inline_table;
use crate::page::overflow::Piece;
use tidalite_pager::Result;

#[derive(Clone, Debug)]
pub(crate) struct Packed<'r> {
    set: Piece<'r>,
    /// Where the first value begins.
    begin: usize,
    size: usize,
    count: usize,
    index: usize,
}

impl<'r> Packed<'r> {
    /// The first of the values; `None` where they are not packed.
    pub(crate) fn of(set: &Piece<'r>, at: u64) -> Result<Option<Self>> {
        let Some((begin, values)) = inline_table::packed(set, at)? else {
            return Ok(None);
        };
        let (size, count) = (values.size(), values.count());
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
        &self.set[self.begin + index * self.size..][..self.size]
    }

    /// The values from here on.
    pub(crate) fn rest(&self) -> impl Iterator<Item = &[u8]> {
        let values = &self.set[self.begin..];
        (self.index..self.count).map(move |index| &values[index * self.size..][..self.size])
    }

    /// The value here.
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

    /// How many of the values are below one, or not above it.
    fn below(&self, value: &[u8], or_equal: bool) -> usize {
        let values = Even::new(&self.set[self.begin..], self.size, self.count);
        values.map_or(0, |values| values.below(value, or_equal))
    }

    /// To the value with this many before it; false, and no move, without one.
    pub(crate) fn select(&mut self, rank: u64) -> bool {
        let there = rank < self.count();
        if there {
            self.index = rank as usize;
        }
        there
    }

    pub(crate) fn last(&mut self) -> bool {
        self.select(self.count() - 1)
    }

    /// To the first value at or above one.
    pub(crate) fn seek_ge(&mut self, value: &[u8]) -> bool {
        self.select(self.below(value, false) as u64)
    }

    /// To the last value at or below one.
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
