//! Reads the texts of rows (section 9.5 of docs/format.md): strings, bytes and GUIDs, which rows refer to by number.

use crate::bytes::{Fields, big, checksum};
use crate::catalog::{Roots, plain_rows};
use crate::error::{Error, Result};
use crate::image::Image;
use std::collections::BTreeMap;

/// Texts with numbers from this number on are in the dictionary of their column.
const DICTIONARY: u64 = 1 << 62;

const DICTIONARY_MAX: u64 = 4096;
const BLOCK_TEXTS_MAX: usize = 1024;
const BLOCK_BYTES_MAX: usize = 1_085_440;

/// All texts of a file, by series, column and number.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    texts: BTreeMap<(u64, u64, u64), Vec<u8>>,
}

impl Texts {
    /// Reads the table of texts.
    ///
    /// # Errors
    /// If a block or an entry of a dictionary is damaged.
    pub fn read(image: &Image, roots: &Roots) -> Result<Self> {
        let mut texts = Self::default();
        let mut hashes = Vec::new();
        for (key, value) in plain_rows(image, &roots.texts)? {
            if key.len() != 19 {
                return Err(Error::damaged(0, "the key of a text"));
            }
            let column = (big(&key[..8]), big(&key[8..10]));
            let number = big(&key[11..]);
            match key[10] {
                0 => texts.add_block(column, number, &value)?,
                1 => {
                    if !(1..=DICTIONARY_MAX).contains(&number) {
                        return Err(Error::damaged(0, "a number of the dictionary"));
                    }
                    texts.add(column, DICTIONARY + number, &value)?;
                }
                2 => hashes.push((column, number, value)),
                _ => return Err(Error::damaged(0, "the part of a text")),
            }
        }
        for (column, hash, numbers) in hashes {
            let mut fields = Fields::new(&numbers, 0);
            while fields.left() > 0 {
                let number = fields.u64()?;
                let place = (column.0, column.1, DICTIONARY.wrapping_add(number));
                let text = texts.texts.get(&place);
                fields.require(
                    text.is_some_and(|text| checksum(text) == hash),
                    "the checksum of a text of the dictionary",
                )?;
            }
        }
        Ok(texts)
    }

    fn add(&mut self, (series, column): (u64, u64), number: u64, text: &[u8]) -> Result<()> {
        let place = (series, column, number);
        match self.texts.insert(place, text.to_vec()) {
            None => Ok(()),
            Some(_) => Err(Error::damaged(0, "a number of a text occurs twice")),
        }
    }

    fn add_block(&mut self, column: (u64, u64), first: u64, value: &[u8]) -> Result<()> {
        let mut fields = Fields::new(value, 0);
        let form = fields.u8()?;
        let count = fields.u16()?;
        let size = fields.u32()?;
        fields.require(
            first >= 1 && (1..=BLOCK_TEXTS_MAX).contains(&count) && size <= BLOCK_BYTES_MAX,
            "a block of texts",
        )?;
        let bytes = match form {
            0 => fields.rest().to_vec(),
            1 => lz4(fields.rest(), size)?,
            _ => return Err(fields.damaged("the form of a block of texts")),
        };
        fields.require(bytes.len() == size, "the size of a block of texts")?;
        let mut lengths = Fields::new(&bytes, 0);
        let mut contents = Fields::from(&bytes, 4 * count, 0)?;
        for number in 0..count as u64 {
            let length = lengths.u32()?;
            let text = contents.take(length)?;
            let number = first.saturating_add(number);
            contents.require(number <= DICTIONARY, "the number of a text")?;
            self.add(column, number, text)?;
        }
        contents.require(contents.left() == 0, "a block of texts goes on")
    }

    /// The text to which a row refers by `number`.
    ///
    /// # Errors
    /// If there is no text with this number.
    pub fn text(&self, series: u64, column: usize, number: u64) -> Result<Vec<u8>> {
        if number == 0 || number == DICTIONARY {
            return Ok(Vec::new());
        }
        let text = self.texts.get(&(series, column as u64, number)).cloned();
        text.ok_or(Error::damaged(0, "a row with a text that is not there"))
    }
}

/// Decodes an LZ4 block, a sequence of literals and copies of earlier bytes, until the last literals end the block.
fn lz4(packed: &[u8], size: usize) -> Result<Vec<u8>> {
    let mut fields = Fields::new(packed, 0);
    let mut bytes: Vec<u8> = Vec::new();
    loop {
        let token = usize::from(fields.u8()?);
        let literals = lz4_length(&mut fields, token >> 4)?;
        bytes.extend_from_slice(fields.take(literals)?);
        if fields.left() == 0 {
            return Ok(bytes);
        }
        let offset = fields.u16()?;
        let length = lz4_length(&mut fields, token & 15)? + 4;
        fields.require(
            (1..=bytes.len()).contains(&offset) && bytes.len() + length <= size,
            "a copy of an LZ4 block",
        )?;
        for _ in 0..length {
            bytes.push(bytes[bytes.len() - offset]);
        }
    }
}

fn lz4_length(fields: &mut Fields<'_>, nibble: usize) -> Result<usize> {
    let mut length = nibble;
    if nibble == 15 {
        loop {
            let byte = fields.u8()?;
            length += usize::from(byte);
            if byte != 255 {
                break;
            }
        }
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lz4_copies_may_overlap_their_own_bytes() {
        // Literal "ab", a copy of six bytes from two bytes back, then the literal "c".
        assert_eq!(
            lz4(&[0x22, b'a', b'b', 2, 0, 0x10, b'c'], 9).as_deref(),
            Ok(&b"ababababc"[..])
        );
        assert!(lz4(&[0x20, b'a', b'b', 3, 0], 9).is_err());
        assert!(lz4(&[0x2f, b'a', b'b', 1, 0, 200, 0x10], 9).is_err());
    }
}
