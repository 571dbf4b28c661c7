//! Reads topics (section 9.11 of docs/format.md): the retained messages and the feed of changes. The rows that are
//! derived from the messages are checked as well.

use crate::bytes::{Fields, key_time, little};
use crate::error::Result;
use crate::image::text;
use crate::parts::{Expected, Parts, end, key};
use crate::runs::require;
use crate::table::Rows;
use crate::tag_index::{Sets, sets_of};

const MESSAGES: u8 = 2;
const IDS: u8 = 3;
const TERMS: u8 = 4;
const EXPIRY: u8 = 5;
const FEED: u8 = 6;

const EXPIRES: u8 = 8;
const FILED: u8 = 16;
const PUBLISHER: u8 = 32;
const PROPERTIES: u8 = 64;

const TERM_BYTES: usize = 64;
const LEVELS_MAX: usize = 255;

/// A table of topics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topics {
    /// The limits for writers.
    pub options: Options,
    /// Number of bytes of all messages.
    pub bytes: u64,
    /// Number of the newest change.
    pub sequence: u64,
    /// The messages, ordered by the levels of their topics.
    pub messages: Vec<Message>,
    /// The feed: numbers of changes, the topics, and whether the message was removed.
    pub changes: Vec<(u64, String, bool)>,
}

/// The options of a table of topics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Maximum number of levels of a topic.
    pub levels_max: u8,
    /// Maximum length in bytes of a topic.
    pub topic_bytes_max: usize,
    /// Maximum length in bytes of a payload.
    pub payload_bytes_max: usize,
    /// Maximum number of messages.
    pub messages_max: u64,
    /// Maximum number of bytes of all messages.
    pub bytes_max: u64,
    /// Number of changes that the feed keeps.
    pub feed_changes: u64,
}

/// The retained message of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The topic.
    pub topic: String,
    /// Id of the topic.
    pub id: u64,
    /// Number of the change that set the message.
    pub sequence: u64,
    /// Time of publication.
    pub time: i64,
    /// Quality of service.
    pub qos: u8,
    /// True if the payload is text.
    pub is_text: bool,
    /// Time of expiry.
    pub expires: Option<i64>,
    /// Id of the publisher; empty if it is not known.
    pub publisher: String,
    /// The properties.
    pub properties: Properties,
    /// The payload.
    pub payload: Vec<u8>,
}

/// Properties of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    /// Type of the contents.
    pub content_type: Option<String>,
    /// Topic for a response.
    pub response_topic: Option<String>,
    /// Correlation data.
    pub correlation_data: Option<Vec<u8>>,
    /// Names and values.
    pub user: Vec<(String, String)>,
}

impl Topics {
    /// Reads the rows of the root table.
    ///
    /// # Errors
    /// If the rows break a rule of the format.
    pub fn read(root: &Rows) -> Result<Self> {
        let parts = Parts::new(root, FEED)?;
        let options = Options::read(&mut parts.options())?;
        let mut state = parts.state();
        let (messages, bytes, sequence) = (state.u64()?, state.u64()?, state.u64()?);
        let (next_id, feed_from) = (state.u64()?, state.u64()?);
        end(&state, "the state of topics goes on")?;
        require(
            sequence < 1 << 56 && messages <= next_id && next_id <= 1 << 48,
            "the state of topics",
        )?;
        require(
            feed_from >= 1 && feed_from <= sequence + 1,
            "the beginning of a feed",
        )?;
        let mut topics = Self {
            options,
            bytes,
            sequence,
            messages: Vec::new(),
            changes: Vec::new(),
        };
        let (mut ids, mut expiry, mut terms) = (Expected::new(), Expected::new(), Sets::new());
        let mut counted = 0;
        for (row, record) in parts.rows(MESSAGES) {
            let (message, filed, head) = Message::read(row, record)?;
            counted += (row.len() + record.len() - head) as u64;
            require(
                (1..=sequence).contains(&message.sequence) && message.id < next_id,
                "the numbers of a message",
            )?;
            let id = message.id.to_be_bytes();
            let is_new = ids.insert(id.to_vec(), row.to_vec()).is_none();
            require(is_new, "two topics with one id")?;
            if let Some(filed) = filed {
                expiry.insert(key(&[&key_time(filed), &id]), Vec::new());
            }
            for term in terms_of(row) {
                terms.entry(term).or_default().insert(message.id);
            }
            topics.messages.push(message);
        }
        require(
            topics.messages.len() as u64 == messages && counted == bytes,
            "the totals of topics",
        )?;
        parts.has(IDS, &ids, "the topics of ids")?;
        parts.has(EXPIRY, &expiry, "the times of expiry of topics")?;
        let found = sets_of(parts.rows(TERMS).to_vec())?;
        require(found == terms, "the terms of topics")?;
        let feed = parts.rows(FEED);
        let first = if topics.options.feed_changes == 0 {
            require(
                feed_from == sequence + 1,
                "the beginning of a feed that is not kept",
            )?;
            sequence + 1
        } else {
            require(
                feed.len() as u64 <= topics.options.feed_changes,
                "the length of a feed",
            )?;
            feed_from
        };
        require(
            feed.len() as u64 == sequence + 1 - first,
            "the changes of a feed",
        )?;
        for (number, (row, value)) in (first..).zip(feed) {
            require(*row == number.to_be_bytes(), "the number of a change")?;
            let mut fields = Fields::new(value, 0);
            let kind = fields.u8()?;
            fields.require(kind <= 1, "the kind of a change")?;
            let topic = topic_of(fields.rest())?;
            topics.changes.push((number, topic, kind == 1));
        }
        Ok(topics)
    }
}

impl Options {
    fn read(fields: &mut Fields<'_>) -> Result<Self> {
        let version = fields.u8()?;
        let options = Self {
            levels_max: fields.u8()?,
            topic_bytes_max: fields.u16()?,
            payload_bytes_max: fields.u32()?,
            messages_max: fields.u64()?,
            bytes_max: fields.u64()?,
            feed_changes: fields.u64()?,
        };
        end(fields, "the options of topics go on")?;
        fields.require(
            version == 1
                && options.levels_max > 0
                && options.topic_bytes_max > 0
                && options.payload_bytes_max <= 268_435_455,
            "the options of topics",
        )?;
        Ok(options)
    }
}

impl Message {
    /// Reads a message, the time of its row among the times of expiry, and the bytes of its head.
    fn read(row: &[u8], record: &[u8]) -> Result<(Self, Option<i64>, usize)> {
        let mut fields = Fields::new(record, 0);
        let flags = fields.u8()?;
        let has = |flag| flags & flag != 0;
        fields.require(
            flags & 3 < 3 && flags < 128 && (has(EXPIRES) || !has(FILED)),
            "the flags of a message",
        )?;
        let sequence = little(fields.take(7)?);
        let time = fields.i64()?;
        let id = fields.varint()?;
        let expires = if has(EXPIRES) {
            Some(fields.i64()?)
        } else {
            None
        };
        let filed = if has(FILED) {
            let filed = fields.i64()?;
            fields.require(Some(filed) < expires, "when a message was filed")?;
            Some(filed)
        } else {
            expires
        };
        let head = fields.position();
        let mut publisher = String::new();
        if has(PUBLISHER) {
            publisher = string(&mut fields)?;
            fields.require(!publisher.is_empty(), "an empty publisher")?;
        }
        let mut properties = Properties::default();
        if has(PROPERTIES) {
            properties = Properties::read(&mut fields)?;
        }
        fields.require(fields.left() > 0, "a message without a payload")?;
        let message = Self {
            topic: topic_of(row)?,
            id,
            sequence,
            time,
            qos: flags & 3,
            is_text: has(4),
            expires,
            publisher,
            properties,
            payload: fields.rest().to_vec(),
        };
        Ok((message, filed, head))
    }
}

impl Properties {
    fn read(fields: &mut Fields<'_>) -> Result<Self> {
        let flags = fields.u8()?;
        fields.require((1..16).contains(&flags), "the flags of properties")?;
        let mut properties = Self::default();
        if flags & 1 != 0 {
            properties.content_type = Some(string(fields)?);
        }
        if flags & 2 != 0 {
            properties.response_topic = Some(string(fields)?);
        }
        if flags & 4 != 0 {
            properties.correlation_data = Some(bytes(fields)?.to_vec());
        }
        if flags & 8 != 0 {
            let count = fields.varint()?;
            fields.require((1..=524_288).contains(&count), "user properties")?;
            for _ in 0..count {
                properties.user.push((string(fields)?, string(fields)?));
            }
        }
        Ok(properties)
    }
}

fn bytes<'a>(fields: &mut Fields<'a>) -> Result<&'a [u8]> {
    let length = fields.varint32()?;
    fields.take(length)
}

fn string(fields: &mut Fields<'_>) -> Result<String> {
    let bytes = bytes(fields)?;
    text(bytes, fields)
}

/// The topic of a key.
fn topic_of(row: &[u8]) -> Result<String> {
    let fields = Fields::new(row, 0);
    let levels = row.split(|byte| *byte == 0).count();
    fields.require(
        (1..=65_535).contains(&row.len())
            && levels <= LEVELS_MAX
            && !row.iter().any(|byte| b"#+/".contains(byte)),
        "the key of a topic",
    )?;
    Ok(text(row, &fields)?.replace('\0', "/"))
}

/// The keys of the sets in which the id of a topic is.
fn terms_of(row: &[u8]) -> Vec<Vec<u8>> {
    let names: Vec<&[u8]> = row.split(|byte| *byte == 0).collect();
    let last = names.len() - 1;
    let names = names.into_iter().enumerate();
    let terms = names.map(|(level, name)| {
        let name = &name[..name.len().min(TERM_BYTES)];
        key(&[&[level as u8, u8::from(level == last)], name, &[0]])
    });
    terms.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_description_is_read() {
        let row = b"device\x0017\x00temp";
        let mut record = vec![0x7d, 0x70, 0x11, 1, 0, 0, 0, 0];
        for number in [1_000_000_000_i64, 3_600_000_000_000, 1_800_000_000_000] {
            record.extend(number.to_le_bytes());
        }
        record.splice(16..16, [0xac, 2]);
        record.extend(b"\x02gw\x09\x0atext/plain\x01\x04unit\x01C21.5");
        let (message, filed, head) = Message::read(row, &record).expect("a message");
        assert_eq!((message.id, message.sequence), (300, 70_000));
        assert_eq!(filed, Some(1_800_000_000_000));
        assert_eq!(row.len() + record.len() - head, 41);
        assert_eq!(message.topic, "device/17/temp");
        assert_eq!(message.payload, b"21.5");
        let terms = terms_of(row);
        assert_eq!(terms[0], b"\x00\x00device\x00");
        assert_eq!(terms[2], b"\x02\x01temp\x00");
        assert!(Message::read(row, &record[..42]).is_err());
        assert!(topic_of(b"").is_err() && topic_of(b"a+").is_err());
    }
}
