//! Topics, and their keys.
//!
//! ```text
//! topic    device/17/param
//! key      device 00 17 00 param        each '/' is replaced by a zero byte, which no topic contains
//! ```
//!
//! So in the order of keys the descendants of a topic directly follow it, whatever bytes the names have, and the
//! matches of `device/17/#` form one range. The end of that range is the key of `device/17` followed by a byte 1, the
//! least byte with which a name can begin.

use tidalite_base::Corrupt;
use tidalite_pager::{Error, Refusal, Result};

/// Maximum length in bytes of a topic or a filter (MQTT 5, 4.7.3).
pub const TOPIC_BYTES_MAX: usize = 65_535;

/// Maximum number of levels of a topic: the number of a level takes one byte in the keys of sets.
pub const TOPIC_LEVELS_MAX: usize = 255;

/// Separates levels in a key.
pub(super) const SEPARATOR: u8 = 0;

/// The least byte above `SEPARATOR`. The key of a topic followed by this byte is the end of the range of its
/// descendants.
pub(super) const BEHIND: u8 = 1;

/// Checks that bytes are a topic: UTF-8, 1 to 65,535 bytes, no NUL, no wildcard.
///
/// # Errors
/// `Limit` for a topic that is too long, `InvalidName` for any other text that is not a topic.
pub fn topic_of_bytes(bytes: &[u8]) -> Result<&str> {
    match std::str::from_utf8(bytes) {
        Ok(topic) => check_topic(topic).map(|()| topic),
        Err(_) => Err(refused(bytes, "UTF-8")),
    }
}

/// Like `topic_of_bytes`, for a text.
pub(super) fn check_topic(topic: &str) -> Result<()> {
    let bytes = topic.as_bytes();
    check_len(bytes)?;
    match bytes.iter().find(|byte| matches!(byte, 0 | b'+' | b'#')) {
        Some(_) => Err(refused(bytes, "a topic without NUL, + and #")),
        None => Ok(()),
    }
}

/// Checks the length of a topic or a filter.
pub(super) fn check_len(bytes: &[u8]) -> Result<()> {
    if bytes.is_empty() {
        return Err(refused(bytes, "at least one character"));
    }
    if bytes.len() > TOPIC_BYTES_MAX {
        return Err(Error::Limit {
            what: "bytes of a topic",
            found: bytes.len() as u64,
            limit: TOPIC_BYTES_MAX as u64,
        });
    }
    Ok(())
}

/// Creates the error for a text that MQTT does not allow in this place.
#[cold]
pub(super) fn refused(bytes: &[u8], expected: &str) -> Error {
    /// Number of bytes that an error shows.
    const SHOWN: usize = 100;
    let shown = &bytes[..bytes.len().min(SHOWN)];
    Error::refused(
        Refusal::InvalidName,
        format!("the topic or filter \"{}\"", shown.escape_ascii()),
        expected,
    )
}

/// Appends the key of a topic.
pub(super) fn put_key(topic: &str, keys: &mut Vec<u8>) {
    let from = keys.len();
    keys.extend_from_slice(topic.as_bytes());
    for byte in &mut keys[from..] {
        if *byte == b'/' {
            *byte = SEPARATOR;
        }
    }
}

pub(super) fn key_of(topic: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(topic.len());
    put_key(topic, &mut key);
    key
}

/// Number of levels of the topic with this key.
pub(super) fn levels(key: &[u8]) -> usize {
    key.iter().filter(|byte| **byte == SEPARATOR).count() + 1
}

/// A reusable buffer for the topics of keys, so that reading many of them allocates nothing.
#[derive(Debug, Default)]
pub(super) struct TopicText(Vec<u8>);

impl TopicText {
    /// Decodes the topic of a key that was read from the file.
    pub(super) fn of_key(&mut self, key: &[u8]) -> Result<&str> {
        self.0.clear();
        self.0.extend_from_slice(key);
        let mut is_topic = !key.is_empty() && key.len() <= TOPIC_BYTES_MAX;
        for byte in &mut self.0 {
            is_topic &= !matches!(*byte, b'/' | b'+' | b'#');
            if *byte == SEPARATOR {
                *byte = b'/';
            }
        }
        match std::str::from_utf8(&self.0) {
            Ok(topic) if is_topic => Ok(topic),
            _ => Err(damaged(key)),
        }
    }
}

#[cold]
fn damaged(key: &[u8]) -> Error {
    /// Number of bytes that an error shows.
    const SHOWN: usize = 100;
    let shown = key[..key.len().min(SHOWN)].escape_ascii().to_string();
    Corrupt::new("key of a topic", 0, shown, "the key of a topic").into()
}
