//! The hash of the contents of an object.
//!
//! ```text
//! hash of chunk i        h(i) = BLAKE3(bytes of chunk i)                      32 bytes
//! hash of an object      BLAKE3(h(0) | h(1) | ... | h(n - 1))                 BLAKE3 of nothing for an empty object
//! ```
//!
//! Chunk i holds the bytes from `i * chunk_bytes` up to the next chunk or the end. Equal hashes mean equal contents.
//! The reverse holds only if the chunks have the same size, which a bucket fixes by default.

use std::fmt;

const HASH_BYTES: usize = 32;

/// The hash of an object or of a chunk, used to compare contents. For a chunk it is BLAKE3 of the chunk, for an object
/// BLAKE3 of the chunks' hashes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentHash(pub [u8; HASH_BYTES]);

impl ContentHash {
    /// The hash of one chunk.
    pub(crate) fn of_chunk(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// Parses 64 hexadecimal digits, as `Display` writes them; `None` for any other text.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != 2 * HASH_BYTES {
            return None;
        }
        let mut hash = [0; HASH_BYTES];
        for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |digit: u8| char::from(digit).to_digit(16);
            *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
        }
        Some(Self(hash))
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Computes the hash of an object from the hashes of its chunks.
#[derive(Clone, Default)]
pub(crate) struct ChunkHashes(blake3::Hasher);

impl ChunkHashes {
    pub(crate) fn push(&mut self, chunk: &ContentHash) {
        self.0.update(&chunk.0);
    }

    pub(crate) fn finish(&self) -> ContentHash {
        ContentHash(*self.0.finalize().as_bytes())
    }
}

/// Computes the hash that an object with given contents would have, without storing it.
#[derive(Clone)]
pub struct ContentHasher {
    chunk_bytes: u32,
    filled: u32,
    chunk: blake3::Hasher,
    chunks: ChunkHashes,
}

impl ContentHasher {
    /// Begins the hash of an object with chunks of this size.
    ///
    /// # Panics
    /// If `chunk_bytes` is 0.
    #[must_use]
    pub fn new(chunk_bytes: u32) -> Self {
        assert!(chunk_bytes > 0, "chunks have bytes");
        Self {
            chunk_bytes,
            filled: 0,
            chunk: blake3::Hasher::new(),
            chunks: ChunkHashes::default(),
        }
    }

    /// Adds the next bytes of the contents.
    pub fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let free = (self.chunk_bytes - self.filled) as usize;
            let (now, later) = bytes.split_at(free.min(bytes.len()));
            self.chunk.update(now);
            self.filled += now.len() as u32;
            bytes = later;
            if self.filled == self.chunk_bytes {
                self.end_chunk();
            }
        }
    }

    /// The hash of all bytes that were added.
    #[must_use]
    pub fn finish(mut self) -> ContentHash {
        if self.filled > 0 {
            self.end_chunk();
        }
        self.chunks.finish()
    }

    fn end_chunk(&mut self) {
        let hash = ContentHash(*self.chunk.finalize().as_bytes());
        self.chunks.push(&hash);
        self.chunk.reset();
        self.filled = 0;
    }
}

impl fmt::Debug for ContentHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContentHasher")
            .field("chunk_bytes", &self.chunk_bytes)
            .finish_non_exhaustive()
    }
}
