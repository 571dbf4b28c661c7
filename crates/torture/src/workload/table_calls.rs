//! Random table operations other than put and remove. The result of each operation is checked, and its effect is
//! applied to the model.

use super::names::{MULTI_KEYS, MULTI_VALUES, TABLES};
use crate::model::{Model, Pairs};
use std::collections::{BTreeMap, BTreeSet};
use tidalite::{ErrorKind, Result, SetTableMut, TableMut, WriteTxn};
use tidalite_testkit::rng::Rng;

/// Length in bytes of a key of a table of sets, and of each value.
const MULTI_VALUE_BYTES: usize = 9;

fn value(rng: &mut Rng) -> Vec<u8> {
    let long = rng.one_in(8);
    let mut value = vec![0; rng.index(if long { 3_000 } else { 40 })];
    rng.fill(&mut value);
    value
}

fn key(rng: &mut Rng) -> Vec<u8> {
    format!("k{:03}", rng.below(150)).into_bytes()
}

/// Performs one random operation on a table of single values or of sets.
pub(crate) fn call(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    if rng.one_in(2) {
        let keys = next.multis.entry("m0".to_owned()).or_default();
        return of_pairs(&mut tx.set_table("m0")?, keys, rng);
    }
    let name = format!("t{}", rng.below(TABLES));
    let mut table = tx.table(&name)?;
    of_values(&mut table, next.tables.entry(name).or_default(), rng)
}

fn of_values(table: &mut TableMut<'_>, pairs: &mut Pairs, rng: &mut Rng) -> Result<()> {
    let (key, value) = (key(rng), value(rng));
    let was = pairs.get(&key).cloned();
    match rng.below(9) {
        0 => {
            let behind = pairs.last_key_value().is_none_or(|(last, _)| *last < key);
            match table.append(&key, &value) {
                Err(error) if !behind && error.kind() == ErrorKind::OutOfOrder => return Ok(()),
                Ok(()) if !behind => panic!("a key that is not the last is appended"),
                done => done?,
            }
            pairs.insert(key, value);
        }
        1 => {
            // Appends after the last key, then overwrites some of the appended keys.
            let last = pairs.last_key_value().map_or(0, |(_, value)| value.len());
            let count = rng.between(1, 60);
            let many = (0..count).map(|i| (format!("k{}", 150 + i), vec![i as u8; last % 50]));
            let mut many: Vec<_> = many.map(|(key, value)| (key.into_bytes(), value)).collect();
            many.push((key, value));
            let new = many.iter().filter(|(key, _)| !pairs.contains_key(key));
            let new = new.count() as u64;
            assert_eq!(
                table.extend(many.clone())?,
                new,
                "extend tells how many are new"
            );
            pairs.extend(many);
        }
        2 => {
            let new = table.reserve(&key, value.len(), |bytes| bytes.copy_from_slice(&value))?;
            assert_eq!(new, was.is_none(), "reserve tells whether the key is new");
            pairs.insert(key, value);
        }
        3..=4 => {
            // Half of the calls expect the current value, the other half another value.
            let other = rng.one_in(2).then(|| vec![7]);
            let expected = if rng.one_in(2) { other } else { was.clone() };
            let new = (!rng.one_in(3)).then_some(value);
            let done = table.compare_and_set(&key, expected.as_deref(), new.as_deref())?;
            assert_eq!(
                done,
                expected == was,
                "compare_and_set tells whether it was"
            );
            match new {
                _ if !done => {}
                Some(new) => drop(pairs.insert(key, new)),
                None => drop(pairs.remove(&key)),
            }
        }
        5 => {
            assert_eq!(table.replace(&key, &value)?, was, "replace tells what was");
            pairs.insert(key, value);
        }
        6 => {
            assert_eq!(table.take(&key)?, was, "take tells what was");
            pairs.remove(&key);
        }
        7 => {
            let (insert, there) = (rng.one_in(2), was.is_some());
            let done = match insert {
                true => table.insert(&key, &value)?,
                false => table.update(&key, &value)?,
            };
            assert_eq!(done, insert != there, "whether it was stored");
            if done {
                pairs.insert(key, value);
            }
        }
        _ if rng.one_in(3) => {
            table.clear()?;
            pairs.clear();
        }
        _ => {}
    }
    Ok(())
}

type Keys = BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>;

fn remove_pair(keys: &mut Keys, key: &[u8], value: &[u8]) -> bool {
    let Some(values) = keys.get_mut(key) else {
        return false;
    };
    let was = values.remove(value);
    if values.is_empty() {
        keys.remove(key);
    }
    was
}

fn of_pairs(table: &mut SetTableMut<'_>, keys: &mut Keys, rng: &mut Rng) -> Result<()> {
    let key = |rng: &mut Rng| vec![b'm', rng.below(MULTI_KEYS) as u8];
    let value = |rng: &mut Rng| vec![rng.below(MULTI_VALUES) as u8; MULTI_VALUE_BYTES];
    let (own, one) = (key(rng), value(rng));
    match rng.below(7) {
        0..=1 => {
            let many: Vec<_> = (0..rng.index(50)).map(|_| value(rng)).collect();
            let added = table.put_many(&own, &many)?;
            let mut new = 0;
            for value in many {
                new += u64::from(keys.entry(own.clone()).or_default().insert(value));
            }
            assert_eq!(added, new, "put_many tells how many are new");
        }
        2 => {
            let last = keys.get(&own).and_then(|values| values.last());
            let behind = last.is_none_or(|last| *last < one);
            match table.append_value(&own, &one) {
                Err(error) if !behind && error.kind() == ErrorKind::OutOfOrder => return Ok(()),
                Ok(()) if !behind => panic!("a value that is not the last is appended"),
                done => done?,
            }
            keys.entry(own).or_default().insert(one);
        }
        3..=4 => {
            let there = keys.get(&own).and_then(|values| values.iter().next());
            let old = there.filter(|_| !rng.one_in(4)).cloned();
            let old = old.unwrap_or_else(|| value(rng));
            let was = keys.get(&own).is_some_and(|values| values.contains(&old));
            assert_eq!(
                table.replace(&own, &old, &one)?,
                was,
                "whether it was there"
            );
            if was {
                remove_pair(keys, &own, &old);
                keys.entry(own).or_default().insert(one);
            }
        }
        5 => {
            let (from, to) = ((own, one), (key(rng), value(rng)));
            let all = keys.iter().flat_map(|(key, values)| {
                let pairs = values.iter().map(move |value| (key.clone(), value.clone()));
                pairs.collect::<Vec<_>>()
            });
            let gone: Vec<_> = all.filter(|pair| from <= *pair && *pair < to).collect();
            let removed = table.remove_range_of_pairs(from..to)?;
            assert_eq!(removed, gone.len() as u64, "as many as were there");
            for (key, value) in gone {
                remove_pair(keys, &key, &value);
            }
        }
        _ if rng.one_in(3) => {
            table.clear()?;
            keys.clear();
        }
        _ => {}
    }
    Ok(())
}
