//! Statistics as twelve integers, most of them small, for a format that stores only the bytes that an integer needs.
//! The number of rows and the type are not included; the reader knows both.
//!
//! ```text
//! first  min  max  last     floats: the bits, byte-swapped, so that round numbers are short; or the integers of a
//!                           decimal rule
//!                           integers: min itself (signed: zigzag); first, max and last minus min
//! min_time  max_time        ticks of the clock since its begin
//! sum  sum_high             floats: hi and lo, byte-swapped;  integers: zigzag of the i128, its low and its high half
//! squares  squares_rest     hi and lo, byte-swapped
//! nan_count  null_count
//! ```
//!
//! Without a value (all rows NaN or null) min, max and their times are 0.

use super::Stats;
use super::bytes::NULL_COUNT_MAX;
use crate::chunk::{Anchors, Chunk};
use crate::column::ColumnType;
use crate::kernel;
use crate::loops::dd::Dd;
use crate::loops::float::Alp;
use crate::loops::parts::Parts;
use crate::short::{unzigzag, zigzag};
use tidalite_base::Corrupt;

/// Number of integers that [`Stats::to_fields`] returns.
pub const STATS_FIELDS: usize = 12;

/// Index of the first row's word among the fields.
pub(crate) const FIRST: usize = 0;
/// Index of the smallest word.
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
const NULL_COUNT: usize = NAN_COUNT + 1;
const _: () = assert!(NULL_COUNT + 1 == STATS_FIELDS);

/// The unit in which the times of extremes are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The time of tick 0.
    pub begin: i64,
    /// Time between two ticks; at least 1.
    pub step: u64,
    /// The last tick.
    pub last: u64,
}

impl Clock {
    /// A clock whose ticks are single units of time, from `begin` to `end`.
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

/// Representation of the four words of statistics (first, smallest, largest, last) as fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WordForm {
    /// Integers of this rule, in a column of floats.
    decimals: Option<Alp>,
}

impl WordForm {
    /// The form given by the column type.
    pub const OF_TYPE: Self = Self { decimals: None };

    /// The form for a vector's statistics beside its chunk: integers of the chunk's decimal rule, if that rule
    /// reproduces all four words bit by bit.
    #[must_use]
    pub fn beside(chunk: &Chunk, stats: &Stats) -> Self {
        let Some(alp) = chunk.decimals().filter(|_| stats.value_count() > 0) else {
            return Self::OF_TYPE;
        };
        let words = [stats.first, stats.min, stats.max, stats.last];
        let (mut ints, mut bad) = ([0; 4], [0; 4]);
        let decimals = kernel::alp_encode(alp, &words, &mut ints, &mut bad).bad == 0;
        Self {
            decimals: decimals.then_some(alp),
        }
    }

    /// Inverse of [`code`](Self::code); `None` if a chunk of this encoding with these details (`Chunk::to_fields`)
    /// has no such form.
    #[must_use]
    #[inline]
    pub fn of_code(code: u64, encoding: u8, details: u64) -> Option<Self> {
        match code {
            0 => Some(Self::OF_TYPE),
            1 => Chunk::decimals_of(encoding, details).map(|alp| Self {
                decimals: Some(alp),
            }),
            _ => None,
        }
    }

    /// 0: the form of the type. 1: decimals.
    #[must_use]
    pub fn code(self) -> u64 {
        u64::from(self.decimals.is_some())
    }

    #[inline]
    fn words(self, ty: ColumnType) -> Words {
        match self.decimals {
            Some(alp) if ty.is_float() => Words::Decimals(alp),
            _ => Words::of(ty),
        }
    }
}

impl Anchors {
    /// The anchors given by the first two fields of statistics.
    #[must_use]
    #[inline]
    pub fn of_fields(ty: ColumnType, form: WordForm, fields: [u64; 2]) -> Self {
        let words = form.words(ty);
        let least = words.least_stored(fields[MIN]);
        Self {
            first: words.other_stored(fields[FIRST], least),
            least,
            decimals: form.decimals.is_some(),
        }
    }
}

/// Conversion of the words of a type to fields.
#[derive(Clone, Copy)]
enum Words {
    Floats,
    /// Floats stored as the integers of this rule.
    Decimals(Alp),
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

    /// The smallest word, or its integer, from its field.
    #[inline]
    fn least_stored(self, field: u64) -> u64 {
        match self {
            Self::Floats => field.swap_bytes(),
            Self::Signed | Self::Decimals(_) => unzigzag(field),
            Self::Unsigned => field,
        }
    }

    /// The stored value of another field; `least` is the stored value of the smallest word.
    #[inline]
    fn other_stored(self, field: u64, least: u64) -> u64 {
        match self {
            Self::Floats => field.swap_bytes(),
            Self::Signed | Self::Unsigned | Self::Decimals(_) => least.wrapping_add(field),
        }
    }

    /// First, smallest, largest and last word from their fields, with one match for all four.
    #[inline(always)]
    fn all(self, [first, min, max, last]: [u64; 4]) -> [u64; 4] {
        let from = |least: u64| [first, 0, max, last].map(|field: u64| least.wrapping_add(field));
        match self {
            Self::Floats => [first, min, max, last].map(u64::swap_bytes),
            Self::Decimals(alp) => alp.words(from(unzigzag(min))),
            Self::Signed => from(unzigzag(min)),
            Self::Unsigned => from(min),
        }
    }
}

/// The last row's word, from the first four fields.
#[must_use]
#[inline]
pub fn last_word(ty: ColumnType, fields: [u64; LAST + 1]) -> u64 {
    let words = Words::of(ty);
    words.other_stored(fields[LAST], words.least_stored(fields[MIN]))
}

fn of_dd(x: Dd) -> [u64; 2] {
    [x.hi, x.lo].map(|x| x.to_bits().swap_bytes())
}

fn dd(hi: u64, lo: u64) -> Dd {
    let [hi, lo] = [hi, lo].map(|x| f64::from_bits(x.swap_bytes()));
    Dd { hi, lo }
}

/// The number of NaN and nulls, or `None` if that many rows of this type cannot have them.
#[inline]
fn rows_without(ty: ColumnType, count: u64, fields: &[u64; STATS_FIELDS]) -> Option<u64> {
    let nulls = fields[NULL_COUNT];
    let nulls_max = if ty.null().is_some() {
        NULL_COUNT_MAX
    } else {
        0
    };
    let without = fields[NAN_COUNT].checked_add(nulls);
    without.filter(|&without| without <= count && nulls <= nulls_max)
}

impl Stats {
    /// The fields of the statistics; times of extremes are ticks of `clock`. `form` must suit the words: it is the
    /// result of [`WordForm::beside`], or the form of the type.
    ///
    /// # Panics
    /// If a figure is missing, or if the form does not suit.
    #[must_use]
    pub fn to_fields(&self, clock: &Clock, form: WordForm) -> [u64; STATS_FIELDS] {
        assert!(self.parts == Parts::ALL, "what is kept has all figures");
        let words = form.words(self.ty);
        let mut fields = [0; STATS_FIELDS];
        let has_values = self.value_count() > 0;
        let min = if has_values { self.min } else { 0 };
        let stored = self.stored([self.first, min, self.max, self.last], words);
        let [first, min, max, last] = stored;
        fields[MIN] = match words {
            Words::Floats => min.swap_bytes(),
            Words::Signed | Words::Decimals(_) => zigzag(min),
            Words::Unsigned => min,
        };
        let other = |stored: u64| match words {
            Words::Floats => stored.swap_bytes(),
            Words::Signed | Words::Unsigned | Words::Decimals(_) => stored.wrapping_sub(min),
        };
        fields[FIRST] = other(first);
        fields[LAST] = other(last);
        if has_values {
            fields[MAX] = other(max);
            fields[MIN_TIME] = clock.tick(self.min_time);
            fields[MAX_TIME] = clock.tick(self.max_time);
        }
        [fields[SUM], fields[SUM_HIGH]] = match words {
            Words::Floats | Words::Decimals(_) => of_dd(self.float_sum),
            Words::Signed | Words::Unsigned => {
                let sum = (self.int_sum << 1) ^ (self.int_sum >> 127);
                [sum as u64, ((sum as u128) >> 64) as u64]
            }
        };
        [fields[SQUARES], fields[SQUARES_REST]] = of_dd(self.squares);
        fields[NAN_COUNT] = self.nan_count;
        fields[NULL_COUNT] = self.null_count;
        fields
    }

    /// The values that represent these words: the words themselves, or their integers.
    fn stored(&self, words: [u64; 4], how: Words) -> [u64; 4] {
        let Words::Decimals(alp) = how else {
            return words;
        };
        let (mut ints, mut bad) = ([0; 4], [0; 4]);
        let found = kernel::alp_encode(alp, &words, &mut ints, &mut bad);
        assert!(found.bad == 0, "the form was found for these words");
        ints
    }

    /// Inverse of [`to_fields`](Self::to_fields) for `count` rows of a column of type `ty`, with words in the form of
    /// the type.
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
        Self::of_fields((ty, WordForm::OF_TYPE), count, fields, clock)
            .ok_or_else(|| Self::odd_fields(ty, count, fields, clock))
    }

    /// Describes the error in fields that are not valid statistics.
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
            let found = format!("{} NaN and {} nulls", fields[NAN_COUNT], fields[NULL_COUNT]);
            let expected = format!("those of {count} rows of {ty:?}");
            return Corrupt::new("counts of statistics", NAN_COUNT as u64, found, expected);
        }
        let found = format!("ticks {} and {}", fields[MIN_TIME], fields[MAX_TIME]);
        let expected = format!("up to {}", clock.last);
        Corrupt::new("times of statistics", MIN_TIME as u64, found, expected)
    }

    /// Like [`from_fields`](Self::from_fields). `None` stays in registers where an error would not;
    /// [`odd_fields`](Self::odd_fields) describes the error.
    #[must_use]
    #[inline]
    pub fn of_fields(
        (ty, form): (ColumnType, WordForm),
        count: u64,
        fields: &[u64; STATS_FIELDS],
        clock: &Clock,
    ) -> Option<Self> {
        Self::some_of_fields::<{ Parts::ALL.bits() }>(form.words(ty), ty, count, fields, clock)
    }

    /// Merges the statistics of later rows, like [`merge_after`](Self::merge_after). `fields` returns the integers,
    /// `with_form` also the form of their words. Meant for thousands of calls: inlined into the caller, it does not
    /// read the figures that `self` lacks.
    #[must_use]
    #[inline(always)]
    pub fn merge_fields(
        &mut self,
        count: u64,
        clock: &Clock,
        fields: impl Fn() -> Option<[u64; STATS_FIELDS]>,
        with_form: impl Fn() -> Option<([u64; STATS_FIELDS], WordForm)>,
    ) -> Option<()> {
        const SUM: u8 = Parts::SUM.bits();
        const EXTREMES: u8 = Parts::EXTREMES.bits();
        const ALL: u8 = Parts::ALL.bits();
        let ty = self.ty;
        match self.parts.bits() {
            SUM => {
                // Does not need the words.
                let words = Words::of(ty);
                let later = Self::some_of_fields::<SUM>(words, ty, count, &fields()?, clock)?;
                self.take(Parts::SUM, &later);
            }
            EXTREMES => {
                let (fields, form) = with_form()?;
                let words = form.words(ty);
                let later = Self::some_of_fields::<EXTREMES>(words, ty, count, &fields, clock)?;
                self.take(Parts::EXTREMES, &later);
            }
            _ => {
                let (fields, form) = with_form()?;
                let words = form.words(ty);
                let later = Self::some_of_fields::<ALL>(words, ty, count, &fields, clock)?;
                self.merge_after(&later);
            }
        }
        Some(())
    }

    /// Statistics with the figures in `PARTS`.
    #[inline(always)]
    fn some_of_fields<const PARTS: u8>(
        words: Words,
        ty: ColumnType,
        count: u64,
        fields: &[u64; STATS_FIELDS],
        clock: &Clock,
    ) -> Option<Self> {
        let parts = Parts::of_bits(PARTS);
        let [first, min, max, last] = words.all([FIRST, MIN, MAX, LAST].map(|field| fields[field]));
        let without = rows_without(ty, count, fields)?;
        let mut stats = Self::empty_with(parts, ty);
        stats.count = count;
        stats.nan_count = fields[NAN_COUNT];
        stats.null_count = fields[NULL_COUNT];
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
                Words::Floats | Words::Decimals(_) => {
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
