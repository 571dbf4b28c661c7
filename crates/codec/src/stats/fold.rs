//! The passes over a stretch that statistics are made of.

use super::dd::{Dd, two_product, two_sum};
use crate::ColumnType;
use crate::column::float_key;

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

/// What the eight lanes hold.
#[derive(Clone, Copy)]
struct Lanes {
    sum: [f64; LANES],
    sum_rest: [f64; LANES],
    squares: [f64; LANES],
    squares_rest: [f64; LANES],
    low: [i64; LANES],
    high: [i64; LANES],
    nan_count: [u64; LANES],
}

impl Lanes {
    #[inline(always)]
    fn add(&mut self, lane: usize, word: u64) {
        let x = f64::from_bits(word);
        let nan = x.is_nan();
        let key = float_key(word);
        self.nan_count[lane] += u64::from(nan);
        self.low[lane] = self.low[lane].min(if nan { i64::MAX } else { key });
        self.high[lane] = self.high[lane].max(if nan { i64::MIN } else { key });
        let x = if nan { 0.0 } else { x };
        let (s, e) = two_sum(self.sum[lane], x);
        self.sum[lane] = s;
        self.sum_rest[lane] += e;
        let (p, r) = two_product(x, x);
        let (s, e) = two_sum(self.squares[lane], p);
        self.squares[lane] = s;
        self.squares_rest[lane] += e + r;
    }
}

#[inline(always)]
fn lanes(values: &[u64]) -> Lanes {
    let mut lanes = Lanes {
        sum: [0.0; LANES],
        sum_rest: [0.0; LANES],
        squares: [0.0; LANES],
        squares_rest: [0.0; LANES],
        low: [i64::MAX; LANES],
        high: [i64::MIN; LANES],
        nan_count: [0; LANES],
    };
    let (blocks, rest) = values.as_chunks::<LANES>();
    for block in blocks {
        for (lane, &word) in block.iter().enumerate() {
            lanes.add(lane, word);
        }
    }
    for (lane, &word) in rest.iter().enumerate() {
        lanes.add(lane, word);
    }
    lanes
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
    let lanes = lanes(values);
    let nan_count: u64 = lanes.nan_count.iter().sum();
    let low = lanes.low.iter().copied().min().unwrap_or(0);
    let high = lanes.high.iter().copied().max().unwrap_or(0);
    // float_key is its own inverse on the bits.
    let extremes = [low, high].map(|key| float_key(key as u64) as u64);
    if nan_count == values.len() as u64 {
        return Floats {
            nan_count,
            sum: Dd::default(),
            squares: Dd::default(),
            extremes: None,
        };
    }
    let [min, max] = extremes.map(f64::from_bits);
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
    let signed = ty == ColumnType::I64;
    let mut low = values[0];
    let mut high = values[0];
    let mut sum = 0i128;
    let (mut squares_low, mut squares_high) = (0u128, 0u128);
    for &word in values {
        let (value, magnitude) = if signed {
            (i128::from(word as i64), (word as i64).unsigned_abs())
        } else {
            (i128::from(word), word)
        };
        if ty.order_key(word) < ty.order_key(low) {
            low = word;
        }
        if ty.order_key(word) > ty.order_key(high) {
            high = word;
        }
        sum += value;
        let square = u128::from(magnitude) * u128::from(magnitude);
        squares_low += square & u128::from(u64::MAX);
        squares_high += square >> 64;
    }
    Integers {
        sum,
        squares: wide_square(squares_high, squares_low),
        extremes: [low, high],
    }
}

/// high * 2^64 + low.
fn wide_square(high: u128, low: u128) -> Dd {
    const TWO_64: f64 = 18_446_744_073_709_551_616.0;
    Dd::from_u128(high).scale(TWO_64).add(Dd::from_u128(low))
}

/// The first row that holds `word`, which occurs.
pub(super) fn position(values: &[u64], word: u64) -> usize {
    values.iter().position(|&w| w == word).unwrap_or(0)
}
