//! Writes the parts of a payload, in the order given in docs/format.md:
//!
//! ```text
//! scale               8             if SCALED
//! high parts          2 * patches   SPLIT
//! inner description   see chunk.rs  LIST, RUNS
//! inner payload
//! packed              see pack.rs   width > 0
//! corrections         see pack.rs   decimals, width of corrections > 0
//! low bits            see pack.rs   SPLIT
//! patch rows          see places.rs patches > 0
//! patch units         see pack.rs   patches > 0; of a single lane only the bytes that are needed
//! exception rows      see places.rs exceptions > 0
//! exception words     8 * exceptions, or 8 if SHARED
//! ```

use super::nested::Nested;
use super::split::Split;
use crate::chunk::{self, Chunk, Correction};
use crate::encode::layout::Layout;
use crate::kernel;
use crate::loops::pack::{packed_bytes, units_bytes};
use crate::loops::scan::{TILE, bits};
use crate::places;
use crate::short::zigzag;
use tidalite_base::limits::VECTOR_ROWS;

const _: () = assert!(VECTOR_ROWS <= 64 * TILE, "a bit a tile");

/// The rows whose words are stored unencoded.
pub(super) struct Exceptions {
    /// One bit per row: set if the word of the row is stored unencoded.
    rows: [u64; VECTOR_ROWS / 64],
    count: usize,
    shared: bool,
}

impl Exceptions {
    pub(super) fn none() -> Self {
        Self {
            rows: [0; VECTOR_ROWS / 64],
            count: 0,
            shared: false,
        }
    }

    pub(super) fn of(bad: &[u16], words: &[u64]) -> Self {
        let mut exceptions = Self::none();
        for &row in bad {
            exceptions.add(usize::from(row));
        }
        exceptions.settle(words);
        exceptions
    }

    fn add(&mut self, row: usize) {
        self.rows[row / 64] |= 1 << (row % 64);
    }

    /// Counts the rows, and detects whether all of them have the same word.
    fn settle(&mut self, words: &[u64]) {
        self.count = self
            .rows
            .iter()
            .map(|bits| bits.count_ones() as usize)
            .sum();
        let mut rows = self.iter();
        let first = rows.next();
        let shared = first.is_some_and(|first| rows.all(|row| words[row] == words[first]));
        drop(rows);
        self.shared = self.count > 1 && shared;
    }

    fn iter(&self) -> impl Iterator<Item = usize> {
        self.rows.iter().enumerate().flat_map(|(i, &bits)| {
            let next = |&bits: &u64| Some(bits & (bits - 1)).filter(|&bits| bits != 0);
            core::iter::successors(Some(bits).filter(|&bits| bits != 0), next)
                .map(move |bits| i * 64 + bits.trailing_zeros() as usize)
        })
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Size in bits of the exceptions of a vector with this number of rows.
    pub(super) fn bits(&self, rows: usize) -> u64 {
        let words = if self.shared { 1 } else { self.count };
        8 * (places::bytes(rows, self.count) + 8 * words) as u64
    }

    fn write(&self, chunk: &mut Chunk, words: &[u64], out: &mut Vec<u8>) {
        chunk.exceptions = self.count as u16;
        let rows: Vec<u16> = self.iter().map(|row| row as u16).collect();
        places::put(words.len(), &rows, out);
        if self.shared {
            chunk.flags |= chunk::SHARED;
        }
        let stored = if self.shared { 1 } else { self.count };
        for row in self.iter().take(stored) {
            out.extend(words[row].to_le_bytes());
        }
    }
}

/// The values of a vector in all forms that the encodings use.
pub(super) struct Values<'a> {
    /// The values as signed integers.
    pub(super) ints: &'a mut [u64],
    /// The deltas between the integers; the delta of row 0 is unused.
    pub(super) steps: &'a mut [u64],
    /// The words of the column, as the caller passed them.
    pub(super) words: &'a [u64],
    /// The bit that distinguishes the integers from the words: an integer is a word with this bit flipped.
    pub(super) flip: u64,
    /// The packed corrections of decimals.
    pub(super) corrections: &'a [u64],
    pub(super) correction: Correction,
}

/// Writes integers in a layout: values near a base, or deltas. `codes` holds the code of the encoding for values and
/// the code for deltas.
pub(super) fn layout(
    mut chunk: Chunk,
    codes: [u8; 2],
    layout: Layout,
    values: Values<'_>,
    exceptions: Exceptions,
    out: &mut Vec<u8>,
) -> Chunk {
    let begin = out.len();
    let fit = layout.fit;
    chunk.width = fit.width as u8;
    if fit.scale != 1 && fit.width > 0 {
        chunk.flags |= chunk::SCALED;
        out.extend(fit.scale.to_le_bytes());
    }
    // Selects the numbers to pack: deltas or values. The delta of row 0 is unused.
    let laid = if layout.delta {
        chunk.encoding = codes[1];
        chunk.base = fit.base;
        chunk.start = values.ints[0] ^ values.flip;
        values.steps[0] = fit.base;
        values.steps
    } else {
        chunk.encoding = codes[0];
        chunk.base = fit.base ^ values.flip;
        values.ints
    };
    let (mut rows, mut units) = (Vec::new(), Vec::new());
    // The unit is stored only in a payload that has packed bits.
    let scale = if fit.width > 0 { fit.scale } else { 1 };
    if fit.outliers > 0 {
        let reach = fit.reach();
        // In many vectors outliers are few, so that most tiles (groups of 64 values) have none.
        let mut tiles = kernel::tiles_outside(laid, fit.base, reach);
        while tiles != 0 {
            let from = TILE * tiles.trailing_zeros() as usize;
            tiles &= tiles - 1;
            for (row, value) in laid.iter_mut().enumerate().skip(from).take(TILE) {
                let distance = value.wrapping_sub(fit.base);
                if distance > reach {
                    rows.push(row as u16);
                    units.push((distance as i64 / scale as i64) as u64);
                    *value = fit.base;
                }
            }
        }
    }
    packed(laid, fit.width, fit.base, fit.scale, out);
    corrections(&mut chunk, values.correction, values.corrections, out);
    patches(&mut chunk, &rows, &mut units, values.words.len(), out);
    exceptions.write(&mut chunk, values.words, out);
    chunk.length = (out.len() - begin) as u32;
    chunk
}

/// Writes the rows of the patches and their distances from the base, which are signed.
fn patches(chunk: &mut Chunk, rows: &[u16], units: &mut [u64], of: usize, out: &mut Vec<u8>) {
    if rows.is_empty() {
        return;
    }
    places::put(of, rows, out);
    let unsigned = units.iter().all(|&units| units as i64 >= 0);
    if !unsigned {
        units.iter_mut().for_each(|units| *units = zigzag(*units));
    }
    let width = bits(units.iter().fold(0, |all, &units| all | units)).max(1);
    chunk.patches = rows.len() as u16;
    chunk.patch_width = width as u8 | if unsigned { chunk::UNSIGNED } else { 0 };
    let at = out.len();
    out.resize(at + packed_bytes(units.len(), width), 0);
    kernel::pack(units, width, 0, &mut out[at..]);
    out.truncate(at + units_bytes(units.len(), width));
}

fn packed(values: &mut [u64], width: u32, mut base: u64, scale: u64, out: &mut Vec<u8>) {
    if width == 0 {
        return;
    }
    if scale != 1 {
        kernel::divide(values, base, scale);
        base = 0;
    }
    let at = out.len();
    out.resize(at + packed_bytes(values.len(), width), 0);
    kernel::pack(values, width, base, &mut out[at..]);
}

fn corrections(chunk: &mut Chunk, correction: Correction, values: &[u64], out: &mut Vec<u8>) {
    let width = u32::from(correction.width);
    if width > 0 {
        let at = out.len();
        chunk.correction = correction;
        out.resize(at + packed_bytes(values.len(), width), 0);
        kernel::pack(values, width, 0, &mut out[at..]);
    }
}

/// Writes indices of the high bits, low bits, and exceptions (words whose high bits are not in the list). `codes` and
/// `lows` are scratch buffers.
pub(super) fn split(
    mut chunk: Chunk,
    found: &Split,
    words: &[u64],
    codes: &mut [u64],
    lows: &mut [u64],
    out: &mut Vec<u8>,
) -> Chunk {
    let begin = out.len();
    let mut exceptions = Exceptions::none();
    let mask = u64::MAX.checked_shr(64 - found.low).unwrap_or(0);
    for (row, ((code, low), &word)) in codes.iter_mut().zip(&mut *lows).zip(words).enumerate() {
        *low = word >> found.zeros & mask;
        *code = found.code(word).unwrap_or_else(|| {
            exceptions.add(row);
            0
        });
    }
    exceptions.settle(words);
    chunk.encoding = chunk::SPLIT;
    chunk.exponent = found.zeros as u8;
    chunk.factor = found.low as u8;
    chunk.width = found.width() as u8;
    chunk.patches = found.entries.len() as u16;
    for entry in &found.entries {
        out.extend(entry.to_le_bytes());
    }
    packed(codes, found.width(), 0, 1, out);
    packed(lows, found.low, 0, 1, out);
    exceptions.write(&mut chunk, words, out);
    chunk.length = (out.len() - begin) as u32;
    chunk
}

pub(super) fn nested(mut chunk: Chunk, found: &Nested, out: &mut Vec<u8>) -> Chunk {
    chunk.encoding = found.encoding;
    chunk.patches = found.count as u16;
    chunk.width = found.width as u8;
    chunk.base = found.base;
    let begin = out.len();
    found.inner.put(out);
    out.extend(&found.payload);
    let count = if found.encoding == chunk::RUNS {
        found.count
    } else {
        chunk.rows()
    };
    let mut numbers = found.numbers;
    packed(&mut numbers[..count], found.width, found.base, 1, out);
    chunk.length = (out.len() - begin) as u32;
    chunk
}

pub(super) fn raw(mut chunk: Chunk, words: &[u64], out: &mut Vec<u8>) -> Chunk {
    chunk.encoding = chunk::RAW;
    chunk.length = 8 * words.len() as u32;
    words_to(words, out);
    chunk
}

fn words_to(words: &[u64], out: &mut Vec<u8>) {
    let at = out.len();
    out.resize(at + 8 * words.len(), 0);
    let (places, _) = out[at..].as_chunks_mut::<8>();
    for (place, word) in places.iter_mut().zip(words) {
        *place = word.to_le_bytes();
    }
}
