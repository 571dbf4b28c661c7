//! Computes statistics in one pass over a slice of words: sums, squares and extremes of floats and integers, and the
//! position of a word.
//!
//! `kernel` compiles these loops for each kind of processor. They compute all figures in one pass: at the edges of
//! windows the slices are short, and a second pass would take noticeable time.

use super::dd::{Dd, quick_two_sum, two_product, two_sum};
use super::parts::Parts;
use super::scan::Extent;

/// Number of lanes (independent partial results) of a pass. Row i of a slice goes to lane i mod 8; the lanes of sums of
/// floats are added pairwise: (0+4), (1+5), (2+6), (3+7), then (0+2), (1+3), then 0+1.
const LANES: usize = 8;

/// The results of a pass over floats in eight lanes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lanes {
    pub(crate) sum: [f64; LANES],
    pub(crate) sum_rest: [f64; LANES],
    pub(crate) squares: [f64; LANES],
    pub(crate) squares_rest: [f64; LANES],
    /// The smallest value, and below, the largest value; a zero may have either sign.
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) nan_count: u64,
}

/// Computes `two_product(x, x)` on processors without FMA, where `mul_add` is a slow call. Uses Dekker's product, but
/// only if no part of it can overflow or underflow, so that the bits are the same.
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

/// Adds row i to lane i mod 8. Computes only the figures that `PARTS` selects: sum, squares, extremes.
#[inline(always)]
fn lanes_of<const PARTS: u8, const FMA: bool>(values: &[u64]) -> Lanes {
    let parts = Parts::of_bits(PARTS);
    // The lanes are separate arrays, not fields of a struct, so that the compiler keeps them in registers.
    let (mut sum, mut sum_rest) = ([0.0; LANES], [0.0; LANES]);
    let (mut squares, mut squares_rest) = ([0.0; LANES], [0.0; LANES]);
    let (mut low, mut high) = ([f64::INFINITY; LANES], [f64::NEG_INFINITY; LANES]);
    let mut nan_count = [0u64; LANES];
    let (blocks, rest) = values.as_chunks::<LANES>();
    // Pads the last block with NaN, because a NaN only changes the count of NaN.
    let mut last = [f64::NAN.to_bits(); LANES];
    last[..rest.len()].copy_from_slice(rest);
    for at in 0..=blocks.len() {
        let block = blocks.get(at).unwrap_or(&last);
        for lane in 0..LANES {
            let word = block[lane];
            let x = f64::from_bits(word);
            let nan = x.is_nan();
            nan_count[lane] += u64::from(nan);
            if parts.has(Parts::EXTREMES) {
                // This comparison is a single instruction and ignores NaN; `f64::min` takes several.
                low[lane] = if x < low[lane] { x } else { low[lane] };
                high[lane] = if x > high[lane] { x } else { high[lane] };
            }
            let x = if nan { 0.0 } else { x };
            if parts.has(Parts::SUM) {
                let (s, e) = two_sum(sum[lane], x);
                sum[lane] = s;
                sum_rest[lane] += e;
            }
            if parts.has(Parts::SQUARES) {
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
    }
    Lanes {
        sum,
        sum_rest,
        squares,
        squares_rest,
        low: low.into_iter().fold(f64::INFINITY, f64::min),
        high: high.into_iter().fold(f64::NEG_INFINITY, f64::max),
        nan_count: nan_count.iter().sum::<u64>() - (LANES - rest.len()) as u64,
    }
}

/// Computes all figures of a slice of floats.
#[inline(always)]
pub(crate) fn float_lanes<const FMA: bool>(values: &[u64]) -> Lanes {
    lanes_of::<{ Parts::ALL.bits() }, FMA>(values)
}

/// The sum of floats without NaN, in the summation order of [`float_lanes`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Total {
    /// The sum of the floats. If it is not finite, the caller must find out why.
    pub(crate) sum: Dd,
    pub(crate) nan_count: u64,
}

/// Computes only the sum of a slice of floats.
#[inline(always)]
pub(crate) fn float_total(values: &[u64]) -> Total {
    let lanes = lanes_of::<{ Parts::SUM.bits() }, false>(values);
    Total {
        sum: gather_one(&lanes.sum, &lanes.sum_rest),
        nan_count: lanes.nan_count,
    }
}

/// The smallest and the largest float; a zero may have either sign. Without values they are +infinity and -infinity.
/// NaNs are only counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) nan_count: u64,
}

/// Computes only the extremes of a slice of floats.
#[inline(always)]
pub(crate) fn float_reach(values: &[u64]) -> Reach {
    let lanes = lanes_of::<{ Parts::EXTREMES.bits() }, false>(values);
    Reach {
        low: lanes.low,
        high: lanes.high,
        nan_count: lanes.nan_count,
    }
}

/// Adds lane i + `HALF` to lane i, like `Dd::add` without overflow.
#[inline(always)]
fn halve<const HALF: usize>(hi: &mut [f64; LANES], lo: &mut [f64; LANES]) {
    for i in 0..HALF {
        let (s, e) = two_sum(hi[i], hi[i + HALF]);
        let (t, f) = two_sum(lo[i], lo[i + HALF]);
        let (s, e) = quick_two_sum(s, e + t);
        (hi[i], lo[i]) = quick_two_sum(s, e + f);
    }
}

/// Adds up the lanes: returns the sum and the sum of squares of all rows.
#[inline(always)]
pub(crate) fn gather(lanes: &Lanes) -> [Dd; 2] {
    [
        gather_one(&lanes.sum, &lanes.sum_rest),
        gather_one(&lanes.squares, &lanes.squares_rest),
    ]
}

#[inline(always)]
fn gather_one(hi: &[f64; LANES], lo: &[f64; LANES]) -> Dd {
    let (mut highs, mut lows) = (*hi, *lo);
    for (hi, lo) in highs.iter_mut().zip(&mut lows) {
        (*hi, *lo) = quick_two_sum(*hi, *lo);
    }
    halve::<4>(&mut highs, &mut lows);
    halve::<2>(&mut highs, &mut lows);
    halve::<1>(&mut highs, &mut lows);
    // If a value became infinite or NaN on the way, the total is infinite or NaN as well.
    if highs[0].is_finite() {
        Dd {
            hi: highs[0],
            lo: lows[0],
        }
    } else {
        gather_infinite(hi, lo)
    }
}

#[cold]
#[inline(never)]
pub(crate) fn gather_infinite(hi: &[f64; LANES], lo: &[f64; LANES]) -> Dd {
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

/// The sums of the lower and of the upper 32 bits of `word ^ flip`, for up to 2^31 words.
#[inline(always)]
pub(crate) fn sums_of_halves(values: &[u64], flip: u64) -> [u64; 2] {
    let (mut low, mut high) = (0u64, 0u64);
    for &word in values {
        let key = word ^ flip;
        low = low.wrapping_add(key & 0xffff_ffff);
        high = high.wrapping_add(key >> 32);
    }
    [low, high]
}

/// The smallest and the largest `word ^ flip`, compared as signed integers.
#[inline(always)]
pub(crate) fn key_extent(values: &[u64], flip: u64) -> Extent {
    let (mut low, mut high) = (i64::MAX, i64::MIN);
    for &word in values {
        let key = (word ^ flip) as i64;
        low = low.min(key);
        high = high.max(key);
    }
    Extent { low, high }
}

/// Result of a pass over a slice of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IntegerPass {
    /// The smallest and, below, the largest `word ^ flip`, compared as signed integers.
    pub(crate) low: i64,
    pub(crate) high: i64,
    /// The sum, and in the next two fields the sums of the lower and of the upper 32 bits of the squares. They are
    /// valid only for fewer than 2^31 values, all within -2^31 to 2^31 - 1.
    pub(crate) sum: i64,
    pub(crate) squares_low: u64,
    pub(crate) squares_high: u64,
}

/// Computes extremes and sums in one pass. The sums are valid only for integers of 32 bits, as most columns have.
#[inline(always)]
pub(crate) fn integer_pass(values: &[u64], flip: u64) -> IntegerPass {
    let (mut low, mut high) = (i64::MAX, i64::MIN);
    let (mut sum, mut squares, mut squares_high) = (0i64, 0u64, 0u64);
    for &word in values {
        let key = (word ^ flip) as i64;
        low = low.min(key);
        high = high.max(key);
        let value = i64::from(word as i32);
        let square = (value * value) as u64;
        sum = sum.wrapping_add(word as i64);
        squares = squares.wrapping_add(square);
        squares_high = squares_high.wrapping_add(square >> 32);
    }
    IntegerPass {
        low,
        high,
        sum,
        // `squares` may have wrapped, but the sum of the lower halves, the difference, cannot overflow.
        squares_low: squares.wrapping_sub(squares_high << 32),
        squares_high,
    }
}

/// Number of rows that are compared between two tests for an early exit.
const BLOCK: usize = 64;

/// The first row of a block that holds `word`, or `BLOCK` if no row holds it.
#[inline(always)]
fn row_in(block: &[u64; BLOCK], word: u64) -> usize {
    // Compares all rows, because with an early exit the loop would process one row at a time.
    let row = |i: usize| if block[i] == word { i } else { BLOCK };
    (0..BLOCK).map(row).fold(BLOCK, usize::min)
}

/// The first row that holds `word`; `None` if no row holds it.
#[inline(always)]
pub(crate) fn position(values: &[u64], word: u64) -> Option<usize> {
    let (blocks, rest) = values.as_chunks::<BLOCK>();
    for (at, block) in blocks.iter().enumerate() {
        if block.iter().fold(false, |found, &w| found | (w == word)) {
            return Some(at * BLOCK + row_in(block, word));
        }
    }
    let row = rest.iter().position(|&w| w == word);
    row.map(|row| values.len() - rest.len() + row)
}

/// The first rows that hold each of two words; 0 for a word that does not occur.
#[inline(always)]
pub(crate) fn positions(values: &[u64], [a, b]: [u64; 2]) -> [usize; 2] {
    let (blocks, rest) = values.as_chunks::<BLOCK>();
    let (mut row_a, mut row_b) = (None, None);
    for (at, block) in blocks.iter().enumerate() {
        let has = |word| block.iter().fold(false, |found, &w| found | (w == word));
        if row_a.is_none() && has(a) {
            row_a = Some(at * BLOCK + row_in(block, a));
        }
        if row_b.is_none() && has(b) {
            row_b = Some(at * BLOCK + row_in(block, b));
        }
        if let (Some(row_a), Some(row_b)) = (row_a, row_b) {
            return [row_a, row_b];
        }
    }
    [(row_a, a), (row_b, b)].map(|(row, word)| {
        row.unwrap_or_else(|| {
            let row = rest.iter().position(|&w| w == word);
            row.map_or(0, |row| values.len() - rest.len() + row)
        })
    })
}
