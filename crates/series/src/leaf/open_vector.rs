//! Encoded vectors of an open leaf, whose payloads are in the buffer of the leaf.

use crate::leaf::layout::payload_checksum;
use tidalite_codec::Chunk;

/// Position of the model that the vectors of a section in cold form share, in the buffer of payloads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Model {
    pub(super) offset: u32,
    pub(super) bytes: u32,
    pub(super) checksum: u64,
}

/// The encoded times, or one encoded column, of a vector. `summary` is the time span of times, or the statistics of a
/// column.
#[derive(Clone, Debug)]
pub(super) struct OpenVector<T> {
    pub(super) chunk: Chunk,
    /// Offset of the vector's payload in the payload buffer of the leaf.
    pub(super) offset: u32,
    pub(super) checksum: u64,
    pub(super) summary: T,
}

impl<T> OpenVector<T> {
    /// Creates a vector whose payload was just appended to `payloads`, from `offset` on.
    pub(super) fn with_payload(chunk: Chunk, payloads: &[u8], offset: usize, summary: T) -> Self {
        assert_eq!(
            payloads.len() - offset,
            chunk.len(),
            "the payload of the chunk"
        );
        Self {
            chunk,
            offset: offset as u32,
            checksum: payload_checksum(&payloads[offset..]),
            summary,
        }
    }

    /// Creates a vector without a payload: its chunk describes all values.
    pub(super) fn without_payload(chunk: Chunk, summary: T) -> Self {
        debug_assert!(chunk.is_empty(), "no bytes");
        Self {
            chunk,
            offset: 0,
            checksum: 0,
            summary,
        }
    }
}
