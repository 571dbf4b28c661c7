//! Uploads: objects whose bytes arrive over several transactions, in order or in numbered parts.

use crate::messages::bucket_mut::BucketMut;
use crate::types::error::Result;
use std::time::Duration;
use tidalite_messages::{
    ObjectAttributes, UploadAppend, UploadCompletion, UploadId, UploadMode, UploadOutcome,
    nanoseconds,
};

impl BucketMut<'_> {
    /// Begins an upload. [`maintain`](Self::maintain) removes it if it is not complete when `lifetime` has passed. Its
    /// bytes are stored with each commit, so it can continue after a restart:
    /// [`Bucket::upload`](crate::objects::Bucket::upload) returns the number of stored bytes.
    ///
    /// # Errors
    /// [`Limit`](crate::ErrorKind::Limit) for a name or attributes that are too long, and for too many uploads;
    /// `InvalidName` for an empty name; `InvalidInput` for parts of a size that is not allowed. A full disk; a damaged
    /// page.
    pub fn begin_upload(
        &mut self,
        name: &str,
        attributes: ObjectAttributes,
        mode: UploadMode,
        lifetime: Duration,
    ) -> Result<UploadId> {
        let lifetime = nanoseconds(lifetime);
        self.change(|bucket, now| {
            let times = (now, now.saturating_add(lifetime));
            bucket.begin_upload(name, attributes, mode, times)
        })
    }

    /// Appends bytes to an upload at an offset, which must be the number of bytes stored so far.
    ///
    /// # Errors
    /// `Limit` if there is no room for the bytes; `WrongType` for an upload in parts. A full disk; a damaged page.
    pub fn append_upload(
        &mut self,
        id: UploadId,
        offset: u64,
        bytes: &[u8],
    ) -> Result<UploadAppend> {
        self.change(|bucket, now| bucket.append(id, offset, bytes, now))
    }

    /// Stores a numbered part of an upload, replacing the part with this number; numbers begin at 0. Returns false if
    /// the upload does not exist.
    ///
    /// # Errors
    /// `Limit` if there is no room for the bytes; `WrongType` for an upload of the other mode; `InvalidInput` for an
    /// empty part. A full disk; a damaged page.
    pub fn put_part(&mut self, id: UploadId, number: u32, bytes: &[u8]) -> Result<bool> {
        self.change(|bucket, now| bucket.put_part(id, number, bytes, now))
    }

    /// Turns the bytes of an upload into an object, which replaces the object with the same name. Nothing is copied.
    ///
    /// # Errors
    /// `Limit` if there is no room for the object; the upload then stays. A full disk; a damaged page.
    pub fn complete_upload(
        &mut self,
        id: UploadId,
        completion: &UploadCompletion,
    ) -> Result<UploadOutcome> {
        self.change(|bucket, now| bucket.complete_upload(id, completion, now))
    }

    /// Gives an upload more time, counted from now; returns false if it does not exist.
    ///
    /// # Errors
    /// A full disk; a damaged page.
    pub fn extend_upload(&mut self, id: UploadId, lifetime: Duration) -> Result<bool> {
        let lifetime = nanoseconds(lifetime);
        self.change(|bucket, now| bucket.extend_upload(id, now, now.saturating_add(lifetime)))
    }

    /// Removes an upload and its bytes; returns false if it does not exist.
    ///
    /// # Errors
    /// A full disk; a damaged page.
    pub fn abort_upload(&mut self, id: UploadId) -> Result<bool> {
        self.free(|bucket, _| bucket.abort_upload(id))
    }
}
