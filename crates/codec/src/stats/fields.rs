//! Statistics as twelve integers, most of them small, for a format that stores only the bytes that an integer needs.
//! The number of rows and the type are not included; the reader knows both.
//!
//! ```text
//! first  min  max  last     integers: min itself (signed: zigzag); first, max and last minus min
//!                           floats: the bits, byte-swapped, so that round numbers are short; or, if they take fewer
//!                           bytes, integers over a power of ten, stored like signed integers (decimals.rs)
//! min_time  max_time        ticks of the clock since its begin
//! sum  sum_high             floats: hi and lo, byte-swapped;  integers: zigzag of the i128, its low and its high half
//! squares  squares_rest     hi and lo, byte-swapped
//! nan_count
//! null_count * 32 + code    code: 0, or for integers over 10^d, d + 1
//! ```
//!
//! Without a value (all rows NaN or null) min, max and their times are 0.

use super::Stats;
use super::bytes::NULL_COUNT_MAX;
use super::decimals::{self, CODE_BITS};
use crate::column::ColumnType;
use crate::loops::dd::Dd;
use crate::loops::parts::Parts;
use crate::short::{unzigzag, zigzag};
use tidalite_base::Corrupt;

/// Number of integers that [`Stats::to_fields`] returns.
pub const STATS_FIELDS: usize = 12;

/// Index of the field with the first row's word.
pub(crate) const FIRST: usize = 0;
/// Index of the field with the smallest word.
pub(crate) const MIN: usize = FIRST + 1;
const MAX: usize = MIN + 1;
const LAST: usize = MAX + 1;
const MIN_TIME: usize = LAST + 1;
const MAX_TIME: usize = MIN_TIME + 1;
const SUM: usize = MAX_TIME + 1;
const SUM_HIGH: usize = SUM + 1;
const SQUARES: usize = SUM_HIGH + 1;
const SQUARES_REST: usize = SQUARES + 1;
const NAN_COUNT: usize = SQUARES_REST + 1;
const NULL_COUNT_AND_CODE: usize = NAN_COUNT + 1;
const _: () = assert!(NULL_COUNT_AND_CODE + 1 == STATS_FIELDS);

/// The unit in which the times of extremes are counted, and its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The time of tick 0.
    pub begin: i64,
    /// Number of time units between two ticks; at least 1.
    pub step: u64,
    /// The number of the last tick.
    pub last: u64,
}

impl Clock {
    /// Creates a clock whose ticks are single units of time, from `begin` to `end`.
    #[must_use]
    #[inline]
    pub fn units(begin: i64, end: i64) -> Self {
        let last = end.wrapping_sub(begin) as u64;
        Self {
            begin,
            step: 1,
            last,
        }
    }

    #[inline]
    fn tick(&self, time: i64) -> u64 {
        let since = time.wrapping_sub(self.begin) as u64;
        match self.step {
            1 => since,
            step => since / step,
        }
    }

    #[inline]
    fn time(&self, tick: u64) -> Option<i64> {
        let since = tick.wrapping_mul(self.step);
        (tick <= self.last).then(|| self.begin.wrapping_add(since as i64))
    }
}

/// How the words of a column type are stored in fields.
#[derive(Clone, Copy)]
enum Words {
    Floats,
    Signed,
    Unsigned,
}

impl Words {
    #[inline]
    fn of(ty: ColumnType) -> Self {
        if ty.is_float() {
            Self::Floats
        } else if ty.base() == ColumnType::U64 {
            Self::Unsigned
        } else {
            Self::Signed
        }
    }

    /// Decodes the first, smallest, largest and last word from the fields.
    #[inline(always)]
    fn all(self, fields: &[u64; STATS_FIELDS]) -> [u64; 4] {
        let [first, min, max, last] = [FIRST, MIN, MAX, LAST].map(|field| fields[field]);
        let from = |least: u64| [first, 0, max, last].map(|field: u64| least.wrapping_add(field));
        match self {
            Self::Floats => decimals::from_fields([first, min, max, last], code_of(fields)),
            Self::Signed => from(unzigzag(min)),
            Self::Unsigned => from(min),
        }
    }
}

/// The code that tells how the four words are stored: as floats or as integers over a power of ten.
#[inline(always)]
fn code_of(fields: &[u64; STATS_FIELDS]) -> u64 {
    fields[NULL_COUNT_AND_CODE] % (1 << CODE_BITS)
}

/// The last row's word, from the fields of statistics.
#[must_use]
#[inline]
pub fn last_word(ty: ColumnType, fields: &[u64; STATS_FIELDS]) -> u64 {
    let [_, _, _, last] = Words::of(ty).all(fields);
    last
}

fn of_dd(x: Dd) -> [u64; 2] {
    [x.hi, x.lo].map(|x| x.to_bits().swap_bytes())
}

fn dd(hi: u64, lo: u64) -> Dd {
    let [hi, lo] = [hi, lo].map(|x| f64::from_bits(x.swap_bytes()));
    Dd { hi, lo }
}

/// The number of null rows.
#[inline]
fn nulls_of(fields: &[u64; STATS_FIELDS]) -> u64 {
    fields[NULL_COUNT_AND_CODE] >> CODE_BITS
}

/// True if the code in the fields, which tells how words are stored, is valid for this column type.
#[inline]
fn has_form(ty: ColumnType, fields: &[u64; STATS_FIELDS]) -> bool {
    let code = code_of(fields);
    code == 0 || (ty.is_float() && decimals::is_code(code))
}

/// The total number of NaN and nulls, or `None` if `count` rows of this column type cannot have as many.
#[inline]
fn rows_without(ty: ColumnType, count: u64, fields: &[u64; STATS_FIELDS]) -> Option<u64> {
    let nulls = nulls_of(fields);
    let nulls_max = if ty.null().is_some() {
        NULL_COUNT_MAX
    } else {
        0
    };
    let without = fields[NAN_COUNT].checked_add(nulls);
    without.filter(|&without| without <= count && nulls <= nulls_max)
}

impl Stats {
    /// Encodes the statistics as fields; times of extremes become ticks of `clock`.
    ///
    /// # Panics
    /// If the statistics lack a figure, because only some were requested.
    #[must_use]
    pub fn to_fields(&self, clock: &Clock) -> [u64; STATS_FIELDS] {
        assert!(self.parts == Parts::ALL, "what is kept has all figures");
        let words = Words::of(self.ty);
        let mut fields = [0; STATS_FIELDS];
        let has_values = self.value_count() > 0;
        let (min, max) = if has_values {
            fields[MIN_TIME] = clock.tick(self.min_time);
            fields[MAX_TIME] = clock.tick(self.max_time);
            (self.min, self.max)
        } else {
            (0, 0)
        };
        let minus =
            |least: u64| [self.first, 0, max, self.last].map(|word| word.wrapping_sub(least));
        let (stored, code) = match words {
            Words::Floats => decimals::to_fields([self.first, min, max, self.last]),
            Words::Signed | Words::Unsigned => (minus(min), 0),
        };
        [fields[FIRST], fields[MIN], fields[MAX], fields[LAST]] = stored;
        match words {
            Words::Floats => {}
            Words::Signed => fields[MIN] = zigzag(min),
            Words::Unsigned => fields[MIN] = min,
        }
        [fields[SUM], fields[SUM_HIGH]] = match words {
            Words::Floats => of_dd(self.float_sum),
            Words::Signed | Words::Unsigned => {
                let sum = (self.int_sum << 1) ^ (self.int_sum >> 127);
                [sum as u64, ((sum as u128) >> 64) as u64]
            }
        };
        [fields[SQUARES], fields[SQUARES_REST]] = of_dd(self.squares);
        fields[NAN_COUNT] = self.nan_count;
        fields[NULL_COUNT_AND_CODE] = self.null_count << CODE_BITS | code;
        fields
    }

    /// Decodes the result of [`to_fields`](Self::to_fields) for `count` rows of a column of type `ty`.
    ///
    /// # Errors
    /// [`Corrupt`], with the number of the field as address: more NaN and nulls than rows, nulls in a column without
    /// nulls, or a time outside the clock.
    pub fn from_fields(
        ty: ColumnType,
        count: u64,
        fields: &[u64; STATS_FIELDS],
        clock: &Clock,
    ) -> Result<Self, Corrupt> {
        Self::of_fields(ty, count, fields, clock)
            .ok_or_else(|| Self::odd_fields(ty, count, fields, clock))
    }

    /// Creates the error that describes fields that are not valid statistics.
    #[cold]
    #[inline(never)]
    #[must_use]
    pub fn odd_fields(
        ty: ColumnType,
        count: u64,
        fields: &[u64; STATS_FIELDS],
        clock: &Clock,
    ) -> Corrupt {
        if rows_without(ty, count, fields).is_none() {
            let found = format!("{} NaN and {} nulls", fields[NAN_COUNT], nulls_of(fields));
            let expected = format!("those of {count} rows of {ty:?}");
            return Corrupt::new("counts of statistics", NAN_COUNT as u64, found, expected);
        }
        if !has_form(ty, fields) {
            let (at, found) = (NULL_COUNT_AND_CODE as u64, code_of(fields).to_string());
            let expected = format!("one of {ty:?}");
            return Corrupt::new("form of statistics", at, found, expected);
        }
        let found = format!("ticks {} and {}", fields[MIN_TIME], fields[MAX_TIME]);
        let expected = format!("up to {}", clock.last);
        Corrupt::new("times of statistics", MIN_TIME as u64, found, expected)
    }

    /// Like [`from_fields`](Self::from_fields), but returns `None` instead of an error: an `Option` stays in registers,
    /// an error would not. [`odd_fields`](Self::odd_fields) describes the error.
    #[must_use]
    #[inline]
    pub fn of_fields(
        ty: ColumnType,
        count: u64,
        fields: &[u64; STATS_FIELDS],
        clock: &Clock,
    ) -> Option<Self> {
        Self::some_of_fields::<{ Parts::ALL.bits() }>(ty, count, fields, clock)
    }

    /// Merges the statistics of later rows, like [`merge_after`](Self::merge_after). Meant for thousands of calls: when
    /// inlined into the caller, it does not read the figures that `self` lacks. The function `fields` returns the
    /// encoded fields.
    #[must_use]
    #[inline(always)]
    pub fn merge_fields(
        &mut self,
        count: u64,
        clock: &Clock,
        fields: impl Fn() -> Option<[u64; STATS_FIELDS]>,
    ) -> Option<()> {
        const SUM: u8 = Parts::SUM.bits();
        const EXTREMES: u8 = Parts::EXTREMES.bits();
        const ALL: u8 = Parts::ALL.bits();
        let ty = self.ty;
        match self.parts.bits() {
            SUM => {
                let later = Self::some_of_fields::<SUM>(ty, count, &fields()?, clock)?;
                self.take(Parts::SUM, &later);
            }
            EXTREMES => {
                let later = Self::some_of_fields::<EXTREMES>(ty, count, &fields()?, clock)?;
                self.take(Parts::EXTREMES, &later);
            }
            _ => {
                let later = Self::some_of_fields::<ALL>(ty, count, &fields()?, clock)?;
                self.merge_after(&later);
            }
        }
        Some(())
    }

    /// Decodes statistics with only those figures that `PARTS` selects.
    #[inline(always)]
    fn some_of_fields<const PARTS: u8>(
        ty: ColumnType,
        count: u64,
        fields: &[u64; STATS_FIELDS],
        clock: &Clock,
    ) -> Option<Self> {
        let (parts, words) = (Parts::of_bits(PARTS), Words::of(ty));
        let without = rows_without(ty, count, fields).filter(|_| has_form(ty, fields))?;
        let [first, min, max, last] = words.all(fields);
        let mut stats = Self::empty_with(parts, ty);
        stats.count = count;
        stats.nan_count = fields[NAN_COUNT];
        stats.null_count = nulls_of(fields);
        if parts.has(Parts::SQUARES) {
            stats.squares = dd(fields[SQUARES], fields[SQUARES_REST]);
        }
        if parts.has(Parts::ENDS) {
            stats.first = first;
            stats.last = last;
        }
        if without < count && parts.has(Parts::EXTREMES) {
            stats.min = min;
            stats.max = max;
        }
        if without < count && parts.has(Parts::TIMES) {
            stats.min_time = clock.time(fields[MIN_TIME])?;
            stats.max_time = clock.time(fields[MAX_TIME])?;
        }
        if parts.has(Parts::SUM) {
            match words {
                Words::Floats => {
                    stats.float_sum = dd(fields[SUM], fields[SUM_HIGH]);
                }
                Words::Signed | Words::Unsigned => {
                    let sum = u128::from(fields[SUM]) | u128::from(fields[SUM_HIGH]) << 64;
                    stats.int_sum = ((sum >> 1) as i128) ^ -((sum & 1) as i128);
                }
            }
        }
        Some(stats)
    }
}
