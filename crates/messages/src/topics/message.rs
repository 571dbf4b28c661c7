//! Messages, as published and received by callers.

use crate::topics::key::check_topic;
use tidalite_pager::{Error, Refusal, Result};
use tidalite_time::Timestamp;

/// Maximum length in bytes of a payload, which is the maximum length of an MQTT packet. `TopicOptions` can set a lower
/// limit.
pub const TOPIC_PAYLOAD_BYTES_MAX: usize = 268_435_455;

/// Maximum length in bytes of one property, and of the publisher's id.
pub const PROPERTY_BYTES_MAX: usize = 65_535;

/// Maximum length in bytes of all properties of a message together.
pub const PROPERTIES_BYTES_MAX: usize = 1 << 20;

/// Quality of service with which a message was published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Qos {
    /// QoS 0.
    #[default]
    AtMostOnce,
    /// QoS 1.
    AtLeastOnce,
    /// QoS 2.
    ExactlyOnce,
}

impl Qos {
    /// The quality of service with this number; `None` for numbers other than 0, 1 and 2.
    #[must_use]
    pub fn of_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::AtMostOnce),
            1 => Some(Self::AtLeastOnce),
            2 => Some(Self::ExactlyOnce),
            _ => None,
        }
    }
}

/// Properties of a message that are rarely used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties<'m> {
    /// Type of the payload's content, for example a MIME type.
    pub content_type: Option<&'m str>,
    /// Topic for a response.
    pub response_topic: Option<&'m str>,
    /// Data with which the sender of a request identifies the response.
    pub correlation_data: Option<&'m [u8]>,
    /// Names and values, in the order in which they were sent; names may repeat.
    pub user: Vec<(&'m str, &'m str)>,
}

impl Properties<'_> {
    /// Whether any property is set.
    pub(super) fn are_some(&self) -> bool {
        self.content_type.is_some()
            || self.response_topic.is_some()
            || self.correlation_data.is_some()
            || !self.user.is_empty()
    }
}

/// A message of a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message<'m> {
    /// The topic.
    pub topic: &'m str,
    /// The payload.
    pub payload: &'m [u8],
    /// Quality of service with which it was published.
    pub qos: Qos,
    /// Id of the client that published it; empty if unknown.
    pub publisher: &'m str,
    /// Time from which the message is no longer delivered; `None` for never.
    pub expires: Option<Timestamp>,
    /// Payload format indicator: whether the payload is UTF-8 text.
    pub is_text: bool,
    /// Other properties.
    pub properties: Properties<'m>,
}

impl<'m> Message<'m> {
    /// A message without properties.
    #[must_use]
    pub fn new(topic: &'m str, payload: &'m [u8]) -> Self {
        Self {
            topic,
            payload,
            ..Self::default()
        }
    }

    /// Whether the message has neither a publisher nor properties, so that its body is its payload.
    pub(super) fn is_plain(&self) -> bool {
        self.publisher.is_empty() && !self.properties.are_some()
    }

    fn properties_bytes(&self) -> usize {
        let of = |text: Option<&str>| text.map_or(0, str::len);
        let user = self.properties.user.iter();
        of(self.properties.content_type)
            + of(self.properties.response_topic)
            + self.properties.correlation_data.map_or(0, <[u8]>::len)
            + user
                .map(|(name, value)| name.len() + value.len())
                .sum::<usize>()
    }

    /// Checks the message against all limits except the options of a table.
    pub(super) fn check(&self) -> Result<()> {
        check_topic(self.topic)?;
        limited(
            "bytes of a payload",
            self.payload.len(),
            TOPIC_PAYLOAD_BYTES_MAX,
        )?;
        text("bytes of a publisher's id", self.publisher)?;
        let Properties {
            content_type,
            response_topic,
            correlation_data,
            user,
        } = &self.properties;
        if let Some(content_type) = content_type {
            text("bytes of a content type", content_type)?;
        }
        if let Some(response_topic) = response_topic {
            check_topic(response_topic)?;
        }
        if let Some(data) = correlation_data {
            limited("bytes of correlation data", data.len(), PROPERTY_BYTES_MAX)?;
        }
        for (name, value) in user {
            text("bytes of a user property's name", name)?;
            text("bytes of a user property's value", value)?;
        }
        // The lengths of each user property are counted too, so that the number of user properties is bounded.
        let bytes = self.properties_bytes() + 2 * user.len();
        limited(
            "bytes of a message's properties",
            bytes,
            PROPERTIES_BYTES_MAX,
        )
    }
}

/// Checks that a text is valid in MQTT.
fn text(what: &'static str, text: &str) -> Result<()> {
    limited(what, text.len(), PROPERTY_BYTES_MAX)?;
    match text.contains('\0') {
        true => Err(Error::refused(
            Refusal::InvalidInput,
            format!("the text {text:?} of a message"),
            "a text without NUL",
        )),
        false => Ok(()),
    }
}

pub(super) fn limited(what: &'static str, found: usize, limit: usize) -> Result<()> {
    match found > limit {
        true => Err(Error::Limit {
            what,
            found: found as u64,
            limit: limit as u64,
        }),
        false => Ok(()),
    }
}

/// A retained message, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retained<'m> {
    /// The message.
    pub message: Message<'m>,
    /// Id of the topic. It does not change while the topic has a message.
    pub id: u64,
    /// Number of the change that set this message: greater than the numbers of all earlier changes.
    pub sequence: u64,
    /// Time of publication.
    pub time: Timestamp,
}

impl Retained<'_> {
    /// Whether the message is no longer delivered at the time `now`.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.message.expires.is_some_and(|expires| expires <= now)
    }

    /// Seconds until the message expires, rounded up: the message expiry interval of a delivery. `None` for a message
    /// that never expires.
    #[must_use]
    pub fn expiry_seconds(&self, now: Timestamp) -> Option<u32> {
        const SECOND: i128 = 1_000_000_000;
        let left = i128::from(self.message.expires?.0) - i128::from(now.0);
        let seconds = (left + SECOND - 1).div_euclid(SECOND);
        Some(u32::try_from(seconds.max(0)).unwrap_or(u32::MAX))
    }
}
