//! Sums of floats, also where they are beyond the floats: 2^64 values of f64::MAX, of which the next ones may take most away again.
//!
//! In a `Dd`, |hi| is never less than |lo|, so there is room for a second form: where |hi| < |lo|, the sum is
//! (hi + lo) times 2^128, the halves changed over. Of finite values that is always within reach.
//!
//! Invariants: 1. Only a sum that the plain form cannot hold has the second one, and the same rows in the same pieces have the
//! same bits. 2. An infinite `hi` means that a value is infinite, a NaN that infinities of both signs are among them.

use crate::loops::dd::Dd;

/// A sum of fewer than 2^64 floats times this is a float: 2^-128.
const DOWN: f64 = f64::from_bits((1023 - 128) << 52);
/// 2^128.
const UP: f64 = f64::from_bits((1023 + 128) << 52);
/// What sums are scaled by beside sums of squares that are beyond the floats, over `DOWN`: 2^-472.
const DOWN_TO_600: f64 = f64::from_bits((1023 - 472) << 52);

/// Both together.
#[inline(always)]
pub(super) fn add(a: Dd, b: Dd) -> Dd {
    let all = a.add(b);
    if all.hi.is_finite() && !is_beyond(a) && !is_beyond(b) {
        return all;
    }
    add_beyond(a, b)
}

#[cold]
#[inline(never)]
fn add_beyond(a: Dd, b: Dd) -> Dd {
    if !a.hi.is_finite() || !b.hi.is_finite() {
        return Dd::from_f64(a.hi + b.hi);
    }
    kept(down(a).add(down(b)))
}

/// Of finite values, NaN left out.
#[cold]
#[inline(never)]
pub(super) fn of_large(values: &[u64]) -> Dd {
    let mut all = Dd::default();
    for &word in values {
        let x = f64::from_bits(word);
        if !x.is_nan() {
            all = all.add(Dd::from_f64(x * DOWN));
        }
    }
    kept(all)
}

/// Whether it has the second form.
#[inline(always)]
fn is_beyond(sum: Dd) -> bool {
    sum.hi.abs() < sum.lo.abs()
}

/// The sum as a float: infinite where the nearest one would be 2^1024.
pub(super) fn to_f64(sum: Dd) -> f64 {
    match is_beyond(sum) {
        true => down(sum).to_f64() * UP,
        false => sum.to_f64(),
    }
}

/// The mean of so many values.
pub(super) fn mean(sum: Dd, values: f64) -> f64 {
    match is_beyond(sum) {
        true => down(sum).div_to_f64(values) * UP,
        false => sum.div_to_f64(values),
    }
}

/// The sum of the same values times 2^-600.
pub(super) fn scaled_down(sum: Dd) -> Dd {
    down(sum).scale(DOWN_TO_600)
}

/// Times 2^-128.
fn down(sum: Dd) -> Dd {
    match is_beyond(sum) {
        true => Dd::new(sum.lo, sum.hi),
        false => sum.scale(DOWN),
    }
}

/// The form that a sum is kept in, from the sum times 2^-128. What the way down has lost is below 2^-900, beside values that add up to
/// more than 2^1023.
fn kept(scaled: Dd) -> Dd {
    let plain = scaled.scale(UP);
    match plain.hi.is_finite() || !scaled.hi.is_finite() {
        true => plain,
        false => Dd {
            hi: scaled.lo,
            lo: scaled.hi,
        },
    }
}
