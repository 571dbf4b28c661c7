//! Calls at their limits: the number of groups, expired messages, unfinished work.

use crate::queues::answer::Answered::Unknown;
use crate::queues::groups::GroupStart;
use crate::queues::lease::{DUE_STEP, LeaseLimits};
use crate::queues::message::NewMessage;
use crate::queues::options::{GROUPS_MAX, Overflow, QueueOptions};
use crate::queues::tests::table::Table;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tidalite_pager::{Error, PageRead};
use tidalite_time::Timestamp;

#[test]
fn dropped_groups_do_not_exceed_the_limit() {
    tidalite_testkit::watch();
    let mut table = Table::new(1024, QueueOptions::default());
    let mut queue = table.write();
    assert!(!queue.drop_group("default").unwrap());
    assert_eq!(queue.groups.len(), 1);
    let found = loop {
        queue.create_group("g", GroupStart::Newest, 0).unwrap();
        if let Err(found) = queue.drop_group("g") {
            break found;
        }
    };
    assert!(matches!(found, Error::Limit { .. }), "{found:?}");
    assert_eq!(queue.groups.len(), GROUPS_MAX);
    assert_eq!(queue.group_names(), ["g"]);
    queue.maintain(10, 0).unwrap();
    assert!(queue.drop_group("g").unwrap());
    table.assert_whole();
}

#[test]
fn without_numbers_for_groups_nothing_changes() {
    let mut table = Table::new(1024, QueueOptions::default());
    let mut queue = table.write();
    queue.state.next_group = u32::MAX;
    queue.save_state().unwrap();
    let found = queue.create_group("g", GroupStart::Newest, 0);
    assert!(matches!(found, Err(Error::Limit { .. })), "{found:?}");
    assert!(queue.groups.contains_key(""));
    queue.create_group("g", GroupStart::Oldest, 0).unwrap();
    let found = queue.drop_group("g");
    assert!(matches!(found, Err(Error::Limit { .. })), "{found:?}");
    assert_eq!(queue.group_names(), ["g"]);
    table.assert_whole();
}

/// Expired messages with one ordering key become ready one by one, but do not delay a call.
#[test]
fn a_lease_reads_ready_messages_once() {
    tidalite_testkit::watch();
    let mut table = Table::new(4096, QueueOptions::default());
    let expiring = NewMessage {
        key: Some(b"same"),
        expires: Some(Timestamp(50)),
        ..NewMessage::new(b"x")
    };
    let mut queue = table.write();
    queue.push_many(&vec![expiring; DUE_STEP + 100], 0).unwrap();
    queue.push(&NewMessage::new(b"y"), 0).unwrap();
    let limits = LeaseLimits::messages(10);
    let found = queue.lease("default", "one", 10, limits, 60).unwrap();
    let ids: Vec<u64> = found.iter().map(|found| found.message.id).collect();
    assert_eq!(ids, [DUE_STEP as u64 + 101]);
    assert_eq!(queue.state.expired, DUE_STEP as u64 + 1);
    table.assert_whole();
}

/// A push to a full queue reads only the messages that it drops, and maintenance reads only old messages.
#[test]
fn only_the_oldest_messages_are_read() {
    tidalite_testkit::watch();
    let mut table = Table::new(
        4096,
        QueueOptions {
            overflow: Overflow::DropOldest,
            messages_max: Some(1500),
            retention: Some(Duration::from_nanos(1000)),
            ..QueueOptions::default()
        },
    );
    let new = NewMessage::new(&[1; 1000]);
    table.write().push_many(&vec![new; 1500], 0).unwrap();
    table.commit();
    let read = |table: &Table| table.pages.counters().pages_read.load(Relaxed);
    let before = read(&table);
    table.write().push(&new, 1).unwrap();
    let pushed = read(&table) - before;
    table.commit();
    let before = read(&table);
    table.write().maintain(1024, 1).unwrap();
    let maintained = read(&table) - before;
    assert!(pushed < 100 && maintained < 50, "{pushed} {maintained}");
}

#[test]
fn calls_without_work_end() {
    let mut table = Table::new(1024, QueueOptions::default());
    table.write().push(&NewMessage::new(b"x"), 0).unwrap();
    assert!(!table.write().maintain(0, 0).unwrap().more);
    let ids = [u64::MAX, 2, u64::MAX - 70];
    let found = table.write().ack("default", "one", &ids, 0).unwrap();
    assert_eq!(found, [Unknown; 3]);
    let found = table.write().drop_dead("default", &ids, 0).unwrap();
    assert_eq!(found, [Unknown; 3]);
}
