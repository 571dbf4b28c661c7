//! A columnar batch of rows: a timestamp and one 64-bit word per column.
//!
//! Invariant: `times` and every column have the same length. The owner is responsible for order and uniqueness of the
//! times; [`Rows::sort_newest`] establishes both.
//!
//! A batch that represents a part of a series may hold several rows with one time, in order of arrival. Such rows are
//! treated as a unit: when two batches share a time, all rows of the newer batch with that time replace all rows of the
//! older batch with that time.

use crate::kernel;
use core::ops::Range;

/// A batch of rows that owns its memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// The timestamp of each row.
    pub times: Vec<i64>,
    /// For each column, the word of each row.
    pub columns: Vec<Vec<u64>>,
}

impl Rows {
    /// Creates an empty batch with `columns` columns.
    #[must_use]
    pub fn new(columns: usize) -> Self {
        Self::with_capacity(columns, 0)
    }

    /// Creates an empty batch with capacity for `rows` rows of `columns` columns.
    #[must_use]
    pub fn with_capacity(columns: usize, rows: usize) -> Self {
        Self {
            times: Vec::with_capacity(rows),
            columns: (0..columns).map(|_| Vec::with_capacity(rows)).collect(),
        }
    }

    /// The number of rows.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// True if the batch has no rows.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Removes all rows, but keeps the columns and their memory.
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Keeps only the first `rows` rows.
    pub fn truncate(&mut self, rows: usize) {
        self.times.truncate(rows);
        for column in &mut self.columns {
            column.truncate(rows);
        }
    }

    /// Reserves capacity for `rows` more rows.
    pub fn reserve(&mut self, rows: usize) {
        self.times.reserve(rows);
        for column in &mut self.columns {
            column.reserve(rows);
        }
    }

    /// Appends one row.
    ///
    /// # Panics
    /// If `words` does not have one word per column.
    #[inline]
    pub fn push_row(&mut self, time: i64, words: &[u64]) {
        assert_eq!(words.len(), self.columns.len(), "one word a column");
        self.times.push(time);
        for (column, &word) in self.columns.iter_mut().zip(words) {
            column.push(word);
        }
    }

    /// Appends all rows of `other`.
    ///
    /// # Panics
    /// If the numbers of columns differ.
    pub fn extend(&mut self, other: RowsRef<'_>) {
        assert_eq!(other.column_count(), self.columns.len(), "the same columns");
        self.times.extend_from_slice(other.times());
        for (i, column) in self.columns.iter_mut().enumerate() {
            column.extend_from_slice(other.column(i));
        }
    }

    /// Appends `rows` rows of zeros for a decoder to fill. Returns the range of the new rows.
    pub fn grow(&mut self, rows: usize) -> Range<usize> {
        let from = self.len();
        self.times.resize(from + rows, 0);
        for column in &mut self.columns {
            column.resize(from + rows, 0);
        }
        from..from + rows
    }

    /// Removes the rows of `range`.
    ///
    /// # Panics
    /// If the range lies outside the batch.
    pub fn remove(&mut self, range: Range<usize>) {
        self.times.drain(range.clone());
        for column in &mut self.columns {
            column.drain(range.clone());
        }
    }

    /// A borrowed view of all rows.
    #[must_use]
    #[inline]
    pub fn view(&self) -> RowsRef<'_> {
        RowsRef {
            times: &self.times,
            start: 0,
            columns: Columns::Owned(&self.columns),
        }
    }

    /// A borrowed view of the rows of `range`.
    ///
    /// # Panics
    /// If the range lies outside the batch.
    #[must_use]
    #[inline]
    pub fn slice(&self, range: Range<usize>) -> RowsRef<'_> {
        self.view().slice(range)
    }

    /// Sorts the rows by time; of several rows with one time only the row that was pushed last is kept.
    ///
    /// Cost: one pass if the rows are already sorted and their times unique.
    pub fn sort_newest(&mut self) {
        if self.view().is_sorted_unique() {
            return;
        }
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_by_key(|&i| self.times[i]); // stable sort: among rows with equal times the last pushed stays last
        let times = &self.times;
        let mut kept = Vec::with_capacity(order.len());
        for (at, &i) in order.iter().enumerate() {
            if order
                .get(at + 1)
                .is_none_or(|&next| times[next] != times[i])
            {
                kept.push(i);
            }
        }
        self.take_in_order(&kept);
    }

    /// Sorts the concatenated rows of several batches, oldest batch first; `begins` holds the number of the first row
    /// of each batch, ascending. For each time only the rows of the newest batch that has this time are kept, in their
    /// order.
    ///
    /// Cost: one pass if the rows are already sorted and their times unique.
    pub fn sort_newest_of(&mut self, begins: &[usize]) {
        if self.view().is_sorted_unique() {
            return;
        }
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_by_key(|&i| self.times[i]); // stable sort: among rows with equal times the newest come last
        let times = &self.times;
        let mut kept = Vec::with_capacity(order.len());
        for of_one_time in order.chunk_by(|&a, &b| times[a] == times[b]) {
            let last = of_one_time[of_one_time.len() - 1];
            let batch = begins.partition_point(|&begin| begin <= last);
            let begin = batch.checked_sub(1).map_or(0, |batch| begins[batch]);
            let older = of_one_time.partition_point(|&i| i < begin);
            kept.extend_from_slice(&of_one_time[older..]);
        }
        self.take_in_order(&kept);
    }

    /// Sorts the rows by time; rows with equal times keep the order in which they were pushed.
    ///
    /// Cost: one pass if the rows are already sorted.
    pub fn sort_all(&mut self) {
        if self.times.is_sorted() {
            return;
        }
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_by_key(|&i| self.times[i]); // stable
        self.take_in_order(&order);
    }

    fn take_in_order(&mut self, order: &[usize]) {
        for column in &mut self.columns {
            *column = order.iter().map(|&i| column[i]).collect();
        }
        self.times = order.iter().map(|&i| self.times[i]).collect();
    }

    /// Merges two sorted batches; where times are equal, the rows of `older` come first.
    ///
    /// # Panics
    /// If the numbers of columns differ.
    #[must_use]
    pub fn merge_all(older: RowsRef<'_>, newer: RowsRef<'_>) -> Self {
        let mut merged = Self::with_capacity(older.column_count(), older.len() + newer.len());
        merged.extend(older);
        merged.extend(newer);
        merged.sort_all(); // stable, and fast for two sorted runs
        merged
    }

    /// Merges two sorted batches. At a time that both batches have, only the rows of `newer` are kept.
    ///
    /// Cost: linear in the number of rows; ranges that do not interleave are copied whole.
    ///
    /// # Panics
    /// If the numbers of columns differ.
    #[must_use]
    pub fn merge_newest(older: RowsRef<'_>, newer: RowsRef<'_>) -> Self {
        assert_eq!(
            older.column_count(),
            newer.column_count(),
            "the same columns"
        );
        debug_assert!(older.times().is_sorted() && newer.times().is_sorted());
        let mut merged = Self::with_capacity(older.column_count(), older.len() + newer.len());
        let (mut o, mut n) = (0, 0);
        while o < older.len() && n < newer.len() {
            let stop = newer.times()[n];
            let before = older.lower_bound_from(o, stop);
            merged.extend(older.slice(o..before));
            o = before;
            while o < older.len() && older.times()[o] == stop {
                o += 1;
            }
            // Takes the newer rows up to and including the time of the next older row.
            let end = match older.times().get(o) {
                Some(&next) => newer.lower_bound_from(n + 1, next),
                None => newer.len(),
            };
            merged.extend(newer.slice(n..end));
            n = end;
        }
        merged.extend(older.slice(o..older.len()));
        merged.extend(newer.slice(n..newer.len()));
        merged
    }
}

/// A borrowed view of rows: a slice of times, and the same slice of every column. Cheap to copy.
#[derive(Clone, Copy, Debug)]
pub struct RowsRef<'a> {
    times: &'a [i64],
    /// Index in every column of the first row of this view.
    start: usize,
    columns: Columns<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Columns<'a> {
    Owned(&'a [Vec<u64>]),
    Slices(&'a [&'a [u64]]),
}

impl<'a> RowsRef<'a> {
    /// Creates a view of the rows of borrowed columns.
    ///
    /// # Panics
    /// If a column does not have as many words as there are times.
    #[must_use]
    pub fn new(times: &'a [i64], columns: &'a [&'a [u64]]) -> Self {
        assert!(
            columns.iter().all(|column| column.len() == times.len()),
            "one word a row"
        );
        Self {
            times,
            start: 0,
            columns: Columns::Slices(columns),
        }
    }

    /// The number of rows.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// True if there are no rows.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// The number of columns.
    #[must_use]
    #[inline]
    pub fn column_count(&self) -> usize {
        match self.columns {
            Columns::Owned(columns) => columns.len(),
            Columns::Slices(columns) => columns.len(),
        }
    }

    /// The timestamps.
    #[must_use]
    #[inline]
    pub fn times(&self) -> &'a [i64] {
        self.times
    }

    /// The words of column `i`.
    ///
    /// # Panics
    /// If `i` is not the number of a column.
    #[must_use]
    #[inline]
    pub fn column(&self, i: usize) -> &'a [u64] {
        let words: &'a [u64] = match self.columns {
            Columns::Owned(columns) => &columns[i],
            Columns::Slices(columns) => columns[i],
        };
        &words[self.start..self.start + self.times.len()]
    }

    /// The rows of `range`.
    ///
    /// # Panics
    /// If the range lies outside these rows.
    #[must_use]
    #[inline]
    pub fn slice(&self, range: Range<usize>) -> RowsRef<'a> {
        RowsRef {
            times: &self.times[range.clone()],
            start: self.start + range.start,
            columns: self.columns,
        }
    }

    /// The index of the first row at or after `time`, or `len()` if all rows are earlier. The rows must be sorted.
    #[must_use]
    pub fn lower_bound(&self, time: i64) -> usize {
        self.times.partition_point(|&t| t < time)
    }

    /// Like [`RowsRef::lower_bound`], but searches from row `from` on with growing steps, which is cheap if the result
    /// is near.
    fn lower_bound_from(&self, from: usize, time: i64) -> usize {
        let mut step = 1;
        let mut low = from;
        while low + step < self.len() && self.times[low + step] < time {
            low += step;
            step *= 2;
        }
        let high = (low + step).min(self.len());
        low + self.times[low..high].partition_point(|&t| t < time)
    }

    /// The rows with `from <= time <= to`. The rows must be sorted.
    #[must_use]
    pub fn between(&self, from: i64, to: i64) -> RowsRef<'a> {
        let begin = self.lower_bound(from);
        let end = self.times.partition_point(|&t| t <= to);
        self.slice(begin..end.max(begin))
    }

    /// True if the times ascend; equal times are allowed.
    ///
    /// Cost: twice the cost of `is_sorted_unique` if that function returns false.
    #[must_use]
    pub fn is_sorted(&self) -> bool {
        self.is_sorted_unique() || self.times.is_sorted()
    }

    /// The largest number of rows, at most `rows`, after which a row with another time begins; 0 if there is no such
    /// number. The rows must be sorted.
    #[must_use]
    pub fn cut(&self, rows: usize) -> usize {
        match self.times.get(rows) {
            None => self.len(),
            Some(&next) if rows > 0 && self.times[rows - 1] == next => self.lower_bound(next),
            Some(_) => rows,
        }
    }

    /// True if the times ascend strictly.
    #[must_use]
    pub fn is_sorted_unique(&self) -> bool {
        kernel::ascending(self.times)
    }

    /// A copy of these rows.
    #[must_use]
    pub fn to_rows(&self) -> Rows {
        let mut rows = Rows::with_capacity(self.column_count(), self.len());
        rows.extend(*self);
        rows
    }
}

impl PartialEq for RowsRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.times == other.times
            && self.column_count() == other.column_count()
            && (0..self.column_count()).all(|i| self.column(i) == other.column(i))
    }
}

impl Eq for RowsRef<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::few;
    use std::collections::BTreeMap;

    fn batch(times: &[i64], tag: u64) -> Rows {
        let mut rows = Rows::new(2);
        for (i, &time) in times.iter().enumerate() {
            rows.push_row(time, &[tag, i as u64]);
        }
        rows
    }

    #[test]
    fn slices_cut_every_column() {
        let rows = batch(&[1, 2, 3, 4, 5], 7);
        let middle = rows.slice(1..4).slice(1..3);
        assert_eq!(middle.times(), [3, 4]);
        assert_eq!(middle.column(1), [2, 3]);
        let columns = [rows.columns[0].as_slice(), rows.columns[1].as_slice()];
        assert_eq!(RowsRef::new(&rows.times, &columns).slice(2..4), middle);
        assert_eq!(rows.view().between(2, 4), rows.slice(1..4));
        assert!(rows.view().between(6, 1).is_empty());
    }

    #[test]
    fn merging_equals_a_map() {
        let mut seed = 1u64;
        let mut next = move |n: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % n
        };
        for round in 0..few(300) {
            let mut pick = |count: u64, span: u64, shift: i64| {
                let mut times: Vec<i64> = (0..count).map(|_| next(span) as i64 + shift).collect();
                times.sort_unstable();
                times.dedup();
                times
            };
            let older = batch(&pick(round % 40, 60, 0), 1);
            let newer = batch(&pick((round * 7) % 30, 40, (round % 5) as i64 * 10), 2);
            let mut model = BTreeMap::new();
            for rows in [&older, &newer] {
                for (i, &time) in rows.times.iter().enumerate() {
                    model.insert(time, [rows.columns[0][i], rows.columns[1][i]]);
                }
            }
            let mut expected = Rows::new(2);
            for (time, words) in model {
                expected.push_row(time, &words);
            }
            let merged = Rows::merge_newest(older.view(), newer.view());
            assert_eq!(merged, expected, "round {round}");
        }
    }

    #[test]
    fn rows_of_one_time_go_together() {
        // Three batches of 3, 2 and 3 rows; the second column holds the row numbers.
        let mut rows = batch(&[1, 4, 4, 3, 4, 3, 3, 5], 0);
        rows.sort_newest_of(&[0, 3, 5]);
        assert_eq!(rows.times, [1, 3, 3, 4, 5]);
        assert_eq!(rows.columns[1], [0, 5, 6, 4, 7]);
        let older = batch(&[1, 2, 2, 5, 5, 5, 8], 1);
        let newer = batch(&[0, 2, 2, 2, 5, 9, 9], 2);
        let merged = Rows::merge_newest(older.view(), newer.view());
        assert_eq!(merged.times, [0, 1, 2, 2, 2, 5, 8, 9, 9]);
        assert_eq!(merged.columns[0], [2, 1, 2, 2, 2, 2, 1, 2, 2]);
        let merged = Rows::merge_all(older.view(), newer.view());
        assert_eq!(merged.times.len(), 14);
        assert_eq!(merged.columns[0][..7], [2, 1, 1, 1, 2, 2, 2]);
        assert_eq!(merged.columns[1][..7], [0, 0, 1, 2, 1, 2, 3]);
        assert!(merged.view().is_sorted() && !merged.view().is_sorted_unique());
        let cuts = [0, 1, 2, 3, 4, 5, 6, 7, 8].map(|rows| older.view().cut(rows));
        assert_eq!(cuts, [0, 1, 1, 3, 3, 3, 6, 7, 7]);
        assert_eq!(batch(&[4, 4, 4], 0).view().cut(2), 0);
    }

    #[test]
    fn sorting_keeps_the_last_pushed() {
        let mut rows = batch(&[3, 1, 3, 2, 1], 0);
        rows.sort_newest();
        assert_eq!(rows.times, [1, 2, 3]);
        assert_eq!(rows.columns[1], [4, 3, 2]);
        let range = rows.grow(2);
        assert_eq!(range, 3..5);
        rows.remove(0..4);
        assert_eq!((rows.len(), rows.columns[0].len()), (1, 1));
    }
}
