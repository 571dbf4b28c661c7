//! Decodes columns (section 6 of docs/format.md). A vector of words is stored as a chunk, which describes the encoding,
//! and a payload.

use crate::bytes::{Fields, index, little, unzigzag};
use crate::error::{Error, Result};

/// Maximum number of rows of a vector.
pub const VECTOR_ROWS_MAX: usize = 1024;

/// The code of the encoding of vectors that are pages of the compressor Pco.
pub const COLD_ENCODING: u8 = 13;

/// Flags of a chunk.
const SCALED: u8 = 1;
const SHARED: u8 = 2;
const NULLS: u8 = 4;
const NARROW: u8 = 8;

/// The value of the field factor for decimals that are divided.
const DIVIDE: u8 = 255;

/// Bit of the field of the bits of a patch: no patch has a sign.
const UNSIGNED: usize = 128;

/// Numbers of the types of words.
pub mod words {
    /// The word holds the bits of an f64.
    pub const F64: u8 = 1;
    /// The word holds a signed number in two's complement.
    pub const I64: u8 = 2;
    /// The word holds an unsigned number.
    pub const U64: u8 = 3;
    /// The word holds the bits of an f64 that was widened from an f32.
    pub const F32: u8 = 4;
    /// Number that is added to the number of a type if the column may contain nulls.
    pub const WITH_NULLS: u8 = 16;

    /// True if there is a type of words with this number.
    #[must_use]
    pub fn exists(kind: u8) -> bool {
        matches!(kind, F64..=F32 | 17..=20)
    }

    /// True if words of this type are bits of floats.
    #[must_use]
    pub fn is_float(kind: u8) -> bool {
        matches!(kind & !WITH_NULLS, F64 | F32)
    }

    /// The word that stands for null; `None` for a type without nulls.
    #[must_use]
    pub fn null(kind: u8) -> Option<u64> {
        match kind {
            17 | 20 => Some(0x7ff8_0000_6e75_6c6c),
            18 => Some(1 << 63),
            19 => Some(u64::MAX),
            _ => None,
        }
    }

    /// The word that rows have which were written before the column was added.
    #[must_use]
    pub fn fill(kind: u8) -> u64 {
        null(kind).unwrap_or(0)
    }
}

/// Function that decodes a page of Pco with the given number of rows.
pub type PageDecoder<'a> = dyn Fn(&[u8], usize) -> Result<Vec<u64>> + 'a;

/// The description of an encoded vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Code of the encoding, 1 to 13.
    pub encoding: u8,
    width: usize,
    exponent: u8,
    factor: u8,
    flags: u8,
    correction_bits: usize,
    correction_base: u64,
    patches: usize,
    exceptions: usize,
    patch_bits: usize,
    patches_have_signs: bool,
    base: u64,
    start: u64,
}

impl Chunk {
    /// Reads a chunk: encoding, width and four short numbers.
    ///
    /// # Errors
    /// If the fields break a rule of the encoding.
    pub fn read(fields: &mut Fields<'_>) -> Result<Self> {
        let encoding = fields.u8()?;
        let width = usize::from(fields.u8()?);
        let [rule, outliers, base, start] = fields.short_numbers::<4>()?;
        let rule = rule.to_le_bytes();
        let patch_bits = index(outliers >> 32 & 255);
        fields.require(rule[5..] == [0; 3], "reserved bytes of a rule")?;
        fields.require(outliers >> 40 == 0, "reserved bytes of outliers")?;
        let chunk = Self {
            encoding,
            width,
            exponent: rule[0],
            factor: rule[1],
            flags: rule[2],
            correction_bits: usize::from(rule[3]),
            correction_base: u64::from(rule[4]),
            patches: index(outliers & 0xffff),
            exceptions: index(outliers >> 16 & 0xffff),
            patch_bits: patch_bits & !UNSIGNED,
            patches_have_signs: patch_bits & UNSIGNED == 0,
            base: unzigzag(base),
            start: unzigzag(start),
        };
        match chunk.broken_rule() {
            None => Ok(chunk),
            Some(rule) => Err(fields.damaged(rule)),
        }
    }

    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    fn broken_rule(&self) -> Option<&'static str> {
        let plain = self.width == 0 && self.patches == 0 && self.exceptions == 0;
        let low = usize::from(self.exponent) + usize::from(self.factor);
        let rules = [
            (
                (1..=COLD_ENCODING).contains(&self.encoding) && self.width <= 64,
                "encoding and width",
            ),
            (self.flags <= 15, "flags of a chunk"),
            (
                !matches!(self.encoding, 1 | 2) || plain,
                "a chunk with more than its encoding has",
            ),
            (
                !matches!(self.encoding, 9..=11)
                    || (self.patches > 0 && !self.has(SCALED) && self.patch_bits == 0),
                "entries of a chunk",
            ),
            (
                !matches!(self.encoding, 10 | 11) || self.exceptions == 0,
                "exceptions of a list or of runs",
            ),
            (
                !matches!(self.encoding, 1 | 2 | 10 | 11) || !self.has(SCALED | SHARED),
                "flags of a chunk",
            ),
            (!self.has(SCALED) || self.width > 0, "a scale of nothing"),
            (
                !self.has(SHARED) || self.exceptions > 1,
                "a shared word of fewer than two exceptions",
            ),
            (
                self.patch_bits <= 64 && (self.patch_bits > 0 || self.patches_have_signs),
                "bits of a patch",
            ),
            (
                !matches!(self.encoding, 3..=8 | 12) || (self.patch_bits > 0) == (self.patches > 0),
                "bits of a patch",
            ),
            (
                self.correction_bits <= 8 && self.correction_base >> self.correction_bits == 0,
                "corrections of a chunk",
            ),
            (
                self.correction_bits == 0 || matches!(self.encoding, 5 | 6),
                "corrections of another encoding",
            ),
            (
                self.encoding != 9 || (48..=63).contains(&low),
                "low bits of a chunk",
            ),
            (
                !matches!(self.encoding, 7 | 8) || self.exponent <= 63,
                "zeros of a chunk",
            ),
            (
                !matches!(self.encoding, 5 | 6)
                    || (self.exponent <= 18 && (self.factor <= 18 || self.factor == DIVIDE)),
                "the rule of decimals",
            ),
        ];
        rules
            .iter()
            .find(|(holds, _)| !holds)
            .map(|(_, rule)| *rule)
    }

    /// Decodes a vector of `count` words. `cold` decodes pages of Pco (encoding 13).
    ///
    /// # Errors
    /// If the payload does not match the description in the chunk.
    pub fn decode(
        &self,
        payload: &[u8],
        count: usize,
        address: u64,
        cold: &PageDecoder<'_>,
    ) -> Result<Vec<u64>> {
        let mut fields = Fields::new(payload, address);
        fields.require(
            (1..=VECTOR_ROWS_MAX).contains(&count),
            "the rows of a vector",
        )?;
        let nulls = if self.has(NULLS) {
            Some(read_nulls(&mut fields, count)?)
        } else {
            None
        };
        let mut words = if self.encoding == COLD_ENCODING {
            cold(fields.rest(), count)?
        } else {
            self.decode_values(&mut fields, count, address)?
        };
        if let Some((null, rows)) = nulls {
            for row in rows {
                words[row] = null;
            }
        }
        Ok(words)
    }

    /// Length in bytes of the payload without the map of nulls and the inner vector.
    fn bytes(&self, count: usize) -> usize {
        let packed_count = if self.encoding == 11 {
            self.patches
        } else {
            count
        };
        let scale = if self.has(SCALED) { 8 } else { 0 };
        let high = if self.encoding == 9 {
            2 * self.patches
        } else {
            0
        };
        let packed = match self.encoding {
            2 if self.has(NARROW) => 4 * count,
            2 => 8 * count,
            _ => packed_bytes(packed_count, self.width),
        };
        let low = if self.encoding == 9 {
            packed_bytes(count, usize::from(self.factor))
        } else {
            0
        };
        let patches = if matches!(self.encoding, 3..=8 | 12) {
            place_bytes(count, self.patches).1 + unit_bytes(self.patches, self.patch_bits)
        } else {
            0
        };
        let words = match self.exceptions {
            0 => 0,
            _ if self.has(SHARED) => 8,
            exceptions => 8 * exceptions,
        };
        scale
            + high
            + packed
            + packed_bytes(count, self.correction_bits)
            + low
            + patches
            + place_bytes(count, self.exceptions).1
            + words
    }

    fn decode_values(
        &self,
        fields: &mut Fields<'_>,
        count: usize,
        address: u64,
    ) -> Result<Vec<u64>> {
        let own = self.bytes(count);
        let inside = matches!(self.encoding, 10 | 11);
        let fits = if inside {
            self.patches <= count && fields.left() > own
        } else {
            fields.left() == own
        };
        fields.require(fits, "the length of a payload")?;

        let scale = if self.has(SCALED) { fields.u64()? } else { 1 };
        let mut high = Vec::new();
        if self.encoding == 9 {
            for _ in 0..self.patches {
                high.push(fields.u16()? as u64);
            }
        }
        let mut list = Vec::new();
        if inside {
            let bytes = fields.take(fields.left() - own)?;
            let mut inner = Fields::new(bytes, address);
            let chunk = Self::read(&mut inner)?;
            fields.require(
                chunk.encoding < self.encoding && !chunk.has(NULLS | NARROW),
                "the vector inside another",
            )?;
            list = chunk.decode_values(&mut inner, self.patches, address)?;
        }
        let mut words = match self.encoding {
            2 => self.raw(fields, count)?,
            11 => {
                let lengths = unpack(fields, self.patches, self.width)?;
                let mut words = Vec::new();
                for (word, length) in list.iter().zip(lengths) {
                    let length = index(self.base.wrapping_add(length));
                    fields.require(
                        length >= 1 && length <= count - words.len(),
                        "the length of a run",
                    )?;
                    words.extend(vec![*word; length]);
                }
                fields.require(words.len() == count, "the length of all runs")?;
                words
            }
            _ => unpack(fields, count, self.width)?,
        };
        let corrections = unpack(fields, count, self.correction_bits)?;
        match self.encoding {
            1 => words = vec![self.base; count],
            2 | 11 => {}
            9 => {
                let bits = usize::from(self.factor);
                let low = unpack(fields, count, bits)?;
                for (word, low) in words.iter_mut().zip(low) {
                    let high = high.get(index(*word));
                    let high = *high.ok_or_else(|| fields.damaged("the number of a high part"))?;
                    *word = (high.checked_shl(bits as u32).unwrap_or(0) | low) << self.exponent;
                }
            }
            10 => {
                for word in &mut words {
                    let listed = list.get(index(*word));
                    *word = *listed.ok_or_else(|| fields.damaged("the number of a word"))?;
                }
            }
            _ => self.values(fields, &mut words, scale)?,
        }
        if self.correction_bits > 0 {
            for (word, correction) in words.iter_mut().zip(corrections) {
                *word = word
                    .wrapping_add(correction)
                    .wrapping_sub(self.correction_base);
            }
        }
        let rows = read_places(fields, self.exceptions, count)?;
        let mut word = 0;
        for (number, row) in rows.into_iter().enumerate() {
            if number == 0 || !self.has(SHARED) {
                word = fields.u64()?;
            }
            words[row] = word;
        }
        if self.has(NARROW) && self.encoding != 2 {
            for word in &mut words {
                let float = f64::from_bits(*word);
                if !float.is_nan() {
                    #[expect(clippy::cast_possible_truncation, reason = "the nearest f32")]
                    let narrow = float as f32;
                    *word = f64::from(narrow).to_bits();
                }
            }
        }
        fields.require(fields.left() == 0, "a payload goes on")?;
        Ok(words)
    }

    fn raw(&self, fields: &mut Fields<'_>, count: usize) -> Result<Vec<u64>> {
        let narrow = self.has(NARROW);
        let words = (0..count).map(|_| {
            Ok(if narrow {
                widen(little(fields.take(4)?) as u32)
            } else {
                fields.u64()?
            })
        });
        words.collect()
    }

    /// Converts packed values to words, for the encodings 3 to 8 and 12.
    fn values(&self, fields: &mut Fields<'_>, words: &mut [u64], scale: u64) -> Result<()> {
        for word in words.iter_mut() {
            *word = self.base.wrapping_add(word.wrapping_mul(scale));
        }
        let rows = read_places(fields, self.patches, words.len())?;
        let units = read_units(fields, self.patches, self.patch_bits)?;
        for (row, units) in rows.into_iter().zip(units) {
            let units = match self.patches_have_signs {
                true => unzigzag(units),
                false => units,
            };
            words[row] = self.base.wrapping_add(units.wrapping_mul(scale));
        }
        if matches!(self.encoding, 4 | 6 | 8) {
            let mut value = self.start;
            for (row, word) in words.iter_mut().enumerate() {
                if row > 0 {
                    value = value.wrapping_add(*word);
                }
                *word = value;
            }
        }
        for (row, word) in words.iter_mut().enumerate() {
            *word = match self.encoding {
                5 | 6 => self.decimal(*word),
                7 | 8 => {
                    let zeros = u32::from(self.exponent);
                    ordered(*word << zeros) >> zeros << zeros
                }
                12 => word.wrapping_add(self.start.wrapping_mul(row as u64)),
                _ => *word,
            };
        }
        Ok(())
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "the format rounds in the same way"
    )]
    fn decimal(&self, word: u64) -> u64 {
        let digits = word.cast_signed() as f64;
        let float = if self.factor == DIVIDE {
            digits / power_of_ten(i32::from(self.exponent))
        } else {
            digits * power_of_ten(i32::from(self.factor)) * power_of_ten(-i32::from(self.exponent))
        };
        float.to_bits()
    }
}

/// The double that is nearest to this power of ten.
fn power_of_ten(exponent: i32) -> f64 {
    format!("1e{exponent}").parse().unwrap_or(f64::NAN)
}

/// Maps the order of floats to the order of signed integers, and back.
fn ordered(word: u64) -> u64 {
    word ^ ((word.cast_signed() >> 63).cast_unsigned() >> 1)
}

/// Converts the bits of an f32 to the word that stores it, bit by bit, even for a NaN.
#[must_use]
pub fn widen(bits: u32) -> u64 {
    let float = f32::from_bits(bits);
    if float.is_nan() {
        let sign = u64::from(bits >> 31) << 63;
        return sign | 0x7ff << 52 | u64::from(bits & 0x7f_ffff) << 29;
    }
    f64::from(float).to_bits()
}

/// Reads the map of nulls: the word that stands for null, and the numbers of the null rows.
fn read_nulls(fields: &mut Fields<'_>, count: usize) -> Result<(u64, Vec<usize>)> {
    let kind = fields.u8()?;
    let zero = fields.u8()?;
    let nulls = fields.u16()?;
    fields.require(zero == 0 && kind <= 2, "the kind of nulls")?;
    fields.require((1..=count).contains(&nulls), "the number of nulls")?;
    let null = words::fill(words::WITH_NULLS + 1 + kind);
    Ok((null, read_places(fields, nulls, count)?))
}

/// Number of low bits of each row number, and length in bytes, of `rows` of `count` row numbers; no low bits if they
/// are stored as a bitmap.
fn place_bytes(count: usize, rows: usize) -> (usize, usize) {
    if rows == 0 {
        return (0, 0);
    }
    let low = if 64 * rows <= count { 8 } else { 4 };
    let parts = (rows * low).div_ceil(8) + (rows + (count.saturating_sub(1) >> low)).div_ceil(8);
    let bitmap = count.div_ceil(8);
    if parts <= bitmap {
        (low, parts)
    } else {
        (0, bitmap)
    }
}

/// Reads `rows` of `count` row numbers.
fn read_places(fields: &mut Fields<'_>, rows: usize, count: usize) -> Result<Vec<usize>> {
    let (low, bytes) = place_bytes(count, rows);
    let bytes = fields.take(bytes)?;
    let (lows, bits) = bytes.split_at((rows * low).div_ceil(8));
    let is_set = |bit: &usize| bits[bit / 8] >> (bit % 8) & 1 == 1;
    let set = (0..8 * bits.len()).filter(is_set);
    let places: Vec<usize> = match low {
        0 => set.collect(),
        _ => {
            let part = |i: usize| match low {
                8 => usize::from(lows[i]),
                _ => usize::from(lows[i / 2] >> (4 * (i % 2)) & 15),
            };
            let row = |(i, bit): (usize, usize)| (bit - i) << low | part(i);
            set.enumerate().take(rows).map(row).collect()
        }
    };
    let ascend = places.windows(2).all(|pair| pair[0] < pair[1]);
    let whole = places.len() == rows && (0..8 * bits.len()).filter(is_set).count() == rows;
    if whole && ascend && places.last().is_none_or(|last| *last < count) {
        Ok(places)
    } else {
        Err(fields.damaged("rows of a chunk do not ascend"))
    }
}

/// Length in bytes of the units of patches: packed values, where a single lane takes only the bytes that it needs.
fn unit_bytes(count: usize, width: usize) -> usize {
    match count {
        ..128 => (count * width).div_ceil(8),
        _ => packed_bytes(count, width),
    }
}

fn read_units(fields: &mut Fields<'_>, count: usize, width: usize) -> Result<Vec<u64>> {
    let mut bytes = fields.take(unit_bytes(count, width))?.to_vec();
    bytes.resize(packed_bytes(count, width), 0);
    unpack(&mut Fields::new(&bytes, 0), count, width)
}

/// Number of lanes (parallel bit streams) into which this number of values is packed.
fn lanes(count: usize) -> usize {
    match count {
        ..128 => 1,
        128..256 => 2,
        256..512 => 4,
        512..1024 => 8,
        _ => 16,
    }
}

fn lane_words(count: usize, width: usize) -> usize {
    (count.div_ceil(lanes(count)) * width).div_ceil(64)
}

fn packed_bytes(count: usize, width: usize) -> usize {
    8 * lanes(count) * lane_words(count, width)
}

/// Reads packed values of `width` bits, bit by bit.
fn unpack(fields: &mut Fields<'_>, count: usize, width: usize) -> Result<Vec<u64>> {
    let lanes = lanes(count);
    let packed = fields.take(packed_bytes(count, width))?;
    let word = |number: usize| little(&packed[8 * number..8 * number + 8]);
    let mut values = Vec::with_capacity(count);
    for value in 0..count {
        let (lane, row) = (value % lanes, value / lanes);
        let bit = |bit: usize| {
            let at = row * width + bit;
            word(at / 64 * lanes + lane) >> (at % 64) & 1
        };
        values.push((0..width).fold(0, |value, at| value | bit(at) << at));
    }
    Ok(values)
}

/// A decoder of cold pages that always fails, for places where encoding 13 must not occur.
///
/// # Errors
/// Always fails.
pub fn no_cold(_: &[u8], _: usize) -> Result<Vec<u64>> {
    Err(Error::damaged(0, "encoding 13 outside of a cold column"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_values_lie_in_lanes() {
        // Packs the values 1, 2, 3, 4 in three bits each, in a single lane.
        let packed = (1_u64 | 2 << 3 | 3 << 6 | 4 << 9).to_le_bytes();
        let values = unpack(&mut Fields::new(&packed, 0), 4, 3);
        assert_eq!(values, Ok(vec![1, 2, 3, 4]));
        assert_eq!(packed_bytes(1024, 1), 128);
        assert_eq!(packed_bytes(200, 64), 1600);
    }

    #[test]
    fn steps_are_added_to_the_start() {
        let bytes = [4, 0, 0x00, 0x11, 4, 20];
        let chunk = Chunk::read(&mut Fields::new(&bytes, 0)).expect("a chunk");
        assert_eq!(chunk.decode(&[], 3, 0, &no_cold), Ok(vec![10, 12, 14]));
        assert!(chunk.decode(&[0], 3, 0, &no_cold).is_err());
        assert!(chunk.decode(&[], 0, 0, &no_cold).is_err());
    }

    #[test]
    fn floats_keep_the_order_of_integers() {
        let ascending = [-2.0_f64, -1.0, -0.0, 0.0, 1.5];
        let words = ascending.map(|float| ordered(float.to_bits()).cast_signed());
        assert!(words.is_sorted());
        assert_eq!(ordered(ordered(0x8123)), 0x8123);
        assert!(f64::from_bits(widen(0xffc0_0001)).is_nan());
        assert_eq!(widen(0xffc0_0001) >> 29 & 0x7f_ffff, 0x40_0001);
    }
}
