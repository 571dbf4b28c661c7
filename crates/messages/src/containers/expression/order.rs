//! The order of numbers. An integer and a float are compared exactly: a conversion of the integer would round it.

use crate::containers::numbers::FieldNumber;
use std::cmp::Ordering;

pub(super) fn compare(a: FieldNumber, b: FieldNumber) -> Ordering {
    use FieldNumber::{Float, Integer};
    match (a, b) {
        (Integer(a), Integer(b)) => a.cmp(&b),
        // Floats of fields are finite.
        (Float(a), Float(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
        (Integer(a), Float(b)) => integer_to_float(a, b),
        (Float(a), Integer(b)) => integer_to_float(b, a).reverse(),
    }
}

fn integer_to_float(integer: i128, float: f64) -> Ordering {
    /// The first power of two that is larger than any `i128`.
    const LIMIT: f64 = (1u128 << 127) as f64;
    if float >= LIMIT {
        return Ordering::Less;
    }
    if float < -LIMIT {
        return Ordering::Greater;
    }
    let whole = float.trunc();
    let fraction = float - whole;
    let by_fraction = || 0.0f64.partial_cmp(&fraction).unwrap_or(Ordering::Equal);
    integer.cmp(&(whole as i128)).then_with(by_fraction)
}
