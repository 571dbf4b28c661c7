//! Iterates over the keys of a buffered table, in ascending or descending order.

use crate::buffered::read::BufferedReader;
use crate::buffered::value_of;
use crate::runs::cursor::Order;
use crate::runs::merge::{Group, Merge};
use std::ops::Bound;
use tidalite_kv::Cursor;
use tidalite_pager::{PageRead, Result};

/// An iteration over a range of keys.
pub struct BufferedRange<'t, R: PageRead> {
    source: Source<'t, R>,
    order: Order,
    start: Bound<Vec<u8>>,
    end: Bound<Vec<u8>>,
}

/// The source of the entries.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one of them in an iteration, and it is not moved"
)]
enum Source<'t, R: PageRead> {
    /// A merge of rows and runs, and the entry that was read last.
    Merge(Merge<'t, R>, Group),
    /// The rows of a table without runs. The fields are a cursor, whether it is at a row, and the row's value if it is
    /// stored outside the leaf.
    Rows {
        rows: Cursor<'t, R>,
        state: RowState,
        extent: Option<Vec<u8>>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowState {
    /// The cursor is at the first row of the range, which has not been returned yet.
    Before,
    At,
    End,
}

impl<R: PageRead> BufferedReader<R> {
    /// The keys in a range, in ascending order, or in descending order if `is_reversed`.
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
        let order = match is_reversed {
            true => Order::Descending,
            false => Order::Ascending,
        };
        let mut merge;
        let there;
        if is_reversed {
            // The range contains all keys below the least key that is greater than the end.
            let to = match &end {
                Bound::Included(end) => Some([end, &[0][..]].concat()),
                Bound::Excluded(end) => Some(end.clone()),
                Bound::Unbounded => None,
            };
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
            let all = 0..self.runs.list.len();
            merge = Merge::of_runs(&self.runs, all, &blocks, &self.r, from)?;
            there = rows.seek_ge(from)?;
        }
        let source = if self.runs.is_empty() {
            Source::Rows {
                rows,
                state: match there {
                    true => RowState::Before,
                    false => RowState::End,
                },
                extent: None,
            }
        } else {
            merge.add_rows(rows, there)?;
            Source::Merge(merge, Group::default())
        };
        Ok(BufferedRange {
            source,
            order,
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
        while self.advance()? {
            let key = self.key();
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
        match &mut self.source {
            Source::Merge(_, group) => group.clear(),
            Source::Rows { state, .. } => *state = RowState::End,
        }
        Ok(false)
    }

    /// Moves to the next entry, which may be outside the range, or a removal.
    fn advance(&mut self) -> Result<bool> {
        match &mut self.source {
            Source::Merge(merge, group) => merge.next(group),
            Source::Rows {
                rows,
                state,
                extent,
            } => {
                let there = match (*state, self.order) {
                    (RowState::Before, _) => true,
                    (RowState::At, Order::Ascending) => rows.next()?,
                    (RowState::At, Order::Descending) => rows.previous()?,
                    (RowState::End, _) => false,
                };
                if !there {
                    *state = RowState::End;
                    return Ok(false);
                }
                *state = RowState::At;
                *extent = match rows.value_slice() {
                    Some(_) => None,
                    None => Some(rows.value()?.to_vec()?),
                };
                Ok(true)
            }
        }
    }

    /// The current key.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        match &self.source {
            Source::Merge(_, group) => &group.key,
            Source::Rows { rows, .. } => rows.key(),
        }
    }

    /// The value of the current key; `None` before the first step and at the end.
    #[must_use]
    pub fn value(&self) -> Option<&[u8]> {
        match &self.source {
            Source::Merge(_, group) => group.payloads().next_back().and_then(value_of),
            Source::Rows {
                rows,
                state,
                extent,
            } => match (state, extent) {
                (RowState::At, Some(value)) => Some(value),
                (RowState::At, None) => rows.value_slice(),
                (RowState::Before | RowState::End, _) => None,
            },
        }
    }
}
