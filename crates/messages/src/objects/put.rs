//! Putting an object: from bytes in memory, or from a stream of unknown size.

use crate::objects::attributes::ObjectAttributes;
use crate::objects::bucket::BucketWriter;
use crate::objects::complete::{UploadCompletion, UploadOutcome};
use crate::objects::condition::{ObjectCondition, ObjectOutcome};
use crate::objects::content_hash::{ChunkHashes, ContentHash};
use crate::objects::keys::{check_chunk_count, check_name};
use crate::objects::room::{Contents, StoredObject};
use crate::objects::upload::{UploadId, UploadInfo, UploadMode};
use tidalite_pager::{Error, PageWrite, Refusal, Result};

/// Time in nanoseconds after which `maintain` removes the chunks of a put that was neither finished nor aborted: a day.
pub const PUT_ABANDONED_AFTER_NS: i64 = 24 * 3600 * 1_000_000_000;

/// A put of an object whose bytes arrive in slices of any length.
///
/// A put holds at most one chunk in memory. Its whole chunks are stored as an upload, so a put that is dropped does not
/// leave chunks for ever: `maintain` removes them after [`PUT_ABANDONED_AFTER_NS`]. The put may extend over several
/// transactions. From its second chunk on it counts as an upload in the limits of the bucket.
///
/// A put does not survive the rollback of a transaction in which it wrote: its chunks are gone, and another upload may
/// get their content id. Therefore each call compares the row of the upload with the put: the mark, the name, the start
/// time and the number of bytes. If they differ, `write` and `finish` fail, and `abort` does nothing. Another put that
/// began after the rollback with the same name, time and number of bytes cannot be distinguished, so drop a put when
/// its transaction is rolled back.
#[derive(Debug)]
pub struct ObjectPut {
    name: String,
    attributes: ObjectAttributes,
    condition: ObjectCondition,
    began: i64,
    chunk_bytes: u32,
    /// The upload that holds the whole chunks; `None` before the first one.
    upload: Option<UploadId>,
    /// Number of bytes in whole chunks.
    stored: u64,
    /// Bytes after the last whole chunk.
    last: Vec<u8>,
    /// Whether a write has failed, so that bytes are missing.
    failed: bool,
}

impl ObjectPut {
    /// Begins a put.
    ///
    /// # Errors
    /// `Limit` for a name or attributes that are too long; `InvalidName` for an empty name.
    pub fn new<W: PageWrite>(
        bucket: &BucketWriter<'_, W>,
        name: &str,
        attributes: ObjectAttributes,
        condition: ObjectCondition,
        now: i64,
    ) -> Result<Self> {
        check_name(name)?;
        attributes.check()?;
        Ok(Self {
            name: name.to_owned(),
            attributes,
            condition,
            began: now,
            chunk_bytes: bucket.options().chunk_bytes,
            upload: None,
            stored: 0,
            last: Vec::new(),
            failed: false,
        })
    }

    /// Number of bytes written so far.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.stored + self.last.len() as u64
    }

    /// Adds the next bytes of the object.
    ///
    /// # Errors
    /// `Limit` if the object becomes too large: the put can only be aborted then. `NotFound` if its chunks were removed
    /// because it took longer than [`PUT_ABANDONED_AFTER_NS`], or were rolled back; `InvalidInput` after a write that
    /// failed: a put whose write has failed lacks bytes and can only be aborted.
    ///
    /// # Cost
    /// Writes each chunk once. Bytes that form a whole chunk by themselves are not copied in memory.
    pub fn write<W: PageWrite>(
        &mut self,
        bucket: &mut BucketWriter<'_, W>,
        bytes: &[u8],
    ) -> Result<()> {
        self.check_complete()?;
        self.failed = true;
        self.write_slice(bucket, bytes)?;
        self.failed = false;
        Ok(())
    }

    fn write_slice<W: PageWrite>(
        &mut self,
        bucket: &mut BucketWriter<'_, W>,
        mut bytes: &[u8],
    ) -> Result<()> {
        let size = self.size().saturating_add(bytes.len() as u64);
        bucket.check_size(size)?;
        check_chunk_count(size, self.chunk_bytes)?;
        let chunk = self.chunk_bytes as usize;
        while !bytes.is_empty() {
            if self.last.len() == chunk {
                let whole = std::mem::take(&mut self.last);
                let stored = self.store(bucket, &whole);
                self.last = whole;
                stored?;
                self.last.clear();
            }
            // The last chunk is kept in memory, because an object of one chunk needs no upload.
            if self.last.is_empty() && bytes.len() > chunk {
                let (whole, rest) = bytes.split_at(chunk);
                self.store(bucket, whole)?;
                bytes = rest;
                continue;
            }
            let (now, later) = bytes.split_at(bytes.len().min(chunk - self.last.len()));
            self.last.extend_from_slice(now);
            bytes = later;
        }
        Ok(())
    }

    /// Finishes the put: the object replaces the object with the same name.
    ///
    /// # Errors
    /// `Limit` if there is no room for the object; the put is aborted then. `InvalidInput` if a write has failed, and
    /// `NotFound` if the chunks of the put were removed or rolled back; nothing is changed then.
    ///
    /// # Cost
    /// Writes the last chunk, and reads the hash of each chunk.
    pub fn finish<W: PageWrite>(
        self,
        bucket: &mut BucketWriter<'_, W>,
        now: i64,
    ) -> Result<ObjectOutcome<StoredObject>> {
        self.check_complete()?;
        let Some(id) = self.upload else {
            let (attributes, last) = (self.attributes, self.last);
            return bucket.put_chunk(
                &self.name,
                self.chunk_bytes,
                &last,
                (attributes, &self.condition),
                now,
            );
        };
        let Some(upload) = self.own_upload(bucket, id)? else {
            return Err(abandoned());
        };
        let size = self.stored + self.last.len() as u64;
        let completion = UploadCompletion {
            condition: self.condition,
            ..UploadCompletion::default()
        };
        match bucket.complete(&upload, size, &self.last, &completion, now) {
            Ok(UploadOutcome::Done(stored)) => Ok(ObjectOutcome::Done(*stored)),
            Ok(UploadOutcome::Refused(object)) => {
                bucket.remove_upload(&upload)?;
                Ok(ObjectOutcome::Refused(object))
            }
            Ok(_) => Err(abandoned()),
            Err(error @ Error::Limit { .. }) => {
                bucket.remove_upload(&upload)?;
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Aborts the put and removes its chunks. Does nothing if they were already removed or rolled back.
    ///
    /// # Errors
    /// A damaged or unreadable page, a full disk.
    pub fn abort<W: PageWrite>(self, bucket: &mut BucketWriter<'_, W>) -> Result<()> {
        let Some(id) = self.upload else {
            return Ok(());
        };
        match self.own_upload(bucket, id)? {
            Some(upload) => bucket.remove_upload(&upload),
            None => Ok(()),
        }
    }

    fn check_complete(&self) -> Result<()> {
        if self.failed {
            return Err(Error::refused(
                Refusal::InvalidInput,
                "a put of which a write has failed",
                "a put without failures: abort it and put the object again",
            ));
        }
        Ok(())
    }

    /// The upload of this put; `None` if it was removed or rolled back, or if another upload now has its id.
    fn own_upload<W: PageWrite>(
        &self,
        bucket: &BucketWriter<'_, W>,
        id: UploadId,
    ) -> Result<Option<UploadInfo>> {
        let upload = bucket.reader().upload_row(id)?;
        Ok(upload.filter(|upload| {
            upload.is_put
                && upload.len == self.stored
                && upload.name == self.name
                && upload.began.0 == self.began
        }))
    }

    /// Stores a whole chunk in the upload, which is created for the first chunk.
    fn store<W: PageWrite>(
        &mut self,
        bucket: &mut BucketWriter<'_, W>,
        whole: &[u8],
    ) -> Result<()> {
        let id = match self.upload {
            Some(id) => id,
            None => {
                let times = (
                    self.began,
                    self.began.saturating_add(PUT_ABANDONED_AFTER_NS),
                );
                let id = bucket.insert_upload(
                    &self.name,
                    self.attributes.clone(),
                    UploadMode::Append,
                    times,
                    (self.chunk_bytes, true),
                )?;
                *self.upload.insert(id)
            }
        };
        let Some(upload) = self.own_upload(bucket, id)? else {
            return Err(abandoned());
        };
        self.stored = bucket.append_to(upload, whole)?;
        Ok(())
    }
}

#[cold]
fn abandoned() -> Error {
    Error::refused(
        Refusal::NotFound,
        "a put whose chunks were removed, changed or rolled back",
        "a put that is finished within a day: put the object again",
    )
}

impl<W: PageWrite> BucketWriter<'_, W> {
    /// Puts an object whose bytes are in memory. It replaces the object with the same name.
    ///
    /// # Errors
    /// `Limit` for a name or attributes that are too long, an object that is too large, and if there is no room for it;
    /// `InvalidName` for an empty name.
    ///
    /// # Cost
    /// A few descents; writes the bytes once.
    pub fn put(
        &mut self,
        name: &str,
        bytes: &[u8],
        attributes: ObjectAttributes,
        condition: &ObjectCondition,
        now: i64,
    ) -> Result<ObjectOutcome<StoredObject>> {
        let mut put = ObjectPut::new(self, name, attributes, *condition, now)?;
        match put.write(self, bytes) {
            Ok(()) => put.finish(self, now),
            Err(error @ Error::Limit { .. }) => {
                put.abort(self)?;
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Stores an object of at most one chunk.
    fn put_chunk(
        &mut self,
        name: &str,
        chunk_bytes: u32,
        bytes: &[u8],
        (attributes, condition): (ObjectAttributes, &ObjectCondition),
        now: i64,
    ) -> Result<ObjectOutcome<StoredObject>> {
        let size = bytes.len() as u64;
        // If no content id is left, this fails before an object is removed to make room.
        self.next_content()?;
        let place = match self.prepare(name, size, condition, None, now)? {
            ObjectOutcome::Done(place) => place,
            ObjectOutcome::Refused(object) => return Ok(ObjectOutcome::Refused(object)),
            ObjectOutcome::NotFound => return Ok(ObjectOutcome::NotFound),
        };
        let id = self.take_content()?;
        let mut hashes = ChunkHashes::default();
        if !bytes.is_empty() {
            let hash: ContentHash = self.store_chunk(id, 0, bytes)?;
            hashes.push(&hash);
        }
        let contents = Contents {
            id,
            size,
            chunk_bytes,
            hash: hashes.finish(),
        };
        self.place(place, name, &contents, attributes, now)
            .map(ObjectOutcome::Done)
    }
}
