//! Sums of squares with extended range: squares of values from 1e154 up exceed the range of floats.
//!
//! A sum of squares is never negative, which leaves room for a second form: if `hi` is negative, the sum is -(hi +
//! lo) times 2^1200. The sum of squares of finite values always fits this form.
//!
//! Invariants: 1. Only a sum that does not fit the plain form has the second form, so equal rows in equal pieces have
//! equal bits. 2. An infinite sum means that one of the values is infinite.

use crate::loops::dd::{Dd, two_product};

/// 2^-600. Every finite value times this factor has a finite square.
const DOWN: f64 = f64::from_bits((1023 - 600) << 52);
/// 2^600, the inverse of `DOWN`.
const UP: f64 = f64::from_bits((1023 + 600) << 52);

/// Adds two sums of squares, each of which may have either form.
#[inline(always)]
pub(super) fn add(a: Dd, b: Dd) -> Dd {
    let all = a.add(b);
    if all.hi.is_finite() && a.hi >= 0.0 && b.hi >= 0.0 {
        return all;
    }
    add_beyond(a, b)
}

#[cold]
#[inline(never)]
fn add_beyond(a: Dd, b: Dd) -> Dd {
    match (down(a), down(b)) {
        (Some(a), Some(b)) => kept(a.add(b)),
        _ => Dd::from_f64(f64::INFINITY),
    }
}

/// Sums the squares of finite values, some of which may be very large; NaNs are left out.
#[cold]
#[inline(never)]
pub(super) fn of_large(values: &[u64]) -> Dd {
    let mut all = Dd::default();
    for &word in values {
        let x = f64::from_bits(word) * DOWN;
        if !x.is_nan() {
            let (square, rest) = two_product(x, x);
            all = all.add(Dd::new(square, rest));
        }
    }
    kept(all)
}

/// True if the sum has the second form: it exceeds the range of floats.
pub(super) fn is_beyond(squares: Dd) -> bool {
    squares.hi < 0.0 && squares.hi.is_finite()
}

/// The sum of squares as a float; infinite if it exceeds the range of floats.
pub(super) fn to_f64(squares: Dd) -> f64 {
    if is_beyond(squares) {
        f64::INFINITY
    } else {
        squares.to_f64()
    }
}

/// The sum of the squares of the values times 2^-600, from a sum in the second form.
pub(super) fn scaled_down(squares: Dd) -> Dd {
    squares.neg()
}

/// Converts a deviation computed from the values times 2^-600 to the deviation of the values.
pub(super) fn scaled_up(deviation: f64) -> f64 {
    deviation * UP
}

/// The sum of squares times 2^-1200; `None` if the sum is not finite.
fn down(squares: Dd) -> Option<Dd> {
    if !squares.hi.is_finite() {
        return None;
    }
    Some(if squares.hi < 0.0 {
        squares.neg()
    } else {
        squares.scale(DOWN).scale(DOWN)
    })
}

/// Converts a sum of squares times 2^-1200 to its stored form.
fn kept(scaled: Dd) -> Dd {
    let plain = scaled.scale(UP).scale(UP);
    if plain.hi.is_finite() {
        plain
    } else {
        scaled.neg()
    }
}
