//! Number of rows that a leaf entry stands for. A nested table stores its row count in its first bytes, or beside its
//! root.

use crate::page::layout::{CHILD_BYTES, Payload, child_rows, tag, varint};

/// Form of an inline table that stores entries with payloads.
pub(crate) const CELLS: u8 = 0;
/// Form of an inline table that stores keys of one length, without payloads.
pub(crate) const PACKED: u8 = 1;
/// Flag of either form of an inline table: a sequence number is stored.
pub(crate) const BEGUN: u8 = 2;

/// Number of rows that an entry of a table of sets stands for: the number of values in its set.
pub(crate) fn weight(payload: Payload<'_>) -> u64 {
    match tag::kind(payload.tag) {
        tag::NESTED => count(payload.bytes),
        tag::ROOT => match payload.bytes.get(..CHILD_BYTES) {
            Some(child) => child_rows(child),
            None => 0,
        },
        _ => 1,
    }
}

/// Number of entries according to the header of an inline table.
pub(crate) fn count(bytes: &[u8]) -> u64 {
    let count = head(bytes).and_then(|(_, _, at)| varint(bytes, at));
    count.map_or(0, |(count, _)| u64::from(count))
}

/// Decodes the first bytes of an inline table. Returns whether the keys are packed, the sequence number, and the offset
/// of the number of entries.
pub(crate) fn head(bytes: &[u8]) -> Option<(bool, u64, usize)> {
    let form = *bytes.first()?;
    let (sequence, at) = match form & BEGUN {
        0 => (0, 1),
        _ => (u64::from_le_bytes(*bytes[1..].first_chunk()?), 9),
    };
    let known = form <= BEGUN | PACKED && (sequence > 0) == (form & BEGUN != 0);
    known.then_some((form & PACKED != 0, sequence, at))
}
