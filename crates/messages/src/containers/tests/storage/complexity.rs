//! Complexity, measured with counters.

use super::{Table, doc};
use crate::containers::append::{Append, AppendOutcome};
use crate::containers::cursor::MessageQuery;
use crate::containers::options::ContainerOptions;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tidalite_pager::PageRead;
use tidalite_time::Timestamp;

/// A call opens each part once, however many messages and containers it has. Messages in the order of their times need
/// no lookup.
#[test]
fn a_batch_opens_parts_once() {
    let mut table = Table::with(ContainerOptions::default());
    let names: Vec<String> = (0..200).map(|n| format!("device {n}")).collect();
    let document = doc(&[("a", 1), ("b", 2), ("c", 3)]);
    for round in 0..5 {
        let mut items = Vec::new();
        for name in &names {
            for step in 0..3 {
                items.push(Append::new(name, Timestamp(10 * round + step), &document));
            }
        }
        let mut writer = table.writer();
        let appended = writer.append_batch(0, &items).unwrap();
        let mut outcomes = appended.outcomes.iter();
        assert!(outcomes.all(|outcome| matches!(outcome, AppendOutcome::Stored { .. })));
        let (work, lookups) = (writer.work, writer.fields.lookups);
        assert_eq!((work.lookups, lookups), (0, 3));
        // Messages, latest values and records; the first call also changes names, numbers and fields.
        assert_eq!(work.parts, if round == 0 { 4 } else { 3 });
    }
    table.assert_whole();
    let late = doc(&[("a", 1)]);
    let mut writer = table.writer();
    let items: Vec<_> = names
        .iter()
        .map(|name| Append::new(name, Timestamp(5), &late))
        .collect();
    writer.append_batch(0, &items).unwrap();
    assert_eq!(writer.work.lookups, 200);
}

/// Number of pages that a call reads.
fn pages_read(table: &mut Table, call: impl FnOnce(&mut Table)) -> u64 {
    let before = table.pages.counters().pages_read.load(Relaxed);
    call(table);
    table.pages.counters().pages_read.load(Relaxed) - before
}

/// Appends, reads of a few messages and maintenance do not depend on the number of stored messages.
#[test]
fn calls_do_not_visit_other_messages() {
    tidalite_testkit::watch();
    let mut counts = Vec::new();
    for messages in [2_000, 40_000] {
        let mut table = Table::with(ContainerOptions {
            ttl: Some(Duration::from_nanos(1_000_000)),
            messages_max: Some(messages),
            ..ContainerOptions::default()
        });
        let items: Vec<_> = (0..messages as i64)
            .map(|time| ("x", time, doc(&[("a", time)])))
            .collect();
        table.append_all(0, &items);
        table.append(0, "y", 0, &[]);
        table.commit();
        // A full container, which rotates.
        let append = pages_read(&mut table, |table| {
            let appended = table.append_all(0, &[("x", 1_000_000, doc(&[("a", 1)]))]);
            assert_eq!(appended.rotated.len(), 1);
        });
        let read = pages_read(&mut table, |table| {
            let reader = table.reader();
            let query = MessageQuery {
                from: Timestamp(1000),
                limit: 10,
                ..MessageQuery::default()
            };
            let mut cursor = reader.messages("x", &query, 0).unwrap();
            while cursor.next().unwrap().is_some() {}
            assert_eq!(cursor.examined(), 10);
            reader.stat().unwrap();
            reader.latest("x").unwrap();
        });
        let maintain = pages_read(&mut table, |table| {
            let done = table.writer().maintain(1000, 10, &mut |_| Ok(())).unwrap();
            assert!(!done.more);
        });
        counts.push([append, read, maintain]);
    }
    println!("{counts:?}");
    for (few, many) in counts[0].iter().zip(counts[1]) {
        // The tables are one or two levels higher.
        assert!(many <= few * 2, "{counts:?}");
    }
}

/// Expired messages that are not removed yet are not read if no message is protected.
#[test]
fn expired_messages_are_not_stepped_over() {
    let mut table = Table::with(ContainerOptions {
        ttl: Some(Duration::from_nanos(100)),
        ..ContainerOptions::default()
    });
    let items: Vec<_> = (0..1000).map(|time| ("x", time, doc(&[]))).collect();
    table.append_all(0, &items);
    let reader = table.reader();
    let mut cursor = reader
        .messages("x", &MessageQuery::default(), 1090)
        .unwrap();
    let mut count = 0;
    while cursor.next().unwrap().is_some() {
        count += 1;
    }
    assert_eq!((count, cursor.examined()), (9, 9));
}

/// Dropping a container that cannot be restored frees its pages without reading them.
#[test]
fn a_container_is_dropped_as_a_range() {
    let mut table = Table::with(ContainerOptions::default());
    let items: Vec<_> = (0..20_000).map(|time| ("x", time, doc(&[]))).collect();
    table.append(0, "w", 0, &[]);
    table.append_all(0, &items);
    table.append(0, "y", 0, &[]);
    table.commit();
    let read = pages_read(&mut table, |table| {
        table.writer().drop_container(0, "x").unwrap();
    });
    assert!(read < 100, "{read}");
    assert!(table.pages.live_pages() < 30);
    table.assert_whole();
}
