//! Paging through messages and containers while they change.

use super::{Table, doc};
use crate::containers::cursor::MessageQuery;
use crate::containers::keys::MessageKey;
use crate::containers::options::ContainerOptions;
use crate::containers::token::MessageToken;
use tidalite_pager::Error;
use tidalite_testkit::rng::Rng;
use tidalite_time::Timestamp;

/// A table whose messages often have equal times.
fn crowded() -> Table {
    let mut table = Table::with(ContainerOptions::default());
    let mut items = Vec::new();
    for at in 0..60 {
        for container in ["a", "b", "c"] {
            items.push((container, at / 12, doc(&[("n", at)])));
        }
    }
    table.append_all(0, &items);
    table
}

/// Reads one page; returns the keys and the token, which is encoded and decoded on the way.
fn page(
    table: &Table,
    containers: &[&str],
    query: &MessageQuery,
) -> (Vec<MessageKey>, Option<MessageToken>) {
    let reader = table.reader();
    let mut keys = Vec::new();
    match containers {
        [one] => {
            let mut cursor = reader.messages(one, query, 0).unwrap();
            while let Some(message) = cursor.next().unwrap() {
                keys.push(message.key);
            }
        }
        many => {
            let mut cursor = reader.merged_messages(many, query, 0).unwrap();
            while let Some(message) = cursor.next().unwrap() {
                keys.push(message.key);
            }
        }
    }
    let token = keys.last().map(|key| MessageToken::behind(*key).to_bytes());
    let token = token.map(|bytes| MessageToken::of_bytes(&bytes).unwrap());
    (keys, token)
}

/// With every page size, in both directions, from one container and from three, all messages are returned exactly once.
#[test]
fn pages_are_one_sequence() {
    let table = crowded();
    for containers in [&["b"][..], &["c", "a", "b", "a", "none"]] {
        for reverse in [false, true] {
            let mut query = MessageQuery {
                reverse,
                from: Timestamp(1),
                to: Timestamp(3),
                ..MessageQuery::default()
            };
            let (all, _) = page(&table, containers, &query);
            let count = if containers.len() == 1 { 36 } else { 108 };
            assert_eq!(all.len(), count);
            let order = |key: &MessageKey| (key.time.0, key.container, key.tie);
            match reverse {
                false => assert!(all.is_sorted_by(|a, b| order(a) < order(b))),
                true => assert!(all.is_sorted_by(|a, b| order(a) > order(b))),
            }
            for limit in [1, 5, 12, 35] {
                let mut found = Vec::new();
                query.after = None;
                query.limit = limit;
                loop {
                    let (keys, token) = page(&table, containers, &query);
                    found.extend(keys);
                    query.after = token;
                    if token.is_none() {
                        break;
                    }
                }
                assert_eq!(found, all, "{containers:?} {limit}");
                query.limit = u64::MAX;
            }
        }
    }
}

/// If messages are deleted between pages, including the message of the token, no other message is skipped.
#[test]
fn pages_survive_deletions() {
    tidalite_testkit::watch();
    for seed in 0..30 {
        println!("seed {seed}");
        let rng = &mut Rng::new(seed);
        let mut table = crowded();
        let containers: &[&str] = if seed % 2 == 0 {
            &["b"]
        } else {
            &["a", "b", "c"]
        };
        let mut query = MessageQuery {
            reverse: rng.one_in(2),
            limit: 1 + rng.below(9),
            ..MessageQuery::default()
        };
        let (mut left, _) = page(
            &table,
            containers,
            &MessageQuery {
                limit: u64::MAX,
                ..query
            },
        );
        let mut found = Vec::new();
        loop {
            let (keys, token) = page(&table, containers, &query);
            found.extend(keys.clone());
            query.after = token;
            let Some(last) = keys.last() else {
                break;
            };
            let mut gone = vec![*last];
            for _ in 0..3 {
                gone.push(*rng.pick(&left));
            }
            for key in gone {
                let name = table.reader().container_name(key.container).unwrap();
                let mut writer = table.writer();
                let place = (key.time.0, key.tie);
                let name = name.unwrap();
                writer.delete_message(0, &name, place).unwrap();
                if !found.contains(&key) {
                    left.retain(|other| *other != key);
                }
            }
        }
        assert_eq!(found, left);
        table.assert_whole();
    }
}

#[test]
fn wrong_tokens_are_refused() {
    let table = crowded();
    for bytes in [&[][..], &[1; 5], &[9; 17], &[1; 18]] {
        let found = MessageToken::of_bytes(bytes);
        assert!(matches!(found, Err(Error::Refused { .. })));
    }
    let number = table.reader().container("a").unwrap().unwrap().number;
    let query = MessageQuery {
        after: Some(MessageToken::behind(MessageKey::new(number, 1, 0))),
        ..MessageQuery::default()
    };
    let reader = table.reader();
    assert!(reader.messages("a", &query, 0).is_ok());
    let found = reader.messages("b", &query, 0);
    assert!(matches!(found.map(drop), Err(Error::Refused { .. })));
}

#[test]
fn containers_are_listed_in_pages() {
    let mut table = Table::with(ContainerOptions::default());
    let names: Vec<String> = (0..40).map(|n| format!("dev/{n:02}")).collect();
    for name in names.iter().rev() {
        table.append(0, name, 1, &[]);
    }
    table.append(0, "dew", 1, &[]);
    let reader = table.reader();
    let mut found: Vec<String> = Vec::new();
    loop {
        let after = found.last().map(String::as_str);
        let listed = reader.list("dev/", after, 7).unwrap();
        if listed.is_empty() {
            break;
        }
        found.extend(listed.into_iter().map(|info| info.name));
    }
    assert_eq!(found, names);
}
