//! Options of a bucket.
//!
//! ```text
//!  0  u32   size of a chunk
//!  4  u32   overflow policy: 0 = reject, 1 = rotate
//!  8  u64   maximum size of an object
//! 16  u64   maximum number of objects
//! 24  u64   maximum size of all objects
//! 32  u64   maximum number of uploads
//! ```

use crate::objects::fields::Fields;
use crate::objects::keys::{CHUNK_BYTES_DEFAULT, CHUNK_BYTES_MAX, CHUNK_BYTES_MIN};
use crate::options::{self, maximum, most};
use tidalite_pager::Result;

/// The treatment of a put that would exceed the maximum number or size of all objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BucketOverflow {
    /// The put fails with `Limit`. Expired objects make room, however.
    #[default]
    Reject,
    /// The oldest objects that are not protected are removed.
    DropOldest,
}

/// Options of a bucket. They can be changed later; the size of chunks then holds for later objects only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketOptions {
    /// Size in bytes of a chunk, from [`CHUNK_BYTES_MIN`] to [`CHUNK_BYTES_MAX`].
    pub chunk_bytes: u32,
    /// The treatment of a put that exceeds `objects_max` or `bytes_max`.
    pub overflow: BucketOverflow,
    /// Maximum size in bytes of an object; `None`: no maximum.
    pub object_bytes_max: Option<u64>,
    /// Maximum number of objects; `None`: no maximum.
    pub objects_max: Option<u64>,
    /// Maximum size in bytes of all objects together; `None`: no maximum. A copy counts like any other object, although
    /// it shares the chunks of its source. Uploads together have the same maximum, apart from the objects.
    pub bytes_max: Option<u64>,
    /// Maximum number of uploads that are neither complete nor removed.
    pub uploads_max: u64,
}

/// Default maximum number of uploads.
const UPLOADS_MAX_DEFAULT: u64 = 10_000;

impl Default for BucketOptions {
    fn default() -> Self {
        Self {
            chunk_bytes: CHUNK_BYTES_DEFAULT,
            overflow: BucketOverflow::Reject,
            object_bytes_max: None,
            objects_max: None,
            bytes_max: None,
            uploads_max: UPLOADS_MAX_DEFAULT,
        }
    }
}

impl BucketOptions {
    /// Returns a text that says why the options cannot be used; `None` if they can.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let maxima = [self.object_bytes_max, self.objects_max, self.bytes_max];
        if let Some(problem) = options::problem_of(&maxima) {
            return Some(problem);
        }
        let (found, sizes) = (self.chunk_bytes, CHUNK_BYTES_MIN..=CHUNK_BYTES_MAX);
        (!sizes.contains(&found)).then(|| {
            format!("chunks of {found} bytes, {CHUNK_BYTES_MIN} to {CHUNK_BYTES_MAX} can be")
        })
    }

    pub(crate) fn checked(self) -> Result<Self> {
        options::check(self.problem()).map(|()| self)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = self.chunk_bytes.to_le_bytes().to_vec();
        let rotates = self.overflow == BucketOverflow::DropOldest;
        bytes.extend_from_slice(&u32::from(rotates).to_le_bytes());
        let limits = [
            most(self.object_bytes_max),
            most(self.objects_max),
            most(self.bytes_max),
            self.uploads_max,
        ];
        for limit in limits {
            bytes.extend_from_slice(&limit.to_le_bytes());
        }
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut fields = Fields::new("options of a bucket", bytes);
        let options = Self {
            chunk_bytes: fields.u32()?,
            overflow: match fields.u32()? {
                0 => BucketOverflow::Reject,
                1 => BucketOverflow::DropOldest,
                other => return Err(fields.error(other, "0 or 1")),
            },
            object_bytes_max: maximum(fields.u64()?),
            objects_max: maximum(fields.u64()?),
            bytes_max: maximum(fields.u64()?),
            uploads_max: fields.u64()?,
        };
        fields.end()?;
        match options.problem() {
            Some(problem) => Err(fields.error(problem, "options")),
            None => Ok(options),
        }
    }
}
