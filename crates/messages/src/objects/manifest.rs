//! The manifest of an object: its row in the table of objects, with its name as key. An object exists if it has a
//! manifest.
//!
//! ```text
//!  0  u64   content id
//!  8  u64   size
//! 16  u32   size of a chunk
//! 20  i64   time of creation
//! 28  i64   time of the last change of the contents
//! 36  32 B  hash of the contents
//! 68  attributes (`attributes.rs`)
//! ```

use crate::objects::attributes::ObjectAttributes;
use crate::objects::content_hash::ContentHash;
use crate::objects::fields::Fields;
use crate::objects::keys::{
    CHUNK_BYTES_MAX, CHUNK_BYTES_MIN, CONTENT_MAX, check_chunk_count, name_of,
};
use tidalite_pager::Result;
use tidalite_time::Timestamp;

/// Description of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Name of the object.
    pub name: String,
    /// Size in bytes of the contents.
    pub size: u64,
    /// Size in bytes of the chunks into which the contents are divided.
    pub chunk_bytes: u32,
    /// Time at which an object with this name was first put.
    pub created: Timestamp,
    /// Time at which the contents were put.
    pub modified: Timestamp,
    /// Hash of the contents.
    pub hash: ContentHash,
    /// Content type, metadata, expiry and protection.
    pub attributes: ObjectAttributes,
    /// Id of the contents, with which the keys of their chunks begin.
    pub(crate) content: u64,
}

impl ObjectInfo {
    /// Whether the object has expired at `now`. Expired objects are not found, although they may still occupy space.
    #[must_use]
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.attributes.removed_at().is_some_and(|time| time <= now)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(128);
        bytes.extend_from_slice(&self.content.to_le_bytes());
        bytes.extend_from_slice(&self.size.to_le_bytes());
        bytes.extend_from_slice(&self.chunk_bytes.to_le_bytes());
        bytes.extend_from_slice(&self.created.0.to_le_bytes());
        bytes.extend_from_slice(&self.modified.0.to_le_bytes());
        bytes.extend_from_slice(&self.hash.0);
        self.attributes.encode_to(&mut bytes);
        bytes
    }

    pub(crate) fn decode(name: &[u8], bytes: &[u8]) -> Result<Self> {
        let name = name_of(name)?.to_owned();
        let mut fields = Fields::new("manifest of an object", bytes);
        let (content, size, chunk_bytes) = (fields.u64()?, fields.u64()?, fields.u32()?);
        check_division(&fields, size, chunk_bytes)?;
        if content >= CONTENT_MAX {
            return Err(fields.error(content, "a content id"));
        }
        Ok(Self {
            name,
            size,
            chunk_bytes,
            created: fields.time()?,
            modified: fields.time()?,
            hash: ContentHash(fields.array()?),
            attributes: ObjectAttributes::decode(&mut fields)?,
            content,
        })
    }
}

/// Checks the stored sizes of the contents and of their chunks.
pub(crate) fn check_division(fields: &Fields<'_>, size: u64, chunk_bytes: u32) -> Result<()> {
    let possible = (CHUNK_BYTES_MIN..=CHUNK_BYTES_MAX).contains(&chunk_bytes)
        && check_chunk_count(size, chunk_bytes).is_ok();
    if !possible {
        let found = format!("{size} bytes in chunks of {chunk_bytes}");
        return Err(fields.error(found, "a possible division into chunks"));
    }
    Ok(())
}
