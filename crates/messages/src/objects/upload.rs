//! The row of an upload; its key is the content id.
//!
//! ```text
//!  0  i64   time at which the upload began
//!  8  i64   expiry of the upload
//! 16  u64   bytes stored
//! 24  u32   size of a chunk
//! 28  u32   chunks of a part; 0 in append mode, 2^32 - 1 for the whole chunks of a put (`put.rs`)
//! 32  u16   length of the name
//! 34  name of the object, then its attributes (`attributes.rs`)
//! ```

use crate::objects::attributes::ObjectAttributes;
use crate::objects::content_hash::ContentHash;
use crate::objects::fields::Fields;
use crate::objects::keys::name_of;
use crate::objects::manifest::check_division;
use tidalite_pager::Result;
use tidalite_time::Timestamp;

/// Maximum number of chunks of a part of an upload.
pub const PART_CHUNKS_MAX: u32 = 1024;

/// A value of the field "chunks of a part" that marks the row of a put.
const PUT: u32 = u32::MAX;

/// Identifies an upload in its bucket. Ids are never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UploadId(pub u64);

/// The way in which the bytes of an upload arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UploadMode {
    /// The bytes arrive in order, in pieces of any length.
    #[default]
    Append,
    /// The bytes arrive in numbered parts, in any order. All parts except the last have the same size.
    Parts {
        /// Size of a part in chunks, from 1 to [`PART_CHUNKS_MAX`].
        chunks: u32,
    },
}

/// Description of an upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadInfo {
    /// Id of the upload.
    pub id: UploadId,
    /// Name of the object that the upload will become.
    pub name: String,
    /// The way in which its bytes arrive.
    pub mode: UploadMode,
    /// Number of stored bytes, which is the offset of the next append.
    pub len: u64,
    /// Size in bytes of a chunk.
    pub chunk_bytes: u32,
    /// Time at which the upload began.
    pub began: Timestamp,
    /// Time from which on the upload no longer exists.
    pub expires: Timestamp,
    /// Attributes of the object.
    pub attributes: ObjectAttributes,
    /// Whether the row holds the whole chunks of an unfinished put. Calls for uploads do not find it. Its mode is
    /// `Append`.
    pub(crate) is_put: bool,
}

impl UploadInfo {
    /// Size in bytes of a part; `None` for an upload in append mode.
    #[must_use]
    pub fn part_bytes(&self) -> Option<u64> {
        match self.mode {
            UploadMode::Append => None,
            UploadMode::Parts { chunks } => Some(u64::from(chunks) * u64::from(self.chunk_bytes)),
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(128);
        bytes.extend_from_slice(&self.began.0.to_le_bytes());
        bytes.extend_from_slice(&self.expires.0.to_le_bytes());
        bytes.extend_from_slice(&self.len.to_le_bytes());
        bytes.extend_from_slice(&self.chunk_bytes.to_le_bytes());
        let chunks = match self.mode {
            UploadMode::Append if self.is_put => PUT,
            UploadMode::Append => 0,
            UploadMode::Parts { chunks } => chunks,
        };
        bytes.extend_from_slice(&chunks.to_le_bytes());
        bytes.extend_from_slice(&(self.name.len() as u16).to_le_bytes());
        bytes.extend_from_slice(self.name.as_bytes());
        self.attributes.encode_to(&mut bytes);
        bytes
    }

    pub(crate) fn decode(id: u64, bytes: &[u8]) -> Result<Self> {
        let mut fields = Fields::new("upload", bytes);
        let (began, expires, len) = (fields.time()?, fields.time()?, fields.u64()?);
        let chunk_bytes = fields.u32()?;
        check_division(&fields, len, chunk_bytes)?;
        let chunks = fields.u32()?;
        let mode = match chunks {
            0 | PUT => UploadMode::Append,
            chunks @ 1..=PART_CHUNKS_MAX => UploadMode::Parts { chunks },
            other => return Err(fields.error(other, "at most 1024 chunks of a part")),
        };
        let name_bytes = usize::from(fields.u16()?);
        let name = name_of(fields.text(name_bytes)?.as_bytes())?.to_owned();
        Ok(Self {
            id: UploadId(id),
            name,
            mode,
            len,
            chunk_bytes,
            began,
            expires,
            attributes: ObjectAttributes::decode(&mut fields)?,
            is_put: chunks == PUT,
        })
    }
}

/// A stored part of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UploadPart {
    /// Number of the part, from 0.
    pub number: u32,
    /// Size in bytes.
    pub bytes: u64,
    /// Hash of the hashes of its chunks, computed like the hash of an object.
    pub hash: ContentHash,
}
