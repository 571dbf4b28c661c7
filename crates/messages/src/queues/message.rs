//! The encoded form of messages.
//!
//! ```text
//!  0  u8    flags: 1 not before, 2 expiry, 4 ordering key, 8 idempotency key, 16 headers
//!  1  u8    priority
//!  2  i64   time of the push
//! 10  i64   not before             ─┐
//!     i64   expiry                  │
//!     u16, bytes   ordering key     │ each only with its flag
//!     u16, bytes   idempotency key  │
//!     u16, headers                 ─┘ their number; each: u16, u16, bytes of the name, bytes of the value
//!     bytes        payload
//! ```
//!
//! All fields before the payload fit into the first chunk of a large value, so they are read without the payload.

use crate::queues::keys::lane_of;
use crate::queues::options::{
    HEADERS_BYTES_MAX, IDEMPOTENCY_KEY_BYTES_MAX, ORDERING_KEY_BYTES_MAX, QUEUE_PAYLOAD_BYTES_MAX,
    check_limit,
};
use crate::queues::parts::damaged;
use tidalite_kv::{VALUE_CHUNK_BYTES, Value};
use tidalite_pager::Result;
use tidalite_time::Timestamp;

/// The default priority of messages.
pub const PRIORITY_DEFAULT: u8 = 128;

const NOT_BEFORE: u8 = 1;
const EXPIRES: u8 = 2;
const KEY: u8 = 4;
const IDEMPOTENCY: u8 = 8;
const HEADERS: u8 = 16;
const FIXED_BYTES: usize = 10;
const _: () = assert!(
    FIXED_BYTES + 22 + ORDERING_KEY_BYTES_MAX + IDEMPOTENCY_KEY_BYTES_MAX + HEADERS_BYTES_MAX
        < VALUE_CHUNK_BYTES
);

/// A message to push.
#[derive(Clone, Copy, Debug)]
pub struct NewMessage<'m> {
    /// The payload.
    pub payload: &'m [u8],
    /// Messages with the same ordering key are delivered one after the other, in the order of their ids.
    pub key: Option<&'m [u8]>,
    /// Messages with a higher priority are delivered first. It does not affect the order of messages with the same
    /// ordering key.
    pub priority: u8,
    /// Time before which the message is not delivered.
    pub not_before: Option<Timestamp>,
    /// Time from which the message is no longer delivered; it is then removed.
    pub expires: Option<Timestamp>,
    /// Headers: names and values.
    pub headers: &'m [(&'m [u8], &'m [u8])],
    /// A second push with the same key within the queue's window stores nothing.
    pub idempotency_key: Option<&'m [u8]>,
}

impl<'m> NewMessage<'m> {
    /// A message with this payload and the default priority. All other fields are empty.
    #[must_use]
    pub fn new(payload: &'m [u8]) -> Self {
        Self {
            payload,
            key: None,
            priority: PRIORITY_DEFAULT,
            not_before: None,
            expires: None,
            headers: &[],
            idempotency_key: None,
        }
    }

    /// Checks the lengths of all parts, and returns the length in bytes of the encoded message.
    pub(crate) fn check(&self) -> Result<u64> {
        check_limit(
            "bytes of the payload of a message",
            self.payload.len(),
            QUEUE_PAYLOAD_BYTES_MAX,
        )?;
        let mut bytes = FIXED_BYTES + self.payload.len();
        bytes += 8 * usize::from(self.not_before.is_some());
        bytes += 8 * usize::from(self.expires.is_some());
        if let Some(key) = self.key {
            check_limit(
                "bytes of an ordering key",
                key.len(),
                ORDERING_KEY_BYTES_MAX,
            )?;
            bytes += 2 + key.len();
        }
        if let Some(key) = self.idempotency_key {
            check_limit(
                "bytes of an idempotency key",
                key.len(),
                IDEMPOTENCY_KEY_BYTES_MAX,
            )?;
            bytes += 2 + key.len();
        }
        if !self.headers.is_empty() {
            let headers = self
                .headers
                .iter()
                .map(|(name, value)| 4 + name.len() + value.len())
                .sum();
            check_limit("bytes of headers", headers, HEADERS_BYTES_MAX)?;
            bytes += 2 + headers;
        }
        Ok(bytes as u64)
    }

    /// Writes the message that is pushed at `now` to `bytes`. The lengths must have been checked.
    pub(crate) fn encode(&self, now: i64, bytes: &mut Vec<u8>) {
        bytes.clear();
        let mut flags = 0;
        for (flag, is_set) in [
            (NOT_BEFORE, self.not_before.is_some()),
            (EXPIRES, self.expires.is_some()),
            (KEY, self.key.is_some()),
            (IDEMPOTENCY, self.idempotency_key.is_some()),
            (HEADERS, !self.headers.is_empty()),
        ] {
            flags |= flag * u8::from(is_set);
        }
        bytes.extend_from_slice(&[flags, self.priority]);
        bytes.extend_from_slice(&now.to_le_bytes());
        for time in [self.not_before, self.expires].into_iter().flatten() {
            bytes.extend_from_slice(&time.0.to_le_bytes());
        }
        for key in [self.key, self.idempotency_key].into_iter().flatten() {
            bytes.extend_from_slice(&(key.len() as u16).to_le_bytes());
            bytes.extend_from_slice(key);
        }
        if !self.headers.is_empty() {
            bytes.extend_from_slice(&(self.headers.len() as u16).to_le_bytes());
            for (name, value) in self.headers {
                bytes.extend_from_slice(&(name.len() as u16).to_le_bytes());
                bytes.extend_from_slice(&(value.len() as u16).to_le_bytes());
                bytes.extend_from_slice(name);
                bytes.extend_from_slice(value);
            }
        }
        bytes.extend_from_slice(self.payload);
    }

    /// The properties of the message that affect its handling in the queue.
    pub(crate) fn head(&self, now: i64, bytes: u64) -> Head {
        Head {
            priority: self.priority,
            pushed: now,
            not_before: self.not_before.map(|time| time.0),
            expires: self.expires.map(|time| time.0),
            lane: self.key.map(lane_of),
            bytes,
        }
    }
}

/// A stored message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueMessage {
    /// Its id. Ids ascend in the order of the pushes.
    pub id: u64,
    /// The payload.
    pub payload: Vec<u8>,
    /// The ordering key.
    pub key: Option<Vec<u8>>,
    /// Headers: names and values.
    pub headers: Vec<(Vec<u8>, Vec<u8>)>,
    /// The priority.
    pub priority: u8,
    /// Time of the push.
    pub pushed: Timestamp,
    /// Time before which it is not delivered.
    pub not_before: Option<Timestamp>,
    /// Time from which it is no longer delivered.
    pub expires: Option<Timestamp>,
    /// The idempotency key.
    pub idempotency_key: Option<Vec<u8>>,
}

impl QueueMessage {
    /// The head of the message, whose encoded length is `bytes`.
    pub(crate) fn head(&self, bytes: u64) -> Head {
        Head {
            priority: self.priority,
            pushed: self.pushed.0,
            not_before: self.not_before.map(|time| time.0),
            expires: self.expires.map(|time| time.0),
            lane: self.key.as_deref().map(lane_of),
            bytes,
        }
    }
}

/// The properties of a message that affect its handling in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) priority: u8,
    pub(crate) pushed: i64,
    pub(crate) not_before: Option<i64>,
    pub(crate) expires: Option<i64>,
    pub(crate) lane: Option<u64>,
    /// Length in bytes of the encoded message.
    pub(crate) bytes: u64,
}

impl Head {
    pub(crate) fn has_expired(&self, now: i64) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

/// Reads fields from the beginning of a byte slice.
struct Fields<'b>(&'b [u8]);

impl<'b> Fields<'b> {
    fn take(&mut self, len: usize) -> Option<&'b [u8]> {
        let (field, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(field)
    }

    fn length(&mut self) -> Option<usize> {
        let bytes = self.take(2)?;
        Some(usize::from(u16::from_le_bytes([bytes[0], bytes[1]])))
    }

    fn time(&mut self) -> Option<i64> {
        let (time, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(i64::from_le_bytes(*time))
    }
}

/// All fields before the payload, borrowed, and the rest of the fields beginning with the headers.
struct Opened<'b> {
    flags: u8,
    head: Head,
    key: Option<&'b [u8]>,
    idempotency_key: Option<&'b [u8]>,
    rest: Fields<'b>,
}

fn open(bytes: &[u8], len: u64) -> Option<Opened<'_>> {
    let mut rest = Fields(bytes);
    let &[flags, priority] = rest.take(2)? else {
        return None;
    };
    if flags >= HEADERS << 1 {
        return None;
    }
    let has = |flag: u8| flags & flag != 0;
    let pushed = rest.time()?;
    let not_before = if has(NOT_BEFORE) {
        Some(rest.time()?)
    } else {
        None
    };
    let expires = if has(EXPIRES) {
        Some(rest.time()?)
    } else {
        None
    };
    let mut keys = [None; 2];
    let limits = [
        (KEY, ORDERING_KEY_BYTES_MAX),
        (IDEMPOTENCY, IDEMPOTENCY_KEY_BYTES_MAX),
    ];
    for (key, (flag, limit)) in keys.iter_mut().zip(limits) {
        if has(flag) {
            let len = rest.length().filter(|&len| len <= limit)?;
            *key = Some(rest.take(len)?);
        }
    }
    let head = Head {
        priority,
        pushed,
        not_before,
        expires,
        lane: None,
        bytes: len,
    };
    Some(Opened {
        flags,
        head,
        key: keys[0],
        idempotency_key: keys[1],
        rest,
    })
}

fn wrong(id: u64, bytes: &[u8]) -> tidalite_pager::Error {
    let found = bytes[..bytes.len().min(16)].escape_ascii().to_string();
    damaged(&format!("message {id} of a queue"), found, "a message")
}

/// Decodes the head of a message, without its payload.
pub(crate) fn head_of(id: u64, value: &Value<'_>) -> Result<Head> {
    if let Some(bytes) = value.as_slice() {
        return decode_head(id, bytes, bytes.len() as u64);
    }
    match value.chunks().next() {
        Some(chunk) => decode_head(id, &chunk?, value.len()),
        None => Err(wrong(id, &[])),
    }
}

fn decode_head(id: u64, bytes: &[u8], len: u64) -> Result<Head> {
    let opened = open(bytes, len).ok_or_else(|| wrong(id, bytes))?;
    Ok(Head {
        lane: opened.key.map(lane_of),
        ..opened.head
    })
}

/// Decodes a message.
pub(crate) fn decode(id: u64, bytes: &[u8]) -> Result<QueueMessage> {
    let decoded = || {
        let mut opened = open(bytes, bytes.len() as u64)?;
        let rest = &mut opened.rest;
        let mut headers = Vec::new();
        if opened.flags & HEADERS != 0 {
            for _ in 0..rest.length()? {
                let (name, value) = (rest.length()?, rest.length()?);
                headers.push((rest.take(name)?.to_vec(), rest.take(value)?.to_vec()));
            }
        }
        Some(QueueMessage {
            id,
            payload: rest.0.to_vec(),
            key: opened.key.map(<[u8]>::to_vec),
            headers,
            priority: opened.head.priority,
            pushed: Timestamp(opened.head.pushed),
            not_before: opened.head.not_before.map(Timestamp),
            expires: opened.head.expires.map(Timestamp),
            idempotency_key: opened.idempotency_key.map(<[u8]>::to_vec),
        })
    };
    decoded().ok_or_else(|| wrong(id, bytes))
}
