//! A block of texts: the value of one entry in the `texts` tree.
//!
//! ```text
//! 0      1          3           7
//! | form | count u16 | bytes u32 | count lengths u32 | texts one after the other |
//! | u8   |          |           |<- as they are (form 0), or as an LZ4 block (form 1) of that many bytes
//! ```

use crate::types::error::{Error, Result};
use crate::types::value::TEXT_BYTES_MAX;
use tidalite_base::{Corrupt, get_u16, get_u32};

/// A block of this many bytes, text lengths included, gets no more texts.
pub(super) const BLOCK_BYTES: usize = 32 << 10;
pub(super) const BLOCK_TEXTS_MAX: usize = 1024;

/// Maximum size of a block: its size was just below `BLOCK_BYTES` when a text of maximum length was added.
const BLOCK_BYTES_MAX: usize = BLOCK_BYTES + TEXT_BYTES_MAX + 4 * BLOCK_TEXTS_MAX;

/// Minimum size of a block that is compressed; shorter ones would gain too little.
const COMPRESS_BYTES: usize = 256;

const FORM_PLAIN: u8 = 0;
const FORM_LZ4: u8 = 1;
const BLOCK_HEAD_BYTES: usize = 7;

/// A block of texts with consecutive numbers.
#[derive(Default)]
pub(super) struct Block {
    pub(super) first: u64,
    pub(super) lengths: Vec<u32>,
    pub(super) bytes: Vec<u8>,
}

impl Block {
    pub(super) fn end(&self) -> u64 {
        self.first + self.lengths.len() as u64
    }

    pub(super) fn size(&self) -> usize {
        4 * self.lengths.len() + self.bytes.len()
    }

    pub(super) fn push(&mut self, text: &[u8]) -> u64 {
        self.lengths.push(text.len() as u32);
        self.bytes.extend_from_slice(text);
        self.end() - 1
    }

    /// Removes the last text of the block.
    pub(super) fn pop(&mut self) {
        let length = self.lengths.pop().unwrap_or_default() as usize;
        self.bytes.truncate(self.bytes.len() - length);
    }

    pub(super) fn text(&self, number: u64) -> Option<&[u8]> {
        let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let length = *self.lengths.get(place)? as usize;
        let from: usize = self.lengths[..place].iter().map(|&len| len as usize).sum();
        self.bytes.get(from..from + length)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut raw = Vec::with_capacity(self.size());
        raw.extend(self.lengths.iter().flat_map(|length| length.to_le_bytes()));
        raw.extend_from_slice(&self.bytes);
        let (mut form, length) = (FORM_PLAIN, raw.len() as u32);
        if raw.len() >= COMPRESS_BYTES {
            let packed = lz4_flex::block::compress(&raw);
            if packed.len() < raw.len() / 8 * 7 {
                (form, raw) = (FORM_LZ4, packed);
            }
        }
        let mut out = vec![form];
        out.extend((self.lengths.len() as u16).to_le_bytes());
        out.extend(length.to_le_bytes());
        out.extend(raw);
        out
    }

    pub(super) fn decode(first: u64, bytes: &[u8]) -> Result<Self> {
        let bad = |found: String, expected: &str| -> Error {
            Corrupt::new("block of texts", 0, found, expected).into()
        };
        if bytes.len() < BLOCK_HEAD_BYTES {
            return Err(bad(format!("{} bytes", bytes.len()), "a head of 7"));
        }
        let (count, size) = (usize::from(get_u16(bytes, 1)), get_u32(bytes, 3) as usize);
        if count == 0 || count > BLOCK_TEXTS_MAX || size > BLOCK_BYTES_MAX || size < 4 * count {
            return Err(bad(
                format!("{count} texts in {size} bytes"),
                "within the limits",
            ));
        }
        let body = &bytes[BLOCK_HEAD_BYTES..];
        let raw = match bytes[0] {
            FORM_PLAIN if body.len() == size => body.to_vec(),
            FORM_LZ4 => {
                let mut raw = vec![0; size];
                match lz4_flex::block::decompress_into(body, &mut raw) {
                    Ok(len) if len == size => raw,
                    other => return Err(bad(format!("{other:?} unpacked"), "all of it")),
                }
            }
            form => return Err(bad(format!("form {form}, {} bytes", body.len()), "0 or 1")),
        };
        let (lengths, texts) = raw.split_at(4 * count);
        let lengths: Vec<u32> = lengths.chunks_exact(4).map(|at| get_u32(at, 0)).collect();
        let sum: u64 = lengths.iter().map(|&len| u64::from(len)).sum();
        if sum != texts.len() as u64 || first.checked_add(count as u64).is_none() {
            let found = format!("texts of {sum} bytes from {first} on");
            return Err(bad(found, "what is behind the lengths"));
        }
        Ok(Self {
            first,
            lengths,
            bytes: texts.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidalite_testkit::rng::Rng;

    #[test]
    fn blocks_come_back_and_damaged_ones_are_corrupt_or_blocks() {
        let mut rng = Rng::new(3);
        for round in 0..2000 {
            let mut block = Block {
                first: 1 + rng.below(1000),
                ..Block::default()
            };
            for _ in 0..1 + rng.below(40) {
                let length = *rng.pick(&[0, 1, 9, 200]);
                let text: Vec<u8> = (0..length).map(|_| b'a' + rng.below(4) as u8).collect();
                let number = block.push(&text);
                assert_eq!(block.text(number), Some(&text[..]));
            }
            let mut bytes = block.encode();
            let back = Block::decode(block.first, &bytes).unwrap();
            assert_eq!((&back.lengths, &back.bytes), (&block.lengths, &block.bytes));
            assert!(back.text(block.first - 1).is_none() && back.text(block.end()).is_none());
            let at = rng.index(bytes.len());
            match round % 3 {
                0 => bytes.truncate(at),
                _ => bytes[at] ^= 1 << rng.below(8),
            }
            if let Ok(block) = Block::decode(block.first, &bytes) {
                for number in block.first..block.end() {
                    assert!(block.text(number).is_some());
                }
            }
        }
    }
}
