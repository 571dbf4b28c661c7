//! Rows of the change feed.
//!
//! ```text
//! key      sequence number of the change, u64 big-endian
//! value    u8: 0 the topic got a message, 1 its message was removed | key of the topic
//! ```

use crate::topics::key::TopicText;
use tidalite_base::Corrupt;
use tidalite_pager::Result;

const SET: u8 = 0;
const REMOVED: u8 = 1;

/// A change in the feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicChange {
    /// Sequence number of the change.
    pub sequence: u64,
    /// The topic.
    pub topic: String,
    /// True if the message of the topic was removed; false if the topic got a message.
    pub is_removed: bool,
}

pub(super) fn encode(key: &[u8], is_removed: bool, value: &mut Vec<u8>) {
    value.clear();
    value.push(if is_removed { REMOVED } else { SET });
    value.extend_from_slice(key);
}

pub(super) fn sequence_of(row: &[u8]) -> Result<u64> {
    match row.try_into() {
        Ok(bytes) => Ok(u64::from_be_bytes(bytes)),
        Err(_) => {
            let found = row.escape_ascii().to_string();
            Err(Corrupt::new("row of a feed", 0, found, "8 bytes").into())
        }
    }
}

pub(super) fn decode(row: &[u8], value: &[u8]) -> Result<TopicChange> {
    let sequence = sequence_of(row)?;
    let is_removed = match value.first() {
        Some(&SET) => false,
        Some(&REMOVED) => true,
        kind => {
            let found = format!("{kind:?}");
            return Err(Corrupt::new("change of a topic", 0, found, "0 or 1").into());
        }
    };
    let topic = TopicText::default().of_key(&value[1..])?.to_owned();
    Ok(TopicChange {
        sequence,
        topic,
        is_removed,
    })
}
