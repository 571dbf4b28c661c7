//! Random operations on hash tables of all kinds. The result of each operation is checked, and its effect is applied to
//! the model.

use crate::model::{Hash, Model};
use std::sync::Arc;
use tidalite::hash_table::{HashTableMut, HashTableOptions, History, KeyForm};
use tidalite::{ErrorKind, Result, WriteTxn};
use tidalite_testkit::rng::Rng;

/// Number of hash tables with plain bytes; one more counts.
const TABLES: u64 = 4;
/// The hash table whose values are counters.
const COUNTERS: &str = "h4";
/// Number of different keys of a table.
const KEYS: u64 = 40;

/// Size of runs in bytes from which they are merged, in buffered tables, too. It is so small that many commits merge a
/// part of the runs.
pub const RUN_BYTES: u64 = 512;

/// The options of the `i`-th table.
fn options(i: u64) -> HashTableOptions {
    // The seed of a hash is not random here, so that a seed of the workload gives the same bytes each time.
    let options = HashTableOptions::new().seed(i);
    match i {
        0 => options,
        1 => options.duplicates(true),
        2 => options
            .key_form(KeyForm::Hashed)
            .fold_case(true)
            .history(History::All),
        3 => options.key_form(KeyForm::Compact).duplicates(true),
        _ => options.history(History::Last(1)),
    }
}

fn key(rng: &mut Rng) -> Vec<u8> {
    let number = rng.below(KEYS);
    match rng.one_in(2) {
        true => format!("key {number}").into_bytes(),
        false => format!("Key {number}").into_bytes(),
    }
}

fn value(rng: &mut Rng) -> Vec<u8> {
    let long = rng.one_in(20);
    let mut value = vec![0; rng.index(if long { 2_000 } else { 20 })];
    rng.fill(&mut value);
    value
}

/// Performs random operations on a hash table.
pub(super) fn work(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    let i = rng.below(TABLES + 1);
    if i == TABLES {
        return count(tx, next, rng);
    }
    let name = format!("h{i}");
    if rng.one_in(60) {
        let there = next.hashes.remove(&name).is_some();
        assert_eq!(tx.drop_table(&name)?, there, "drop tells whether it was");
        return Ok(());
    }
    let mut table = tx.hash_table_with::<[u8], [u8]>(&name, &options(i))?;
    let hash = Arc::make_mut(next.hashes.entry(name.clone()).or_default());
    let mut one = One {
        name: &name,
        has_duplicates: i % 2 == 1,
        hash,
    };
    match rng.below(16) {
        0 => table.compact()?,
        1 => table.rebuild()?,
        2 if rng.one_in(4) => {
            table.clear()?;
            one.hash.records.clear();
            one.hash.versions.clear();
        }
        3..=5 => one.remove(&mut table, &key(rng))?,
        6..=8 if one.has_duplicates => one.remove_record(&mut table, rng)?,
        9 => one.insert(&mut table, rng)?,
        10 => table.store()?,
        _ => {
            for _ in 0..=rng.below(20) {
                one.set(&mut table, rng)?;
            }
        }
    }
    let key = key(rng);
    let newest = one.hash.of_key(&name, &key).last().copied();
    let newest = newest.map(|number| one.hash.records[&number].1.clone());
    assert_eq!(table.get(&key)?, newest, "a transaction sees its records");
    Ok(())
}

/// A hash table of the model.
struct One<'m> {
    name: &'m str,
    has_duplicates: bool,
    hash: &'m mut Hash,
}

type Table<'t> = HashTableMut<'t, [u8], [u8]>;

impl One<'_> {
    /// Notes a record that was written.
    fn written(&mut self, number: u64, key: &[u8], value: Option<&[u8]>) {
        assert_eq!(number, self.hash.next, "numbers of records ascend");
        self.hash.next += 1;
        if self.name == crate::model::VERSIONS {
            let version = (key.to_vec(), value.map(<[u8]>::to_vec));
            self.hash.versions.insert(number, version);
        }
        if !self.has_duplicates || value.is_none() {
            for older in self.hash.of_key(self.name, key) {
                self.hash.records.remove(&older);
            }
        }
        if let Some(value) = value {
            let record = (key.to_vec(), value.to_vec());
            self.hash.records.insert(number, record);
        }
    }

    fn set(&mut self, table: &mut Table<'_>, rng: &mut Rng) -> Result<()> {
        let (key, value) = (key(rng), value(rng));
        let number = table.set(&key, &value)?;
        self.written(number, &key, Some(&value));
        Ok(())
    }

    fn insert(&mut self, table: &mut Table<'_>, rng: &mut Rng) -> Result<()> {
        let (key, value) = (key(rng), value(rng));
        let there = !self.hash.of_key(self.name, &key).is_empty();
        let number = table.insert(&key, &value)?;
        assert_eq!(number.is_none(), there, "insert tells whether it was there");
        if let Some(number) = number {
            self.written(number, &key, Some(&value));
        }
        Ok(())
    }

    fn remove(&mut self, table: &mut Table<'_>, key: &[u8]) -> Result<()> {
        let there = !self.hash.of_key(self.name, key).is_empty();
        assert_eq!(
            table.remove(key)?,
            there,
            "remove tells whether it was there"
        );
        if there {
            self.written(self.hash.next, key, None);
        }
        Ok(())
    }

    fn remove_record(&mut self, table: &mut Table<'_>, rng: &mut Rng) -> Result<()> {
        let numbers: Vec<u64> = self.hash.records.keys().copied().collect();
        let number = match rng.one_in(8) || numbers.is_empty() {
            true => self.hash.next + 1,
            false => *rng.pick(&numbers),
        };
        let record = self.hash.records.remove(&number);
        let key = record.as_ref().map(|(key, _)| key.clone());
        let key = key.unwrap_or_else(|| self::key(rng));
        let done = table.remove_record(&key, number)?;
        assert_eq!(done, record.is_some(), "whether the key had the record");
        self.hash.next += u64::from(done);
        Ok(())
    }
}

/// Counts up or down.
fn count(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    let mut table = tx.hash_table_with::<u16, u32>(COUNTERS, &options(TABLES))?;
    let hash = Arc::make_mut(next.hashes.entry(COUNTERS.to_owned()).or_default());
    let mut one = One {
        name: COUNTERS,
        has_duplicates: false,
        hash,
    };
    if rng.one_in(10) {
        return table.compact();
    }
    for _ in 0..=rng.below(12) {
        let (key, by) = (rng.below(KEYS) as u16, rng.below(9) as u32);
        let code = key.to_be_bytes();
        let newest = one.hash.of_key(COUNTERS, &code).last().copied();
        let was = newest.map_or(0, |number| {
            let code = &one.hash.records[&number].1;
            let code = code.first_chunk().copied().unwrap_or_default();
            u32::from_be_bytes(code)
        });
        let (done, expected) = match rng.one_in(3) {
            true => (table.decrement(&key, &by), was.checked_sub(by)),
            false => (table.increment(&key, &by), was.checked_add(by)),
        };
        let Some(expected) = expected else {
            match done {
                Err(error) if error.kind() == ErrorKind::Limit => continue,
                Err(error) => return Err(error),
                Ok(found) => panic!("{was} minus {by} is {found}"),
            }
        };
        assert_eq!(done?, expected, "the sum of a counter");
        one.written(one.hash.next, &code, Some(&expected.to_be_bytes()));
    }
    Ok(())
}
