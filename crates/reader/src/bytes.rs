//! Bounds-checked reads of little-endian numbers, varints and short numbers.

use crate::error::{Error, Result};

/// Reads one field after the other.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
    address: u64,
}

impl<'a> Fields<'a> {
    /// Begins at the first of `bytes`; errors name `address`, the place of the block.
    #[must_use]
    pub fn new(bytes: &'a [u8], address: u64) -> Self {
        Self {
            bytes,
            at: 0,
            address,
        }
    }

    /// Begins at byte `at`.
    ///
    /// # Errors
    /// If there are fewer bytes.
    pub fn from(bytes: &'a [u8], at: usize, address: u64) -> Result<Self> {
        let mut fields = Self::new(bytes, address);
        fields.skip(at)?;
        Ok(fields)
    }

    /// The error of a rule broken in this block.
    #[must_use]
    pub fn damaged(&self, reason: &'static str) -> Error {
        Error::damaged(self.address, reason)
    }

    /// Returns an error unless `rule` holds.
    ///
    /// # Errors
    /// If it does not.
    pub fn require(&self, rule: bool, reason: &'static str) -> Result<()> {
        if rule {
            Ok(())
        } else {
            Err(self.damaged(reason))
        }
    }

    /// Number of bytes that follow.
    #[must_use]
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Number of bytes that were read.
    #[must_use]
    pub fn position(&self) -> usize {
        self.at
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// If there are fewer.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let Some(taken) = rest.get(..count) else {
            return Err(self.damaged("the block ends within a field"));
        };
        self.at += count;
        Ok(taken)
    }

    /// All bytes that follow.
    pub fn rest(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        self.at = self.bytes.len();
        rest
    }

    /// Skips `count` bytes.
    ///
    /// # Errors
    /// If there are fewer.
    pub fn skip(&mut self, count: usize) -> Result<()> {
        self.take(count).map(|_| ())
    }

    fn number(&mut self, bytes: usize) -> Result<u64> {
        let taken = self.take(bytes)?;
        Ok(little(taken))
    }

    /// A byte.
    ///
    /// # Errors
    /// At the end of the block, as for all numbers.
    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    /// Two bytes.
    ///
    /// # Errors
    /// At the end of the block.
    pub fn u16(&mut self) -> Result<usize> {
        self.number(2).map(index)
    }

    /// Four bytes.
    ///
    /// # Errors
    /// At the end of the block.
    pub fn u32(&mut self) -> Result<usize> {
        self.number(4).map(index)
    }

    /// Six bytes.
    ///
    /// # Errors
    /// At the end of the block.
    pub fn u48(&mut self) -> Result<u64> {
        self.number(6)
    }

    /// Eight bytes.
    ///
    /// # Errors
    /// At the end of the block.
    pub fn u64(&mut self) -> Result<u64> {
        self.number(8)
    }

    /// Eight bytes, two's complement.
    ///
    /// # Errors
    /// At the end of the block.
    pub fn i64(&mut self) -> Result<i64> {
        self.u64().map(u64::cast_signed)
    }

    /// Sixteen bytes.
    ///
    /// # Errors
    /// At the end of the block.
    pub fn id(&mut self) -> Result<[u8; 16]> {
        let mut id = [0; 16];
        id.copy_from_slice(self.take(16)?);
        Ok(id)
    }

    /// A varint: seven bits a byte, the lowest first, the top bit in all bytes but the last.
    ///
    /// # Errors
    /// If it is longer than 64 bits.
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

    /// A varint of 32 bits.
    ///
    /// # Errors
    /// If it is longer.
    pub fn varint32(&mut self) -> Result<usize> {
        let value = self.varint()?;
        self.require(value <= u64::from(u32::MAX), "a varint is too long")?;
        Ok(index(value))
    }

    /// A list of `K` short numbers: their lengths in four bits each, then their bytes.
    ///
    /// # Errors
    /// If a length is above 8, a number is longer than needed, or the last four bits of an odd list are used.
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

/// The little-endian number of up to eight bytes.
#[must_use]
pub fn little(bytes: &[u8]) -> u64 {
    let digits = bytes.iter().rev();
    digits.fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// The big-endian number of up to eight bytes.
#[must_use]
pub fn big(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// A number as an index: one beyond the address space, which no bytes can have, becomes the highest.
#[must_use]
pub fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// The signed number of a zigzag word.
#[must_use]
pub fn unzigzag(word: u64) -> u64 {
    (word >> 1) ^ (word & 1).wrapping_neg()
}

/// XXH3-64 with seed 0.
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
