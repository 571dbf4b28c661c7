//! Bytes that no writer writes cause errors, never panics; a check finds rows that contradict each other.

use crate::queues::counters::{Group, State};
use crate::queues::groups::GroupStart;
use crate::queues::keys;
use crate::queues::lease::LeaseLimits;
use crate::queues::lease_row::Lease;
use crate::queues::mark;
use crate::queues::message::{self, NewMessage};
use crate::queues::options::{Overflow, QueueOptions};
use crate::queues::parts::{Part, change, part};
use crate::queues::read::QueueReader;
use crate::queues::seen;
use crate::queues::tests::table::Table;
use crate::queues::writer::QueueWriter;
use std::time::Duration;
use tidalite_pager::PageWrite;
use tidalite_testkit::rng::Rng;
use tidalite_time::Timestamp;

/// All nested parts.
pub(super) const TABLES: [Part; 13] = [
    Part::Messages,
    Part::Groups,
    Part::Open,
    Part::Marks,
    Part::Leases,
    Part::Ready,
    Part::Due,
    Part::Heads,
    Part::Waiting,
    Part::Dead,
    Part::Expiry,
    Part::Seen,
    Part::SeenTimes,
];

/// A queue with messages in all states, in two groups.
pub(super) fn full() -> Table {
    let mut table = Table::new(
        512,
        QueueOptions {
            overflow: Overflow::DropOldest,
            messages_max: Some(10_000),
            deliveries_max: Some(2),
            idempotency_window: Some(Duration::from_nanos(1000)),
            ..QueueOptions::default()
        },
    );
    for group in ["a", "b"] {
        let start = GroupStart::Oldest;
        table.write().create_group(group, start, 0).unwrap();
    }
    for i in 0..120_u64 {
        let name = i.to_be_bytes();
        let key = (i % 5).to_be_bytes();
        let payload = [i as u8; 20];
        let new = NewMessage {
            key: (i % 3 == 0).then_some(&key[..]),
            priority: if i % 7 == 0 { 200 } else { 128 },
            not_before: (i % 11 == 0).then_some(Timestamp(5000)),
            expires: (i % 13 == 0).then_some(Timestamp(9000)),
            headers: &[(b"n", b"v")],
            idempotency_key: (i % 4 == 0).then_some(&name[..]),
            ..NewMessage::new(&payload)
        };
        table.write().push(&new, i as i64).unwrap();
    }
    for (group, count) in [("a", 40), ("b", 25)] {
        let limits = LeaseLimits::messages(count);
        let found = table.write().lease(group, "one", 100, limits, 200).unwrap();
        let ids: Vec<u64> = found.iter().map(|found| found.message.id).collect();
        let mut queue = table.write();
        queue.ack(group, "one", &ids[..8], 201).unwrap();
        queue.reject(group, "one", &ids[8..14], 202).unwrap();
        queue.nack(group, "one", &ids[14..18], 0, 202).unwrap();
        queue.nack(group, "one", &ids[18..20], 70, 202).unwrap();
    }
    table.assert_whole();
    for of in TABLES {
        let rows = part(&table.root, &table.pages, of).unwrap().len();
        assert!(rows > 0, "{of:?}");
    }
    table
}

/// The rows of a part.
pub(super) fn rows(table: &Table, of: Part) -> Vec<(Vec<u8>, Vec<u8>)> {
    let part = part(&table.root, &table.pages, of).unwrap();
    let mut cursor = part.cursor(&table.pages).unwrap();
    let mut rows = Vec::new();
    let mut there = cursor.first().unwrap();
    while there {
        let value = cursor.value().unwrap().to_vec().unwrap();
        rows.push((cursor.key().to_vec(), value));
        there = cursor.next().unwrap();
    }
    rows
}

pub(super) fn put(table: &mut Table, of: Part, key: &[u8], value: Option<&[u8]>) {
    let Table { root, pages } = table;
    change(root, pages, of, &mut |w, table| match value {
        Some(value) => table.insert(w, key, value).map(drop),
        None => table.remove(w, key).map(drop),
    })
    .unwrap();
}

/// Expects the check to find a problem, or to fail.
fn finds(table: &Table, what: &str) {
    if let Ok(problems) = table.problems() {
        assert!(!problems.is_empty(), "{what}");
    }
}

#[test]
fn a_check_finds_every_missing_row() {
    tidalite_testkit::watch();
    for of in TABLES {
        let count = rows(&full(), of).len();
        for at in (0..count).step_by(1 + count / 12) {
            let mut table = full();
            let (key, _) = rows(&table, of).swap_remove(at);
            put(&mut table, of, &key, None);
            finds(&table, &format!("{of:?}: the row {}", key.escape_ascii()));
        }
    }
}

#[test]
fn a_check_finds_wrong_counters() {
    let state = |wrong: &dyn Fn(&mut State)| {
        let mut table = full();
        let mut state = table.read().state;
        wrong(&mut state);
        let bytes = state.encode();
        let Table { root, pages } = &mut table;
        root.insert(pages, &Part::State.key(), &bytes).unwrap();
        finds(&table, &format!("{state:?}"));
    };
    state(&|state| state.bytes += 1);
    state(&|state| state.next_id = 3);
    state(&|state| state.next_group = 1);
    let group = |wrong: &dyn Fn(&mut Group)| {
        let mut table = full();
        let mut group = table.read().groups["b"];
        wrong(&mut group);
        put(&mut table, Part::Groups, b"b", Some(&group.encode()));
        finds(&table, &format!("{group:?}"));
    };
    group(&|group| group.ready += 1);
    group(&|group| group.delayed += 1);
    group(&|group| group.leased += 1);
    group(&|group| group.waiting += 1);
    group(&|group| group.dead += 1);
    group(&|group| group.number = 0);
    group(&|group| group.number = 9);
    group(&|group| group.is_dropped = true);
    group(&|group| group.next_lease = 0);
}

/// Changed bytes in any row cause an error or other results, never a panic or an endless loop.
#[test]
fn changed_rows_do_no_harm() {
    tidalite_testkit::watch();
    let rng = &mut Rng::new(11);
    for round in 0..600 {
        let mut table = full();
        let of = *rng.pick(&TABLES);
        let all = rows(&table, of);
        let (key, mut value) = rng.pick(&all).clone();
        match rng.below(5) {
            0 => value.truncate(rng.index(value.len() + 1)),
            1 => value.push(rng.below(256) as u8),
            2 => put(&mut table, of, &[&key[..], b"x"].concat(), Some(&value)),
            _ => {
                for _ in 0..1 + rng.index(3) {
                    if !value.is_empty() {
                        let at = rng.index(value.len());
                        value[at] ^= 1 << rng.below(8);
                    }
                }
            }
        }
        put(&mut table, of, &key, Some(&value));
        println!("round {round}: {of:?} {}", key.escape_ascii());
        if let Ok(reader) = QueueReader::open(&table.root, &table.pages) {
            drop(reader.check(&mut |_| ()));
            drop(reader.stat());
            drop(reader.peek("a", 100, 300));
            drop(reader.dead_letters("b", 0, 100));
            drop(reader.group_stat("a"));
        }
        let Table { root, pages } = &mut table;
        use_all(root, pages);
    }
}

/// Calls all functions until the first error.
fn use_all<W: PageWrite>(root: &mut tidalite_kv::Tree, w: &mut W) {
    let mut all = || {
        let mut queue = QueueWriter::open(root, w)?;
        let limits = LeaseLimits::messages(30);
        let found = queue.lease("a", "two", 10, limits, 310)?;
        let ids: Vec<u64> = found.iter().map(|found| found.message.id).collect();
        queue.ack("a", "two", &ids, 311)?;
        queue.take("b", limits, 311)?;
        queue.nack("b", "one", &(0..120).collect::<Vec<_>>(), 1, 250)?;
        queue.requeue_dead("a", &(0..120).collect::<Vec<_>>(), 312)?;
        queue.push(&NewMessage::new(b"new"), 313)?;
        queue.maintain(50, 9000)?;
        queue.drop_group("a")?;
        queue.purge(30, 9001)?;
        queue.maintain(1000, 9002)
    };
    drop(all());
}

/// If the key of a set is shorter than its prefix and the number of a block, an error is returned.
#[test]
fn short_keys_of_sets_are_errors() {
    for of in [Part::Ready, Part::Due, Part::Waiting, Part::Open] {
        let (key, value) = rows(&full(), of).swap_remove(0);
        for length in 4..10 {
            let mut table = full();
            // The row of a set ends with the number of its container.
            let short = [&key[..length], &[0; 4]].concat();
            put(&mut table, of, &short, Some(&value));
            let Table { root, pages } = &mut table;
            use_all(root, pages);
            drop(table.problems());
        }
    }
}

/// A missing message causes an error instead of work that never ends.
#[test]
fn a_missing_message_ends_maintenance() {
    let mut table = Table::new(512, QueueOptions::default());
    let new = NewMessage {
        expires: Some(Timestamp(50)),
        ..NewMessage::new(b"x")
    };
    table.write().push(&new, 0).unwrap();
    put(&mut table, Part::Messages, &1_u64.to_be_bytes(), None);
    assert!(table.write().maintain(1, 60).is_err());
}

#[test]
fn random_bytes_are_decoded_without_harm() {
    let rng = &mut Rng::new(5);
    for _ in 0..20_000 {
        let mut bytes = vec![0; rng.index(100)];
        rng.fill(&mut bytes);
        if rng.one_in(2) {
            // Mostly small numbers: these are plausible as lengths and flags.
            bytes.iter_mut().for_each(|byte| *byte &= 0x1f);
        }
        drop(QueueOptions::decode(&bytes));
        drop(State::decode(&bytes));
        drop(Group::decode(&bytes));
        drop(mark::decode(&bytes));
        drop(Lease::decode(&bytes));
        drop(seen::decode(&bytes));
        drop(message::decode(1, &bytes));
        let _ = (keys::split_block(&bytes), keys::split_pair(&bytes));
        let _ = keys::split_time(&bytes);
    }
}

#[test]
fn rows_come_back_from_their_bytes() {
    let rng = &mut Rng::new(6);
    for _ in 0..2000 {
        let mut block: mark::Block = [None; mark::IDS];
        for place in &mut block {
            if rng.one_in(3) {
                *place = None;
                continue;
            }
            *place = Some(match rng.below(4) {
                0 => mark::Mark::ready(128, 1 + rng.below(2) as u32),
                1 => mark::Mark::waiting(128, rng.below(2) as u32),
                2 => mark::Mark::delayed(1, 1, rng.between(i64::MIN, i64::MAX)),
                _ => mark::Mark {
                    phase: mark::Phase::Leased,
                    priority: 2,
                    count: 1,
                    time: rng.between(0, 3),
                    lease: rng.below(3),
                },
            });
        }
        let bytes = mark::encode(&block);
        if !bytes.is_empty() {
            assert_eq!(*mark::decode(&bytes).unwrap(), block);
        }
    }
    for overflow in [Overflow::Reject, Overflow::DropOldest, Overflow::DropNewest] {
        let options = QueueOptions {
            overflow,
            deliveries_max: Some(3),
            messages_max: Some(4),
            bytes_max: Some(5),
            retention: Some(Duration::from_nanos(6)),
            idempotency_window: Some(Duration::from_nanos(7)),
        };
        assert_eq!(QueueOptions::decode(&options.encode()).unwrap(), options);
    }
}
