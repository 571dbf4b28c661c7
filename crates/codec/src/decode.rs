//! Payload to words. The bytes are untrusted: any input gives values or [`Corrupt`].

use crate::chunk::{self, Chunk};
use tidalite_base::Corrupt;

/// Decodes the timestamps of `chunk` from its payload; `out` has exactly `chunk.rows()` places.
///
/// # Errors
/// [`Corrupt`], with the offset inside the payload as address, when chunk and payload contradict
/// each other or the length of `out`.
pub fn decode_times(chunk: &Chunk, bytes: &[u8], out: &mut [i64]) -> Result<(), Corrupt> {
    check(chunk, bytes, out.len())?;
    match chunk.encoding {
        chunk::CONSTANT => out.fill(chunk.base as i64),
        chunk::DELTA => {
            let mut time = chunk.start as i64;
            for place in out {
                *place = time;
                time = time.wrapping_add(chunk.base as i64);
            }
        }
        _ => {
            for (place, word) in out.iter_mut().zip(bytes.chunks_exact(8)) {
                *place = tidalite_base::get_i64(word, 0);
            }
        }
    }
    Ok(())
}

/// Decodes the words of `chunk` from its payload; `out` has exactly `chunk.rows()` places.
///
/// # Errors
/// [`Corrupt`], with the offset inside the payload as address, when chunk and payload contradict
/// each other or the length of `out`.
pub fn decode_column(chunk: &Chunk, bytes: &[u8], out: &mut [u64]) -> Result<(), Corrupt> {
    check(chunk, bytes, out.len())?;
    match chunk.encoding {
        chunk::CONSTANT => out.fill(chunk.base),
        chunk::DELTA => {
            let mut word = chunk.start;
            for place in out {
                *place = word;
                word = word.wrapping_add(chunk.base);
            }
        }
        _ => {
            for (place, word) in out.iter_mut().zip(bytes.chunks_exact(8)) {
                *place = tidalite_base::get_u64(word, 0);
            }
        }
    }
    Ok(())
}

fn check(chunk: &Chunk, bytes: &[u8], rows: usize) -> Result<(), Corrupt> {
    if chunk.rows() != rows {
        return Err(Corrupt::new("chunk rows", 0, chunk.rows, rows));
    }
    let length = match chunk.encoding {
        chunk::CONSTANT | chunk::DELTA => 0,
        chunk::RAW => 8 * rows,
        other => return Err(Corrupt::new("chunk encoding", 0, other, "1 to 9")),
    };
    if bytes.len() != chunk.len() || length != bytes.len() {
        return Err(Corrupt::new("chunk length", 0, bytes.len(), length));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ColumnType, Hint, encode_column, encode_times};

    #[test]
    fn vectors_come_back() {
        for times in [vec![5], vec![1, 3, 5, 7], vec![i64::MAX, i64::MIN, 0, 0]] {
            let mut bytes = Vec::new();
            let chunk = encode_times(&times, &mut bytes);
            let chunk = Chunk::decode(&chunk.to_bytes());
            let mut back = vec![0; times.len()];
            decode_times(&chunk, &bytes, &mut back).unwrap();
            assert_eq!(back, times);
            let words: Vec<u64> = times.iter().map(|&t| t as u64).collect();
            bytes.clear();
            let chunk = encode_column(ColumnType::I64, &words, &mut Hint::default(), &mut bytes);
            let mut back = vec![0; words.len()];
            decode_column(&chunk, &bytes, &mut back).unwrap();
            assert_eq!(back, words);
            assert!(decode_column(&chunk, &[0; 7], &mut back).is_err());
        }
    }
}
