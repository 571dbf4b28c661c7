//! Statistics over a stretch of one column.
//!
//! ```text
//! offset size
//!      0    8  count        rows, NaN and null included
//!      8    8  nan_count
//!     16   16  sum          f64: hi, lo (the sum is hi + lo);  else i128
//!     32   16  squares      hi, lo: the sum of the squared values
//!     48    8  min          the word; 0 when there is no value
//!     56    8  min_time     the earliest time of it
//!     64    8  max
//!     72    8  max_time
//!     80    8  first        the word of the first row, NaN and null included
//!     88    8  last
//!     96    1  column type
//!     97    7  null_count   low bytes first; 0 in a column without nulls
//! ```
//!
//! 1. NaN counts only in `count`, `nan_count`, `first` and `last`; null in `null_count` instead.
//! 2. -0.0 is less than +0.0; among equal extremes the earliest time stays.
//! 3. The same rows give the same bits on every processor: floats are summed in eight fixed lanes.
//! 4. Sums are within 2^-50 of the exact value relative to the sum of the magnitudes. An infinity
//!    makes them what plain addition would.

pub(crate) mod dd;
pub(crate) mod fields;
pub(crate) mod fold;

use crate::ColumnType;
use dd::Dd;
use tidalite_base::{Corrupt, get_i64, get_u64, put_i64, put_u64};

/// Bytes of encoded [`Stats`].
pub const STATS_BYTES: usize = 104;

const COUNT: usize = 0;
const NAN_COUNT: usize = COUNT + 8;
const SUM: usize = NAN_COUNT + 8;
const SQUARES: usize = SUM + 16;
const MIN: usize = SQUARES + 16;
const MIN_TIME: usize = MIN + 8;
const MAX: usize = MIN_TIME + 8;
const MAX_TIME: usize = MAX + 8;
const FIRST: usize = MAX_TIME + 8;
const LAST: usize = FIRST + 8;
const TYPE: usize = LAST + 8;
const NULL_COUNT: usize = TYPE + 1;
const NULL_COUNT_BYTES: usize = 7;
const _: () = assert!(NULL_COUNT + NULL_COUNT_BYTES == STATS_BYTES);
/// What the field holds at most; no file has so many rows.
const NULL_COUNT_MAX: u64 = (1 << (8 * NULL_COUNT_BYTES)) - 1;

/// Count, sums, extremes with their times, first and last of a stretch of one column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stats {
    ty: ColumnType,
    count: u64,
    nan_count: u64,
    null_count: u64,
    /// Used by floats.
    float_sum: Dd,
    /// Used by integers.
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
    /// Of no rows.
    #[must_use]
    pub fn empty(ty: ColumnType) -> Self {
        Self {
            ty,
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

    /// Of rows in ascending order of time. Any sub-slice will do; so statistics of a part of a
    /// vector are those of the sub-slices.
    ///
    /// # Panics
    /// When there are not as many times as values.
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
            return Self::of_nullable(ty, null, times, values);
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

    /// Of rows some of which are null: those of the others, and the counts.
    #[inline(never)]
    fn of_nullable(ty: ColumnType, null: u64, times: &[i64], values: &[u64]) -> Self {
        let rows = times.iter().zip(values).filter(|&(_, &word)| word != null);
        let (own_times, own_values): (Vec<i64>, Vec<u64>) = rows.unzip();
        let mut stats = Self::of(ty, &own_times, &own_values);
        stats.count = values.len() as u64;
        stats.null_count = (values.len() - own_values.len()) as u64;
        (stats.first, stats.last) = (values[0], values[values.len() - 1]);
        stats
    }

    /// Of rows that were written before the column was added: `count` times the word [`ColumnType::fill`], the first
    /// one at `begin`.
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

    /// Of `count` rows from `begin` on whose words are all zero: what [`of`](Self::of) gives, without looking at rows.
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

    /// Takes in the statistics of rows that lie after these in time.
    ///
    /// # Panics
    /// When the column types differ.
    pub fn merge_after(&mut self, later: &Self) {
        assert_eq!(self.ty, later.ty, "statistics of one column");
        if later.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = *later;
            return;
        }
        if later.value_count() > 0 {
            let key = |word| self.ty.order_key(word);
            let none = self.value_count() == 0;
            if none || key(later.min) < key(self.min) {
                (self.min, self.min_time) = (later.min, later.min_time);
            }
            if none || key(later.max) > key(self.max) {
                (self.max, self.max_time) = (later.max, later.max_time);
            }
        }
        // Counts of a damaged file may be anything: they wrap rather than panic.
        self.count = self.count.wrapping_add(later.count);
        self.nan_count = self.nan_count.wrapping_add(later.nan_count);
        self.null_count = self.null_count.wrapping_add(later.null_count);
        self.float_sum = self.float_sum.add(later.float_sum);
        self.int_sum = self.int_sum.wrapping_add(later.int_sum);
        self.squares = self.squares.add(later.squares);
        self.last = later.last;
    }

    /// Takes in the statistics of other rows, which may lie anywhere in time. `begins_first` and `ends_last` say
    /// whether the first and the last row of all are among the others; of equal extremes the earliest time stays.
    ///
    /// # Panics
    /// When the column types differ.
    pub fn merge_beside(&mut self, other: &Self, begins_first: bool, ends_last: bool) {
        let before = *self;
        self.merge_after(other);
        if before.count == 0 || other.count == 0 {
            return;
        }
        if begins_first {
            self.first = other.first;
        }
        if !ends_last {
            self.last = before.last;
        }
        if other.value_count() > 0 && before.value_count() > 0 {
            let key = |word| self.ty.order_key(word);
            if key(before.min) == key(other.min) {
                self.min_time = before.min_time.min(other.min_time);
            }
            if key(before.max) == key(other.max) {
                self.max_time = before.max_time.min(other.max_time);
            }
        }
    }

    /// The same statistics with other times, for a series that is read on another clock.
    #[must_use]
    pub fn with_times(mut self, time: impl Fn(i64) -> i64) -> Self {
        if self.value_count() > 0 {
            self.min_time = time(self.min_time);
            self.max_time = time(self.max_time);
        }
        self
    }

    /// The column's type.
    #[must_use]
    pub fn column_type(&self) -> ColumnType {
        self.ty
    }

    /// Rows, those with NaN or null included.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Rows with NaN.
    #[must_use]
    pub fn nan_count(&self) -> u64 {
        self.nan_count
    }

    /// Rows without a value.
    #[must_use]
    pub fn null_count(&self) -> u64 {
        self.null_count
    }

    /// Rows without NaN and null: what sums, mean and extremes are about.
    #[must_use]
    pub fn value_count(&self) -> u64 {
        let others = self.nan_count.saturating_add(self.null_count);
        self.count.saturating_sub(others)
    }

    /// The sum, rounded once; 0.0 of no value.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.exact_sum().to_f64()
    }

    /// The exact sum of an integer column.
    #[must_use]
    pub fn int_sum(&self) -> Option<i128> {
        (!self.ty.is_float()).then_some(self.int_sum)
    }

    /// The sum of the squares, rounded once.
    #[must_use]
    pub fn square_sum(&self) -> f64 {
        self.squares.to_f64()
    }

    /// The arithmetic mean, `None` of no value.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let n = self.value_count();
        (n > 0).then(|| self.exact_sum().div_to_f64(n as f64))
    }

    /// The variance of the values as a whole population (divided by n), `None` of no value. Never negative; within 2^-47 of
    /// the exact one relative to the mean of the squares.
    #[must_use]
    pub fn variance(&self) -> Option<f64> {
        let n = self.value_count();
        (n > 0).then(|| positive(self.spread().div(n as f64)))
    }

    /// The variance estimated from the values as a sample (divided by n - 1), `None` below two; as near as
    /// [`Stats::variance`].
    #[must_use]
    pub fn sample_variance(&self) -> Option<f64> {
        let n = self.value_count();
        (n > 1).then(|| positive(self.spread().div((n - 1) as f64)))
    }

    /// The square root of [`Stats::variance`].
    #[must_use]
    pub fn stddev(&self) -> Option<f64> {
        self.variance().map(f64::sqrt)
    }

    /// The square root of [`Stats::sample_variance`].
    #[must_use]
    pub fn sample_stddev(&self) -> Option<f64> {
        self.sample_variance().map(f64::sqrt)
    }

    /// The smallest value's word and its earliest time.
    #[must_use]
    pub fn min(&self) -> Option<(u64, i64)> {
        (self.value_count() > 0).then_some((self.min, self.min_time))
    }

    /// The greatest value's word and its earliest time.
    #[must_use]
    pub fn max(&self) -> Option<(u64, i64)> {
        (self.value_count() > 0).then_some((self.max, self.max_time))
    }

    /// The word of the first row, NaN included.
    #[must_use]
    pub fn first(&self) -> Option<u64> {
        (self.count > 0).then_some(self.first)
    }

    /// The word of the last row, NaN included.
    #[must_use]
    pub fn last(&self) -> Option<u64> {
        (self.count > 0).then_some(self.last)
    }

    fn exact_sum(&self) -> Dd {
        if self.ty.is_float() {
            self.float_sum
        } else {
            Dd::from_i128(self.int_sum)
        }
    }

    /// The sum of the squared distances from the mean: squares - sum^2 / n. In double-double this
    /// loses 2 log2(mean / stddev) of 106 bits.
    fn spread(&self) -> Dd {
        let sum = self.exact_sum();
        let n = self.value_count();
        self.squares.add(sum.mul(sum.div(n as f64)).neg())
    }

    /// Writes the 104 bytes.
    pub fn encode(&self, bytes: &mut [u8; STATS_BYTES]) {
        put_u64(bytes, COUNT, self.count);
        put_u64(bytes, NAN_COUNT, self.nan_count);
        if self.ty.is_float() {
            put_dd(bytes, SUM, self.float_sum);
        } else {
            bytes[SUM..SUM + 16].copy_from_slice(&self.int_sum.to_le_bytes());
        }
        put_dd(bytes, SQUARES, self.squares);
        put_u64(bytes, MIN, self.min);
        put_i64(bytes, MIN_TIME, self.min_time);
        put_u64(bytes, MAX, self.max);
        put_i64(bytes, MAX_TIME, self.max_time);
        put_u64(bytes, FIRST, self.first);
        put_u64(bytes, LAST, self.last);
        bytes[TYPE] = self.ty.code();
        let nulls = self.null_count.min(NULL_COUNT_MAX).to_le_bytes();
        bytes[NULL_COUNT..].copy_from_slice(&nulls[..NULL_COUNT_BYTES]);
    }

    /// The 104 bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; STATS_BYTES] {
        let mut bytes = [0; STATS_BYTES];
        self.encode(&mut bytes);
        bytes
    }

    /// Reads statistics of a column of type `ty` from the first 104 bytes.
    ///
    /// # Errors
    /// [`Corrupt`], with the offset inside `bytes` as address: too few bytes, another type, more
    /// NaN than rows, or bytes that must be zero.
    pub fn decode(ty: ColumnType, bytes: &[u8]) -> Result<Self, Corrupt> {
        let Some(bytes) = bytes.get(..STATS_BYTES) else {
            return Err(Corrupt::new("statistics", 0, bytes.len(), "104 bytes"));
        };
        if bytes[TYPE] != ty.code() {
            let found = bytes[TYPE];
            return Err(Corrupt::new(
                "type of statistics",
                TYPE as u64,
                found,
                ty.code(),
            ));
        }
        let mut nulls = [0; 8];
        nulls[..NULL_COUNT_BYTES].copy_from_slice(&bytes[NULL_COUNT..]);
        let null_count = u64::from_le_bytes(nulls);
        if null_count > 0 && ty.null().is_none() {
            let (at, expected) = (NULL_COUNT as u64, "0 in a column without nulls");
            return Err(Corrupt::new("null count", at, null_count, expected));
        }
        let mut stats = Self {
            count: get_u64(bytes, COUNT),
            nan_count: get_u64(bytes, NAN_COUNT),
            null_count,
            squares: get_dd(bytes, SQUARES),
            min: get_u64(bytes, MIN),
            min_time: get_i64(bytes, MIN_TIME),
            max: get_u64(bytes, MAX),
            max_time: get_i64(bytes, MAX_TIME),
            first: get_u64(bytes, FIRST),
            last: get_u64(bytes, LAST),
            ..Self::empty(ty)
        };
        let without = stats.nan_count.checked_add(null_count);
        if without.is_none_or(|without| without > stats.count) {
            let found = format!("{}, and {null_count} nulls", stats.nan_count);
            let count = stats.count;
            return Err(Corrupt::new(
                "NaN count",
                NAN_COUNT as u64,
                found,
                format!("at most {count}"),
            ));
        }
        if ty.is_float() {
            stats.float_sum = get_dd(bytes, SUM);
        } else {
            let mut field = [0; 16];
            field.copy_from_slice(&bytes[SUM..SUM + 16]);
            stats.int_sum = i128::from_le_bytes(field);
        }
        Ok(stats)
    }
}

/// Rounding may leave a variance of zero a hair below it.
fn positive(x: Dd) -> f64 {
    let x = x.to_f64();
    if x < 0.0 { 0.0 } else { x }
}

fn put_dd(bytes: &mut [u8], at: usize, x: Dd) {
    put_u64(bytes, at, x.hi.to_bits());
    put_u64(bytes, at + 8, x.lo.to_bits());
}

fn get_dd(bytes: &[u8], at: usize) -> Dd {
    Dd {
        hi: f64::from_bits(get_u64(bytes, at)),
        lo: f64::from_bits(get_u64(bytes, at + 8)),
    }
}

#[cfg(test)]
mod tests;
