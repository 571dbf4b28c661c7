//! Buffered rows of one series that is read inside its own write transaction, or that keeps all rows with the same time
//! and has received a row that was not later than all others.
//!
//! Invariants: 1. The first `sorted` rows are sorted; the rows after them are newer, in arrival order.
//! 2. If a time has rows here, the overlay has all rows of that time, and they replace the stored ones. If rows with
//!    equal times are kept (`keeps_all`), the caller must copy the stored rows of a time to the overlay before it
//!    pushes another.

use tidalite_codec::{Rows, RowsRef};

#[derive(Debug)]
pub(super) struct Overlay {
    rows: Rows,
    sorted: usize,
    /// Whether all rows with the same time are kept, in arrival order; if false, only the newest row of each time is
    /// kept.
    keeps_all: bool,
}

/// Maximum number of unsorted rows that a lookup scans; if there are more, it sorts the overlay first.
const SCANNED_ROWS_MAX: usize = 256;

impl Overlay {
    /// Creates an overlay of the rows that a series had in the log. If all rows with the same time are kept, the rows
    /// ascend in time.
    pub(super) fn new(rows: Rows, keeps_all: bool) -> Self {
        debug_assert!(
            !keeps_all || rows.view().is_sorted_unique(),
            "rows of the log ascend"
        );
        Self {
            sorted: if keeps_all { rows.len() } else { 0 },
            rows,
            keeps_all,
        }
    }

    /// Chooses whether all rows with the same time are kept or only the newest one, from the next row on. Existing rows
    /// do not change.
    pub(super) fn keep_all(&mut self, keeps_all: bool) {
        self.sort();
        self.keeps_all = keeps_all;
    }

    /// Number of rows in the overlay with this time.
    pub(super) fn rows_at(&mut self, time: i64) -> usize {
        if self.rows.len() - self.sorted > SCANNED_ROWS_MAX {
            self.sort();
        }
        debug_assert!(self.sorted <= self.rows.len(), "sorted rows are rows");
        let sorted = self.rows.slice(0..self.sorted).between(time, time).len();
        let rest = self.rows.times[self.sorted..].iter();
        sorted + rest.filter(|&&other| other == time).count()
    }

    /// Appends the rows of the overlay with this time to `rows`, in arrival order.
    pub(super) fn copy_rows_at(&mut self, time: i64, rows: &mut Rows) {
        if self.rows.len() - self.sorted > SCANNED_ROWS_MAX {
            self.sort();
        }
        debug_assert!(self.sorted <= self.rows.len(), "sorted rows are rows");
        rows.extend(self.rows.slice(0..self.sorted).between(time, time));
        for row in self.sorted..self.rows.len() {
            if self.rows.times[row] == time {
                rows.extend(self.rows.slice(row..row + 1));
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.rows.len() * 8 * (1 + self.rows.columns.len())
    }

    pub(super) fn push(&mut self, time: i64, words: &[u64]) {
        let follows = self.sorted == self.rows.len()
            && self
                .rows
                .times
                .last()
                .is_none_or(|&last| last < time || (self.keeps_all && last == time));
        self.rows.push_row(time, words);
        if follows {
            self.sorted = self.rows.len();
        }
    }

    pub(super) fn extend(&mut self, rows: RowsRef<'_>) {
        let follows = self.keeps_all && self.sorted == self.rows.len() && rows.is_sorted() && {
            let (last, first) = (self.rows.times.last(), rows.times().first());
            last.zip(first).is_none_or(|(last, first)| last <= first)
        };
        self.rows.extend(rows);
        if follows {
            self.sorted = self.rows.len();
        }
    }

    pub(super) fn replace_times(&mut self, rows: RowsRef<'_>) {
        debug_assert!(rows.is_sorted(), "replacing rows are sorted by time");
        let (last, first) = (self.sorted().times().last(), rows.times().first());
        if last.zip(first).is_none_or(|(last, first)| last < first) {
            self.rows.extend(rows);
        } else {
            self.rows = Rows::merge_newest(self.rows.view(), rows);
        }
        self.sorted = self.rows.len();
    }

    pub(super) fn sorted(&mut self) -> RowsRef<'_> {
        self.sort();
        self.view()
    }

    /// The rows; `sort` must be called first.
    pub(super) fn view(&self) -> RowsRef<'_> {
        debug_assert!(self.sorted == self.rows.len(), "no row is unsorted");
        self.rows.view()
    }

    pub(super) fn sort(&mut self) {
        if self.sorted < self.rows.len() {
            let mut late = self.rows.slice(self.sorted..self.rows.len()).to_rows();
            if self.keeps_all {
                late.sort_all();
            } else {
                late.sort_newest();
            }
            self.rows.truncate(self.sorted);
            let follows = match (self.rows.times.last(), late.times.first()) {
                (Some(last), Some(first)) => last < first,
                _ => true,
            };
            if follows {
                self.rows.extend(late.view());
            } else if self.keeps_all {
                self.rows = Rows::merge_all(self.rows.view(), late.view());
            } else {
                self.rows = Rows::merge_newest(self.rows.view(), late.view());
            }
            self.sorted = self.rows.len();
        }
        debug_assert!(self.rows.view().is_sorted(), "all rows are sorted by time");
    }

    /// Removes the rows with `from <= time <= to`; returns the number of distinct times among them.
    pub(super) fn delete(&mut self, from: i64, to: i64) -> u64 {
        let rows = self.sorted();
        let begin = rows.lower_bound(from);
        let end = begin + rows.between(from, to).len();
        debug_assert!(end <= self.rows.len(), "the interval ends within the rows");
        self.rows.remove(begin..end);
        self.sorted = self.rows.len();
        (end - begin) as u64
    }

    pub(super) fn keep_from(&mut self, row: usize) {
        debug_assert!(
            row <= self.rows.len(),
            "no more rows are taken than there are"
        );
        self.rows.remove(0..row);
        self.sorted = self.rows.len();
    }
}
