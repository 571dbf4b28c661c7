//! The options of a table of topics.
//!
//! ```text
//!  0  u8    version of this row: 1
//!  1  u8    maximum number of levels of a topic
//!  2  u16   maximum length in bytes of a topic
//!  4  u32   maximum length in bytes of a payload
//!  8  u64   maximum number of messages
//! 16  u64   maximum number of bytes of all messages
//! 24  u64   number of changes that the feed keeps; 0 for no feed
//! ```

use crate::options::{self, most};
use crate::topics::key::{TOPIC_BYTES_MAX, TOPIC_LEVELS_MAX};
use crate::topics::message::TOPIC_PAYLOAD_BYTES_MAX;
use tidalite_base::{Corrupt, get_u16, get_u32, get_u64};
use tidalite_pager::{Error, Result};

const BYTES: usize = 32;
const VERSION: u8 = 1;

/// Options of a table of topics: its limits, and whether it keeps a feed of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicOptions {
    /// Maximum number of levels of a topic, 1 to [`TOPIC_LEVELS_MAX`].
    pub levels_max: u8,
    /// Maximum length in bytes of a topic, 1 to [`TOPIC_BYTES_MAX`].
    pub topic_bytes_max: u16,
    /// Maximum length in bytes of a payload, up to [`TOPIC_PAYLOAD_BYTES_MAX`].
    pub payload_bytes_max: u32,
    /// Maximum number of messages; `None`: no maximum.
    pub messages_max: Option<u64>,
    /// Maximum number of bytes of all messages (topics, publishers, properties and payloads); `None`: no maximum.
    pub bytes_max: Option<u64>,
    /// Number of changes that the feed keeps; 0 for no feed.
    pub feed_changes: u64,
}

impl Default for TopicOptions {
    /// Topics may have up to 128 levels. All other limits are the limits of MQTT, and the feed is off.
    fn default() -> Self {
        Self {
            levels_max: 128,
            topic_bytes_max: u16::MAX,
            payload_bytes_max: TOPIC_PAYLOAD_BYTES_MAX as u32,
            messages_max: None,
            bytes_max: None,
            feed_changes: 0,
        }
    }
}

impl TopicOptions {
    /// Returns a text that says why the options cannot be used; `None` if they can.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        const _: () = assert!(TOPIC_LEVELS_MAX == u8::MAX as usize);
        const _: () = assert!(TOPIC_BYTES_MAX == u16::MAX as usize);
        if self.levels_max == 0 || self.topic_bytes_max == 0 {
            return Some("topics of no levels or no bytes".into());
        }
        if let Some(problem) = options::problem_of(&[self.messages_max, self.bytes_max]) {
            return Some(problem);
        }
        let payload = self.payload_bytes_max;
        (payload as usize > TOPIC_PAYLOAD_BYTES_MAX)
            .then(|| format!("payloads of {payload} bytes, {TOPIC_PAYLOAD_BYTES_MAX} can be"))
    }

    pub(super) fn check(&self) -> Result<()> {
        options::check(self.problem())
    }

    pub(super) fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        (bytes[0], bytes[1]) = (VERSION, self.levels_max);
        bytes[2..4].copy_from_slice(&self.topic_bytes_max.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.payload_bytes_max.to_le_bytes());
        bytes[8..16].copy_from_slice(&most(self.messages_max).to_le_bytes());
        bytes[16..24].copy_from_slice(&most(self.bytes_max).to_le_bytes());
        bytes[24..].copy_from_slice(&self.feed_changes.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        let damaged = || -> Error {
            let found = bytes[..bytes.len().min(BYTES)].escape_ascii().to_string();
            Corrupt::new("options of a table of topics", 0, found, "options").into()
        };
        if bytes.len() != BYTES || bytes[0] != VERSION {
            return Err(damaged());
        }
        let options = Self {
            levels_max: bytes[1],
            topic_bytes_max: get_u16(bytes, 2),
            payload_bytes_max: get_u32(bytes, 4),
            messages_max: options::maximum(get_u64(bytes, 8)),
            bytes_max: options::maximum(get_u64(bytes, 16)),
            feed_changes: get_u64(bytes, 24),
        };
        match options.problem() {
            Some(_) => Err(damaged()),
            None => Ok(options),
        }
    }
}
