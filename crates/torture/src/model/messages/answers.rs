//! The answers of topics, queue, bucket and containers in a snapshot, as the lines of `expected.rs`, and the model that
//! follows from them.

use super::bucket::{Bucket, CHUNK_BYTES, Object, Upload, seed_of};
use super::containers;
use super::expected::Times;
use super::ledger::{LEDGER, add_rows};
use super::state::{BROKER, FILES, JOBS, Messages};
use super::topics::{Retained, Topics};
use crate::model::clock;
use crate::model::pairs::Pairs;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidalite::objects::{ListQuery, UploadId, UploadMode};
use tidalite::topics::{Filter, TopicChanges};
use tidalite::{ReadTxn, Result};
use tidalite_base::checksum;

/// A text that no model gives.
const WRONG: &str = "answers that contradict each other";

/// The answers of topics, queue, bucket and containers in a snapshot, at a time before all others.
///
/// # Errors
/// An error of the database.
pub(crate) fn answers(snap: &ReadTxn) -> Result<Vec<String>> {
    clock::in_the_past(|| {
        let mut lines = Vec::new();
        let messages = Messages {
            topics: topics_of(snap, &mut lines)?.map(Arc::new),
            ..Messages::default()
        };
        // The lines of the topics follow from the model that was read.
        lines.splice(0..0, messages.expected());
        queue(snap, &mut lines)?;
        let messages = Messages {
            bucket: bucket_of(snap)?.map(Arc::new),
            ..Messages::default()
        };
        if messages.bucket.is_some() {
            objects(snap, &messages, &mut lines)?;
        }
        containers::answers(snap, &mut lines)?;
        Ok(lines)
    })
}

/// Adds the content of a snapshot to a model that has the tables already.
///
/// # Errors
/// An error of the database.
pub(crate) fn add_to_model(
    snap: &ReadTxn,
    tables: &BTreeMap<String, Pairs>,
    messages: &mut Messages,
) -> Result<()> {
    clock::in_the_past(|| {
        messages.topics = topics_of(snap, &mut Vec::new())?.map(Arc::new);
        messages.bucket = bucket_of(snap)?.map(Arc::new);
        if let Some(rows) = tables.get(LEDGER) {
            add_rows(rows, messages);
        }
        Ok(())
    })
}

/// The topics of a snapshot. Adds a line to `wrong` if its answers contradict each other.
fn topics_of(snap: &ReadTxn, wrong: &mut Vec<String>) -> Result<Option<Topics>> {
    let Some(table) = snap.topics(BROKER)? else {
        return Ok(None);
    };
    let mut topics = Topics {
        sequence: table.sequence(),
        ..Topics::default()
    };
    for filter in ["#", "$SYS/#"] {
        let filter = Filter::parse(filter)?;
        let (mut token, mut listed) = (None, 0);
        loop {
            let list = table.list(&filter, token.as_deref(), 1_000)?;
            for found in &list.messages {
                let one = found.retained()?;
                let retained = Retained {
                    payload: one.message.payload.to_vec(),
                    qos: one.message.qos as u8,
                    publisher: one.message.publisher.to_owned(),
                    content_type: one.message.properties.content_type.map(str::to_owned),
                    expires: one.message.expires.map(|time| time.0),
                    sequence: one.sequence,
                    time: one.time.0,
                };
                let by_topic = table.get(found.topic())?;
                let same = match &by_topic {
                    Some(other) => other.retained()? == one,
                    None => false,
                };
                if !same {
                    wrong.push(format!("{WRONG}: {}", found.topic()));
                }
                listed += 1;
                topics.messages.insert(found.topic().to_owned(), retained);
            }
            match list.next {
                Some(next) => token = Some(next),
                None => break,
            }
        }
        if table.count(&filter)? != listed {
            wrong.push(format!("{WRONG}: count"));
        }
    }
    let changes = match table.changes(0, usize::MAX)? {
        TopicChanges::Truncated { from } => table.changes(from - 1, usize::MAX)?,
        changes => changes,
    };
    if let TopicChanges::Some { changes, .. } = changes {
        for change in changes {
            let is_removed = change.is_removed;
            topics
                .feed
                .insert(change.sequence, (change.topic, is_removed));
        }
    }
    let stat = table.stat()?;
    let counts = [stat.messages, stat.feed_changes];
    if counts != [topics.messages.len() as u64, topics.feed.len() as u64] {
        wrong.push(format!("{WRONG}: {stat:?}"));
    }
    Ok(Some(topics))
}

fn queue(snap: &ReadTxn, lines: &mut Vec<String>) -> Result<()> {
    let Some(queue) = snap.queue(JOBS)? else {
        return Ok(());
    };
    lines.push(JOBS.to_owned());
    let stat = queue.stat()?;
    let totals = [
        stat.repeated,
        stat.dropped_oldest,
        stat.expired,
        stat.aged,
        stat.purged,
        stat.pushed,
    ];
    let (messages, bytes, next_id) = (stat.messages, stat.bytes, stat.next_id);
    lines.push(format!("{messages} {bytes} {next_id} {totals:?}"));
    for message in queue.messages(0, usize::MAX)? {
        let until = [message.not_before, message.expires];
        let [not_before, expires] = until.map(|time| time.map(|time| time.0));
        let times: Times<'_> = (message.pushed.0, not_before, expires);
        let keys = (&message.key, &message.idempotency_key, &message.headers);
        let (id, priority, payload) = (message.id, message.priority, checksum(&message.payload));
        lines.push(format!("{id} {priority} {times:?} {keys:?} {payload}"));
    }
    for name in queue.group_names() {
        let group = queue.group_stat(name)?;
        let phases = [
            group.ready,
            group.delayed,
            group.leased,
            group.waiting,
            group.dead,
        ];
        let totals = [group.acked, group.redelivered, group.buried];
        lines.push(format!("group {name} {phases:?} {totals:?}"));
        for (message, count) in queue.peek(name, usize::MAX)? {
            lines.push(format!("ready {} {count}", message.id));
        }
        for letter in queue.dead_letters(name, 0, usize::MAX)? {
            let (id, reason) = (letter.message.id, letter.reason);
            let (count, died) = (letter.deliveries, letter.died.0);
            lines.push(format!("dead {id} {reason:?} {count} {died}"));
        }
    }
    Ok(())
}

/// The bucket of a snapshot, without abandoned puts: the database reports only their sum.
fn bucket_of(snap: &ReadTxn) -> Result<Option<Bucket>> {
    let Some(table) = snap.bucket(FILES)? else {
        return Ok(None);
    };
    let mut bucket = Bucket::default();
    for info in table.list(&ListQuery::default())?.objects {
        let object = Object {
            seed: seed_of(&info.attributes),
            size: info.size,
            created: info.created.0,
            modified: info.modified.0,
            expires: info.attributes.expires.map(|time| time.0),
            is_protected: info.attributes.protected,
        };
        bucket.objects.insert(info.name, object);
    }
    for info in table.uploads(UploadId(0), usize::MAX)? {
        let parts = match info.mode {
            UploadMode::Append => None,
            UploadMode::Parts { chunks } => {
                let parts = table.upload_parts(info.id, 0, usize::MAX)?.into_iter();
                Some((
                    chunks,
                    parts.map(|part| (part.number, part.bytes)).collect(),
                ))
            }
        };
        let upload = Upload {
            seed: seed_of(&info.attributes),
            name: info.name,
            expires: info.expires.0,
            appended: if parts.is_none() { info.len } else { 0 },
            parts,
        };
        bucket.uploads.insert(info.id.0, upload);
    }
    Ok(Some(bucket))
}

fn objects(snap: &ReadTxn, messages: &Messages, lines: &mut Vec<String>) -> Result<()> {
    let (Some(table), Some(bucket)) = (snap.bucket(FILES)?, &messages.bucket) else {
        return Ok(());
    };
    lines.push(FILES.to_owned());
    let stat = table.stat()?;
    let (objects, bytes, uploads) = (stat.objects, stat.bytes, stat.uploads);
    let upload_bytes = stat.upload_bytes;
    lines.push(format!("{objects} {bytes} {uploads} {upload_bytes}"));
    for (name, object) in &bucket.objects {
        let (seed, size) = (object.seed, object.size);
        let (created, modified) = (object.created, object.modified);
        let (expires, is_protected) = (object.expires, object.is_protected);
        let Some(info) = table.info(name)? else {
            lines.push(format!("{WRONG}: {name}"));
            continue;
        };
        let bytes = checksum(&table.read(&info, 0, u64::MAX)?);
        lines.push(format!(
            "{name} {size} {seed} {created} {modified} {expires:?} {is_protected} {bytes}"
        ));
        if info.chunk_bytes != CHUNK_BYTES {
            lines.push(format!("{WRONG}: {name} has chunks of another size"));
        }
        // An object that is not sound is reported damage, not a wrong answer.
        let sound = table.verify(name)?.is_some_and(|found| found.is_sound());
        if !sound {
            return Err(std::io::Error::other(format!("{name} is not sound")).into());
        }
    }
    for (id, upload) in &bucket.uploads {
        let (name, seed, len) = (&upload.name, upload.seed, upload.len());
        let (expires, parts) = (upload.expires, &upload.parts);
        lines.push(format!(
            "upload {id} {name} {seed} {len} {expires} {parts:?}"
        ));
    }
    Ok(())
}
