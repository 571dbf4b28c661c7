//! Hash tables in the model, and the answers by which a database is compared with them.

use super::digest::Digest;
use super::reading::Reading;
use std::collections::{BTreeMap, BTreeSet};
use tidalite::table::TableTypes;
use tidalite::{ReadTxn, Result, TableLayout};

/// The hash table that keeps all versions and ignores the case of letters.
pub const VERSIONS: &str = "h2";

/// The value of a key's newest record, and the numbers of all its records.
type NewestAndAll = (Option<Vec<u8>>, Vec<u64>);

/// The expected content of a hash table.
#[derive(Clone, Debug, Default)]
pub struct Hash {
    /// Number of the next record.
    pub next: u64,
    /// Key and value of each current record, by number.
    pub records: BTreeMap<u64, (Vec<u8>, Vec<u8>)>,
    /// Key and value of every record of the table [`VERSIONS`], by number; removals have no value.
    pub versions: BTreeMap<u64, (Vec<u8>, Option<Vec<u8>>)>,
}

/// The answers of a hash table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answers {
    next: u64,
    keys: u64,
    /// Key and value of each current record, by number.
    records: BTreeMap<u64, (Vec<u8>, Vec<u8>)>,
    /// For each key, as it was given: the value, and the numbers of the records or versions.
    by_key: BTreeMap<Vec<u8>, NewestAndAll>,
}

/// The folded form of a key: a table treats two keys as equal if their folded forms are equal.
pub(crate) fn folded(table: &str, key: &[u8]) -> Vec<u8> {
    match table == VERSIONS {
        true => key.to_ascii_lowercase(),
        false => key.to_vec(),
    }
}

/// The layout of a table.
///
/// # Errors
/// An error of the database.
pub(crate) fn layout_of(snap: &ReadTxn, name: &str) -> Result<TableLayout> {
    let types = snap.table_types(name)?;
    let layout = types.as_ref().map(TableTypes::layout);
    Ok(layout.unwrap_or(TableLayout::Rows))
}

impl Hash {
    /// Numbers of the current records of a key.
    pub(crate) fn of_key(&self, table: &str, key: &[u8]) -> Vec<u64> {
        let key = folded(table, key);
        let records = self.records.iter();
        let own = records.filter(|(_, (other, _))| folded(table, other) == key);
        own.map(|(number, _)| *number).collect()
    }

    /// The answers that the table should give.
    pub(crate) fn answers(&self, table: &str) -> Answers {
        let mut answers = Answers {
            next: self.next,
            records: self.records.clone(),
            ..Answers::default()
        };
        let mut folds: BTreeMap<Vec<u8>, NewestAndAll> = BTreeMap::new();
        for (number, (key, value)) in &self.records {
            let (newest, numbers) = folds.entry(folded(table, key)).or_default();
            *newest = Some(value.clone());
            numbers.push(*number);
        }
        answers.keys = folds.len() as u64;
        let mut given: BTreeSet<&Vec<u8>> = self.records.values().map(|(key, _)| key).collect();
        if table == VERSIONS {
            folds.values_mut().for_each(|(_, numbers)| numbers.clear());
            for (number, (key, _)) in &self.versions {
                let (_, numbers) = folds.entry(folded(table, key)).or_default();
                numbers.insert(0, *number);
            }
            given = self.versions.values().map(|(key, _)| key).collect();
        }
        for key in given {
            let found = folds.get(&folded(table, key)).cloned();
            answers
                .by_key
                .insert(key.clone(), found.unwrap_or_default());
        }
        answers
    }
}

impl Answers {
    pub(super) fn fold(&self, digest: &mut Digest) {
        digest.word(self.next);
        digest.word(self.keys);
        for (number, (key, value)) in &self.records {
            digest.word(*number);
            digest.pair(key, value);
        }
        for (key, (value, numbers)) in &self.by_key {
            digest.pair(key, value.as_deref().unwrap_or(b"none"));
            numbers.iter().for_each(|number| digest.word(*number));
        }
    }
}

/// The answers of a hash table in a snapshot, and its content. If no key is looked up, the answers to look-ups
/// are derived from the content.
///
/// # Errors
/// An error of the database.
pub(crate) fn hash_of(snap: &ReadTxn, name: &str, reading: Reading) -> Result<(Answers, Hash)> {
    let (mut answers, mut hash) = (Answers::default(), Hash::default());
    let Some(table) = snap.hash_table::<[u8], [u8]>(name)? else {
        return Ok((answers, hash));
    };
    answers.next = table.stat()?.next_record;
    answers.keys = table.count()?;
    let mut given = BTreeSet::new();
    for item in table.range(..)? {
        for number in item?.1 {
            // If a record to which the index refers is missing, or is a removal, the answer is one that no model gives.
            let record = table.record(number)?;
            let key = record.as_ref().map(|record| record.key.clone());
            let value = record.and_then(|record| record.value);
            let key = key.unwrap_or_else(|| b"missing".to_vec());
            given.insert(key.clone());
            let value = value.unwrap_or_else(|| b"missing".to_vec());
            answers.records.insert(number, (key, value));
        }
    }
    if name == VERSIONS {
        given.clear();
        table.each_record(0, |record| {
            given.insert(record.key.clone());
            hash.versions
                .insert(record.number, (record.key, record.value));
            true
        })?;
    }
    (hash.next, hash.records) = (answers.next, answers.records.clone());
    if !reading.asks_again {
        let keys = answers.keys;
        answers = hash.answers(name);
        answers.keys = keys;
        return Ok((answers, hash));
    }
    let keys: Vec<Vec<u8>> = given.into_iter().collect();
    let values = table.get_many(&keys)?;
    for (key, value) in keys.into_iter().zip(values) {
        let numbers = match name == VERSIONS {
            true => {
                let history = table.history(&key)?.into_iter();
                history.map(|version| version.number).collect()
            }
            false => table.duplicates(&key)?.iter().collect(),
        };
        let value = match table.get(&key)? == value {
            true => value,
            false => Some(b"another value than that of get".to_vec()),
        };
        answers.by_key.insert(key, (value, numbers));
    }
    Ok((answers, hash))
}
