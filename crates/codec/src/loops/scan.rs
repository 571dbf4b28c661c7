//! Passes over integers, such as sums, deltas and extents. All arithmetic wraps: the values of a column may span all of
//! i64.

use crate::loops::pack::{self, Packed};

/// The smallest and the largest of some values, compared as signed integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) low: i64,
    pub(crate) high: i64,
}

impl Extent {
    /// The difference high - low, as an unsigned number that cannot wrap.
    pub(crate) fn span(self) -> u64 {
        (self.high as u64).wrapping_sub(self.low as u64)
    }
}

/// Number of bits that `value` needs.
#[inline(always)]
pub(crate) fn bits(value: u64) -> u32 {
    64 - value.leading_zeros()
}

/// Writes start, start + step, start + 2 step ...
#[inline(always)]
pub(crate) fn ramp(start: u64, step: u64, out: &mut [u64]) {
    ramp_with(
        start,
        step,
        out,
        #[inline(always)]
        |x| x,
    );
}

/// Writes a transformed ramp: `out[i] = finish(start + i * step)`.
#[inline(always)]
pub(crate) fn ramp_with(
    start: u64,
    step: u64,
    out: &mut [u64],
    finish: impl Fn(u64) -> u64 + Copy,
) {
    let mut at = start;
    for place in out {
        *place = finish(at);
        at = at.wrapping_add(step);
    }
}

/// Adds a line to the values in `out`: 0 to the first, slope to the second, 2 * slope to the third ...
#[inline(always)]
pub(crate) fn incline(slope: u64, out: &mut [u64]) {
    let mut above = 0u64;
    for place in out {
        *place = place.wrapping_add(above);
        above = above.wrapping_add(slope);
    }
}

/// Subtracts a line from the values: 0 from the first, slope from the second, 2 * slope from the third ...; returns the
/// extent of the differences.
#[inline(always)]
pub(crate) fn level(values: &[u64], slope: u64, out: &mut [u64]) -> Extent {
    let mut above = 0u64;
    for (place, value) in out.iter_mut().zip(values) {
        *place = value.wrapping_sub(above);
        above = above.wrapping_add(slope);
    }
    extent(&out[..values.len()])
}

/// Converts the deltas in `out` to values; the first value is `start`, and the delta of row 0 is ignored.
#[inline(always)]
pub(crate) fn prefix_sum(start: u64, out: &mut [u64]) {
    prefix_sum_with(
        start,
        out,
        #[inline(always)]
        |x| x,
    );
}

/// Like [`prefix_sum`], but reads deltas from packed bits.
#[inline(always)]
pub(crate) fn unpack_sums(steps: Packed<'_>, start: u64, out: &mut [u64]) {
    pack::unpack(steps.bytes, steps.width, steps.base, steps.scale, out);
    prefix_sum(start, out);
}

/// Like `prefix_sum`, with `finish` applied to each value.
#[inline(always)]
pub(crate) fn prefix_sum_with(start: u64, out: &mut [u64], finish: impl Fn(u64) -> u64 + Copy) {
    let Some(first) = out.first_mut() else {
        return;
    };
    *first = start;
    // A single chain of additions takes a cycle per value. Within a block of eight, the sums are therefore computed
    // in registers in three steps, which add values at distances 1, 2 and 4; only the total is carried from block to
    // block.
    const BLOCK: usize = 8;
    let mut sum = 0u64;
    let (blocks, rest) = out.as_chunks_mut::<BLOCK>();
    for block in blocks {
        let ones = *block;
        let mut twos = ones;
        for i in 1..BLOCK {
            twos[i] = ones[i].wrapping_add(ones[i - 1]);
        }
        let mut fours = twos;
        for i in 2..BLOCK {
            fours[i] = twos[i].wrapping_add(twos[i - 2]);
        }
        let mut eights = fours;
        for i in 4..BLOCK {
            eights[i] = fours[i].wrapping_add(fours[i - 4]);
        }
        for i in 0..BLOCK {
            block[i] = finish(eights[i].wrapping_add(sum));
        }
        // `black_box` hides this sum from the compiler, which would otherwise extract it from the vector register just
        // computed. That would put a broadcast and an extraction, twelve cycles, between two blocks; now one addition
        // connects them.
        sum = sum.wrapping_add(core::hint::black_box(eights[BLOCK - 1]));
    }
    for place in rest {
        sum = sum.wrapping_add(*place);
        *place = finish(sum);
    }
}

/// True if the times ascend strictly.
#[inline(always)]
pub(crate) fn ascending(times: &[i64]) -> bool {
    let Some(next) = times.get(1..) else {
        return true;
    };
    // Compares the pairs of a block without an early exit, so that eight pairs are compared at once.
    let mut blocks = times.chunks(128).zip(next.chunks(128));
    blocks.all(|(left, right)| {
        let pairs = left.iter().zip(right);
        pairs.fold(true, |ascending, (a, b)| ascending & (a < b))
    })
}

/// True if all words are equal.
#[inline(always)]
pub(crate) fn all_equal(values: &[u64]) -> bool {
    let Some(&first) = values.first() else {
        return true;
    };
    // Tests for an early exit only after each block: most vectors whose words differ already do so in the first block.
    let mut blocks = values.chunks(128);
    blocks.all(|block| block.iter().fold(0, |or, &word| or | (word ^ first)) == 0)
}

/// True if all deltas between neighbouring values are equal.
#[inline(always)]
pub(crate) fn constant_step(values: &[u64]) -> bool {
    if values.len() < 3 {
        return true;
    }
    let step = values[1].wrapping_sub(values[0]);
    let (left, right) = (&values[..values.len() - 1], &values[1..]);
    let mut blocks = left.chunks(128).zip(right.chunks(128));
    blocks.all(|(left, right)| {
        let mut or = 0;
        for (&a, &b) in left.iter().zip(right) {
            or |= b.wrapping_sub(a) ^ step;
        }
        or == 0
    })
}

/// The bitwise or of all values.
#[inline(always)]
pub(crate) fn or(values: &[u64]) -> u64 {
    values.iter().fold(0, |or, &value| or | value)
}

/// The largest value as an unsigned number; 0 if there are no values.
#[inline(always)]
pub(crate) fn greatest(values: &[u64]) -> u64 {
    values
        .iter()
        .fold(0, |greatest, &value| greatest.max(value))
}

/// Replaces each index by the table's word at this index; an index outside the table gives an arbitrary word of the
/// table. There are no variants for AVX2, AVX-512 or NEON: vector code would use gathers, which take longer than
/// separate loads.
pub(crate) fn look_up<const ENTRIES: usize>(table: &[u64; ENTRIES], numbers: &mut [u64]) {
    const { assert!(ENTRIES.is_power_of_two()) };
    // A bounds check with an early exit per index would cost as much as the look-up.
    for number in numbers {
        *number = table[*number as usize % ENTRIES];
    }
}

/// For each byte, the number of bits that are set in the bytes up to this one, the lowest first.
#[inline(always)]
pub(crate) fn ones_up_to(bits: u64) -> u64 {
    let pairs = bits - (bits >> 1 & 0x5555_5555_5555_5555);
    let fours = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
    let bytes = (fours + (fours >> 4)) & 0x0f0f_0f0f_0f0f_0f0f;
    bytes.wrapping_mul(0x0101_0101_0101_0101)
}

/// Number of unused values that [`expand`] needs after the others.
pub(crate) const EXPAND_BEHIND: usize = 8;

/// Replaces the words whose bits are set by the values, in their order. There must be as many values as bits that are
/// set below the number of words, and [`EXPAND_BEHIND`] more.
#[inline(always)]
pub(crate) fn expand(bitmap: &[u8], values: &[u64], out: &mut [u64]) {
    let mut values = values.iter();
    for (words, &bits) in out.chunks_mut(8).zip(bitmap) {
        let mut bits = bits;
        while bits != 0 {
            let place = words.get_mut(bits.trailing_zeros() as usize);
            if let (Some(place), Some(&value)) = (place, values.next()) {
                *place = value;
            }
            bits &= bits - 1;
        }
    }
}

/// Converts signed distances from a base, in zigzag encoding, to values: `base + distance * scale`, in place.
#[inline(always)]
pub(crate) fn from_distances(base: u64, scale: u64, words: &mut [u64]) {
    for word in words {
        let distance = (*word >> 1) ^ 0u64.wrapping_sub(*word & 1);
        *word = base.wrapping_add(distance.wrapping_mul(scale));
    }
}

/// Repeats each word by its run length. Returns false, with arbitrary contents of `out`, if a length is 0 or if the sum
/// of the lengths is not the number of rows.
#[inline(always)]
pub(crate) fn repeat(words: &[u64], lengths: &[u64], out: &mut [u64]) -> bool {
    /// Number of words written at once. Words past the end of a run are overwritten by the next runs.
    const AHEAD: usize = 8;
    let rows = out.len() as u64;
    let (mut sum, mut wrong) = (0u64, false);
    for &length in lengths {
        // The sum does not wrap, because each length is at most the number of rows if `wrong` stays false.
        wrong |= length.wrapping_sub(1) >= rows;
        sum = sum.wrapping_add(length);
    }
    if wrong || sum != rows {
        return false;
    }
    let mut rest = out;
    for (&word, &length) in words.iter().zip(lengths) {
        let length = length as usize;
        match rest.first_chunk_mut::<AHEAD>() {
            Some(ahead) if length <= AHEAD => *ahead = [word; AHEAD],
            _ => rest[..length].fill(word),
        }
        rest = &mut rest[length..];
    }
    true
}

/// Sums floats in 32 lanes: value i is added to lane i mod 32. Then lanes l + 16, l + 8, l + 4, l + 2 and l + 1 are
/// added to lane l in turn.
#[inline(always)]
pub(crate) fn sum_floats(values: &[f64]) -> f64 {
    // Number of lanes: four registers of eight floats, so that the additions overlap.
    const LANES: usize = 32;
    let mut sums = [0.0; LANES];
    let (blocks, rest) = values.as_chunks::<LANES>();
    for block in blocks {
        for lane in 0..LANES {
            sums[lane] += block[lane];
        }
    }
    for (sum, value) in sums.iter_mut().zip(rest) {
        *sum += value;
    }
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            sums[lane] += sums[lane + half];
        }
        half /= 2;
    }
    sums[0]
}

/// The smallest and the largest of one or more values.
#[inline(always)]
pub(crate) fn extent(values: &[u64]) -> Extent {
    let mut low = i64::MAX;
    let mut high = i64::MIN;
    for &value in values {
        low = low.min(value as i64);
        high = high.max(value as i64);
    }
    Extent { low, high }
}

/// Writes the deltas between neighbouring values to `out`, and returns their extent; the delta of row 0 repeats the
/// delta of row 1. Requires at least two values.
#[inline(always)]
pub(crate) fn deltas(values: &[u64], out: &mut [u64]) -> Extent {
    let mut low = i64::MAX;
    let mut high = i64::MIN;
    let steps = values.len() - 1;
    for ((&a, &b), place) in values[..steps]
        .iter()
        .zip(&values[1..])
        .zip(&mut out[1..=steps])
    {
        let step = b.wrapping_sub(a);
        *place = step;
        low = low.min(step as i64);
        high = high.max(step as i64);
    }
    out[0] = out[1];
    Extent { low, high }
}

/// Number of values outside `base ..= base + reach`.
#[inline(always)]
pub(crate) fn count_outside(values: &[u64], base: u64, reach: u64) -> usize {
    let mut count = 0u64;
    for &value in values {
        count += u64::from(value.wrapping_sub(base) > reach);
    }
    count as usize
}

/// Number of values for each bit of `tiles_outside`.
pub(crate) const TILE: usize = 64;

/// One bit per tile of `TILE` values, for at most 64 tiles: set if a value of the tile lies outside `base ..= base +
/// reach`.
#[inline(always)]
pub(crate) fn tiles_outside(values: &[u64], base: u64, reach: u64) -> u64 {
    let mut tiles = 0;
    for (tile, values) in values.chunks(TILE).enumerate() {
        tiles |= u64::from(count_outside(values, base, reach) > 0) << tile;
    }
    tiles
}

/// The smallest and the largest distance from `base` among those distances that are at most `reach`; there must be at
/// least one such distance.
#[inline(always)]
pub(crate) fn extent_within(values: &[u64], base: u64, reach: u64) -> [u64; 2] {
    let (mut low, mut high) = (u64::MAX, 0);
    for &value in values {
        let distance = value.wrapping_sub(base);
        let inside = distance <= reach;
        low = low.min(if inside { distance } else { u64::MAX });
        high = high.max(if inside { distance } else { 0 });
    }
    [low, high]
}

/// Finds x with x * odd = 1 modulo 2^64 by Newton's method; each step doubles the number of correct bits, starting
/// from 5.
#[inline(always)]
fn inverse(odd: u64) -> u64 {
    let mut x = odd.wrapping_mul(3) ^ 2;
    for _ in 0..4 {
        x = x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x)));
    }
    x
}

/// True if `divisor` divides every `value - base`, taken as an unsigned number.
#[inline(always)]
pub(crate) fn all_divisible(values: &[u64], base: u64, divisor: u64) -> bool {
    // Multiplies the distance by the inverse and rotates the product by the number of factors of two in the divisor.
    // The result is the quotient if the division is exact, and otherwise greater than any quotient (Granlund and
    // Montgomery, section 9).
    let twos = divisor.trailing_zeros();
    let inverse = inverse(divisor >> twos);
    // `black_box` hides the limit from the compiler, which would turn the comparison into a multiplication with
    // overflow check, which has no vector form.
    let limit = core::hint::black_box(u64::MAX / divisor);
    let mut fails = 0u64;
    for &value in values {
        let quotient = value
            .wrapping_sub(base)
            .wrapping_mul(inverse)
            .rotate_right(twos);
        fails += u64::from(quotient > limit);
    }
    fails == 0
}

/// Computes `(value - base) / divisor` as a signed number; the division must be exact.
#[inline(always)]
pub(crate) fn divide(values: &mut [u64], base: u64, divisor: u64) {
    let twos = divisor.trailing_zeros();
    let inverse = inverse(divisor >> twos);
    for value in values {
        let difference = value.wrapping_sub(base) as i64;
        *value = ((difference >> twos) as u64).wrapping_mul(inverse);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_division() {
        for divisor in [1u64, 2, 3, 10, 1000, 1 << 40, 60_000_000_000, 3 << 29] {
            let mut values: Vec<u64> = (0..100i64)
                .map(|i| ((i * i - 50) * divisor as i64) as u64)
                .map(|v| v.wrapping_add(17))
                .collect();
            let base = 17u64.wrapping_sub(divisor.wrapping_mul(50));
            assert!(all_divisible(&values, base, divisor));
            if divisor > 1 {
                values[40] += 1;
                assert!(!all_divisible(&values, base, divisor));
                values[40] -= 1;
            }
            divide(&mut values, base, divisor);
            assert!((0..100).all(|i| values[i] == (i * i) as u64));
        }
    }

    #[test]
    fn one_time_out_of_order_is_seen_wherever_it_is() {
        for n in [0, 1, 2, 3, 127, 128, 129, 130, 1024] {
            let mut times: Vec<i64> = (0..n).map(|i| i64::MIN + i).collect();
            assert!(ascending(&times));
            for i in (1..times.len()).step_by(if cfg!(miri) { 101 } else { 1 }) {
                let own = std::mem::replace(&mut times[i], i64::MIN);
                assert!(!ascending(&times), "place {i} of {n}");
                times[i] = own - 1;
                assert!(!ascending(&times), "place {i} of {n}");
                times[i] = own;
            }
        }
    }

    #[test]
    fn steps_and_sums_are_inverse() {
        for n in [2, 3, 5, 8, 130, 1024] {
            let values: Vec<u64> = (0..n as u64).map(|i| i.wrapping_mul(i << 50)).collect();
            let mut steps = vec![0; n];
            let extent = deltas(&values, &mut steps);
            assert_eq!(extent, super::extent(&steps));
            prefix_sum(values[0], &mut steps);
            assert_eq!(steps, values);
            ramp(5, u64::MAX / 3, &mut steps);
            assert!(constant_step(&steps));
            steps[n - 1] ^= 1;
            assert_eq!(constant_step(&steps), n < 3);
        }
    }
}
