//! The key of a cursor's row: the prefix of the leaf, followed by the row's suffix.
//!
//! Invariant: the first `len` bytes of `bytes` are the key. The bytes after them have no meaning; they are there so
//! that short suffixes can be copied as blocks of fixed length, which compile to register moves instead of calls.

use crate::page::row::BLOCK_BYTES;
use std::ops::Deref;

#[derive(Clone, Debug, Default)]
pub(super) struct RowKey {
    bytes: Vec<u8>,
    len: usize,
    /// Length in bytes of the leaf's common prefix.
    prefix_len: usize,
}

impl RowKey {
    /// Stores the common prefix of a leaf that the cursor enters.
    pub(super) fn enter(&mut self, prefix: &[u8]) {
        // Reserves space for the prefix and one block of suffix bytes.
        self.bytes.resize(prefix.len() + BLOCK_BYTES, 0);
        self.bytes[..prefix.len()].copy_from_slice(prefix);
        self.prefix_len = prefix.len();
        self.len = prefix.len();
    }

    /// Sets the key suffix to the first `len` bytes of a block of fixed length. Returns false if the suffix is longer
    /// than a block, or the buffer has no room.
    #[inline(always)]
    pub(super) fn take_block(&mut self, block: &[u8; BLOCK_BYTES], len: usize) -> bool {
        debug_assert!(
            self.prefix_len <= self.bytes.len(),
            "the prefix was entered"
        );
        let to = self.bytes.get_mut(self.prefix_len..);
        let to: Option<&mut [u8; BLOCK_BYTES]> = to.and_then(|rest| rest.first_chunk_mut());
        match to {
            Some(to) if len <= BLOCK_BYTES => {
                *to = *block;
                self.len = self.prefix_len + len;
                true
            }
            _ => false,
        }
    }

    /// Sets the key suffix from the `len` bytes at offset `at` of the page.
    #[inline(always)]
    pub(super) fn take(&mut self, page: &[u8], at: usize, len: usize) {
        let block = page.get(at..).and_then(|rest| rest.first_chunk());
        if !block.is_some_and(|block| self.take_block(block, len)) {
            self.take_any(&page[at..at + len]);
        }
    }

    /// Sets a key suffix of any length.
    #[cold]
    #[inline(never)]
    pub(super) fn take_any(&mut self, suffix: &[u8]) {
        self.len = self.prefix_len + suffix.len();
        if self.bytes.len() < self.len {
            self.bytes.resize(self.len + BLOCK_BYTES, 0);
        }
        self.bytes[self.prefix_len..self.len].copy_from_slice(suffix);
    }

    /// Takes the bytes of the key out of this buffer, so that the caller can append the rest of a key that is too long
    /// for its page; `put` takes the bytes back.
    pub(super) fn lend(&mut self) -> Vec<u8> {
        debug_assert!(self.len <= self.bytes.len(), "the key is in the buffer");
        self.bytes.truncate(self.len);
        std::mem::take(&mut self.bytes)
    }

    pub(super) fn put(&mut self, bytes: Vec<u8>) {
        (self.len, self.bytes) = (bytes.len(), bytes);
        self.bytes.resize(self.len + BLOCK_BYTES, 0);
    }
}

impl Deref for RowKey {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::RowKey;

    #[test]
    fn row_key_copies_suffixes_of_any_length() {
        let page: Vec<u8> = (0..=255).collect();
        let mut key = RowKey::default();
        for prefix in [&b""[..], b"user-", &[7; 90]] {
            key.enter(prefix);
            for (at, len) in [
                (0, 0),
                (0, 1),
                (100, 32),
                (100, 33),
                (224, 32),
                (225, 31),
                (256, 0),
                (3, 200),
                (9, 2),
            ] {
                key.take(&page, at, len);
                assert_eq!(*key, [prefix, &page[at..at + len]].concat());
            }
            let mut whole = key.lend();
            whole.extend_from_slice(&[1; 70]);
            key.put(whole);
            assert_eq!(*key, [prefix, &page[9..11], &[1; 70]].concat());
            key.take(&page, 5, 6);
            assert_eq!(*key, [prefix, &page[5..11]].concat());
        }
    }
}
