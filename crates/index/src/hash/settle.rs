//! Determines which entries of a key remain valid, and in which set the records of the others are stored.
//!
//! The sets of a hash table are in its part `Sets` (`postings/sets.rs`):
//!
//! ```text
//! 0                              records that are replaced or removed: compaction removes them
//! 1 | u16 big-endian | index key    records of a key with more than PLAIN_MAX records
//! 2 | u16 big-endian | index key    older versions of a key, in a table with history
//! ```
//!
//! The length before the index key ensures that no key is a prefix of another one.

use crate::hash::entry::Action;
use crate::hash::options::{HashOptions, History};
use crate::hash::record;
use crate::parts::{Part, change, part};
use crate::postings::changes::Changes;
use crate::postings::sets;
use crate::runs::merge::Group;
use crate::runs::write::Rules;
use roaring::RoaringTreemap;
use std::collections::{BTreeMap, BTreeSet};
use tidalite_kv::{TableReader, Tree};
use tidalite_pager::{PageRead, PageWrite, Result};

/// Maximum number of records of a key that are entries of the main table. If a key has more, they are stored as a set.
pub(crate) const PLAIN_MAX: usize = 8;

/// Key of the set of records that are replaced or removed.
pub(crate) const DEAD: &[u8] = &[0];
const DUPLICATES: u8 = 1;
const VERSIONS: u8 = 2;

fn set_key(kind: u8, index_key: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(3 + index_key.len());
    key.push(kind);
    key.extend_from_slice(&(index_key.len() as u16).to_be_bytes());
    key.extend_from_slice(index_key);
    key
}

/// Key of the set of the records of a key.
pub(crate) fn duplicates_key(index_key: &[u8]) -> Vec<u8> {
    set_key(DUPLICATES, index_key)
}

/// Key of the set of the older versions of a key.
pub(crate) fn versions_key(index_key: &[u8]) -> Vec<u8> {
    set_key(VERSIONS, index_key)
}

/// The rules of a hash table for merges, and the resulting changes of its sets.
pub(crate) struct HashRules<'a> {
    options: &'a HashOptions,
    /// Changes of the sets of older versions.
    versions: Changes,
    /// Changes of the sets of records of a key.
    duplicates: Vec<DuplicatesChange>,
    /// Records that became dead and are not in the set `DEAD` yet.
    dead: RoaringTreemap,
    /// Number of records that were added to the set `DEAD`.
    dead_stored: u64,
    /// Keys that may have too many older versions now.
    trimmed: BTreeSet<Vec<u8>>,
    /// Removals that were the newest entries of their keys and have left the index.
    removals: RoaringTreemap,
}

/// Records that are added to the set of a key's records, or removed from it.
struct DuplicatesChange {
    set_key: Vec<u8>,
    added: RoaringTreemap,
    removed: RoaringTreemap,
}

impl<'a> HashRules<'a> {
    pub(crate) fn has_duplicates(&self) -> bool {
        self.options.duplicates
    }

    pub(crate) fn new(options: &'a HashOptions) -> Self {
        Self {
            options,
            versions: Changes::default(),
            duplicates: Vec::new(),
            dead: RoaringTreemap::new(),
            dead_stored: 0,
            trimmed: BTreeSet::new(),
            removals: RoaringTreemap::new(),
        }
    }

    /// Stores the changes of the sets. Returns the number of records that became dead since the last call.
    pub(crate) fn finish<W: PageWrite>(&mut self, root: &mut Tree, w: &mut W) -> Result<u64> {
        self.apply(root, w)?;
        Ok(std::mem::take(&mut self.dead_stored))
    }

    /// Removes the oldest versions of keys that have too many of them.
    fn trim<W: PageWrite>(&mut self, root: &mut Tree, w: &mut W, most: u32) -> Result<()> {
        let removals = std::mem::take(&mut self.removals);
        for key in std::mem::take(&mut self.trimmed) {
            let versions = sets::get(&part(root, &*w, Part::Sets)?, &*w, &key)?;
            if versions.len() <= u64::from(most) {
                continue;
            }
            for versions in self.of_each_key(root, &*w, &versions)? {
                // If a key does not exist, its removal is its current version.
                let is_removed = versions.last().is_some_and(|last| removals.contains(*last));
                let kept = most as usize + usize::from(is_removed);
                let excess = versions.len().saturating_sub(kept);
                for record in &versions[..excess] {
                    self.versions.remove(&key, *record);
                    self.dead.insert(*record);
                }
            }
        }
        self.store_versions(root, w)
    }

    /// Groups the versions with one index key by their keys; the versions of each key are ascending.
    fn of_each_key<R: PageRead>(
        &self,
        root: &Tree,
        r: &R,
        versions: &RoaringTreemap,
    ) -> Result<Vec<Vec<u64>>> {
        if !self.options.is_hashed() {
            return Ok(vec![versions.iter().collect()]);
        }
        let records = Records::of(root, r, self.options)?;
        let mut of_key: BTreeMap<Vec<u8>, Vec<u64>> = BTreeMap::new();
        for number in versions {
            let key = records.compared_key(number)?;
            of_key.entry(key).or_default().push(number);
        }
        Ok(of_key.into_values().collect())
    }

    fn store_versions<W: PageWrite>(&mut self, root: &mut Tree, w: &mut W) -> Result<()> {
        if self.versions.is_empty() {
            return Ok(());
        }
        let changes = &mut self.versions;
        change(root, w, Part::Sets, &mut |w, table| {
            sets::apply(table, w, changes)
        })
    }

    /// Records that a record is no longer the newest one of its key, or that a removal no longer counts.
    fn replace(&mut self, index_key: &[u8], record: u64) {
        match self.options.history {
            History::None => {
                self.dead.insert(record);
            }
            History::Last(_) | History::All => {
                let key = versions_key(index_key);
                self.versions.add(&key, record);
                if self.options.history != History::All {
                    self.trimmed.insert(key);
                }
            }
        }
    }

    /// Applies the rules to the entries of one key in a table without duplicates.
    fn settle_one<R: PageRead>(
        &mut self,
        records: &Records<'_, R>,
        group: &mut Group,
        in_main: bool,
    ) -> Result<()> {
        // The newest entry of each key that has this index key, together with the key.
        let mut kept: Vec<(Action, Vec<u8>)> = Vec::with_capacity(1);
        for action in actions(group)? {
            if !matches!(action, Action::Set(_) | Action::Remove(_)) {
                continue;
            }
            let key = records.compared_key(action.record())?;
            if let Some(at) = kept.iter().position(|(_, other)| *other == key) {
                let (older, _) = kept.remove(at);
                self.replace(&group.key, older.record());
            }
            kept.push((action, key));
        }
        if in_main {
            kept.retain(|(action, _)| match *action {
                Action::Remove(number) => {
                    self.replace(&group.key, number);
                    self.removals.insert(number);
                    false
                }
                _ => true,
            });
        }
        refill(group, kept.into_iter().map(|(action, _)| action));
        Ok(())
    }

    /// Applies the rules to the entries of one key in a table with duplicates.
    fn settle_many<R: PageRead>(
        &mut self,
        records: &Records<'_, R>,
        sets_table: &TableReader<'_>,
        group: &mut Group,
        in_main: bool,
    ) -> Result<()> {
        let set_key = duplicates_key(&group.key);
        let mut live = RoaringTreemap::new();
        let mut removals: Vec<Action> = Vec::new();
        // The members of the set are read only if a removal may affect them.
        let (mut has_set, mut members) = (false, None);
        let mut removed = RoaringTreemap::new();
        for action in actions(group)? {
            if has_set
                && members.is_none()
                && matches!(action, Action::Remove(_) | Action::RemoveOne(_))
            {
                members = Some(sets::get(sets_table, records.r, &set_key)?);
            }
            match action {
                Action::Set(number) => {
                    live.insert(number);
                }
                Action::InSets => has_set = true,
                Action::Remove(number) => {
                    let of_key = records.of_same_key(&live, number)?;
                    live -= &of_key;
                    self.dead |= of_key;
                    if let Some(members) = &mut members {
                        let of_key = records.of_same_key(members, number)?;
                        *members -= &of_key;
                        self.dead |= &of_key;
                        removed |= of_key;
                    }
                    let older = removals.iter().map(|action| action.record()).collect();
                    let older = records.of_same_key(&older, number)?;
                    removals.retain(|action| !older.contains(action.record()));
                    self.dead |= older;
                    removals.push(action);
                }
                Action::RemoveOne(number) => {
                    let one = record::removed_by(&records.table, records.r, number)?;
                    let in_set = members.as_mut().is_some_and(|members| members.remove(one));
                    if in_set {
                        removed.insert(one);
                    }
                    if live.remove(one) || in_set {
                        self.dead.insert(one);
                        self.dead.insert(number);
                    } else {
                        removals.push(action);
                    }
                }
            }
        }
        if in_main {
            self.dead.extend(removals.drain(..).map(Action::record));
        }
        let mut added = RoaringTreemap::new();
        let mut kept = Vec::new();
        if in_main && (has_set || live.len() > PLAIN_MAX as u64) {
            added = std::mem::take(&mut live);
            let is_set_empty = !has_set || members.is_some_and(|members| members.is_empty());
            if !(added.is_empty() && is_set_empty) {
                kept.push(Action::InSets);
            }
        }
        if !added.is_empty() || !removed.is_empty() {
            self.duplicates.push(DuplicatesChange {
                set_key,
                added,
                removed,
            });
        }
        kept.extend(live.iter().map(Action::Set));
        if !removals.is_empty() {
            kept.append(&mut removals);
            kept.sort_unstable_by_key(|action| action.record());
        }
        refill(group, kept);
        Ok(())
    }
}

impl Rules for HashRules<'_> {
    fn settle<R: PageRead>(
        &mut self,
        root: &Tree,
        r: &R,
        group: &mut Group,
        in_main: bool,
    ) -> Result<()> {
        if group.len() == 1
            && matches!(
                Action::decode(group.payload(0))?,
                Action::Set(_) | Action::InSets
            )
        {
            return Ok(());
        }
        let records = Records::of(root, r, self.options)?;
        match self.options.duplicates {
            false => self.settle_one(&records, group, in_main),
            true => {
                let sets_table = part(root, r, Part::Sets)?;
                self.settle_many(&records, &sets_table, group, in_main)
            }
        }
    }

    fn apply<W: PageWrite>(&mut self, root: &mut Tree, w: &mut W) -> Result<()> {
        self.store_versions(root, w)?;
        if let History::Last(most) = self.options.history {
            self.trim(root, w, most)?;
        }
        let dead = std::mem::take(&mut self.dead);
        let duplicates = std::mem::take(&mut self.duplicates);
        if dead.is_empty() && duplicates.is_empty() {
            return Ok(());
        }
        self.dead_stored += dead.len();
        change(root, w, Part::Sets, &mut |w, table| {
            let none = RoaringTreemap::new();
            sets::change_set(table, w, DEAD, &dead, &none)?;
            for change in &duplicates {
                sets::change_set(table, w, &change.set_key, &change.added, &change.removed)?;
            }
            Ok(())
        })
    }
}

fn actions(group: &Group) -> Result<Vec<Action>> {
    group.payloads().map(Action::decode).collect()
}

fn refill(group: &mut Group, kept: impl IntoIterator<Item = Action>) {
    group.clear();
    for action in kept {
        group.push(&action.encode());
    }
}

/// Access to the records of a hash table, as needed by the rules.
pub(crate) struct Records<'r, R> {
    pub(crate) table: TableReader<'r>,
    pub(crate) r: &'r R,
    pub(crate) options: &'r HashOptions,
}

impl<'r, R: PageRead> Records<'r, R> {
    fn of(root: &Tree, r: &'r R, options: &'r HashOptions) -> Result<Self> {
        let table = part(root, r, Part::Records)?;
        Ok(Self { table, r, options })
    }

    /// The folded key of a record, which distinguishes it from other keys with its index key; empty if no other key can
    /// have the same index key.
    pub(crate) fn compared_key(&self, number: u64) -> Result<Vec<u8>> {
        match self.options.is_hashed() {
            true => record::folded_key(&self.table, self.r, number, self.options),
            false => Ok(Vec::new()),
        }
    }

    /// The members of `numbers` that have the same key as the record `number`; all of them have the same index key.
    pub(crate) fn of_same_key(
        &self,
        numbers: &RoaringTreemap,
        number: u64,
    ) -> Result<RoaringTreemap> {
        if !self.options.is_hashed() || numbers.is_empty() {
            return Ok(numbers.clone());
        }
        let key = self.compared_key(number)?;
        let mut same = RoaringTreemap::new();
        for other in numbers {
            if self.compared_key(other)? == key {
                same.insert(other);
            }
        }
        Ok(same)
    }
}
