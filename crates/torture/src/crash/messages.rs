//! Checks what topics, queues, buckets and containers guarantee after a crash in addition to their content, by
//! consuming everything, two days later:
//!
//! 1. Each group gets exactly the messages whose acknowledgement was not committed, each of them once.
//! 2. Maintenance, step by step, leaves no orphan chunk, upload or expired object, and every object is sound.
//! 3. A purge leaves exactly the topics that do not expire, and a search delivers each of them once.
//! 4. Restored containers and messages exist again. Maintenance, step by step, leaves exactly the messages that have
//!    not expired, and the series contain exactly their numbers.

use super::open::{Judged, checked, text};
use crate::model::messages::bucket::bytes_of;
use crate::model::messages::containers::{self, Containers, left_of};
use crate::model::messages::queue::Queue;
use crate::model::messages::{BROKER, DEVICES, FILES, JOBS};
use crate::model::{Messages, Model, clock};
use std::collections::BTreeSet;
use tidalite::containers::{ContainersMut, RestoreRange};
use tidalite::objects::{BucketMaintenance, ListQuery};
use tidalite::queue::{LeaseLimits, QueueMut};
use tidalite::topics::{Filter, SearchOptions, TopicSearch};
use tidalite::{Database, WriteTxn};

/// Time in nanoseconds after which every lease, delay and upload has lapsed: two days.
const LATER: i64 = 2 * 86_400_000_000_000;
/// Number of messages that are taken, and of expired topics and chunks that are removed, in one call.
const STEP: u64 = 7;
/// Maximum number of calls of a loop.
const CALLS_MAX: u64 = 1_000;

/// Uses up the messages of a database that has the content of `model`, and checks the database after that.
pub(super) fn used_up(db: &Database, model: &Model) -> Judged {
    let tx = db.try_begin_write().map_err(text)?;
    let mut tx = tx.ok_or("the turn is not free")?;
    let left = use_up(&mut tx, &model.messages)?;
    tx.commit().map_err(text)?;
    let snap = db.begin_read().map_err(text)?;
    let (mut found, mut known) = (Vec::new(), Vec::new());
    clock::in_the_past(|| containers::answers(&snap, &mut found)).map_err(text)?;
    left.iter().for_each(|left| left.expected(&mut known));
    if let Some((found, known)) = found.iter().zip(&known).find(|(a, b)| a != b) {
        return Err(format!("containers, used up: {found}, not {known}"));
    }
    if found.len() != known.len() {
        return Err(format!("containers, used up: {found:?}, not {known:?}"));
    }
    drop(snap);
    checked(db).map_err(|error| format!("used up: {error}"))
}

/// Uses up the messages in a transaction. Returns the containers that are left.
pub(crate) fn use_up(tx: &mut WriteTxn, messages: &Messages) -> Judged<Option<Containers>> {
    let later = messages.now + LATER;
    clock::at(later, || {
        tx.confirm_clock();
        queue(tx, messages, later).map_err(|error| format!("queue: {error}"))?;
        bucket(tx, messages, later).map_err(|error| format!("bucket: {error}"))?;
        topics(tx, messages, later).map_err(|error| format!("topics: {error}"))?;
        documents(tx, messages, later).map_err(|error| format!("containers: {error}"))
    })
}

fn documents(tx: &mut WriteTxn, messages: &Messages, later: i64) -> Judged<Option<Containers>> {
    let found = tx.containers_if_exists(DEVICES).map_err(text)?;
    let Some(mut table) = found else {
        return match messages.containers {
            Some(_) => Err("they are not there".to_owned()),
            None => Ok(None),
        };
    };
    let known = messages.containers.as_deref();
    let mut known = known.ok_or("they were never committed")?.clone();
    clock::at(messages.now, || {
        restored(&mut table, &mut known, messages.now)
    })?;
    let mut calls = 0;
    while table.maintain(STEP).map_err(text)?.more {
        calls += 1;
        if calls > CALLS_MAX {
            return Err("maintenance does not end".to_owned());
        }
    }
    known.maintain(later);
    let (left, expected) = (left_of(&table).map_err(text)?, known.left());
    match left == expected {
        true => Ok(Some(known)),
        false => Err(format!("{left:?} is left, not {expected:?}")),
    }
}

/// Restores all containers and messages that can be restored.
fn restored(table: &mut ContainersMut<'_>, known: &mut Containers, now: i64) -> Judged {
    let dropped = known.dropped.iter().map(|dropped| dropped.name.clone());
    for (i, name) in dropped.collect::<Vec<_>>().into_iter().enumerate() {
        let to = format!("restored {i}");
        if let Some(number) = known.restore_container(&name, &to, now) {
            let found = table.restore_container(&name, &to).map_err(text)?;
            if found != number {
                return Err(format!("{name} is container {found}, not {number}"));
            }
        }
    }
    let names: Vec<String> = known.live.keys().cloned().collect();
    for name in names {
        let all = RestoreRange::default();
        let found = table.restore_messages(&name, &all).map_err(text)?;
        let keys = found.messages.iter();
        let keys: Vec<_> = keys
            .map(|message| (message.key.time.0, message.key.tie))
            .collect();
        let expected = known.restore(&name, &all, now);
        if (keys, found.skipped) != expected {
            return Err(format!("{name} gets back other messages than {expected:?}"));
        }
    }
    Ok(())
}

fn queue(tx: &mut WriteTxn, messages: &Messages, later: i64) -> Judged {
    let found = tx.queue_if_exists(JOBS).map_err(text)?;
    let Some(mut table) = found else {
        return match messages.queue {
            Some(_) => Err("it is not there".to_owned()),
            None => Ok(()),
        };
    };
    let known = messages.queue.as_deref().ok_or("it was never committed")?;
    let names = known.groups.keys().map(String::as_str);
    let names: Vec<&str> = names.filter(|name| !name.starts_with('\0')).collect();
    for row in names {
        let name = if row.is_empty() { "default" } else { row };
        let delivered = deliveries(&mut table, name)?;
        let open = needed(known, row, later);
        if delivered != open {
            let lost: Vec<_> = open.difference(&delivered).collect();
            let again: Vec<_> = delivered.difference(&open).collect();
            return Err(format!("{name}: {lost:?} are lost, {again:?} come again"));
        }
    }
    let mut calls = 0;
    while table.maintain(STEP).map_err(text)?.more {
        calls += 1;
        if calls > CALLS_MAX {
            return Err("maintenance does not end".to_owned());
        }
    }
    let left = table.view().and_then(|view| view.stat()).map_err(text)?;
    match left.messages {
        0 => Ok(()),
        _ => Err(format!("nothing is needed, but {left:?}")),
    }
}

/// The messages that a group has not acknowledged, without messages that have expired then.
fn needed(queue: &Queue, row: &str, later: i64) -> BTreeSet<u64> {
    let open = queue.groups[row].open.keys().copied();
    let lives = |id: &u64| queue.messages[id].expires.is_none_or(|time| time > later);
    open.filter(lives).collect()
}

/// Takes all messages of a group, dead letters at the end.
fn deliveries(table: &mut QueueMut<'_>, name: &str) -> Judged<BTreeSet<u64>> {
    let mut all = BTreeSet::new();
    let limits = LeaseLimits::messages(STEP as usize);
    for round in 0..2 {
        loop {
            let taken = table.take(name, limits).map_err(text)?;
            if taken.is_empty() {
                break;
            }
            for one in taken {
                if !all.insert(one.message.id) {
                    return Err(format!("{name} gets {} twice", one.message.id));
                }
            }
        }
        if round == 0 {
            let view = table.view().map_err(text)?;
            let dead = view.dead_letters(name, 0, usize::MAX).map_err(text)?;
            let dead: Vec<u64> = dead.iter().map(|letter| letter.message.id).collect();
            table.requeue_dead(name, &dead).map_err(text)?;
        }
    }
    Ok(all)
}

fn bucket(tx: &mut WriteTxn, messages: &Messages, later: i64) -> Judged {
    let found = tx.bucket_if_exists(FILES).map_err(text)?;
    let Some(mut table) = found else {
        return match messages.bucket {
            Some(_) => Err("it is not there".to_owned()),
            None => Ok(()),
        };
    };
    let mut calls = 0;
    loop {
        let done: BucketMaintenance = table.maintain(STEP).map_err(text)?;
        calls += 1;
        match done.more {
            true if calls > CALLS_MAX => return Err("maintenance does not end".to_owned()),
            true => {}
            false => break,
        }
    }
    let known = messages.bucket.as_deref().ok_or("it was never committed")?;
    let mut known = known.clone();
    known.expire(later);
    let view = table.view().map_err(text)?;
    let stat = view.stat().map_err(text)?;
    let counts = (stat.objects, stat.chunks, stat.orphans, stat.uploads);
    let wanted = (known.objects.len() as u64, known.chunks(), 0, 0);
    if counts != wanted {
        return Err(format!(
            "objects, chunks, orphans and uploads are {counts:?}, not {wanted:?}"
        ));
    }
    let list = view.list(&ListQuery::default()).map_err(text)?;
    if list.objects.len() != known.objects.len() {
        return Err("the list lacks objects".to_owned());
    }
    for (name, object) in &known.objects {
        let info = view.info(name).map_err(text)?;
        let info = info.ok_or_else(|| format!("{name} is not there"))?;
        let bytes = view.read(&info, 0, u64::MAX).map_err(text)?;
        let sound = view.verify(name).map_err(text)?;
        let sound = sound.is_some_and(|found| found.is_sound());
        if !sound || bytes != bytes_of(object.seed, 0, object.size as usize) {
            return Err(format!("{name} is not sound: {sound}"));
        }
    }
    Ok(())
}

fn topics(tx: &mut WriteTxn, messages: &Messages, later: i64) -> Judged {
    let found = tx.topics_if_exists(BROKER).map_err(text)?;
    let Some(mut table) = found else {
        return match messages.topics {
            Some(_) => Err("they are not there".to_owned()),
            None => Ok(()),
        };
    };
    while table.maintain(STEP).map_err(text)?.more {}
    let known = messages
        .topics
        .as_deref()
        .ok_or("they were never committed")?;
    let mut known = known.clone();
    known.remove_if(|_, one| one.expires.is_some_and(|time| time <= later));
    let filters = ["#", "$SYS/#"].map(Filter::parse);
    let filters = filters.into_iter().collect::<Result<Vec<_>, _>>();
    let filters = filters.map_err(text)?;
    let mut search = TopicSearch::new(filters, SearchOptions::default());
    let (mut seen, view) = (Vec::new(), table.view().map_err(text)?);
    while !search.is_done() {
        let page = view.search(&mut search, STEP, &mut |found| {
            seen.push(found.retained.message.topic.to_owned());
        });
        page.map_err(text)?;
    }
    seen.sort();
    match seen.iter().eq(known.messages.keys()) {
        true => Ok(()),
        false => Err(format!("a search finds {seen:?}")),
    }
}
