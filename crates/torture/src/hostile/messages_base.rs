//! Fills a file with topics, a queue and a bucket that have rows of every kind.

use super::base_file::file;
use super::files::Files;
use crate::model::messages::bucket::{attributes, bytes_of};
use crate::model::messages::{BROKER, FILES, JOBS};
use crate::workload::messages::BUCKET_OPTIONS;
use std::time::Duration;
use tidalite::objects::{LinkId, ObjectCondition, UploadId, UploadMode};
use tidalite::queue::{GroupStart, LeaseLimits, NewMessage, QueueOptions};
use tidalite::topics::{Message, TopicOptions};
use tidalite::{Database, Result, Timestamp};

/// A long time: nothing lapses during the test.
const HOUR: Duration = Duration::from_secs(3_600);
/// A time that has passed, and one that never comes.
const TIMES: [Timestamp; 2] = [Timestamp(1), Timestamp(i64::MAX - 1)];

/// Creates the file.
///
/// # Errors
/// An error of the database.
pub(super) fn messages() -> Result<Files> {
    file(512, |db| {
        topics(db)?;
        queue(db)?;
        bucket(db)
    })
}

/// Topics with a feed and with expired messages; there are enough of them that some filters are answered from the sets
/// of names.
fn topics(db: &Database) -> Result<()> {
    let options = TopicOptions {
        feed_changes: 60,
        ..TopicOptions::default()
    };
    let mut tx = db.begin_write()?;
    let mut topics = tx.topics_with(BROKER, &options)?;
    let names = (0..400).map(|i| format!("a/{}/x/{i}", i % 9));
    let names: Vec<String> = names.chain(["a/1".into(), "b/2/x".into()]).collect();
    let messages: Vec<Message<'_>> = names
        .iter()
        .map(|name| Message::new(name, name.as_bytes()))
        .collect();
    topics.publish_batch(messages.iter().map(|message| (message, true)))?;
    tx.commit()?;
    let mut tx = db.begin_write()?;
    let mut topics = tx.topics(BROKER)?;
    for (i, expires) in (0..40).zip(TIMES.into_iter().cycle()) {
        let name = format!("$SYS/{i}");
        let mut message = Message::new(&name, b"expires");
        message.expires = Some(expires);
        message.publisher = "client";
        message.properties.content_type = Some("text/plain");
        message.properties.user = vec![("name", "value")];
        topics.set(&message, Timestamp(i))?;
    }
    topics.set(&Message::new("a/long", &[5; 3_000]), Timestamp(1))?;
    for i in 0..20 {
        topics.remove(&format!("a/{}/x/{i}", i % 9))?;
    }
    tx.commit()?;
    Ok(())
}

/// A queue with three groups and a dropped one, and messages in every state.
fn queue(db: &Database) -> Result<()> {
    let options = QueueOptions {
        deliveries_max: Some(3),
        idempotency_window: Some(Duration::from_nanos(u64::MAX / 4)),
        ..QueueOptions::default()
    };
    let mut tx = db.begin_write()?;
    let mut queue = tx.queue_with(JOBS, &options)?;
    for group in ["default", "mail", "print", "gone"] {
        queue.create_group(group, GroupStart::Oldest)?;
    }
    let keys: Vec<String> = (0..120).map(|i| format!("key {i}")).collect();
    let messages: Vec<NewMessage<'_>> = (0..120)
        .map(|i: usize| {
            let mut message = NewMessage::new(keys[i].as_bytes());
            message.key = i.is_multiple_of(4).then(|| keys[i % 12].as_bytes());
            message.priority = if i.is_multiple_of(10) { 200 } else { 128 };
            message.not_before = i.is_multiple_of(9).then_some(TIMES[1]);
            message.expires = i.is_multiple_of(7).then_some(TIMES[1]);
            message.idempotency_key = i.is_multiple_of(3).then(|| keys[i].as_bytes());
            message.headers = if i.is_multiple_of(5) {
                &[(b"n", b"v")]
            } else {
                &[]
            };
            message
        })
        .collect();
    queue.push_many(&messages)?;
    queue.push(&NewMessage::new(&[9; 3_000]))?;
    tx.commit()?;
    let mut tx = db.begin_write()?;
    let mut queue = tx.queue(JOBS)?;
    queue.drop_group("gone")?;
    for (group, consumer) in [("default", "one"), ("mail", "two")] {
        let leased = queue.lease(group, consumer, HOUR, LeaseLimits::messages(40))?;
        let ids: Vec<u64> = leased.iter().map(|one| one.message.id).collect();
        queue.ack(group, consumer, &ids[..10])?;
        queue.nack(group, consumer, &ids[10..16], HOUR)?;
        queue.reject(group, consumer, &ids[16..22])?;
    }
    tx.commit()?;
    Ok(())
}

/// A bucket with objects of several chunks, a copy, links, uploads, an abandoned put, and chunks that `maintain` frees.
fn bucket(db: &Database) -> Result<()> {
    let always = ObjectCondition::Always;
    let mut tx = db.begin_write()?;
    let mut bucket = tx.bucket_with(FILES, &BUCKET_OPTIONS)?;
    for (i, expires) in (0..12_u64).zip([None, Some(TIMES[0]), Some(TIMES[1])].into_iter().cycle())
    {
        let bytes = bytes_of(i, 0, (i * 333) as usize);
        let name = format!("{}file {i}", if i % 3 == 0 { "a/" } else { "" });
        let given = attributes(i, expires.map(|time| time.0), i % 5 == 1);
        let stored = bucket.put(&name, &bytes, given, &always)?;
        assert!(stored.done().is_some(), "nothing is in the way");
    }
    let copied = bucket.copy("a/file 9", "copy", None, &always)?;
    assert!(copied.done().is_some(), "the source is there");
    bucket.link_object(LinkId([1; 16]), "a/file 9", None)?;
    bucket.link_object(LinkId([2; 16]), "none", Some(TIMES[1]))?;
    tx.commit()?;
    let mut tx = db.begin_write()?;
    let mut bucket = tx.bucket(FILES)?;
    let large = bytes_of(99, 0, 20 * BUCKET_OPTIONS.chunk_bytes as usize);
    let stored = bucket.put("large", &large, attributes(99, None, false), &always)?;
    assert!(stored.done().is_some(), "nothing is in the way");
    let gone = bucket.delete("large", &always)?;
    assert!(gone.done().is_some(), "it was there");
    let mut put = bucket.begin_put("abandoned", attributes(98, None, false), always)?;
    bucket.write_put(&mut put, &large[..1_500])?;
    let given = || attributes(97, None, false);
    let id: UploadId = bucket.begin_upload("uploaded", given(), UploadMode::Append, HOUR)?;
    let appended = bucket.append_upload(id, 0, &large[..1_000])?;
    let parts = UploadMode::Parts { chunks: 1 };
    let other = bucket.begin_upload("in parts", given(), parts, HOUR)?;
    for number in [0, 2] {
        assert!(
            bucket.put_part(other, number, &large[..700])?,
            "{appended:?}"
        );
    }
    tx.commit()?;
    Ok(())
}
