//! Complexity, measured with counters.

use crate::queues::lease::LeaseLimits;
use crate::queues::message::NewMessage;
use crate::queues::options::QueueOptions;
use crate::queues::tests::table::Table;
use std::sync::atomic::Ordering::Relaxed;
use tidalite_pager::PageRead;
use tidalite_time::Timestamp;

/// A queue with many messages that wait for an earlier one, many delayed ones, and 100 ready ones.
fn crowded(messages: u64) -> Table {
    let mut table = Table::new(4096, QueueOptions::default());
    let mut pushed = 0;
    while pushed < messages {
        let waiting = NewMessage {
            key: Some(b"same"),
            ..NewMessage::new(&[1; 50])
        };
        let delayed = NewMessage {
            not_before: Some(Timestamp::MAX),
            expires: Some(Timestamp::MAX),
            ..NewMessage::new(&[1; 50])
        };
        table.write().push_many(&[waiting; 1000], 0).unwrap();
        table.write().push_many(&[delayed; 1000], 0).unwrap();
        pushed += 2000;
    }
    let ready = [NewMessage::new(b"ready"); 100];
    table.write().push_many(&ready, 0).unwrap();
    table.commit();
    table
}

/// Number of pages that a call reads.
fn pages_read(table: &mut Table, call: impl FnOnce(&mut Table)) -> u64 {
    let before = table.pages.counters().pages_read.load(Relaxed);
    call(table);
    table.pages.counters().pages_read.load(Relaxed) - before
}

#[test]
fn calls_do_not_visit_messages_that_wait() {
    tidalite_testkit::watch();
    let mut counts = Vec::new();
    for messages in [4000, 80_000] {
        let mut table = crowded(messages);
        let mut ids = Vec::new();
        let lease = pages_read(&mut table, |table| {
            let limits = LeaseLimits::messages(101);
            let found = table
                .write()
                .lease("default", "one", 10, limits, 1)
                .unwrap();
            ids = found.iter().map(|found| found.message.id).collect();
        });
        assert_eq!(ids.len(), 101);
        let ack = pages_read(&mut table, |table| {
            table.write().ack("default", "one", &ids[1..], 1).unwrap();
        });
        let empty = pages_read(&mut table, |table| {
            let limits = LeaseLimits::messages(100);
            let found = table
                .write()
                .lease("default", "two", 10, limits, 1)
                .unwrap();
            assert!(found.is_empty());
        });
        let stat = pages_read(&mut table, |table| {
            let reader = table.read();
            reader.group_stat("default").unwrap();
            reader.stat().unwrap();
        });
        counts.push([lease, ack, empty, stat]);
    }
    println!("{counts:?}");
    for (few, many) in counts[0].iter().zip(counts[1]) {
        // The tables are one or two levels higher.
        assert!(many <= few * 3, "{counts:?}");
    }
    assert!(counts[1][2] < 60 && counts[1][3] < 30, "{counts:?}");
}

/// Acknowledged messages leave no rows, in whatever order they are acknowledged.
#[test]
fn a_queue_does_not_grow_with_acknowledged_messages() {
    tidalite_testkit::watch();
    let mut table = Table::new(4096, QueueOptions::default());
    let mut pages = Vec::new();
    for round in 0..300 {
        let new = [NewMessage::new(&[1; 40]); 100];
        table.write().push_many(&new, round).unwrap();
        let limits = LeaseLimits::messages(100);
        let found = table
            .write()
            .lease("default", "one", 10, limits, round)
            .unwrap();
        let mut ids: Vec<u64> = found.iter().map(|found| found.message.id).collect();
        ids.sort_by_key(|id| id % 7);
        for ids in ids.chunks(9) {
            table.write().ack("default", "one", ids, round).unwrap();
        }
        table.commit();
        pages.push(table.pages.live_pages());
    }
    assert_eq!(table.read().stat().unwrap().messages, 0);
    assert!(pages[299] <= pages[2], "{pages:?}");
    table.assert_whole();
}
