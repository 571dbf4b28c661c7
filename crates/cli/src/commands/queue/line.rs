//! Messages of queues as lines of text and as JSON.

use crate::commands::messages::{pairs_json, put_bytes, shown, time_text};
use serde_json::{Map, Value};
use tidalite::queue::{DeadLetter, DeadReason, Delivery, QueueMessage};

/// A message as a line of text: its id and its payload, separated by a tab.
pub(super) fn text_of(message: &QueueMessage) -> String {
    format!("{}\t{}", message.id, shown(&message.payload))
}

/// A message with all its stored fields as JSON; fields that are not set are omitted.
pub(super) fn json_of(message: &QueueMessage) -> Map<String, Value> {
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
    put("id", message.id.into());
    put("priority", message.priority.into());
    put("pushed", time_text(message.pushed).into());
    if let Some(time) = message.not_before {
        put("not_before", time_text(time).into());
    }
    if let Some(time) = message.expires {
        put("expires", time_text(time).into());
    }
    if !message.headers.is_empty() {
        let headers = message.headers.iter();
        put(
            "headers",
            pairs_json(headers.map(|(name, value)| (&**name, &**value))),
        );
    }
    put_bytes(&mut object, "payload", &message.payload);
    if let Some(key) = &message.key {
        put_bytes(&mut object, "key", key);
    }
    if let Some(key) = &message.idempotency_key {
        put_bytes(&mut object, "idempotency_key", key);
    }
    object
}

/// A delivery as JSON: the message, its number of deliveries, and the end of its lease.
pub(super) fn delivery_json(delivery: &Delivery) -> Value {
    let mut object = json_of(&delivery.message);
    object.insert("deliveries".to_owned(), delivery.deliveries.into());
    if let Some(deadline) = delivery.deadline {
        object.insert("deadline".to_owned(), time_text(deadline).into());
    }
    Value::Object(object)
}

/// The reason for which a message is a dead letter.
fn reason(reason: DeadReason) -> &'static str {
    match reason {
        DeadReason::TooManyDeliveries => "too many deliveries",
        DeadReason::Rejected => "rejected",
    }
}

/// A dead letter as a line of text.
pub(super) fn dead_text(letter: &DeadLetter) -> String {
    format!("{}\t{}", text_of(&letter.message), reason(letter.reason))
}

/// A dead letter as JSON.
pub(super) fn dead_json(letter: &DeadLetter) -> Value {
    let mut object = json_of(&letter.message);
    object.insert("deliveries".to_owned(), letter.deliveries.into());
    object.insert("reason".to_owned(), reason(letter.reason).into());
    object.insert("died".to_owned(), time_text(letter.died).into());
    Value::Object(object)
}
