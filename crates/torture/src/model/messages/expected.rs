//! The answers of topics, queue, bucket and containers that follow from the model, as lines of text. `answers.rs` gives
//! the same lines for a snapshot.

use super::bucket::{Bucket, bytes_of};
use super::queue::{Phase, Queue, reason};
use super::state::{BROKER, FILES, JOBS, Messages};
use super::topics::Topics;
use tidalite_base::checksum;

/// A line about a message of a queue.
pub(super) type Times<'m> = (i64, Option<i64>, Option<i64>);

impl Messages {
    /// The answers that a snapshot must give at a time before all others.
    pub(crate) fn expected(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(topics) = &self.topics {
            lines.push(BROKER.to_owned());
            topics.expected(&mut lines);
        }
        if let Some(queue) = &self.queue {
            lines.push(JOBS.to_owned());
            queue.expected(&mut lines);
        }
        if let Some(bucket) = &self.bucket {
            lines.push(FILES.to_owned());
            bucket.expected(&mut lines);
        }
        if let Some(containers) = &self.containers {
            containers.expected(&mut lines);
        }
        lines
    }
}

impl Topics {
    fn expected(&self, lines: &mut Vec<String>) {
        let expiring = self.messages.values();
        let expiring = expiring.filter(|one| one.expires.is_some()).count();
        let (messages, feed) = (self.messages.len(), self.feed.len());
        let sequence = self.sequence;
        lines.push(format!("{messages} {expiring} {feed} {sequence}"));
        for (topic, one) in &self.messages {
            let (qos, publisher, content_type) = (one.qos, &one.publisher, &one.content_type);
            let (expires, sequence, time) = (one.expires, one.sequence, one.time);
            let payload = checksum(&one.payload);
            lines.push(format!(
                "{topic} {qos} {publisher} {content_type:?} {expires:?} {sequence} {time} {payload}"
            ));
        }
        for (sequence, (topic, is_removed)) in &self.feed {
            lines.push(format!("change {sequence} {topic} {is_removed}"));
        }
    }
}

impl Queue {
    fn expected(&self, lines: &mut Vec<String>) {
        let bytes: u64 = self
            .messages
            .values()
            .map(super::queue::Message::bytes)
            .sum();
        let (messages, next_id) = (self.messages.len(), self.next_id);
        lines.push(format!("{messages} {bytes} {next_id} {:?}", self.totals));
        for (id, message) in &self.messages {
            let times: Times<'_> = (message.pushed, message.not_before, message.expires);
            let keys = (&message.key, &message.idempotency_key, &message.headers);
            let (priority, payload) = (message.priority, checksum(&message.payload));
            lines.push(format!("{id} {priority} {times:?} {keys:?} {payload}"));
        }
        for name in self.group_names() {
            let group = &self.groups[name];
            let count = |is: fn(&Phase) -> bool| {
                let open = group.open.values();
                open.filter(|open| is(&open.phase)).count() as u64
            };
            let phases = [
                count(|phase| *phase == Phase::Ready),
                count(|phase| matches!(phase, Phase::Delayed { .. })),
                count(|phase| matches!(phase, Phase::Leased { .. })),
                count(|phase| *phase == Phase::Waiting),
                count(|phase| matches!(phase, Phase::Dead { .. })),
            ];
            let totals = [group.acked, group.redelivered, group.buried];
            lines.push(format!("group {name} {phases:?} {totals:?}"));
            for id in self.ready(name) {
                lines.push(format!("ready {id} {}", group.open[&id].count));
            }
            for (id, open) in &group.open {
                if let Phase::Dead { is_rejected, died } = open.phase {
                    let (reason, count) = (reason(is_rejected), open.count);
                    lines.push(format!("dead {id} {reason:?} {count} {died}"));
                }
            }
        }
    }
}

impl Bucket {
    fn expected(&self, lines: &mut Vec<String>) {
        let objects = self.objects.len();
        let bytes: u64 = self.objects.values().map(|object| object.size).sum();
        let uploads = self.uploads.len() + self.abandoned.len();
        lines.push(format!(
            "{objects} {bytes} {uploads} {}",
            self.upload_bytes()
        ));
        for (name, object) in &self.objects {
            let (seed, size) = (object.seed, object.size);
            let (created, modified) = (object.created, object.modified);
            let (expires, is_protected) = (object.expires, object.is_protected);
            let bytes = checksum(&bytes_of(seed, 0, size as usize));
            lines.push(format!(
                "{name} {size} {seed} {created} {modified} {expires:?} {is_protected} {bytes}"
            ));
        }
        for (id, upload) in &self.uploads {
            let (name, seed, len) = (&upload.name, upload.seed, upload.len());
            let (expires, parts) = (upload.expires, &upload.parts);
            lines.push(format!(
                "upload {id} {name} {seed} {len} {expires} {parts:?}"
            ));
        }
    }
}
