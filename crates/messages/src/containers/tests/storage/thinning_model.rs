//! Thinning, compared with a model that applies the documented rules.

use super::damage::rows;
use super::thinning::rules;
use super::{Table, decode};
use crate::containers::append::{Append, AppendOutcome};
use crate::containers::cursor::MessageQuery;
use crate::containers::document::Document;
use crate::containers::numbers::FieldNumber;
use crate::containers::options::ContainerOptions;
use crate::containers::parts::Part;
use crate::containers::thinning::{Thinning, ThinningFigure, ThinningRow};
use crate::containers::value::FieldValue;
use std::collections::BTreeMap;
use std::time::Duration;
use tidalite_testkit::rng::Rng;
use tidalite_time::Timestamp;

const FIELDS: [&str; 7] = ["first", "last", "min", "max", "mean", "sum", "drop"];

#[derive(Clone, Debug, PartialEq)]
struct Message {
    document: Document,
    is_protected: bool,
    stands_for: u32,
}

type Messages = BTreeMap<(i64, u32), Message>;

fn figure(thinning: &Thinning, field: &str) -> ThinningFigure {
    let own = thinning.fields.iter().find(|(name, _)| name == field);
    own.map_or(thinning.others, |(_, figure)| *figure)
}

/// The combined value of a field: each value comes with the number of messages for which it stands.
fn value_of(figure: ThinningFigure, values: &[(FieldValue, u32)]) -> FieldValue {
    let numbers = values.iter();
    let numbers: Vec<(FieldNumber, u32)> = numbers
        .filter_map(|(value, times)| Some((value.as_number()?, *times)))
        .collect();
    let last = values[values.len() - 1].0.clone();
    let integers = numbers.iter().map(|(number, _)| match number {
        FieldNumber::Integer(number) => *number,
        FieldNumber::Float(_) => panic!("only means are floats"),
    });
    match figure {
        ThinningFigure::First => values[0].0.clone(),
        _ if numbers.is_empty() => last,
        ThinningFigure::Min => FieldValue::Integer(integers.min().unwrap()),
        ThinningFigure::Max => FieldValue::Integer(integers.max().unwrap()),
        ThinningFigure::Sum => FieldValue::Integer(integers.sum()),
        ThinningFigure::Mean => {
            let parts = numbers.iter();
            let parts = parts.map(|(number, times)| number.as_float() * f64::from(*times));
            let times: u64 = numbers.iter().map(|(_, times)| u64::from(*times)).sum();
            FieldValue::Float(parts.sum::<f64>() / times as f64)
        }
        ThinningFigure::Last | ThinningFigure::Drop => last,
    }
}

/// The message that represents several messages.
fn fold(thinning: &Thinning, messages: &[Message]) -> Message {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in messages.iter().flat_map(|message| message.document.iter()) {
        if !names.contains(&name) && figure(thinning, name) != ThinningFigure::Drop {
            names.push(name);
        }
    }
    let mut document = Document::default();
    for name in names {
        let with = messages.iter();
        let values: Vec<_> = with
            .filter_map(|message| Some((message.document.get(name)?.clone(), message.stands_for)))
            .collect();
        document.set(name, value_of(figure(thinning, name), &values));
    }
    Message {
        document,
        is_protected: false,
        stands_for: messages.iter().map(|message| message.stands_for).sum(),
    }
}

/// Applies each rule to the range of times that it has processed.
fn thin(messages: &mut Messages, thinning: &Thinning, passed: &[(i64, i64)], live_from: i64) {
    for (rule, &(from, to)) in thinning.rules.iter().zip(passed) {
        let mut steps: BTreeMap<i64, Vec<(i64, u32)>> = BTreeMap::new();
        for (key, message) in &*messages {
            let is_in = (from..to).contains(&key.0) && key.0 >= live_from;
            if is_in && !message.is_protected {
                let step = key.0.div_euclid(rule.step_ns());
                steps.entry(step).or_default().push(*key);
            }
        }
        for keys in steps.values().filter(|keys| keys.len() > 1) {
            let all: Vec<Message> = keys
                .iter()
                .map(|key| messages.remove(key).unwrap())
                .collect();
            messages.insert(keys[0], fold(thinning, &all));
        }
    }
}

fn random_document(rng: &mut Rng) -> Document {
    let mut document = Document::default();
    for _ in 0..1 + rng.below(6) {
        let value = match rng.below(8) {
            0 => FieldValue::Text("text".repeat(rng.index(30))),
            1 => FieldValue::Null,
            _ => FieldValue::Integer(i128::from(rng.below(2000)) - 1000),
        };
        document.set(rng.pick::<&str>(&FIELDS), value);
    }
    if rng.one_in(10) {
        document.set("keep", FieldValue::Bool(true));
    }
    document
}

fn done(table: &Table) -> Vec<i64> {
    let (_, row) = rows(table, Part::Thinning).swap_remove(0);
    ThinningRow::decode(&row).unwrap().done
}

fn visible(table: &Table, now: i64) -> Messages {
    let (names, reader) = (table.names(), table.reader());
    let query = MessageQuery::default();
    let mut cursor = reader.messages("x", &query, now).unwrap();
    let mut found = Messages::new();
    while let Some(message) = cursor.next().unwrap() {
        let place = (message.key.time.0, message.key.tie);
        let message = Message {
            document: decode(&names, message.document),
            is_protected: message.is_protected,
            stands_for: message.stands_for,
        };
        found.insert(place, message);
    }
    found
}

#[test]
fn random_messages_are_thinned_as_documented() {
    tidalite_testkit::watch();
    let mut totals = [0_u64; 4];
    for seed in 0..40 {
        println!("seed {seed}");
        let rng = &mut Rng::new(seed);
        let ttl = *rng.pick(&[None, Some(900), Some(2500)]);
        let mut table = Table::with(ContainerOptions {
            ttl: ttl.map(Duration::from_nanos),
            protect: Some("keep".into()),
            ..ContainerOptions::default()
        });
        let all = [(20, 7), (100, 30), (600, 200)];
        let thinning = rules(&all[..1 + rng.index(3)]);
        let mut writer = table.writer();
        writer.create_container(0, "x", None).unwrap();
        writer.set_thinning("x", Some(thinning.clone())).unwrap();
        let (mut model, mut now) = (Messages::new(), -300);
        for _ in 0..120 {
            now += rng.below(60) as i64;
            let live_from = match ttl {
                None => i64::MIN,
                Some(ttl) => now - ttl as i64 + 1,
            };
            match rng.below(8) {
                0..4 => {
                    let documents: Vec<_> = (0..1 + rng.index(20))
                        .map(|_| random_document(rng))
                        .collect();
                    let late = *rng.pick(&[20, 20, 150, 1000]);
                    let items: Vec<_> = documents
                        .iter()
                        .map(|document| {
                            Append::new("x", Timestamp(now - rng.below(late) as i64), document)
                        })
                        .collect();
                    let appended = table.writer().append_batch(now, &items).unwrap();
                    for (item, outcome) in items.iter().zip(appended.outcomes) {
                        // An expired message that is not removed yet is replaced by a new one.
                        let place = match outcome {
                            AppendOutcome::Stored { key } => Some(key),
                            AppendOutcome::Replaced { old } => Some(old.key),
                            _ => None,
                        };
                        if let Some(key) = place {
                            let message = Message {
                                document: item.document.clone(),
                                is_protected: item.document.get("keep").is_some(),
                                stands_for: 1,
                            };
                            model.insert((key.time.0, key.tie), message);
                        }
                    }
                }
                4..7 => {
                    let before = done(&table);
                    let limit = *rng.pick(&[1, 3, 10, 100]);
                    let stored = model.len() as u64;
                    let thinned = table.writer().thin(now, "x", limit).unwrap();
                    let passed: Vec<_> = before.into_iter().zip(done(&table)).collect();
                    thin(&mut model, &thinning, &passed, live_from);
                    assert_eq!(thinned.removed, stored - model.len() as u64);
                    totals[0] += thinned.changed;
                    totals[1] += thinned.removed;
                    totals[2] += u64::from(thinned.more);
                }
                _ => {
                    let mut writer = table.writer();
                    let swept = writer.maintain(now, 10_000, &mut |_| Ok(())).unwrap();
                    totals[3] += swept.expired;
                    model.retain(|key, message| message.is_protected || key.0 >= live_from);
                }
            }
            let mut expected = model.clone();
            expected.retain(|key, message| message.is_protected || key.0 >= live_from);
            let found = visible(&table, now);
            let first_wrong = found.iter().zip(&expected).find(|(a, b)| a != b);
            assert_eq!(first_wrong, None);
            assert_eq!(found.len(), expected.len());
        }
        table.assert_whole();
    }
    println!("{totals:?}");
    assert!(totals.iter().all(|total| *total > 100), "{totals:?}");
}
