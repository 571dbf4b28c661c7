//! Keys of rows. All numbers are big-endian, and the sign bit of times is flipped, so that keys sort like their
//! numbers.
//!
//! ```text
//! message            | container: u32 | time: i64 | tie: u32 |
//! deletion           | container: u32 | deletion: u64 |
//! deleted message    | container: u32 | deletion: u64 | time: i64 | tie: u32 |
//! idempotency key    | container: u32 | key |
//! time of such a key | time: i64 | container: u32 | key |
//! dropped container  | name | 0 | number: u32 |
//! ```

use crate::containers::parts::{damaged, shown};
use tidalite_base::Ordered;
use tidalite_pager::Result;
use tidalite_time::Timestamp;

/// Length in bytes of the key of a message.
pub(crate) const MESSAGE_KEY_BYTES: usize = 16;
const DELETION_KEY_BYTES: usize = 12;
const TRASH_KEY_BYTES: usize = DELETION_KEY_BYTES + 12;

/// The identity of a message: its container, its time, and a number (the tie) that distinguishes messages of the same
/// time.
///
/// Keys sort by container, then by time, then by the order in which messages of the same time arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageKey {
    /// Number of the container.
    pub container: u32,
    /// Time of the message.
    pub time: Timestamp,
    /// 0 for the first message of this time; ascending for the following ones.
    pub tie: u32,
}

impl MessageKey {
    pub(crate) fn new(container: u32, time: i64, tie: u32) -> Self {
        Self {
            container,
            time: Timestamp(time),
            tie,
        }
    }

    pub(crate) fn encode(self) -> [u8; MESSAGE_KEY_BYTES] {
        let mut bytes = [0; MESSAGE_KEY_BYTES];
        bytes[..4].copy_from_slice(&self.container.to_be_bytes());
        bytes[4..12].copy_from_slice(&time_bytes(self.time.0));
        bytes[12..].copy_from_slice(&self.tie.to_be_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        type Fields = (u32, i64, u32);
        match <Fields as Ordered>::from_key(bytes) {
            Some((container, time, tie)) => Ok(Self::new(container, time, tie)),
            None => Err(damaged("key of a message", shown(bytes), "16 bytes")),
        }
    }
}

/// Encodes a time as bytes that sort like it.
pub(crate) fn time_bytes(time: i64) -> [u8; 8] {
    (time as u64 ^ 1 << 63).to_be_bytes()
}

/// The key of a row that belongs to a whole container.
pub(crate) fn container_key(container: u32) -> [u8; 4] {
    container.to_be_bytes()
}

/// The first key after all rows whose keys begin with the number of this container. The number must not be the last
/// one, which is never assigned to a container.
pub(crate) fn behind_container(container: u32) -> [u8; 4] {
    container.saturating_add(1).to_be_bytes()
}

/// The number of a container at the beginning of a key.
pub(crate) fn container_of(bytes: &[u8]) -> Result<u32> {
    match bytes.first_chunk() {
        Some(number) => Ok(u32::from_be_bytes(*number)),
        None => Err(damaged("key of a container", shown(bytes), "4 bytes")),
    }
}

/// The number that is the whole key.
pub(crate) fn number_of(bytes: &[u8]) -> Result<u32> {
    match bytes.len() {
        4 => container_of(bytes),
        _ => Err(damaged("key of a number", shown(bytes), "4 bytes")),
    }
}

pub(crate) fn deletion_key(container: u32, deletion: u64) -> [u8; DELETION_KEY_BYTES] {
    let mut bytes = [0; DELETION_KEY_BYTES];
    bytes[..4].copy_from_slice(&container.to_be_bytes());
    bytes[4..].copy_from_slice(&deletion.to_be_bytes());
    bytes
}

pub(crate) fn split_deletion(bytes: &[u8]) -> Result<(u32, u64)> {
    match <(u32, u64) as Ordered>::from_key(bytes) {
        Some(found) => Ok(found),
        None => Err(damaged("key of a deletion", shown(bytes), "12 bytes")),
    }
}

pub(crate) fn trash_key(deletion: u64, key: MessageKey) -> [u8; TRASH_KEY_BYTES] {
    let mut bytes = [0; TRASH_KEY_BYTES];
    bytes[..DELETION_KEY_BYTES].copy_from_slice(&deletion_key(key.container, deletion));
    bytes[DELETION_KEY_BYTES..].copy_from_slice(&key.encode()[4..]);
    bytes
}

pub(crate) fn split_trash(bytes: &[u8]) -> Result<(u64, MessageKey)> {
    type Fields = (u32, u64, i64, u32);
    match <Fields as Ordered>::from_key(bytes) {
        Some((container, deletion, time, tie)) => {
            Ok((deletion, MessageKey::new(container, time, tie)))
        }
        None => Err(damaged(
            "key of a deleted message",
            shown(bytes),
            "24 bytes",
        )),
    }
}

pub(crate) fn seen_key(container: u32, key: &[u8]) -> Vec<u8> {
    [&container.to_be_bytes()[..], key].concat()
}

pub(crate) fn seen_time(time: i64, container: u32, key: &[u8]) -> Vec<u8> {
    [&time_bytes(time)[..], &container.to_be_bytes(), key].concat()
}

/// Splits the key of a row of `SeenTimes` into the time and the key of the row in `Seen`.
pub(crate) fn split_seen_time(bytes: &[u8]) -> Result<(i64, &[u8])> {
    match bytes.split_first_chunk::<8>() {
        Some((time, key)) if key.len() >= 4 => {
            Ok(((u64::from_be_bytes(*time) ^ 1 << 63) as i64, key))
        }
        _ => Err(damaged(
            "time of an idempotency key",
            shown(bytes),
            "12 bytes and the key",
        )),
    }
}

/// The common beginning of the keys of all dropped containers with a name. Names contain no zero bytes.
pub(crate) fn dropped_prefix(name: &str) -> Vec<u8> {
    [name.as_bytes(), &[0]].concat()
}

pub(crate) fn dropped_key(name: &str, number: u32) -> Vec<u8> {
    [name.as_bytes(), &[0], &number.to_be_bytes()].concat()
}

/// The name and the number in the key of a dropped container.
pub(crate) fn split_dropped(bytes: &[u8]) -> Result<(&str, u32)> {
    let split = bytes
        .split_last_chunk::<4>()
        .and_then(|(name, number)| Some((name.strip_suffix(&[0])?, u32::from_be_bytes(*number))))
        .and_then(|(name, number)| Some((std::str::from_utf8(name).ok()?, number)));
    split.ok_or_else(|| {
        damaged(
            "key of a dropped container",
            shown(bytes),
            "name, 0, number",
        )
    })
}

/// Reads a name of a container or a field.
pub(crate) fn text_of(bytes: &[u8]) -> Result<&str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(_) => Err(damaged("name", shown(bytes), "UTF-8")),
    }
}
