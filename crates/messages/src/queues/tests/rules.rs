//! The rules of queues, one by one.

use crate::queues::answer::Answered::{Done, HeldByOther, Lapsed, NotLeased, Unknown};
use crate::queues::due::DeadReason;
use crate::queues::groups::GroupStart;
use crate::queues::lease::{Delivery, LeaseLimits};
use crate::queues::message::NewMessage;
use crate::queues::options::{
    BATCH_MAX, GROUP_NAME_BYTES_MAX, HEADERS_BYTES_MAX, IDEMPOTENCY_KEY_BYTES_MAX,
    ORDERING_KEY_BYTES_MAX, Overflow, QUEUE_PAYLOAD_BYTES_MAX, QueueOptions,
};
use crate::queues::push::Pushed;
use crate::queues::tests::table::Table;
use crate::queues::writer::QueueWriter;
use std::time::Duration;
use tidalite_kv::Tree;
use tidalite_pager::Error;
use tidalite_testkit::ScratchPages;
use tidalite_time::Timestamp;

fn table(options: QueueOptions) -> Table {
    Table::new(1024, options)
}

fn message(payload: &[u8]) -> NewMessage<'_> {
    NewMessage::new(payload)
}

fn ids(deliveries: &[Delivery]) -> Vec<u64> {
    deliveries.iter().map(|one| one.message.id).collect()
}

impl Table {
    fn push(&mut self, new: NewMessage<'_>, now: i64) -> u64 {
        match self.write().push(&new, now).unwrap() {
            Pushed::Stored(id) => id,
            other => panic!("{other:?}"),
        }
    }

    /// Leases up to 100 messages of the default group for a duration of 10.
    fn lease(&mut self, consumer: &str, now: i64) -> Vec<u64> {
        let limits = LeaseLimits::messages(100);
        let found = self.write().lease("default", consumer, 10, limits, now);
        ids(&found.unwrap())
    }
}

#[test]
fn a_message_comes_back_as_it_was_pushed() {
    let mut table = table(QueueOptions::default());
    let large = vec![9; 100_000];
    let new = NewMessage {
        payload: &large,
        key: Some(b"key"),
        priority: 7,
        not_before: Some(Timestamp(-5)),
        expires: Some(Timestamp::MAX),
        headers: &[(b"content-type", b"text"), (b"", b"")],
        idempotency_key: Some(b"once"),
    };
    let id = table.push(new, 3);
    let limits = LeaseLimits::messages(1);
    let found = table
        .write()
        .lease("default", "one", 10, limits, 4)
        .unwrap();
    let one = &found[0].message;
    assert_eq!((one.id, &one.payload, one.pushed.0), (id, &large, 3));
    assert_eq!((one.key.as_deref(), one.priority), (Some(&b"key"[..]), 7));
    assert_eq!(one.not_before, Some(Timestamp(-5)));
    assert_eq!(one.expires, Some(Timestamp::MAX));
    let headers = [
        (b"content-type".to_vec(), b"text".to_vec()),
        (Vec::new(), Vec::new()),
    ];
    assert_eq!(one.headers, headers);
    assert_eq!(one.idempotency_key.as_deref(), Some(&b"once"[..]));
    assert_eq!(
        (found[0].deliveries, found[0].deadline),
        (1, Some(Timestamp(14)))
    );
    assert_eq!(table.read().message(id).unwrap().as_ref(), Some(one));
    table.assert_whole();
    table.write().ack("default", "one", &[id], 5).unwrap();
    table.assert_whole();
}

#[test]
fn leases_lapse_exactly_at_their_deadline() {
    let mut table = table(QueueOptions::default());
    let id = table.push(message(b"job"), 0);
    assert_eq!(table.lease("one", 0), [id]);
    assert_eq!(table.lease("two", 9), [0; 0]);
    let answer = |table: &mut Table, consumer: &str, now| {
        table.write().ack("default", consumer, &[id], now).unwrap()[0]
    };
    assert_eq!(answer(&mut table, "two", 9), HeldByOther);
    assert_eq!(answer(&mut table, "one", 10), Lapsed);
    assert_eq!(table.lease("two", 10), [id]);
    assert_eq!(answer(&mut table, "one", 11), HeldByOther);
    let extended = table
        .write()
        .extend("default", "two", &[id], 50, 12)
        .unwrap();
    assert_eq!(extended, [Done]);
    assert_eq!(table.lease("one", 40), [0; 0]);
    let nacked = table.write().nack("default", "two", &[id], 5, 40).unwrap();
    assert_eq!(nacked, [Done]);
    assert_eq!(answer(&mut table, "two", 41), NotLeased);
    assert_eq!(table.lease("two", 44), [0; 0]);
    let limits = LeaseLimits::messages(1);
    let found = table
        .write()
        .lease("default", "two", 1, limits, 45)
        .unwrap();
    assert_eq!(found[0].deliveries, 3);
    let found = table
        .write()
        .ack("default", "two", &[id, id, 77], 45)
        .unwrap();
    assert_eq!(found, [Done, Unknown, Unknown]);
    assert_eq!(table.read().stat().unwrap().messages, 0);
    table.assert_whole();
}

#[test]
fn priorities_come_first_and_limits_hold() {
    let mut table = table(QueueOptions::default());
    for priority in [128, 0, 255, 128] {
        let new = NewMessage {
            priority,
            ..message(&[1; 40])
        };
        table.push(new, 0);
    }
    let mut lease = |messages, bytes| {
        let limits = LeaseLimits { messages, bytes };
        let found = table.write().lease("default", "one", 10, limits, 0);
        ids(&found.unwrap())
    };
    assert_eq!(lease(0, 1000), [0; 0]);
    // A message takes 50 bytes; a larger one than permitted is delivered alone.
    assert_eq!(lease(9, 1), [3]);
    assert_eq!(lease(9, 100), [1, 4]);
    assert_eq!(lease(9, 100), [2]);
}

#[test]
fn dead_letters_are_listed_requeued_and_dropped() {
    let mut table = table(QueueOptions {
        deliveries_max: Some(2),
        ..QueueOptions::default()
    });
    let key = Some(&b"k"[..]);
    let first = table.push(
        NewMessage {
            key,
            ..message(b"1")
        },
        0,
    );
    let second = table.push(
        NewMessage {
            key,
            ..message(b"2")
        },
        0,
    );
    assert_eq!(table.lease("one", 0), [first]);
    assert_eq!(table.lease("one", 10), [first]);
    // The second lease lapses: the message becomes a dead letter, and the next one with its key is ready.
    assert_eq!(table.lease("one", 20), [second]);
    table
        .write()
        .reject("default", "one", &[second], 21)
        .unwrap();
    let letters = table.read().dead_letters("default", 0, 10).unwrap();
    let facts: Vec<_> = letters
        .iter()
        .map(|letter| {
            (
                letter.message.id,
                letter.reason,
                letter.deliveries,
                letter.died.0,
            )
        })
        .collect();
    let many = DeadReason::TooManyDeliveries;
    let expected = [(first, many, 2, 20), (second, DeadReason::Rejected, 1, 21)];
    assert_eq!(facts, expected);
    let page = table.read().dead_letters("default", first + 1, 1).unwrap();
    assert_eq!(page[0].message.id, second);
    assert_eq!(table.lease("one", 30), [0; 0]);
    let answers = table.write().requeue_dead("default", &[second, 99], 30);
    assert_eq!(answers.unwrap(), [Done, Unknown]);
    let answers = table.write().requeue_dead("default", &[first], 30);
    assert_eq!(answers.unwrap(), [Done]);
    let stat = table.read().group_stat("default").unwrap();
    assert_eq!(
        (stat.ready, stat.waiting, stat.dead, stat.buried),
        (1, 1, 0, 2)
    );
    assert_eq!(table.lease("one", 30), [second]);
    table
        .write()
        .reject("default", "one", &[second], 31)
        .unwrap();
    assert_eq!(table.lease("one", 31), [first]);
    let answers = table.write().drop_dead("default", &[first, second], 32);
    assert_eq!(answers.unwrap(), [Unknown, Done]);
    assert_eq!(table.read().stat().unwrap().messages, 1);
    table.assert_whole();
}

#[test]
fn full_queues_follow_their_policy() {
    for (overflow, messages_max, bytes_max) in [
        (Overflow::Reject, Some(3), None),
        (Overflow::DropOldest, Some(3), None),
        (Overflow::DropNewest, Some(3), None),
        (Overflow::Reject, None, Some(33)),
        (Overflow::DropOldest, None, Some(33)),
        (Overflow::DropNewest, None, Some(33)),
    ] {
        let mut table = table(QueueOptions {
            overflow,
            messages_max,
            bytes_max,
            ..QueueOptions::default()
        });
        let new = [message(b"1"); 4];
        let mut answers = vec![table.write().push_many(&new[..3], 0)];
        assert_eq!(table.lease("one", 0), [1, 2, 3]);
        answers.push(table.write().push_many(&new[..2], 0));
        let stat = table.read().stat().unwrap();
        match (&answers[1], overflow) {
            (Err(Error::Limit { .. }), Overflow::Reject) => {
                assert_eq!((stat.messages, stat.next_id), (3, 4));
            }
            (Ok(found), Overflow::DropOldest) => {
                assert_eq!(*found, [Pushed::Stored(4), Pushed::Stored(5)]);
                assert_eq!((stat.messages, stat.dropped_oldest), (3, 2));
                let found = table.write().ack("default", "one", &[1, 2, 3], 1).unwrap();
                assert_eq!(found, [Unknown, Unknown, Done]);
            }
            (Ok(found), Overflow::DropNewest) => {
                assert_eq!(*found, [Pushed::Dropped, Pushed::Dropped]);
                assert_eq!((stat.messages, stat.dropped_newest), (3, 2));
            }
            other => panic!("{other:?}"),
        }
        table.assert_whole();
        if overflow == Overflow::DropOldest {
            // If a batch is larger than the queue, its last messages remain.
            table.write().push_many(&[message(b"2"); 9], 0).unwrap();
            let left = table.read().messages(0, 10).unwrap();
            assert_eq!(
                left.iter().map(|one| one.id).collect::<Vec<_>>(),
                [12, 13, 14]
            );
            table.assert_whole();
        }
    }
}

#[test]
fn a_repeated_push_stores_nothing_within_the_window() {
    let mut table = table(QueueOptions {
        idempotency_window: Some(Duration::from_nanos(100)),
        ..QueueOptions::default()
    });
    let new = NewMessage {
        idempotency_key: Some(b"order 7"),
        ..message(b"pay")
    };
    let answers = table
        .write()
        .push_many(&[new, message(b"x"), new], 0)
        .unwrap();
    let expected = [Pushed::Stored(1), Pushed::Stored(2), Pushed::Repeated(1)];
    assert_eq!(answers, expected);
    let limits = LeaseLimits::messages(9);
    table.write().take("default", limits, 50).unwrap();
    assert_eq!(table.write().push(&new, 99).unwrap(), Pushed::Repeated(1));
    assert_eq!(table.write().push(&new, 100).unwrap(), Pushed::Stored(3));
    assert_eq!(table.read().stat().unwrap().repeated, 2);
    table.assert_whole();
    // Keys that have left the window are removed by later pushes.
    for i in 0..50_i64 {
        let key = i.to_be_bytes();
        let new = NewMessage {
            idempotency_key: Some(&key),
            ..message(b"")
        };
        table.push(new, 200 + i * 50);
    }
    let seen = crate::queues::parts::Part::Seen;
    let kept = crate::queues::parts::part(&table.root, &table.pages, seen).unwrap();
    assert!(kept.len() <= 3, "{}", kept.len());
    table.assert_whole();
}

#[test]
fn each_group_gets_every_message() {
    let mut table = table(QueueOptions::default());
    let new = [message(b"job"); 3];
    table.write().push_many(&new, 0).unwrap();
    let all = LeaseLimits::messages(9);
    assert!(
        table
            .write()
            .create_group("a", GroupStart::Oldest, 0)
            .unwrap()
    );
    assert!(
        !table
            .write()
            .create_group("a", GroupStart::Oldest, 0)
            .unwrap()
    );
    assert!(
        table
            .write()
            .create_group("b", GroupStart::Oldest, 0)
            .unwrap()
    );
    assert!(
        table
            .write()
            .create_group("c", GroupStart::Newest, 0)
            .unwrap()
    );
    let missing = table.write().lease("default", "one", 10, all, 0);
    assert!(matches!(missing, Err(Error::Refused { .. })));
    let id = table.push(message(b"new"), 0);
    assert_eq!(
        ids(&table.write().take("a", all, 0).unwrap()),
        [1, 2, 3, id]
    );
    assert_eq!(ids(&table.write().take("c", all, 0).unwrap()), [id]);
    assert_eq!(table.read().stat().unwrap().messages, 4);
    assert_eq!(
        ids(&table.write().take("b", all, 0).unwrap()),
        [1, 2, 3, id]
    );
    assert_eq!(table.read().stat().unwrap().messages, 0);
    table.push(message(b"last"), 0);
    assert_eq!(ids(&table.write().take("a", all, 0).unwrap()).len(), 1);
    for group in ["a", "b", "c"] {
        assert!(table.write().drop_group(group).unwrap());
        assert!(!table.write().drop_group(group).unwrap());
    }
    // Without a group, messages are kept; messages of dropped groups are removed.
    let waits = table.push(message(b"waits"), 0);
    assert!(!table.write().maintain(10, 0).unwrap().more);
    assert_eq!(table.read().stat().unwrap().messages, 1);
    assert_eq!(table.lease("one", 0), [waits]);
    assert_eq!(table.read().group_names(), ["default"]);
    table.assert_whole();
}

#[test]
fn long_work_is_done_in_steps() {
    let mut table = table(QueueOptions {
        retention: Some(Duration::from_nanos(1000)),
        ..QueueOptions::default()
    });
    let expiring = NewMessage {
        expires: Some(Timestamp(50)),
        ..message(b"x")
    };
    table.write().push_many(&[expiring; 25], 0).unwrap();
    table.write().push_many(&[message(b"y"); 25], 0).unwrap();
    assert!(!table.write().maintain(10, 49).unwrap().more);
    for (expired, more) in [(10, true), (10, true), (5, false)] {
        let done = table.write().maintain(10, 50).unwrap();
        assert_eq!((done.expired, done.aged, done.more), (expired, 0, more));
        table.assert_whole();
    }
    let stat = table.read().stat().unwrap();
    assert_eq!((stat.expired, stat.messages), (25, 25));
    for (aged, more) in [(10, true), (10, true), (5, false)] {
        let done = table.write().maintain(10, 1000).unwrap();
        assert_eq!((done.expired, done.aged, done.more), (0, aged, more));
    }
    assert_eq!(table.read().stat().unwrap().aged, 25);
    table.write().push_many(&[message(b"z"); 25], 1000).unwrap();
    assert!(table.write().purge_group("default", 10, 1000).unwrap());
    assert!(table.write().purge(10, 1000).unwrap());
    assert!(!table.write().purge(10, 1000).unwrap());
    assert!(
        !table
            .write()
            .purge_group("default", usize::MAX, 1000)
            .unwrap()
    );
    let stat = table.read().stat().unwrap();
    assert_eq!((stat.purged, stat.bytes), (15, 0));
    table.assert_whole();
}

#[test]
fn limits_are_errors_and_change_nothing() {
    let mut table = table(QueueOptions::default());
    let long = vec![0; QUEUE_PAYLOAD_BYTES_MAX + 1];
    let value = vec![0; HEADERS_BYTES_MAX - 3];
    let headers = [(&b""[..], &value[..])];
    let wrong = [
        message(&long),
        NewMessage {
            key: Some(&long[..=ORDERING_KEY_BYTES_MAX]),
            ..message(b"")
        },
        NewMessage {
            idempotency_key: Some(&long[..=IDEMPOTENCY_KEY_BYTES_MAX]),
            ..message(b"")
        },
        NewMessage {
            headers: &headers,
            ..message(b"")
        },
    ];
    for wrong in wrong {
        let found = table.write().push_many(&[message(b"first"), wrong], 0);
        assert!(matches!(found, Err(Error::Limit { .. })), "{found:?}");
    }
    let many = vec![message(b""); BATCH_MAX + 1];
    let found = table.write().push_many(&many, 0);
    assert!(matches!(found, Err(Error::Limit { .. })));
    let limits = LeaseLimits::messages(BATCH_MAX + 1);
    let found = table.write().lease("default", "one", 1, limits, 0);
    assert!(matches!(found, Err(Error::Limit { .. })));
    let consumer = "c".repeat(256);
    let limits = LeaseLimits::messages(1);
    let found = table.write().lease("default", &consumer, 1, limits, 0);
    assert!(matches!(found, Err(Error::Limit { .. })));
    let start = GroupStart::Newest;
    let name = "g".repeat(GROUP_NAME_BYTES_MAX + 1);
    let found = table.write().create_group(&name, start, 0);
    assert!(matches!(found, Err(Error::Limit { .. })));
    for name in ["", "\0x"] {
        let found = table.write().create_group(name, start, 0);
        assert!(matches!(found, Err(Error::Refused { .. })));
    }
    assert_eq!(table.read().stat().unwrap().next_id, 1);
    let options = QueueOptions {
        retention: Some(Duration::ZERO),
        ..QueueOptions::default()
    };
    let (mut root, mut pages) = (Tree::new(1), ScratchPages::new(512));
    let found = QueueWriter::create(&mut root, &mut pages, options).map(drop);
    assert!(matches!(found, Err(Error::Refused { .. })));
    table.assert_whole();
}

/// The order of ids is correct far beyond the first block of a set, too.
#[test]
fn ids_of_many_blocks_are_in_order() {
    tidalite_testkit::watch();
    let mut table = Table::new(4096, QueueOptions::default());
    let batch = vec![message(b"x"); 50_000];
    for _ in 0..4 {
        table.write().push_many(&batch, 0).unwrap();
    }
    let all = LeaseLimits::messages(BATCH_MAX);
    let mut next = 1;
    for _ in 0..3 {
        let found = table.write().lease("default", "one", 10, all, 0).unwrap();
        assert_eq!(found.len(), BATCH_MAX);
        assert!(ids(&found).into_iter().eq(next..next + BATCH_MAX as u64));
        next += BATCH_MAX as u64;
    }
    let some: Vec<u64> = (60_000..=125_000).collect();
    let found = table.write().ack("default", "one", &some, 1).unwrap();
    assert!(found.iter().all(|answer| *answer == Done));
    assert_eq!(table.read().stat().unwrap().messages, 200_000 - 65_001);
    table.assert_whole();
}
