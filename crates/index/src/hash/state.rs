//! The changing state of a hash table.
//!
//! ```text
//!  0  u64   number of the next record
//!  8  u64   keys in the main table of the index
//! 16  u64   bytes of the blocks of the main table
//! 24  u64   records that are replaced or removed and take space until compaction
//! 32  the list of the runs
//! ```

use crate::hash::entry::RECORDS_MAX;
use crate::runs::state::{COUNT_MAX, Runs};
use tidalite_base::{Corrupt, get_u64};
use tidalite_pager::Result;

const HEAD_BYTES: usize = 32;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) next_record: u64,
    pub(crate) main_keys: u64,
    pub(crate) main_bytes: u64,
    pub(crate) dead: u64,
    pub(crate) runs: Runs,
}

impl State {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [self.next_record, self.main_keys, self.main_bytes, self.dead] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(&self.runs.encode());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let Some((head, runs)) = bytes.split_first_chunk::<HEAD_BYTES>() else {
            let found = format!("{} bytes", bytes.len());
            return Err(Corrupt::new("state of a hash table", 0, found, "32 at least").into());
        };
        let state = Self {
            next_record: get_u64(head, 0),
            main_keys: get_u64(head, 8),
            main_bytes: get_u64(head, 16),
            dead: get_u64(head, 24),
            runs: Runs::decode(runs)?,
        };
        if state.next_record > RECORDS_MAX {
            let found = state.next_record;
            return Err(Corrupt::new("next record", 0, found, "less than 2^46").into());
        }
        let counts = [state.main_keys, state.main_bytes, state.dead];
        if let Some(found) = counts.into_iter().find(|count| *count > COUNT_MAX) {
            return Err(
                Corrupt::new("state of a hash table", 0, found, "counts below 2^47").into(),
            );
        }
        Ok(state)
    }
}
