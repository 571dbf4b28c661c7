//! The 32 bytes that describe an encoded vector.
//!
//! ```text
//! offset size
//!      0    1  encoding      see Encoding
//!      1    1  width         bits of a packed value, 0 to 64
//!      2    1  exponent      ALP: e;  ordered, split: low zero bits left out;  else 0
//!      3    1  factor        ALP: f, or 255 for "divide by 10^e";  split: low bits stored unencoded;  else 0
//!      4    2  rows          1 to 1024
//!      6    2  exceptions    rows whose word is stored unencoded
//!      8    2  patches       values or deltas outside the packed range;  dictionary, split, list: entries;
//!                            runs: runs;  else 0
//!     10    1  patch_bytes   bytes of a patch, 1 to 8, 0 without patches
//!     11    1  flags         1: scaled;  2: all exceptions share one word;  4: nulls;  8: narrow;
//!                            ALP: the four high bits number the corrections
//!     12    4  length        bytes of the payload
//!     16    8  base          constant: the word;  runs: length of the shortest;
//!                            else the smallest value or the smallest delta
//!     24    8  start         delta: the first value;  slope: rise of the line per row;  else 0
//! ```

use crate::loops::float::Alp;
use crate::short::{self, unzigzag, zigzag};
use tidalite_base::{get_u16, get_u32, get_u64, put_u16, put_u32, put_u64};

/// Bytes of an encoded [`Chunk`].
pub const CHUNK_BYTES: usize = 32;

const ENCODING: usize = 0;
const WIDTH: usize = ENCODING + 1;
const EXPONENT: usize = WIDTH + 1;
const FACTOR: usize = EXPONENT + 1;
const ROWS: usize = FACTOR + 1;
const EXCEPTIONS: usize = ROWS + 2;
const PATCHES: usize = EXCEPTIONS + 2;
const PATCH_BYTES: usize = PATCHES + 2;
const FLAGS: usize = PATCH_BYTES + 1;
const LENGTH: usize = FLAGS + 1;
const BASE: usize = LENGTH + 4;
const START: usize = BASE + 8;
const _: () = assert!(START + 8 == CHUNK_BYTES);

/// Number of integers that [`Chunk::to_fields`] returns.
pub const CHUNK_FIELDS: usize = 3;

const SHORT_LENGTHS_BYTES: usize = 2;
/// Lengths, encoding and width.
const SHORT_FIXED_BYTES: usize = SHORT_LENGTHS_BYTES + 2;
/// Maximum size of a chunk in its short form, in bytes.
pub const CHUNK_SHORT_BYTES_MAX: usize = SHORT_FIXED_BYTES + 3 * 8 + 4;

/// Describes how to read a payload; see the head of `chunk.rs` and docs/format.md section 6.
///
/// A chunk read from a file is untrusted: `decode_*` checks the fields, this module does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    pub(crate) encoding: u8,
    pub(crate) width: u8,
    pub(crate) exponent: u8,
    pub(crate) factor: u8,
    pub(crate) rows: u16,
    pub(crate) exceptions: u16,
    pub(crate) patches: u16,
    pub(crate) patch_bytes: u8,
    pub(crate) flags: u8,
    pub(crate) length: u32,
    pub(crate) base: u64,
    pub(crate) start: u64,
}

impl Chunk {
    /// Values in the vector.
    #[must_use]
    #[inline]
    pub fn rows(&self) -> usize {
        usize::from(self.rows)
    }

    /// Bytes of the payload.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.length as usize
    }

    /// Whether the payload is empty: the chunk alone describes the vector.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Whether the payload is in cold form: `decode_cold` reads it with the model that the leaf stores for the
    /// column.
    #[must_use]
    #[inline]
    pub fn is_cold(&self) -> bool {
        self.encoding == COLD
    }

    /// The name of the encoding, for display.
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
            DICTIONARY => "dictionary",
            SPLIT => "split",
            LIST => "list",
            RUNS => "runs",
            COLD => "cold",
            SLOPE => "slope",
            _ => "unknown",
        }
    }

    /// Encodes the chunk into 32 bytes.
    pub fn encode(&self, bytes: &mut [u8; CHUNK_BYTES]) {
        bytes[ENCODING] = self.encoding;
        bytes[WIDTH] = self.width;
        bytes[EXPONENT] = self.exponent;
        bytes[FACTOR] = self.factor;
        put_u16(bytes, ROWS, self.rows);
        put_u16(bytes, EXCEPTIONS, self.exceptions);
        put_u16(bytes, PATCHES, self.patches);
        bytes[PATCH_BYTES] = self.patch_bytes;
        bytes[FLAGS] = self.flags;
        put_u32(bytes, LENGTH, self.length);
        put_u64(bytes, BASE, self.base);
        put_u64(bytes, START, self.start);
    }

    /// The chunk as 32 bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; CHUNK_BYTES] {
        let mut bytes = [0; CHUNK_BYTES];
        self.encode(&mut bytes);
        bytes
    }

    /// Reads 32 bytes without checks; `decode_*` validates the fields.
    #[must_use]
    pub fn decode(bytes: &[u8; CHUNK_BYTES]) -> Self {
        Self {
            encoding: bytes[ENCODING],
            width: bytes[WIDTH],
            exponent: bytes[EXPONENT],
            factor: bytes[FACTOR],
            rows: get_u16(bytes, ROWS),
            exceptions: get_u16(bytes, EXCEPTIONS),
            patches: get_u16(bytes, PATCHES),
            patch_bytes: bytes[PATCH_BYTES],
            flags: bytes[FLAGS],
            length: get_u32(bytes, LENGTH),
            base: get_u64(bytes, BASE),
            start: get_u64(bytes, START),
        }
    }

    /// Encoding and width, and the other fields except rows and length as integers, most of them small: details,
    /// base, start. `anchors` are the first and the smallest word of the rows; base or start often equals one of
    /// them.
    ///
    /// Details, from the lowest byte up: exponent, factor, flags, patches (2), patch_bytes, exceptions (2). Base and
    /// start are zigzag-encoded: base minus the first word in encoding 1 and minus the smallest in encodings 3 and
    /// 14, start minus the first word in encoding 4. If the anchors are integers of the chunk's decimal rule: base
    /// minus the smallest in encoding 5, start minus the first in encoding 6.
    #[must_use]
    pub fn to_fields(&self, anchors: Anchors) -> ([u8; 2], [u64; CHUNK_FIELDS]) {
        let details = u64::from(self.exponent)
            | u64::from(self.factor) << 8
            | u64::from(self.flags) << 16
            | u64::from(self.patches) << 24
            | u64::from(self.patch_bytes) << 40
            | u64::from(self.exceptions) << 48;
        let [base, start] = anchored(self.encoding, anchors);
        let fields = [
            details,
            zigzag(self.base.wrapping_sub(base)),
            zigzag(self.start.wrapping_sub(start)),
        ];
        ([self.encoding, self.width], fields)
    }

    /// Inverse of [`to_fields`](Self::to_fields) for a vector of `rows` rows in `len` bytes. As after `decode`, the
    /// fields are unchecked until `decode_*`.
    #[must_use]
    #[inline]
    pub fn from_fields(
        [encoding, width]: [u8; 2],
        (rows, len): (usize, usize),
        fields: &[u64; CHUNK_FIELDS],
        anchors: Anchors,
    ) -> Self {
        let [details, own_base, own_start] = *fields;
        let [base, start] = anchored(encoding, anchors);
        Self {
            encoding,
            width,
            exponent: details as u8,
            factor: (details >> 8) as u8,
            rows: rows as u16,
            exceptions: (details >> 48) as u16,
            patches: (details >> 24) as u16,
            patch_bytes: (details >> 40) as u8,
            flags: (details >> 16) as u8,
            length: len as u32,
            base: unzigzag(own_base).wrapping_add(base),
            start: unzigzag(own_start).wrapping_add(start),
        }
    }

    /// The rule that maps integers to the words as decimals, if the encoding has one.
    pub(crate) fn decimals(&self) -> Option<Alp> {
        let details = u64::from(self.exponent) | u64::from(self.factor) << 8;
        Self::decimals_of(self.encoding, details)
    }

    /// Like [`decimals`](Self::decimals), for an encoding and the details of [`to_fields`](Self::to_fields).
    #[inline]
    pub(crate) fn decimals_of(encoding: u8, details: u64) -> Option<Alp> {
        let alp = Alp {
            exponent: details as u8,
            factor: (details >> 8) as u8,
        };
        (matches!(encoding, ALP_FOR | ALP_DELTA) && alp.is_valid()).then_some(alp)
    }

    /// Appends the chunk without its number of rows in its short form:
    ///
    /// ```text
    /// | lengths u16 of 4 numbers | encoding u8 | width u8 | details, base, start (`to_fields`), bytes of payload |
    /// ```
    pub fn put_short(&self, out: &mut Vec<u8>) {
        let (rule, [details, base, start]) = self.to_fields(Anchors::words(0, 0));
        let numbers = [details, base, start, u64::from(self.length)];
        out.extend_from_slice(&short::lengths(&numbers).to_le_bytes()[..SHORT_LENGTHS_BYTES]);
        out.extend_from_slice(&rule);
        short::put(&numbers, out);
    }

    /// Reads a chunk that [`put_short`](Self::put_short) wrote for a vector of `rows` rows, at byte `at` of `bytes`.
    /// Returns the chunk and the offset of its end, or `None` if the bytes do not hold one. As after `decode`, the
    /// fields are unchecked until `decode_*`.
    #[must_use]
    pub fn get_short(bytes: &[u8], at: usize, rows: usize) -> Option<(Self, usize)> {
        let fixed = bytes.get(at..)?.first_chunk::<SHORT_FIXED_BYTES>()?;
        let lengths = u64::from(get_u16(fixed, 0));
        let rule = [fixed[SHORT_LENGTHS_BYTES], fixed[SHORT_LENGTHS_BYTES + 1]];
        let numbers_at = at + SHORT_FIXED_BYTES;
        let [details, base, start, len] = short::get(bytes, numbers_at, lengths)?;
        let of = (rows, u32::try_from(len).ok()? as usize);
        let fields = [details, base, start];
        let chunk = Self::from_fields(rule, of, &fields, Anchors::words(0, 0));
        Some((chunk, numbers_at + short::sum(lengths)))
    }

    /// Reads only the number of rows of the chunk at byte `at` of `bytes`.
    ///
    /// # Panics
    /// If the chunk does not lie inside `bytes`.
    #[must_use]
    #[inline]
    pub fn rows_at(bytes: &[u8], at: usize) -> usize {
        usize::from(get_u16(bytes, at + ROWS))
    }

    /// Reads the chunk at byte `at` of `bytes`.
    ///
    /// # Panics
    /// If the chunk does not lie inside `bytes`: the caller checks the length first.
    #[must_use]
    pub fn decode_at(bytes: &[u8], at: usize) -> Self {
        let mut field = [0; CHUNK_BYTES];
        field.copy_from_slice(&bytes[at..at + CHUNK_BYTES]);
        Self::decode(&field)
    }
}

/// The values from which base and start are counted when they are stored as integers.
#[inline]
fn anchored(encoding: u8, anchors: Anchors) -> [u64; 2] {
    let Anchors {
        first,
        least,
        decimals,
    } = anchors;
    match encoding {
        ALP_FOR if decimals => [least, 0],
        ALP_DELTA if decimals => [0, first],
        _ if decimals => [0, 0],
        CONSTANT => [first, 0],
        FOR | SLOPE => [least, 0],
        DELTA => [0, first],
        _ => [0, 0],
    }
}

/// Every row has the word `base`; the payload is empty.
pub(crate) const CONSTANT: u8 = 1;
/// The words, unencoded.
pub(crate) const RAW: u8 = 2;
/// Integers near `base` (frame of reference).
pub(crate) const FOR: u8 = 3;
/// Integers whose deltas are near `base`.
pub(crate) const DELTA: u8 = 4;
/// Floats whose decimals are near `base`.
pub(crate) const ALP_FOR: u8 = 5;
/// Floats whose decimals have deltas near `base`.
pub(crate) const ALP_DELTA: u8 = 6;
/// Floats whose ordered bits are near `base`.
pub(crate) const ORDERED_FOR: u8 = 7;
/// Floats whose ordered bits have deltas near `base`.
pub(crate) const ORDERED_DELTA: u8 = 8;
/// Indices into a list of words.
pub(crate) const DICTIONARY: u8 = 9;

/// High bits as indices into a short list, low bits unencoded.
pub(crate) const SPLIT: u8 = 10;
/// Indices into a list of words that is encoded as an inner vector.
pub(crate) const LIST: u8 = 11;
/// Run-length encoding: the words of the runs as an inner vector, and the run lengths.
pub(crate) const RUNS: u8 = 12;
/// A page of pco, whose model the leaf stores; see `cold/`.
pub(crate) const COLD: u8 = 13;
/// Integers near a line: base and packed values as in [`FOR`], plus `start` times the row number.
pub(crate) const SLOPE: u8 = 14;
/// Maximum number of bits in the high part of a split.
pub(crate) const SPLIT_HIGH_MAX: u32 = 16;

/// Flag: packed values and deltas are multiples of a unit; the payload begins with the unit.
pub(crate) const SCALED: u8 = 1;
/// Flag: all exceptions have the same word, stored once.
pub(crate) const SHARED: u8 = 2;
/// Flag: the payload begins with the map of null rows; see nulls.rs.
pub(crate) const NULLS: u8 = 4;
/// Flag: every float is rounded to an f32 after decoding; see narrow.rs.
pub(crate) const NARROW: u8 = 8;
/// Flags of decimals: the number of the correction.
pub(crate) const CORRECTION: u8 = 0xf0;

/// Added to the words that a decimal rule yields: computed numbers miss the decimal that they stand for by a few
/// units in the last place. A correction is stored as an unsigned number of `width` bits; `depth` is subtracted from
/// it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Correction {
    number: u8,
}

impl Correction {
    /// Width and depth by number: first no correction, then ever wider ones, symmetric around zero and one-sided.
    const ALL: [(u8, u8); 16] = [
        (0, 0),
        (1, 0),
        (1, 1),
        (2, 0),
        (2, 1),
        (2, 2),
        (2, 3),
        (3, 0),
        (3, 2),
        (3, 3),
        (3, 4),
        (3, 7),
        (4, 7),
        (4, 8),
        (5, 16),
        (6, 32),
    ];

    /// Every correction except number 0.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (1..Self::ALL.len() as u8).map(|number| Self { number })
    }

    pub(crate) fn of_flags(flags: u8) -> Self {
        Self { number: flags >> 4 }
    }

    pub(crate) fn flags(self) -> u8 {
        self.number << 4
    }

    /// Bits of a correction; 0 means no corrections.
    pub(crate) fn width(self) -> u32 {
        u32::from(Self::ALL[usize::from(self.number)].0)
    }

    /// Magnitude of the lowest (most negative) correction.
    pub(crate) fn depth(self) -> u64 {
        u64::from(Self::ALL[usize::from(self.number)].1)
    }
}

/// Reference values for base and start of a chunk (`Chunk::to_fields`): the first word of its rows and the smallest
/// one, or their integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchors {
    pub(crate) first: u64,
    pub(crate) least: u64,
    /// Whether the anchors are integers of the chunk's decimal rule rather than words.
    pub(crate) decimals: bool,
}

impl Anchors {
    /// Anchors given as words.
    #[must_use]
    #[inline]
    pub fn words(first: u64, least: u64) -> Self {
        Self {
            first,
            least,
            decimals: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Rng, few};

    #[test]
    fn fields_keep_every_bit() {
        let mut rng = Rng(422);
        for _ in 0..few(5000) {
            let mut bytes = [0; CHUNK_BYTES];
            for at in [0, 8, 16, 24] {
                put_u64(&mut bytes, at, rng.next() >> rng.below(64));
            }
            bytes[ENCODING] = rng.below(16) as u8;
            let chunk = Chunk::decode(&bytes);
            let anchors = Anchors {
                first: chunk.base.wrapping_add(rng.below(3)),
                least: rng.next(),
                decimals: rng.below(2) == 0,
            };
            let (rule, fields) = chunk.to_fields(anchors);
            let of = (chunk.rows(), chunk.len());
            assert_eq!(Chunk::from_fields(rule, of, &fields, anchors), chunk);
            let mut bytes = vec![1, 2, 3];
            chunk.put_short(&mut bytes);
            assert!(bytes.len() <= 3 + CHUNK_SHORT_BYTES_MAX);
            let end = bytes.len();
            assert_eq!(
                Chunk::get_short(&bytes, 3, chunk.rows()),
                Some((chunk, end))
            );
            bytes.pop();
            assert_eq!(Chunk::get_short(&bytes, 3, chunk.rows()), None);
        }
        let steps = Chunk {
            encoding: DELTA,
            start: u64::MAX,
            ..Chunk::default()
        };
        let anchors = Anchors::words(u64::MAX, 0);
        assert_eq!(steps.to_fields(anchors).1, [0; CHUNK_FIELDS]);
    }
}
