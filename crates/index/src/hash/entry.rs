//! Payloads of the entries of a hash table's index: 6 bytes, big-endian, with the value 4 * record number + kind.
//!
//! ```text
//! kind  0  the key has this record
//!       1  this record removes the key, with all its records that have lesser numbers
//!       2  this record removes one record of the key (tables with duplicates only)
//!       3  further records of the key are in the sets (main table with duplicates only); the number is 0
//! ```

use crate::block::damaged;
use tidalite_pager::Result;

pub(crate) const PAYLOAD_BYTES: usize = 6;

/// Record numbers are below this value.
pub const RECORDS_MAX: u64 = 1 << 46;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Set(u64),
    Remove(u64),
    RemoveOne(u64),
    InSets,
}

impl Action {
    /// Number of the record to which the entry refers; 0 for `InSets`.
    pub(crate) fn record(self) -> u64 {
        match self {
            Self::Set(record) | Self::Remove(record) | Self::RemoveOne(record) => record,
            Self::InSets => 0,
        }
    }

    pub(crate) fn encode(self) -> [u8; PAYLOAD_BYTES] {
        let word = match self {
            Self::Set(record) => record << 2,
            Self::Remove(record) => record << 2 | 1,
            Self::RemoveOne(record) => record << 2 | 2,
            Self::InSets => 3,
        };
        let [_, _, bytes @ ..] = word.to_be_bytes();
        bytes
    }

    #[inline]
    pub(crate) fn decode(payload: &[u8]) -> Result<Self> {
        let Ok([a, b, c, d, e, f]) = <[u8; PAYLOAD_BYTES]>::try_from(payload) else {
            return Err(damaged(
                format!("a payload of {} bytes", payload.len()),
                "6 bytes",
            ));
        };
        let word = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        Ok(match word & 3 {
            0 => Self::Set(word >> 2),
            1 => Self::Remove(word >> 2),
            2 => Self::RemoveOne(word >> 2),
            _ if word == 3 => Self::InSets,
            _ => return Err(damaged(format!("the payload {word:#x}"), "an action")),
        })
    }
}
