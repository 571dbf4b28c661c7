//! Statistics passes with AVX-512 intrinsics. From the plain loops the compiler generates slow code: it splits the tree
//! that adds up the lanes into pairs, fills the last block through memory, and searches each block twice for a row.
//!
//! The results equal the results of the plain loops in loops/fold.rs bit by bit.

use core::arch::x86_64::*;

use super::avx512::{EIGHT, load, load_some, store};
use crate::loops::dd::Dd;
use crate::loops::fold::{Lanes, Reach, Total, gather_infinite};

/// Eight partial sums, one per lane of a register, and their rounding errors.
#[derive(Clone, Copy)]
struct Sum {
    hi: __m512d,
    rest: __m512d,
}

impl Sum {
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn zero() -> Self {
        let zero = _mm512_setzero_pd();
        Self {
            hi: zero,
            rest: zero,
        }
    }

    /// Adds one float per lane, as `two_sum` does. `one` is 1.0, hidden from the compiler: half of the sums are
    /// computed as x * 1 + y, with the same bits, in the multiplier. A processor with separate adders (AMD) then
    /// executes both halves at once.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn take(&mut self, x: __m512d, one: __m512d) {
        let s = _mm512_fmadd_pd(self.hi, one, x);
        let xx = _mm512_fmsub_pd(s, one, self.hi);
        let of_sum = _mm512_fmsub_pd(self.hi, one, _mm512_sub_pd(s, xx));
        let e = _mm512_add_pd(of_sum, _mm512_sub_pd(x, xx));
        self.hi = s;
        self.rest = _mm512_fmadd_pd(self.rest, one, e);
    }
}

/// The state of a pass over floats, in eight lanes that stay in registers.
#[derive(Clone, Copy)]
struct Registers {
    sum: Sum,
    squares: __m512d,
    squares_rest: __m512d,
    low: __m512d,
    high: __m512d,
    nan_count: u64,
}

/// AVX-512 form of `dd::two_sum`.
#[target_feature(enable = "avx512f")]
#[inline]
fn two_sum(a: __m512d, b: __m512d) -> (__m512d, __m512d) {
    let s = _mm512_add_pd(a, b);
    let bb = _mm512_sub_pd(s, a);
    let of_a = _mm512_sub_pd(a, _mm512_sub_pd(s, bb));
    (s, _mm512_add_pd(of_a, _mm512_sub_pd(b, bb)))
}

/// AVX-512 form of `dd::quick_two_sum`.
#[target_feature(enable = "avx512f")]
#[inline]
fn quick_two_sum(a: __m512d, b: __m512d) -> (__m512d, __m512d) {
    let s = _mm512_add_pd(a, b);
    (s, _mm512_sub_pd(b, _mm512_sub_pd(s, a)))
}

impl Registers {
    /// Adds one row per lane. `one` is 1.0, as in [`Sum::take`].
    #[target_feature(enable = "avx512f,avx512dq")]
    #[inline]
    fn take(&mut self, words: __m512i, one: __m512d) {
        let x = _mm512_castsi512_pd(words);
        let nan = _mm512_cmp_pd_mask::<_CMP_UNORD_Q>(x, x);
        self.nan_count += u64::from(nan.count_ones());
        // The minimum and maximum instructions return the second operand if one operand is NaN, or if both are zero.
        self.low = _mm512_min_pd(x, self.low);
        self.high = _mm512_max_pd(x, self.high);
        let x = _mm512_maskz_mov_pd(!nan, x);
        let plus = |a, b| _mm512_fmadd_pd(a, one, b);
        let minus = |a, b| _mm512_fmsub_pd(a, one, b);
        self.sum.take(x, one);
        let p = _mm512_mul_pd(x, x);
        let r = _mm512_fmsub_pd(x, x, p);
        let s = plus(self.squares, p);
        let pp = minus(s, self.squares);
        let of_squares = minus(self.squares, _mm512_sub_pd(s, pp));
        let e = _mm512_add_pd(of_squares, minus(p, pp));
        self.squares = s;
        self.squares_rest = _mm512_add_pd(self.squares_rest, _mm512_add_pd(e, r));
    }
}

/// AVX-512 form of `fold::float_lanes`.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,bmi2")]
pub(super) fn float_lanes(values: &[u64]) -> Lanes {
    let zero = _mm512_setzero_pd();
    let mut own = Registers {
        sum: Sum::zero(),
        squares: zero,
        squares_rest: zero,
        low: _mm512_set1_pd(f64::INFINITY),
        high: _mm512_set1_pd(f64::NEG_INFINITY),
        nan_count: 0,
    };
    let one = _mm512_set1_pd(core::hint::black_box(1.0));
    let (blocks, rest) = values.as_chunks::<EIGHT>();
    for block in blocks {
        own.take(load(block), one);
    }
    if !rest.is_empty() {
        // Pads the last register with NaN, because a NaN only changes the count of NaN.
        let nan = _mm512_castpd_si512(_mm512_set1_pd(f64::NAN));
        own.take(load_some(rest, nan), one);
        own.nan_count -= (EIGHT - rest.len()) as u64;
    }
    let array = |register| {
        let mut lanes = [0.0; EIGHT];
        store(&mut lanes, _mm512_castpd_si512(register));
        lanes
    };
    Lanes {
        sum: array(own.sum.hi),
        sum_rest: array(own.sum.rest),
        squares: array(own.squares),
        squares_rest: array(own.squares_rest),
        low: _mm512_reduce_min_pd(own.low),
        high: _mm512_reduce_max_pd(own.high),
        nan_count: own.nan_count,
    }
}

/// Double-double numbers (each the sum of two floats) in two registers.
#[derive(Clone, Copy)]
struct Pairs {
    hi: __m512d,
    lo: __m512d,
}

impl Pairs {
    /// Like `Dd::add`, for sums that do not overflow.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn add(self, other: Self) -> Self {
        let (s, e) = two_sum(self.hi, other.hi);
        let (t, f) = two_sum(self.lo, other.lo);
        let (s, e) = quick_two_sum(s, _mm512_add_pd(e, t));
        let (hi, lo) = quick_two_sum(s, _mm512_add_pd(e, f));
        Self { hi, lo }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn map(self, f: impl Fn(__m512d) -> __m512d) -> Self {
        Self {
            hi: f(self.hi),
            lo: f(self.lo),
        }
    }
}

#[target_feature(enable = "avx512f")]
#[inline]
fn pairs(hi: &[f64; EIGHT], lo: &[f64; EIGHT]) -> Pairs {
    let [hi, lo] = [hi, lo].map(|lanes| _mm512_castsi512_pd(load(lanes)));
    let (hi, lo) = quick_two_sum(hi, lo);
    Pairs { hi, lo }
}

/// AVX-512 form of `fold::gather`: adds up both trees at once, the sum in the lower half of the register and the
/// squares in the upper half.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,bmi2")]
pub(super) fn gather(lanes: &Lanes) -> [Dd; 2] {
    let sum = pairs(&lanes.sum, &lanes.sum_rest);
    let squares = pairs(&lanes.squares, &lanes.squares_rest);
    // Combines lanes 0 to 3 of the sum and of the squares, then lanes 4 to 7.
    let low = Pairs {
        hi: _mm512_shuffle_f64x2::<0b01_00_01_00>(sum.hi, squares.hi),
        lo: _mm512_shuffle_f64x2::<0b01_00_01_00>(sum.lo, squares.lo),
    };
    let high = Pairs {
        hi: _mm512_shuffle_f64x2::<0b11_10_11_10>(sum.hi, squares.hi),
        lo: _mm512_shuffle_f64x2::<0b11_10_11_10>(sum.lo, squares.lo),
    };
    let four = low.add(high);
    let two = four.add(four.map(|x| _mm512_permutex_pd::<0b11_10_11_10>(x)));
    let one = two.add(two.map(|x| _mm512_permute_pd::<0b0101_0101>(x)));
    let dd = |hi: f64, lo: f64, highs: &[f64; EIGHT], lows: &[f64; EIGHT]| {
        // If a value became infinite or NaN on the way, the total is infinite or NaN as well.
        if hi.is_finite() {
            Dd { hi, lo }
        } else {
            gather_infinite(highs, lows)
        }
    };
    let first = |x: __m512d| _mm512_cvtsd_f64(x);
    let fifth = |x: __m512d| _mm256_cvtsd_f64(_mm512_extractf64x4_pd::<1>(x));
    [
        dd(first(one.hi), first(one.lo), &lanes.sum, &lanes.sum_rest),
        dd(
            fifth(one.hi),
            fifth(one.lo),
            &lanes.squares,
            &lanes.squares_rest,
        ),
    ]
}

/// AVX-512 form of `fold::float_total`. NaNs are counted only if the sum of all values is not finite, because a NaN or
/// an infinity makes the sum not finite.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,bmi2")]
pub(super) fn float_total(values: &[u64]) -> Total {
    let sum = sum_of(values, |x| x);
    if sum.hi.is_finite() {
        return Total { sum, nan_count: 0 };
    }
    let values_alone = |x| {
        let nan = _mm512_cmp_pd_mask::<_CMP_UNORD_Q>(x, x);
        _mm512_maskz_mov_pd(!nan, x)
    };
    Total {
        sum: sum_of(values, values_alone),
        nan_count: nan_count(values),
    }
}

/// Sums `value` of each float, in eight lanes.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,bmi2")]
#[inline]
fn sum_of(values: &[u64], value: impl Fn(__m512d) -> __m512d) -> Dd {
    let mut sum = Sum::zero();
    let one = _mm512_set1_pd(core::hint::black_box(1.0));
    let (blocks, rest) = values.as_chunks::<EIGHT>();
    for block in blocks {
        sum.take(value(_mm512_castsi512_pd(load(block))), one);
    }
    if !rest.is_empty() {
        let words = load_some(rest, _mm512_setzero_si512());
        sum.take(value(_mm512_castsi512_pd(words)), one);
    }
    let (hi, lo) = quick_two_sum(sum.hi, sum.rest);
    let eight = Pairs { hi, lo };
    let four = eight.add(eight.map(|x| _mm512_shuffle_f64x2::<0b01_00_11_10>(x, x)));
    let two = four.add(four.map(|x| _mm512_permutex_pd::<0b01_00_11_10>(x)));
    let one = two.add(two.map(|x| _mm512_permute_pd::<0b0101_0101>(x)));
    Dd {
        hi: _mm512_cvtsd_f64(one.hi),
        lo: _mm512_cvtsd_f64(one.lo),
    }
}

#[cold]
#[inline(never)]
fn nan_count(values: &[u64]) -> u64 {
    let nans = values.iter().filter(|&&word| f64::from_bits(word).is_nan());
    nans.count() as u64
}

/// AVX-512 form of `fold::float_reach`.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,bmi2")]
pub(super) fn float_reach(values: &[u64]) -> Reach {
    let mut low = _mm512_set1_pd(f64::INFINITY);
    let mut high = _mm512_set1_pd(f64::NEG_INFINITY);
    let mut nans: __mmask8 = 0;
    let mut take = |words: __m512i| {
        let x = _mm512_castsi512_pd(words);
        nans |= _mm512_cmp_pd_mask::<_CMP_UNORD_Q>(x, x);
        // The minimum and maximum instructions return the second operand if one operand is NaN, or if both are zero.
        low = _mm512_min_pd(x, low);
        high = _mm512_max_pd(x, high);
    };
    let (blocks, rest) = values.as_chunks::<EIGHT>();
    for block in blocks {
        take(load(block));
    }
    if let Some(&first) = rest.first() {
        take(load_some(rest, _mm512_set1_epi64(first as i64)));
    }
    Reach {
        low: _mm512_reduce_min_pd(low),
        high: _mm512_reduce_max_pd(high),
        nan_count: match nans {
            0 => 0,
            _ => nan_count(values),
        },
    }
}

/// Number of registers that are compared between two tests for an early exit.
const BLOCK: usize = 4;

/// The first row in these registers that holds `word`, or `before` if an earlier row was found already. `at` is the row
/// number of the first element of the registers.
#[target_feature(enable = "avx512f")]
#[inline]
fn row_in(before: Option<usize>, word: __m512i, at: usize, rows: &[__m512i]) -> Option<usize> {
    if before.is_some() {
        return before;
    }
    let mut found = 0u32;
    for (i, &words) in rows.iter().enumerate() {
        found |= u32::from(_mm512_cmpeq_epi64_mask(words, word)) << (i * EIGHT);
    }
    (found != 0).then(|| at + found.trailing_zeros() as usize)
}

/// AVX-512 form of `fold::positions`.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,bmi2")]
pub(super) fn positions(values: &[u64], [a, b]: [u64; 2]) -> [usize; 2] {
    let [a, b] = [a, b].map(|word| _mm512_set1_epi64(word as i64));
    let (mut row_a, mut row_b) = (None, None);
    let mut at = 0;
    let (registers, rest) = values.as_chunks::<EIGHT>();
    let (blocks, single) = registers.as_chunks::<BLOCK>();
    for block in blocks {
        let [w, x, y, z] = block;
        let rows = [load(w), load(x), load(y), load(z)];
        row_a = row_in(row_a, a, at, &rows);
        row_b = row_in(row_b, b, at, &rows);
        if let (Some(row_a), Some(row_b)) = (row_a, row_b) {
            return [row_a, row_b];
        }
        at += BLOCK * EIGHT;
    }
    for words in single {
        let rows = [load(words)];
        row_a = row_in(row_a, a, at, &rows);
        row_b = row_in(row_b, b, at, &rows);
        at += EIGHT;
    }
    if !rest.is_empty() {
        // Fills the last register with copies of a row that comes before: a copy cannot be a first occurrence.
        let fill = _mm512_set1_epi64(rest[0] as i64);
        let rows = [load_some(rest, fill)];
        row_a = row_in(row_a, a, at, &rows);
        row_b = row_in(row_b, b, at, &rows);
    }
    [row_a.unwrap_or(0), row_b.unwrap_or(0)]
}
