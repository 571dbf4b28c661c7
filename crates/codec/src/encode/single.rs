//! Encodes floats that came from f32, as decimals that round to them or as they are.

use super::block::{Block, EncodePlain};
use super::encoder_state::{EncoderState, Single};
use super::fit::scattered;
use crate::chunk::{self, Chunk};
use crate::{kernel, narrow};
use tidalite_base::limits::VECTOR_ROWS;

/// A quick check: false if the words clearly did not come from f32, or if they have so few significant bits that they
/// are short decimals already (whole numbers, halves, quarters).
pub(super) fn is_likely(words: &[u64]) -> bool {
    const SINGLE: u32 = 29;
    const FEW: u32 = 32;
    words[0].trailing_zeros() >= SINGLE
        && (SINGLE..=FEW).contains(&kernel::or(words).trailing_zeros())
}

/// Encodes words that all came from f32. `plain` encodes them, or their decimals, like other floats.
pub(super) fn encode(
    chunk: Chunk,
    words: &[u64],
    state: &mut EncoderState,
    plain: EncodePlain,
    out: &mut Vec<u8>,
) -> Chunk {
    let (begin, rows) = (out.len(), words.len());
    if state.is_due() && state.single == Single::Plain {
        state.single = Single::Unknown;
    }
    let found = match state.single {
        Single::Decimals(digits) => decimals(chunk, words, digits, state, plain, out),
        Single::Plain => Some(plain(chunk, words, state, out)),
        Single::Unknown => None,
    };
    let found = found.unwrap_or_else(|| search(chunk, words, state, plain, out));
    if found.len() >= 4 * rows {
        out.truncate(begin);
        return narrow::raw(chunk, words, out);
    }
    found
}

/// Tries decimals and the words as they are, and stores the better choice in the state.
fn search(
    chunk: Chunk,
    words: &[u64],
    state: &mut EncoderState,
    plain: EncodePlain,
    out: &mut Vec<u8>,
) -> Chunk {
    let mut short = (EncoderState::default(), Vec::new());
    let by_decimals = fewest_digits(words).and_then(|digits| {
        short.0.single = Single::Decimals(digits);
        decimals(chunk, words, digits, &mut short.0, plain, &mut short.1)
    });
    let begin = out.len();
    *state = EncoderState {
        single: Single::Plain,
        ..EncoderState::default()
    };
    let as_is = plain(chunk, words, state, out);
    match by_decimals {
        // Rounding after decoding takes time, so decimals must save 3 % of the space.
        Some(found) if found.len() + found.len() / 32 < as_is.len() => {
            out.truncate(begin);
            out.extend(&short.1);
            *state = short.0;
            found
        }
        _ => as_is,
    }
}

/// Encodes the decimals with this number of fractional digits; `None` if too many words do not round-trip.
fn decimals(
    chunk: Chunk,
    words: &[u64],
    digits: u8,
    state: &mut EncoderState,
    plain: EncodePlain,
    out: &mut Vec<u8>,
) -> Option<Chunk> {
    let mut block: Block = [0; VECTOR_ROWS];
    let short = &mut block[..words.len()];
    if kernel::shorten(words, usize::from(digits), short) > kept_max(words.len()) {
        return None;
    }
    let mut found = plain(chunk, short, state, out);
    found.flags |= chunk::NARROW;
    Some(found)
}

/// Maximum number of words that decimals need not restore: such a word costs ten bytes, more than twice the four bytes
/// of an f32.
fn kept_max(rows: usize) -> usize {
    rows / 16
}

/// The fewest fractional digits with which almost all words of a sample, and of the whole vector, round-trip.
fn fewest_digits(words: &[u64]) -> Option<u8> {
    const SAMPLE: usize = 64;
    let count = words.len().min(SAMPLE);
    let (mut sample, mut short) = ([0; SAMPLE], [0; SAMPLE]);
    for (i, place) in sample[..count].iter_mut().enumerate() {
        *place = words[scattered(i) % words.len()];
    }
    let mut block: Block = [0; VECTOR_ROWS];
    let whole = &mut block[..words.len()];
    (0..=Single::DIGITS_MAX).find(|&digits| {
        let digits = usize::from(digits);
        kernel::shorten(&sample[..count], digits, &mut short) <= count / 8
            && kernel::shorten(words, digits, whole) <= kept_max(words.len())
    })
}
