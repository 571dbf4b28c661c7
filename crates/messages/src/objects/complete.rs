//! Completing an upload: its chunks become the contents of an object without being copied.

use crate::objects::append::tail;
use crate::objects::bucket::BucketWriter;
use crate::objects::chunks::each_hash;
use crate::objects::condition::{ObjectCondition, ObjectOutcome};
use crate::objects::content_hash::{ChunkHashes, ContentHash};
use crate::objects::keys::check_chunk_count;
use crate::objects::manifest::ObjectInfo;
use crate::objects::parts::damaged;
use crate::objects::room::{Contents, StoredObject};
use crate::objects::upload::{UploadId, UploadInfo, UploadMode};
use tidalite_pager::{PageWrite, Result};

/// Requirements for completing an upload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UploadCompletion {
    /// Size in bytes that the object must have.
    pub size: Option<u64>,
    /// Hash that the object must have.
    pub hash: Option<ContentHash>,
    /// Condition on the object that currently has the name.
    pub condition: ObjectCondition,
}

/// Outcome of completing an upload. Unless it is `Done`, the upload does not change.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UploadOutcome {
    /// The object is stored.
    Done(Box<StoredObject>),
    /// The condition does not hold. The value is the object that has the name, if any.
    Refused(Option<Box<ObjectInfo>>),
    /// A part is missing, or is shorter than the others and not the last one.
    MissingPart {
        /// Number of the part.
        number: u32,
    },
    /// The object would have another size.
    WrongSize {
        /// Size in bytes of the stored bytes.
        found: u64,
    },
    /// The object would have another hash.
    WrongHash {
        /// Hash of the stored bytes.
        found: ContentHash,
    },
    /// The upload does not exist, or has expired.
    NotFound,
}

impl<W: PageWrite> BucketWriter<'_, W> {
    /// Turns the bytes of an upload into an object, which replaces the object with the same name.
    ///
    /// # Errors
    /// `Limit` if there is no room for the object; the upload then stays.
    ///
    /// # Cost
    /// Reads the hash of each chunk, and writes the last chunk of an upload in append mode; other chunks are neither
    /// read nor written.
    pub fn complete_upload(
        &mut self,
        id: UploadId,
        completion: &UploadCompletion,
        now: i64,
    ) -> Result<UploadOutcome> {
        let Some(upload) = self.reader().upload(id, now)? else {
            return Ok(UploadOutcome::NotFound);
        };
        match upload.mode {
            UploadMode::Append => {
                let last = tail(self.root, self.w, &upload)?;
                let size = upload.len;
                self.complete(&upload, size, &last, completion, now)
            }
            UploadMode::Parts { .. } => self.complete(&upload, upload.len, &[], completion, now),
        }
    }

    /// Completes an upload whose whole chunks are stored; `last` is its last chunk if not empty. All chunks together
    /// have `size` bytes.
    pub(crate) fn complete(
        &mut self,
        upload: &UploadInfo,
        size: u64,
        last: &[u8],
        completion: &UploadCompletion,
        now: i64,
    ) -> Result<UploadOutcome> {
        check_chunk_count(size, upload.chunk_bytes)?;
        let mut hashes = ChunkHashes::default();
        let (mut next, mut stored, mut gap) = (0, 0, None);
        each_hash(self.root, self.w, (upload.id.0, 0), &mut |index, chunk| {
            // Only the last chunk may be shorter than the others, so all chunks so far must be whole.
            let whole = u64::from(next) * u64::from(upload.chunk_bytes);
            if index != next || stored != whole {
                gap = Some(if stored == whole { next } else { next - 1 });
                return Ok(false);
            }
            hashes.push(&chunk.hash);
            stored += u64::from(chunk.len);
            next = index.saturating_add(1);
            Ok(true)
        })?;
        match (upload.mode, gap) {
            (UploadMode::Parts { chunks }, Some(index)) => {
                let number = index / chunks;
                return Ok(UploadOutcome::MissingPart { number });
            }
            _ if gap.is_some() || stored + last.len() as u64 != size => {
                let found = format!("{stored} bytes in chunks, {} behind them", last.len());
                return Err(damaged("upload", found, format!("{size} bytes")));
            }
            _ => {}
        }
        if completion.size.is_some_and(|expected| expected != size) {
            return Ok(UploadOutcome::WrongSize { found: size });
        }
        if !last.is_empty() {
            hashes.push(&ContentHash::of_chunk(last));
        }
        let hash = hashes.finish();
        if completion.hash.is_some_and(|expected| expected != hash) {
            return Ok(UploadOutcome::WrongHash { found: hash });
        }
        let place = match self.prepare(&upload.name, size, &completion.condition, None, now)? {
            ObjectOutcome::Done(place) => place,
            ObjectOutcome::Refused(object) => return Ok(UploadOutcome::Refused(object)),
            ObjectOutcome::NotFound => return Ok(UploadOutcome::NotFound),
        };
        if !last.is_empty() {
            self.store_chunk(upload.id.0, next, last)?;
            self.remove_tail(upload.id.0)?;
        }
        self.unlink_upload(upload)?;
        let contents = Contents {
            id: upload.id.0,
            size,
            chunk_bytes: upload.chunk_bytes,
            hash,
        };
        let stored = self.place(
            place,
            &upload.name,
            &contents,
            upload.attributes.clone(),
            now,
        )?;
        Ok(UploadOutcome::Done(Box::new(stored)))
    }
}
