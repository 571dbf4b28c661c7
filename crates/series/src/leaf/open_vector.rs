//! Encoded vectors of an open leaf; their payloads are in the buffer of the leaf.

use crate::leaf::layout::payload_checksum;
use tidalite_codec::Chunk;

/// A model among the payloads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Model {
    pub(super) offset: u32,
    pub(super) bytes: u32,
    pub(super) checksum: u64,
}

/// The encoded times or values of a vector, with their span or statistics as `summary`.
#[derive(Clone, Debug)]
pub(super) struct OpenVector<T> {
    pub(super) chunk: Chunk,
    /// Offset of its payload in the payloads of the leaf.
    pub(super) offset: u32,
    pub(super) checksum: u64,
    pub(super) summary: T,
}

impl<T> OpenVector<T> {
    /// A vector whose payload was just appended to `payloads`, from `offset` on.
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

    /// A vector without a payload: its chunk describes it completely.
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
