//! Merges many short groups of rows at once.
//!
//! If each run has only a few rows of each of many series, the fixed cost per series exceeds the cost of its rows. The
//! rows of all series that end within the current blocks are therefore moved to their places together, one column at a
//! time.
//!
//! ```text
//! blocks   1 1 2 2 3 3 4 | 1 2 2 3 4 4 | 1 1 2 3 3 4      series below 4 end in all of them: a batch
//! rows     1 1 1 1 1 2 2 2 2 2 3 3 3 3 3                  within a series, rows of the oldest run first
//! ```
//!
//! Invariants of a filled batch:
//! 1. It has all rows of the inputs, from the cursor positions on, whose series is at least `first` and below the
//!    bound; the cursors have not moved.
//! 2. `ends[i]` is the end of its rows in the block of cursor `i`.
//! 3. `series_ends[i]` is the end of the rows of series `first + i` in `rows`; they begin at the end of the preceding
//!    series.

use crate::run::cursor::RunCursor;
use std::ops::Range;
use tidalite_base::SeriesId;
use tidalite_codec::Rows;

/// Maximum average number of rows per series in a batch. Series with more rows are merged one by one, because copying
/// whole ranges is then faster.
const GROUP_ROWS_MAX: usize = 32;

/// Maximum number of series ids that a batch may span, per row. If ids are sparser, series are merged one by one.
const PLACES_A_ROW_MAX: u64 = 8;

/// A batch of rows of many series, which are merged together; the head of this file explains how. Its memory is
/// reused.
#[derive(Debug, Default)]
pub(super) struct BatchMerge {
    first: u64,
    ends: Vec<usize>,
    series_ends: Vec<u32>,
    /// Target position in the batch of each input row.
    places: Vec<u32>,
    /// The series of each row in the batch.
    pub(super) series: Vec<u64>,
    pub(super) rows: Rows,
}

impl BatchMerge {
    /// Fills the batch with about `rows_max` rows: all rows of layout `class` whose series end within the current
    /// blocks of the cursors. Returns false if merging a batch would take longer than merging series one by one, or
    /// if a block is not sorted.
    pub(super) fn fill(
        &mut self,
        cursors: &[RunCursor],
        class: u32,
        columns: usize,
        rows_max: usize,
    ) -> bool {
        let Some(bound) = self.bound(cursors, class, rows_max) else {
            return false;
        };
        if !self.place(cursors, bound) {
            return false;
        }
        debug_assert_eq!(self.ends.len(), cursors.len(), "an end for each input");
        let total = self.places.len();
        self.rows.columns.resize_with(columns, Vec::new);
        self.rows.truncate(total);
        let grown = total - self.rows.len();
        self.rows.grow(grown);
        let mut at = 0;
        for (cursor, &end) in cursors.iter().zip(&self.ends) {
            let from = cursor.row.min(end);
            let places = &self.places[at..at + end - from];
            let source = &cursor.block.rows;
            scatter(&source.times[from..end], places, &mut self.rows.times);
            for (target, source) in self.rows.columns.iter_mut().zip(&source.columns) {
                scatter(&source[from..end], places, target);
            }
            at += end - from;
        }
        self.series.clear();
        for (series, &end) in (self.first..).zip(&self.series_ends) {
            self.series.resize(end as usize, series);
        }
        debug_assert_eq!(self.series.len(), self.rows.len(), "a series a row");
        true
    }

    /// Returns the exclusive upper bound of the series that the batch takes, and sets `first` and `ends`; `None` if
    /// merging series one by one is faster.
    fn bound(&mut self, cursors: &[RunCursor], class: u32, rows_max: usize) -> Option<u64> {
        let (mut first, mut bound, mut greatest) = (u64::MAX, u64::MAX, 0);
        for cursor in cursors {
            if let Some((of, series)) = cursor.place()
                && of == class
            {
                first = first.min(series.0);
                greatest = greatest.max(cursor.series_bound());
                if cursor.may_go_on() {
                    bound = bound.min(cursor.series_bound());
                }
            }
        }
        bound = bound.min(greatest);
        let total = self.end_at(cursors, class, bound);
        if total > rows_max {
            let longest = (0..cursors.len()).max_by_key(|&i| self.rows_of(cursors, i).len())?;
            let of = self.rows_of(cursors, longest);
            let middle = of.start + of.len() * rows_max / total;
            bound = cursors[longest].block.series[middle].max(first.saturating_add(1));
            if self.end_at(cursors, class, bound) > 2 * rows_max {
                return None;
            }
        }
        let longest = (0..cursors.len()).max_by_key(|&i| self.rows_of(cursors, i).len())?;
        let series = &cursors[longest].block.series[self.rows_of(cursors, longest)];
        let groups = 1 + series.windows(2).filter(|two| two[0] != two[1]).count();
        let total: usize = (0..cursors.len())
            .map(|i| self.rows_of(cursors, i).len())
            .sum();
        let spread = bound.saturating_sub(first);
        let short = series.len() < GROUP_ROWS_MAX * groups;
        let dense = spread <= PLACES_A_ROW_MAX.saturating_mul(total as u64);
        self.first = first;
        (total > 0 && short && dense).then_some(bound)
    }

    /// Sets `ends` to the end of the rows below `bound` in the block of each cursor; returns the total number of
    /// these rows.
    fn end_at(&mut self, cursors: &[RunCursor], class: u32, bound: u64) -> usize {
        self.ends.clear();
        let mut total = 0;
        for cursor in cursors {
            let block = &cursor.block;
            let rows = match cursor.place() {
                Some((of, _)) if of == class => {
                    block.series[cursor.row..].partition_point(|&series| series < bound)
                }
                _ => 0,
            };
            total += rows;
            self.ends.push(cursor.row + rows);
        }
        total
    }

    /// The range of rows that the batch takes from the block of a cursor.
    fn rows_of(&self, cursors: &[RunCursor], cursor: usize) -> Range<usize> {
        debug_assert!(
            cursors[cursor].row <= self.ends[cursor],
            "cursors have not moved"
        );
        cursors[cursor].row..self.ends[cursor]
    }

    /// Number of rows that the batch takes from the block of a cursor.
    pub(super) fn taken(&self, cursors: &[RunCursor], cursor: usize) -> usize {
        self.rows_of(cursors, cursor).len()
    }

    /// Computes the target position of each row. Returns false if a series lies outside the bounds, which only
    /// happens with a damaged block.
    fn place(&mut self, cursors: &[RunCursor], bound: u64) -> bool {
        // In a damaged block the series may not ascend, so the bound may be below `first`.
        let first = self.first;
        let width = bound.saturating_sub(first) as usize;
        self.series_ends.clear();
        self.series_ends.resize(width, 0);
        self.places.clear();
        for (cursor, &end) in cursors.iter().zip(&self.ends) {
            for (series, rows) in groups(&cursor.block.series[cursor.row..end]) {
                let place = series.wrapping_sub(first) as usize;
                match self.series_ends.get_mut(place) {
                    Some(all) => *all += rows,
                    None => return false,
                }
            }
        }
        // Turns the row counts into start offsets. Placing the rows then advances each start offset to the end offset
        // of its series.
        let mut begin = 0;
        for rows in &mut self.series_ends {
            begin += std::mem::replace(rows, begin);
        }
        self.places.reserve(begin as usize);
        for (cursor, &end) in cursors.iter().zip(&self.ends) {
            for (series, rows) in groups(&cursor.block.series[cursor.row..end]) {
                let next = &mut self.series_ends[(series - first) as usize];
                self.places.extend(*next..*next + rows);
                *next += rows;
            }
        }
        debug_assert_eq!(self.places.len(), begin as usize, "a target for each row");
        true
    }

    /// Returns each series of the batch that has rows, and the range of its rows.
    pub(super) fn each_series(&self) -> impl Iterator<Item = (SeriesId, Range<usize>)> {
        let mut begin = 0;
        (self.first..)
            .zip(&self.series_ends)
            .filter_map(move |(series, &end)| {
                let rows = begin..end as usize;
                begin = rows.end;
                (!rows.is_empty()).then_some((SeriesId(series), rows))
            })
    }

    /// Returns where the rows of each input begin, relative to the first row of `series` in the batch. Inputs without
    /// rows of the series are skipped.
    pub(super) fn begins(&self, cursors: &[RunCursor], series: SeriesId) -> Vec<usize> {
        let mut begins = Vec::new();
        let mut at = 0;
        for i in 0..cursors.len() {
            let rows = &cursors[i].block.series[self.rows_of(cursors, i)];
            let from = rows.partition_point(|&other| other < series.0);
            let count = rows[from..].partition_point(|&other| other == series.0);
            if count > 0 {
                begins.push(at);
            }
            at += count;
        }
        debug_assert!(begins.is_sorted(), "inputs follow each other");
        begins
    }
}

/// Groups consecutive equal series ids: returns each id and how often it is repeated.
fn groups(series: &[u64]) -> impl Iterator<Item = (u64, u32)> {
    let mut rest = series;
    std::iter::from_fn(move || {
        let first = *rest.first()?;
        let rows = rest.iter().take_while(|&&other| other == first).count();
        rest = &rest[rows..];
        Some((first, rows as u32))
    })
}

fn scatter<T: Copy>(source: &[T], places: &[u32], target: &mut [T]) {
    for (&word, &place) in source.iter().zip(places) {
        target[place as usize] = word;
    }
}
