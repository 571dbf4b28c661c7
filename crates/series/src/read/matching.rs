//! A view of the rows with values in given ranges, as if the series had no other rows.
//!
//! Parts of the tree whose extremes rule out a match are skipped unread in every query; parts in which every row
//! matches are folded unread.

use crate::leaf::reader::Leaf;
use crate::link::Link;
use crate::node::Spine;
use crate::read::filter::{Direction, Filter, ValueRange, may_match, row_matches};
use crate::read::fold;
use crate::read::vector::Vector;
use crate::read::view::View;
use tidalite_pager::{PageRead, Result};

/// The matching rows of a series: rows with a value inside each range, in the range's column.
pub struct Matching<'a, R> {
    pub(super) view: View<'a, R>,
    ranges: Vec<ValueRange>,
}

// Not derived, because a derived `Clone` would require that `R` implements it.
impl<R> Clone for Matching<'_, R> {
    fn clone(&self) -> Self {
        let (view, ranges) = (self.view, self.ranges.clone());
        Self { view, ranges }
    }
}

impl<'a, R: PageRead> View<'a, R> {
    /// The rows that match all of the ranges.
    ///
    /// # Panics
    /// If a column does not exist, or if the type of a range differs from its column's.
    #[must_use]
    pub fn matching(&self, ranges: Vec<ValueRange>) -> Matching<'a, R> {
        for range in &ranges {
            range.expect_type(self.tree.types[range.column()]);
        }
        Matching {
            view: *self,
            ranges,
        }
    }
}

impl<'a, R: PageRead> Matching<'a, R> {
    /// As [`View::count`].
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    pub fn count(&self, from: i64, to: i64) -> Result<u64> {
        let View { r, tree, late } = self.view;
        fold::count(r, tree, late, (from, to), &self.ranges)
    }

    /// Calls `f` with the rows, in the given direction, up to 1024 at a time (ascending within a call), and returns
    /// their number. Only the named columns are delivered.
    ///
    /// # Errors
    /// `Io`, `Corrupt`; rows before the damage were delivered.
    ///
    /// # Panics
    /// If a column does not exist.
    pub fn for_each_vector(
        &self,
        from: i64,
        to: i64,
        columns: &[usize],
        direction: Direction,
        f: impl FnMut(&Vector<'_>),
    ) -> Result<u64> {
        let View { r, tree, late } = self.view;
        Filter::new(r, tree, late, (from, to), &self.ranges, columns, f).run(direction)
    }

    /// Start of the first piece or late row within `from ..= to` that may match, clipped to the interval; the flag is
    /// true for a late row.
    pub(super) fn first_that_may_match(&self, from: i64, to: i64) -> Result<Option<(i64, bool)>> {
        if from > to {
            return Ok(None);
        }
        let View { tree, late, .. } = self.view;
        let mut found = None;
        for (level, entry) in tree.tops_with_levels() {
            let stats = |_, range: &ValueRange| Ok(entry.stats[range.column()]);
            if !entry.link.outside(from, to) && may_match(&self.ranges, stats)? {
                found = self.first_below(&entry.link, level, (from, to))?;
            }
            if found.is_some() {
                break;
            }
        }
        debug_assert!(
            found.is_none_or(|found| (from..=to).contains(&found)),
            "clipped to the interval"
        );
        let late = late.between(from, found.unwrap_or(to));
        let matches = |&row: &usize| row_matches(&self.ranges, |c| late.column(c)[row]);
        let first = (0..late.len()).find(matches).map(|row| late.times()[row]);
        Ok(match first {
            Some(first) => Some((first, true)),
            None => found.map(|found| (found, false)),
        })
    }

    fn first_below(&self, link: &Link, level: u8, (from, to): (i64, i64)) -> Result<Option<i64>> {
        let View { r, tree, .. } = self.view;
        if level == 0 {
            let leaf = Leaf::open(r, link, &tree.types)?;
            for v in leaf.vector_at(from)..leaf.vectors() {
                let (begin, end) = leaf.span(v);
                if begin > to {
                    break;
                }
                let stats = |_, range: &ValueRange| leaf.stats(v, range.column(), range.ty());
                if end >= from && may_match(&self.ranges, stats)? {
                    return Ok(Some(begin.max(from)));
                }
            }
            return Ok(None);
        }
        let spine = Spine::open(r, link, level, tree.types.len())?;
        let blocks = self.ranges.iter();
        let blocks = blocks.map(|range| spine.stats(r, range.column(), range.ty()));
        let blocks = blocks.collect::<Result<Vec<_>>>()?;
        for i in spine.link_at(from)..spine.len() {
            let child = spine.link(i);
            if child.begin > to {
                break;
            }
            if child.end < from || !may_match(&self.ranges, |number, _| blocks[number].get(i))? {
                continue;
            }
            let found = self.first_below(&child, level - 1, (from, to))?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }
}
