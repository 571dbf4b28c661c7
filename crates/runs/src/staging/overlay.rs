//! The staged rows of one series that is read inside its writing transaction.
//!
//! Invariant: the first `sorted` rows are sorted without repetitions; those after them are newer, in the order in which they came.

use tidalite_codec::{Rows, RowsRef};

#[derive(Debug)]
pub(super) struct Overlay {
    rows: Rows,
    sorted: usize,
}

impl Overlay {
    pub(super) fn new(rows: Rows) -> Self {
        Self { rows, sorted: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.rows.len() * 8 * (1 + self.rows.columns.len())
    }

    pub(super) fn push(&mut self, time: i64, words: &[u64]) {
        let follows = self.sorted == self.rows.len()
            && self.rows.times.last().is_none_or(|&last| last < time);
        self.rows.push_row(time, words);
        if follows {
            self.sorted = self.rows.len();
        }
    }

    pub(super) fn extend(&mut self, rows: RowsRef<'_>) {
        self.rows.extend(rows);
    }

    pub(super) fn sorted(&mut self) -> RowsRef<'_> {
        if self.sorted < self.rows.len() {
            let mut late = self.rows.slice(self.sorted..self.rows.len()).to_rows();
            late.sort_newest();
            self.rows.truncate(self.sorted);
            let follows = match (self.rows.times.last(), late.times.first()) {
                (Some(last), Some(first)) => last < first,
                _ => true,
            };
            if follows {
                self.rows.extend(late.view());
            } else {
                self.rows = Rows::merge_newest(self.rows.view(), late.view());
            }
            self.sorted = self.rows.len();
        }
        self.rows.view()
    }

    /// Removes rows of an interval, bounds included; answers how many.
    pub(super) fn delete(&mut self, from: i64, to: i64) -> u64 {
        let rows = self.sorted();
        let begin = rows.lower_bound(from);
        let end = begin + rows.between(from, to).len();
        self.rows.remove(begin..end);
        self.sorted = self.rows.len();
        (end - begin) as u64
    }

    pub(super) fn keep_from(&mut self, row: usize) {
        self.rows.remove(0..row);
        self.sorted = self.rows.len();
    }
}
