//! A vector of numbers on the stack, and the function that encodes a vector inside a vector.

use crate::chunk::Chunk;
use crate::column::ColumnType;
use crate::encode::hint::Hint;
use tidalite_base::limits::VECTOR_ROWS;

/// One number a row.
pub(super) type Block = [u64; VECTOR_ROWS];

/// Encodes words with a code less than the given one, and appends their payload.
pub(super) type EncodeInner = fn(ColumnType, &[u64], &mut Hint, u8, &mut Vec<u8>) -> Chunk;
