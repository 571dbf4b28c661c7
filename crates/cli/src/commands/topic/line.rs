//! Converts messages to lines of text and to JSON, and from JSON to messages.

use crate::commands::messages::{bytes_of_json, pairs_json, put_bytes, shown, time_text};
use crate::output::printable;
use crate::time::read_any;
use jiff::tz::TimeZone;
use serde_json::{Map, Value};
use tidalite::Timestamp;
use tidalite::topics::{Message, Properties, Qos, Retained};

/// A message as a line of text: its topic and its payload, separated by a tab.
pub(super) fn text_of(retained: &Retained<'_>) -> String {
    let message = &retained.message;
    format!("{}\t{}", printable(message.topic), shown(message.payload))
}

/// A message with all of its properties as JSON; properties that are not set are omitted.
pub(super) fn json_of(retained: &Retained<'_>) -> Map<String, Value> {
    let message = &retained.message;
    let Properties {
        content_type,
        response_topic,
        correlation_data,
        user,
    } = &message.properties;
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
    put("topic", message.topic.into());
    put("time", time_text(retained.time).into());
    put("sequence", retained.sequence.into());
    put("id", retained.id.into());
    put("qos", (message.qos as u8).into());
    if !message.publisher.is_empty() {
        put("publisher", message.publisher.into());
    }
    if let Some(expires) = message.expires {
        put("expires", time_text(expires).into());
    }
    if message.is_text {
        put("text", true.into());
    }
    if let Some(content_type) = content_type {
        put("content_type", (*content_type).into());
    }
    if let Some(topic) = response_topic {
        put("response_topic", (*topic).into());
    }
    if !user.is_empty() {
        let user = user.iter();
        let user = user.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        put("properties", pairs_json(user));
    }
    put_bytes(&mut object, "payload", message.payload);
    if let Some(data) = correlation_data {
        put_bytes(&mut object, "correlation", data);
    }
    object
}

/// A message that was read from JSON.
#[derive(Debug, Default)]
pub(super) struct Line {
    topic: String,
    payload: Vec<u8>,
    qos: Qos,
    publisher: String,
    expires: Option<Timestamp>,
    is_text: bool,
    content_type: Option<String>,
    response_topic: Option<String>,
    correlation: Option<Vec<u8>>,
    user: Vec<(String, String)>,
    /// Time of publication.
    pub(super) time: Option<Timestamp>,
}

fn text(object: &mut Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match object.remove(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("`{name}` is not a string")),
    }
}

fn time(object: &mut Map<String, Value>, name: &str) -> Result<Option<Timestamp>, String> {
    let Some(text) = text(object, name)? else {
        return Ok(None);
    };
    let time = read_any(&text, &TimeZone::UTC).map_err(|problem| format!("`{name}`: {problem}"))?;
    let time = i64::try_from(time);
    time.map(|time| Some(Timestamp(time)))
        .map_err(|_| format!("`{name}`: {text} is beyond the times that can be stored"))
}

fn user_properties(value: Value) -> Result<Vec<(String, String)>, String> {
    let bad = || "`properties` is not a list of objects with `name` and `value`".to_owned();
    let Value::Array(pairs) = value else {
        return Err(bad());
    };
    let pair = |value: Value| match value {
        Value::Object(mut pair) => {
            let (name, value) = (text(&mut pair, "name")?, text(&mut pair, "value")?);
            match (name, value, pair.is_empty()) {
                (Some(name), Some(value), true) => Ok((name, value)),
                _ => Err(bad()),
            }
        }
        _ => Err(bad()),
    };
    pairs.into_iter().map(pair).collect()
}

impl Line {
    /// Reads a line of JSON.
    pub(super) fn read(line: &[u8]) -> Result<Self, String> {
        let value = serde_json::from_slice(line).map_err(|error| format!("no JSON: {error}"))?;
        let Value::Object(mut object) = value else {
            return Err("not a JSON object".to_owned());
        };
        let object = &mut object;
        for ignored in ["id", "sequence", "event"] {
            object.remove(ignored);
        }
        let qos = match object.remove("qos") {
            None => Some(Qos::default()),
            Some(qos) => qos
                .as_u64()
                .and_then(|qos| u8::try_from(qos).ok())
                .and_then(Qos::of_number),
        };
        let is_text = match object.remove("text") {
            None => Some(false),
            Some(value) => value.as_bool(),
        };
        let read = Self {
            topic: text(object, "topic")?.ok_or("there is no `topic`")?,
            payload: bytes_of_json(object, "payload")?.ok_or("there is no `payload`")?,
            qos: qos.ok_or("`qos` is not 0, 1 or 2")?,
            publisher: text(object, "publisher")?.unwrap_or_default(),
            expires: time(object, "expires")?,
            is_text: is_text.ok_or("`text` is not true or false")?,
            content_type: text(object, "content_type")?,
            response_topic: text(object, "response_topic")?,
            correlation: bytes_of_json(object, "correlation")?,
            user: match object.remove("properties") {
                None => Vec::new(),
                Some(value) => user_properties(value)?,
            },
            time: time(object, "time")?,
        };
        match object.keys().next() {
            None => Ok(read),
            Some(name) => Err(format!("unknown field `{name}`")),
        }
    }

    /// The message.
    pub(super) fn message(&self) -> Message<'_> {
        let user = self.user.iter();
        Message {
            topic: &self.topic,
            payload: &self.payload,
            qos: self.qos,
            publisher: &self.publisher,
            expires: self.expires,
            is_text: self.is_text,
            properties: Properties {
                content_type: self.content_type.as_deref(),
                response_topic: self.response_topic.as_deref(),
                correlation_data: self.correlation.as_deref(),
                user: user.map(|(name, value)| (&**name, &**value)).collect(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_survives_json() {
        for payload in [&b"21.5"[..], b"\xff\x00", "\"\\\n".as_bytes()] {
            let message = Message {
                qos: Qos::ExactlyOnce,
                publisher: "plc",
                expires: Some(Timestamp(1_700_000_000_123_456_789)),
                is_text: true,
                properties: Properties {
                    content_type: Some("text/plain"),
                    response_topic: Some("a/reply"),
                    correlation_data: Some(payload),
                    user: vec![("a", "1"), ("a", "2"), ("", "")],
                },
                ..Message::new("a/b", payload)
            };
            let retained = Retained {
                message,
                id: 3,
                sequence: 4,
                time: Timestamp(-5),
            };
            let json = Value::Object(json_of(&retained)).to_string();
            let line = Line::read(json.as_bytes()).unwrap();
            assert_eq!(line.message(), retained.message, "{json}");
            assert_eq!(line.time, Some(Timestamp(-5)));
        }
    }

    #[test]
    fn wrong_lines_are_explained() {
        for (line, told) in [
            ("", "no JSON"),
            ("[]", "not a JSON object"),
            ("{}", "no `topic`"),
            (r#"{"topic":"a"}"#, "no `payload`"),
            (r#"{"topic":1,"payload":""}"#, "`topic` is not a string"),
            (r#"{"topic":"a","payload":"","payload_hex":""}"#, "both"),
            (r#"{"topic":"a","payload_hex":"f"}"#, "hex digits"),
            (r#"{"topic":"a","payload":"","qos":3}"#, "0, 1 or 2"),
            (r#"{"topic":"a","payload":"","text":1}"#, "true or false"),
            (r#"{"topic":"a","payload":"","time":"x"}"#, "`time`"),
            (
                r#"{"topic":"a","payload":"","ttl":5}"#,
                "unknown field `ttl`",
            ),
            (
                r#"{"topic":"a","payload":"","properties":[{"name":"a"}]}"#,
                "`properties`",
            ),
            (
                r#"{"topic":"a","payload":"","properties":{}}"#,
                "`properties`",
            ),
            (
                r#"{"topic":"a","payload":"","expires":"9999-01-01"}"#,
                "beyond",
            ),
        ] {
            let problem = Line::read(line.as_bytes()).unwrap_err();
            assert!(problem.contains(told), "{line}: {problem}");
        }
    }
}
