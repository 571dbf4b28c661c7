//! Computes the figures of a slice of words with the passes of `kernel`. Adds a pass where the sums of the first pass
//! are not exact, and finds the words of the extremes.

use crate::column::ColumnType;
use crate::kernel;
use crate::loops::dd::Dd;

/// Figures of a slice of floats: counts, sums and extremes.
pub(super) struct Floats {
    pub(super) nan_count: u64,
    pub(super) sum: Dd,
    pub(super) squares: Dd,
    /// The words of the smallest and the largest value; `None` if all rows are NaN.
    pub(super) extremes: Option<[u64; 2]>,
}

/// Figures of a slice of integers: sums and extremes.
pub(super) struct Integers {
    pub(super) sum: i128,
    pub(super) squares: Dd,
    pub(super) extremes: [u64; 2],
}

/// The words of the smallest and the largest float; at least one float must exist.
#[inline]
pub(super) fn extremes_of(values: &[u64], min: f64, max: f64) -> [u64; 2] {
    // If the slice contains both zeros, the smallest is -0.0 and the largest +0.0.
    let zero = |wanted: f64| match kernel::position(values, wanted.to_bits()) {
        Some(_) => wanted.to_bits(),
        None => (-wanted).to_bits(),
    };
    [
        if min == 0.0 {
            zero(-0.0)
        } else {
            min.to_bits()
        },
        if max == 0.0 { zero(0.0) } else { max.to_bits() },
    ]
}

/// The sum of floats, equal to the sum that `floats` computes, and the number of NaN.
pub(super) fn float_sum(values: &[u64]) -> (Dd, u64) {
    let total = kernel::float_total(values);
    if total.sum.hi.is_finite() {
        return (total.sum, total.nan_count);
    }
    (odd_sum(values), total.nan_count)
}

/// The sum if some floats are infinite, or if the sum exceeds the range of floats on the way. The extremes tell which
/// of these it is.
#[cold]
#[inline(never)]
fn odd_sum(values: &[u64]) -> Dd {
    floats(values).sum
}

// Computes all figures of a slice of floats. Inlined into `Stats::of`, where slices are short: returning the result
// through memory would take as long as computing it.
#[inline(always)]
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
    let (min, max) = (lanes.low, lanes.high);
    let infinite = min.is_infinite() || max.is_infinite();
    let extremes = extremes_of(values, min, max);
    let [mut sum, mut squares] = kernel::gather(&lanes);
    if infinite {
        // The lanes hold NaN from infinity minus infinity. Plain addition gives +infinity or -infinity, and NaN if both
        // infinities occur; so does this expression.
        sum = match (min.is_infinite(), max.is_infinite()) {
            _ if min == max => Dd::from_f64(min),
            (true, true) => Dd::from_f64(f64::NAN),
            (true, false) => Dd::from_f64(min),
            _ => Dd::from_f64(max),
        };
        squares = Dd::from_f64(f64::INFINITY);
    } else {
        // The sums are not finite if the sum of a lane exceeded the range of floats.
        if !sum.hi.is_finite() {
            sum = super::sums::of_large(values);
        }
        if !squares.hi.is_finite() {
            squares = super::squares::of_large(values);
        }
    }
    Floats {
        nan_count,
        sum,
        squares,
        extremes: Some(extremes),
    }
}

/// Mask that maps the order of unsigned integers to the order of signed integers, and back.
fn flip_of(ty: ColumnType) -> u64 {
    if ty == ColumnType::U64 { 1 << 63 } else { 0 }
}

/// The sum of integers of a type without nulls.
pub(super) fn integer_sum(ty: ColumnType, values: &[u64]) -> i128 {
    /// Number of 32-bit halves whose sum fits 64 bits.
    const EACH: usize = 1 << 31;
    let mut sum = 0;
    for values in values.chunks(EACH) {
        // Adds 2^63 to signed values, so that all values are non-negative.
        let more = flip_of(ty) ^ 1 << 63;
        let [low, high] = kernel::sums_of_halves(values, more);
        sum += (i128::from(high) << 32) + i128::from(low);
        sum -= i128::from(more) * values.len() as i128;
    }
    sum
}

/// The smallest and the largest word of a type without nulls.
pub(super) fn integer_extremes(ty: ColumnType, values: &[u64]) -> [u64; 2] {
    let flip = flip_of(ty);
    let extent = kernel::key_extent(values, flip);
    [extent.low, extent.high].map(|key| key as u64 ^ flip)
}

pub(super) fn integers(ty: ColumnType, values: &[u64]) -> Integers {
    let flip = flip_of(ty);
    let count = values.len() as u64;
    let pass = kernel::integer_pass(values, flip);
    let (low, high) = (pass.low as u64 ^ flip, pass.high as u64 ^ flip);
    let extremes = [low, high];
    // For unsigned values the range begins at 0: a value from 2^63 up must not be taken for a small negative one.
    let small = if flip == 0 { -(1 << 31) } else { 0 }..1 << 31;
    if small.contains(&(low as i64)) && small.contains(&(high as i64)) && count < 1 << 31 {
        let squares = (u128::from(pass.squares_high) << 32) + u128::from(pass.squares_low);
        return Integers {
            sum: i128::from(pass.sum),
            squares: Dd::from_u128(squares),
            extremes,
        };
    }
    if low == high {
        let (value, magnitude) = number(ty, low);
        let square = u128::from(magnitude) * u128::from(magnitude);
        let squares = match square.checked_mul(u128::from(count)) {
            Some(exact) => Dd::from_u128(exact),
            None => Dd::from_u128(square).mul(Dd::from_u64(count)),
        };
        return Integers {
            sum: value * i128::from(count),
            squares,
            extremes,
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
        extremes,
    }
}

/// The value of a word as an integer, and its magnitude.
#[inline(always)]
fn number(ty: ColumnType, word: u64) -> (i128, u64) {
    if ty == ColumnType::I64 {
        (i128::from(word as i64), (word as i64).unsigned_abs())
    } else {
        (i128::from(word), word)
    }
}
