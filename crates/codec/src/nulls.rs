//! Encodes vectors that have null rows.
//!
//! The other rows are encoded as if each null row had the value of the row before it. The map of null rows precedes the
//! payload of the other rows; a vector without nulls has no map, and a vector of nulls only is a constant.
//!
//! ```text
//! 0        1   2              4
//! | kind  | 0 | nulls k u16  | null rows (places.rs) | payload of the others ...
//! | u8    |   |              |                       |
//! kind: 0 the null of floats, 1 of signed, 2 of unsigned integers
//! ```

use crate::chunk::{self, Chunk};
use crate::column::{NULL_FLOAT, NULL_INT, NULL_UNSIGNED};
use crate::places;
use tidalite_base::limits::VECTOR_ROWS;
use tidalite_base::{Corrupt, get_u16};

const WORDS: [u64; 3] = [NULL_FLOAT, NULL_INT, NULL_UNSIGNED];
const HEAD_BYTES: usize = 4;

/// Appends the map of the rows equal to `null`; there must be at least one such row.
pub(crate) fn write(words: &[u64], null: u64, out: &mut Vec<u8>) {
    let nulls = words.iter().filter(|&&word| word == null).count();
    let kind = WORDS.iter().position(|&word| word == null);
    let kind = kind.unwrap_or_else(|| unreachable!("a null of a column type"));
    out.extend([kind as u8, 0]);
    out.extend((nulls as u16).to_le_bytes());
    let rows = words.iter().enumerate();
    let rows = rows.filter(|&(_, &word)| word == null);
    let rows: Vec<u16> = rows.map(|(row, _)| row as u16).collect();
    places::put(words.len(), &rows, out);
}

/// Gives each null row the word of the row before it, so that it costs no bits; nulls at the beginning get the first
/// word that is not null. At least one word must not be null.
pub(crate) fn fill_gaps(words: &[u64], null: u64, out: &mut [u64]) {
    let mut last = words.iter().copied().find(|&word| word != null);
    let mut last = last.take().unwrap_or_default();
    for (place, &word) in out.iter_mut().zip(words) {
        last = if word == null { last } else { word };
        *place = last;
    }
}

/// The map of the null rows of a vector.
pub(crate) struct Nulls<'a> {
    null: u64,
    rows: usize,
    count: usize,
    map: &'a [u8],
}

impl<'a> Nulls<'a> {
    /// Splits a payload: returns the map of the null rows, and the chunk and payload of the other rows.
    pub(crate) fn split(
        chunk: &Chunk,
        bytes: &'a [u8],
    ) -> Result<(Self, Chunk, &'a [u8]), Corrupt> {
        let rows = chunk.rows();
        if rows > VECTOR_ROWS || bytes.len() != chunk.len() || bytes.len() < HEAD_BYTES {
            let found = format!("{} bytes for {rows} rows", bytes.len());
            return Err(Corrupt::new("payload with nulls", 0, found, chunk.len()));
        }
        let nulls = usize::from(get_u16(bytes, 2));
        let map = places::bytes(rows, nulls);
        let null = WORDS.get(usize::from(bytes[0]));
        let (Some(&null), Some(map_and_rest)) = (null, bytes.get(HEAD_BYTES..)) else {
            return Err(Corrupt::new("kind of nulls", 0, bytes[0], "0, 1 or 2"));
        };
        if bytes[1] != 0 || nulls == 0 || nulls > rows || map_and_rest.len() < map {
            let found = format!("{nulls} nulls in {} bytes", bytes.len());
            return Err(Corrupt::new("nulls", 2, found, format!("1 to {rows}")));
        }
        let (map, rest) = map_and_rest.split_at(map);
        let inner = Chunk {
            flags: chunk.flags & !chunk::NULLS,
            length: rest.len() as u32,
            ..*chunk
        };
        let own = Self {
            null,
            rows,
            count: nulls,
            map,
        };
        Ok((own, inner, rest))
    }

    /// Writes the word for null to each null row of `out`.
    pub(crate) fn put(&self, out: &mut [u64]) -> Result<(), Corrupt> {
        let mut buffer = [0; VECTOR_ROWS];
        let Some(rows) = places::get(self.map, self.rows, self.count, &mut buffer) else {
            let expected = format!("{} rows below {}", self.count, self.rows);
            return Err(Corrupt::new(
                "rows of nulls",
                HEAD_BYTES as u64,
                "others",
                expected,
            ));
        };
        for &row in rows {
            out[usize::from(row)] = self.null;
        }
        Ok(())
    }
}
