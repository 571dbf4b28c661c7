//! The passes over a stretch that statistics are made of.

use super::dd::{Dd, two_product, two_sum};
use crate::ColumnType;
use crate::kernel;

/// Lanes of the sums. Row i of a stretch goes to lane i mod 8; the lanes are added pairwise:
/// (0+4), (1+5), (2+6), (3+7), then (0+2), (1+3), then 0+1.
const LANES: usize = 8;

/// Of a stretch of floats.
pub(super) struct Floats {
    pub(super) nan_count: u64,
    pub(super) sum: Dd,
    pub(super) squares: Dd,
    /// Words of the smallest and the greatest; `None` when all are NaN.
    pub(super) extremes: Option<[u64; 2]>,
}

/// Of a stretch of integers.
pub(super) struct Integers {
    pub(super) sum: i128,
    pub(super) squares: Dd,
    pub(super) extremes: [u64; 2],
}

/// What the eight lanes of floats hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lanes {
    sum: [f64; LANES],
    sum_rest: [f64; LANES],
    squares: [f64; LANES],
    squares_rest: [f64; LANES],
    /// Of the zeros either may stand here.
    low: [f64; LANES],
    high: [f64; LANES],
    nan_count: u64,
}

/// `two_product(x, x)` for processors without FMA, where `mul_add` is a slow call: Dekker's
/// product where no part of it can overflow or underflow, so that the bits are the same.
#[inline(always)]
fn exact_square(x: f64) -> (f64, f64) {
    const SPLIT: f64 = 134_217_729.0; // 2^27 + 1
    let magnitude = x.abs();
    let p = x * x;
    if !(1e-140..1e150).contains(&magnitude) {
        return (p, if x == 0.0 { 0.0 } else { x.mul_add(x, -p) });
    }
    let c = SPLIT * x;
    let high = c - (c - x);
    let low = x - high;
    (p, ((high * high - p) + 2.0 * (high * low)) + low * low)
}

/// Row i goes to lane i mod 8.
#[inline(always)]
pub(crate) fn float_lanes<const FMA: bool>(values: &[u64]) -> Lanes {
    // Arrays of their own, not fields: so the lanes stay in registers.
    let (mut sum, mut sum_rest) = ([0.0; LANES], [0.0; LANES]);
    let (mut squares, mut squares_rest) = ([0.0; LANES], [0.0; LANES]);
    let (mut low, mut high) = ([f64::INFINITY; LANES], [f64::NEG_INFINITY; LANES]);
    let mut nan_count = [0u64; LANES];
    let (blocks, rest) = values.as_chunks::<LANES>();
    // NaN adds nothing but its count, so it fills the last block.
    let mut last = [f64::NAN.to_bits(); LANES];
    last[..rest.len()].copy_from_slice(rest);
    for at in 0..=blocks.len() {
        let block = blocks.get(at).unwrap_or(&last);
        for lane in 0..LANES {
            let word = block[lane];
            let x = f64::from_bits(word);
            let nan = x.is_nan();
            nan_count[lane] += u64::from(nan);
            // Not f64::min: this is one instruction, and leaves a NaN out.
            low[lane] = if x < low[lane] { x } else { low[lane] };
            high[lane] = if x > high[lane] { x } else { high[lane] };
            let x = if nan { 0.0 } else { x };
            let (s, e) = two_sum(sum[lane], x);
            sum[lane] = s;
            sum_rest[lane] += e;
            let (p, r) = if FMA {
                two_product(x, x)
            } else {
                exact_square(x)
            };
            let (s, e) = two_sum(squares[lane], p);
            squares[lane] = s;
            squares_rest[lane] += e + r;
        }
    }
    Lanes {
        sum,
        sum_rest,
        squares,
        squares_rest,
        low,
        high,
        nan_count: nan_count.iter().sum::<u64>() - (LANES - rest.len()) as u64,
    }
}

fn gather(hi: &[f64; LANES], lo: &[f64; LANES]) -> Dd {
    let mut parts = [Dd::default(); LANES];
    for (part, (&hi, &lo)) in parts.iter_mut().zip(hi.iter().zip(lo)) {
        *part = Dd::new(hi, lo);
    }
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            parts[i] = parts[i].add(parts[i + half]);
        }
        half /= 2;
    }
    parts[0]
}

pub(super) fn floats(values: &[u64]) -> Floats {
    let lanes = kernel::float_lanes(values);
    let nan_count = lanes.nan_count;
    if nan_count == values.len() as u64 {
        return Floats {
            nan_count,
            sum: Dd::default(),
            squares: Dd::default(),
            extremes: None,
        };
    }
    let min = lanes.low.iter().copied().fold(f64::INFINITY, f64::min);
    let max = lanes.high.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // The smaller zero is -0.0, the greater +0.0, where there is one.
    let zero = |wanted: f64, other: f64| {
        if kernel::position(values, wanted.to_bits()).is_some() {
            wanted.to_bits()
        } else {
            other.to_bits()
        }
    };
    let extremes = [
        if min == 0.0 {
            zero(-0.0, 0.0)
        } else {
            min.to_bits()
        },
        if max == 0.0 {
            zero(0.0, -0.0)
        } else {
            max.to_bits()
        },
    ];
    let infinite = min.is_infinite() || max.is_infinite();
    let mut sum = gather(&lanes.sum, &lanes.sum_rest);
    let mut squares = gather(&lanes.squares, &lanes.squares_rest);
    if infinite {
        // The lanes hold NaN from inf - inf; plain addition gives +inf, -inf, or NaN for both.
        sum = match (min.is_infinite(), max.is_infinite()) {
            _ if min == max => Dd::from_f64(min),
            (true, true) => Dd::from_f64(f64::NAN),
            (true, false) => Dd::from_f64(min),
            _ => Dd::from_f64(max),
        };
        squares = Dd::from_f64(f64::INFINITY);
    } else {
        if !lane_sums_finite(&lanes.sum) || !sum.hi.is_finite() {
            sum = scaled_sum(values);
        }
        if !lane_sums_finite(&lanes.squares) {
            squares = Dd::from_f64(f64::INFINITY);
        }
    }
    Floats {
        nan_count,
        sum,
        squares,
        extremes: Some(extremes),
    }
}

fn lane_sums_finite(sums: &[f64; LANES]) -> bool {
    sums.iter().all(|s| s.is_finite())
}

/// The sum of finite values whose partial sums overflow: summed at 2^-64 of their size, which is
/// exact for all that matters beside values near 2^1023.
fn scaled_sum(values: &[u64]) -> Dd {
    const DOWN: f64 = 1.0 / 18_446_744_073_709_551_616.0;
    let mut sum = Dd::default();
    for &word in values {
        let x = f64::from_bits(word);
        if !x.is_nan() {
            sum = sum.add(Dd::from_f64(x * DOWN));
        }
    }
    sum.scale(1.0 / DOWN)
}

pub(super) fn integers(ty: ColumnType, values: &[u64]) -> Integers {
    // Unsigned values move into the signed order and back.
    let flip = if ty == ColumnType::U64 { 1 << 63 } else { 0 };
    let first = values[0];
    let count = values.len() as u64;
    if kernel::all_equal(values) {
        let (value, magnitude) = number(ty, first);
        let square = u128::from(magnitude) * u128::from(magnitude);
        let squares = match square.checked_mul(u128::from(count)) {
            Some(exact) => Dd::from_u128(exact),
            None => Dd::from_u128(square).mul(Dd::from_u64(count)),
        };
        return Integers {
            sum: value * i128::from(count),
            squares,
            extremes: [first, first],
        };
    }
    let (low, high) = kernel::integer_extent(values, flip);
    let (low, high) = (low as u64 ^ flip, high as u64 ^ flip);
    // An unsigned value beyond 2^63 is no small negative one.
    let small = if flip == 0 { -(1 << 31) } else { 0 }..1 << 31;
    if small.contains(&(low as i64)) && small.contains(&(high as i64)) && count < 1 << 31 {
        let narrow = kernel::narrow_sums(values);
        return Integers {
            sum: i128::from(narrow.sum),
            squares: Dd::from_u128(
                (u128::from(narrow.squares_high) << 32) + u128::from(narrow.squares_low),
            ),
            extremes: [low, high],
        };
    }
    let mut sum = 0i128;
    let (mut squares_low, mut squares_high) = (0u128, 0u128);
    for &word in values {
        let (value, magnitude) = number(ty, word);
        sum += value;
        let square = u128::from(magnitude) * u128::from(magnitude);
        squares_low += square & u128::from(u64::MAX);
        squares_high += square >> 64;
    }
    const TWO_64: f64 = 18_446_744_073_709_551_616.0;
    Integers {
        sum,
        squares: Dd::from_u128(squares_high)
            .scale(TWO_64)
            .add(Dd::from_u128(squares_low)),
        extremes: [low, high],
    }
}

/// The value of a word, and its magnitude.
#[inline(always)]
fn number(ty: ColumnType, word: u64) -> (i128, u64) {
    if ty == ColumnType::I64 {
        (i128::from(word as i64), (word as i64).unsigned_abs())
    } else {
        (i128::from(word), word)
    }
}

/// Smallest and greatest of `word ^ flip`, signed.
#[inline(always)]
pub(crate) fn integer_extent(values: &[u64], flip: u64) -> (i64, i64) {
    let (mut low, mut high) = (i64::MAX, i64::MIN);
    for &word in values {
        let key = (word ^ flip) as i64;
        low = low.min(key);
        high = high.max(key);
    }
    (low, high)
}

/// Sums of values within -2^31 to 2^31 - 1, fewer than 2^31 of them; the squares are in halves of
/// 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Narrow {
    sum: i64,
    squares_low: u64,
    squares_high: u64,
}

#[inline(always)]
pub(crate) fn narrow_sums(values: &[u64]) -> Narrow {
    let (mut sum, mut squares_low, mut squares_high) = (0i64, 0u64, 0u64);
    for &word in values {
        let value = i64::from(word as i32);
        let square = (value * value) as u64;
        sum += value;
        squares_low += square & 0xffff_ffff;
        squares_high += square >> 32;
    }
    Narrow {
        sum,
        squares_low,
        squares_high,
    }
}

/// The first row that holds `word`.
#[inline(always)]
pub(crate) fn position(values: &[u64], word: u64) -> Option<usize> {
    const BLOCK: usize = 64;
    let mut at = 0;
    for block in values.chunks(BLOCK) {
        let found = block.iter().fold(false, |found, &w| found | (w == word));
        if found {
            return block.iter().position(|&w| w == word).map(|i| at + i);
        }
        at += BLOCK;
    }
    None
}
