//! Uploads: objects whose bytes arrive over several transactions.
//!
//! The id of an upload is the content id of its chunks, so completing it stores a manifest and copies nothing.

use crate::objects::attributes::ObjectAttributes;
use crate::objects::bucket::BucketWriter;
use crate::objects::keys::{check_name, time_key};
use crate::objects::parts::Part;
use crate::objects::room::too_large;
use crate::objects::upload::{PART_CHUNKS_MAX, UploadId, UploadInfo, UploadMode};
use tidalite_pager::{Error, PageWrite, Refusal, Result};
use tidalite_time::Timestamp;

impl<W: PageWrite> BucketWriter<'_, W> {
    /// Begins an upload. `times` are the current time and the expiry of the upload: if it is not complete by then,
    /// `maintain` removes it.
    ///
    /// # Errors
    /// `Limit` for a name or attributes that are too long, and for too many uploads; `InvalidName` for an empty name;
    /// `InvalidInput` for a size of parts outside 1 to [`PART_CHUNKS_MAX`] chunks.
    pub fn begin_upload(
        &mut self,
        name: &str,
        attributes: ObjectAttributes,
        mode: UploadMode,
        times: (i64, i64),
    ) -> Result<UploadId> {
        let chunk_bytes = self.options.chunk_bytes;
        self.insert_upload(name, attributes, mode, times, (chunk_bytes, false))
    }

    /// Like `begin_upload`, but with a given size of chunks and a flag that marks a put.
    pub(crate) fn insert_upload(
        &mut self,
        name: &str,
        attributes: ObjectAttributes,
        mode: UploadMode,
        (now, expires): (i64, i64),
        (chunk_bytes, is_put): (u32, bool),
    ) -> Result<UploadId> {
        check_name(name)?;
        attributes.check()?;
        if let UploadMode::Parts { chunks } = mode
            && !(1..=PART_CHUNKS_MAX).contains(&chunks)
        {
            return Err(Error::refused(
                Refusal::InvalidInput,
                format!("parts of {chunks} chunks"),
                format!("1 to {PART_CHUNKS_MAX} chunks"),
            ));
        }
        let uploads = self.state.uploads.saturating_add(1);
        if uploads > self.options.uploads_max {
            return Err(too_large(
                "uploads of the bucket",
                uploads,
                self.options.uploads_max,
            ));
        }
        let upload = UploadInfo {
            id: UploadId(self.take_content()?),
            name: name.to_owned(),
            mode,
            len: 0,
            chunk_bytes,
            began: Timestamp(now),
            expires: Timestamp(expires),
            attributes,
            is_put,
        };
        self.state.uploads = uploads;
        let id = upload.id.0.to_be_bytes();
        self.insert(Part::UploadExpiry, &time_key(upload.expires, &id), b"")?;
        self.save_upload(&upload)?;
        self.save()?;
        Ok(upload.id)
    }

    /// Changes the time at which an upload expires; returns false if the upload does not exist.
    ///
    /// # Errors
    /// A damaged or unreadable page, a full disk.
    pub fn extend_upload(&mut self, id: UploadId, now: i64, expires: i64) -> Result<bool> {
        let Some(mut upload) = self.reader().upload(id, now)? else {
            return Ok(false);
        };
        let key = id.0.to_be_bytes();
        self.remove(Part::UploadExpiry, &time_key(upload.expires, &key))?;
        upload.expires = Timestamp(expires);
        self.insert(Part::UploadExpiry, &time_key(upload.expires, &key), b"")?;
        self.save_upload(&upload)?;
        Ok(true)
    }

    /// Removes an upload and its bytes; returns false if it does not exist.
    ///
    /// # Errors
    /// A damaged or unreadable page, a full disk.
    ///
    /// # Cost
    /// Frees up to [`CHUNKS_FREED_AT_ONCE`](crate::CHUNKS_FREED_AT_ONCE) chunks; the chunks of a larger upload are
    /// freed by `maintain`.
    pub fn abort_upload(&mut self, id: UploadId) -> Result<bool> {
        match self.reader().upload_row(id)? {
            Some(upload) if !upload.is_put => self.remove_upload(&upload).map(|()| true),
            _ => Ok(false),
        }
    }

    /// Removes an upload or a put, and its bytes.
    pub(crate) fn remove_upload(&mut self, upload: &UploadInfo) -> Result<()> {
        self.unlink_upload(upload)?;
        self.remove_tail(upload.id.0)?;
        self.discard(upload.id.0)?;
        self.save()
    }

    pub(crate) fn save_upload(&mut self, upload: &UploadInfo) -> Result<()> {
        let key = upload.id.0.to_be_bytes();
        self.insert(Part::Uploads, &key, &upload.encode())
    }

    /// Removes the rows of an upload, except its bytes.
    pub(crate) fn unlink_upload(&mut self, upload: &UploadInfo) -> Result<()> {
        let key = upload.id.0.to_be_bytes();
        self.remove(Part::UploadExpiry, &time_key(upload.expires, &key))?;
        self.state.remove_upload(upload.len);
        self.remove(Part::Uploads, &key).map(drop)
    }

    /// Removes the bytes after the last whole chunk of an upload.
    pub(crate) fn remove_tail(&mut self, id: u64) -> Result<()> {
        let (from, to) = (id.to_be_bytes(), id.saturating_add(1).to_be_bytes());
        self.change(Part::Tails, &mut |w, table| {
            table.remove_range(w, &from, &to)
        })?;
        Ok(())
    }

    /// Checks that an upload may grow to this size while all uploads together grow by `added` bytes. If `added` is 0,
    /// the total is not checked: it may already exceed a limit that was lowered.
    pub(crate) fn check_growth(&self, size: u64, added: u64) -> Result<()> {
        self.check_size(size)?;
        let all = self.state.upload_bytes.saturating_add(added);
        let limit = self.bytes_max();
        if added > 0 && all > limit {
            return Err(too_large("bytes of all uploads of the bucket", all, limit));
        }
        Ok(())
    }
}
