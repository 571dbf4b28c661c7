//! The common operations on tables: put, remove, range removal, nested tables, tables of sets.

use super::names::{MULTI_KEYS, MULTI_VALUES, TABLES, TOPIC_KEYS};
use crate::model::{Model, TOPICS};
use tidalite::{Result, WriteTxn};
use tidalite_testkit::rng::Rng;

pub(crate) fn put(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    let name = format!("t{}", rng.below(TABLES));
    let key = format!("k{:03}", rng.below(150)).into_bytes();
    let long = rng.one_in(8);
    let mut value = vec![0u8; rng.index(if long { 3_000 } else { 40 })];
    rng.fill(&mut value);
    tx.table(&name)?.put(&key, &value)?;
    next.tables.entry(name).or_default().insert(key, value);
    Ok(())
}

pub(super) fn remove(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    let name = format!("t{}", rng.below(TABLES));
    let key = format!("k{:03}", rng.below(150)).into_bytes();
    let was = tx.table(&name)?.remove(&key)?;
    let removed = next.tables.entry(name).or_default().remove(&key);
    assert_eq!(
        was,
        removed.is_some(),
        "remove tells whether the key was there"
    );
    Ok(())
}

pub(super) fn remove_range(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    let name = format!("t{}", rng.below(TABLES));
    let from = rng.below(150);
    let to = format!("k{:03}", from + rng.below(40)).into_bytes();
    let from = format!("k{from:03}").into_bytes();
    let pairs = next.tables.entry(name.clone()).or_default();
    let before = pairs.len();
    pairs.retain(|key, _| *key < from || *key >= to);
    let removed = tx.table(&name)?.remove_range(from..to)?;
    assert_eq!(
        removed as usize,
        before - pairs.len(),
        "as many as were there"
    );
    Ok(())
}

/// Removes a nested table, one value of a key, or all values of a key.
pub(super) fn remove_many(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    if rng.one_in(2) {
        let topic = vec![b'a' + rng.below(TOPIC_KEYS) as u8];
        let was = tx.table(TOPICS)?.remove(&topic)?;
        let there = next.topics.remove(&topic).is_some();
        assert_eq!(was, there, "remove tells whether there was a table");
        return Ok(());
    }
    let key = vec![b'm', rng.below(MULTI_KEYS) as u8];
    let keys = next.multis.entry("m0".to_owned()).or_default();
    let mut table = tx.set_table("m0")?;
    let removed = if rng.one_in(2) {
        let value = vec![rng.below(MULTI_VALUES) as u8; 9];
        let was = keys.get_mut(&key).is_some_and(|set| set.remove(&value));
        if keys.get(&key).is_some_and(|values| values.is_empty()) {
            keys.remove(&key);
        }
        (u64::from(table.remove(&key, &value)?), u64::from(was))
    } else {
        let values = keys.remove(&key).map_or(0, |values| values.len());
        (table.remove_all(&key)?, values as u64)
    };
    assert_eq!(removed.0, removed.1, "removals tell how much went");
    Ok(())
}

/// Inserts a few or many values of one key into a table of sets.
pub(super) fn multi(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    let key = vec![b'm', rng.below(MULTI_KEYS) as u8];
    let keys = next.multis.entry("m0".to_owned()).or_default();
    let count = if rng.one_in(6) { 40 } else { 3 };
    let mut table = tx.set_table("m0")?;
    for _ in 0..=rng.below(count) {
        let value = vec![rng.below(MULTI_VALUES) as u8; 9];
        let added = table.put(&key, &value)?;
        let values = keys.entry(key.clone()).or_default();
        assert_eq!(added, values.insert(value), "put tells whether it is new");
    }
    Ok(())
}

pub(super) fn topic(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    let topic = vec![b'a' + rng.below(TOPIC_KEYS) as u8];
    let mut topics = tx.table(TOPICS)?;
    let mut table = topics.nested(&topic);
    let pairs = next.topics.entry(topic).or_default();
    for _ in 0..=rng.below(8) {
        let key = vec![b'k', rng.below(60) as u8];
        let long = rng.one_in(20);
        let mut value = vec![0; rng.index(if long { 1_500 } else { 30 })];
        rng.fill(&mut value);
        table.put(&key, &value)?;
        pairs.insert(key, value);
    }
    Ok(())
}
