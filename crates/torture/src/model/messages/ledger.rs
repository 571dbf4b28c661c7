//! Facts about a queue, a bucket and containers that the database does not report, stored as rows of an ordinary table:
//! leases with their consumers, acknowledgements, idempotency keys, abandoned puts, and the time.
//!
//! The workload stores these rows in the transaction of the change, as a consumer stores the result of its work
//! together with the acknowledgement. So another process that continues the workload knows the whole model, and a queue
//! that has lost or repeated an acknowledgement contradicts the table.
//!
//! ```text
//! n             time of the last call
//! q             counters of the queue
//! m id          message
//! s key         time and id of an idempotency key
//! g name        counters of a group
//! o id name     state of a message in a group
//! p index       expiry and bytes of an abandoned put
//! ```
//!
//! Rows of containers begin with capital letters (`containers/ledger.rs`).

use super::bucket::Bucket;
use super::containers;
use super::queue::{Group, Message, Open, Phase, Queue, TOTALS};
use super::row::{Fields, Row, key};
use super::state::Messages;
use crate::model::pairs::Pairs;
use std::sync::Arc;

/// Name of the table.
pub(crate) const LEDGER: &str = "ledger of messages";

fn open_row(open: &Open) -> Row {
    let row = Row::default().word(open.count.into());
    match open.phase {
        Phase::Ready => row.word(0),
        Phase::Leased { deadline, consumer } => row.word(1).time(deadline).word(consumer.into()),
        Phase::Delayed { until } => row.word(2).time(until),
        Phase::Waiting => row.word(3),
        Phase::Dead { is_rejected, died } => row.word(4).time(died).word(is_rejected.into()),
    }
}

fn open_of(fields: &mut Fields<'_>) -> Open {
    let (count, phase) = (fields.word() as u32, fields.word());
    let (time, other) = (fields.time(), fields.word());
    let phase = match phase {
        0 => Phase::Ready,
        1 => Phase::Leased {
            deadline: time,
            consumer: other as u8,
        },
        2 => Phase::Delayed { until: time },
        3 => Phase::Waiting,
        _ => Phase::Dead {
            is_rejected: other > 0,
            died: time,
        },
    };
    Open { phase, count }
}

fn message_row(message: &Message) -> Row {
    let row = Row::default()
        .word(message.priority.into())
        .time(message.pushed)
        .optional(message.not_before)
        .optional(message.expires)
        .bytes(message.key.as_deref())
        .bytes(message.idempotency_key.as_deref())
        .bytes(Some(&message.payload))
        .word(message.headers.len() as u64);
    message.headers.iter().fold(row, |row, (name, value)| {
        row.bytes(Some(name)).bytes(Some(value))
    })
}

fn message_of(fields: &mut Fields<'_>) -> Message {
    Message {
        priority: fields.word() as u8,
        pushed: fields.time(),
        not_before: fields.optional(),
        expires: fields.optional(),
        key: fields.bytes(),
        idempotency_key: fields.bytes(),
        payload: fields.bytes().unwrap_or_default(),
        headers: (0..fields.word())
            .map(|_| {
                let name = fields.bytes().unwrap_or_default();
                (name, fields.bytes().unwrap_or_default())
            })
            .collect(),
    }
}

/// The rows of the table for a model.
pub(crate) fn rows_of(messages: &Messages) -> Pairs {
    let mut rows = Pairs::new();
    rows.insert(key(b'n', &[]), Row::default().time(messages.now).0);
    if let Some(bucket) = &messages.bucket {
        for (index, (expires, bytes)) in bucket.abandoned.iter().enumerate() {
            let row = Row::default().time(*expires).word(*bytes);
            rows.insert(key(b'p', &[&[index as u8]]), row.0);
        }
    }
    if let Some(containers) = &messages.containers {
        containers::put_rows(containers, &mut rows);
    }
    let Some(queue) = &messages.queue else {
        return rows;
    };
    let counters = Row::default()
        .word(queue.next_id)
        .word(queue.dropped_groups);
    let counters = queue
        .totals
        .iter()
        .fold(counters, |row, word| row.word(*word));
    rows.insert(key(b'q', &[]), counters.0);
    for (id, message) in &queue.messages {
        rows.insert(key(b'm', &[&id.to_be_bytes()]), message_row(message).0);
    }
    for (seen, (time, id)) in &queue.seen {
        let row = Row::default().time(*time).word(*id);
        rows.insert(key(b's', &[seen]), row.0);
    }
    for (name, group) in &queue.groups {
        let row = Row::default().word(group.is_dropped.into());
        let row = row.word(group.acked).word(group.redelivered);
        rows.insert(key(b'g', &[name.as_bytes()]), row.word(group.buried).0);
        for (id, open) in &group.open {
            let at = key(b'o', &[&id.to_be_bytes(), name.as_bytes()]);
            rows.insert(at, open_row(open).0);
        }
    }
    rows
}

/// Adds the content of the table to a model.
pub(crate) fn add_rows(rows: &Pairs, messages: &mut Messages) {
    let mut queue = Queue::default();
    queue.groups.clear();
    let mut has_queue = false;
    let mut abandoned = Vec::new();
    for (key, value) in rows {
        let Some((kind, rest)) = key.split_first() else {
            continue;
        };
        let fields = &mut Fields(value);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match kind {
            b'n' => messages.now = fields.time(),
            b'p' => abandoned.push((fields.time(), fields.word())),
            b'q' => {
                has_queue = true;
                (queue.next_id, queue.dropped_groups) = (fields.word(), fields.word());
                let mut totals = [0; TOTALS];
                totals.fill_with(|| fields.word());
                queue.totals = totals;
            }
            b'm' => {
                let id = rest.first_chunk().map_or(0, |id| u64::from_be_bytes(*id));
                queue.messages.insert(id, message_of(fields));
            }
            b's' => {
                let seen = (fields.time(), fields.word());
                queue.seen.insert(rest.to_vec(), seen);
            }
            b'g' => {
                let group = queue.groups.entry(text(rest)).or_default();
                group.is_dropped = fields.word() > 0;
                (group.acked, group.redelivered) = (fields.word(), fields.word());
                group.buried = fields.word();
            }
            b'o' => {
                if let Some((id, name)) = rest.split_first_chunk() {
                    let group: &mut Group = queue.groups.entry(text(name)).or_default();
                    let open = open_of(fields);
                    group.open.insert(u64::from_be_bytes(*id), open);
                }
            }
            // Rows of containers.
            _ => {}
        }
    }
    messages.containers = containers::add_rows(rows);
    messages.queue = has_queue.then(|| Arc::new(queue));
    if let Some(bucket) = &mut messages.bucket {
        let bucket: &mut Bucket = Arc::make_mut(bucket);
        bucket.abandoned = abandoned;
    }
}
