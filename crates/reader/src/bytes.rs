//! Bounds-checked reads of little-endian numbers, varints and short numbers.

use crate::error::{Error, Result};

/// Reads the fields of a block one after another; checks that the block has enough bytes.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
    address: u64,
}

impl<'a> Fields<'a> {
    /// Creates a reader that begins at the first of `bytes`; errors name `address`, the address of the block.
    #[must_use]
    pub fn new(bytes: &'a [u8], address: u64) -> Self {
        Self {
            bytes,
            at: 0,
            address,
        }
    }

    /// Creates a reader that begins at byte `at` of `bytes`.
    ///
    /// # Errors
    /// If `bytes` is shorter than `at`.
    pub fn from(bytes: &'a [u8], at: usize, address: u64) -> Result<Self> {
        let mut fields = Self::new(bytes, address);
        fields.skip(at)?;
        Ok(fields)
    }

    /// Creates the error for a rule of the format that this block breaks.
    #[must_use]
    pub fn damaged(&self, reason: &'static str) -> Error {
        Error::damaged(self.address, reason)
    }

    /// Returns an error with this reason unless `rule` is true.
    ///
    /// # Errors
    /// If `rule` is false.
    pub fn require(&self, rule: bool, reason: &'static str) -> Result<()> {
        if rule {
            Ok(())
        } else {
            Err(self.damaged(reason))
        }
    }

    /// Number of bytes that are not read yet.
    #[must_use]
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Number of bytes that were read so far.
    #[must_use]
    pub fn position(&self) -> usize {
        self.at
    }

    /// Reads the next `count` bytes.
    ///
    /// # Errors
    /// If fewer than `count` bytes are left.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let Some(taken) = rest.get(..count) else {
            return Err(self.damaged("the block ends within a field"));
        };
        self.at += count;
        Ok(taken)
    }

    /// Reads all bytes that are left.
    pub fn rest(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        self.at = self.bytes.len();
        rest
    }

    /// Skips `count` bytes.
    ///
    /// # Errors
    /// If fewer than `count` bytes are left.
    pub fn skip(&mut self, count: usize) -> Result<()> {
        self.take(count).map(|_| ())
    }

    fn number(&mut self, bytes: usize) -> Result<u64> {
        let taken = self.take(bytes)?;
        Ok(little(taken))
    }

    /// Reads an unsigned number of one byte.
    ///
    /// # Errors
    /// If no bytes are left.
    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    /// Reads an unsigned number of two bytes.
    ///
    /// # Errors
    /// If fewer than two bytes are left.
    pub fn u16(&mut self) -> Result<usize> {
        self.number(2).map(index)
    }

    /// Reads an unsigned number of four bytes.
    ///
    /// # Errors
    /// If fewer than four bytes are left.
    pub fn u32(&mut self) -> Result<usize> {
        self.number(4).map(index)
    }

    /// Reads an unsigned number of six bytes.
    ///
    /// # Errors
    /// If fewer than six bytes are left.
    pub fn u48(&mut self) -> Result<u64> {
        self.number(6)
    }

    /// Reads an unsigned number of eight bytes.
    ///
    /// # Errors
    /// If fewer than eight bytes are left.
    pub fn u64(&mut self) -> Result<u64> {
        self.number(8)
    }

    /// Reads a signed number of eight bytes, in two's complement.
    ///
    /// # Errors
    /// If fewer than eight bytes are left.
    pub fn i64(&mut self) -> Result<i64> {
        self.u64().map(u64::cast_signed)
    }

    /// Reads a **big-endian** number of up to eight bytes, as keys have them.
    ///
    /// # Errors
    /// If fewer than `bytes` bytes are left.
    pub fn big(&mut self, bytes: usize) -> Result<u64> {
        self.take(bytes).map(big)
    }

    /// Reads a time in the form of keys: big-endian, with the sign bit flipped.
    ///
    /// # Errors
    /// If fewer than eight bytes are left.
    pub fn key_time(&mut self) -> Result<i64> {
        Ok((self.big(8)? ^ 1 << 63).cast_signed())
    }

    /// Reads an id of sixteen bytes.
    ///
    /// # Errors
    /// If fewer than sixteen bytes are left.
    pub fn id(&mut self) -> Result<[u8; 16]> {
        let mut id = [0; 16];
        id.copy_from_slice(self.take(16)?);
        Ok(id)
    }

    /// Reads a varint: seven bits per byte, the lowest first; the top bit is set in all bytes except the last.
    ///
    /// # Errors
    /// If the number has more than 64 bits, or the bytes end too soon.
    pub fn varint(&mut self) -> Result<u64> {
        let mut value: u64 = 0;
        for shift in (0..64).step_by(7) {
            let byte = u64::from(self.u8()?);
            let bits = byte & 0x7f;
            self.require((bits << shift) >> shift == bits, "a varint is too long")?;
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.damaged("a varint is too long"))
    }

    /// Reads a varint of at most 32 bits.
    ///
    /// # Errors
    /// If the number has more than 32 bits, or the bytes end too soon.
    pub fn varint32(&mut self) -> Result<usize> {
        let value = self.varint()?;
        self.require(value <= u64::from(u32::MAX), "a varint is too long")?;
        Ok(index(value))
    }

    /// Reads a list of `K` short numbers: their lengths in four bits each, then their bytes.
    ///
    /// # Errors
    /// If a length is above 8, a number is longer than necessary, or the unused four bits of a list of odd length are
    /// set.
    pub fn short_numbers<const K: usize>(&mut self) -> Result<[u64; K]> {
        let lengths = self.take(K.div_ceil(2))?;
        let length = |number: usize| usize::from(lengths[number / 2] >> (4 * (number % 2)) & 15);
        let mut numbers = [0; K];
        for (number, value) in numbers.iter_mut().enumerate() {
            let bytes = length(number);
            self.require(bytes <= 8, "a short number has more than 8 bytes")?;
            let taken = self.take(bytes)?;
            self.require(
                taken.last() != Some(&0),
                "a short number begins with a zero",
            )?;
            *value = little(taken);
        }
        if K % 2 == 1 {
            self.require(length(K) == 0, "an odd list of short numbers goes on")?;
        }
        Ok(numbers)
    }
}

/// Decodes a little-endian number of up to eight bytes.
#[must_use]
pub fn little(bytes: &[u8]) -> u64 {
    let digits = bytes.iter().rev();
    digits.fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// Decodes a big-endian number of up to eight bytes.
#[must_use]
pub fn big(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// Encodes a time as keys have it.
#[must_use]
pub fn key_time(time: i64) -> [u8; 8] {
    (time.cast_unsigned() ^ 1 << 63).to_be_bytes()
}

/// Converts a number to an index. A number beyond the address space becomes the highest index, which no data can have.
#[must_use]
pub fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Decodes a zigzag word to a signed number, returned in two's complement.
#[must_use]
pub fn unzigzag(word: u64) -> u64 {
    (word >> 1) ^ (word & 1).wrapping_neg()
}

/// The XXH3-64 checksum of the bytes, with seed 0.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_end_at_the_byte_without_the_top_bit() {
        let mut fields = Fields::new(&[0x85, 0x01, 0xff, 0xff, 0xff, 0xff, 0x0f], 0);
        assert_eq!(fields.varint(), Ok(133));
        assert_eq!(fields.varint32(), Ok(0xffff_ffff));
        assert_eq!(fields.left(), 0);
        assert!(fields.varint().is_err());
        assert!(Fields::new(&[0xff; 12], 0).varint().is_err());
    }

    #[test]
    fn short_numbers_stand_behind_their_lengths() {
        let mut fields = Fields::new(&[0x21, 0x00, 7, 1, 2], 0);
        assert_eq!(fields.short_numbers::<3>(), Ok([7, 0x201, 0]));
        assert!(Fields::new(&[0x01, 0], 0).short_numbers::<2>().is_err());
        assert!(Fields::new(&[0x09; 20], 0).short_numbers::<2>().is_err());
        assert!(Fields::new(&[0x10, 1], 0).short_numbers::<1>().is_err());
    }

    #[test]
    fn zigzag_is_undone() {
        assert_eq!(unzigzag(0), 0);
        assert_eq!(unzigzag(1), u64::MAX);
        assert_eq!(unzigzag(4), 2);
    }
}
