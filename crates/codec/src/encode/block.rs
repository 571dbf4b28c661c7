//! Types that the encodings share: a buffer for the numbers of a vector, and the function that encodes an inner vector.

use crate::chunk::Chunk;
use crate::column::ColumnType;
use crate::encode::encoder_state::EncoderState;
use tidalite_base::limits::VECTOR_ROWS;

/// Buffer with room for one number for each row of a vector.
pub(super) type Block = [u64; VECTOR_ROWS];

/// Function that encodes words with an encoding whose code is below the given code, and appends the payload.
pub(super) type EncodeInner = fn(ColumnType, &[u64], &mut EncoderState, u8, &mut Vec<u8>) -> Chunk;

/// Function that encodes floats with any encoding, and appends the payload.
pub(super) type EncodePlain = fn(Chunk, &[u64], &mut EncoderState, &mut Vec<u8>) -> Chunk;
