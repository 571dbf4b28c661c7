//! Sums of floats with extended range: 2^64 values of f64::MAX can be added, most of which later values may cancel.
//!
//! In a `Dd`, |hi| is never less than |lo|, which leaves room for a second form: if |hi| < |lo|, the sum is (hi + lo)
//! times 2^128, with the halves swapped. The sum of finite values always fits this form.
//!
//! Invariants: 1. Only a sum that does not fit the plain form has the second form, so equal rows in equal pieces have
//! equal bits. 2. An infinite `hi` means that a value is infinite; a NaN means that there are infinities of both signs.

use crate::loops::dd::Dd;

/// 2^-128. A sum of fewer than 2^64 floats times this factor is finite.
const DOWN: f64 = f64::from_bits((1023 - 128) << 52);
/// 2^128, the inverse of `DOWN`.
const UP: f64 = f64::from_bits((1023 + 128) << 52);
/// 2^-472, by which sums are scaled in addition to `DOWN`, to match sums of squares in the second form.
const DOWN_TO_600: f64 = f64::from_bits((1023 - 472) << 52);

/// Adds two sums, each of which may have either form.
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

/// Sums finite values, some of which may be very large; NaNs are left out.
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

/// True if the sum has the second form: it exceeds the range of floats.
#[inline(always)]
fn is_beyond(sum: Dd) -> bool {
    sum.hi.abs() < sum.lo.abs()
}

/// The sum as a float; infinite if the nearest float would be 2^1024 or more.
pub(super) fn to_f64(sum: Dd) -> f64 {
    match is_beyond(sum) {
        true => down(sum).to_f64() * UP,
        false => sum.to_f64(),
    }
}

/// The mean of `values` values with this sum.
pub(super) fn mean(sum: Dd, values: f64) -> f64 {
    match is_beyond(sum) {
        true => down(sum).div_to_f64(values) * UP,
        false => sum.div_to_f64(values),
    }
}

/// The sum of the values times 2^-600.
pub(super) fn scaled_down(sum: Dd) -> Dd {
    down(sum).scale(DOWN_TO_600)
}

/// The sum of the values times 2^-128.
fn down(sum: Dd) -> Dd {
    match is_beyond(sum) {
        true => Dd::new(sum.lo, sum.hi),
        false => sum.scale(DOWN),
    }
}

/// Converts a sum times 2^-128 to its stored form. Scaling down has lost less than 2^-900, compared with a sum above
/// 2^1023.
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
