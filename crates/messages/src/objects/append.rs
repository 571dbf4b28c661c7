//! Appending to an upload.
//!
//! Whole chunks are stored as chunks. Bytes after the last whole chunk are rows of the table of tails, one for each
//! append, until they fill a chunk. So each byte is written at most twice, however short the appends are.

use crate::objects::bucket::BucketWriter;
use crate::objects::keys::{check_chunk_count, id_of, tail_key};
use crate::objects::parts::{Part, damaged, part};
use crate::objects::upload::{UploadId, UploadInfo, UploadMode};
use tidalite_kv::Tree;
use tidalite_pager::{Error, PageRead, PageWrite, Refusal, Result};

const ID_BYTES: usize = 8;

/// Outcome of an append to an upload.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UploadAppend {
    /// The bytes are stored; the upload now has `len` bytes.
    Done {
        /// Number of bytes of the upload.
        len: u64,
    },
    /// The next append must begin at another offset. Nothing was changed.
    Expected {
        /// Number of bytes of the upload: the offset of the next append.
        offset: u64,
    },
    /// The upload does not exist, or has expired.
    NotFound,
}

/// Number of bytes after the last whole chunk, for an upload in append mode.
pub(crate) fn tail_len(upload: &UploadInfo) -> u64 {
    upload.len % u64::from(upload.chunk_bytes)
}

/// Reads the bytes after the last whole chunk of an upload in append mode.
pub(crate) fn tail<R: PageRead>(root: &Tree, r: &R, upload: &UploadInfo) -> Result<Vec<u8>> {
    let len = tail_len(upload);
    let begin = upload.len - len;
    let mut bytes = Vec::new();
    let table = part(root, r, Part::Tails)?;
    let mut rows = table.cursor(r)?;
    let mut there = rows.seek_ge(&upload.id.0.to_be_bytes())?;
    while there {
        let key = rows.key();
        let (id, offset) = key.split_at_checked(ID_BYTES).unwrap_or((key, &[]));
        if id_of(id)? != upload.id.0 {
            break;
        }
        let value = rows.value()?;
        let reached = bytes.len() as u64;
        if offset != (begin + reached).to_be_bytes() || value.len() > len - reached {
            let found = format!("{} bytes at {}", value.len(), offset.escape_ascii());
            return Err(damaged(
                "tail of an upload",
                found,
                format!("{len} bytes from {begin}"),
            ));
        }
        bytes.extend_from_slice(&value.bytes()?);
        there = rows.next()?;
    }
    if bytes.len() as u64 != len {
        let found = format!("{} bytes", bytes.len());
        return Err(damaged("tail of an upload", found, format!("{len} bytes")));
    }
    Ok(bytes)
}

impl<W: PageWrite> BucketWriter<'_, W> {
    /// Appends bytes to an upload. `offset` must be the number of bytes stored so far, so that a repeated call stores
    /// nothing twice.
    ///
    /// # Errors
    /// `WrongType` for an upload in parts; `Limit` if the object becomes too large.
    ///
    /// # Cost
    /// Writes each byte once as part of a whole chunk. Bytes that do not fill a chunk yet are also written once before
    /// that.
    pub fn append(
        &mut self,
        id: UploadId,
        offset: u64,
        bytes: &[u8],
        now: i64,
    ) -> Result<UploadAppend> {
        let Some(upload) = self.reader().upload(id, now)? else {
            return Ok(UploadAppend::NotFound);
        };
        if upload.mode != UploadMode::Append {
            return Err(Error::refused(
                Refusal::WrongType,
                "an append to an upload in parts",
                "numbered parts, or an upload by appending",
            ));
        }
        if offset != upload.len {
            return Ok(UploadAppend::Expected { offset: upload.len });
        }
        let len = self.append_to(upload, bytes)?;
        Ok(UploadAppend::Done { len })
    }

    /// Appends bytes to an upload in append mode, or to a put. Returns the new number of bytes.
    pub(crate) fn append_to(&mut self, mut upload: UploadInfo, bytes: &[u8]) -> Result<u64> {
        let (id, offset) = (upload.id, upload.len);
        let added = bytes.len() as u64;
        let len = offset.saturating_add(added);
        check_chunk_count(len, upload.chunk_bytes)?;
        self.check_growth(len, added)?;
        let chunk = u64::from(upload.chunk_bytes);
        let before = tail_len(&upload);
        let mut index = (offset / chunk) as u32;
        let mut rest = bytes;
        if before + added >= chunk {
            if before > 0 {
                let mut first = tail(self.root, self.w, &upload)?;
                let (now, later) = rest.split_at((chunk - before) as usize);
                first.extend_from_slice(now);
                rest = later;
                self.store_chunk(id.0, index, &first)?;
                self.remove_tail(id.0)?;
                index += 1;
            }
            while let Some((now, later)) = rest.split_at_checked(chunk as usize) {
                self.store_chunk(id.0, index, now)?;
                rest = later;
                index += 1;
            }
        }
        if !rest.is_empty() {
            self.insert(Part::Tails, &tail_key(id.0, len - rest.len() as u64), rest)?;
        }
        upload.len = len;
        self.state.upload_bytes = self.state.upload_bytes.saturating_add(added);
        self.save_upload(&upload)?;
        self.save()?;
        Ok(len)
    }
}
