//! The changing state of a bucket.
//!
//! ```text
//!  0  u64   next content id
//!  8  u64   objects
//! 16  u64   bytes of all objects
//! 24  u64   chunks, including chunks of uploads and orphans
//! 32  u64   bytes of these chunks
//! 40  u64   uploads
//! 48  u64   bytes of all uploads
//! ```

use crate::objects::fields::Fields;
use crate::objects::keys::{CONTENT_MAX, COUNT_MAX};
use crate::objects::parts::{Part, part};
use tidalite_kv::Tree;
use tidalite_pager::{PageRead, Result};

/// Counters of a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) next_content: u64,
    pub(crate) objects: u64,
    pub(crate) bytes: u64,
    pub(crate) chunks: u64,
    pub(crate) chunk_bytes: u64,
    pub(crate) uploads: u64,
    pub(crate) upload_bytes: u64,
}

impl State {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let counters = [
            self.next_content,
            self.objects,
            self.bytes,
            self.chunks,
            self.chunk_bytes,
            self.uploads,
            self.upload_bytes,
        ];
        counters
            .iter()
            .flat_map(|counter| counter.to_le_bytes())
            .collect()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut fields = Fields::new("state of a bucket", bytes);
        let mut next = || match fields.u64()? {
            counter if counter <= COUNT_MAX => Ok(counter),
            counter => Err(fields.error(counter, "at most 2^62")),
        };
        let state = Self {
            next_content: next()?,
            objects: next()?,
            bytes: next()?,
            chunks: next()?,
            chunk_bytes: next()?,
            uploads: next()?,
            upload_bytes: next()?,
        };
        if state.next_content > CONTENT_MAX {
            return Err(fields.error(state.next_content, "a content id below 2^62"));
        }
        fields.end()?;
        Ok(state)
    }

    /// Counts an object that was added.
    pub(crate) fn add_object(&mut self, bytes: u64) {
        self.objects += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Counts an object that was removed. In a damaged file the counters may be too small.
    pub(crate) fn remove_object(&mut self, bytes: u64) {
        self.objects = self.objects.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Counts a chunk that was added.
    pub(crate) fn add_chunk(&mut self, bytes: u64) {
        self.chunks += 1;
        self.chunk_bytes = self.chunk_bytes.saturating_add(bytes);
    }

    /// Counts chunks that were removed.
    pub(crate) fn remove_chunks(&mut self, chunks: u64, bytes: u64) {
        self.chunks = self.chunks.saturating_sub(chunks);
        self.chunk_bytes = self.chunk_bytes.saturating_sub(bytes);
    }

    /// Counts an upload that was removed.
    pub(crate) fn remove_upload(&mut self, bytes: u64) {
        self.uploads = self.uploads.saturating_sub(1);
        self.upload_bytes = self.upload_bytes.saturating_sub(bytes);
    }
}

/// Counters of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketStat {
    /// Number of objects, including expired ones that have not been removed.
    pub objects: u64,
    /// Total size in bytes of all objects.
    pub bytes: u64,
    /// Number of stored chunks, including chunks of uploads and chunks that are still to be freed.
    pub chunks: u64,
    /// Total size in bytes of the stored chunks.
    pub chunk_bytes: u64,
    /// Number of uploads.
    pub uploads: u64,
    /// Total size in bytes of all uploads.
    pub upload_bytes: u64,
    /// Number of removed contents whose chunks `maintain` has yet to free.
    pub orphans: u64,
}

pub(crate) fn stat<R: PageRead>(root: &Tree, r: &R, state: &State) -> Result<BucketStat> {
    Ok(BucketStat {
        objects: state.objects,
        bytes: state.bytes,
        chunks: state.chunks,
        chunk_bytes: state.chunk_bytes,
        uploads: state.uploads,
        upload_bytes: state.upload_bytes,
        orphans: part(root, r, Part::Orphans)?.len(),
    })
}
