//! Finds rows with values in given ranges. Subtrees, leaves and vectors whose extremes rule out a match are skipped
//! unread; in the others, only the columns with a range are decoded until a row matches.
//!
//! 1. A late row replaces the tree's rows of its time, whether it matches or not.
//! 2. `late` holds the late rows not yet processed; it shrinks from the end at which the walk starts.
//! 3. Rows are delivered in the direction of the walk; rows of one call ascend.

use crate::leaf::reader::Leaf;
use crate::link::Link;
use crate::node::Spine;
use crate::read::vector::{Vector, Words};
use crate::tree::series_tree::SeriesTree;
use tidalite_base::limits::VECTOR_ROWS;
use tidalite_codec::{ColumnType, Rows, RowsRef, Stats};
use tidalite_pager::{Counters, PageRead, Result};

/// The range of wanted values in a column. NaN and null lie in no range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueRange {
    column: usize,
    ty: ColumnType,
    /// `ColumnType::order_key` of the smallest and, below, of the greatest wanted value.
    low: i64,
    high: i64,
}

impl ValueRange {
    /// Creates the range of values from `low` to `high`, both included, given as raw values of a column of type `ty`.
    /// The range is empty if `low` is above `high`, or if one of them is NaN. The two zeros of a float column count as
    /// one value.
    #[must_use]
    pub fn new(column: usize, ty: ColumnType, low: u64, high: u64) -> Self {
        let empty = Self::empty(column, ty);
        if !ty.is_float() {
            return Self {
                low: ty.order_key(low),
                high: ty.order_key(high),
                ..empty
            };
        }
        let (low, high) = (f64::from_bits(low), f64::from_bits(high));
        if low.is_nan() || high.is_nan() {
            return empty;
        }
        let low = if low == 0.0 { -0.0 } else { low };
        let high = if high == 0.0 { 0.0 } else { high };
        Self {
            low: ty.order_key(low.to_bits()),
            high: ty.order_key(high.to_bits()),
            ..empty
        }
    }

    /// Creates a range that contains no value.
    #[must_use]
    pub fn empty(column: usize, ty: ColumnType) -> Self {
        let (low, high) = (0, -1);
        Self {
            column,
            ty,
            low,
            high,
        }
    }

    /// The index of the column whose values are compared.
    #[must_use]
    pub fn column(&self) -> usize {
        self.column
    }

    pub(super) fn ty(&self) -> ColumnType {
        self.ty
    }

    pub(super) fn expect_type(&self, ty: ColumnType) {
        assert_eq!(ty, self.ty, "a range of the column's type");
    }

    /// True if a raw value of the column lies in the range.
    #[must_use]
    #[inline]
    pub fn contains(&self, word: u64) -> bool {
        let key = self.ty.order_key(word);
        self.low <= key && key <= self.high && self.ty.null() != Some(word)
    }

    /// True if rows with these statistics may have a value in the range.
    fn may_contain(&self, stats: &Stats) -> bool {
        let (Some((min, _)), Some((max, _))) = (stats.min(), stats.max()) else {
            return false;
        };
        self.ty.order_key(min) <= self.high && self.low <= self.ty.order_key(max)
    }

    /// True if all rows with these statistics have a value in the range.
    fn contains_all(&self, stats: &Stats) -> bool {
        let (Some(min), Some(max)) = (stats.min_word(), stats.max_word()) else {
            return false;
        };
        stats.value_count() == stats.count()
            && self.low <= self.ty.order_key(min)
            && self.ty.order_key(max) <= self.high
    }
}

/// How many rows of a part of the tree match, as far as its statistics show this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Matched {
    Nothing,
    Some,
    All,
}

/// Compares a part of the tree with the ranges by its statistics; `stats` returns the statistics for a range by the
/// range's number.
#[inline]
pub(super) fn match_statistics(
    ranges: &[ValueRange],
    mut stats: impl FnMut(usize, &ValueRange) -> Result<Stats>,
) -> Result<Matched> {
    let mut matched = Matched::All;
    for (number, range) in ranges.iter().enumerate() {
        let stats = stats(number, range)?;
        if !range.may_contain(&stats) {
            return Ok(Matched::Nothing);
        }
        if !range.contains_all(&stats) {
            matched = Matched::Some;
        }
    }
    Ok(matched)
}

/// True if a row in a part of the tree with these statistics may match.
pub(super) fn may_match(
    ranges: &[ValueRange],
    stats: impl FnMut(usize, &ValueRange) -> Result<Stats>,
) -> Result<bool> {
    Ok(match_statistics(ranges, stats)? != Matched::Nothing)
}

/// True if a row with these values lies in all ranges; `word` returns the row's value in a column.
#[inline]
pub(super) fn row_matches(ranges: &[ValueRange], word: impl Fn(usize) -> u64) -> bool {
    ranges
        .iter()
        .all(|range| range.contains(word(range.column)))
}

/// Direction in which rows are delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the first row to the last.
    Forward,
    /// From the last row to the first.
    Backward,
}

impl Words for Rows {
    fn words(&self, column: usize) -> &[u64] {
        &self.columns[column]
    }
}

pub(super) struct Filter<'a, R, F> {
    r: &'a R,
    tree: &'a SeriesTree,
    late: RowsRef<'a>,
    interval: (i64, i64),
    ranges: &'a [ValueRange],
    wanted: Vec<bool>,
    direction: Direction,
    found: u64,
    f: F,
    /// Decoded times of a vector, and below, the decoded values of one column at a time.
    times: Vec<i64>,
    words: Vec<u64>,
    /// Indexes of the matching rows in the vector.
    matches: Vec<usize>,
    /// The rows to deliver next; columns that were not requested stay empty.
    out: Rows,
}

impl<'a, R: PageRead, F: FnMut(&Vector<'_>)> Filter<'a, R, F> {
    pub(super) fn new(
        r: &'a R,
        tree: &'a SeriesTree,
        late: RowsRef<'a>,
        interval: (i64, i64),
        ranges: &'a [ValueRange],
        columns: &[usize],
        f: F,
    ) -> Self {
        let types = tree.types.len();
        let mut wanted = vec![false; types];
        for &c in columns {
            wanted[c] = true;
        }
        Self {
            r,
            tree,
            late: if interval.0 <= interval.1 {
                late.between(interval.0, interval.1)
            } else {
                late.slice(0..0)
            },
            interval,
            ranges,
            wanted,
            direction: Direction::Forward,
            found: 0,
            f,
            times: vec![0; VECTOR_ROWS],
            words: vec![0; VECTOR_ROWS],
            matches: Vec::with_capacity(VECTOR_ROWS),
            out: Rows::new(types),
        }
    }

    pub(super) fn run(mut self, direction: Direction) -> Result<u64> {
        self.direction = direction;
        if self.interval.0 <= self.interval.1 {
            let tree = self.tree;
            let tops: Vec<_> = tree.tops_with_levels().collect();
            for i in self.order(0, tops.len()) {
                let (level, entry) = tops[i];
                self.visit(&entry.link, level, |_, range| Ok(entry.stats[range.column]))?;
            }
            self.late_rows(0..self.late.len());
        }
        assert!(self.late.is_empty(), "every late row was processed");
        debug_assert!(self.out.times.is_empty(), "every match was delivered");
        Ok(self.found)
    }

    /// The numbers from `low` up to but excluding `high`, in the direction of the walk.
    fn order(&self, low: usize, high: usize) -> impl Iterator<Item = usize> + use<R, F> {
        let forward = self.direction == Direction::Forward;
        (low..high).map(move |i| if forward { i } else { low + (high - 1 - i) })
    }

    fn visit(
        &mut self,
        link: &Link,
        level: u8,
        stats: impl FnMut(usize, &ValueRange) -> Result<Stats>,
    ) -> Result<()> {
        if link.outside(self.interval.0, self.interval.1) || !may_match(self.ranges, stats)? {
            return Ok(());
        }
        if level == 0 {
            self.leaf(link)
        } else {
            self.node(link, level)
        }
    }

    fn node(&mut self, link: &Link, level: u8) -> Result<()> {
        let (r, tree) = (self.r, self.tree);
        let spine = Spine::open(r, link, level, tree.types.len())?;
        let blocks = self.ranges.iter();
        let blocks = blocks.map(|range| spine.stats(r, range.column, range.ty));
        let blocks = blocks.collect::<Result<Vec<_>>>()?;
        for i in self.order(0, spine.len()) {
            self.visit(&spine.link(i), level - 1, |number, _| blocks[number].get(i))?;
        }
        Ok(())
    }

    fn leaf(&mut self, link: &Link) -> Result<()> {
        let (r, tree) = (self.r, self.tree);
        let leaf = Leaf::open(r, link, &tree.types)?;
        let (from, to) = self.interval;
        for v in self.order(0, leaf.vectors()) {
            let (begin, end) = leaf.span(v);
            if end < from || to < begin {
                continue;
            }
            if may_match(self.ranges, |_, range| {
                leaf.stats(v, range.column, range.ty)
            })? {
                self.vector(&leaf, v)?;
            }
        }
        Ok(())
    }

    /// Finds the matching rows of a vector and delivers them, merged with the late rows (rows not in the tree yet)
    /// within the vector's time span.
    fn vector(&mut self, leaf: &Leaf<'a>, v: usize) -> Result<()> {
        Counters::bump(&self.r.counters().vectors_decoded);
        let rows = leaf.rows_of(v);
        self.matches.clear();
        for (number, range) in self.ranges.iter().enumerate() {
            leaf.column(self.r, v, range.column, &mut self.words[..rows])?;
            let words = &self.words[..rows];
            if number == 0 {
                let matching = words.iter().enumerate();
                let matching = matching.filter(|&(_, &word)| range.contains(word));
                self.matches.extend(matching.map(|(row, _)| row));
            } else {
                self.matches.retain(|&row| range.contains(words[row]));
            }
            if self.matches.is_empty() {
                return Ok(());
            }
        }
        if self.ranges.is_empty() {
            self.matches.extend(0..rows);
        }
        leaf.times(self.r, v, &mut self.times[..rows])?;
        let (from, to) = self.interval;
        let (times, late) = (&self.times, self.late);
        self.matches.retain(|&i| {
            let t = times[i];
            from <= t && t <= to && late.times().binary_search(&t).is_err()
        });
        debug_assert!(self.matches.is_sorted(), "matches ascend");
        let (begin, end) = leaf.span(v);
        let inside = late.lower_bound(begin)..late.times().partition_point(|&t| t <= end);
        match self.direction {
            Direction::Forward => self.late_rows(0..inside.start),
            Direction::Backward => self.late_rows(inside.end..late.len()),
        }
        // Computes the range again, because rows were delivered and removed from `late`.
        let inside = self.late.lower_bound(begin)..self.late.times().partition_point(|&t| t <= end);
        let within = self.late.slice(inside.clone());
        self.late = match self.direction {
            Direction::Forward => self.late.slice(inside.end..self.late.len()),
            Direction::Backward => self.late.slice(0..inside.start),
        };
        let late_matches: Vec<usize> = (0..within.len())
            .filter(|&i| row_matches(self.ranges, |c| within.column(c)[i]))
            .collect();
        self.merge(leaf, v, within, &late_matches)?;
        self.deliver();
        Ok(())
    }

    /// Merges the matching rows of the vector and the matching late rows into `out`, in time order.
    fn merge(
        &mut self,
        leaf: &Leaf<'a>,
        v: usize,
        late: RowsRef<'_>,
        late_matches: &[usize],
    ) -> Result<()> {
        // Source of each row of the result: an index below the vector's row count stands for a row of the vector;
        // larger indexes stand for late rows.
        let rows = leaf.rows_of(v);
        let mut sources: Vec<usize> = Vec::with_capacity(self.matches.len() + late_matches.len());
        let mut rest = late_matches.iter().peekable();
        for &i in &self.matches {
            while let Some(&&j) = rest.peek()
                && late.times()[j] < self.times[i]
            {
                sources.push(rows + j);
                rest.next();
            }
            sources.push(i);
        }
        sources.extend(rest.map(|&j| rows + j));
        let pick = |own: &[u64], late: &[u64], out: &mut Vec<u64>| {
            out.extend(sources.iter().map(|&i| match i.checked_sub(rows) {
                None => own[i],
                Some(j) => late[j],
            }));
        };
        let times = sources.iter().map(|&i| match i.checked_sub(rows) {
            None => self.times[i],
            Some(j) => late.times()[j],
        });
        self.out.times.extend(times);
        if self.out.times.is_empty() {
            return Ok(());
        }
        // The column that was decoded last is copied first, because its values are still in the buffer.
        let decoded = self.ranges.last().map(|range| range.column);
        let others = (0..self.wanted.len()).filter(|&c| decoded != Some(c));
        for c in decoded.into_iter().chain(others) {
            if !self.wanted[c] {
                continue;
            }
            if decoded != Some(c) {
                leaf.column(self.r, v, c, &mut self.words[..rows])?;
            }
            pick(&self.words, late.column(c), &mut self.out.columns[c]);
        }
        Ok(())
    }

    /// Delivers the matching rows of this range of late rows, and removes all late rows of the range.
    fn late_rows(&mut self, rows: std::ops::Range<usize>) {
        let passed = self.late.slice(rows.clone());
        for at in 0..passed.len() {
            let at = match self.direction {
                Direction::Forward => at,
                Direction::Backward => passed.len() - 1 - at,
            };
            if !row_matches(self.ranges, |c| passed.column(c)[at]) {
                continue;
            }
            self.out.times.push(passed.times()[at]);
            for (c, column) in self.out.columns.iter_mut().enumerate() {
                if self.wanted[c] {
                    column.push(passed.column(c)[at]);
                }
            }
            if self.out.times.len() == VECTOR_ROWS {
                self.deliver_in_direction();
            }
        }
        self.deliver_in_direction();
        self.late = match self.direction {
            Direction::Forward => self.late.slice(rows.end..self.late.len()),
            Direction::Backward => self.late.slice(0..rows.start),
        };
    }

    /// Delivers rows that were collected in the direction of the walk; sorts them in ascending order first.
    fn deliver_in_direction(&mut self) {
        if self.direction == Direction::Backward {
            self.out.times.reverse();
            self.out
                .columns
                .iter_mut()
                .for_each(|column| column.reverse());
        }
        self.deliver();
    }

    fn deliver(&mut self) {
        let rows = self.out.times.len();
        debug_assert!(
            self.out
                .columns
                .iter()
                .zip(&self.wanted)
                .all(|(column, &wanted)| column.len() == if wanted { rows } else { 0 }),
            "a value of each wanted column for each row"
        );
        self.found += rows as u64;
        let mut parts: Vec<_> = (0..rows)
            .step_by(VECTOR_ROWS)
            .map(|at| at..rows.min(at + VECTOR_ROWS))
            .collect();
        if self.direction == Direction::Backward {
            parts.reverse();
        }
        for part in parts {
            (self.f)(&Vector::of(&self.out.times, part, &self.out));
        }
        self.out.times.clear();
        self.out.columns.iter_mut().for_each(Vec::clear);
    }
}
