//! Decodes payloads to words. The bytes are untrusted: any bytes give values or the error [`Corrupt`].
//!
//! 1. The length of the payload follows from the chunk; it is checked before anything is read.
//! 2. The row numbers of patches (outliers) and exceptions (words stored unencoded) ascend and lie inside the vector.
//! 3. All arithmetic on values wraps.

pub(crate) mod line;
pub(crate) mod point;

use crate::chunk::{self, Chunk, Correction};
use crate::kernel;
use crate::loops::float::Alp;
use crate::loops::pack::{self, Packed, lanes, packed_bytes, units_bytes};
use crate::loops::scan;
use crate::narrow;
use crate::nulls::Nulls;
use crate::places;
use crate::short::unzigzag;
use tidalite_base::limits::VECTOR_ROWS;
use tidalite_base::{Corrupt, get_u64};

/// Decodes the timestamps that `chunk` describes from their payload; `out` must have exactly `chunk.rows()` elements.
///
/// # Errors
/// [`Corrupt`], with the offset inside the payload as address, if chunk and payload contradict each other or the
/// length of `out`. The contents of `out` are then unspecified.
pub fn decode_times(chunk: &Chunk, bytes: &[u8], out: &mut [i64]) -> Result<(), Corrupt> {
    decode_column(chunk, bytes, kernel::words_mut(out))
}

/// Decodes the words that `chunk` describes from their payload; `out` must have exactly `chunk.rows()` elements.
///
/// # Errors
/// [`Corrupt`], with the offset inside the payload as address, if chunk and payload contradict each other or the
/// length of `out`. The contents of `out` are then unspecified.
pub fn decode_column(chunk: &Chunk, bytes: &[u8], out: &mut [u64]) -> Result<(), Corrupt> {
    if chunk.flags & (chunk::NULLS | chunk::NARROW) != 0 {
        return decode_wrapped(chunk, bytes, out);
    }
    let parts = Parts::of(chunk, bytes, out.len())?;
    let (width, base, scale) = (u32::from(chunk.width), chunk.base, parts.scale);
    let alp = Alp {
        exponent: chunk.exponent,
        factor: chunk.factor,
    };
    match chunk.encoding {
        chunk::CONSTANT => kernel::ramp(base, 0, out),
        chunk::RAW => {
            let (words, _) = bytes.as_chunks::<8>();
            for (place, word) in out.iter_mut().zip(words) {
                *place = u64::from_le_bytes(*word);
            }
        }
        chunk::FOR => {
            unpack(parts.packed, width, base, scale, out);
            parts.patch(chunk, |_| {}, out)?;
        }
        chunk::SLOPE => {
            unpack(parts.packed, width, base, scale, out);
            parts.patch(chunk, |_| {}, out)?;
            kernel::incline(chunk.start, out);
        }
        chunk::ORDERED_FOR => {
            let finish = |words: &mut [u64]| kernel::unordered(words, u32::from(chunk.exponent));
            unpack(parts.packed, width, base, scale, out);
            finish(out);
            parts.patch(chunk, finish, out)?;
        }
        chunk::SPLIT => parts.join(chunk, out)?,
        chunk::LIST => parts.look_up(chunk, out)?,
        chunk::RUNS => parts.repeat(chunk, out)?,
        chunk::ALP_FOR => {
            if width == 0 {
                kernel::alp_ramp(alp, base, 0, out);
            } else {
                kernel::alp_unpack(alp, parts.packed(chunk), out);
            }
            parts.patch(chunk, |words| kernel::alp_decode(alp, words), out)?;
        }
        chunk::ALP_DELTA if parts.is_ramp(chunk) => {
            kernel::alp_ramp(alp, chunk.start, base, out);
        }
        // Only the encodings by deltas are left: `Parts::of` has rejected all other codes.
        delta => {
            let start = chunk.start;
            if parts.is_ramp(chunk) {
                kernel::ramp(start, base, out);
            } else if width > 0 && parts.patch_rows.is_empty() {
                let steps = parts.packed(chunk);
                if delta == chunk::ALP_DELTA {
                    kernel::alp_unpack_sums(alp, steps, start, out);
                } else {
                    kernel::unpack_sums(steps, start, out);
                }
            } else {
                unpack(parts.packed, width, base, scale, out);
                parts.patch(chunk, |_| {}, out)?;
                if delta == chunk::ALP_DELTA {
                    kernel::alp_sums(alp, start, out);
                } else {
                    kernel::prefix_sum(start, out);
                }
            }
            if delta == chunk::ORDERED_DELTA {
                kernel::unordered(out, u32::from(chunk.exponent));
            }
        }
    }
    if !parts.corrections.is_empty() {
        kernel::unpack_onto(parts.corrections(chunk), out);
    }
    parts.except(chunk, out)
}

/// Decodes vectors with nulls, and vectors of floats that came from f32.
#[inline(never)]
fn decode_wrapped(chunk: &Chunk, bytes: &[u8], out: &mut [u64]) -> Result<(), Corrupt> {
    if chunk.flags & chunk::NULLS != 0 {
        if chunk.rows() != out.len() {
            return Err(Corrupt::new("chunk: rows", 0, chunk.rows(), out.len()));
        }
        let (nulls, chunk, bytes) = Nulls::split(chunk, bytes)?;
        decode_column(&chunk, bytes, out)?;
        return nulls.put(out);
    }
    if chunk.encoding == chunk::RAW {
        return narrow::read_raw(chunk, bytes, out);
    }
    let flags = chunk.flags & !chunk::NARROW;
    decode_column(&Chunk { flags, ..*chunk }, bytes, out)?;
    kernel::round_to_single(out);
    Ok(())
}

/// Checks that chunk and payload are consistent with each other and with `rows`. Does not check the row numbers of
/// exceptions and patches.
pub(crate) fn check(chunk: &Chunk, bytes: &[u8], rows: usize) -> Result<(), Corrupt> {
    if chunk.flags & chunk::NULLS != 0 {
        if chunk.rows() != rows {
            return Err(Corrupt::new("chunk: rows", 0, chunk.rows(), rows));
        }
        let (_, chunk, bytes) = Nulls::split(chunk, bytes)?;
        return check(&chunk, bytes, rows);
    }
    if chunk.flags & chunk::NARROW != 0 {
        if chunk.encoding == chunk::RAW {
            return narrow::check_raw(chunk, bytes, rows);
        }
        let flags = chunk.flags & !chunk::NARROW;
        return check(&Chunk { flags, ..*chunk }, bytes, rows);
    }
    Parts::of(chunk, bytes, rows).map(|_| ())
}

fn unpack(bytes: &[u8], width: u32, base: u64, scale: u64, out: &mut [u64]) {
    if width == 0 {
        kernel::ramp(base, 0, out);
    } else {
        kernel::unpack(bytes, width, base, scale, out);
    }
}

/// Maximum number of patches (outliers) that are decoded in a small buffer: zeroing a large one takes longer than
/// decoding a few patches.
const PATCHES_FEW: usize = 31;

/// The parts of a payload; encode/write.rs lists them in order.
pub(crate) struct Parts<'a> {
    scale: u64,
    /// The entries of a list, or the description and payload of an inner vector.
    pub(crate) entries: &'a [u8],
    pub(crate) packed: &'a [u8],
    /// Small numbers to be added to decimals; empty unless the vector is encoded as decimals.
    pub(crate) corrections: &'a [u8],
    /// The low bits of each word; empty unless words are split in high and low bits.
    low_bits: &'a [u8],
    patch_rows: &'a [u8],
    patch_units: &'a [u8],
    exception_rows: &'a [u8],
    pub(crate) exception_words: &'a [u8],
    /// Offset in the payload of the row numbers of patches, and below, of exceptions; used in error reports.
    patch_at: usize,
    exception_at: usize,
}

impl<'a> Parts<'a> {
    pub(crate) fn of(chunk: &Chunk, bytes: &'a [u8], rows: usize) -> Result<Self, Corrupt> {
        let damaged =
            |what: &str, found: &dyn core::fmt::Display, expected: &dyn core::fmt::Display| {
                Err(Corrupt::new(what, 0, found, expected))
            };
        if chunk.rows() != rows || rows == 0 || rows > VECTOR_ROWS {
            return damaged("chunk: rows", &chunk.rows, &rows);
        }
        let encoding = chunk.encoding;
        if !matches!(encoding, chunk::CONSTANT..=chunk::SLOPE) {
            return damaged("chunk: encoding", &encoding, &"1 to 12");
        }
        let alp = matches!(encoding, chunk::ALP_FOR | chunk::ALP_DELTA);
        let is_split = encoding == chunk::SPLIT;
        let is_nested = matches!(encoding, chunk::LIST | chunk::RUNS);
        let has_entries = is_split || is_nested;
        let plain = matches!(encoding, chunk::CONSTANT | chunk::RAW);
        let width_max = if plain { 0 } else { 64 };
        if chunk.width > width_max {
            return damaged("chunk: width", &chunk.width, &width_max);
        }
        let rule = Alp {
            exponent: chunk.exponent,
            factor: chunk.factor,
        };
        let rule_is_valid = match encoding {
            _ if alp => rule.is_valid(),
            chunk::ORDERED_FOR | chunk::ORDERED_DELTA => rule.exponent < 64 && rule.factor == 0,
            // The list holds the high parts of words, with 1 to 16 bits each: the bits above the low bits and the
            // trailing zeros.
            chunk::SPLIT => {
                let below = u32::from(rule.exponent) + u32::from(rule.factor);
                (64 - chunk::SPLIT_HIGH_MAX..64).contains(&below)
            }
            _ => rule == Alp::default(),
        };
        if !rule_is_valid {
            let found = format!("{}, {}", rule.exponent, rule.factor);
            return damaged("chunk: decimals", &found, &"a rule of the table");
        }
        let exceptions = usize::from(chunk.exceptions);
        let patches = usize::from(chunk.patches);
        let without = plain || is_nested;
        let exceptions_max = if without { 0 } else { rows };
        if exceptions > exceptions_max {
            return damaged("chunk: exceptions", &exceptions, &exceptions_max);
        }
        let patches_max = if plain { 0 } else { rows };
        if patches > patches_max || (has_entries && patches == 0) {
            return damaged("chunk: patches", &patches, &patches_max);
        }
        let with_steps = !has_entries && patches > 0;
        let patch_width = u32::from(chunk.patch_width & !chunk::UNSIGNED);
        if patch_width > 64
            || (patch_width > 0) != with_steps
            || (chunk.patch_width > 0) != with_steps
        {
            return damaged("chunk: bits of patches", &chunk.patch_width, &"0 to 64");
        }
        let mut flags = chunk::SHARED * u8::from(exceptions > 1);
        flags |= chunk::SCALED * u8::from(!plain && !has_entries && chunk.width > 0);
        if chunk.flags & !flags != 0 {
            return damaged("chunk: flags", &chunk.flags, &flags);
        }
        let correction = chunk.correction;
        if !correction.is_valid() || (!alp && correction != Correction::default()) {
            let found = format!("{} less {}", correction.width, correction.depth);
            return damaged("chunk: correction", &found, &"up to 8 bits, of decimals");
        }
        let scaled = chunk.flags & chunk::SCALED != 0;
        let shared = chunk.flags & chunk::SHARED != 0;
        // Each term is below 2^33, so the sum of the lengths does not overflow.
        let packed = match encoding {
            chunk::RAW => 8 * rows,
            chunk::RUNS => packed_bytes(patches, u32::from(chunk.width)),
            _ => packed_bytes(rows, u32::from(chunk.width)),
        };
        let lengths = [
            8 * usize::from(scaled),
            match encoding {
                chunk::SPLIT => 2 * patches,
                // Description and payload of the inner vector take those bytes of the payload that the packed values
                // leave.
                chunk::LIST | chunk::RUNS => bytes.len().saturating_sub(packed),
                _ => 0,
            },
            packed,
            packed_bytes(rows, u32::from(correction.width)),
            packed_bytes(rows, if is_split { u32::from(chunk.factor) } else { 0 }),
            if has_entries {
                0
            } else {
                places::bytes(rows, patches)
            },
            units_bytes(if has_entries { 0 } else { patches }, patch_width),
            places::bytes(rows, exceptions),
            8 * if shared { 1 } else { exceptions },
        ];
        let length: usize = lengths.iter().sum();
        if chunk.len() != length {
            return damaged("chunk: length", &chunk.len(), &length);
        }
        if bytes.len() != length {
            return damaged("payload: length", &bytes.len(), &length);
        }
        let mut rest = bytes;
        let [
            scale,
            entries,
            packed,
            corrections,
            low_bits,
            patch_rows,
            patch_units,
            exception_rows,
            words,
        ] = lengths.map(|length| {
            let (part, behind) = rest.split_at(length);
            rest = behind;
            part
        });
        let scale = if scaled { get_u64(scale, 0) } else { 1 };
        let exception_at = length - words.len() - exception_rows.len();
        Ok(Self {
            scale,
            entries,
            packed,
            corrections,
            low_bits,
            patch_rows,
            patch_units,
            exception_rows,
            exception_words: words,
            patch_at: exception_at - patch_units.len() - patch_rows.len(),
            exception_at,
        })
    }

    pub(crate) fn packed(&self, chunk: &Chunk) -> Packed<'a> {
        Packed {
            bytes: self.packed,
            width: u32::from(chunk.width),
            base: chunk.base,
            scale: self.scale,
        }
    }

    /// The packed corrections, which are added to the words of decimals.
    pub(crate) fn corrections(&self, chunk: &Chunk) -> Packed<'a> {
        let Correction { width, depth } = chunk.correction;
        Packed {
            bytes: self.corrections,
            width: u32::from(width),
            base: 0u64.wrapping_sub(u64::from(depth)),
            scale: 1,
        }
    }

    /// True if all deltas of the vector equal `base`.
    fn is_ramp(&self, chunk: &Chunk) -> bool {
        chunk.width == 0 && chunk.patches == 0
    }

    /// Replaces each packed index by a word of a table. `fill` writes the words of the table, `chunk.patches` of them.
    #[inline]
    fn replace(
        &self,
        chunk: &Chunk,
        out: &mut [u64],
        fill: impl FnOnce(&mut [u64]) -> Result<(), Corrupt>,
    ) -> Result<(), Corrupt> {
        /// Maximum number of words in a table that is kept on the stack: zeroing so few takes almost no time.
        const FEW: usize = 256;
        let entries = usize::from(chunk.patches);
        unpack(self.packed, u32::from(chunk.width), 0, 1, out);
        let greatest = kernel::greatest(out);
        if greatest >= entries as u64 {
            let at = self.entries.len() as u64;
            let expected = format!("below {}", chunk.patches);
            return Err(Corrupt::new("payload: code", at, greatest, expected));
        }
        if entries <= FEW {
            let mut table = [0; FEW];
            fill(&mut table[..entries])?;
            scan::look_up(&table, out);
        } else {
            let mut table = [0; VECTOR_ROWS];
            fill(&mut table[..entries])?;
            scan::look_up(&table, out);
        }
        Ok(())
    }

    /// The chunk and the payload of the inner vector.
    pub(crate) fn inner(&self, chunk: &Chunk) -> Result<(Chunk, &'a [u8]), Corrupt> {
        let (bytes, rows) = (self.entries, usize::from(chunk.patches));
        let inner = Chunk::get(bytes, 0, (rows, 0))
            .and_then(|(_, end)| Chunk::get(bytes, 0, (rows, bytes.len() - end)));
        let Some((inner, payload_at)) = inner else {
            let expected = "the description of the vector inside";
            return Err(Corrupt::new("payload", 0, bytes.len(), expected));
        };
        if inner.flags & (chunk::NULLS | chunk::NARROW) != 0 {
            let what = "payload: flags inside";
            return Err(Corrupt::new(
                what,
                0,
                inner.flags,
                "neither nulls nor narrow",
            ));
        }
        // The code of an inner encoding must be below the code of the outer encoding, which bounds the nesting depth.
        if inner.encoding >= chunk.encoding {
            let expected = format!("below {}", chunk.encoding);
            let what = "payload: encoding inside";
            return Err(Corrupt::new(what, 0, inner.encoding, expected));
        }
        Ok((inner, &bytes[payload_at..]))
    }

    /// Decodes the inner vector into `out`.
    fn inside(&self, chunk: &Chunk, out: &mut [u64]) -> Result<(), Corrupt> {
        let (inner, payload) = self.inner(chunk)?;
        decode_column(&inner, payload, out)
    }

    #[inline(never)]
    fn look_up(&self, chunk: &Chunk, out: &mut [u64]) -> Result<(), Corrupt> {
        self.replace(chunk, out, |table| self.inside(chunk, table))
    }

    /// Decodes run lengths: repeats each word of the inner vector as often as its run is long.
    #[inline(never)]
    fn repeat(&self, chunk: &Chunk, out: &mut [u64]) -> Result<(), Corrupt> {
        let count = usize::from(chunk.patches);
        let (mut words, mut lengths) = ([0; VECTOR_ROWS], [0; VECTOR_ROWS]);
        let (words, lengths) = (&mut words[..count], &mut lengths[..count]);
        self.inside(chunk, words)?;
        unpack(self.packed, u32::from(chunk.width), chunk.base, 1, lengths);
        if kernel::repeat(words, lengths, out) {
            return Ok(());
        }
        let sum: u128 = lengths.iter().map(|&length| u128::from(length)).sum();
        let found = format!("{sum} in {count} runs");
        let at = self.entries.len() as u64;
        Err(Corrupt::new("payload: rows of runs", at, found, chunk.rows))
    }

    /// Decodes split words: joins the high bits from the list, the low bits, and the trailing zeros.
    #[inline(never)]
    fn join(&self, chunk: &Chunk, out: &mut [u64]) -> Result<(), Corrupt> {
        let (entries, _) = self.entries.as_chunks::<2>();
        self.replace(chunk, out, |table| {
            for (high, entry) in table.iter_mut().zip(entries) {
                *high = u64::from(u16::from_le_bytes(*entry));
            }
            Ok(())
        })?;
        let (width, zeros) = (u32::from(chunk.factor), u32::from(chunk.exponent));
        if width == 0 {
            out.iter_mut().for_each(|word| *word <<= zeros);
        } else {
            kernel::join(self.low_bits, width, zeros, out);
        }
        Ok(())
    }

    /// The row numbers of the patches (outliers), checked to ascend and to lie below `end`. `buffer` needs room for
    /// them.
    pub(crate) fn patch_rows<'b>(
        &self,
        chunk: &Chunk,
        end: usize,
        buffer: &'b mut [u16],
    ) -> Result<&'b [u16], Corrupt> {
        let count = usize::from(chunk.patches);
        let rows = places::get(self.patch_rows, end, count, buffer);
        rows.ok_or_else(|| wrong_rows(self.patch_at, count, end))
    }

    /// The row numbers of the exceptions (words stored unencoded), checked to ascend and to lie below `end`. `buffer`
    /// needs room for them.
    pub(crate) fn exception_rows<'b>(
        &self,
        chunk: &Chunk,
        end: usize,
        buffer: &'b mut [u16],
    ) -> Result<&'b [u16], Corrupt> {
        let count = usize::from(chunk.exceptions);
        let rows = places::get(self.exception_rows, end, count, buffer);
        rows.ok_or_else(|| wrong_rows(self.exception_at, count, end))
    }

    /// The value or delta that the patch at index `at` stores.
    pub(crate) fn patched(&self, chunk: &Chunk, at: usize) -> u64 {
        let (count, width) = (usize::from(chunk.patches), patch_width(chunk));
        let units = if lanes(count) == 1 {
            // The bits of a patch lie in at most nine bytes.
            let bit = at * width as usize;
            let bytes = self.patch_units.get(bit / 8..).unwrap_or_default();
            let load = bytes.iter().take(9).rev();
            let load = load.fold(0, |all, &byte| all << 8 | u128::from(byte));
            (load >> (bit % 8)) as u64 & u64::MAX >> (64 - width)
        } else {
            let packed = Packed {
                bytes: self.patch_units,
                width,
                base: 0,
                scale: 1,
            };
            packed.at(at, count)
        };
        let units = if chunk.patch_width & chunk::UNSIGNED != 0 {
            units
        } else {
            unzigzag(units)
        };
        chunk.base.wrapping_add(units.wrapping_mul(self.scale))
    }

    /// Decodes the values or deltas of all patches.
    ///
    /// `lane` has eight bytes for each patch of a single lane, and [`pack::LANE_BEHIND`] more.
    pub(crate) fn patched_all(&self, chunk: &Chunk, lane: &mut [u8], words: &mut [u64]) {
        let (bytes, width) = (self.patch_units, patch_width(chunk));
        let unsigned = chunk.patch_width & chunk::UNSIGNED != 0;
        let (base, scale) = if unsigned {
            (chunk.base, self.scale)
        } else {
            (0, 1)
        };
        if lanes(words.len()) == 1 {
            // Packed values have whole words; of a single lane only the bytes that are needed are stored.
            lane[..bytes.len()].copy_from_slice(bytes);
            kernel::unpack_lane(lane, width, base, scale, words);
        } else {
            kernel::unpack(bytes, width, base, scale, words);
        }
        if !unsigned {
            kernel::from_distances(chunk.base, self.scale, words);
        }
    }

    /// Writes the patched values or deltas into `out`. `finish` converts them to the form that the other elements of
    /// `out` already have.
    #[inline]
    fn patch(
        &self,
        chunk: &Chunk,
        finish: impl Fn(&mut [u64]),
        out: &mut [u64],
    ) -> Result<(), Corrupt> {
        match usize::from(chunk.patches) {
            0 => Ok(()),
            1..=PATCHES_FEW => self.patch_rows_with::<{ PATCHES_FEW + 1 }>(chunk, finish, out),
            count if places::is_bitmap(out.len(), count) => self.patch_bitmap(chunk, finish, out),
            _ => self.patch_rows_with::<{ places::PARTS_MAX }>(chunk, finish, out),
        }
    }

    /// Decodes fewer than `MAX` patches, and writes each to its row.
    #[inline(never)]
    fn patch_rows_with<const MAX: usize>(
        &self,
        chunk: &Chunk,
        finish: impl Fn(&mut [u64]),
        out: &mut [u64],
    ) -> Result<(), Corrupt> {
        let (mut rows, mut words, mut lane) = ([0; MAX], [0; MAX], [[0; 8]; MAX]);
        let rows = self.patch_rows(chunk, out.len(), &mut rows)?;
        let words = &mut words[..rows.len()];
        self.patched_all(chunk, lane.as_flattened_mut(), words);
        finish(words);
        for (&row, &word) in rows.iter().zip(&*words) {
            out[usize::from(row)] = word;
        }
        Ok(())
    }

    /// Decodes patches whose rows are stored as a bitmap.
    #[inline(never)]
    fn patch_bitmap(
        &self,
        chunk: &Chunk,
        finish: impl Fn(&mut [u64]),
        out: &mut [u64],
    ) -> Result<(), Corrupt> {
        let count = usize::from(chunk.patches);
        if !places::is_complete(self.patch_rows, out.len(), count) {
            return Err(wrong_rows(self.patch_at, count, out.len()));
        }
        let mut words = [0; VECTOR_ROWS + scan::EXPAND_BEHIND];
        let mut lane = [0; 8 * pack::LANE_MAX + pack::LANE_BEHIND];
        self.patched_all(chunk, &mut lane, &mut words[..count]);
        finish(&mut words[..count]);
        let words = &words[..count + scan::EXPAND_BEHIND];
        kernel::expand(self.patch_rows, words, out);
        Ok(())
    }

    /// Writes the words of the exceptions to their rows in `out`.
    fn except(&self, chunk: &Chunk, out: &mut [u64]) -> Result<(), Corrupt> {
        if chunk.exceptions == 0 {
            return Ok(());
        }
        let mut buffer = [0; VECTOR_ROWS];
        let rows = self.exception_rows(chunk, out.len(), &mut buffer)?;
        let (words, _) = self.exception_words.as_chunks::<8>();
        let first = words.iter().take(1).cycle();
        let shared = chunk.flags & chunk::SHARED != 0;
        let mut put = |row: &u16, word: &[u8; 8]| {
            out[usize::from(*row)] = u64::from_le_bytes(*word);
        };
        if shared {
            rows.iter()
                .zip(first)
                .for_each(|(row, word)| put(row, word));
        } else {
            rows.iter()
                .zip(words)
                .for_each(|(row, word)| put(row, word));
        }
        Ok(())
    }
}

/// Number of bits of a patch.
fn patch_width(chunk: &Chunk) -> u32 {
    u32::from(chunk.patch_width & !chunk::UNSIGNED).clamp(1, 64)
}

#[cold]
fn wrong_rows(at: usize, count: usize, end: usize) -> Corrupt {
    let expected = format!("{count} ascending rows below {end}");
    Corrupt::new("payload: rows", at as u64, "others", expected)
}
