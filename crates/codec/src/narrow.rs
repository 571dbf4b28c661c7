//! Narrow vectors: vectors of floats that came from `f32`.
//!
//! The word of an f32 is the f64 of the same value. Its decimals are long: 7.12f32 is 7.119999885559082. The encoder
//! replaces each word by the shortest decimal that rounds to it, which the float encodings store in few bits. A
//! *narrow* chunk has a flag that tells the decoder to round every float to an f32, which restores the words. If no
//! decimals fit, the vector is stored like any other vector of f64, or as four bytes a row if that is smaller.

use crate::ColumnType;
use crate::chunk::{self, Chunk};
use tidalite_base::Corrupt;
use tidalite_base::limits::VECTOR_ROWS;

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
