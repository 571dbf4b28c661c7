//! Converts floats to integers and back: as decimals (ALP, Afroozeh, Kuffó and Boncz, 2023) and as ordered bits.
//!
//! A decimal is an integer d with |d| < 2^51 and a rule that turns it into the float: multiply, d * 10^f * 10^-e in
//! this order, each product rounded; or divide, d / 10^e, rounded once. Division is exact for every number that was
//! parsed from up to 15 digits; multiplication is faster, and also matches numbers that were computed as count *
//! 0.01. A word that the rule does not reproduce bit by bit is an exception.

use crate::loops::pack::{self, Packed};
use crate::loops::scan;

/// Maximum exponent e, and maximum f of a rule that multiplies.
pub(crate) const EXPONENT_MAX: u8 = 18;

/// The value of the field `factor` that denotes division.
pub(crate) const DIVIDE: u8 = 255;

pub(crate) const POWERS: [f64; 19] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18,
];

pub(crate) const INVERSES: [f64; 19] = [
    1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14,
    1e-15, 1e-16, 1e-17, 1e-18,
];

/// 1.5 * 2^52. Adding this number to a float below 2^51 rounds the float to an integer, which is then in the low bits.
/// AVX2 has no instruction for conversion between i64 and f64; this conversion is exact on every processor.
pub(crate) const MAGIC: f64 = 6_755_399_441_055_744.0;
pub(crate) const MAGIC_BITS: u64 = MAGIC.to_bits();

/// Mask of the mantissa bits of a float.
pub(crate) const MANTISSA: u64 = (1 << 52) - 1;

/// Exclusive upper bound of the magnitude of a decimal's integer.
pub(crate) const LIMIT: u64 = 1 << 51;

/// A rule that converts between floats and the integers of decimals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Alp {
    pub(crate) exponent: u8,
    /// The exponent f of the factor 10^f, or [`DIVIDE`].
    pub(crate) factor: u8,
}

impl Alp {
    /// True if exponent and factor lie in the tables of powers of ten.
    pub(crate) fn is_valid(self) -> bool {
        self.exponent <= EXPONENT_MAX && (self.factor <= EXPONENT_MAX || self.factor == DIVIDE)
    }
}

/// Result of encoding a vector of floats by a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AlpScan {
    /// Number of exceptions, words that the rule does not reproduce; their row numbers are in `bad`, and their elements
    /// of `ints` are arbitrary.
    pub(crate) bad: usize,
}

/// True if a rule may give this integer: its magnitude is below `LIMIT`.
#[inline(always)]
pub(crate) fn is_in_range(int: u64) -> bool {
    int.wrapping_add(LIMIT - 1) < 2 * LIMIT - 1
}

#[inline(always)]
fn integer(x: f64) -> (u64, f64) {
    let moved = x + MAGIC;
    (moved.to_bits().wrapping_sub(MAGIC_BITS), moved - MAGIC)
}

#[inline(always)]
fn float(int: u64) -> f64 {
    f64::from_bits(int.wrapping_add(MAGIC_BITS)) - MAGIC
}

/// Like `float`, for integers in range. Any other integer gives some float in range, because only 52 bits of the
/// integer are used.
#[inline(always)]
fn float_within(int: u64) -> f64 {
    f64::from_bits(int.wrapping_add(LIMIT) & MANTISSA | MAGIC_BITS & !MANTISSA) - MAGIC
}

/// Divides floats in the range of a rule by a power of ten, by multiplication with the inverse of the power where
/// possible.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quotient {
    power: f64,
    /// The inverse 1 / power, as the sum of two floats (this field and the next).
    pub(crate) inverse: f64,
    pub(crate) rest: f64,
}

impl Quotient {
    #[inline(always)]
    pub(crate) fn by(exponent: u8) -> Self {
        let (power, inverse) = (
            POWERS[usize::from(exponent)],
            INVERSES[usize::from(exponent)],
        );
        let rest = (-inverse).mul_add(power, 1.0) / power;
        Self {
            power,
            inverse,
            rest,
        }
    }

    /// The quotient d / power, rounded once. With `FMA` the quotient is computed by two multiplications, in a fifth of
    /// the time of a division.
    ///
    /// The multiplications and the division give the same bits: the pair is within 2^-105 of 1 / power, so the product
    /// before rounding is within 2^-104 of the quotient, relatively. The midpoint m between two floats has 54 bits;
    /// with power = 10^e the distance |d - m * 10^e| is an integral number of units of m * 5^e and not zero, because m
    /// is odd and |d| < 2^53. No quotient is therefore nearer to a midpoint than 1 / (2^54 * 5^18) > 2^-96, and the
    /// exact quotient and the product round to the same float.
    #[inline(always)]
    pub(crate) fn of<const FMA: bool>(self, d: f64) -> f64 {
        if FMA {
            d.mul_add(self.inverse, d * self.rest)
        } else {
            d / self.power
        }
    }

    /// Converts a decimal's integer to the word of its float.
    #[inline(always)]
    pub(crate) fn word<const FMA: bool>(self, int: u64) -> u64 {
        self.of::<FMA>(float_within(int)).to_bits()
    }
}

/// Writes the decimals' integers of `values` to `ints`, and lists in `bad` the rows whose words do not round-trip.
#[inline(always)]
pub(crate) fn alp_encode(alp: Alp, values: &[u64], ints: &mut [u64], bad: &mut [u16]) -> AlpScan {
    let e = usize::from(alp.exponent);
    let bad = if alp.factor == DIVIDE {
        let power = POWERS[e];
        encode_with(
            values,
            ints,
            bad,
            #[inline(always)]
            |x| {
                let (int, whole) = integer(x * power);
                (int, whole / power)
            },
        )
    } else {
        let f = usize::from(alp.factor);
        let (up, down) = (POWERS[e], INVERSES[f]);
        let (back_up, back_down) = (POWERS[f], INVERSES[e]);
        encode_with(
            values,
            ints,
            bad,
            #[inline(always)]
            |x| {
                let (int, whole) = integer(x * up * down);
                (int, whole * back_up * back_down)
            },
        )
    };
    AlpScan { bad }
}

/// Returns the integer of a word, and a number that is zero if the rule restores the word and the integer is in range.
#[inline(always)]
fn round_trip(word: u64, rule: impl Fn(f64) -> (u64, f64)) -> (u64, u64) {
    let (int, back) = rule(f64::from_bits(word));
    // On some processors a NaN can round-trip by chance, but its integer is out of range.
    (int, (back.to_bits() ^ word) | u64::from(!is_in_range(int)))
}

#[inline(always)]
fn encode_with(
    values: &[u64],
    ints: &mut [u64],
    bad: &mut [u16],
    rule: impl Fn(f64) -> (u64, f64) + Copy,
) -> usize {
    const BLOCK: usize = 32;
    let mut count = 0;
    let (blocks, rest) = values.as_chunks::<BLOCK>();
    let (int_blocks, int_rest) = ints[..values.len()].as_chunks_mut::<BLOCK>();
    for (b, (block, ints)) in blocks.iter().zip(int_blocks).enumerate() {
        let mut wrong = 0;
        for i in 0..BLOCK {
            let (int, difference) = round_trip(block[i], rule);
            ints[i] = int;
            wrong |= difference;
        }
        if wrong != 0 {
            for (i, &word) in block.iter().enumerate() {
                bad[count] = (b * BLOCK + i) as u16;
                count += usize::from(round_trip(word, rule).1 != 0);
            }
        }
    }
    let from = values.len() - rest.len();
    for (i, (&word, place)) in rest.iter().zip(int_rest).enumerate() {
        let (int, difference) = round_trip(word, rule);
        *place = int;
        bad[count] = (from + i) as u16;
        count += usize::from(difference != 0);
    }
    count
}

/// Converts decimals' integers in `words` to the words of floats, in place.
#[inline(always)]
pub(crate) fn alp_decode<const FMA: bool>(alp: Alp, words: &mut [u64]) {
    with_rule!(FMA, alp, decode_with, words);
}

/// Sums the deltas in `words`, with `start` as the first value, and converts the sums to the words of floats, in place.
#[inline(always)]
pub(crate) fn alp_sums<const FMA: bool>(alp: Alp, start: u64, words: &mut [u64]) {
    with_rule!(FMA, alp, scan::prefix_sum_with, start, words);
}

/// Like [`alp_sums`], but reads deltas from packed bits.
#[inline(always)]
pub(crate) fn alp_unpack_sums<const FMA: bool>(
    alp: Alp,
    steps: Packed<'_>,
    start: u64,
    out: &mut [u64],
) {
    pack::unpack(steps.bytes, steps.width, steps.base, steps.scale, out);
    alp_sums::<FMA>(alp, start, out);
}

/// Writes the words of the floats for the integers start, start + step, start + 2 * step ...
#[inline(always)]
pub(crate) fn alp_ramp<const FMA: bool>(alp: Alp, start: u64, step: u64, out: &mut [u64]) {
    with_rule!(FMA, alp, scan::ramp_with, start, step, out);
}

/// Unpacks decimals' integers and converts them to the words of floats in one pass.
#[inline(always)]
pub(crate) fn alp_unpack<const FMA: bool>(alp: Alp, values: Packed<'_>, out: &mut [u64]) {
    with_rule!(FMA, alp, unpack_with, values, out);
}

/// Converts single integers to words without a branch, because a branch in a loop over rows would keep the compiler
/// from holding the sum of the loop in a register.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    pub(crate) up: f64,
    pub(crate) down: f64,
    /// All ones if the integer itself is the word, otherwise zero.
    integer: u64,
}

impl Rule {
    /// The rule for integers: the integer itself is the word.
    pub(crate) const INTEGER: Self = Self {
        up: 0.0,
        down: 0.0,
        integer: u64::MAX,
    };

    /// Creates the form of a decimal rule that multiplies; `None` for a rule that divides, because a division is too
    /// slow here.
    pub(crate) fn of(alp: Alp) -> Option<Self> {
        (alp.factor != DIVIDE).then(|| Self {
            up: POWERS[usize::from(alp.factor)],
            down: INVERSES[usize::from(alp.exponent)],
            integer: 0,
        })
    }

    /// True if the integer itself is the word.
    pub(crate) fn is_integer(self) -> bool {
        self.integer != 0
    }

    #[inline(always)]
    pub(crate) fn word(self, int: u64) -> u64 {
        (int & self.integer) | (self.product(int) & !self.integer)
    }

    /// Like `word`, for a rule of decimals, which multiplies.
    #[inline(always)]
    pub(crate) fn product(self, int: u64) -> u64 {
        (float(int) * self.up * self.down).to_bits()
    }
}

/// Calls a loop over values with the rule as its last argument. The loop is compiled once for each kind of rule.
macro_rules! with_rule {
    ($fma:ident, $alp:expr, $work:path, $($arg:expr),+) => {
        if $alp.factor == DIVIDE {
            let quotient = Quotient::by($alp.exponent);
            $work($($arg,)+ #[inline(always)] |int| quotient.word::<$fma>(int));
        } else {
            let up = POWERS[usize::from($alp.factor)];
            let down = INVERSES[usize::from($alp.exponent)];
            $work($($arg,)+ #[inline(always)] |int| (float(int) * up * down).to_bits());
        }
    };
}
use with_rule;

#[inline(always)]
fn decode_with(words: &mut [u64], rule: impl Fn(u64) -> u64 + Copy) {
    for word in words {
        *word = rule(*word);
    }
}

#[inline(always)]
fn unpack_with(values: Packed<'_>, out: &mut [u64], rule: impl Fn(u64) -> u64 + Copy) {
    let Packed {
        bytes,
        width,
        base,
        scale,
    } = values;
    if scale == 1 {
        pack::unpack_with(
            bytes,
            width,
            out,
            #[inline(always)]
            |x| rule(x.wrapping_add(base)),
        );
    } else {
        pack::unpack_with(
            bytes,
            width,
            out,
            #[inline(always)]
            |x| rule(x.wrapping_mul(scale).wrapping_add(base)),
        );
    }
}

/// Maps words whose `zeros` lowest bits are zero to integers in the order of the floats.
#[inline(always)]
pub(crate) fn ordered(words: &mut [u64], zeros: u32) {
    for word in words {
        *word = (crate::column::float_key(*word) >> zeros) as u64;
    }
}

/// Inverse of `ordered`. The low bits of negative integers become ones, which the mask clears.
#[inline(always)]
pub(crate) fn unordered(words: &mut [u64], zeros: u32) {
    let mask = u64::MAX << zeros;
    for word in words {
        *word = crate::column::float_key(*word << zeros) as u64 & mask;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Rng, few};

    #[test]
    fn two_multiplications_divide_as_a_division_does() {
        let mut rng = Rng(1);
        for exponent in 0..=EXPONENT_MAX {
            let by = Quotient::by(exponent);
            assert_eq!(by.rest, (-by.inverse).mul_add(by.power, 1.0) / by.power);
            let same = |d: u64| {
                let d = float_within(d);
                let (fast, exact) = (by.of::<true>(d), by.of::<false>(d));
                assert_eq!(fast.to_bits(), exact.to_bits(), "{d} / 10^{exponent}");
            };
            for d in 0..few(60_000) {
                same(d);
                same(0u64.wrapping_sub(d));
                same(LIMIT - d);
                same(rng.next() >> rng.below(64));
            }
        }
    }
}
