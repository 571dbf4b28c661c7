//! A chunk: the description of an encoded vector, which is stored where the vector is stored.
//!
//! ```text
//! | encoding u8 | width u8 | rule, outliers, base, start: short integers (short.rs) |
//!
//! encoding      see the constants below
//! width         bits of a packed value, 0 to 64
//! rule          byte 0: exponent     ALP: e;  ordered, split: low zero bits left out;  else 0
//!               byte 1: factor       ALP: f, or 255 for "divide by 10^e";  split: low bits stored unencoded;  else 0
//!               byte 2: flags        1: scaled;  2: all exceptions share one word;  4: nulls;  8: narrow
//!               byte 3: correction_width   ALP: bits of a correction;  else 0
//!               byte 4: correction_depth   ALP: number subtracted from a stored correction;  else 0
//! outliers      bytes 0, 1: patches  values or deltas outside the packed range;  split, list: entries;
//!                                    runs: runs;  else 0
//!               bytes 2, 3: exceptions   rows whose word is stored unencoded
//!               byte 4: patch_width  bits of a patch, 1 to 64, and 128 if none is negative; 0 without patches
//! base          zigzag; constant: the word;  runs: length of the shortest;
//!               else the smallest value or the smallest delta
//! start         zigzag; delta: the first value;  slope: rise of the line per row;  else 0
//! ```
//!
//! The number of rows and the length of the payload are not included: the place that holds the vector states both.

use crate::short::{self, unzigzag, zigzag};
/// Number of variable-length integers in a description.
const NUMBERS: usize = 4;
/// Length in bytes of the fields encoding and width.
const FIXED_BYTES: usize = 2;
/// Number of bytes that the integers never use, because the decimal rule and the outliers need fewer than eight bytes.
const UNUSED_BYTES: usize = 2 * 3;
/// Maximum size of a description, in bytes.
pub const CHUNK_BYTES_MAX: usize = FIXED_BYTES + short::bytes_max(NUMBERS) - UNUSED_BYTES;
const _: () = assert!(CHUNK_BYTES_MAX == 30);

/// Describes how to read the payload of a vector; the table at the head of `chunk.rs` and docs/format.md section 6 list
/// the fields.
///
/// A chunk read from a file is untrusted: the functions `decode_*` check its fields, this module does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    pub(crate) encoding: u8,
    pub(crate) width: u8,
    pub(crate) exponent: u8,
    pub(crate) factor: u8,
    pub(crate) rows: u16,
    pub(crate) exceptions: u16,
    pub(crate) patches: u16,
    pub(crate) patch_width: u8,
    pub(crate) flags: u8,
    pub(crate) correction: Correction,
    pub(crate) length: u32,
    pub(crate) base: u64,
    pub(crate) start: u64,
}

impl Chunk {
    /// Number of values in the vector.
    #[must_use]
    #[inline]
    pub fn rows(&self) -> usize {
        usize::from(self.rows)
    }

    /// Length of the payload in bytes.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.length as usize
    }

    /// True if the payload is empty, because the chunk alone describes the vector.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// True if the payload is in cold form, so that `decode_cold` must read it, with the model that the leaf stores for
    /// the column.
    #[must_use]
    #[inline]
    pub fn is_cold(&self) -> bool {
        self.encoding == COLD
    }

    /// The name of the chunk's encoding, for display.
    #[must_use]
    pub fn encoding_name(&self) -> &'static str {
        match self.encoding {
            CONSTANT => "constant",
            RAW => "raw",
            FOR => "base",
            DELTA => "steps",
            ALP_FOR => "decimal base",
            ALP_DELTA => "decimal steps",
            ORDERED_FOR => "ordered base",
            ORDERED_DELTA => "ordered steps",
            SPLIT => "split",
            LIST => "list",
            RUNS => "runs",
            COLD => "cold",
            SLOPE => "slope",
            _ => "unknown",
        }
    }

    /// Appends the encoded description, which contains neither the number of rows nor the length of the payload.
    pub fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.encoding, self.width]);
        short::put(&self.numbers(), out);
    }

    /// Length in bytes of the encoded description.
    #[must_use]
    pub fn description_bytes(&self) -> usize {
        FIXED_BYTES + short::bytes(&self.numbers())
    }

    fn numbers(&self) -> [u64; NUMBERS] {
        let Correction { width, depth } = self.correction;
        let rule = u64::from(self.exponent)
            | u64::from(self.factor) << 8
            | u64::from(self.flags) << 16
            | u64::from(width) << 24
            | u64::from(depth) << 32;
        let outliers = u64::from(self.patches)
            | u64::from(self.exceptions) << 16
            | u64::from(self.patch_width) << 32;
        [rule, outliers, zigzag(self.base), zigzag(self.start)]
    }

    /// Decodes the description at offset `at` of `bytes`, for a vector of `rows` rows whose payload has `len` bytes.
    /// Returns the chunk and the offset of the end of its description, or `None` if the bytes hold no description. The
    /// fields stay unchecked until one of the functions `decode_*` is called.
    #[must_use]
    #[inline]
    pub fn get(bytes: &[u8], at: usize, (rows, len): (usize, usize)) -> Option<(Self, usize)> {
        let &[encoding, width] = bytes.get(at..)?.first_chunk::<FIXED_BYTES>()?;
        let ([rule, outliers, base, start], end) = short::get::<NUMBERS>(bytes, at + FIXED_BYTES)?;
        if (rule | outliers) >> 40 != 0 {
            return None;
        }
        let chunk = Self {
            encoding,
            width,
            exponent: rule as u8,
            factor: (rule >> 8) as u8,
            rows: u16::try_from(rows).ok()?,
            exceptions: (outliers >> 16) as u16,
            patches: outliers as u16,
            patch_width: (outliers >> 32) as u8,
            flags: (rule >> 16) as u8,
            correction: Correction {
                width: (rule >> 24) as u8,
                depth: (rule >> 32) as u8,
            },
            length: u32::try_from(len).ok()?,
            base: unzigzag(base),
            start: unzigzag(start),
        };
        Some((chunk, end))
    }
}

/// Encoding in which every row has the word `base`; the payload is empty.
pub(crate) const CONSTANT: u8 = 1;
/// Encoding that stores the 64-bit words as they are.
pub(crate) const RAW: u8 = 2;
/// Encoding of integers near `base` (frame of reference).
pub(crate) const FOR: u8 = 3;
/// Encoding of integers whose deltas are near `base`.
pub(crate) const DELTA: u8 = 4;
/// Encoding of floats as decimals (integers over a power of ten) that are near `base`.
pub(crate) const ALP_FOR: u8 = 5;
/// Encoding of floats as decimals (integers over a power of ten) whose deltas are near `base`.
pub(crate) const ALP_DELTA: u8 = 6;
/// Encoding of floats whose ordered bits (an integer that sorts like the float) are near `base`.
pub(crate) const ORDERED_FOR: u8 = 7;
/// Encoding of floats whose ordered bits (an integer that sorts like the float) have deltas near `base`.
pub(crate) const ORDERED_DELTA: u8 = 8;
/// Encoding of the high bits as indices into a short list; the low bits are stored as they are.
pub(crate) const SPLIT: u8 = 9;
/// Encoding of each word as an index into a list of words, which is encoded as an inner vector.
pub(crate) const LIST: u8 = 10;
/// Run-length encoding: the words of the runs as an inner vector, and the run lengths.
pub(crate) const RUNS: u8 = 11;
/// Encoding of integers near a line: base and packed values as in [`FOR`], plus `start` times the row number.
pub(crate) const SLOPE: u8 = 12;
/// Encoding as a page of the compressor pco, whose model the leaf stores; described in `cold/`.
pub(crate) const COLD: u8 = 13;
/// Maximum number of bits in the high part of a word in the encoding `SPLIT`.
pub(crate) const SPLIT_HIGH_MAX: u32 = 16;

/// Value added to the number of bits of a patch if no patch lies below the base, so that patches need no sign.
pub(crate) const UNSIGNED: u8 = 128;

/// Flag: packed values and deltas are multiples of a unit, and the payload begins with this unit.
pub(crate) const SCALED: u8 = 1;
/// Flag: all exceptions have the same word, which is stored once.
pub(crate) const SHARED: u8 = 2;
/// Flag: the payload begins with the map of null rows, as described in nulls.rs.
pub(crate) const NULLS: u8 = 4;
/// Flag: every float is rounded to an f32 after decoding, as described in narrow.rs.
pub(crate) const NARROW: u8 = 8;

/// A small number that is added to the word of a decimal: computed floats miss the decimal that they stand for by a few
/// units in the last place. A correction is stored as an unsigned number of `width` bits; decoding subtracts `depth`
/// from this number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Correction {
    /// Number of bits of a stored correction; 0 if there are no corrections.
    pub(crate) width: u8,
    /// Magnitude of the lowest (most negative) correction.
    pub(crate) depth: u8,
}

impl Correction {
    /// Maximum number of bits of a stored correction.
    pub(crate) const WIDTH_MAX: u8 = 8;

    /// True if a correction of zero can be stored; without corrections, true if `depth` is 0.
    pub(crate) fn is_valid(self) -> bool {
        self.width <= Self::WIDTH_MAX && u64::from(self.depth) < 1 << self.width
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Rng, few};

    #[test]
    fn a_description_keeps_every_bit() {
        let mut rng = Rng(422);
        let mut random = || rng.next() >> rng.below(64);
        for _ in 0..few(5000) {
            let chunk = Chunk {
                encoding: random() as u8,
                width: random() as u8,
                exponent: random() as u8,
                factor: random() as u8,
                rows: random() as u16,
                exceptions: random() as u16,
                patches: random() as u16,
                patch_width: random() as u8,
                flags: random() as u8,
                correction: Correction {
                    width: random() as u8,
                    depth: random() as u8,
                },
                length: random() as u32,
                base: random(),
                start: random(),
            };
            let mut bytes = vec![1, 2, 3];
            chunk.put(&mut bytes);
            let end = bytes.len();
            assert!(end - 3 == chunk.description_bytes() && end - 3 <= CHUNK_BYTES_MAX);
            let of = (chunk.rows(), chunk.len());
            assert_eq!(Chunk::get(&bytes, 3, of), Some((chunk, end)));
            bytes.pop();
            assert_eq!(Chunk::get(&bytes, 3, of), None);
        }
    }

    #[test]
    fn bits_beyond_the_fields_are_refused() {
        for number in [0, 1] {
            let mut numbers = [0u64; NUMBERS];
            for (high, found) in [(1 << 39, true), (1 << 40, false), (1 << 63, false)] {
                numbers[number] = high;
                let mut bytes = vec![CONSTANT, 0];
                short::put(&numbers, &mut bytes);
                assert_eq!(Chunk::get(&bytes, 0, (1, 0)).is_some(), found);
            }
        }
    }
}
