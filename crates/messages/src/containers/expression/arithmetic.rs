//! Arithmetic of exact integers and floats.

use super::tree::Binary;
use crate::containers::numbers::FieldNumber;

/// The result is too large.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

/// Result of an operation; `None` is null.
type Outcome = Result<Option<FieldNumber>, TooLarge>;

/// Applies an arithmetic operator.
pub(super) fn apply(op: Binary, a: FieldNumber, b: FieldNumber) -> Outcome {
    match (a, b) {
        (FieldNumber::Integer(a), FieldNumber::Integer(b)) => integers(op, a, b),
        _ => floats(op, as_float(a), as_float(b)),
    }
}

fn integers(op: Binary, a: i128, b: i128) -> Outcome {
    let result = match op {
        Binary::Add => a.checked_add(b),
        Binary::Subtract => a.checked_sub(b),
        Binary::Multiply => a.checked_mul(b),
        _ if b == 0 => return Ok(None),
        // The remainder of a division by -1 is 0, even where the quotient is too large.
        Binary::Remainder => a.checked_rem(b).or(Some(0)),
        _ if a.checked_rem(b).is_none_or(|rest| rest == 0) => a.checked_div(b),
        _ => return floats(op, a as f64, b as f64),
    };
    result.map(FieldNumber::Integer).map(Some).ok_or(TooLarge)
}

fn floats(op: Binary, a: f64, b: f64) -> Outcome {
    let result = match op {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b,
        _ if b == 0.0 => return Ok(None),
        Binary::Remainder => a % b,
        _ => a / b,
    };
    finite(result).map(Some)
}

fn finite(number: f64) -> Result<FieldNumber, TooLarge> {
    let number = number.is_finite().then_some(number);
    number.map(FieldNumber::Float).ok_or(TooLarge)
}

pub(super) fn as_float(number: FieldNumber) -> f64 {
    match number {
        FieldNumber::Integer(number) => number as f64,
        FieldNumber::Float(number) => number,
    }
}

/// The number with the other sign.
pub(super) fn negative(number: FieldNumber) -> Result<FieldNumber, TooLarge> {
    match number {
        FieldNumber::Integer(number) => {
            let negative = number.checked_neg();
            negative.map(FieldNumber::Integer).ok_or(TooLarge)
        }
        FieldNumber::Float(number) => Ok(FieldNumber::Float(-number)),
    }
}

pub(super) fn absolute(number: FieldNumber) -> Result<FieldNumber, TooLarge> {
    match number {
        FieldNumber::Integer(number) if number < 0 => negative(FieldNumber::Integer(number)),
        FieldNumber::Integer(number) => Ok(FieldNumber::Integer(number)),
        FieldNumber::Float(number) => Ok(FieldNumber::Float(number.abs())),
    }
}

/// Rounds a number to an integer. A float outside the range of a field's integers remains a float.
pub(super) fn rounded(number: FieldNumber, round: fn(f64) -> f64) -> FieldNumber {
    match number {
        FieldNumber::Integer(_) => number,
        FieldNumber::Float(number) => {
            let number = round(number);
            to_integer(number).map_or(FieldNumber::Float(number), FieldNumber::Integer)
        }
    }
}

/// The integer part of a float, if a field can hold it as an integer.
pub(super) fn to_integer(number: f64) -> Option<i128> {
    let number = number.trunc();
    let fits = (i64::MIN as f64..u64::MAX as f64).contains(&number);
    fits.then_some(number as i128)
}
