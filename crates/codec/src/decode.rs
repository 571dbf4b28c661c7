//! Payload to words. The bytes are untrusted: any input gives values or [`Corrupt`].
//!
//! 1. The length of the payload follows from the chunk; it is compared before anything is read.
//! 2. Rows of patches and exceptions ascend and lie inside the vector.
//! 3. All arithmetic on values wraps.

use crate::chunk::{self, Chunk};
use crate::float::Alp;
use crate::kernel;
use crate::narrow;
use crate::nulls::Nulls;
use crate::pack::packed_bytes;
use tidalite_base::{Corrupt, get_u64};

/// Decodes the timestamps of `chunk` from its payload; `out` has exactly `chunk.rows()` places.
///
/// # Errors
/// [`Corrupt`], with the offset inside the payload as address, when chunk and payload contradict
/// each other or the length of `out`. What `out` holds then is unspecified.
pub fn decode_times(chunk: &Chunk, bytes: &[u8], out: &mut [i64]) -> Result<(), Corrupt> {
    decode_column(chunk, bytes, kernel::words_mut(out))
}

/// Decodes the words of `chunk` from its payload; `out` has exactly `chunk.rows()` places.
///
/// # Errors
/// [`Corrupt`], with the offset inside the payload as address, when chunk and payload contradict
/// each other or the length of `out`. What `out` holds then is unspecified.
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
        chunk::FOR => unpack(parts.packed, width, base, scale, out),
        chunk::ORDERED_FOR => {
            unpack(parts.packed, width, base, scale, out);
            kernel::ordered(out);
        }
        chunk::ALP_FOR if width > 0 => {
            kernel::alp_unpack(alp, parts.packed, width, base, scale, out);
        }
        chunk::ALP_FOR => kernel::alp_ramp(alp, base, 0, out),
        chunk::ALP_DELTA if parts.is_ramp(chunk) => {
            kernel::alp_ramp(alp, chunk.start, base, out);
        }
        chunk::DICTIONARY => parts.look_up(chunk, out)?,
        // Parts::of let nothing else through.
        delta => {
            if parts.is_ramp(chunk) {
                kernel::ramp(chunk.start, base, out);
            } else {
                unpack(parts.packed, width, base, scale, out);
                parts.patch(chunk, out)?;
                kernel::prefix_sum(chunk.start, out);
            }
            match delta {
                chunk::ALP_DELTA => kernel::alp_decode(alp, out),
                chunk::ORDERED_DELTA => kernel::ordered(out),
                _ => {}
            }
        }
    }
    parts.except(chunk, out)
}

/// Vectors with nulls, and those of f32.
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
    narrow::round(out);
    Ok(())
}

/// Whether chunk and payload fit each other and the rows, without the rows of exceptions and patches.
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

/// The parts of a payload; see encode/write.rs.
struct Parts<'a> {
    scale: u64,
    dictionary: &'a [u8],
    packed: &'a [u8],
    patch_rows: &'a [u8],
    patch_steps: &'a [u8],
    exception_rows: &'a [u8],
    exception_words: &'a [u8],
    /// Where the rows lie in the payload, for the report of damage.
    patch_at: usize,
    exception_at: usize,
}

impl<'a> Parts<'a> {
    fn of(chunk: &Chunk, bytes: &'a [u8], rows: usize) -> Result<Self, Corrupt> {
        let damaged =
            |what: &str, found: &dyn core::fmt::Display, expected: &dyn core::fmt::Display| {
                Err(Corrupt::new(what, 0, found, expected))
            };
        if chunk.rows() != rows || rows == 0 || rows > tidalite_base::limits::VECTOR_ROWS {
            return damaged("chunk: rows", &chunk.rows, &rows);
        }
        let encoding = chunk.encoding;
        if !(chunk::CONSTANT..=chunk::DICTIONARY).contains(&encoding) {
            return damaged("chunk: encoding", &encoding, &"1 to 9");
        }
        let delta = matches!(
            encoding,
            chunk::DELTA | chunk::ALP_DELTA | chunk::ORDERED_DELTA
        );
        let alp = matches!(encoding, chunk::ALP_FOR | chunk::ALP_DELTA);
        let is_dictionary = encoding == chunk::DICTIONARY;
        let plain = matches!(encoding, chunk::CONSTANT | chunk::RAW);
        let width_max = if plain { 0 } else { 64 };
        if chunk.width > width_max {
            return damaged("chunk: width", &chunk.width, &width_max);
        }
        let rule = Alp {
            exponent: chunk.exponent,
            factor: chunk.factor,
        };
        if !(if alp {
            rule.is_valid()
        } else {
            rule == Alp::default()
        }) {
            let found = format!("{}, {}", rule.exponent, rule.factor);
            return damaged("chunk: decimals", &found, &"a rule of the table");
        }
        let exceptions = usize::from(chunk.exceptions);
        let patches = usize::from(chunk.patches);
        let exceptions_max = if plain || is_dictionary { 0 } else { rows };
        if exceptions > exceptions_max {
            return damaged("chunk: exceptions", &exceptions, &exceptions_max);
        }
        let patches_max = if delta || is_dictionary { rows } else { 0 };
        if patches > patches_max || (is_dictionary && patches == 0) {
            return damaged("chunk: patches", &patches, &patches_max);
        }
        let with_steps = delta && patches > 0;
        if chunk.patch_bytes > 8 || (chunk.patch_bytes > 0) != with_steps {
            return damaged("chunk: patch bytes", &chunk.patch_bytes, &"0 to 8");
        }
        let mut flags = chunk::SHARED * u8::from(exceptions > 1);
        flags |= chunk::SCALED * u8::from(!plain && !is_dictionary && chunk.width > 0);
        if chunk.flags & !flags != 0 {
            return damaged("chunk: flags", &chunk.flags, &flags);
        }
        let scaled = chunk.flags & chunk::SCALED != 0;
        let shared = chunk.flags & chunk::SHARED != 0;
        // Each below 2^20: no sum overflows.
        let packed = match encoding {
            chunk::RAW => 8 * rows,
            _ => packed_bytes(rows, u32::from(chunk.width)),
        };
        let lengths = [
            8 * usize::from(scaled),
            8 * if is_dictionary { patches } else { 0 },
            packed,
            2 * if delta { patches } else { 0 },
            usize::from(chunk.patch_bytes) * patches,
            2 * exceptions,
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
            dictionary,
            packed,
            patch_rows,
            patch_steps,
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
            dictionary,
            packed,
            patch_rows,
            patch_steps,
            exception_rows,
            exception_words: words,
            patch_at: exception_at - patch_steps.len() - patch_rows.len(),
            exception_at,
        })
    }

    /// Whether all steps are `base`.
    fn is_ramp(&self, chunk: &Chunk) -> bool {
        chunk.width == 0 && chunk.patches == 0
    }

    fn look_up(&self, chunk: &Chunk, out: &mut [u64]) -> Result<(), Corrupt> {
        let (entries, _) = self.dictionary.as_chunks::<8>();
        unpack(self.packed, u32::from(chunk.width), 0, 1, out);
        for place in out {
            let Some(entry) = usize::try_from(*place).ok().and_then(|i| entries.get(i)) else {
                let at = self.dictionary.len() as u64;
                let expected = format!("below {}", entries.len());
                return Err(Corrupt::new("payload: code", at, *place, expected));
            };
            *place = u64::from_le_bytes(*entry);
        }
        Ok(())
    }

    /// Puts the steps that are stored whole among the others.
    fn patch(&self, chunk: &Chunk, out: &mut [u64]) -> Result<(), Corrupt> {
        let rows = rows(self.patch_rows, self.patch_at, out.len())?;
        let size = usize::from(chunk.patch_bytes).max(1);
        for (row, bytes) in rows.iter().zip(self.patch_steps.chunks_exact(size)) {
            let mut step = [0; 8];
            step[..size].copy_from_slice(bytes);
            let step = u64::from_le_bytes(step);
            let units = (step >> 1) ^ 0u64.wrapping_sub(step & 1);
            out[usize::from(u16::from_le_bytes(*row))] =
                chunk.base.wrapping_add(units.wrapping_mul(self.scale));
        }
        Ok(())
    }

    /// Puts the words that are stored whole among the others.
    fn except(&self, chunk: &Chunk, out: &mut [u64]) -> Result<(), Corrupt> {
        if chunk.exceptions == 0 {
            return Ok(());
        }
        let rows = rows(self.exception_rows, self.exception_at, out.len())?;
        let (words, _) = self.exception_words.as_chunks::<8>();
        let first = words.iter().take(1).cycle();
        let shared = chunk.flags & chunk::SHARED != 0;
        let mut put = |row: &[u8; 2], word: &[u8; 8]| {
            out[usize::from(u16::from_le_bytes(*row))] = u64::from_le_bytes(*word);
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

/// Row numbers: ascending, and below `end`. `at`: where they lie in the payload.
fn rows(bytes: &[u8], at: usize, end: usize) -> Result<&[[u8; 2]], Corrupt> {
    let (fields, _) = bytes.as_chunks::<2>();
    let mut next = 0;
    for (i, field) in fields.iter().enumerate() {
        let row = usize::from(u16::from_le_bytes(*field));
        if row < next || row >= end {
            let at = (at + 2 * i) as u64;
            let expected = format!("{next} to {}", end - 1);
            return Err(Corrupt::new("payload: row", at, row, expected));
        }
        next = row + 1;
    }
    Ok(fields)
}
