//! Calls every method that changes topics, a queue or a bucket, with one transaction for each kind of change.

use super::errors::keep;
use super::messages_read::{all_of_bucket, all_of_queue, all_of_topics};
use std::time::Duration;
use tidalite::objects::{
    BucketMut, LinkId, ListQuery, ObjectAttributes, ObjectChange, ObjectCondition,
    UploadCompletion, UploadId, UploadMode,
};
use tidalite::queue::{GroupStart, LeaseLimits, NewMessage, Overflow, QueueMut};
use tidalite::topics::{Filter, Message, TopicsMut};
use tidalite::{Database, ErrorKind, Result, Timestamp, WriteTxn};

/// A long time: nothing lapses during the test.
const HOUR: Duration = Duration::from_secs(3_600);
/// Maximum number of messages and ids of a call.
const MOST: usize = 300;

/// Performs each of the steps in a transaction of its own.
pub(super) fn steps(
    db: &Database,
    count: u32,
    change: impl Fn(&mut WriteTxn, u32) -> Result<()>,
) -> Result<()> {
    let mut first = Ok(());
    for step in 0..count {
        let one = || -> Result<()> {
            let mut tx = db.begin_write()?;
            change(&mut tx, step)?;
            tx.commit()?;
            Ok(())
        };
        keep(&mut first, one());
    }
    first
}

/// Whether an error is a refusal, whose text names the content that was found and expected.
fn is_refusal(error: &tidalite::Error) -> bool {
    let kinds = [
        ErrorKind::NotFound,
        ErrorKind::AlreadyExists,
        ErrorKind::InvalidName,
        ErrorKind::InvalidInput,
        ErrorKind::WrongType,
    ];
    kinds.contains(&error.kind()) && error.found_and_expected().is_some()
}

/// A result, without errors that refuse a call because of the options or the state of the table.
pub(super) fn allowed<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(done) => Ok(Some(done)),
        Err(error) if error.kind() == ErrorKind::Limit || is_refusal(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn topics(db: &Database, name: &str) -> Result<()> {
    steps(db, 8, |tx, step| match tx.topics_if_exists(name)? {
        Some(mut topics) => change_topics(&mut topics, step),
        None => Ok(()),
    })
}

fn change_topics(topics: &mut TopicsMut<'_>, step: u32) -> Result<()> {
    match step {
        0 => {
            let names: Vec<String> = (0..60).map(|i| format!("a/{}/x/{i}", i % 7)).collect();
            let messages: Vec<Message<'_>> = names
                .iter()
                .map(|name| Message::new(name, b"new"))
                .collect();
            let batch = messages.iter().map(|message| (message, true));
            allowed(topics.publish_batch(batch)).map(drop)
        }
        1 => {
            let mut message = Message::new("a/1", b"again");
            message.expires = Some(Timestamp::MAX);
            allowed(topics.publish(&message, true))?;
            allowed(topics.publish(&Message::new("a/1/x", b""), true))?;
            allowed(topics.set(&Message::new("late/1", b"set"), Timestamp(5))).map(drop)
        }
        2 => {
            topics.remove("a/2")?;
            topics.remove("none").map(drop)
        }
        3 => {
            for (filter, dry) in [("#", true), ("+/1/#", false), ("+/+/y", false)] {
                let filter = Filter::parse(filter)?;
                topics.remove_matches(&filter, None, MOST as u64, dry)?;
            }
            Ok(())
        }
        4 => topics.maintain(MOST as u64).map(drop),
        5 => {
            let mut options = topics.options()?;
            options.feed_changes = 5;
            topics.set_options(&options)?;
            all_of_topics(&topics.view()?)
        }
        6 => {
            let mut options = topics.options()?;
            options.feed_changes = 0;
            topics.set_options(&options)
        }
        _ => {
            let all = Filter::parse("#")?;
            topics.remove_matches(&all, None, u64::MAX, false).map(drop)
        }
    }
}

pub(super) fn queue(db: &Database, name: &str) -> Result<()> {
    steps(db, 10, |tx, step| match tx.queue_if_exists(name)? {
        Some(mut queue) => change_queue(&mut queue, step),
        None => Ok(()),
    })
}

fn push(queue: &mut QueueMut<'_>) -> Result<()> {
    let mut messages = Vec::new();
    for i in 0..40 {
        let mut message = NewMessage::new(b"payload");
        message.key = (i % 3 == 0).then_some(b"k1");
        message.priority = 100 + i;
        message.not_before = (i % 5 == 0).then_some(Timestamp(i64::MAX - 1));
        message.expires = (i % 7 == 0).then_some(Timestamp::MAX);
        message.headers = &[(b"name", b"value")];
        message.idempotency_key = (i % 4 == 0).then_some(b"once");
        messages.push(message);
    }
    allowed(queue.push_many(&messages))?;
    allowed(queue.push(&NewMessage::new(&[7; 2_000]))).map(drop)
}

fn change_queue(queue: &mut QueueMut<'_>, step: u32) -> Result<()> {
    let mut groups = vec!["default".to_owned()];
    if step > 0 {
        let view = queue.view()?;
        groups = view.group_names().into_iter().map(str::to_owned).collect();
    }
    let limits = LeaseLimits {
        messages: 20,
        bytes: 5_000,
    };
    match step {
        0 => push(queue),
        1 => {
            for group in &groups {
                queue.take(group, LeaseLimits::messages(3))?;
                queue.lease(group, "hostile", HOUR, limits)?;
            }
            Ok(())
        }
        2..=4 => {
            for group in &groups {
                let leased = queue.lease(group, "hostile", HOUR, limits)?;
                let mut ids: Vec<u64> = leased.iter().map(|one| one.message.id).collect();
                ids.extend([0, 1, 5, 9, u64::MAX]);
                match step {
                    2 => drop(queue.ack(group, "hostile", &ids)?),
                    3 => {
                        let (some, rest) = ids.split_at(ids.len() / 2);
                        queue.nack(group, "hostile", some, HOUR)?;
                        queue.nack(group, "hostile", rest, Duration::ZERO)?;
                    }
                    _ => {
                        queue.extend(group, "hostile", &ids, HOUR)?;
                        queue.reject(group, "hostile", &ids)?;
                    }
                }
            }
            Ok(())
        }
        5 => {
            for group in &groups {
                let dead = queue.view()?.dead_letters(group, 0, MOST)?;
                let ids: Vec<u64> = dead.iter().map(|letter| letter.message.id).collect();
                let (some, rest) = ids.split_at(ids.len() / 2);
                queue.requeue_dead(group, some)?;
                queue.drop_dead(group, rest)?;
            }
            Ok(())
        }
        6 => {
            allowed(queue.create_group("fresh", GroupStart::Oldest))?;
            allowed(queue.create_group("fresher", GroupStart::Newest))?;
            let mut options = queue.options()?;
            (options.overflow, options.messages_max) = (Overflow::DropOldest, Some(30));
            queue.set_options(&options)?;
            push(queue)?;
            all_of_queue(&queue.view()?)
        }
        7 => {
            for group in &groups {
                queue.purge_group(group, 5)?;
            }
            allowed(queue.drop_group(groups.first().map_or("fresh", String::as_str))).map(drop)
        }
        8 => {
            for _ in 0..MOST {
                if !queue.maintain(20)?.more {
                    break;
                }
            }
            Ok(())
        }
        _ => queue.purge(MOST).map(drop),
    }
}

pub(super) fn bucket(db: &Database, name: &str) -> Result<()> {
    steps(db, 9, |tx, step| match tx.bucket_if_exists(name)? {
        Some(mut bucket) => change_bucket(&mut bucket, step),
        None => Ok(()),
    })
}

fn change_bucket(bucket: &mut BucketMut<'_>, step: u32) -> Result<()> {
    let always = ObjectCondition::Always;
    let plain = ObjectAttributes::default;
    let list = bucket.view()?.list(&ListQuery::default());
    let names: Vec<String> = match list {
        Ok(list) => list.objects.into_iter().map(|info| info.name).collect(),
        Err(_) => Vec::new(),
    };
    let name = |at: usize| names.get(at).map_or("none", String::as_str);
    match step {
        0 => {
            allowed(bucket.put("fresh", &[5; 2_000], plain(), &always))?;
            let from = &mut &[6; 900][..];
            allowed(bucket.put_from(name(0), from, plain(), always))?;
            let mut put = bucket.begin_put("begun", plain(), always)?;
            if allowed(bucket.write_put(&mut put, &[7; 1_500]))?.is_some() {
                allowed(bucket.finish_put(put))?;
            }
            let mut put = bucket.begin_put("aborted", plain(), always)?;
            allowed(bucket.write_put(&mut put, &[8; 1_500]))?;
            bucket.abort_put(put)
        }
        1 => {
            allowed(bucket.copy(name(1), "copy", None, &always))?;
            allowed(bucket.copy(name(1), name(2), Some(plain()), &always))?;
            allowed(bucket.rename(name(1), "renamed", &always)).map(drop)
        }
        2 => {
            let change = ObjectChange {
                expires: Some(Some(Timestamp(i64::MAX - 1))),
                protected: Some(true),
                content_type: Some("text/plain".to_owned()),
                metadata: Some(vec![("k".to_owned(), "v".to_owned())]),
            };
            let changed = bucket.set_attributes(name(2), &change, &always);
            allowed(changed).map(drop)
        }
        3 => upload(bucket),
        4 => {
            let links = bucket.view()?.links(LinkId([0; 16]), MOST)?;
            for (id, _) in links {
                bucket.count_link_read(id, 10)?;
                bucket.revoke_link(id)?;
            }
            let id = LinkId([3; 16]);
            bucket.link_object(id, name(0), Some(Timestamp(1)))?;
            bucket.link_object(id, name(0), None)
        }
        5 => {
            allowed(bucket.delete(name(0), &always))?;
            let query = ListQuery {
                prefix: "a/".to_owned(),
                limit: 3,
                ..ListQuery::default()
            };
            bucket.delete_listed(&query).map(drop)
        }
        6 => {
            for _ in 0..MOST {
                if !bucket.maintain(20)?.more {
                    break;
                }
            }
            all_of_bucket(&bucket.view()?)
        }
        7 => {
            let mut options = bucket.options()?;
            options.overflow = tidalite::objects::BucketOverflow::DropOldest;
            options.objects_max = Some(2);
            bucket.set_options(&options)?;
            bucket.make_room((1, 100), 5)?;
            allowed(bucket.put("rotates", b"x", plain(), &always)).map(drop)
        }
        _ => {
            for name in &names {
                allowed(bucket.delete(name, &always))?;
            }
            bucket.maintain(MOST as u64).map(drop)
        }
    }
}

fn upload(bucket: &mut BucketMut<'_>) -> Result<()> {
    let plain = ObjectAttributes::default;
    let uploads = bucket.view()?.uploads(UploadId(0), 20)?;
    for upload in uploads {
        match upload.mode {
            UploadMode::Append => {
                let added = bucket.append_upload(upload.id, upload.len, &[1; 900]);
                allowed(added).map(drop)?;
            }
            UploadMode::Parts { .. } => {
                allowed(bucket.put_part(upload.id, 1, &[2; 5]))?;
            }
        }
        bucket.extend_upload(upload.id, HOUR)?;
        let completion = UploadCompletion::default();
        allowed(bucket.complete_upload(upload.id, &completion))?;
        bucket.abort_upload(upload.id)?;
    }
    for mode in [UploadMode::Append, UploadMode::Parts { chunks: 2 }] {
        let Some(id) = allowed(bucket.begin_upload("uploaded", plain(), mode, HOUR))? else {
            continue;
        };
        match mode {
            UploadMode::Append => drop(allowed(bucket.append_upload(id, 0, &[3; 1_000]))?),
            UploadMode::Parts { .. } => drop(allowed(bucket.put_part(id, 0, &[4; 9]))?),
        }
        let done = bucket.complete_upload(id, &UploadCompletion::default());
        allowed(done)?;
    }
    Ok(())
}
