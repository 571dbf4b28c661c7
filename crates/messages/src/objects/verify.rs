//! Verification of an object: its bytes are hashed and compared with the stored hashes.

use crate::objects::chunks::ChunkHash;
use crate::objects::content_hash::{ChunkHashes, ContentHash};
use crate::objects::keys::{chunk_count, chunk_key, chunk_len};
use crate::objects::manifest::ObjectInfo;
use crate::objects::parts::{Part, part, row_bytes};
use crate::objects::read::BucketReader;
use tidalite_kv::{TableReader, Value};
use tidalite_pager::{Error, PageRead, Result};

/// Number of damaged chunks after which the verification of an object stops.
pub const DAMAGED_CHUNKS_MAX: usize = 1000;

/// Result of verifying an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectVerification {
    /// Number of chunks that the object has.
    pub chunks: u64,
    /// Indexes of the chunks that are missing or unreadable, or do not match their hash; only the first
    /// [`DAMAGED_CHUNKS_MAX`] are listed.
    pub damaged: Vec<u32>,
    /// Whether the hash of the object matches the computed hashes of its chunks.
    pub hash_matches: bool,
}

impl ObjectVerification {
    /// Whether the object is undamaged.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.damaged.is_empty() && self.hash_matches
    }
}

/// The hash of a chunk, computed from its bytes.
pub(crate) fn hash_value(value: &Value<'_>) -> Result<ContentHash> {
    let mut hasher = blake3::Hasher::new();
    for slice in value.chunks() {
        hasher.update(&slice?);
    }
    Ok(ContentHash(*hasher.finalize().as_bytes()))
}

impl<R: PageRead> BucketReader<R> {
    /// Reads all bytes of an object and compares them with the hashes of its chunks and its own; `None` if the object
    /// does not exist or has expired at `now`. Damaged chunks are counted and listed instead of being returned as
    /// errors.
    ///
    /// # Errors
    /// A damaged or unreadable page, except of a chunk.
    ///
    /// # Cost
    /// Reads and hashes the whole object.
    pub fn verify(&self, name: &str, now: i64) -> Result<Option<ObjectVerification>> {
        match self.info(name, now)? {
            Some(info) => self.verify_contents(&info).map(Some),
            None => Ok(None),
        }
    }

    fn verify_contents(&self, info: &ObjectInfo) -> Result<ObjectVerification> {
        let chunks = part(&self.root, &self.r, Part::Chunks)?;
        let hashes = part(&self.root, &self.r, Part::Hashes)?;
        let mut whole = ChunkHashes::default();
        let mut found = ObjectVerification {
            chunks: chunk_count(info.size, info.chunk_bytes),
            ..ObjectVerification::default()
        };
        for index in 0..found.chunks {
            if found.damaged.len() >= DAMAGED_CHUNKS_MAX {
                break;
            }
            let len = chunk_len(info.size, info.chunk_bytes, index);
            let key = chunk_key(info.content, index as u32);
            let hash = match self.chunk_hash(&chunks, &hashes, &key, len) {
                Ok(hash) => hash,
                Err(Error::Corrupt(_)) => None,
                Err(error) => return Err(error),
            };
            match hash {
                Some(hash) => whole.push(&hash),
                None => found.damaged.push(index as u32),
            }
        }
        found.hash_matches = whole.finish() == info.hash;
        Ok(found)
    }

    /// The hash of a chunk computed from its bytes; `None` if the chunk or its hash is missing or differs.
    fn chunk_hash(
        &self,
        chunks: &TableReader<'_>,
        hashes: &TableReader<'_>,
        key: &[u8],
        len: u64,
    ) -> Result<Option<ContentHash>> {
        let (Some(value), Some(stored)) = (chunks.get(&self.r, key)?, hashes.get(&self.r, key)?)
        else {
            return Ok(None);
        };
        let stored = ChunkHash::decode(&row_bytes(&stored)?)?;
        let hash = hash_value(&value)?;
        Ok(
            (value.len() == len && u64::from(stored.len) == len && stored.hash == hash)
                .then_some(hash),
        )
    }
}
