//! The changing state of a table of containers.
//!
//! ```text
//!  0  u64   containers
//!  8  u64   messages of all containers
//! 16  u64   bytes of all messages
//! 24  u64   deleted messages that can be restored
//! 32  u64   their bytes
//! 40  u64   number of the next deletion
//! 48  u32   number of the next container
//! 52  u32   number of the next field
//! ```
//!
//! Messages of dropped containers are not counted.

use crate::containers::options::COUNT_MAX;
use crate::containers::parts::{damaged, shown};
use tidalite_base::{get_u32, get_u64};
use tidalite_pager::Result;

const BYTES: usize = 56;
const WORDS: usize = 6;

/// Numbers of containers and fields are below this value.
pub(crate) const NUMBERS_MAX: u32 = u32::MAX - 1;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) containers: u64,
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    pub(crate) deleted_messages: u64,
    pub(crate) deleted_bytes: u64,
    pub(crate) next_deletion: u64,
    pub(crate) next_container: u32,
    pub(crate) next_field: u32,
}

impl State {
    pub(crate) fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let words: [u64; WORDS] = [
            self.containers,
            self.messages,
            self.bytes,
            self.deleted_messages,
            self.deleted_bytes,
            self.next_deletion,
        ];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes[8 * WORDS..8 * WORDS + 4].copy_from_slice(&self.next_container.to_le_bytes());
        bytes[8 * WORDS + 4..].copy_from_slice(&self.next_field.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let wrong = || damaged("state of a table of containers", shown(bytes), "a state");
        if bytes.len() != BYTES {
            return Err(wrong());
        }
        let state = Self {
            containers: get_u64(bytes, 0),
            messages: get_u64(bytes, 8),
            bytes: get_u64(bytes, 16),
            deleted_messages: get_u64(bytes, 24),
            deleted_bytes: get_u64(bytes, 32),
            next_deletion: get_u64(bytes, 40),
            next_container: get_u32(bytes, 48),
            next_field: get_u32(bytes, 52),
        };
        let are_small = (0..WORDS).all(|word| get_u64(bytes, 8 * word) <= COUNT_MAX);
        let fits = state.containers <= u64::from(state.next_container)
            && state.next_container <= NUMBERS_MAX
            && state.next_field <= NUMBERS_MAX;
        match are_small && fits {
            true => Ok(state),
            false => Err(wrong()),
        }
    }
}
