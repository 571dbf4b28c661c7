//! Determines whether the rows of an unreferenced leaf are messages of a queue.

use crate::queues::message;
use crate::queues::options::IDS_MAX;
use crate::queues::parts::Part;

/// Length in bytes of the values of idempotency keys: a time and an id.
const SEEN_BYTES: usize = 16;

/// The key, in the root table, of the nested table to which the rows of a leaf belong, if the rows are messages, from
/// which most other rows are rebuilt; `None` for all other rows. A value is `None` if it is lost, or large; only
/// messages have large values.
#[must_use]
pub fn part_of_queue_rows(rows: &[(Vec<u8>, Option<Vec<u8>>)]) -> Option<[u8; 1]> {
    let is_message = |(key, value): &(Vec<u8>, Option<Vec<u8>>)| {
        let id = key.as_slice().try_into().map(u64::from_be_bytes);
        let id = id.ok().filter(|id| (1..IDS_MAX).contains(id));
        id.is_some_and(|id| {
            let value = value.as_ref();
            value.is_none_or(|value| message::decode(id, value).is_ok())
        })
    };
    // Rows of idempotency keys may also have keys of eight bytes.
    let is_seen = |(_, value): &(Vec<u8>, Option<Vec<u8>>)| {
        value
            .as_ref()
            .is_some_and(|value| value.len() == SEEN_BYTES)
    };
    let are_messages = rows.iter().all(is_message) && !rows.iter().all(is_seen);
    are_messages.then_some(Part::Messages.key())
}
