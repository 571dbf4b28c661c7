//! Encodes vectors of floats that came from `f32`.
//!
//! The word of an f32 is the f64 of the same value. Its decimals are long: 7.12f32 is 7.119999885559082. Each word is
//! therefore replaced by the shortest decimal that rounds to it, which the float encodings store in few bits. A
//! *narrow* chunk has a flag that tells the decoder to round every float to an f32, which restores the words. If no
//! decimals fit, the vector is stored like a vector of f64, or as four bytes a row if that is smaller.

use crate::ColumnType;
use crate::chunk::{self, Chunk};
use tidalite_base::Corrupt;
use tidalite_base::limits::VECTOR_ROWS;

/// Maximum number of fractional digits that are tried: with more digits, no f32 becomes shorter.
const DECIMALS_MAX: usize = 10;

const POWERS: [f64; DECIMALS_MAX + 1] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10];

/// The word to which a chunk with the flag `NARROW` decodes: a NaN stays as it is, any other float is rounded to an
/// f32.
#[inline(always)]
fn rounded(word: u64) -> u64 {
    let x = f64::from_bits(word);
    if x.is_nan() {
        word
    } else {
        f64::from(x as f32).to_bits()
    }
}

/// Rounds decoded floats to f32, in place.
pub(crate) fn round(words: &mut [u64]) {
    for word in words {
        *word = rounded(*word);
    }
}

/// True if every word came from an f32, so that rounding restores it.
pub(crate) fn all_narrow(words: &[u64]) -> bool {
    let same = |&word: &u64| ColumnType::widen(ColumnType::narrow(word)) == word;
    words.iter().all(same)
}

/// Replaces f32 words by decimals with the fewest digits at which almost all words round-trip; words that do not
/// round-trip stay unchanged. Returns false if too many words do not round-trip.
pub(crate) fn decimals(words: &[u64], out: &mut [u64]) -> bool {
    // An exception costs ten bytes, more than twice the four bytes of an f32.
    let bad_max = words.len() / 16;
    'digits: for power in POWERS {
        let mut bad = 0;
        for (place, &word) in out.iter_mut().zip(words) {
            let decimal = ((f64::from_bits(word) * power).round() / power).to_bits();
            let back = rounded(decimal) == word;
            *place = if back { decimal } else { word };
            bad += usize::from(!back);
            if bad > bad_max {
                continue 'digits;
            }
        }
        return true;
    }
    false
}

/// Appends the words, which must all have come from f32, in four bytes each.
pub(crate) fn raw(mut chunk: Chunk, words: &[u64], out: &mut Vec<u8>) -> Chunk {
    chunk.encoding = chunk::RAW;
    chunk.flags = chunk::NARROW;
    chunk.length = 4 * words.len() as u32;
    out.extend(
        words
            .iter()
            .flat_map(|&word| ColumnType::narrow(word).to_le_bytes()),
    );
    chunk
}

/// Decodes the payload that `raw` has written.
pub(crate) fn read_raw(chunk: &Chunk, bytes: &[u8], out: &mut [u64]) -> Result<(), Corrupt> {
    check_raw(chunk, bytes, out.len())?;
    for (place, field) in out.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *place = ColumnType::widen(f32::from_le_bytes(*field));
    }
    Ok(())
}

/// Checks that chunk and payload are consistent with each other and with the number of rows.
pub(crate) fn check_raw(chunk: &Chunk, bytes: &[u8], rows: usize) -> Result<(), Corrupt> {
    let plain = Chunk {
        encoding: chunk::RAW,
        flags: chunk::NARROW,
        rows: rows as u16,
        length: 4 * rows as u32,
        base: chunk.base,
        start: chunk.start,
        ..Chunk::default()
    };
    if rows == 0 || rows > VECTOR_ROWS || *chunk != plain || bytes.len() != 4 * rows {
        let found = format!("{chunk:?} with {} bytes", bytes.len());
        return Err(Corrupt::new(
            "chunk: f32",
            0,
            found,
            format!("{rows} rows of 4 bytes"),
        ));
    }
    Ok(())
}
