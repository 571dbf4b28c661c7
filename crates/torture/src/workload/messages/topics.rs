//! Random operations on topics.

use crate::model::Messages;
use crate::model::clock::UNIT;
use crate::model::messages::BROKER;
use crate::model::messages::topics::{FEED_CHANGES, Retained, matches};
use std::sync::Arc;
use tidalite::topics::{Filter, Message, TopicOptions, TopicsMut};
use tidalite::{Result, WriteTxn};
use tidalite_testkit::rng::Rng;

/// Filters by which messages are removed and counted.
const FILTERS: [&str; 8] = [
    "#", "a/#", "+/1/#", "b/+/x", "+/+/y", "$SYS/#", "a/2", "c/3/+/+",
];

fn topic(rng: &mut Rng) -> String {
    let first = *rng.pick(&["a", "b", "c", "$SYS"]);
    let mut topic = format!("{first}/{}", rng.below(5));
    if rng.one_in(2) {
        topic += *rng.pick(&["/x", "/y", "/x/1", "/"]);
    }
    if rng.one_in(40) {
        topic += &"/long".repeat(20);
    }
    topic
}

fn retained(rng: &mut Rng, now: i64) -> Retained {
    let len = match rng.below(20) {
        0 => 1_500,
        1 | 2 => 0,
        _ => 1 + rng.index(30),
    };
    let mut payload = vec![0; len];
    rng.fill(&mut payload);
    Retained {
        payload,
        qos: rng.below(3) as u8,
        publisher: match rng.one_in(3) {
            true => format!("client {}", rng.below(4)),
            false => String::new(),
        },
        content_type: rng.one_in(6).then(|| "text/plain".to_owned()),
        expires: rng.one_in(3).then(|| now + rng.between(-1, 30) * UNIT),
        sequence: 0,
        time: 0,
    }
}

/// Performs a random operation on the topics.
pub(super) fn work(tx: &mut WriteTxn, messages: &mut Messages, rng: &mut Rng) -> Result<()> {
    let now = messages.now;
    let options = TopicOptions {
        feed_changes: FEED_CHANGES,
        ..TopicOptions::default()
    };
    let mut table = tx.topics_with(BROKER, &options)?;
    let topics = Arc::make_mut(messages.topics.get_or_insert_default());
    match rng.below(10) {
        0 => {
            let topic = topic(rng);
            let there = topics.messages.contains_key(&topic);
            assert_eq!(table.remove(&topic)?, there, "remove tells what was there");
            topics.remove_if(|other, _| other == topic);
        }
        1 => {
            let filter = *rng.pick(&FILTERS);
            let parsed = Filter::parse(filter)?;
            let dry = rng.one_in(3);
            let removed = table.remove_matches(&parsed, None, u64::MAX, dry)?;
            let known = topics
                .messages
                .keys()
                .filter(|topic| matches(filter, topic));
            assert_eq!(
                removed.messages,
                known.count() as u64,
                "matches of {filter}"
            );
            if !dry {
                topics.remove_if(|topic, _| matches(filter, topic));
            }
        }
        2 => {
            let purged = table.maintain(1_000)?;
            let is_over = |_: &str, one: &Retained| one.expires.is_some_and(|time| time <= now);
            let known = topics.remove_if(is_over);
            assert_eq!((purged.expired, purged.more), (known, false));
        }
        3 => {
            // Nothing is retained without the flag.
            let (topic, one) = (topic(rng), retained(rng, now));
            table.publish(&one.message(&topic), false)?;
        }
        4..=5 => {
            let (topic, one) = (topic(rng), retained(rng, now));
            let published = table.publish(&one.message(&topic), true)?;
            assert_eq!(published, topics.publish(&[(topic, one)], now));
        }
        _ => {
            let count = 1 + rng.index(20);
            let batch: Vec<(String, Retained)> = (0..count)
                .map(|_| (topic(rng), retained(rng, now)))
                .collect();
            let list: Vec<Message<'_>> = batch.iter().map(|(to, one)| one.message(to)).collect();
            let published = table.publish_batch(list.iter().map(|message| (message, true)))?;
            assert_eq!(published, topics.publish(&batch, now), "one batch");
        }
    }
    let filter = *rng.pick(&FILTERS);
    let is_live = |one: &Retained| one.expires.is_none_or(|time| time > now);
    let known = topics.messages.iter();
    let known = known.filter(|(topic, one)| is_live(one) && matches(filter, topic));
    count(&table, filter, known.count() as u64)
}

/// Checks that a transaction sees its own messages.
fn count(table: &TopicsMut<'_>, filter: &str, known: u64) -> Result<()> {
    let found = table.view()?.count(&Filter::parse(filter)?)?;
    assert_eq!(found, known, "count of {filter}");
    Ok(())
}
