//! Loops over floats of single precision: f64 words that came from an f32.

use crate::loops::float::{INVERSES, LIMIT, MAGIC, POWERS};

/// The bits of a word that are zero if the word came from an f32 that is not subnormal.
const LOW: u64 = (1 << 29) - 1;

/// The word to which a chunk with the flag `NARROW` decodes: a NaN stays as it is, any other float is rounded to an
/// f32.
#[inline(always)]
fn rounded(word: u64) -> u64 {
    let x = f64::from_bits(word);
    let narrow = f64::from(x as f32).to_bits();
    if x.is_nan() { word } else { narrow }
}

/// Rounds floats to f32, in place.
#[inline(always)]
pub(crate) fn round(words: &mut [u64]) {
    for word in words {
        *word = rounded(*word);
    }
}

/// True if every word came from an f32, so that rounding restores it.
#[inline(always)]
pub(crate) fn all_single(words: &[u64]) -> bool {
    let mut different = 0;
    for &word in words {
        different |= rounded(word) ^ word;
        // Rounding keeps a NaN, so that its low bits must be checked.
        different |= if f64::from_bits(word).is_nan() {
            word & LOW
        } else {
            0
        };
    }
    different == 0
}

/// Writes to `out` the decimals with this number of fractional digits, at most [`EXPONENT_MAX`], that are nearest to
/// the floats; a word to which its decimal does not round back is written unchanged. Returns the number of these.
///
/// [`EXPONENT_MAX`]: crate::loops::float::EXPONENT_MAX
#[inline(always)]
pub(crate) fn shorten(words: &[u64], digits: usize, out: &mut [u64]) -> usize {
    let (power, inverse) = (POWERS[digits], INVERSES[digits]);
    let mut kept = 0;
    for (place, &word) in out.iter_mut().zip(words) {
        let scaled = f64::from_bits(word) * power;
        // The product is what the multiplying rule of decimals restores; the later rounding to f32 removes its error.
        let decimal = ((scaled + MAGIC - MAGIC) * inverse).to_bits();
        let back = rounded(decimal) == word && scaled.abs() < LIMIT as f64;
        *place = if back { decimal } else { word };
        kept += u64::from(!back);
    }
    kept as usize
}
