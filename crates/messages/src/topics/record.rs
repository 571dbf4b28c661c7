//! The record of a message: the value of its row in the table of messages.
//!
//! ```text
//!  0  u8      flags: 1 and 2 the quality of service, 4 the payload is text, 8 expires, 16 filed, 32 publisher,
//!             64 properties
//!  1  u56     sequence number
//!  8  i64     time of publication
//! 16  varint  id of the topic
//!  .  i64     expires: time of expiry                    (flag 8)
//!  .  i64     filed: time in the expiry index            (flag 16; without it the time of expiry)
//!  .  bytes   publisher                                  (flag 32)
//!  .  properties                                         (flag 64)
//!  .  payload, to the end
//!
//! properties
//! 0  u8      flags: 1 content type, 2 response topic, 4 correlation data, 8 user properties
//! .  bytes   each of the first three that its flag names
//! .  varint  number of user properties; for each: bytes of the name, bytes of the value
//! ```
//!
//! `bytes`: their number as varint, followed by the bytes. The fields of the old record that an overwrite needs come
//! first. The sequence number has a fixed length. So if the payload keeps its length, the new record has the length of
//! the old one and can replace it in place.
//!
//! A message that replaces one with an earlier expiry keeps the old row in the expiry index (`filed`), so the index
//! does not change when a topic is published repeatedly.

use crate::topics::message::{Message, PROPERTIES_BYTES_MAX, Properties, Qos, Retained};
use crate::topics::varint::{self, get_bytes, put_bytes};
use tidalite_base::{Corrupt, get_i64, get_u64};
use tidalite_kv::Value;
use tidalite_pager::{Error, Result};
use tidalite_time::Timestamp;

const QOS: u8 = 3;
const TEXT: u8 = 4;
const EXPIRES: u8 = 8;
const FILED: u8 = 16;
const PUBLISHER: u8 = 32;
const PROPERTIES: u8 = 64;
const UNKNOWN: u8 = 128;

const CONTENT_TYPE: u8 = 1;
const RESPONSE_TOPIC: u8 = 2;
const CORRELATION_DATA: u8 = 4;
const USER: u8 = 8;

/// Sequence numbers are below this value, which is enough for two thousand years with a million changes a second.
pub(super) const SEQUENCES_MAX: u64 = 1 << 56;

const TIME_AT: usize = 8;
const ID_AT: usize = TIME_AT + 8;

/// Maximum number of user properties: each counts as at least two bytes (`Message::check`).
const USER_PROPERTIES_MAX: u64 = PROPERTIES_BYTES_MAX as u64 / 2;

/// Maximum length in bytes of the fields before the publisher.
const HEAD_BYTES_MAX: usize = ID_AT + 10 + 8 + 8;

/// The first fields of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    flags: u8,
    pub(super) id: u64,
    pub(super) sequence: u64,
    pub(super) time: i64,
    pub(super) expires: Option<i64>,
    /// Time of the message's row in the expiry index, not later than `expires`.
    pub(super) filed: Option<i64>,
    /// Offset of the first byte after these fields.
    pub(super) len: usize,
}

/// The numbers that a table assigns to a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    pub(super) id: u64,
    pub(super) sequence: u64,
    pub(super) time: i64,
    pub(super) filed: Option<i64>,
}

/// Size of a message as counted in limits and totals: topic, publisher, properties and payload in their encoded form.
pub(super) fn counted_bytes(key: &[u8], record_len: u64, head: &Head) -> u64 {
    key.len() as u64 + record_len.saturating_sub(head.len as u64)
}

#[cold]
fn damaged(found: impl std::fmt::Display) -> Error {
    Corrupt::new("message of a topic", 0, found, "a record").into()
}

/// Appends everything after the head: publisher, properties and payload.
fn put_body(message: &Message<'_>, flags: u8, record: &mut Vec<u8>) {
    if flags & PUBLISHER != 0 {
        put_bytes(message.publisher.as_bytes(), record);
    }
    if flags & PROPERTIES != 0 {
        let Properties {
            content_type,
            response_topic,
            correlation_data,
            user,
        } = &message.properties;
        let three = [
            content_type.map(str::as_bytes),
            response_topic.map(str::as_bytes),
            *correlation_data,
        ];
        let mut which = if user.is_empty() { 0 } else { USER };
        for (bit, one) in three.iter().enumerate() {
            which |= u8::from(one.is_some()) << bit;
        }
        record.push(which);
        for one in three.into_iter().flatten() {
            put_bytes(one, record);
        }
        if !user.is_empty() {
            varint::put(user.len() as u64, record);
            for (name, value) in user {
                put_bytes(name.as_bytes(), record);
                put_bytes(value.as_bytes(), record);
            }
        }
    }
    record.extend_from_slice(message.payload);
}

/// Replaces the contents of `record` by the record of a message; returns the length in bytes of its head.
pub(super) fn encode(message: &Message<'_>, numbers: &Numbers, record: &mut Vec<u8>) -> usize {
    record.clear();
    let has_properties = message.properties.are_some();
    let mut flags = message.qos as u8;
    for (is_set, flag) in [
        (message.is_text, TEXT),
        (!message.publisher.is_empty(), PUBLISHER),
        (has_properties, PROPERTIES),
    ] {
        flags |= if is_set { flag } else { 0 };
    }
    put_head(flags, numbers, message.expires.map(|time| time.0), record);
    let head_len = record.len();
    put_body(message, flags, record);
    head_len
}

fn put_head(flags: u8, numbers: &Numbers, expires: Option<i64>, record: &mut Vec<u8>) {
    let is_filed = numbers.filed != expires;
    debug_assert!(numbers.filed.is_some() == expires.is_some(), "both or none");
    let expiry = if expires.is_some() { EXPIRES } else { 0 };
    let filed = if is_filed { FILED } else { 0 };
    debug_assert!(numbers.sequence < SEQUENCES_MAX, "the caller limits them");
    let flags = flags & !(EXPIRES | FILED) | expiry | filed;
    record.extend_from_slice(&(numbers.sequence << 8 | u64::from(flags)).to_le_bytes());
    record.extend_from_slice(&numbers.time.to_le_bytes());
    varint::put(numbers.id, record);
    if let Some(expires) = expires {
        record.extend_from_slice(&expires.to_le_bytes());
    }
    if let Some(filed) = numbers.filed.filter(|_| is_filed) {
        record.extend_from_slice(&filed.to_le_bytes());
    }
}

/// The same record with another id, and with another time of its row in the expiry index.
pub(super) fn renumbered(record: &[u8], id: u64, filed: Option<i64>) -> Result<Vec<u8>> {
    let head = decode_head(record)?;
    let mut changed = Vec::with_capacity(record.len() + HEAD_BYTES_MAX);
    let numbers = Numbers {
        id,
        sequence: head.sequence,
        time: head.time,
        filed,
    };
    put_head(head.flags, &numbers, head.expires, &mut changed);
    changed.extend_from_slice(&record[head.len..]);
    Ok(changed)
}

/// Decodes the first fields; `record` may end after them.
pub(super) fn decode_head(record: &[u8]) -> Result<Head> {
    head_of(record).ok_or_else(|| damaged(format!("a head of {} bytes", record.len())))
}

fn head_of(record: &[u8]) -> Option<Head> {
    let fixed: &[u8; ID_AT] = record.first_chunk()?;
    let (flags, sequence) = (fixed[0], get_u64(fixed, 0) >> 8);
    let time = get_i64(fixed, TIME_AT);
    let mut at = ID_AT;
    let id = varint::get(record, &mut at)?;
    let mut number = || {
        let field = record.get(at..at + 8)?;
        at += 8;
        Some(get_i64(field, 0))
    };
    let expires = match flags & EXPIRES {
        0 => None,
        _ => Some(number()?),
    };
    let filed = match flags & FILED {
        0 => expires,
        _ => Some(number()?),
    };
    let is_filed = flags & FILED != 0;
    let fits = !is_filed || expires.is_some() && filed < expires;
    (flags & UNKNOWN == 0 && flags & QOS < 3 && fits).then_some(Head {
        flags,
        id,
        sequence,
        time,
        expires,
        filed,
        len: at,
    })
}

/// Decodes the first fields of a record that may be stored outside its leaf.
pub(super) fn head_in(value: &Value<'_>) -> Result<Head> {
    if let Some(record) = value.as_slice() {
        return decode_head(record);
    }
    match value.chunks().next() {
        Some(chunk) => decode_head(&chunk?),
        None => Err(damaged("no bytes")),
    }
}

/// Decodes a whole record.
pub(super) fn decode<'m>(topic: &'m str, record: &'m [u8]) -> Result<Retained<'m>> {
    let head = decode_head(record)?;
    let Some(message) = body_of(topic, record, &head) else {
        return Err(damaged(format!("properties in {} bytes", record.len())));
    };
    Ok(Retained {
        message,
        id: head.id,
        sequence: head.sequence,
        time: Timestamp(head.time),
    })
}

fn body_of<'m>(topic: &'m str, record: &'m [u8], head: &Head) -> Option<Message<'m>> {
    let mut at = head.len;
    let text = |at: &mut usize| std::str::from_utf8(get_bytes(record, at)?).ok();
    let publisher = match head.flags & PUBLISHER {
        0 => "",
        _ => text(&mut at).filter(|publisher| !publisher.is_empty())?,
    };
    let mut properties = Properties::default();
    if head.flags & PROPERTIES != 0 {
        let which = *record.get(at)?;
        at += 1;
        if which == 0 || which >= 2 * USER {
            return None;
        }
        if which & CONTENT_TYPE != 0 {
            properties.content_type = Some(text(&mut at)?);
        }
        if which & RESPONSE_TOPIC != 0 {
            properties.response_topic = Some(text(&mut at)?);
        }
        if which & CORRELATION_DATA != 0 {
            properties.correlation_data = Some(get_bytes(record, &mut at)?);
        }
        if which & USER != 0 {
            // No memory is reserved in advance, because the number may be damaged.
            let count = varint::get(record, &mut at);
            let count = count.filter(|count| (1..=USER_PROPERTIES_MAX).contains(count))?;
            for _ in 0..count {
                let name = text(&mut at)?;
                properties.user.push((name, text(&mut at)?));
            }
        }
    }
    Some(Message {
        topic,
        payload: record.get(at..)?,
        qos: Qos::of_number(head.flags & QOS)?,
        publisher,
        expires: head.expires.map(Timestamp),
        is_text: head.flags & TEXT != 0,
        properties,
    })
}
