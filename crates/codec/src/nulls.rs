//! Encodes vectors that have null rows.
//!
//! The other rows are encoded as if each null row had the value of the row before it. The map of null rows precedes the
//! payload of the other rows; a vector without nulls has no map, and a vector of nulls only is a constant.
//!
//! ```text
//! 0        1   2              4
//! | kind  | 0 | nulls k u16  | null rows                                   | payload of the others ...
//! | u8    |   |              | k u16, ascending:  k <= rows / 16           |
//!                            | a bit a row, 1 = null, ceil(rows / 8) bytes: else
//! kind: 0 the null of floats, 1 of signed, 2 of unsigned integers
//! ```

use crate::chunk::{self, Chunk};
use crate::column::{NULL_FLOAT, NULL_INT, NULL_UNSIGNED};
use tidalite_base::limits::VECTOR_ROWS;
use tidalite_base::{Corrupt, get_u16};

const WORDS: [u64; 3] = [NULL_FLOAT, NULL_INT, NULL_UNSIGNED];
const HEAD_BYTES: usize = 4;

/// Maximum number of nulls whose row numbers are listed; for more nulls a bitmap is used.
fn listed_max(rows: usize) -> usize {
    rows / 16
}

fn map_bytes(rows: usize, nulls: usize) -> usize {
    if nulls <= listed_max(rows) {
        2 * nulls
    } else {
        rows.div_ceil(8)
    }
}

/// Appends the map of the rows equal to `null`; there must be at least one such row.
pub(crate) fn write(words: &[u64], null: u64, out: &mut Vec<u8>) {
    let nulls = words.iter().filter(|&&word| word == null).count();
    let kind = WORDS.iter().position(|&word| word == null);
    let kind = kind.unwrap_or_else(|| unreachable!("a null of a column type"));
    out.extend([kind as u8, 0]);
    out.extend((nulls as u16).to_le_bytes());
    let rows = words.iter().enumerate();
    let rows = rows.filter(|&(_, &word)| word == null).map(|(row, _)| row);
    if nulls <= listed_max(words.len()) {
        rows.for_each(|row| out.extend((row as u16).to_le_bytes()));
    } else {
        let at = out.len();
        out.resize(at + words.len().div_ceil(8), 0);
        rows.for_each(|row| out[at + row / 8] |= 1 << (row % 8));
    }
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
    listed: bool,
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
        let map = map_bytes(rows, nulls);
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
            listed: nulls <= listed_max(rows),
            map,
        };
        if own.each(|_| {})? != nulls {
            return Err(Corrupt::new(
                "nulls",
                2,
                "other rows than their number",
                nulls,
            ));
        }
        Ok((own, inner, rest))
    }

    /// Calls `f` with the number of each null row; returns the number of null rows.
    fn each(&self, mut f: impl FnMut(usize)) -> Result<usize, Corrupt> {
        let mut count = 0;
        if self.listed {
            let mut next = 0;
            for (i, field) in self.map.as_chunks::<2>().0.iter().enumerate() {
                let row = usize::from(u16::from_le_bytes(*field));
                if row < next || row >= self.rows {
                    let at = (HEAD_BYTES + 2 * i) as u64;
                    let expected = format!("{next} to {}", self.rows - 1);
                    return Err(Corrupt::new("row of a null", at, row, expected));
                }
                f(row);
                next = row + 1;
                count += 1;
            }
            return Ok(count);
        }
        for (i, &bits) in self.map.iter().enumerate() {
            let mut bits = bits;
            while bits != 0 {
                let row = 8 * i + bits.trailing_zeros() as usize;
                if row >= self.rows {
                    let at = (HEAD_BYTES + i) as u64;
                    return Err(Corrupt::new("row of a null", at, row, self.rows));
                }
                f(row);
                count += 1;
                bits &= bits - 1;
            }
        }
        Ok(count)
    }

    /// Writes the word for null to each null row of `out`.
    pub(crate) fn put(&self, out: &mut [u64]) -> Result<(), Corrupt> {
        self.each(|row| out[row] = self.null).map(|_| ())
    }
}
