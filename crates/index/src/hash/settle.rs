//! Which entries of a key count, and where the records of the others go.
//!
//! The sets of a hash table, in its part `Sets` (`postings/sets.rs`):
//!
//! ```text
//! 0                              records that are replaced or removed: compaction removes them
//! 1 | u16 big-endian | index key    records of a key that has more than PLAIN_MAX of them
//! 2 | u16 big-endian | index key    older versions of a key, in a table with history
//! ```
//!
//! The length before the index key keeps one key from being a prefix of another one.

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

/// Maximum number of records of a key that are entries of the main table; more of them are a set.
pub(crate) const PLAIN_MAX: usize = 8;

/// Key of the set of the records that are replaced or removed.
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

/// The rules of a hash table for merges, and the changes of its sets that follow from them.
pub(crate) struct HashRules<'a> {
    options: &'a HashOptions,
    changes: Changes,
    /// Number of records that were added to the set `DEAD`.
    dead: u64,
    /// Keys whose older versions may have become too many.
    trimmed: BTreeSet<Vec<u8>>,
}

impl<'a> HashRules<'a> {
    pub(crate) fn has_duplicates(&self) -> bool {
        self.options.duplicates
    }

    pub(crate) fn new(options: &'a HashOptions) -> Self {
        Self {
            options,
            changes: Changes::default(),
            dead: 0,
            trimmed: BTreeSet::new(),
        }
    }

    /// Stores the changes of the sets. Returns the number of records that became dead.
    pub(crate) fn apply<W: PageWrite>(&mut self, root: &mut Tree, w: &mut W) -> Result<u64> {
        self.store(root, w)?;
        if let History::Last(most) = self.options.history {
            for key in std::mem::take(&mut self.trimmed) {
                let versions = sets::get(&part(root, &*w, Part::Sets)?, &*w, &key)?;
                for versions in self.of_each_key(root, &*w, &versions)? {
                    let excess = versions.len().saturating_sub(most as usize);
                    for record in &versions[..excess] {
                        self.changes.remove(&key, *record);
                        self.bury(*record);
                    }
                }
            }
            self.store(root, w)?;
        }
        Ok(std::mem::take(&mut self.dead))
    }

    /// The versions of each key among versions with one index key, ascending.
    fn of_each_key<R: PageRead>(
        &self,
        root: &Tree,
        r: &R,
        versions: &RoaringTreemap,
    ) -> Result<Vec<Vec<u64>>> {
        if !self.options.is_hashed() {
            return Ok(vec![versions.iter().collect()]);
        }
        let records = part(root, r, Part::Records)?;
        let mut of_key: BTreeMap<Vec<u8>, Vec<u64>> = BTreeMap::new();
        for number in versions {
            let record = record::expect(&records, r, number)?;
            let key = self.options.folded(record.key()).into_owned();
            of_key.entry(key).or_default().push(number);
        }
        Ok(of_key.into_values().collect())
    }

    fn store<W: PageWrite>(&mut self, root: &mut Tree, w: &mut W) -> Result<()> {
        if self.changes.is_empty() {
            return Ok(());
        }
        let changes = &mut self.changes;
        change(root, w, Part::Sets, &mut |w, table| {
            sets::apply(table, w, changes)
        })
    }

    fn bury(&mut self, record: u64) {
        self.changes.add(DEAD, record);
        self.dead += 1;
    }

    /// Notes that a record is no longer the newest one of its key, or that a removal is over.
    fn replace(&mut self, index_key: &[u8], record: u64) {
        match self.options.history {
            History::None => self.bury(record),
            History::Last(_) | History::All => {
                let key = versions_key(index_key);
                self.changes.add(&key, record);
                if self.options.history != History::All {
                    self.trimmed.insert(key);
                }
            }
        }
    }

    /// Settles the entries of a table without duplicates.
    fn settle_one<R: PageRead>(
        &mut self,
        records: &Records<'_, R>,
        group: &mut Group,
        in_main: bool,
    ) -> Result<()> {
        let actions = actions(group)?;
        let mut kept: Vec<Action> = Vec::with_capacity(1);
        for action in actions {
            let (Action::Set(number) | Action::Remove(number)) = action else {
                continue;
            };
            let mut others = Vec::new();
            for older in kept.drain(..) {
                let (Action::Set(before) | Action::Remove(before)) = older else {
                    continue;
                };
                match records.have_same_key(before, number)? {
                    true => self.replace(&group.key, before),
                    false => others.push(older),
                }
            }
            kept = others;
            kept.push(action);
        }
        if in_main {
            kept.retain(|action| match *action {
                Action::Remove(number) => {
                    self.replace(&group.key, number);
                    false
                }
                _ => true,
            });
        }
        refill(group, &kept);
        Ok(())
    }

    /// Settles the entries of a table with duplicates.
    fn settle_many<R: PageRead>(
        &mut self,
        records: &Records<'_, R>,
        sets_table: &TableReader<'_>,
        group: &mut Group,
        in_main: bool,
    ) -> Result<()> {
        let set_key = duplicates_key(&group.key);
        let mut kept: Vec<Action> = Vec::new();
        let mut members = None;
        for action in actions(group)? {
            match action {
                Action::Set(_) => kept.push(action),
                Action::InSets => {
                    members = Some(records.set(sets_table, &set_key)?);
                }
                Action::Remove(number) => {
                    let mut others = Vec::new();
                    for older in kept.drain(..) {
                        match older {
                            Action::Set(before)
                            | Action::Remove(before)
                            | Action::RemoveOne(before)
                                if records.have_same_key(before, number)? =>
                            {
                                self.bury(before);
                            }
                            older => others.push(older),
                        }
                    }
                    kept = others;
                    if let Some(members) = &mut members {
                        for before in members.iter().collect::<Vec<_>>() {
                            if records.have_same_key(before, number)? {
                                members.remove(before);
                                self.changes.remove(&set_key, before);
                                self.bury(before);
                            }
                        }
                    }
                    kept.push(action);
                }
                Action::RemoveOne(number) => {
                    let removed = records.removed_by(number)?;
                    let before = kept.len();
                    kept.retain(|action| *action != Action::Set(removed));
                    let in_set = members
                        .as_mut()
                        .is_some_and(|members| members.remove(removed));
                    if in_set {
                        self.changes.remove(&set_key, removed);
                    }
                    if in_set || kept.len() < before {
                        self.bury(removed);
                        self.bury(number);
                    } else {
                        kept.push(action);
                    }
                }
            }
        }
        if in_main {
            kept.retain(|action| match *action {
                Action::Remove(number) | Action::RemoveOne(number) => {
                    self.bury(number);
                    false
                }
                _ => true,
            });
            if members.is_some() || kept.len() > PLAIN_MAX {
                let is_empty = kept.is_empty() && members.is_none_or(|members| members.is_empty());
                for action in kept.drain(..) {
                    if let Action::Set(number) = action {
                        self.changes.add(&set_key, number);
                    }
                }
                if !is_empty {
                    kept.push(Action::InSets);
                }
            }
        }
        refill(group, &kept);
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
        let records = Records {
            table: part(root, r, Part::Records)?,
            r,
            options: self.options,
        };
        match self.options.duplicates {
            false => self.settle_one(&records, group, in_main),
            true => {
                let sets_table = part(root, r, Part::Sets)?;
                self.settle_many(&records, &sets_table, group, in_main)
            }
        }
    }
}

fn actions(group: &Group) -> Result<Vec<Action>> {
    group.payloads().map(Action::decode).collect()
}

fn refill(group: &mut Group, kept: &[Action]) {
    group.clear();
    for action in kept {
        group.push(&action.encode());
    }
}

/// The records of a hash table, as far as rules need them.
pub(crate) struct Records<'r, R> {
    pub(crate) table: TableReader<'r>,
    pub(crate) r: &'r R,
    pub(crate) options: &'r HashOptions,
}

impl<R: PageRead> Records<'_, R> {
    /// Whether two records with the same key in the index have the same key.
    pub(crate) fn have_same_key(&self, one: u64, other: u64) -> Result<bool> {
        if !self.options.is_hashed() {
            return Ok(true);
        }
        let one = record::expect(&self.table, self.r, one)?;
        let other = record::expect(&self.table, self.r, other)?;
        Ok(self.options.folded(one.key()) == self.options.folded(other.key()))
    }

    /// Number of the record that the record `number` removes.
    fn removed_by(&self, number: u64) -> Result<u64> {
        record::removed_by(&self.table, self.r, number)
    }

    fn set(&self, sets_table: &TableReader<'_>, key: &[u8]) -> Result<RoaringTreemap> {
        sets::get(sets_table, self.r, key)
    }
}
