//! Encodes vectors with few distinct words or few runs: chooses the cheaper of a list of words and run-length encoding.

use super::block::EncodeInner;
use super::encoder_state::EncoderState;
use super::nested::Nested;
use crate::chunk;
use crate::column::ColumnType;

/// Tries a list of distinct words and run-length encoding, if their codes are below `below`, and returns the cheaper if
/// it costs less than `bits_max`. Stores the choices for the inner vector in the state. `inner` encodes an inner
/// vector.
pub(super) fn search(
    ty: ColumnType,
    words: &[u64],
    mut bits_max: u64,
    state: &mut EncoderState,
    below: u8,
    inner: EncodeInner,
) -> Option<Box<Nested>> {
    let mut best = None;
    if chunk::LIST < below {
        best = Nested::list(ty, words, bits_max, EncoderState::default(), inner);
    }
    if let Some(found) = &best {
        bits_max = found.bits;
    }
    if chunk::RUNS < below
        && let Some(found) = Nested::runs(ty, words, EncoderState::default(), inner)
        && found.bits < bits_max
    {
        best = Some(found);
    }
    if let Some(found) = &best {
        state.keep_inside(&found.state);
    }
    best
}

/// Encodes a vector with the encoding that the state remembers, a list or runs, without a search.
pub(super) fn again(
    ty: ColumnType,
    words: &[u64],
    state: &mut EncoderState,
    inner: EncodeInner,
) -> Option<Box<Nested>> {
    let found = match state.encoding {
        chunk::LIST => Nested::list(ty, words, u64::MAX, state.inside(), inner),
        _ => Nested::runs(ty, words, state.inside(), inner),
    }?;
    state.keep_inside(&found.state);
    Some(found)
}
