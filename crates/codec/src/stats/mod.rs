//! Statistics over a range of rows of one column.
//!
//! ```text
//! bytes   the 104-byte encoding in a tree node
//! fields  the variable-length integers in a directory or record; decimals: floats among them as integers
//! fold    figures from the passes of `kernel`
//! sums    sums of floats, with extended range
//! squares sums of squares, with extended range
//! ```
//!
//! 1. NaN counts in `count`, `nan_count`, `first` and `last` only; a null counts in `count` and in `null_count`.
//! 2. Extremes use the order of bits (`ColumnType::order_key`), in which -0.0 lies just before +0.0: equal rows have
//!    equal extremes in any order of the rows. Among equal bits the earliest time is kept. A filter uses the same
//!    order, and a zero bound includes both zeros (`ValueRange` of the crate series), so the extremes never rule out
//!    a row that matches.
//! 3. Equal rows give equal bits on every processor: floats are summed in eight fixed lanes.
//! 4. Sums are within 2^-50 of the exact value relative to the sum of the magnitudes, even if partial sums exceed the
//!    range of floats. With an infinite value the sum equals the result of plain addition.
//! 5. Statistics with only some figures ([`Parts`]) have the same bits in these as statistics with all figures. The
//!    other figures are zero, and are neither reported nor written.

pub(crate) mod bytes;
mod decimals;
pub(crate) mod fields;
pub(crate) mod fold;
mod squares;
mod sums;

use crate::column::ColumnType;
use crate::loops::dd::Dd;
use crate::loops::parts::Parts;

/// Statistics of a range of rows of one column: count, sums, extremes with their times, first and last word.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stats {
    ty: ColumnType,
    /// The figures that these statistics have, besides the counts.
    parts: Parts,
    count: u64,
    nan_count: u64,
    null_count: u64,
    /// The sum of a float column.
    float_sum: Dd,
    /// The sum of an integer column.
    int_sum: i128,
    squares: Dd,
    min: u64,
    min_time: i64,
    max: u64,
    max_time: i64,
    first: u64,
    last: u64,
}

impl Stats {
    /// Creates the statistics of no rows, with all figures.
    #[must_use]
    pub fn empty(ty: ColumnType) -> Self {
        Self::empty_with(Parts::ALL, ty)
    }

    /// Creates the statistics of no rows, with only the figures in `parts`.
    #[must_use]
    #[inline]
    pub fn empty_with(parts: Parts, ty: ColumnType) -> Self {
        Self {
            ty,
            parts,
            count: 0,
            nan_count: 0,
            null_count: 0,
            float_sum: Dd::default(),
            int_sum: 0,
            squares: Dd::default(),
            min: 0,
            min_time: 0,
            max: 0,
            max_time: 0,
            first: 0,
            last: 0,
        }
    }

    /// Computes the statistics of rows in ascending order of time. For a part of a vector, pass sub-slices.
    ///
    /// # Panics
    /// If `times` and `values` differ in length.
    #[must_use]
    pub fn of(ty: ColumnType, times: &[i64], values: &[u64]) -> Self {
        assert_eq!(times.len(), values.len(), "one word a row");
        let mut stats = Self::empty(ty);
        let (Some(&first), Some(&last)) = (values.first(), values.last()) else {
            return stats;
        };
        if let Some(null) = ty.null()
            && values.contains(&null)
        {
            return Self::of_nullable(Parts::ALL, ty, null, times, values);
        }
        stats.count = values.len() as u64;
        (stats.first, stats.last) = (first, last);
        let extremes = if ty.is_float() {
            let fold = fold::floats(values);
            stats.nan_count = fold.nan_count;
            stats.float_sum = fold.sum;
            stats.squares = fold.squares;
            fold.extremes
        } else {
            let fold = fold::integers(ty.base(), values);
            stats.int_sum = fold.sum;
            stats.squares = fold.squares;
            Some(fold.extremes)
        };
        if let Some(words) = extremes {
            let [min, max] = crate::kernel::positions(values, words);
            [stats.min, stats.max] = words;
            (stats.min_time, stats.max_time) = (times[min], times[max]);
        }
        stats
    }

    /// Like [`of`](Self::of), with only the figures in `parts`. Computing the sum alone, or the extremes without their
    /// times, takes a shorter pass.
    ///
    /// # Panics
    /// If `times` and `values` differ in length.
    #[must_use]
    pub fn with(parts: Parts, ty: ColumnType, times: &[i64], values: &[u64]) -> Self {
        let is_sum = parts.has(Parts::SUM) && Parts::SUM.and(Parts::ENDS).has(parts);
        let has_no_sum = Parts::EXTREMES.and(Parts::ENDS).has(parts);
        if parts == Parts::ALL {
            return Self::of(ty, times, values);
        }
        if !is_sum && !has_no_sum {
            return Self::of(ty, times, values).only(parts);
        }
        assert_eq!(times.len(), values.len(), "one word a row");
        let mut stats = Self::empty_with(parts, ty);
        let (Some(&first), Some(&last)) = (values.first(), values.last()) else {
            return stats;
        };
        if let Some(null) = ty.null()
            && values.contains(&null)
        {
            return Self::of_nullable(parts, ty, null, times, values);
        }
        stats.count = values.len() as u64;
        if parts.has(Parts::ENDS) {
            (stats.first, stats.last) = (first, last);
        }
        if ty.is_float() {
            if is_sum {
                (stats.float_sum, stats.nan_count) = fold::float_sum(values);
            } else {
                let reach = crate::kernel::float_reach(values);
                stats.nan_count = reach.nan_count;
                if parts.has(Parts::EXTREMES) && reach.nan_count < stats.count {
                    [stats.min, stats.max] = fold::extremes_of(values, reach.low, reach.high);
                }
            }
        } else if is_sum {
            stats.int_sum = fold::integer_sum(ty.base(), values);
        } else if parts.has(Parts::EXTREMES) {
            [stats.min, stats.max] = fold::integer_extremes(ty.base(), values);
        }
        stats
    }

    /// Statistics of rows, some of which are null: the figures of the other rows, and the counts of all rows.
    #[inline(never)]
    fn of_nullable(parts: Parts, ty: ColumnType, null: u64, times: &[i64], values: &[u64]) -> Self {
        let rows = times.iter().zip(values).filter(|&(_, &word)| word != null);
        let (own_times, own_values): (Vec<i64>, Vec<u64>) = rows.unzip();
        let mut stats = Self::with(parts, ty, &own_times, &own_values);
        stats.count = values.len() as u64;
        stats.null_count = (values.len() - own_values.len()) as u64;
        if parts.has(Parts::ENDS) {
            (stats.first, stats.last) = (values[0], values[values.len() - 1]);
        }
        stats
    }

    /// Statistics of rows that were written before the column was added: `count` rows with the word
    /// [`ColumnType::fill`], the first one at time `begin`.
    #[must_use]
    pub fn of_fill(ty: ColumnType, begin: i64, count: u64) -> Self {
        if count == 0 {
            return Self::empty(ty);
        }
        let mut stats = Self::of(ty, &[begin], &[ty.fill()]);
        stats.count = count;
        if ty.null().is_some() {
            stats.null_count = count;
        }
        stats
    }

    /// Statistics of `count` rows from time `begin` on whose words are all zero: equal to the result of
    /// [`of`](Self::of), without a pass over rows.
    #[must_use]
    pub fn of_zeros(ty: ColumnType, begin: i64, count: u64) -> Self {
        let empty = Self::empty(ty);
        if count == 0 {
            return empty;
        }
        debug_assert!(ty.null() != Some(0), "a zero is a value");
        Self {
            count,
            min_time: begin,
            max_time: begin,
            ..empty
        }
    }

    /// A copy with only the figures in `parts`.
    ///
    /// # Panics
    /// If these statistics lack one of the requested figures.
    #[must_use]
    pub fn only(&self, parts: Parts) -> Self {
        let mut own = Self::empty_with(parts, self.ty);
        own.merge_after(self);
        own
    }

    /// Merges the statistics of rows that come later in time; figures that `self` lacks are ignored.
    ///
    /// # Panics
    /// If the column types differ, or `later` lacks a figure that `self` has.
    pub fn merge_after(&mut self, later: &Self) {
        assert!(
            self.ty == later.ty && later.parts.has(self.parts),
            "statistics of one column, and all figures"
        );
        if later.count == 0 {
            return;
        }
        if self.count == 0 && self.parts == later.parts {
            *self = *later;
            return;
        }
        self.take(self.parts, later);
    }

    /// Does the work of `merge_after`; `later` must have rows. `parts` are the figures that `self` has.
    #[inline(always)]
    fn take(&mut self, parts: Parts, later: &Self) {
        let is_first = self.count == 0;
        if parts.has(Parts::EXTREMES) && later.value_count() > 0 {
            let key = |word| self.ty.order_key(word);
            let none = self.value_count() == 0;
            let has_times = parts.has(Parts::TIMES);
            if none || key(later.min) < key(self.min) {
                self.min = later.min;
                self.min_time = if has_times { later.min_time } else { 0 };
            }
            if none || key(later.max) > key(self.max) {
                self.max = later.max;
                self.max_time = if has_times { later.max_time } else { 0 };
            }
        }
        // The counts of a damaged file are arbitrary, so they wrap instead of panicking.
        self.count = self.count.wrapping_add(later.count);
        self.nan_count = self.nan_count.wrapping_add(later.nan_count);
        self.null_count = self.null_count.wrapping_add(later.null_count);
        // The sums of the first rows are copied, because adding them to zero would change the bits of -0.0.
        if parts.has(Parts::SUM) {
            self.float_sum = match is_first {
                true => later.float_sum,
                false => sums::add(self.float_sum, later.float_sum),
            };
            self.int_sum = self.int_sum.wrapping_add(later.int_sum);
        }
        if parts.has(Parts::SQUARES) {
            self.squares = match is_first {
                true => later.squares,
                false => squares::add(self.squares, later.squares),
            };
        }
        if parts.has(Parts::ENDS) {
            if is_first {
                self.first = later.first;
            }
            self.last = later.last;
        }
    }

    /// Merges the statistics of other rows, which may lie anywhere in time. `begins_first` and `ends_last` tell whether
    /// the first and the last of all rows are in `other`. Where extremes are equal, the earliest time is kept.
    ///
    /// # Panics
    /// If the column types differ, or `other` lacks a figure that `self` has.
    pub fn merge_beside(&mut self, other: &Self, begins_first: bool, ends_last: bool) {
        let before = *self;
        self.merge_after(other);
        if before.count == 0 || other.count == 0 {
            return;
        }
        if begins_first && self.parts.has(Parts::ENDS) {
            self.first = other.first;
        }
        if !ends_last {
            self.last = before.last;
        }
        let has_times = self.parts.has(Parts::TIMES);
        if has_times && other.value_count() > 0 && before.value_count() > 0 {
            let key = |word| self.ty.order_key(word);
            if key(before.min) == key(other.min) {
                self.min_time = before.min_time.min(other.min_time);
            }
            if key(before.max) == key(other.max) {
                self.max_time = before.max_time.min(other.max_time);
            }
        }
    }

    /// A copy whose times are converted by `time`, for a series that is read with another unit of time.
    #[must_use]
    pub fn with_times(mut self, time: impl Fn(i64) -> i64) -> Self {
        if self.value_count() > 0 && self.parts.has(Parts::TIMES) {
            self.min_time = time(self.min_time);
            self.max_time = time(self.max_time);
        }
        self
    }

    /// The figures that these statistics have. A missing sum is reported as NaN, any other missing figure as `None`.
    #[must_use]
    pub fn parts(&self) -> Parts {
        self.parts
    }

    /// The type of the column.
    #[must_use]
    pub fn column_type(&self) -> ColumnType {
        self.ty
    }

    /// Number of rows, including NaN and null.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Number of rows with NaN.
    #[must_use]
    pub fn nan_count(&self) -> u64 {
        self.nan_count
    }

    /// Number of null rows.
    #[must_use]
    pub fn null_count(&self) -> u64 {
        self.null_count
    }

    /// Number of rows that are neither NaN nor null; only these count in sums, mean and extremes.
    #[must_use]
    pub fn value_count(&self) -> u64 {
        let others = self.nan_count.saturating_add(self.null_count);
        self.count.saturating_sub(others)
    }

    /// The sum, rounded once; 0.0 if there are no values; infinite if the sum exceeds the range of floats.
    #[must_use]
    pub fn sum(&self) -> f64 {
        sums::to_f64(self.exact_sum())
    }

    /// The exact sum of an integer column; `None` for a float column.
    #[must_use]
    pub fn int_sum(&self) -> Option<i128> {
        (!self.ty.is_float() && self.parts.has(Parts::SUM)).then_some(self.int_sum)
    }

    /// The sum of the squares, rounded once; infinite if the sum exceeds the range of floats.
    #[must_use]
    pub fn square_sum(&self) -> f64 {
        if self.parts.has(Parts::SQUARES) {
            squares::to_f64(self.squares)
        } else {
            f64::NAN
        }
    }

    /// The arithmetic mean; `None` if there are no values.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let n = self.value_count();
        (n > 0 && self.parts.has(Parts::SUM)).then(|| sums::mean(self.exact_sum(), n as f64))
    }

    /// The variance of the values as a whole population (divided by n); `None` if there are no values. Never negative;
    /// within 2^-47 of the exact variance relative to the mean of the squares. Infinite if it exceeds the range of
    /// floats; NaN if a value is infinite.
    #[must_use]
    pub fn variance(&self) -> Option<f64> {
        self.deviation(0).map(Deviation::square)
    }

    /// The variance estimated from the values as a sample (divided by n - 1); `None` for fewer than two values. As
    /// accurate as [`Stats::variance`].
    #[must_use]
    pub fn sample_variance(&self) -> Option<f64> {
        self.deviation(1).map(Deviation::square)
    }

    /// The square root of [`Stats::variance`], finite even if the variance exceeds the range of floats.
    #[must_use]
    pub fn stddev(&self) -> Option<f64> {
        self.deviation(0).map(Deviation::root)
    }

    /// The square root of [`Stats::sample_variance`], finite even if the variance exceeds the range of floats.
    #[must_use]
    pub fn sample_stddev(&self) -> Option<f64> {
        self.deviation(1).map(Deviation::root)
    }

    /// The word of the smallest value, and its earliest time.
    #[must_use]
    pub fn min(&self) -> Option<(u64, i64)> {
        let min = self.min_word().filter(|_| self.parts.has(Parts::TIMES));
        min.map(|min| (min, self.min_time))
    }

    /// The word of the largest value, and its earliest time.
    #[must_use]
    pub fn max(&self) -> Option<(u64, i64)> {
        let max = self.max_word().filter(|_| self.parts.has(Parts::TIMES));
        max.map(|max| (max, self.max_time))
    }

    /// The word of the smallest value.
    #[must_use]
    pub fn min_word(&self) -> Option<u64> {
        (self.value_count() > 0 && self.parts.has(Parts::EXTREMES)).then_some(self.min)
    }

    /// The word of the largest value.
    #[must_use]
    pub fn max_word(&self) -> Option<u64> {
        (self.value_count() > 0 && self.parts.has(Parts::EXTREMES)).then_some(self.max)
    }

    /// The word of the first row, which may be NaN or null; `None` if there are no rows.
    #[must_use]
    pub fn first(&self) -> Option<u64> {
        (self.count > 0 && self.parts.has(Parts::ENDS)).then_some(self.first)
    }

    /// The word of the last row, which may be NaN or null; `None` if there are no rows.
    #[must_use]
    pub fn last(&self) -> Option<u64> {
        (self.count > 0 && self.parts.has(Parts::ENDS)).then_some(self.last)
    }

    /// The sum as a double-double number, in one of the two forms that `sums` describes.
    fn exact_sum(&self) -> Dd {
        if !self.parts.has(Parts::SUM) {
            return Dd::from_f64(f64::NAN);
        }
        if self.ty.is_float() {
            self.float_sum
        } else {
            Dd::from_i128(self.int_sum)
        }
    }

    /// The sum of squared deviations, squares - sum^2 / n, divided by n - `fewer`; `None` if that divisor is below one.
    /// In double-double arithmetic the difference loses 2 log2(mean / stddev) of 106 bits.
    fn deviation(&self, fewer: u64) -> Option<Deviation> {
        let n = self.value_count();
        if n <= fewer || !self.parts.has(Parts::SUM.and(Parts::SQUARES)) {
            return None;
        }
        let (mut squares, mut sum) = (self.squares, self.exact_sum());
        let is_beyond = squares::is_beyond(squares);
        if is_beyond {
            (squares, sum) = (squares::scaled_down(squares), sums::scaled_down(sum));
        }
        let spread = squares.add(sum.mul(sum.div(n as f64)).neg());
        let square = match sum.hi.is_finite() {
            true => positive(spread.div((n - fewer) as f64)),
            false => f64::NAN,
        };
        Some(Deviation { square, is_beyond })
    }
}

/// Deviation of the values from their mean.
#[derive(Clone, Copy)]
struct Deviation {
    /// The mean of the squared deviations.
    square: f64,
    /// True if `square` was computed from values scaled down by 2^-600 (`squares.rs`).
    is_beyond: bool,
}

impl Deviation {
    fn square(self) -> f64 {
        match self.is_beyond {
            true => squares::scaled_up(squares::scaled_up(self.square)),
            false => self.square,
        }
    }

    fn root(self) -> f64 {
        match self.is_beyond {
            true => squares::scaled_up(self.square.sqrt()),
            false => self.square.sqrt(),
        }
    }
}

/// Clamps a variance that rounding has left slightly below zero.
fn positive(x: Dd) -> f64 {
    let x = x.to_f64();
    if x < 0.0 { 0.0 } else { x }
}

#[cfg(test)]
mod tests;
