//! Storing chunks, sharing contents between objects, and freeing contents.
//!
//! ```text
//! row of a hash    | hash of the chunk 32 B | length of the chunk u32 |
//! ```
//!
//! Invariants:
//! 1. A chunk and its hash have the same key; either both exist or neither does.
//! 2. Contents belong to exactly one of these: an upload, an object together with its copies, or the list of orphans.
//! 3. Contents that n > 1 objects share have a row with n - 1 in the table of shares; all other contents have no row.

use crate::objects::bucket::BucketWriter;
use crate::objects::content_hash::ContentHash;
use crate::objects::fields::Fields;
use crate::objects::keys::{COUNT_MAX, chunk_key, chunk_of};
use crate::objects::parts::{Part, damaged, part, row_bytes};
use tidalite_pager::{PageRead, PageWrite, Result};

/// Maximum number of chunks that are freed at once by the change that removes the last object with these contents. If
/// there are more, `maintain` frees them.
pub const CHUNKS_FREED_AT_ONCE: u64 = 16;

/// Hash and length of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkHash {
    pub(crate) hash: ContentHash,
    pub(crate) len: u32,
}

impl ChunkHash {
    pub(crate) fn encode(&self) -> Vec<u8> {
        [&self.hash.0[..], &self.len.to_le_bytes()].concat()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut fields = Fields::new("hash of a chunk", bytes);
        let row = Self {
            hash: ContentHash(fields.array()?),
            len: fields.u32()?,
        };
        fields.end()?;
        Ok(row)
    }
}

/// Result of freeing chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FreedChunks {
    pub(crate) chunks: u64,
    pub(crate) bytes: u64,
    /// Whether chunks remain.
    pub(crate) more: bool,
}

/// Decodes a row of the table of shares.
pub(crate) fn shares_of(bytes: &[u8]) -> Result<u64> {
    match <[u8; 8]>::try_from(bytes).map(u64::from_le_bytes) {
        Ok(shares) if (1..COUNT_MAX).contains(&shares) => Ok(shares),
        _ => Err(damaged(
            "shares of contents",
            bytes.escape_ascii(),
            "a number from 1 to 2^62 - 1",
        )),
    }
}

/// Passes the chunk hashes of some contents and their indexes to `found`, in order, until it returns false.
pub(crate) fn each_hash<R: PageRead>(
    root: &tidalite_kv::Tree,
    r: &R,
    (content, from): (u64, u32),
    found: &mut dyn FnMut(u32, ChunkHash) -> Result<bool>,
) -> Result<()> {
    let table = part(root, r, Part::Hashes)?;
    let mut rows = table.cursor(r)?;
    let mut there = rows.seek_ge(&chunk_key(content, from))?;
    while there {
        let (id, index) = chunk_of(rows.key())?;
        if id != content || !found(index, ChunkHash::decode(&row_bytes(&rows.value()?)?)?)? {
            break;
        }
        there = rows.next()?;
    }
    Ok(())
}

impl<W: PageWrite> BucketWriter<'_, W> {
    /// Stores a new chunk and its hash.
    pub(crate) fn store_chunk(
        &mut self,
        content: u64,
        index: u32,
        bytes: &[u8],
    ) -> Result<ContentHash> {
        debug_assert!(!bytes.is_empty(), "a chunk has bytes");
        debug_assert!(
            u32::try_from(bytes.len()).is_ok(),
            "chunks have a maximum size"
        );
        let hash = ContentHash::of_chunk(bytes);
        let len = bytes.len() as u32;
        let key = chunk_key(content, index);
        self.insert(Part::Chunks, &key, bytes)?;
        self.insert(Part::Hashes, &key, &ChunkHash { hash, len }.encode())?;
        self.state.add_chunk(u64::from(len));
        Ok(hash)
    }

    /// Frees at most `limit` chunks of some contents, with indexes in a range.
    pub(crate) fn free_chunks(
        &mut self,
        content: u64,
        (from, to): (u32, u32),
        limit: u64,
    ) -> Result<FreedChunks> {
        let mut freed = FreedChunks::default();
        let mut last = None;
        each_hash(self.root, self.w, (content, from), &mut |index, chunk| {
            freed.more = index < to && freed.chunks == limit;
            if index >= to || freed.more {
                return Ok(false);
            }
            freed.chunks += 1;
            freed.bytes += u64::from(chunk.len);
            last = Some(index);
            Ok(true)
        })?;
        if let Some(last) = last {
            let mut end = chunk_key(content, last).to_vec();
            end.push(0);
            let begin = chunk_key(content, from);
            for table in [Part::Chunks, Part::Hashes] {
                self.change(table, &mut |w, rows| rows.remove_range(w, &begin, &end))?;
            }
        }
        self.state.remove_chunks(freed.chunks, freed.bytes);
        Ok(freed)
    }

    /// Removes contents that no object and no upload has any more. A small number of chunks is freed at once; otherwise
    /// the contents become an orphan.
    pub(crate) fn discard(&mut self, content: u64) -> Result<()> {
        let mut chunks = 0;
        each_hash(self.root, self.w, (content, 0), &mut |_, _| {
            chunks += 1;
            Ok(chunks <= CHUNKS_FREED_AT_ONCE)
        })?;
        if chunks > CHUNKS_FREED_AT_ONCE {
            return self.insert(Part::Orphans, &content.to_be_bytes(), b"");
        }
        self.free_chunks(content, (0, u32::MAX), u64::MAX).map(drop)
    }

    /// Records that another object has these contents.
    pub(crate) fn share(&mut self, content: u64) -> Result<()> {
        let shares = (self.shares(content)? + 1).to_le_bytes();
        shares_of(&shares)?;
        self.insert(Part::Shares, &content.to_be_bytes(), &shares)
    }

    /// Records that an object with these contents was removed. If it was the last one, the contents are removed.
    pub(crate) fn release(&mut self, content: u64) -> Result<()> {
        let key = content.to_be_bytes();
        match self.shares(content)? {
            0 => self.discard(content),
            1 => self.remove(Part::Shares, &key).map(drop),
            shares => self.insert(Part::Shares, &key, &(shares - 1).to_le_bytes()),
        }
    }

    fn shares(&self, content: u64) -> Result<u64> {
        let table = part(self.root, self.w, Part::Shares)?;
        match table.get(self.w, &content.to_be_bytes())? {
            Some(row) => shares_of(&row_bytes(&row)?),
            None => Ok(0),
        }
    }
}
