//! The options and the limits of a queue.
//!
//! ```text
//!  0  u8    overflow: 0 reject, 1 drop the oldest, 2 drop the newest
//!  1  u8    0
//!  2  u16   0
//!  4  u32   maximum number of deliveries; 0: no maximum
//!  8  u64   maximum number of messages; 0: no maximum
//! 16  u64   maximum number of bytes; 0: no maximum
//! 24  i64   retention in nanoseconds; 0: none
//! 32  i64   window of idempotency keys in nanoseconds; 0: none
//! ```

use crate::options::{is_storable, nanoseconds, optional_duration};
use crate::queues::parts::damaged;
use std::time::Duration;
use tidalite_base::{get_i64, get_u32, get_u64};
use tidalite_pager::{Error, Result};

/// Maximum length in bytes of the payload of a message.
pub const QUEUE_PAYLOAD_BYTES_MAX: usize = 16 << 20;
/// Maximum length in bytes of an ordering key.
pub const ORDERING_KEY_BYTES_MAX: usize = 1024;
/// Maximum length in bytes of an idempotency key.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 256;
/// Maximum length in bytes of all headers of a message, with four bytes for each header.
pub const HEADERS_BYTES_MAX: usize = 28 << 10;
/// Maximum length in bytes of the name of a group.
pub const GROUP_NAME_BYTES_MAX: usize = 128;
/// Maximum length in bytes of the name of a consumer.
pub const CONSUMER_NAME_BYTES_MAX: usize = 255;
/// Maximum number of groups of a queue, and of dropped groups whose messages are not removed yet.
pub const GROUPS_MAX: usize = 1024;
/// Maximum number of messages that one call pushes, leases or changes.
pub const BATCH_MAX: usize = 1 << 16;

/// Ids are less than this, and counters not greater, so that sums of two of them never overflow.
pub(crate) const IDS_MAX: u64 = 1 << 60;

const BYTES: usize = 40;

/// The rule for messages that a full queue has no room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Overflow {
    /// The call fails with `Limit`, and none of its messages is stored.
    #[default]
    Reject,
    /// The oldest messages are removed, whatever their state.
    DropOldest,
    /// The new message is not stored.
    DropNewest,
}

/// Options of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct QueueOptions {
    /// The rule for a full queue.
    pub overflow: Overflow,
    /// After this number of deliveries a message becomes a dead letter of the group; `None`: never.
    pub deliveries_max: Option<u32>,
    /// Maximum number of messages; `None`: no maximum.
    pub messages_max: Option<u64>,
    /// Maximum number of bytes of all messages with their headers and keys; `None`: no maximum.
    pub bytes_max: Option<u64>,
    /// Age at which messages are removed; `None`: never.
    pub retention: Option<Duration>,
    /// Time within which a second push with the same idempotency key stores nothing; `None`: keys are ignored.
    pub idempotency_window: Option<Duration>,
}

impl QueueOptions {
    /// Returns a text that says why the options cannot be used; `None` if they can.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        if self.deliveries_max == Some(0)
            || self.messages_max == Some(0)
            || self.bytes_max == Some(0)
        {
            return Some("a maximum of 0; without a maximum the option is None".into());
        }
        let fits = |time: &Duration| is_storable(*time) && !time.is_zero();
        if let Some(retention) = self.retention.filter(|time| !fits(time)) {
            return Some(format!("a retention of {retention:?}"));
        }
        let window = self.idempotency_window.filter(|time| !fits(time))?;
        Some(format!("a window of {window:?} for idempotency keys"))
    }

    /// The age in nanoseconds at which messages are removed; 0: never.
    pub(crate) fn retention_ns(&self) -> i64 {
        self.retention.map_or(0, nanoseconds)
    }

    /// The window of idempotency keys in nanoseconds; 0: keys are ignored.
    pub(crate) fn window_ns(&self) -> i64 {
        self.idempotency_window.map_or(0, nanoseconds)
    }

    /// Whether a message that was delivered this many times becomes a dead letter.
    pub(crate) fn is_dead_after(&self, deliveries: u32) -> bool {
        self.deliveries_max.is_some_and(|most| deliveries >= most)
    }

    pub(crate) fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[0] = match self.overflow {
            Overflow::Reject => 0,
            Overflow::DropOldest => 1,
            Overflow::DropNewest => 2,
        };
        bytes[4..8].copy_from_slice(&self.deliveries_max.unwrap_or(0).to_le_bytes());
        bytes[8..16].copy_from_slice(&self.messages_max.unwrap_or(0).to_le_bytes());
        bytes[16..24].copy_from_slice(&self.bytes_max.unwrap_or(0).to_le_bytes());
        bytes[24..32].copy_from_slice(&self.retention_ns().to_le_bytes());
        bytes[32..].copy_from_slice(&self.window_ns().to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let wrong = || damaged("options of a queue", bytes.escape_ascii(), "options");
        if bytes.len() != BYTES || bytes[1..4] != [0; 3] {
            return Err(wrong());
        }
        Ok(Self {
            overflow: match bytes[0] {
                0 => Overflow::Reject,
                1 => Overflow::DropOldest,
                2 => Overflow::DropNewest,
                _ => return Err(wrong()),
            },
            deliveries_max: some(get_u32(bytes, 4)),
            messages_max: some(get_u64(bytes, 8)),
            bytes_max: some(get_u64(bytes, 16)),
            retention: optional_duration(get_i64(bytes, 24)).ok_or_else(wrong)?,
            idempotency_window: optional_duration(get_i64(bytes, 32)).ok_or_else(wrong)?,
        })
    }

    /// Whether a queue with this many messages and bytes is fuller than it may be.
    pub(crate) fn is_over(&self, messages: u64, bytes: u64) -> bool {
        self.messages_max.is_some_and(|most| messages > most)
            || self.bytes_max.is_some_and(|most| bytes > most)
    }
}

/// A number of the file that is 0 if there is none.
fn some<T: Default + PartialEq>(number: T) -> Option<T> {
    (number != T::default()).then_some(number)
}

/// Checks a number against its limit.
pub(crate) fn check_limit(what: &'static str, found: usize, limit: usize) -> Result<()> {
    if found <= limit {
        return Ok(());
    }
    Err(Error::Limit {
        what,
        found: found as u64,
        limit: limit as u64,
    })
}
