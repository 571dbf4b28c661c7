//! Determines whether the rows of an unreferenced leaf are messages of topics.

use crate::topics::key::TopicText;
use crate::topics::parts::Part;
use crate::topics::record;

/// The key, in the root table, of the nested table to which the rows of a leaf belong, if the rows are messages, from
/// which everything else is rebuilt; `None` for all other rows. A value is `None` if it is lost, or large; only
/// messages have large values.
#[must_use]
pub fn part_of_topic_rows(rows: &[(Vec<u8>, Option<Vec<u8>>)]) -> Option<[u8; 1]> {
    let (mut key_text, mut value_text) = (TopicText::default(), TopicText::default());
    let mut is_message = |(key, value): &(Vec<u8>, Option<Vec<u8>>)| {
        let topic = key_text.of_key(key);
        match value {
            Some(value) => topic.is_ok_and(|topic| record::decode(topic, value).is_ok()),
            None => topic.is_ok(),
        }
    };
    // Rows of the part `Ids` have keys of eight bytes, and topics as values.
    let mut is_id = |(key, value): &(Vec<u8>, Option<Vec<u8>>)| {
        let topic = value.as_ref().map(|value| value_text.of_key(value).is_ok());
        key.len() == 8 && topic == Some(true)
    };
    let are_messages = rows.iter().all(&mut is_message) && !rows.iter().all(&mut is_id);
    are_messages.then_some(Part::Messages.key())
}
