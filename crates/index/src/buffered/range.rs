//! The keys of a buffered table in order, ascending or descending.

use crate::buffered::read::BufferedReader;
use crate::buffered::value_of;
use crate::runs::cursor::Order;
use crate::runs::merge::{Group, Merge};
use std::ops::Bound;
use tidalite_pager::{PageRead, Result};

/// An iteration over a range of keys.
pub struct BufferedRange<'t, R: PageRead> {
    merge: Merge<'t, R>,
    order: Order,
    group: Group,
    start: Bound<Vec<u8>>,
    end: Bound<Vec<u8>>,
}

impl<R: PageRead> BufferedReader<R> {
    /// The keys in a range, ascending, or descending if `is_reversed`.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn range(
        &self,
        start: Bound<Vec<u8>>,
        end: Bound<Vec<u8>>,
        is_reversed: bool,
    ) -> Result<BufferedRange<'_, R>> {
        let (blocks, main) = (self.blocks()?, self.main()?);
        let mut rows = main.cursor(&self.r)?;
        let mut merge;
        let (order, there);
        if is_reversed {
            // Everything below the least key that is greater than the end.
            let to = match &end {
                Bound::Included(end) => Some([end, &[0][..]].concat()),
                Bound::Excluded(end) => Some(end.clone()),
                Bound::Unbounded => None,
            };
            order = Order::Descending;
            merge = Merge::below(&self.runs, &blocks, &self.r, to.as_deref())?;
            there = match &to {
                Some(to) => rows.seek_lt(to)?,
                None => rows.last()?,
            };
        } else {
            let from = match &start {
                Bound::Included(start) | Bound::Excluded(start) => start.as_slice(),
                Bound::Unbounded => &[],
            };
            order = Order::Ascending;
            let all = 0..self.runs.list.len();
            merge = Merge::of_runs(&self.runs, all, &blocks, &self.r, from)?;
            there = rows.seek_ge(from)?;
        }
        merge.add_rows(rows, there)?;
        Ok(BufferedRange {
            merge,
            order,
            group: Group::default(),
            start,
            end,
        })
    }
}

impl<R: PageRead> BufferedRange<'_, R> {
    /// Moves to the next key; returns false at the end of the range.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn step(&mut self) -> Result<bool> {
        while self.merge.next(&mut self.group)? {
            let key = self.group.key.as_slice();
            let above = match &self.start {
                Bound::Included(start) => key >= start.as_slice(),
                Bound::Excluded(start) => key > start.as_slice(),
                Bound::Unbounded => true,
            };
            let below = match &self.end {
                Bound::Included(end) => key <= end.as_slice(),
                Bound::Excluded(end) => key < end.as_slice(),
                Bound::Unbounded => true,
            };
            let is_over = match self.order {
                Order::Ascending => !below,
                Order::Descending => !above,
            };
            if is_over {
                break;
            }
            if above && below && self.value().is_some() {
                return Ok(true);
            }
        }
        self.group.clear();
        Ok(false)
    }

    /// The key at the iteration.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.group.key
    }

    /// The value of the key at the iteration; `None` before the first step and at the end.
    #[must_use]
    pub fn value(&self) -> Option<&[u8]> {
        self.group.payloads().next_back().and_then(value_of)
    }
}
