//! Random operations on buffered tables. Their pairs are among the tables of the model.

use crate::model::{Model, Pairs};
use tidalite::table::BufferedTableMut;
use tidalite::{Result, WriteTxn};
use tidalite_testkit::rng::Rng;

/// Number of buffered tables.
const TABLES: u64 = 2;
/// Number of different keys of a table.
const KEYS: u64 = 300;

fn key(rng: &mut Rng) -> Vec<u8> {
    let mut key = format!("k{:03}", rng.below(KEYS)).into_bytes();
    if rng.one_in(40) {
        key.resize(700, b'l');
    }
    key
}

fn value(rng: &mut Rng) -> Vec<u8> {
    let long = rng.one_in(20);
    let mut value = vec![0; rng.index(if long { 2_000 } else { 20 })];
    rng.fill(&mut value);
    value
}

/// Performs random operations on a buffered table.
pub(super) fn work(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    let name = format!("b{}", rng.below(TABLES));
    if rng.one_in(60) {
        let there = next.tables.remove(&name).is_some();
        assert_eq!(tx.drop_table(&name)?, there, "drop tells whether it was");
        return Ok(());
    }
    let mut table = tx.buffered_table::<[u8], [u8]>(&name)?;
    let pairs = next.tables.entry(name).or_default();
    match rng.below(12) {
        0 => table.compact()?,
        1 if rng.one_in(4) => {
            table.clear()?;
            pairs.clear();
        }
        2 => table.store()?,
        3..=5 => {
            for _ in 0..=rng.below(8) {
                let key = key(rng);
                table.remove(&key)?;
                pairs.remove(&key);
            }
        }
        _ => {
            for _ in 0..=rng.below(30) {
                let (key, value) = (key(rng), value(rng));
                table.put(&key, &value)?;
                pairs.insert(key, value);
            }
        }
    }
    ask(&mut table, pairs, rng)
}

/// Checks that a transaction sees its own entries.
fn ask(table: &mut BufferedTableMut<'_>, pairs: &Pairs, rng: &mut Rng) -> Result<()> {
    let key = key(rng);
    let value = pairs.get(&key);
    assert_eq!(table.get(&key)?.as_ref(), value, "get before a store");
    assert_eq!(table.contains(&key)?, value.is_some());
    if rng.one_in(4) {
        let view = table.view()?;
        assert_eq!(view.get(&key)?.as_ref(), value, "get in a view");
        assert_eq!(view.count()?, pairs.len() as u64);
        let next = view.range(&key[..]..)?.next().transpose()?;
        let expected = pairs.range(key.clone()..).next();
        assert_eq!(
            next,
            expected.map(|(key, value)| (key.clone(), value.clone()))
        );
        let last = view.range_reversed(..&key[..])?.next().transpose()?;
        let expected = pairs.range(..key).next_back();
        assert_eq!(
            last,
            expected.map(|(key, value)| (key.clone(), value.clone()))
        );
    }
    Ok(())
}
