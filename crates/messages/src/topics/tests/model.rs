//! Random operations on a table of topics, compared with a `BTreeMap`, with small pages.

use super::{Table, names, oracle, random_filter, random_topic};
use crate::topics::steps::first_target;
use crate::topics::token::{self, Place};
use crate::topics::{
    Filter, Message, Properties, Published, Qos, SearchOptions, TopicChanges, TopicOptions,
    TopicSearch, TopicsReader, TopicsWriter,
};
use std::collections::{BTreeMap, BTreeSet};
use tidalite_pager::PageRead;
use tidalite_testkit::rng::Rng;
use tidalite_time::Timestamp;

/// An owned copy of a message.
#[derive(Clone, Debug, Default, PartialEq)]
struct Kept {
    payload: Vec<u8>,
    qos: u8,
    publisher: String,
    expires: Option<i64>,
    is_text: bool,
    content_type: Option<String>,
    response_topic: Option<String>,
    correlation_data: Option<Vec<u8>>,
    user: Vec<(String, String)>,
    id: u64,
    sequence: u64,
    time: i64,
}

impl Kept {
    fn random(rng: &mut Rng, now: i64) -> Self {
        let mut kept = Self {
            payload: vec![rng.below(256) as u8; if rng.one_in(20) { 3000 } else { rng.index(30) }],
            qos: rng.below(3) as u8,
            is_text: rng.one_in(2),
            ..Self::default()
        };
        if rng.one_in(3) {
            kept.expires = Some(now + rng.between(-3, 40));
        }
        if rng.one_in(3) {
            kept.publisher = format!("client {}", rng.below(10));
        }
        if rng.one_in(6) {
            kept.content_type = rng.one_in(2).then(|| "text/plain".to_owned());
            kept.response_topic = rng.one_in(2).then(|| "answers/a".to_owned());
            kept.correlation_data = rng.one_in(2).then(|| vec![0, 1, 255]);
            kept.user = (0..rng.index(4))
                .map(|i| ("name".to_owned(), i.to_string()))
                .collect();
        }
        kept
    }

    fn message<'m>(&'m self, topic: &'m str) -> Message<'m> {
        let user = self.user.iter();
        Message {
            topic,
            payload: &self.payload,
            qos: Qos::of_number(self.qos).unwrap(),
            publisher: &self.publisher,
            expires: self.expires.map(Timestamp),
            is_text: self.is_text,
            properties: Properties {
                content_type: self.content_type.as_deref(),
                response_topic: self.response_topic.as_deref(),
                correlation_data: self.correlation_data.as_deref(),
                user: user.map(|(name, value)| (&name[..], &value[..])).collect(),
            },
        }
    }
}

#[derive(Default)]
struct Model {
    messages: BTreeMap<String, Kept>,
    changes: Vec<(u64, String, bool)>,
    next_id: u64,
}

/// The order of keys: `/` sorts before all other characters.
fn order(topic: &str) -> Vec<u8> {
    topic
        .bytes()
        .map(|byte| if byte == b'/' { 0 } else { byte })
        .collect()
}

impl Model {
    fn change(&mut self, topic: &str, kept: Option<&Kept>, now: i64) -> Published {
        let mut published = Published::default();
        let sequence = self.changes.len() as u64 + 1;
        match (self.messages.get(topic).map(|old| old.id), kept) {
            (None, None) => return published,
            (Some(_), None) => {
                self.messages.remove(topic);
                published.removed = 1;
            }
            (old, Some(kept)) => {
                let id = old.unwrap_or(self.next_id);
                match old {
                    Some(_) => published.replaced = 1,
                    None => (published.created, self.next_id) = (1, self.next_id + 1),
                }
                let kept = Kept {
                    id,
                    sequence,
                    time: now,
                    ..kept.clone()
                };
                self.messages.insert(topic.to_owned(), kept);
            }
        }
        self.changes
            .push((sequence, topic.to_owned(), kept.is_none()));
        published
    }

    fn apply(&mut self, batch: &[(String, Kept, bool)], now: i64) -> Published {
        let mut last: BTreeMap<Vec<u8>, (&str, Option<&Kept>)> = BTreeMap::new();
        for (topic, kept, retain) in batch {
            if *retain {
                let dead = kept.payload.is_empty() || kept.expires.is_some_and(|at| at <= now);
                last.insert(order(topic), (topic, (!dead).then_some(kept)));
            }
        }
        let mut all = Published::default();
        for (topic, kept) in last.into_values() {
            let one = self.change(topic, kept, now);
            all.created += one.created;
            all.replaced += one.replaced;
            all.removed += one.removed;
        }
        all
    }

    fn live(&self, now: i64) -> impl Iterator<Item = (&String, &Kept)> {
        let live = move |kept: &Kept| kept.expires.is_none_or(|at| at > now);
        self.messages.iter().filter(move |(_, kept)| live(kept))
    }
}

fn compare<R: PageRead>(reader: &TopicsReader<R>, model: &Model, now: i64, rng: &mut Rng) {
    let names = names();
    for _ in 0..10 {
        let topic = random_topic(rng, &names);
        let expected = model.live(now).find(|(own, _)| **own == topic);
        let found = reader.get(&topic, now).unwrap();
        match (found, expected) {
            (None, None) => {}
            (Some(found), Some((_, kept))) => {
                let retained = found.retained().unwrap();
                assert_eq!(retained.message, kept.message(&topic));
                let numbers = (retained.id, retained.sequence, retained.time.0);
                assert_eq!(numbers, (kept.id, kept.sequence, kept.time));
            }
            other => panic!("{topic}: {other:?}"),
        }
    }
    for _ in 0..6 {
        search(reader, model, now, rng, &names);
    }
    let filter = random_filter(rng, &names);
    let parsed = Filter::parse(&filter).unwrap();
    let expected: BTreeSet<&String> = model
        .live(now)
        .map(|(topic, _)| topic)
        .filter(|topic| oracle(&filter, topic))
        .collect();
    let (mut token, mut count) = (None, 0);
    loop {
        let counted = reader
            .count(&parsed, now, token.as_deref(), 1 + rng.below(50))
            .unwrap();
        count += counted.messages;
        token = counted.next;
        if token.is_none() {
            break;
        }
    }
    assert_eq!(count, expected.len() as u64, "{filter}");
    let (mut token, mut listed) = (None, BTreeSet::new());
    loop {
        let list = reader.list(&parsed, now, token.as_deref(), 3).unwrap();
        assert!(list.messages.len() <= 3);
        for message in &list.messages {
            assert!(listed.insert(message.topic().to_owned()));
        }
        token = list.next;
        if token.is_none() {
            break;
        }
    }
    assert!(listed.iter().eq(expected), "{filter}");
    follow(reader, model, rng);
}

fn search<R: PageRead>(
    reader: &TopicsReader<R>,
    model: &Model,
    now: i64,
    rng: &mut Rng,
    names: &[String],
) {
    let texts: Vec<String> = (0..1 + rng.index(3))
        .map(|_| match rng.one_in(8) {
            true => format!("$share/g/{}", random_filter(rng, names)),
            false => random_filter(rng, names),
        })
        .collect();
    let filters: Vec<Filter> = texts
        .iter()
        .map(|text| Filter::parse(text).unwrap())
        .collect();
    let sequence = model.changes.len() as u64;
    let options = SearchOptions {
        since: if rng.one_in(3) {
            rng.below(sequence + 1)
        } else {
            0
        },
        until: if rng.one_in(3) {
            rng.below(sequence + 1)
        } else {
            u64::MAX
        },
        rows_max: if rng.one_in(2) {
            1 + rng.below(20)
        } else {
            1000
        },
    };
    let matching = |topic: &str| -> Vec<usize> {
        let all = texts.iter().enumerate();
        all.filter(|(_, text)| !text.starts_with("$share/") && oracle(text, topic))
            .map(|(index, _)| index)
            .collect()
    };
    let expected: BTreeMap<String, Vec<usize>> = model
        .live(now)
        .filter(|(_, kept)| kept.sequence > options.since && kept.sequence <= options.until)
        .map(|(topic, _)| (topic.clone(), matching(topic)))
        .filter(|(_, filters)| !filters.is_empty())
        .collect();
    let mut search = TopicSearch::new(filters.clone(), options);
    // In such a small table the estimate would rarely choose the sets.
    let has_name = texts[0].split('/').any(|level| !matches!(level, "+" | "#"));
    if has_name && !texts[0].starts_with("$share/") && rng.one_in(2) {
        let token = token::encode(&filters, 0, &Place::Terms(0, Vec::new()));
        search = TopicSearch::resume(filters.clone(), options, &token).unwrap();
    } else if rng.one_in(4) {
        let place = Place::Walk(first_target(&filters[0]));
        let token = token::encode(&filters, 0, &place);
        search = TopicSearch::resume(filters.clone(), options, &token).unwrap();
    }
    let mut found = BTreeMap::new();
    while !search.is_done() {
        let credit = 1 + rng.below(8);
        let page = search
            .page(reader, now, credit, &mut |found_match| {
                let topic = found_match.retained.message.topic;
                let kept = &model.messages[topic];
                assert_eq!(found_match.retained.message, kept.message(topic));
                let again = found.insert(topic.to_owned(), found_match.filters.to_vec());
                assert_eq!(again, None, "{topic} was delivered twice");
                Ok(())
            })
            .unwrap();
        assert!(page.delivered <= credit);
        if rng.one_in(2) {
            let token = search.token();
            search = TopicSearch::resume(filters.clone(), options, &token).unwrap();
        }
    }
    assert_eq!(found, expected, "{texts:?}");
}

/// The feed has the newest changes, and reports when older ones are missing.
fn follow<R: PageRead>(reader: &TopicsReader<R>, model: &Model, rng: &mut Rng) {
    let total = model.changes.len() as u64;
    assert_eq!(reader.sequence(), total);
    let after = rng.below(total + 2);
    let kept = reader.options().feed_changes;
    match reader.changes(after, 5).unwrap() {
        TopicChanges::Truncated { from } => {
            assert!(
                (after + 1 < from || after > total)
                    && (kept == 0 || from == (total + 1).saturating_sub(kept).max(1)),
                "{after} {from}"
            );
        }
        TopicChanges::Some {
            changes,
            next,
            has_more,
        } => {
            assert!(after <= total && kept >= total - after);
            let expected = model.changes.iter().skip(after as usize).take(5);
            let found = changes
                .iter()
                .map(|c| (c.sequence, c.topic.clone(), c.is_removed));
            assert!(found.eq(expected.cloned()));
            assert_eq!(has_more, after + 5 < total);
            assert_eq!(
                next,
                if has_more {
                    after + 5
                } else {
                    total.max(after)
                }
            );
        }
    }
}

fn random_operations(seed: u64) {
    let rng = &mut Rng::new(seed);
    let names = names();
    let feed_changes = *rng.pick(&[0, 0, 4, 50, 10_000]);
    let options = TopicOptions {
        feed_changes,
        ..TopicOptions::default()
    };
    let mut table = Table::new(*rng.pick(&[512, 1024, 4096]), options);
    let (mut model, mut now) = (Model::default(), 1000);
    let most = *rng.pick(&[3, 30, 100]);
    for _ in 0..30 {
        now += rng.between(0, 5);
        match rng.below(12) {
            0 => {
                let filter = random_filter(rng, &names);
                let parsed = Filter::parse(&filter).unwrap();
                let expected: Vec<String> = model
                    .messages
                    .keys()
                    .filter(|topic| oracle(&filter, topic))
                    .cloned()
                    .collect();
                let limit = 1 + rng.below(20);
                let mut token = None;
                let mut counted = 0;
                loop {
                    let dry = table
                        .writer()
                        .remove_matches(&parsed, token.as_deref(), limit, true);
                    let dry = dry.unwrap();
                    counted += dry.messages;
                    token = dry.next;
                    if token.is_none() {
                        break;
                    }
                }
                assert_eq!(counted, expected.len() as u64);
                let limit = *rng.pick(&[5, u64::MAX]);
                let removed = table
                    .writer()
                    .remove_matches(&parsed, None, limit, false)
                    .unwrap();
                assert_eq!(removed.messages, counted.min(limit), "{filter}");
                let gone: Vec<String> = {
                    let reader = table.reader();
                    let gone = |topic: &&String| reader.get(topic, i64::MIN).unwrap().is_none();
                    expected.iter().filter(gone).cloned().collect()
                };
                assert_eq!(gone.len() as u64, removed.messages);
                let mut gone = gone;
                gone.sort_by_key(|topic| order(topic));
                for topic in gone {
                    model.change(&topic, None, now);
                }
            }
            1 => {
                // A short feed does not show the order of all changes, which depends on the steps of the purge.
                let is_short = (1..10_000).contains(&feed_changes);
                let limit = if is_short {
                    u64::MAX
                } else {
                    1 + rng.below(20)
                };
                let mut has_more = true;
                let is_due = |table: &Table| table.reader().is_maintenance_due(now).unwrap();
                let was_due = is_due(&table);
                let before = table.reader().stat().unwrap().messages;
                while has_more {
                    has_more = table.writer().maintain(now, limit).unwrap().more;
                }
                let dead: Vec<String> = {
                    let is_dead = |kept: &Kept| kept.expires.is_some_and(|at| at <= now);
                    let all = model.messages.iter().filter(|(_, kept)| is_dead(kept));
                    all.map(|(topic, _)| topic.clone()).collect()
                };
                assert_eq!(
                    before - table.reader().stat().unwrap().messages,
                    dead.len() as u64
                );
                assert!((was_due || dead.is_empty()) && !is_due(&table));
                let total = model.changes.len() as u64;
                let mut order_of = dead;
                order_of.sort_by_key(|topic| order(topic));
                if let TopicChanges::Some { changes, .. } =
                    table.reader().changes(total, usize::MAX).unwrap()
                {
                    let told: Vec<String> =
                        changes.into_iter().map(|change| change.topic).collect();
                    order_of.retain(|topic| !told.contains(topic));
                    order_of.extend(told);
                }
                for topic in order_of {
                    model.change(&topic, None, now);
                }
            }
            2 => {
                let topic = random_topic(rng, &names);
                let removed = table.writer().remove(&topic).unwrap();
                assert_eq!(removed, model.change(&topic, None, now).removed > 0);
            }
            3 => {
                let topic = random_topic(rng, &names);
                let kept = Kept {
                    payload: b"set".to_vec(),
                    ..Kept::random(rng, now)
                };
                let done = table.writer().set(now, &kept.message(&topic)).unwrap();
                assert_eq!(done, model.change(&topic, Some(&kept), now));
            }
            4 => {
                let (topic, kept) = (random_topic(rng, &names), Kept::random(rng, now));
                let retain = rng.one_in(2);
                let done = table
                    .writer()
                    .publish(now, &kept.message(&topic), retain)
                    .unwrap();
                assert_eq!(done, model.apply(&[(topic, kept, retain)], now));
            }
            _ => {
                let batch: Vec<(String, Kept, bool)> = (0..1 + rng.below(most))
                    .map(|_| {
                        (
                            random_topic(rng, &names),
                            Kept::random(rng, now),
                            !rng.one_in(5),
                        )
                    })
                    .collect();
                let messages: Vec<(Message<'_>, bool)> = batch
                    .iter()
                    .map(|(topic, kept, retain)| (kept.message(topic), *retain))
                    .collect();
                let messages = messages.iter().map(|(message, retain)| (message, *retain));
                let done = table.writer().publish_batch(now, messages).unwrap();
                assert_eq!(done, model.apply(&batch, now));
            }
        }
        let stat = table.reader().stat().unwrap();
        assert_eq!(stat.messages, model.messages.len() as u64);
        if rng.one_in(4) {
            compare(&table.reader(), &model, now, rng);
        }
        if rng.one_in(4) {
            table.assert_whole();
            table.pages.commit();
            let snapshot = table.pages.snapshot();
            compare(
                &TopicsReader::open(&table.root, &snapshot).unwrap(),
                &model,
                now,
                rng,
            );
        }
    }
    table.assert_whole();
    compare(&table.reader(), &model, now, rng);
    let before = table.reader().stat().unwrap();
    let (_, recovered) = TopicsWriter::recover(&mut table.root, &mut table.pages).unwrap();
    assert_eq!(
        (recovered.messages, recovered.removed),
        (model.messages.len() as u64, 0)
    );
    assert_eq!(table.reader().stat().unwrap().bytes, before.bytes);
    table.assert_whole();
}

#[test]
fn topics_agree_with_a_map() {
    for seed in 0..120 {
        println!("seed {seed}");
        random_operations(seed);
    }
}
