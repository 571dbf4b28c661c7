//! Reads hash tables (section 9.9 of docs/format.md): all records, and the records and versions of each key. The rules
//! of the format are checked as well.

use crate::bytes::{Fields, big};
use crate::error::Result;
use crate::runs::{self, PlainRows, Runs, broken, plain, require};
use crate::table::{Rows, Value};
use crate::tag_index::{Sets, sets_of};
use std::collections::{BTreeMap, BTreeSet};
use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128_with_seed};

/// Rows of the root table.
const OPTIONS: &[u8] = &[0];
const STATE: &[u8] = &[1];
const RECORDS: &[u8] = &[2];
const MAIN: &[u8] = &[3];
const RUNS: &[u8] = &[4];
const SETS: &[u8] = &[5];
const FILTERS: &[u8] = &[6];

const RECORDS_MAX: u64 = 1 << 46;
const WHOLE_KEY_MAX: usize = 1024;
const HASHED_KEY_MAX: usize = 16 << 20;
const ALL_VERSIONS: usize = u32::MAX as usize;
const PAYLOAD_BYTES: usize = 6;
/// Maximum number of entries of an index key in the main table of a table with duplicates.
const ENTRIES_MAX: usize = 8;

/// The contents of a hash table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HashTable {
    /// Number of the next record.
    pub next_record: u64,
    /// Number of keys in the main table of the index.
    pub main_keys: u64,
    /// Number of runs of the index.
    pub runs: u64,
    /// Number of entries in the runs that are not in the main table yet.
    pub run_entries: u64,
    /// Number of dead records that are still stored.
    pub dead: u64,
    /// All stored records, ordered by number.
    pub records: Vec<Record>,
    /// Each key that occurs in a record, as it was given, ordered by its bytes.
    pub keys: Vec<Key>,
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Number of the record.
    pub number: u64,
    /// The key, as it was given.
    pub key: Vec<u8>,
    /// The value; `None` if the record removes the key or one of its records.
    pub value: Option<Vec<u8>>,
}

/// A key, with the numbers that the index has for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The key, as it was given.
    pub key: Vec<u8>,
    /// The numbers of the records of the key, ascending; empty if the key does not exist.
    pub records: Vec<u64>,
    /// The numbers of the versions of the key, the newest first.
    pub history: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Whole,
    Hash128,
    Hash64,
}

struct Options {
    form: Form,
    duplicates: bool,
    fold_case: bool,
    key_max: usize,
    history: usize,
    seed: u64,
}

impl Options {
    fn read(bytes: &[u8]) -> Result<Self> {
        let mut fields = Fields::new(bytes, 0);
        let form = match fields.u8()? {
            0 => Form::Whole,
            1 => Form::Hash128,
            2 => Form::Hash64,
            _ => return Err(broken("the form of index keys")),
        };
        let flags = fields.u8()?;
        require(flags <= 3, "flags of a hash table")?;
        let longest = fields.u16()?;
        let key_max = match form {
            Form::Whole => longest,
            _ => HASHED_KEY_MAX,
        };
        let expected = match form {
            Form::Whole => 1..=WHOLE_KEY_MAX,
            _ => 0..=0,
        };
        require(expected.contains(&longest), "the longest key")?;
        let options = Self {
            form,
            duplicates: flags & 1 != 0,
            fold_case: flags & 2 != 0,
            key_max,
            history: fields.u32()?,
            seed: fields.u64()?,
        };
        require(fields.left() == 0, "the options of a hash table go on")?;
        let contradict = options.duplicates && options.history > 0;
        require(!contradict, "a history of duplicates")?;
        Ok(options)
    }

    fn folded(&self, key: &[u8]) -> Vec<u8> {
        match std::str::from_utf8(key) {
            Ok(text) if self.fold_case => text.to_lowercase().into_bytes(),
            _ => key.to_vec(),
        }
    }

    fn index_key(&self, folded: &[u8]) -> Vec<u8> {
        match self.form {
            Form::Whole => folded.to_vec(),
            Form::Hash128 => xxh3_128_with_seed(folded, self.seed).to_be_bytes().to_vec(),
            Form::Hash64 => xxh3_64_with_seed(folded, self.seed).to_be_bytes().to_vec(),
        }
    }
}

struct State {
    next_record: u64,
    main_keys: u64,
    main_bytes: u64,
    dead: u64,
    runs: Runs,
}

impl State {
    fn read(bytes: &[u8]) -> Result<Self> {
        let mut fields = Fields::new(bytes, 0);
        let next_record = fields.u64()?;
        let main_keys = fields.u64()?;
        let main_bytes = fields.u64()?;
        let dead = fields.u64()?;
        require(next_record <= RECORDS_MAX, "the next record")?;
        let runs = Runs::read(&mut fields)?;
        Ok(Self {
            next_record,
            main_keys,
            main_bytes,
            dead,
            runs,
        })
    }
}

/// An entry of the index, by its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    Set(u64),
    Remove(u64),
    RemoveOne(u64),
    InSet,
}

impl Entry {
    fn read(payload: &[u8]) -> Result<Self> {
        require(payload.len() == PAYLOAD_BYTES, "the payload of an entry")?;
        let word = big(payload);
        match (word & 3, word >> 2) {
            (0, number) => Ok(Self::Set(number)),
            (1, number) => Ok(Self::Remove(number)),
            (2, number) => Ok(Self::RemoveOne(number)),
            (_, number) => require(number == 0, "an entry of kind 3").map(|()| Self::InSet),
        }
    }
}

/// The entries of a block with their actions.
fn block(bytes: &[u8]) -> Result<Vec<(Vec<u8>, Entry)>> {
    let entries = runs::block(bytes)?.into_iter();
    entries
        .map(|(key, payload)| Ok((key, Entry::read(&payload)?)))
        .collect()
}

/// The number of a removed record, if the record with this kind removes one.
type Removed = Option<u64>;

/// The index of a hash table, with everything that is needed to ask for keys.
struct Index {
    options: Options,
    /// Entries of each index key that count, the oldest first.
    entries: BTreeMap<Vec<u8>, Vec<Entry>>,
    sets: Sets,
    records: BTreeMap<u64, (Record, Removed)>,
}

impl HashTable {
    /// Reads a hash table from the rows of its root table.
    ///
    /// # Errors
    /// If the table breaks a rule of the format.
    pub fn read(root: &Rows) -> Result<Self> {
        let mut parts: BTreeMap<&[u8], &Value> = BTreeMap::new();
        for (key, value) in &root.rows {
            parts.insert(key, value);
        }
        let mut bytes = |key: &[u8]| match parts.remove(key) {
            Some(Value::Bytes(bytes)) => Ok(bytes),
            _ => Err(broken("a row of a hash table")),
        };
        let options = Options::read(bytes(OPTIONS)?)?;
        let state = State::read(bytes(STATE)?)?;
        let empty = Rows::default();
        let mut nested = |key: &[u8]| match parts.remove(key) {
            Some(Value::Table(rows)) => plain(rows),
            Some(_) => Err(broken("a row of a hash table")),
            None => plain(&empty),
        };
        let records = read_records(&options, &state, &nested(RECORDS)?)?;
        let mut entries = read_main(&options, &state, &nested(MAIN)?)?;
        let stored = (nested(RUNS)?, nested(FILTERS)?);
        let stored = (&stored.0[..], &stored.1[..]);
        let run_entries = read_runs(&options, &state, stored, &mut entries)?;
        let sets = sets_of(nested(SETS)?)?;
        require(parts.is_empty(), "a row too many of a hash table")?;
        let index = Index {
            options,
            entries,
            sets,
            records,
        };
        let dead = index.set(&[0]).len() as u64;
        require(dead == state.dead, "the number of dead records")?;
        index.check()?;
        let keys = index.keys()?;
        let records = index.records.into_values().map(|(record, _)| record);
        Ok(Self {
            next_record: state.next_record,
            main_keys: state.main_keys,
            runs: state.runs.len() as u64,
            run_entries,
            dead,
            records: records.collect(),
            keys,
        })
    }
}

fn read_records(
    options: &Options,
    state: &State,
    rows: &[(&[u8], &[u8])],
) -> Result<BTreeMap<u64, (Record, Removed)>> {
    let mut records = BTreeMap::new();
    for (key, value) in rows {
        let number = big(key);
        let is_number = key.len() == 8 && number < state.next_record;
        require(is_number, "the number of a record")?;
        let mut fields = Fields::new(value, 0);
        let kind = fields.u8()?;
        let length = fields.varint32()?;
        require(length <= options.key_max, "the length of a key")?;
        let key = fields.take(length)?.to_vec();
        let rest = fields.rest();
        let (value, removed) = match kind {
            0 => (Some(rest.to_vec()), None),
            1 => (None, None),
            2 => (None, Some(big(rest))),
            _ => return Err(broken("the kind of a record")),
        };
        let fits = match kind {
            0 => true,
            1 => rest.is_empty(),
            _ => rest.len() == 8 && options.duplicates,
        };
        require(fits, "a record of a removal")?;
        let record = Record { number, key, value };
        records.insert(number, (record, removed));
    }
    Ok(records)
}

fn read_main(
    options: &Options,
    state: &State,
    rows: &[(&[u8], &[u8])],
) -> Result<BTreeMap<Vec<u8>, Vec<Entry>>> {
    let mut all: BTreeMap<Vec<u8>, Vec<Entry>> = BTreeMap::new();
    let mut bytes = 0;
    for (row, value) in rows {
        bytes += value.len() as u64;
        let entries = block(value)?;
        let above = all.last_key_value().is_none_or(|(last, _)| **last < **row);
        let first = entries.first().is_some_and(|(key, _)| **row <= **key);
        require(above && first, "the key of a row of the main table")?;
        for (key, entry) in entries {
            all.entry(key).or_default().push(entry);
        }
    }
    for entries in all.values() {
        let sets_only = entries.iter().all(|entry| matches!(entry, Entry::Set(_)));
        let fits = match (options.duplicates, options.form) {
            (true, _) => *entries == [Entry::InSet] || sets_only && entries.len() <= ENTRIES_MAX,
            (false, Form::Whole) => sets_only && entries.len() == 1,
            (false, _) => sets_only,
        };
        require(fits, "entries of the main table")?;
    }
    let keys = if options.duplicates {
        all.len()
    } else {
        all.values().map(Vec::len).sum()
    };
    require(bytes == state.main_bytes, "the bytes of the main table")?;
    require(keys as u64 == state.main_keys, "the keys of the main table")?;
    Ok(all)
}

/// Adds the entries of all runs that count to `all`, and returns their number.
fn read_runs(
    options: &Options,
    state: &State,
    (rows, filters): (&PlainRows<'_>, &PlainRows<'_>),
    all: &mut BTreeMap<Vec<u8>, Vec<Entry>>,
) -> Result<u64> {
    let (mut count, mut skipped) = (0, 0);
    for (place, entries) in state.runs.entries(rows, filters)?.into_iter().enumerate() {
        for (key, payload) in entries {
            let entry = Entry::read(&payload)?;
            let fits = match entry {
                Entry::Set(_) | Entry::Remove(_) => true,
                Entry::RemoveOne(_) => options.duplicates,
                Entry::InSet => false,
            };
            require(fits, "entries of a run")?;
            if state.runs.is_merged(place, &key) {
                skipped += 1;
            } else {
                count += 1;
                all.entry(key).or_default().push(entry);
            }
        }
    }
    require(skipped == state.runs.merged, "the merged entries")?;
    Ok(count)
}

fn set_key(kind: u8, index_key: &[u8]) -> Vec<u8> {
    let length = (index_key.len() as u16).to_be_bytes();
    [&[kind], &length[..], index_key].concat()
}

impl Index {
    fn set(&self, key: &[u8]) -> BTreeSet<u64> {
        self.sets.get(key).cloned().unwrap_or_default()
    }

    fn folded(&self, number: u64) -> Result<Vec<u8>> {
        match self.records.get(&number) {
            Some((record, _)) => Ok(self.options.folded(&record.key)),
            None => Err(broken("the index names a record that is not there")),
        }
    }

    fn live(&self, index_key: &[u8]) -> Result<BTreeSet<u64>> {
        let mut live = BTreeSet::new();
        let entries = self.entries.get(index_key).map(Vec::as_slice);
        for entry in entries.unwrap_or_default() {
            match *entry {
                Entry::Set(number) => {
                    if !self.options.duplicates {
                        self.remove_same_key(&mut live, number)?;
                    }
                    live.insert(number);
                }
                Entry::Remove(number) => self.remove_same_key(&mut live, number)?,
                Entry::RemoveOne(number) => {
                    let removal = self.records.get(&number);
                    let removed = removal.and_then(|(_, removed)| *removed);
                    let removed = removed.ok_or_else(|| broken("the removal of a record"))?;
                    live.remove(&removed);
                }
                Entry::InSet => live.extend(self.set(&set_key(1, index_key))),
            }
        }
        Ok(live)
    }

    fn remove_same_key(&self, live: &mut BTreeSet<u64>, number: u64) -> Result<()> {
        let key = self.folded(number)?;
        for other in live.clone() {
            if self.folded(other)? == key {
                live.remove(&other);
            }
        }
        Ok(())
    }

    fn history(&self, index_key: &[u8], folded: &[u8], records: &[u64]) -> Result<Vec<u64>> {
        if self.options.duplicates || self.options.history == 0 {
            return Ok(records.iter().rev().copied().collect());
        }
        let mut numbers = self.set(&set_key(2, index_key));
        for entry in self.entries.get(index_key).into_iter().flatten() {
            if let Entry::Set(number) | Entry::Remove(number) = *entry {
                numbers.insert(number);
            }
        }
        let mut versions = Vec::new();
        for number in numbers.into_iter().rev() {
            if self.folded(number)? == folded {
                versions.push(number);
            }
        }
        if self.options.history != ALL_VERSIONS {
            versions.truncate(self.options.history + 1);
        }
        Ok(versions)
    }

    /// The records and versions of each key of a record.
    fn keys(&self) -> Result<Vec<Key>> {
        let given: BTreeSet<&Vec<u8>> = self
            .records
            .values()
            .map(|(record, _)| &record.key)
            .collect();
        let mut keys = Vec::new();
        for key in given {
            let folded = self.options.folded(key);
            let index_key = self.options.index_key(&folded);
            let mut records = Vec::new();
            for number in self.live(&index_key)? {
                if self.folded(number)? == folded {
                    records.push(number);
                }
            }
            keys.push(Key {
                history: self.history(&index_key, &folded, &records)?,
                key: key.clone(),
                records,
            });
        }
        Ok(keys)
    }

    /// Checks that entries and sets name existing records of their keys only, and that each record is named.
    fn check(&self) -> Result<()> {
        let mut named = BTreeSet::new();
        for (index_key, entries) in &self.entries {
            for entry in entries {
                let (Entry::Set(number) | Entry::Remove(number) | Entry::RemoveOne(number)) =
                    *entry
                else {
                    let members = self.sets.contains_key(&set_key(1, index_key));
                    require(members, "an entry of kind 3 without a set")?;
                    continue;
                };
                let own = self.options.index_key(&self.folded(number)?);
                require(own == *index_key, "a record under another index key")?;
                require(named.insert(number), "a record that two entries name")?;
            }
        }
        for (key, members) in &self.sets {
            let index_key = match key.as_slice() {
                [0] => None,
                [1 | 2, _, _, index_key @ ..] if *key == set_key(key[0], index_key) => {
                    Some(index_key)
                }
                _ => return Err(broken("the key of a set of records")),
            };
            if key[0] == 1 {
                let entries = index_key.and_then(|index_key| self.entries.get(index_key));
                let has_entry = entries.is_some_and(|entries| entries.contains(&Entry::InSet));
                require(has_entry, "a set without an entry of kind 3")?;
            }
            let has_history = self.options.history > 0;
            require(key[0] != 2 || has_history, "versions without a history")?;
            for &number in members {
                let folded = self.folded(number)?;
                let fits = index_key.is_none_or(|key| self.options.index_key(&folded) == key);
                require(fits, "a record in the set of another key")?;
                require(named.insert(number), "a record that is named twice")?;
            }
        }
        let all = self.records.keys().all(|number| named.contains(number));
        require(all, "a record that nothing names")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_both_forms() {
        let mut equal = vec![2, 0, 6, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, b'd', b'c'];
        equal.extend(*b"ab\0\0\0\0\0\x04cd\0\0\0\0\0\x09");
        let entries = vec![
            (b"ab".to_vec(), Entry::Set(1)),
            (b"cd".to_vec(), Entry::Remove(2)),
        ];
        assert_eq!(block(&equal), Ok(entries));
        equal[15] = b'x';
        assert!(block(&equal).is_err());
        let mut varying = vec![0xff; 4];
        varying.extend([2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, b'b']);
        varying.extend([8, 0, 0, 0, 17, 0, 0, 0]);
        varying.extend(*b"\0\0\0\0\0\0\0\x03\x01\0b\0\0\0\0\0\x0a");
        let entries = vec![
            (Vec::new(), Entry::InSet),
            (b"b".to_vec(), Entry::RemoveOne(2)),
        ];
        assert_eq!(block(&varying), Ok(entries));
        varying[16] = 9;
        assert!(block(&varying).is_err());
        assert!(block(&[0; 16]).is_err());
    }
}
