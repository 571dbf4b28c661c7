//! The counters of a queue, and of each of its groups.
//!
//! ```text
//! state                                        row of a group
//!  0  u64   next id                             0  u32   number of the group
//!  8  u32   next number of a group              4  u32   1: the group is dropped; else 0
//! 12  u32   0                                   8  u64   next lease
//! 16  u64   bytes of all messages              16  u64   ready
//! 24  u64   pushed                             24  u64   delayed
//! 32  u64   repeated                           32  u64   leased
//! 40  u64   dropped as the oldest              40  u64   waiting
//! 48  u64   dropped as the newest              48  u64   dead
//! 56  u64   expired                            56  u64   acked
//! 64  u64   removed by retention               64  u64   redelivered
//! 72  u64   purged                             72  u64   buried
//! ```

use crate::queues::options::IDS_MAX;
use crate::queues::parts::damaged;
use tidalite_base::{get_u32, get_u64};
use tidalite_pager::Result;

const STATE_BYTES: usize = 80;
const GROUP_BYTES: usize = 80;

/// The changing state of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) next_id: u64,
    pub(crate) next_group: u32,
    pub(crate) bytes: u64,
    pub(crate) pushed: u64,
    pub(crate) repeated: u64,
    pub(crate) dropped_oldest: u64,
    pub(crate) dropped_newest: u64,
    pub(crate) expired: u64,
    pub(crate) aged: u64,
    pub(crate) purged: u64,
}

fn put_words(bytes: &mut [u8], at: usize, words: &[u64]) {
    for (place, word) in bytes[at..].chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
}

/// Whether all words from `at` on are small enough that incrementing them cannot overflow.
fn are_small(bytes: &[u8], at: usize) -> bool {
    (at..bytes.len())
        .step_by(8)
        .all(|at| get_u64(bytes, at) <= IDS_MAX)
}

impl State {
    pub(crate) fn encode(&self) -> [u8; STATE_BYTES] {
        let mut bytes = [0; STATE_BYTES];
        put_words(&mut bytes, 0, &[self.next_id, self.next_group.into()]);
        let words = [
            self.bytes,
            self.pushed,
            self.repeated,
            self.dropped_oldest,
            self.dropped_newest,
            self.expired,
            self.aged,
            self.purged,
        ];
        put_words(&mut bytes, 16, &words);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        if bytes.len() != STATE_BYTES
            || !are_small(bytes, 0)
            || get_u64(bytes, 0) == 0
            || get_u32(bytes, 12) != 0
        {
            return Err(damaged("state of a queue", bytes.escape_ascii(), "a state"));
        }
        Ok(Self {
            next_id: get_u64(bytes, 0),
            next_group: get_u32(bytes, 8),
            bytes: get_u64(bytes, 16),
            pushed: get_u64(bytes, 24),
            repeated: get_u64(bytes, 32),
            dropped_oldest: get_u64(bytes, 40),
            dropped_newest: get_u64(bytes, 48),
            expired: get_u64(bytes, 56),
            aged: get_u64(bytes, 64),
            purged: get_u64(bytes, 72),
        })
    }
}

/// The row of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) number: u32,
    /// Whether the group is dropped: it gets no more messages, and its open ids are being removed.
    pub(crate) is_dropped: bool,
    pub(crate) next_lease: u64,
    pub(crate) ready: u64,
    pub(crate) delayed: u64,
    pub(crate) leased: u64,
    pub(crate) waiting: u64,
    pub(crate) dead: u64,
    pub(crate) acked: u64,
    pub(crate) redelivered: u64,
    pub(crate) buried: u64,
}

impl Group {
    pub(crate) fn encode(&self) -> [u8; GROUP_BYTES] {
        let mut bytes = [0; GROUP_BYTES];
        bytes[..4].copy_from_slice(&self.number.to_le_bytes());
        bytes[4] = u8::from(self.is_dropped);
        let words = [
            self.next_lease,
            self.ready,
            self.delayed,
            self.leased,
            self.waiting,
            self.dead,
            self.acked,
            self.redelivered,
            self.buried,
        ];
        put_words(&mut bytes, 8, &words);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        // The last number is never assigned, so that the next number can always be stored.
        if bytes.len() != GROUP_BYTES
            || get_u32(bytes, 0) == u32::MAX
            || get_u32(bytes, 4) > 1
            || !are_small(bytes, 8)
        {
            return Err(damaged("group of a queue", bytes.escape_ascii(), "a group"));
        }
        Ok(Self {
            number: get_u32(bytes, 0),
            is_dropped: get_u32(bytes, 4) == 1,
            next_lease: get_u64(bytes, 8),
            ready: get_u64(bytes, 16),
            delayed: get_u64(bytes, 24),
            leased: get_u64(bytes, 32),
            waiting: get_u64(bytes, 40),
            dead: get_u64(bytes, 48),
            acked: get_u64(bytes, 56),
            redelivered: get_u64(bytes, 64),
            buried: get_u64(bytes, 72),
        })
    }

    /// Number of open ids: the sum of the counters of all states.
    pub(crate) fn open(&self) -> u64 {
        let counts = [self.ready, self.delayed, self.leased, self.waiting];
        counts
            .iter()
            .fold(self.dead, |sum, count| sum.saturating_add(*count))
    }
}
