//! The records of a transaction that are not stored yet.
//!
//! Records are collected in one memory buffer, so that a record needs no allocation. A hash table in memory maps each
//! key of the index to its newest record; each record has the place of the previous record with the same key.

use crate::block::{BlockBuilder, head};
use crate::hash::options::HashOptions;
use crate::hash::record::{self, Kind, Parts};
use hashbrown::HashTable;
use tidalite_pager::Result;
use xxhash_rust::xxh3::xxh3_64;

/// Number of records at which the buffer counts as full.
const RECORDS_MAX: usize = 1 << 16;
/// Number of bytes at which the buffer counts as full.
const BYTES_MAX: usize = 8 << 20;
/// Marks the absence of a record.
const NONE: u32 = u32::MAX;

/// Callback that receives the number and the parts of a record, and returns whether to stop.
pub(crate) type OnRecord<'f> = dyn FnMut(u64, Parts<'_>) -> Result<bool> + 'f;

#[derive(Clone, Copy, Debug)]
struct Item {
    /// End offset of the record in `bytes`, and of its key in `keys`.
    end: u32,
    key_end: u32,
    /// The previous record with the same key of the index.
    before: u32,
    kind: Kind,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Buffer {
    /// Number of the first record.
    pub(crate) first: u64,
    bytes: Vec<u8>,
    /// Keys, in the form in which the index holds them.
    keys: Vec<u8>,
    items: Vec<Item>,
    newest: HashTable<u32>,
}

fn hash_of(index_key: &[u8]) -> u64 {
    xxh3_64(index_key)
}

impl Buffer {
    pub(crate) fn new(first: u64) -> Self {
        Self {
            first,
            ..Self::default()
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.items.len() >= RECORDS_MAX || self.bytes.len() + self.keys.len() >= BYTES_MAX
    }

    /// Number that the next added record will get.
    pub(crate) fn next(&self) -> u64 {
        self.first + self.items.len() as u64
    }

    /// Removes all records; the next record will have the number `first`. The memory is kept for later records, except
    /// memory of large values.
    pub(crate) fn reset(&mut self, first: u64) {
        self.first = first;
        for bytes in [&mut self.bytes, &mut self.keys] {
            bytes.clear();
            bytes.shrink_to(BYTES_MAX);
        }
        self.items.clear();
        self.newest.clear();
    }

    /// Adds a record and returns its number.
    pub(crate) fn push(
        &mut self,
        options: &HashOptions,
        kind: Kind,
        key: &[u8],
        value: &[u8],
    ) -> u64 {
        let number = self.next();
        let place = self.items.len() as u32;
        let folded = options.folded(key);
        let index_key = options.index_key(&folded);
        record::encode(kind, key, value, &mut self.bytes);
        let before = self.remember(place, &index_key);
        debug_assert!(
            before == NONE || before < place,
            "records of a key are linked from the newest to the oldest"
        );
        self.keys.extend_from_slice(&index_key);
        self.items.push(Item {
            end: self.bytes.len() as u32,
            key_end: self.keys.len() as u32,
            before,
            kind,
        });
        number
    }

    /// Makes `place` the newest record of a key and returns the previous one.
    fn remember(&mut self, place: u32, index_key: &[u8]) -> u32 {
        let Self {
            newest,
            keys,
            items,
            ..
        } = self;
        let same = |place: &u32| key_at(keys, items, *place) == index_key;
        let hash = hash_of(index_key);
        match newest.find_mut(hash, same) {
            Some(newest) => std::mem::replace(newest, place),
            None => {
                // When the table grows, the keys of all records are hashed again; the new key is not in `keys` yet.
                let new_hash = |other: &u32| match *other == place {
                    true => hash,
                    false => hash_of(key_at(keys, items, *other)),
                };
                newest.insert_unique(hash, place, new_hash);
                NONE
            }
        }
    }

    fn index_key(&self, place: u32) -> &[u8] {
        key_at(&self.keys, &self.items, place)
    }

    fn bytes_of(&self, place: u32) -> &[u8] {
        let start = match place {
            0 => 0,
            place => self.items[place as usize - 1].end as usize,
        };
        &self.bytes[start..self.items[place as usize].end as usize]
    }

    /// The bytes of the record with this number.
    pub(crate) fn record(&self, number: u64) -> Option<&[u8]> {
        let place = number.checked_sub(self.first)?;
        (place < self.items.len() as u64).then(|| self.bytes_of(place as u32))
    }

    /// Calls `each` with the records of `key`, newest first, until it returns true.
    pub(crate) fn each_of_key(
        &self,
        options: &HashOptions,
        key: &[u8],
        each: &mut OnRecord<'_>,
    ) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let folded = options.folded(key);
        let index_key = options.index_key(&folded);
        let same = |place: &u32| self.index_key(*place) == &*index_key;
        let mut place = match self.newest.find(hash_of(&index_key), same) {
            Some(place) => *place,
            None => NONE,
        };
        while place != NONE {
            let number = self.first + u64::from(place);
            let bytes = self.bytes_of(place);
            let parts = record::decode(number, bytes)?;
            let is_same = !options.is_hashed() || options.folded(parts.key) == folded;
            if is_same && each(number, parts)? {
                break;
            }
            place = self.items[place as usize].before;
        }
        Ok(())
    }

    /// Calls `each` with the number and the bytes of every record, in ascending order.
    pub(crate) fn each_record(&self, each: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        for place in 0..self.items.len() as u32 {
            each(self.first + u64::from(place), self.bytes_of(place))?;
        }
        Ok(())
    }

    /// The entries of the index for all records, in order of their keys.
    pub(crate) fn entries(&self) -> BlockBuilder {
        self.entries_by(|place| self.first + u64::from(place))
    }

    /// The entries of the index for all records, in order of their keys, with these numbers of records.
    pub(crate) fn entries_of(&self, numbers: &[u64]) -> BlockBuilder {
        self.entries_by(|place| numbers[place as usize])
    }

    fn entries_by(&self, number: impl Fn(u32) -> u64) -> BlockBuilder {
        let mut order: Vec<(u64, u32)> = (0..self.items.len() as u32)
            .map(|place| (head(self.index_key(place)), place))
            .collect();
        order.sort_unstable_by(|one, other| {
            one.0
                .cmp(&other.0)
                .then_with(|| self.index_key(one.1).cmp(self.index_key(other.1)))
                .then(one.1.cmp(&other.1))
        });
        let mut entries = BlockBuilder::default();
        for (_, place) in order {
            let action = self.items[place as usize].kind.action(number(place));
            entries.push(self.index_key(place), &action.encode());
        }
        entries
    }
}

fn key_at<'k>(keys: &'k [u8], items: &[Item], place: u32) -> &'k [u8] {
    let start = match place {
        0 => 0,
        place => items[place as usize - 1].key_end as usize,
    };
    &keys[start..items[place as usize].key_end as usize]
}
