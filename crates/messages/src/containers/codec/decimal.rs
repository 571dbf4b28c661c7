//! Floats as short decimals: 21.5 is 215 / 10^1.
//!
//! Measured values usually have few decimal digits. Digits and power of ten are exact as floats, and a division of
//! floats is correctly rounded on every machine. So the division that the encoder has tried gives the same float when
//! it is decoded.

use super::tag::DECIMAL_BYTES_MAX;

/// The powers of ten that are used. All of them are exact as floats.
const POWERS: [f64; 12] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11];

/// Digits must be below this limit.
const DIGITS_LIMIT: f64 = (1u64 << (8 * DECIMAL_BYTES_MAX)) as f64;

/// Finds the shortest decimal of a finite float: digits and exponent, without the sign. `None` if the float is not a
/// short decimal.
pub(super) fn split(number: f64) -> Option<(u64, u8)> {
    let number = number.abs();
    for (exponent, power) in POWERS.iter().enumerate() {
        let scaled = number * power + 0.5;
        if scaled >= DIGITS_LIMIT {
            return None;
        }
        let digits = scaled as u64;
        // This comparison excludes most candidates without a division, which is slow.
        if (digits as f64 - (scaled - 0.5)).abs() <= scaled * 1e-14
            && (digits as f64 / power).to_bits() == number.to_bits()
        {
            return Some((digits, exponent as u8));
        }
    }
    None
}

/// The float of a decimal; `None` if no encoder writes this exponent.
pub(super) fn join(digits: u64, exponent: u8, is_negative: bool) -> Option<f64> {
    let number = digits as f64 / POWERS.get(usize::from(exponent))?;
    Some(if is_negative { -number } else { number })
}
