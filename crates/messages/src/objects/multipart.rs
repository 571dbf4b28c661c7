//! Uploads in numbered parts.
//!
//! If a part has c chunks, part n consists of the chunks from n * c on. So parts can arrive in any order, and their
//! chunks are chunks of the object as soon as they are stored.

use crate::objects::bucket::BucketWriter;
use crate::objects::chunks::each_hash;
use crate::objects::content_hash::ChunkHashes;
use crate::objects::keys::OBJECT_CHUNKS_MAX;
use crate::objects::read::BucketReader;
use crate::objects::room::too_large;
use crate::objects::upload::{UploadId, UploadMode, UploadPart};
use tidalite_pager::{Error, PageRead, PageWrite, Refusal, Result};

impl<W: PageWrite> BucketWriter<'_, W> {
    /// Stores a part of an upload, or replaces it; returns false if the upload does not exist or has expired. Every
    /// part except the last must have exactly the size of a part
    /// ([`UploadInfo::part_bytes`](crate::UploadInfo::part_bytes)); this is checked when the upload is completed.
    ///
    /// # Errors
    /// `WrongType` for an upload by appending; `InvalidInput` for an empty part; `Limit` for a part that is too long, a
    /// number that is too large, and an object that becomes too large.
    ///
    /// # Cost
    /// Writes the bytes once.
    pub fn put_part(&mut self, id: UploadId, number: u32, bytes: &[u8], now: i64) -> Result<bool> {
        let Some(mut upload) = self.reader().upload(id, now)? else {
            return Ok(false);
        };
        let (UploadMode::Parts { chunks }, Some(part_bytes)) = (upload.mode, upload.part_bytes())
        else {
            return Err(Error::refused(
                Refusal::WrongType,
                "a part of an upload by appending",
                "an append, or an upload in parts",
            ));
        };
        let len = bytes.len() as u64;
        if bytes.is_empty() {
            return Err(Error::refused(
                Refusal::InvalidInput,
                "a part without bytes",
                "a part of at least one byte",
            ));
        }
        if len > part_bytes {
            return Err(too_large("bytes of a part of an upload", len, part_bytes));
        }
        let first = u64::from(number) * u64::from(chunks);
        let end = first + u64::from(chunks);
        if end > OBJECT_CHUNKS_MAX {
            return Err(too_large("chunks of an object", end, OBJECT_CHUNKS_MAX));
        }
        self.check_size(
            u64::from(number)
                .saturating_mul(part_bytes)
                .saturating_add(len),
        )?;
        let range = (first as u32, end as u32);
        let mut replaced = 0;
        each_hash(self.root, self.w, (id.0, range.0), &mut |index, chunk| {
            let inside = index < range.1;
            replaced += if inside { u64::from(chunk.len) } else { 0 };
            Ok(inside)
        })?;
        let size = upload.len.saturating_sub(replaced).saturating_add(len);
        self.check_growth(size, len.saturating_sub(replaced))?;
        self.free_chunks(id.0, range, u64::MAX)?;
        for (index, chunk) in (range.0..).zip(bytes.chunks(upload.chunk_bytes as usize)) {
            self.store_chunk(id.0, index, chunk)?;
        }
        let others = self.state.upload_bytes.saturating_sub(upload.len);
        self.state.upload_bytes = others.saturating_add(size);
        upload.len = size;
        self.save_upload(&upload)?;
        self.save()?;
        Ok(true)
    }
}

impl<R: PageRead> BucketReader<R> {
    /// Lists at most `limit` stored parts of an upload, beginning with number `from`; for an upload in append mode, its
    /// whole chunks. To continue, call again with the number after the last one.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// Reads a short row for each chunk.
    pub fn upload_parts(&self, id: UploadId, from: u32, limit: usize) -> Result<Vec<UploadPart>> {
        let mut parts: Vec<UploadPart> = Vec::new();
        let Some(upload) = self.upload_row(id)?.filter(|upload| !upload.is_put) else {
            return Ok(parts);
        };
        let chunks = match upload.mode {
            UploadMode::Append => 1,
            UploadMode::Parts { chunks } => chunks,
        };
        let Some(first) = from.checked_mul(chunks) else {
            return Ok(parts);
        };
        let mut hashes = ChunkHashes::default();
        each_hash(&self.root, &self.r, (id.0, first), &mut |index, chunk| {
            let number = index / chunks;
            if parts.last().is_none_or(|last| last.number != number) {
                if parts.len() >= limit {
                    return Ok(false);
                }
                hashes = ChunkHashes::default();
                parts.push(UploadPart {
                    number,
                    bytes: 0,
                    hash: hashes.finish(),
                });
            }
            hashes.push(&chunk.hash);
            if let Some(last) = parts.last_mut() {
                last.bytes += u64::from(chunk.len);
                last.hash = hashes.finish();
            }
            Ok(true)
        })?;
        Ok(parts)
    }
}
