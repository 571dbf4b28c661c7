//! Deletions: messages that one call deleted and that can be restored for some time.
//!
//! ```text
//!  0  i64   time of the deletion
//!  8  i64   time from which the messages cannot be restored any more
//! 16  u64   messages
//! 24  u64   their bytes
//! ```

use crate::containers::options::COUNT_MAX;
use crate::containers::parts::{damaged, shown};
use tidalite_base::{get_i64, get_u64};
use tidalite_pager::Result;
use tidalite_time::Timestamp;

const BYTES: usize = 32;

/// Messages that one call deleted and that can still be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// Number of the deletion. Later deletions have greater numbers.
    pub number: u64,
    /// Time of the deletion.
    pub deleted_at: Timestamp,
    /// Time from which the messages can no longer be restored.
    pub free_at: Timestamp,
    /// Number of messages.
    pub messages: u64,
    /// Total bytes of these messages.
    pub bytes: u64,
}

impl Deletion {
    pub(crate) fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(&self.deleted_at.0.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.free_at.0.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.messages.to_le_bytes());
        bytes[24..].copy_from_slice(&self.bytes.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(number: u64, bytes: &[u8]) -> Result<Self> {
        let wrong = || damaged("deletion", shown(bytes), "32 bytes");
        if bytes.len() != BYTES {
            return Err(wrong());
        }
        let deletion = Self {
            number,
            deleted_at: Timestamp(get_i64(bytes, 0)),
            free_at: Timestamp(get_i64(bytes, 8)),
            messages: get_u64(bytes, 16),
            bytes: get_u64(bytes, 24),
        };
        match deletion.messages <= COUNT_MAX && deletion.bytes <= COUNT_MAX {
            true => Ok(deletion),
            false => Err(wrong()),
        }
    }
}
