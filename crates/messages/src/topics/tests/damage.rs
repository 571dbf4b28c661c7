//! Damage is reported and never causes a panic: changed rows of each part, random bytes in rows, and recovery
//! afterwards.

use super::{Table, found};
use crate::topics::expiry::row_of;
use crate::topics::parts::{Part, change, part};
use crate::topics::record;
use crate::topics::state::State;
use crate::topics::{
    Message, PROPERTIES_BYTES_MAX, Properties, TopicChanges, TopicOptions, TopicsReader,
    TopicsWriter,
};
use tidalite_testkit::rng::Rng;
use tidalite_time::Timestamp;

fn table() -> Table {
    let options = TopicOptions {
        feed_changes: 100,
        ..TopicOptions::default()
    };
    let mut table = Table::new(512, options);
    let topics: Vec<String> = (0..60).map(|i| format!("a/{}/{}", i % 7, i)).collect();
    let messages: Vec<Message<'_>> = topics
        .iter()
        .zip(0..)
        .map(|(topic, i)| Message {
            expires: (i % 3 == 0).then_some(Timestamp(100 + i)),
            properties: Properties {
                user: vec![("name", "value"); (i % 4 == 0) as usize],
                ..Properties::default()
            },
            ..Message::new(topic, b"payload")
        })
        .collect();
    table
        .writer()
        .publish_batch(1, messages.iter().map(|message| (message, true)))
        .unwrap();
    table.assert_whole();
    table
}

/// Changes rows of a part, and expects a check to find a problem that contains `text`.
#[track_caller]
fn finds(
    part: Part,
    text: &str,
    wrong: impl Fn(&mut tidalite_testkit::ScratchPages, &mut tidalite_kv::TableWriter),
) {
    let mut table = table();
    change(&mut table.root, &mut table.pages, part, &mut |w, table| {
        wrong(w, table);
        Ok(())
    })
    .unwrap();
    let problems = match table.problems() {
        Ok(problems) => problems.join("; "),
        Err(error) => error.to_string(),
    };
    assert!(problems.contains(text), "{text}: found {problems}");
    let before = table.reader().part(Part::Messages).unwrap().len();
    let (_, recovered) = TopicsWriter::recover(&mut table.root, &mut table.pages).unwrap();
    assert_eq!(recovered.messages + recovered.removed, before);
    table.assert_whole();
}

#[test]
fn a_check_finds_what_is_wrong_and_recovery_mends_it() {
    finds(Part::Messages, "60 are expected", |w, table| {
        assert!(table.remove(w, b"a\x001\x001").unwrap());
    });
    finds(Part::Messages, "damaged message", |w, table| {
        table.insert(w, b"a\x001\x001", &[255; 30]).unwrap();
    });
    finds(Part::Messages, "key of a topic", |w, table| {
        let record = table.get(w, b"a\x001\x001").unwrap().unwrap();
        table.insert(w, b"a/1\x001+", &record).unwrap();
    });
    finds(Part::Messages, "is not its own", |w, table| {
        let record = table.get(w, b"a\x001\x001").unwrap().unwrap();
        let wrong = record::renumbered(&record, 5, None).unwrap();
        table.insert(w, b"a\x001\x001", &wrong).unwrap();
    });
    finds(Part::Messages, "is empty", |w, table| {
        let record = table.get(w, b"a\x001\x001").unwrap().unwrap();
        table
            .insert(w, b"a\x001\x001", &record[..record.len() - 7])
            .unwrap();
    });
    finds(Part::Ids, "stands for", |w, table| {
        table.insert(w, &7u64.to_be_bytes(), b"other").unwrap();
    });
    finds(Part::Ids, "ids", |w, table| {
        assert!(table.remove(w, &7u64.to_be_bytes()).unwrap());
    });
    finds(Part::Terms, "is in the set", |w, table| {
        let mut changes = tidalite_index::Changes::default();
        changes.add(b"\0\0other\0", 3);
        tidalite_index::apply(table, w, &mut changes).unwrap();
    });
    finds(Part::Terms, "members of sets", |w, table| {
        let mut changes = tidalite_index::Changes::default();
        changes.remove(b"\0\0a\0", 3);
        tidalite_index::apply(table, w, &mut changes).unwrap();
    });
    finds(Part::Expiry, "rows of the expiry index", |w, table| {
        table.insert(w, &row_of(3, 3), &[]).unwrap();
    });
    finds(Part::Expiry, "expiry index", |w, table| {
        table.insert(w, b"short", &[]).unwrap();
    });
    finds(Part::Feed, "changes in a feed", |w, table| {
        assert!(table.remove(w, &7u64.to_be_bytes()).unwrap());
    });
    finds(Part::Feed, "change of a topic", |w, table| {
        table.insert(w, &7u64.to_be_bytes(), &[9, b'a']).unwrap();
    });
}

#[test]
fn parts_that_are_lost_are_built_from_the_messages() {
    for lost in [
        Part::State,
        Part::Ids,
        Part::Terms,
        Part::Expiry,
        Part::Feed,
    ] {
        let mut table = table();
        let before = found(&table.reader(), &["a/+/#"], 2);
        if lost == Part::State {
            table.root.remove(&mut table.pages, &lost.key()).unwrap();
            assert!(TopicsReader::open(&table.root, &table.pages).is_err());
        } else {
            change(&mut table.root, &mut table.pages, lost, &mut |w, table| {
                table.clear(w)
            })
            .unwrap();
            assert_ne!(table.problems().unwrap(), Vec::<String>::new());
        }
        let (_, recovered) = TopicsWriter::recover(&mut table.root, &mut table.pages).unwrap();
        assert_eq!((recovered.messages, recovered.removed), (60, 0));
        assert_eq!(found(&table.reader(), &["a/+/#"], 2), before);
        let gap = match lost {
            Part::State => 1 << 32,
            _ => 1,
        };
        // A reader of the feed may have seen any number up to the last one, including numbers that were lost with the
        // state.
        assert_eq!(table.reader().sequence(), 60 + gap);
        for after in [0, 59, 60, 59 + gap, 61 + gap, u64::MAX] {
            assert_eq!(
                table.reader().changes(after, 10).unwrap(),
                TopicChanges::Truncated { from: 61 + gap },
                "after {after}"
            );
        }
        assert!(matches!(
            table.reader().changes(60 + gap, 10).unwrap(),
            TopicChanges::Some { changes, has_more: false, .. } if changes.is_empty()
        ));
        table.assert_whole();
        table.publish(&[("new", "1")]);
        table.assert_whole();
    }
    let mut table = table();
    table
        .root
        .remove(&mut table.pages, &Part::Options.key())
        .unwrap();
    let (topics, recovered) = TopicsWriter::recover(&mut table.root, &mut table.pages).unwrap();
    assert_eq!(*topics.options(), TopicOptions::default());
    assert!(recovered.has_lost_options);
    table.assert_whole();
}

/// With random bytes in the rows of every part, each call returns, with or without an error.
#[test]
fn random_bytes_in_rows_cause_no_panic() {
    for seed in 0..600 {
        println!("seed {seed}");
        let rng = &mut Rng::new(seed);
        let mut table = table();
        let parts = [
            Part::Messages,
            Part::Ids,
            Part::Terms,
            Part::Expiry,
            Part::Feed,
        ];
        for _ in 0..1 + rng.below(4) {
            let which = *rng.pick(&parts);
            let (key, value) = {
                let rows = part(&table.root, &table.pages, which).unwrap();
                let mut cursor = rows.cursor(&table.pages).unwrap();
                cursor.select(rng.below(rows.len())).unwrap();
                (
                    cursor.key().to_vec(),
                    cursor.value().unwrap().to_vec().unwrap(),
                )
            };
            let mut changed = (key.clone(), value);
            let bytes = match rng.one_in(3) || changed.1.is_empty() {
                true => &mut changed.0,
                false => &mut changed.1,
            };
            match rng.below(3) {
                0 => bytes.truncate(rng.index(bytes.len())),
                1 => {
                    let at = rng.index(bytes.len());
                    bytes[at] ^= 1 << rng.below(8);
                }
                _ => {
                    let at = rng.index(bytes.len());
                    bytes[at] = rng.below(256) as u8;
                }
            }
            change(&mut table.root, &mut table.pages, which, &mut |w, table| {
                table.remove(w, &key)?;
                table.insert(w, &changed.0, &changed.1)
            })
            .unwrap();
        }
        let _ = table.problems();
        {
            let reader = table.reader();
            for filter in ["#", "a/+/7", "+/3/#", "a/3/10"] {
                let filter = crate::topics::Filter::parse(filter).unwrap();
                let _ = reader.list(&filter, 2, None, 1000);
                let _ = reader.count(&filter, 2, None, 1000);
                let filters = vec![filter];
                let place = crate::topics::token::Place::Terms(0, Vec::new());
                let token = crate::topics::token::encode(&filters, 0, &place);
                let options = crate::topics::SearchOptions::default();
                let mut search =
                    crate::topics::TopicSearch::resume(filters, options, &token).unwrap();
                let _ = search.page(&reader, 2, 1000, &mut |_| Ok(()));
            }
            let _ = reader.changes(0, 1000);
        }
        let _ = table.writer().maintain(1000, 1000);
        let _ = table
            .writer()
            .publish(2, &Message::new("a/1/1", b"new"), true);
        let _ = table.writer().publish(2, &Message::new("a/1/1", b""), true);
        TopicsWriter::recover(&mut table.root, &mut table.pages).unwrap();
        table.assert_whole();
    }
}

#[test]
fn damaged_options_and_states_are_refused() {
    let table = table();
    for which in [Part::Options, Part::State] {
        let row = table
            .root
            .get(&table.pages, &which.key())
            .unwrap()
            .unwrap()
            .to_vec()
            .unwrap();
        for len in 0..row.len() {
            assert!(State::decode(&row[..len]).is_err());
            assert!(TopicOptions::decode(&row[..len]).is_err());
        }
    }
    let state = State {
        messages: 3,
        next_id: 2,
        ..State::default()
    };
    assert!(State::decode(&state.encode()).is_err());
}

#[test]
fn a_feed_without_one_of_its_changes_is_damaged() {
    // The first one, one in the middle, the last one, and the one after the last.
    for number in [1u64, 30, 60, 61] {
        let mut table = table();
        change(
            &mut table.root,
            &mut table.pages,
            Part::Feed,
            &mut |w, table| match table.remove(w, &number.to_be_bytes())? {
                true => Ok(()),
                false => table.insert(w, &number.to_be_bytes(), b"\0a").map(drop),
            },
        )
        .unwrap();
        for limit in [60, 100] {
            let found = table.reader().changes(0, limit);
            assert!(
                matches!(found, Err(tidalite_pager::Error::Corrupt(_))),
                "{number}: {found:?}"
            );
        }
        let found = table.reader().changes(number.min(59), 100);
        assert_eq!(found.is_err(), number >= 60, "{number}: {found:?}");
    }
}

#[test]
fn a_record_with_more_user_properties_than_a_message_can_have_is_damaged() {
    let numbers = record::Numbers {
        id: 1,
        sequence: 1,
        time: 1,
        filed: None,
    };
    let mut bytes = Vec::new();
    for (count, is_whole) in [
        (PROPERTIES_BYTES_MAX / 2, true),
        (PROPERTIES_BYTES_MAX / 2 + 1, false),
    ] {
        let message = Message {
            properties: Properties {
                user: vec![("", ""); count],
                ..Properties::default()
            },
            ..Message::new("a", b"x")
        };
        assert_eq!(message.check().is_ok(), is_whole);
        record::encode(&message, &numbers, &mut bytes);
        assert_eq!(record::decode("a", &bytes).is_ok(), is_whole);
    }
}
