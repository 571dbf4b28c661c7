//! A stack buffer for the numbers of a vector, and the type of the function that encodes an inner vector.

use crate::chunk::Chunk;
use crate::column::ColumnType;
use crate::encode::encoder_state::EncoderState;
use tidalite_base::limits::VECTOR_ROWS;

/// One number per row.
pub(super) type Block = [u64; VECTOR_ROWS];

/// Encodes words with an encoding whose code is below the given one, and appends their payload.
pub(super) type EncodeInner = fn(ColumnType, &[u64], &mut EncoderState, u8, &mut Vec<u8>) -> Chunk;
