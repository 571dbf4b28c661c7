//! Sums of squares, also where they are beyond the floats: squares of values from 1e154 on are.
//!
//! A sum of squares is never negative, so there is room for a second form: where `hi` is negative, the sum is
//! -(hi + lo) times 2^1200. Of finite values that is always within reach.
//!
//! Invariants: 1. Only a sum that the plain form cannot hold has the second one, and the same rows in the same pieces have the
//! same bits. 2. Infinity means that one of the values is infinite.

use crate::loops::dd::{Dd, two_product};

/// A value times this has a square that fits: 2^-600.
const DOWN: f64 = f64::from_bits((1023 - 600) << 52);
/// 2^600.
const UP: f64 = f64::from_bits((1023 + 600) << 52);

/// Both together.
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

/// Of finite values, NaN left out.
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

/// Whether it has the second form.
pub(super) fn is_beyond(squares: Dd) -> bool {
    squares.hi < 0.0 && squares.hi.is_finite()
}

/// The sum as a float.
pub(super) fn to_f64(squares: Dd) -> f64 {
    if is_beyond(squares) {
        f64::INFINITY
    } else {
        squares.to_f64()
    }
}

/// The squares of the same values times 2^-600, of a sum in the second form.
pub(super) fn scaled_down(squares: Dd) -> Dd {
    squares.neg()
}

/// A deviation of values times 2^-600 as it is without.
pub(super) fn scaled_up(deviation: f64) -> f64 {
    deviation * UP
}

/// Times 2^-1200; `None` for what is not finite.
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

/// The form that a sum is kept in, from the sum times 2^-1200.
fn kept(scaled: Dd) -> Dd {
    let plain = scaled.scale(UP).scale(UP);
    if plain.hi.is_finite() {
        plain
    } else {
        scaled.neg()
    }
}
