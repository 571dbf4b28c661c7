//! Chooses an encoding for a vector and writes its payload.

use crate::chunk::{self, Chunk};
use crate::{ColumnType, Hint};
use tidalite_base::limits::VECTOR_ROWS;

/// Encodes 1 to 1024 timestamps, in any order, and appends the payload to `out`.
///
/// # Panics
/// When there are none or more than 1024.
pub fn encode_times(times: &[i64], out: &mut Vec<u8>) -> Chunk {
    assert!((1..=VECTOR_ROWS).contains(&times.len()), "1 to 1024 rows");
    let mut chunk = Chunk {
        rows: times.len() as u16,
        start: times[0] as u64,
        ..Chunk::default()
    };
    let step = times.get(1).map_or(0, |t| t.wrapping_sub(times[0]));
    if times.windows(2).all(|w| w[1].wrapping_sub(w[0]) == step) {
        chunk.encoding = chunk::DELTA;
        chunk.base = step as u64;
    } else {
        chunk.encoding = chunk::RAW;
        chunk.start = 0;
        chunk.length = 8 * times.len() as u32;
        out.extend(times.iter().flat_map(|t| t.to_le_bytes()));
    }
    chunk
}

/// Encodes 1 to 1024 words of a column and appends the payload to `out`.
///
/// # Panics
/// When there are none or more than 1024.
pub fn encode_column(_ty: ColumnType, values: &[u64], hint: &mut Hint, out: &mut Vec<u8>) -> Chunk {
    assert!((1..=VECTOR_ROWS).contains(&values.len()), "1 to 1024 rows");
    let mut chunk = Chunk {
        rows: values.len() as u16,
        ..Chunk::default()
    };
    if values.iter().all(|&word| word == values[0]) {
        chunk.encoding = chunk::CONSTANT;
        chunk.base = values[0];
    } else {
        chunk.encoding = chunk::RAW;
        chunk.length = 8 * values.len() as u32;
        out.extend(values.iter().flat_map(|word| word.to_le_bytes()));
    }
    hint.encoding = chunk.encoding;
    chunk
}
