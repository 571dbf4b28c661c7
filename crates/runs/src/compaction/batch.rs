//! Many short stretches, merged at once.
//!
//! Where each run has a few rows of each of many series, what is done once a series costs more than its rows do. So the rows of
//! all series that end within the blocks at hand are brought to their places together, a column at a time.
//!
//! ```text
//! blocks   1 1 2 2 3 3 4 | 1 2 2 3 4 4 | 1 1 2 3 3 4      series below 4 end in all of them: a batch
//! rows     1 1 1 1 1 2 2 2 2 2 3 3 3 3 3                  of each series those of the oldest run first
//! ```
//!
//! Invariants of a batch that was filled:
//! 1. It has all rows that the inputs have, from where their cursors are, of the series from `first` on that are below the
//!    bound; the cursors have not moved.
//! 2. `ends[i]` is where its rows end in the block of cursor `i`.
//! 3. `series_ends[i]` is where the rows of series `first + i` end in `rows`; they begin where those of the one before end.

use crate::run::cursor::RunCursor;
use std::ops::Range;
use tidalite_base::SeriesId;
use tidalite_codec::Rows;

/// Stretches of so many rows on average are merged one by one: copying them whole is quicker.
const STRETCH_ROWS_MAX: usize = 32;

/// Places of series for each row at most: ids that lie far apart are merged one by one.
const PLACES_A_ROW_MAX: u64 = 8;

/// See the head of this file. Its memory is used again.
#[derive(Debug, Default)]
pub(super) struct Batch {
    first: u64,
    ends: Vec<usize>,
    series_ends: Vec<u32>,
    /// Where each row of the inputs goes.
    places: Vec<u32>,
    /// The series of each row.
    pub(super) series: Vec<u64>,
    pub(super) rows: Rows,
}

impl Batch {
    /// Takes the rows of as many series as end within the blocks of the cursors at `class`, about `rows_max` rows; false
    /// when there is nothing to be gained, or when a block is not in order.
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
        true
    }

    /// The series below which all is taken; sets `first` and `ends`.
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
        let stretches = 1 + series.windows(2).filter(|two| two[0] != two[1]).count();
        let total: usize = (0..cursors.len())
            .map(|i| self.rows_of(cursors, i).len())
            .sum();
        let spread = bound.saturating_sub(first);
        let short = series.len() < STRETCH_ROWS_MAX * stretches;
        let dense = spread <= PLACES_A_ROW_MAX.saturating_mul(total as u64);
        self.first = first;
        (total > 0 && short && dense).then_some(bound)
    }

    /// Ends each input's rows before the bound; answers how many there are.
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

    /// The rows that it has of a cursor's block.
    fn rows_of(&self, cursors: &[RunCursor], cursor: usize) -> Range<usize> {
        cursors[cursor].row..self.ends[cursor]
    }

    /// How many rows it has of a cursor's block.
    pub(super) fn taken(&self, cursors: &[RunCursor], cursor: usize) -> usize {
        self.rows_of(cursors, cursor).len()
    }

    /// Finds the place of each row; false when a series lies outside the bounds, which takes a damaged block.
    fn place(&mut self, cursors: &[RunCursor], bound: u64) -> bool {
        // Of a block that is not in order the bound may lie below.
        let first = self.first;
        let width = bound.saturating_sub(first) as usize;
        self.series_ends.clear();
        self.series_ends.resize(width, 0);
        self.places.clear();
        for (cursor, &end) in cursors.iter().zip(&self.ends) {
            for (series, rows) in stretches(&cursor.block.series[cursor.row..end]) {
                let place = series.wrapping_sub(first) as usize;
                match self.series_ends.get_mut(place) {
                    Some(all) => *all += rows,
                    None => return false,
                }
            }
        }
        // How many rows becomes where they begin, and, as they come, where they end.
        let mut begin = 0;
        for rows in &mut self.series_ends {
            begin += std::mem::replace(rows, begin);
        }
        self.places.reserve(begin as usize);
        for (cursor, &end) in cursors.iter().zip(&self.ends) {
            for (series, rows) in stretches(&cursor.block.series[cursor.row..end]) {
                let next = &mut self.series_ends[(series - first) as usize];
                self.places.extend(*next..*next + rows);
                *next += rows;
            }
        }
        true
    }

    /// Where the rows of each series are.
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

    /// Where the rows of each input begin among those of a series that it has.
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
        begins
    }
}

/// Each series and how many rows it has one after the other.
fn stretches(series: &[u64]) -> impl Iterator<Item = (u64, u32)> {
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
