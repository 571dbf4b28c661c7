//! Stores floats as integers over a common power of ten, which take fewer bytes in the fields of statistics.
//!
//! Measured readings have few decimal places: 199.87 takes 8 bytes as a float, and 3 bytes as 19,987 hundredths.
//! Division by a power of ten up to 10^22 is correctly rounded, so every such float is restored bit by bit.

use crate::loops::float::POWERS;
use crate::short::{self, unzigzag, zigzag};

/// Number of powers of ten in use: those with exponents from 0 to 15.
const EXPONENTS: usize = 16;

/// Number of bits of the code for the form of the words. Code 0: as floats. Code d + 1: as integers that are divided by
/// 10^d.
pub(super) const CODE_BITS: u32 = 5;
const _: () = assert!(EXPONENTS < 1 << CODE_BITS, "every code fits");

/// True if `code` is valid: floats, or integers over a known power of ten.
#[inline(always)]
pub(super) fn is_code(code: u64) -> bool {
    code <= EXPONENTS as u64
}

/// The integer that gives the word when divided by the power of ten; `None` if there is no such integer.
fn integer(word: u64, power: f64) -> Option<i64> {
    const MAX: i64 = 1 << 53;
    let int = (f64::from_bits(word) * power).round_ties_even() as i64;
    let is_same = (int as f64 / power).to_bits() == word;
    (is_same && (-MAX..=MAX).contains(&int)).then_some(int)
}

/// Converts the first, smallest, largest and last word to fields; also returns the code of their form. The fields are
/// integers over the smallest power of ten that fits all four words, or floats if the integers are not shorter.
pub(super) fn to_fields(words: [u64; 4]) -> ([u64; 4], u64) {
    let floats = words.map(u64::swap_bytes);
    let whole = POWERS[..EXPONENTS].iter().position(|&power| {
        // The smallest and the largest word are tried first, because they most often rule a power of ten out.
        [1, 2, 0, 3]
            .iter()
            .all(|&i| integer(words[i], power).is_some())
    });
    let Some(exponent) = whole else {
        return (floats, 0);
    };
    let ints = words.map(|word| integer(word, POWERS[exponent]).map_or(0, i64::cast_unsigned));
    let least = ints[1];
    let mut fields = ints.map(|int| int.wrapping_sub(least));
    fields[1] = zigzag(least);
    let code = exponent as u64 + 1;
    if short::bytes(&fields) < short::bytes(&floats) {
        (fields, code)
    } else {
        (floats, 0)
    }
}

/// Restores the words from the result of [`to_fields`]. Any fields give some words.
#[inline(always)]
pub(super) fn from_fields(fields: [u64; 4], code: u64) -> [u64; 4] {
    if code == 0 {
        return fields.map(u64::swap_bytes);
    }
    let [first, min, max, last] = fields;
    let least = unzigzag(min);
    let power = POWERS[(code - 1) as usize % EXPONENTS];
    [first, 0, max, last].map(|field| {
        let int = least.wrapping_add(field).cast_signed();
        (int as f64 / power).to_bits()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trips(words: [f64; 4]) -> u64 {
        let bits = words.map(f64::to_bits);
        let (fields, code) = to_fields(bits);
        assert!(is_code(code));
        assert_eq!(from_fields(fields, code), bits, "{words:?}");
        code
    }

    #[test]
    fn words_come_back_in_the_shorter_form() {
        assert_eq!(round_trips([199.87, 199.5, 200.13, 199.9]), 3);
        assert_eq!(round_trips([-76.0, -99.0, 123_456.0, -77.0]), 1);
        assert_eq!(round_trips([1024.0, 512.0, 65536.0, 1024.0]), 0, "short");
        assert_eq!(round_trips([-0.0, -7.1, 7.3, 0.0]), 0, "a negative zero");
        assert_eq!(round_trips([f64::NAN, 1.1, 2.2, 1.7]), 0);
        assert_eq!(round_trips([1.1, 1.1, f64::INFINITY, 1.7]), 0);
        assert_eq!(round_trips([0.1, 1.0 / 3.0, 2.7, 1.7]), 0);
        assert_eq!(round_trips([1e300, 0.1, 1e300, 0.1]), 0);
        assert_eq!(round_trips([0.1 + 0.2, 0.1, 0.3, 0.2]), 0);
        let large = (1_u64 << 53) as f64;
        assert_eq!(round_trips([large - 1.0, 1.0, large - 1.0, large - 3.0]), 1);
        // Tests each power of ten.
        for (d, power) in POWERS[..EXPONENTS].iter().enumerate() {
            let words = [3, 1, 9, 7].map(|i| f64::from(i * 10 + 1) / power);
            assert_eq!(round_trips(words), d as u64 + 1);
        }
    }

    #[test]
    fn any_fields_give_words() {
        for code in 0..=EXPONENTS as u64 {
            for field in [0, 1, u64::MAX, 1 << 63, (1 << 63) - 1] {
                let _ = from_fields([field; 4], code);
            }
        }
        assert!(!is_code(EXPONENTS as u64 + 1));
    }
}
