//! The changing state of a table of topics.
//!
//! ```text
//!  0  u64   messages
//!  8  u64   bytes of all messages
//! 16  u64   sequence number of the newest change; 0 before the first
//! 24  u64   id of the next new topic
//! 32  u64   the feed has every change from this sequence number on
//! ```

use crate::topics::record::SEQUENCES_MAX;
use tidalite_base::{Corrupt, get_u64};
use tidalite_index::NUMBERS_MAX;
use tidalite_pager::Result;

const BYTES: usize = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) messages: u64,
    pub(super) bytes: u64,
    pub(super) sequence: u64,
    pub(super) next_id: u64,
    pub(super) feed_from: u64,
}

impl Default for State {
    fn default() -> Self {
        Self {
            messages: 0,
            bytes: 0,
            sequence: 0,
            next_id: 0,
            feed_from: 1,
        }
    }
}

impl State {
    pub(super) fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let words = [
            self.messages,
            self.bytes,
            self.sequence,
            self.next_id,
            self.feed_from,
        ];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        if bytes.len() != BYTES {
            let found = format!("{} bytes", bytes.len());
            return Err(Corrupt::new("state of a table of topics", 0, found, BYTES).into());
        }
        let state = Self {
            messages: get_u64(bytes, 0),
            bytes: get_u64(bytes, 8),
            sequence: get_u64(bytes, 16),
            next_id: get_u64(bytes, 24),
            feed_from: get_u64(bytes, 32),
        };
        let ids = state.messages <= state.next_id && state.next_id <= NUMBERS_MAX;
        let feed = state.feed_from > 0
            && state.feed_from - 1 <= state.sequence
            && state.sequence < SEQUENCES_MAX;
        if !ids || !feed {
            let found = format!("{state:?}");
            return Err(Corrupt::new("state of a table of topics", 0, found, "a state").into());
        }
        Ok(state)
    }
}
