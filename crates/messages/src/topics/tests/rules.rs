//! The rules of MQTT for retained messages, limits, expiry, the feed, and sizes.

use super::{Table, found};
use crate::topics::parts::{Part, part};
use crate::topics::state::State;
use crate::topics::{
    Filter, Message, Properties, Published, Qos, SearchOptions, TOPIC_BYTES_MAX, TopicChanges,
    TopicOptions, TopicSearch, TopicsWriter,
};
use std::sync::atomic::Ordering;
use tidalite_index::NUMBERS_MAX;
use tidalite_kv::Tree;
use tidalite_pager::{Error, PageRead};
use tidalite_testkit::ScratchPages;
use tidalite_time::Timestamp;

fn published(created: u64, replaced: u64, removed: u64) -> Published {
    Published {
        created,
        replaced,
        removed,
    }
}

#[test]
fn the_retain_flag_and_empty_payloads_do_what_the_standard_says() {
    let mut table = Table::new(4096, TopicOptions::default());
    // Columns: earlier message, RETAIN flag, payload, changes, later message.
    for (before, retain, payload, expected, after) in [
        (None, false, "new", published(0, 0, 0), None),
        (None, false, "", published(0, 0, 0), None),
        (None, true, "new", published(1, 0, 0), Some("new")),
        (None, true, "", published(0, 0, 0), None),
        (Some("old"), false, "new", published(0, 0, 0), Some("old")),
        (Some("old"), false, "", published(0, 0, 0), Some("old")),
        (Some("old"), true, "new", published(0, 1, 0), Some("new")),
        (Some("old"), true, "", published(0, 0, 1), None),
    ] {
        table.writer().remove("a").unwrap();
        if let Some(before) = before {
            table.publish(&[("a", before)]);
        }
        let message = Message::new("a", payload.as_bytes());
        let done = table.writer().publish(2, &message, retain).unwrap();
        assert_eq!(done, expected);
        let reader = table.reader();
        let found = reader.get("a", 3).unwrap();
        let found = found
            .as_ref()
            .map(|found| found.retained().unwrap().message.payload);
        assert_eq!(found, after.map(str::as_bytes));
    }
    let empty = table.writer().set(1, &Message::new("a", b""));
    assert!(matches!(empty, Err(Error::Refused { .. })));
    table.assert_whole();
}

#[test]
fn all_properties_come_back_in_order() {
    let mut table = Table::new(1024, TopicOptions::default());
    let message = Message {
        topic: "a/b",
        payload: &[0, 255, 7],
        qos: Qos::ExactlyOnce,
        publisher: "client 7",
        expires: Some(Timestamp(1_000_000_000_000)),
        is_text: true,
        properties: Properties {
            content_type: Some("text/plain"),
            response_topic: Some("answer/b"),
            correlation_data: Some(&[]),
            user: vec![("z", "1"), ("a", ""), ("", "3"), ("z", "2")],
        },
    };
    table.writer().publish(77, &message, true).unwrap();
    let reader = table.reader();
    let found = reader.get("a/b", 78).unwrap().unwrap();
    let retained = found.retained().unwrap();
    assert_eq!(
        (retained.time.0, retained.id, retained.sequence),
        (77, 0, 1)
    );
    assert_eq!(retained.message, message);
    for (now, left) in [
        (0, 1000),
        (1, 1000),
        (999_000_000_001, 1),
        (1_000_000_000_000, 0),
    ] {
        assert_eq!(retained.expiry_seconds(Timestamp(now)), Some(left));
    }
    assert!(
        retained.expiry_seconds(Timestamp::MIN) > Some(1)
            && retained.expiry_seconds(Timestamp::MAX) == Some(0)
    );
}

#[test]
fn a_limit_refuses_a_whole_batch_and_changes_nothing() {
    let options = TopicOptions {
        levels_max: 3,
        topic_bytes_max: 9,
        payload_bytes_max: 5,
        messages_max: Some(3),
        bytes_max: Some(20),
        feed_changes: 10,
    };
    let mut table = Table::new(512, options);
    table.publish(&[("a", "1"), ("b", "2")]);
    let before = table.reader().stat().unwrap();
    assert_eq!((before.messages, before.bytes), (2, 4));
    for batch in [
        &[("c", "3"), ("a/b/c/d", "4")][..],
        &[("c", "3"), ("0123456789", "4")],
        &[("c", "3"), ("d", "123456")],
        &[("c", "3"), ("d", "4")],
        &[("a", "12345"), ("b", "12345"), ("c/d/e/", "1")],
        &[("a", "12345"), ("b", "12345"), ("c/d/e", "1234")],
    ] {
        let messages: Vec<Message<'_>> = batch
            .iter()
            .map(|(topic, payload)| Message::new(topic, payload.as_bytes()))
            .collect();
        let done = table
            .writer()
            .publish_batch(2, messages.iter().map(|message| (message, true)));
        assert!(
            matches!(done, Err(Error::Limit { .. })),
            "{batch:?}: {done:?}"
        );
        assert_eq!(table.reader().stat().unwrap(), before);
        assert_eq!(found(&table.reader(), &["#"], 3).len(), 2);
    }
    // Exactly at the limits: three messages, 20 bytes.
    table.publish(&[("a", "12345"), ("b", "12345"), ("c/d/e", "123")]);
    let stat = table.reader().stat().unwrap();
    assert_eq!((stat.messages, stat.bytes), (3, 20));
    // Lower limits refuse only changes that make the table larger.
    let lower = TopicOptions {
        messages_max: Some(1),
        bytes_max: Some(5),
        ..options
    };
    table.writer().set_options(lower).unwrap();
    table.publish(&[("a", "1234")]);
    let larger = Message::new("b", b"12345");
    table.writer().publish(1, &larger, true).unwrap();
    let more = Message::new("d", b"1");
    assert!(matches!(
        table.writer().publish(1, &more, true),
        Err(Error::Limit { .. })
    ));
    table.assert_whole();
}

#[test]
fn topics_of_the_greatest_length_and_depth_are_stored_and_found() {
    let options = TopicOptions {
        levels_max: u8::MAX,
        ..TopicOptions::default()
    };
    let mut table = Table::new(512, options);
    let long = "x".repeat(65_535);
    let deep = vec!["d"; 255].join("/");
    table.publish(&[(&long, "1"), (&deep, "2"), ("short", "3")]);
    assert_eq!(found(&table.reader(), &[&long], 2).len(), 1);
    assert_eq!(found(&table.reader(), &["+"], 2).len(), 2);
    let filter = [&deep[..deep.len() - 3], "+/d"].concat();
    assert_eq!(
        found(&table.reader(), &[&filter], 2),
        [(deep.clone(), vec![0])]
    );
    let deeper = [&deep[..], "/d"].concat();
    let refused = table
        .writer()
        .publish(1, &Message::new(&deeper, b"1"), true);
    assert!(matches!(refused, Err(Error::Limit { .. })));
    table.assert_whole();
    for topic in [&long, &deep] {
        assert!(table.writer().remove(topic).unwrap());
    }
    table.assert_whole();
}

#[test]
fn expired_messages_are_hidden_at_once_and_purged_in_steps() {
    let mut table = Table::new(512, TopicOptions::default());
    for number in 0..40 {
        let topic = format!("a/{number}");
        let message = Message {
            expires: Some(Timestamp(100 + number)),
            ..Message::new(&topic, b"x")
        };
        table.writer().publish(1, &message, true).unwrap();
    }
    assert_eq!(found(&table.reader(), &["a/+"], 99).len(), 40);
    assert_eq!(found(&table.reader(), &["a/+"], 100).len(), 39);
    assert!(table.reader().get("a/0", 100).unwrap().is_none());
    let done = table.writer().maintain(109, 4).unwrap();
    assert_eq!((done.expired, done.more), (4, true));
    let done = table.writer().maintain(109, 100).unwrap();
    assert_eq!((done.expired, done.more), (6, false));
    table.assert_whole();
    // A message that has already expired on arrival removes the previous message.
    let dead = Message {
        expires: Some(Timestamp(200)),
        ..Message::new("a/39", b"x")
    };
    assert_eq!(
        table.writer().publish(200, &dead, true).unwrap(),
        published(0, 0, 1)
    );
    table.assert_whole();
}

#[test]
fn the_expiry_index_stays_untouched_while_a_topic_is_published_again() {
    let mut table = Table::new(512, TopicOptions::default());
    let publish = |table: &mut Table, now: i64, expires: Option<i64>| {
        let message = Message {
            expires: expires.map(Timestamp),
            ..Message::new("a", b"x")
        };
        table.writer().publish(now, &message, true).unwrap();
        table.assert_whole();
        let rows = part(&table.root, &table.pages, Part::Expiry).unwrap();
        let mut cursor = rows.cursor(&table.pages).unwrap();
        let is_there = cursor.first().unwrap();
        is_there.then(|| crate::topics::expiry::parse(cursor.key()).unwrap().0)
    };
    assert_eq!(publish(&mut table, 1, Some(100)), Some(100));
    assert_eq!(publish(&mut table, 2, Some(150)), Some(100));
    assert_eq!(publish(&mut table, 3, Some(180)), Some(100));
    // The time of the row has passed, but the message has not expired.
    let done = table.writer().maintain(120, 10).unwrap();
    assert_eq!((done.expired, done.more), (0, false));
    table.assert_whole();
    assert_eq!(table.writer().maintain(179, 10).unwrap().expired, 0);
    assert_eq!(publish(&mut table, 4, Some(90)), Some(90));
    assert_eq!(publish(&mut table, 5, None), None);
    assert_eq!(publish(&mut table, 6, Some(50)), Some(50));
    assert_eq!(table.writer().maintain(50, 10).unwrap().expired, 1);
    table.assert_whole();
}

#[test]
fn an_overwrite_changes_neither_ids_nor_sets() {
    let mut table = Table::new(512, TopicOptions::default());
    let topics: Vec<String> = (0..300).map(|i| format!("device/{i:03}/value")).collect();
    let rows: Vec<(&str, &str)> = topics.iter().map(|topic| (topic.as_str(), "old")).collect();
    table.publish(&rows);
    table.root.seal(&mut table.pages).unwrap();
    table.pages.commit();
    let roots = |table: &Table| {
        [Part::Ids, Part::Terms].map(|which| {
            *part(&table.root, &table.pages, which)
                .unwrap()
                .tree()
                .unwrap()
        })
    };
    let before = roots(&table);
    let rows: Vec<(&str, &str)> = topics.iter().map(|topic| (topic.as_str(), "new")).collect();
    table.publish(&rows);
    table.root.seal(&mut table.pages).unwrap();
    assert_eq!(roots(&table), before);
    table.assert_whole();
}

#[test]
fn a_snapshot_and_the_feed_together_miss_nothing_and_repeat_nothing() {
    let options = TopicOptions {
        feed_changes: 3,
        ..TopicOptions::default()
    };
    let mut table = Table::new(512, options);
    table.publish(&[("a", "1"), ("b", "1"), ("c", "1")]);
    let sequence = table.reader().sequence();
    let mut search = TopicSearch::new(
        vec![Filter::parse("#").unwrap()],
        SearchOptions {
            until: sequence,
            ..SearchOptions::default()
        },
    );
    let mut topics = Vec::new();
    let mut page = |table: &Table, credit| {
        let mut each = |m: crate::topics::Match<'_>| {
            topics.push(m.retained.message.topic.to_owned());
            Ok(())
        };
        search
            .page(&table.reader(), 2, credit, &mut each)
            .unwrap()
            .is_done
    };
    assert!(!page(&table, 1));
    // During the search, a message that was not returned yet changes, and a new one arrives.
    table.publish(&[("b", "2"), ("d", "1")]);
    assert!(page(&table, 10));
    assert_eq!(topics, ["a", "c"]);
    let TopicChanges::Some { changes, next, .. } = table.reader().changes(sequence, 10).unwrap()
    else {
        panic!("the feed has both changes");
    };
    let changed: Vec<&str> = changes.iter().map(|change| change.topic.as_str()).collect();
    assert_eq!((changed, next), (vec!["b", "d"], 5));
    table.writer().remove("a").unwrap();
    table.publish(&[("e", "1")]);
    assert_eq!(
        table.reader().changes(3, 10).unwrap(),
        TopicChanges::Truncated { from: 5 }
    );
    // A feed that is turned off and on again starts over.
    for feed_changes in [0, 3] {
        let options = TopicOptions {
            feed_changes,
            ..options
        };
        table.writer().set_options(options).unwrap();
        assert_eq!(
            table.reader().changes(6, 10).unwrap(),
            TopicChanges::Truncated { from: 8 }
        );
    }
    table.assert_whole();
}

#[test]
fn a_small_message_takes_few_bytes_besides_topic_and_payload() {
    let mut table = Table::new(4096, TopicOptions::default());
    table.publish(&[("a/b", "value")]);
    let messages = part(&table.root, &table.pages, Part::Messages).unwrap();
    let record = messages.get(&table.pages, b"a\0b").unwrap().unwrap();
    // Flags and sequence number, time, id, payload.
    assert_eq!(record.len(), 8 + 8 + 1 + 5);
}

#[test]
fn a_full_disk_is_an_error_and_the_transaction_can_be_rolled_back() {
    let mut table = Table::new(512, TopicOptions::default());
    table.publish(&[("a/b", "1")]);
    table.assert_whole();
    table.pages.commit();
    let before = table.root;
    let topics: Vec<String> = (0..100).map(|i| format!("a/{i}/b")).collect();
    let messages: Vec<Message<'_>> = topics
        .iter()
        .map(|topic| Message::new(topic, b"payload"))
        .collect();
    for calls in 0..20 {
        table.pages.fail_after(Some(calls));
        let retained = messages.iter().map(|message| (message, true));
        let done = table.writer().publish_batch(1, retained);
        assert!(
            matches!(done, Err(Error::Disk(_))),
            "after {calls} calls: {done:?}"
        );
        table.pages.fail_after(None);
        table.pages.rollback();
        table.root = before;
        table.assert_whole();
    }
}

#[test]
fn one_publish_reads_few_pages_of_a_large_table() {
    let mut table = Table::new(4096, TopicOptions::default());
    let topics: Vec<String> = (0..20_000).map(|i| format!("device/{i}/value")).collect();
    let rows: Vec<(&str, &str)> = topics.iter().map(|topic| (topic.as_str(), "old")).collect();
    table.publish(&rows);
    table.root.seal(&mut table.pages).unwrap();
    table.pages.commit();
    let pages = |table: &Table| table.pages.counters().pages_read.load(Ordering::Relaxed);
    let before = pages(&table);
    table.publish(&[("device/77/value", "new")]);
    assert!(pages(&table) - before < 40, "{}", pages(&table) - before);
    let before = pages(&table);
    assert!(table.writer().maintain(i64::MAX, 100).unwrap().expired == 0);
    assert!(pages(&table) - before < 20);
}

#[test]
fn options_beyond_the_limits_are_refused() {
    let (mut root, mut pages) = (Tree::new(1), ScratchPages::new(512));
    for options in [
        TopicOptions {
            levels_max: 0,
            ..TopicOptions::default()
        },
        TopicOptions {
            payload_bytes_max: 1 << 28,
            ..TopicOptions::default()
        },
    ] {
        assert!(options.problem().is_some());
        let created = TopicsWriter::create(&mut root, &mut pages, options);
        assert!(matches!(created, Err(Error::Refused { .. })));
    }
}

#[test]
fn lowered_limits_do_not_refuse_removals() {
    let mut table = Table::new(512, TopicOptions::default());
    table.publish(&[("a/b/c/d", "1"), ("a_long_topic", "1"), ("a", "123")]);
    let lower = TopicOptions {
        levels_max: 2,
        topic_bytes_max: 6,
        payload_bytes_max: 1,
        ..TopicOptions::default()
    };
    table.writer().set_options(lower).unwrap();
    for topic in ["a/b/c/d", "a_long_topic", "a"] {
        let removal = Message::new(topic, b"");
        table.writer().publish(2, &removal, false).unwrap();
        let done = table.writer().publish(2, &removal, true).unwrap();
        assert_eq!(done, published(0, 0, 1), "{topic}");
        let none = table.writer().set(2, &removal);
        assert!(
            none.is_err(),
            "no message without a payload can be set: {none:?}"
        );
    }
    for topic in ["", "a/#", &"a".repeat(TOPIC_BYTES_MAX + 1)] {
        let removal = Message::new(topic, b"");
        assert!(table.writer().publish(2, &removal, true).is_err());
    }
    table.assert_whole();
}

#[test]
fn removals_need_no_ids() {
    let mut table = Table::new(512, TopicOptions::default());
    table.publish(&[("a", "1"), ("b", "1"), ("c", "1")]);
    let state = State {
        next_id: NUMBERS_MAX - 1,
        ..table.reader().state
    };
    let row = state.encode();
    table
        .root
        .insert(&mut table.pages, &Part::State.key(), &row)
        .unwrap();
    table.publish(&[("a", ""), ("b", ""), ("d", "1")]);
    let more = Message::new("e", b"1");
    let refused = table.writer().publish(1, &more, true);
    assert!(matches!(refused, Err(Error::Limit { .. })), "{refused:?}");
    assert!(table.writer().remove("c").unwrap());
    table.assert_whole();
}

#[test]
fn a_purge_keeps_messages_with_a_later_expiry_whole() {
    let mut table = Table::new(512, TopicOptions::default());
    let payloads: Vec<Vec<u8>> = (0..9u8).map(|i| vec![i; 1 + 900 * i as usize]).collect();
    let topics: Vec<String> = (0..9).map(|i| format!("a/{i}")).collect();
    for (now, expires) in [(1, 100), (2, 150)] {
        for (topic, payload) in topics.iter().zip(&payloads) {
            let message = Message {
                expires: Some(Timestamp(expires)),
                publisher: "client",
                ..Message::new(topic, payload)
            };
            table.writer().publish(now, &message, true).unwrap();
        }
    }
    for has_more in [true, true, false] {
        let done = table.writer().maintain(120, 3).unwrap();
        assert_eq!((done.expired, done.more), (0, has_more));
        table.assert_whole();
    }
    let reader = table.reader();
    for (topic, payload) in topics.iter().zip(&payloads) {
        let found = reader.get(topic, 149).unwrap().unwrap();
        let message = found.retained().unwrap().message;
        assert_eq!(
            (message.payload, message.publisher),
            (&payload[..], "client")
        );
    }
    assert_eq!(table.writer().maintain(150, 100).unwrap().expired, 9);
    table.assert_whole();
}
