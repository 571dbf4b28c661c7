//! Random access to single words of an encoded vector.
//!
//! A caller that needs one row in a thousand pays only for that row if the encoding allows it. Words near a base or a
//! line are looked up, also through a list. If all deltas are equal except for a few patches (outliers), the word is
//! computed without the words before it. For all other encodings (varying deltas, lists of such vectors, runs, splits,
//! nulls, f32) the result is `None`, and the caller must decode the whole vector.

use crate::chunk::{self, Chunk};
use crate::decode::Parts;
use crate::kernel;
use crate::loops::float::Alp;
use crate::loops::pack::{self, Packed};
use tidalite_base::Corrupt;
use tidalite_base::limits::VECTOR_ROWS;

/// The word of row `row`, equal to the result of `decode_column`. `None` if the vector must be decoded as a whole, or
/// if the row does not exist.
///
/// # Errors
/// [`Corrupt`], with the offset inside the payload as address, if chunk and payload contradict each other or `rows`.
///
/// # Cost
/// About ten nanoseconds; if the vector is encoded by deltas, one more step per patch (outlier).
///
/// ```
/// use tidalite_codec::{ColumnType, EncoderState, encode_column, word_at};
///
/// let words: Vec<u64> = (0..1000).map(|i: u64| 7_000 + i.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 1021).collect();
/// let mut payload = Vec::new();
/// let chunk = encode_column(ColumnType::U64, &words, &mut EncoderState::default(), &mut payload);
/// assert_eq!(word_at(&chunk, &payload, 1000, 876)?, Some(words[876]));
/// # Ok::<(), tidalite_base::Corrupt>(())
/// ```
pub fn word_at(
    chunk: &Chunk,
    bytes: &[u8],
    rows: usize,
    row: usize,
) -> Result<Option<u64>, Corrupt> {
    if chunk.flags & (chunk::NULLS | chunk::NARROW) != 0 || row >= rows {
        return Ok(None);
    }
    let parts = Parts::of(chunk, bytes, rows)?;
    if let Some(word) = parts.exception(chunk, row, rows)? {
        return Ok(Some(word));
    }
    let mut word = match chunk.encoding {
        chunk::CONSTANT => [chunk.base],
        chunk::RAW => [word_of(bytes, row)],
        chunk::FOR | chunk::ORDERED_FOR | chunk::ALP_FOR => [parts.near(chunk, row, rows)?],
        chunk::SLOPE => {
            let above = chunk.start.wrapping_mul(row as u64);
            [parts.near(chunk, row, rows)?.wrapping_add(above)]
        }
        // If deltas vary, summing them up to this row takes as long as decoding the whole vector with a kernel.
        chunk::DELTA | chunk::ORDERED_DELTA | chunk::ALP_DELTA if chunk.width == 0 => {
            [parts.stepped(chunk, row, rows)?]
        }
        chunk::LIST => {
            let codes = Packed {
                bytes: parts.packed,
                width: u32::from(chunk.width),
                base: 0,
                scale: 1,
            };
            let code = codes.at(row, rows);
            if code >= u64::from(chunk.patches) {
                return Ok(None); // Decoding the whole vector then reports the damage.
            }
            let (inner, payload) = parts.inner(chunk)?;
            return word_at(&inner, payload, inner.rows(), code as usize);
        }
        _ => return Ok(None),
    };
    match chunk.encoding {
        chunk::ALP_FOR | chunk::ALP_DELTA => {
            let alp = Alp {
                exponent: chunk.exponent,
                factor: chunk.factor,
            };
            kernel::alp_decode(alp, &mut word);
        }
        chunk::ORDERED_FOR | chunk::ORDERED_DELTA => {
            kernel::unordered(&mut word, u32::from(chunk.exponent));
        }
        _ => {}
    }
    if !parts.corrections.is_empty() {
        word[0] = word[0].wrapping_add(parts.corrections(chunk).at(row, rows));
    }
    Ok(Some(word[0]))
}

/// Number of words of an ascending vector that are at most `word`, compared as unsigned numbers. `None` if the vector
/// must be decoded as a whole. If the words do not ascend, the result is unspecified.
///
/// # Errors
/// As for [`word_at`].
///
/// # Cost
/// A binary search; if all deltas are equal, one step per patch (outlier).
pub fn count_up_to(
    chunk: &Chunk,
    bytes: &[u8],
    rows: usize,
    word: u64,
) -> Result<Option<usize>, Corrupt> {
    if chunk.flags & (chunk::NULLS | chunk::NARROW) != 0 {
        return Ok(None);
    }
    let parts = Parts::of(chunk, bytes, rows)?;
    match chunk.encoding {
        chunk::CONSTANT => Ok(Some(if chunk.base <= word { rows } else { 0 })),
        chunk::DELTA if chunk.width == 0 && chunk.exceptions == 0 => {
            parts.steps_up_to(chunk, rows, word).map(Some)
        }
        chunk::FOR if chunk.exceptions == 0 => {
            let (mut low, mut high) = (0, rows);
            while low < high {
                let middle = low.midpoint(high);
                if parts.near(chunk, middle, rows)? <= word {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            Ok(Some(low))
        }
        _ => Ok(None),
    }
}

impl Parts<'_> {
    /// The word of a row that is stored unencoded, as an exception; `None` for any other row.
    fn exception(&self, chunk: &Chunk, row: usize, rows: usize) -> Result<Option<u64>, Corrupt> {
        if chunk.exceptions == 0 {
            return Ok(None);
        }
        let mut buffer = [0; VECTOR_ROWS];
        let found = self.exception_rows(chunk, rows, &mut buffer)?;
        let found = found.binary_search(&(row as u16));
        let shared = chunk.flags & chunk::SHARED != 0;
        Ok(found.ok().map(|at| {
            let at = if shared { 0 } else { at };
            word_of(self.exception_words, at)
        }))
    }

    /// The integer of a row in a vector encoded near a base: the base plus the packed value, or the value of a patch
    /// (outlier).
    fn near(&self, chunk: &Chunk, row: usize, rows: usize) -> Result<u64, Corrupt> {
        let mut buffer = [0; VECTOR_ROWS];
        let found = match chunk.patches {
            0 => Err(0),
            _ => {
                let patches = self.patch_rows(chunk, rows, &mut buffer)?;
                patches.binary_search(&(row as u16))
            }
        };
        Ok(match found {
            Ok(at) => self.patched(chunk, at),
            Err(_) if chunk.width == 0 => chunk.base,
            Err(_) => self.packed(chunk).at(row, rows),
        })
    }

    /// The integer of a row if all deltas equal the base except for patches (outliers). Row 0 has the value `start`;
    /// the delta of row 0 is ignored.
    fn stepped(&self, chunk: &Chunk, row: usize, rows: usize) -> Result<u64, Corrupt> {
        let mut buffer = [0; VECTOR_ROWS];
        let patches = self.patch_rows(chunk, rows, &mut buffer)?;
        let first = patches.partition_point(|at| *at == 0);
        let end = patches.partition_point(|at| usize::from(*at) <= row);
        let mut steps = Steps::default();
        let steps = steps.of(self, chunk);
        let by = (first..end).fold(0u64, |sum, at| {
            sum.wrapping_add(steps(at).wrapping_sub(chunk.base))
        });
        let even = chunk.base.wrapping_mul(row as u64);
        Ok(chunk.start.wrapping_add(even).wrapping_add(by))
    }

    /// Number of words that are at most `word`, if all deltas equal the base except for patches (outliers).
    fn steps_up_to(&self, chunk: &Chunk, rows: usize, word: u64) -> Result<usize, Corrupt> {
        let mut buffer = [0; VECTOR_ROWS];
        let patches = self
            .patch_rows(chunk, rows, &mut buffer)?
            .iter()
            .enumerate();
        let patches = patches.map(|(at, row)| (at, usize::from(*row)));
        let mut steps = Steps::default();
        let steps = steps.of(self, chunk);
        // The words from row `from` up to the next patch begin with `value` and have a constant delta.
        let (mut from, mut value) = (0, chunk.start);
        let even = |from: usize, value: u64, end: usize| match value <= word {
            false => 0,
            true if chunk.base == 0 => end - from,
            true => (((word - value) / chunk.base) as usize)
                .saturating_add(1)
                .min(end - from),
        };
        for (at, end) in patches.filter(|(_, row)| *row > 0) {
            let count = even(from, value, end);
            if count < end - from {
                return Ok(from + count);
            }
            let last = chunk.base.wrapping_mul((end - from - 1) as u64);
            value = value.wrapping_add(last).wrapping_add(steps(at));
            from = end;
        }
        Ok(from + even(from, value, rows))
    }
}

/// The deltas that patches store. Many patches in one lane are decoded together, which takes a fraction of the time of
/// decoding them one by one.
struct Steps([u64; pack::LANE_MAX]);

impl Default for Steps {
    fn default() -> Self {
        Self([0; pack::LANE_MAX])
    }
}

/// Number of patches that are decoded one by one.
const PATCHES_FEW: usize = 8;

impl Steps {
    /// Returns a function that gives the delta of the patch at an index.
    fn of<'a>(&'a mut self, parts: &'a Parts<'_>, chunk: &'a Chunk) -> impl Fn(usize) -> u64 + 'a {
        let count = usize::from(chunk.patches);
        let together = count > PATCHES_FEW && pack::lanes(count) == 1;
        if together {
            let mut lane = [0; 8 * pack::LANE_MAX + pack::LANE_BEHIND];
            parts.patched_all(chunk, &mut lane, &mut self.0[..count]);
        }
        move |at| match together {
            true => self.0[at],
            false => parts.patched(chunk, at),
        }
    }
}

fn word_of(bytes: &[u8], at: usize) -> u64 {
    let (words, _) = bytes.as_chunks::<8>();
    words.get(at).map_or(0, |word| u64::from_le_bytes(*word))
}
