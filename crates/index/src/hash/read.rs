//! Lookups in a hash table.

use crate::hash::entry::Action;
use crate::hash::opened::Opened;
use crate::hash::options::{HashOptions, History};
use crate::hash::record::{self, Record};
use crate::hash::settle::{Records, duplicates_key, versions_key};
use crate::hash::state::State;
use crate::parts::{Part, part, row};
use crate::postings::sets;
use crate::runs::lookup::{in_run, in_table};
use roaring::RoaringTreemap;
use std::ops::Deref;
use std::sync::Arc;
use tidalite_kv::{TableReader, Tree};
use tidalite_pager::{PageRead, Result};

/// A hash table in a snapshot.
#[derive(Clone, Debug)]
pub struct HashReader<R> {
    pub(crate) r: R,
    opened: Arc<Opened>,
}

impl<R> Deref for HashReader<R> {
    type Target = Opened;

    fn deref(&self) -> &Opened {
        &self.opened
    }
}

/// The records of a hash table by their numbers; keys are 8 bytes, big-endian.
///
/// # Errors
/// A damaged or unreadable page.
pub fn hash_records<'r, R: PageRead>(root: &Tree, r: &'r R) -> Result<TableReader<'r>> {
    part(root, r, Part::Records)
}

/// Statistics of a hash table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HashStat {
    /// Number of records in the store: current ones, older versions, removals, and dead ones.
    pub records: u64,
    /// Number that the next record will get.
    pub next_record: u64,
    /// Number of records that merges of runs have found to be replaced or removed; compaction frees their space.
    pub dead: u64,
    /// Number of keys in the main table of the index.
    pub main_keys: u64,
    /// Bytes of the blocks of the main table.
    pub main_bytes: u64,
    /// Number of runs that are not yet merged into the main table.
    pub runs: u64,
    /// Number of entries in these runs.
    pub run_entries: u64,
    /// Bytes of the blocks of these runs.
    pub run_bytes: u64,
}

impl<R: PageRead> HashReader<R> {
    /// Opens a hash table.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn open(root: &Tree, r: R) -> Result<Self> {
        let options = HashOptions::decode(&row(root, &r, Part::Options)?)?;
        let state = State::decode(&row(root, &r, Part::State)?)?;
        let opened = Opened::new(root, &r, options, state)?;
        Ok(Self::of(Arc::new(opened), r))
    }

    pub(crate) fn of(opened: Arc<Opened>, r: R) -> Self {
        Self { r, opened }
    }

    fn part(&self, tree: Option<&Tree>, kind: Part) -> Result<TableReader<'_>> {
        match tree {
            Some(tree) => Ok(TableReader::of(*tree)),
            None => part(&self.root, &self.r, kind),
        }
    }

    pub(crate) fn records(&self) -> Result<TableReader<'_>> {
        self.part(self.records.as_ref(), Part::Records)
    }

    pub(crate) fn main(&self) -> Result<TableReader<'_>> {
        self.part(self.main.as_ref(), Part::Main)
    }

    pub(crate) fn runs(&self) -> Result<TableReader<'_>> {
        self.part(self.runs.as_ref(), Part::Runs)
    }

    pub(crate) fn sets(&self) -> Result<TableReader<'_>> {
        self.part(self.sets.as_ref(), Part::Sets)
    }

    /// The options of the table.
    #[must_use]
    pub fn options(&self) -> &HashOptions {
        &self.options
    }

    /// Statistics of the table.
    ///
    /// # Errors
    /// A damaged page.
    pub fn stat(&self) -> Result<HashStat> {
        let runs = &self.state.runs;
        Ok(HashStat {
            records: self.records()?.len(),
            next_record: self.state.next_record,
            dead: self.state.dead,
            main_keys: self.state.main_keys,
            main_bytes: self.state.main_bytes,
            runs: runs.list.len() as u64,
            run_entries: runs.entries(),
            run_bytes: runs.bytes(),
        })
    }

    /// Counts lookups; returns whether to use the filters of the runs.
    pub(crate) fn prepare_filters(&self, lookups: u32) -> Result<bool> {
        let (runs, table) = (&self.state.runs, || self.filter_table());
        self.filters.prepare(runs, table, &self.r, lookups)
    }

    pub(crate) fn filter_table(&self) -> Result<TableReader<'_>> {
        part(&self.root, &self.r, Part::Filters)
    }

    /// The newest record of a key; `None` if the key does not exist.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn get(&self, key: &[u8]) -> Result<Option<Record<'_>>> {
        if self.options.duplicates {
            let newest = self.newest_but(key, RoaringTreemap::new())?;
            return newest.map(|number| self.expect(number)).transpose();
        }
        self.newest(key, |number, folded| {
            let record = self.expect(number)?;
            Ok(self.is_of_key(&record, folded).then_some(record))
        })
    }

    /// Whether a key exists. A record is read only if the index holds hashes, to compare its key.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn contains(&self, key: &[u8]) -> Result<bool> {
        if self.options.duplicates {
            return Ok(self.newest_but(key, RoaringTreemap::new())?.is_some());
        }
        let newest = self.newest(key, |number, folded| {
            Ok(self.has_key(number, folded)?.then_some(()))
        })?;
        Ok(newest.is_some())
    }

    /// Finds the newest record of a key in a table without duplicates. Calls `read` with the number of the record and
    /// the folded key, and returns its result. If `read` returns `None`, because the record has another key, it is
    /// called with the next candidate.
    fn newest<T>(
        &self,
        key: &[u8],
        read: impl Fn(u64, &[u8]) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let folded = self.options.folded(key);
        let index_key = self.options.index_key(&folded);
        let mut newest = Vec::new();
        if !self.state.runs.is_empty() {
            let runs = self.runs()?;
            let is_filtered = self.prepare_filters(1)?;
            for (index, run) in self.state.runs.with_key(&index_key).rev() {
                if is_filtered && !self.filters.may_have(index, &index_key, &self.r)? {
                    continue;
                }
                newest.clear();
                in_run(&runs, &self.r, run.number, &index_key, &mut |payload| {
                    newest.push(Action::decode(payload)?);
                    Ok(())
                })?;
                if let Some(found) = self.first_of_key(&newest, &folded, &read)? {
                    return Ok(found);
                }
            }
        }
        newest.clear();
        in_table(&self.main()?, &self.r, &index_key, &mut |payload| {
            newest.push(Action::decode(payload)?);
            Ok(())
        })?;
        Ok(self.first_of_key(&newest, &folded, &read)?.flatten())
    }

    /// The newest record of a key among the entries of its index key, which are sorted from oldest to newest:
    /// `Some(None)` if the key was removed.
    fn first_of_key<T>(
        &self,
        actions: &[Action],
        folded: &[u8],
        read: impl Fn(u64, &[u8]) -> Result<Option<T>>,
    ) -> Result<Option<Option<T>>> {
        for action in actions.iter().rev() {
            match *action {
                Action::Set(number) => {
                    if let Some(found) = read(number, folded)? {
                        return Ok(Some(Some(found)));
                    }
                }
                Action::Remove(number) | Action::RemoveOne(number) => {
                    if self.has_key(number, folded)? {
                        return Ok(Some(None));
                    }
                }
                Action::InSets => {}
            }
        }
        Ok(None)
    }

    /// Number of the newest record of a key in a table with duplicates, ignoring the records in `removed`.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// A descent for each run and for the main table, and a record for each entry in a run that removes a single
    /// record. If the index holds hashes, records are read from newest to oldest until one has this key.
    pub fn newest_but(&self, key: &[u8], mut removed: RoaringTreemap) -> Result<Option<u64>> {
        let folded = self.options.folded(key);
        let index_key = self.options.index_key(&folded);
        for action in self.actions(&index_key)?.into_iter().rev() {
            match action {
                Action::Set(number) => {
                    if !removed.contains(number) && self.has_key(number, &folded)? {
                        return Ok(Some(number));
                    }
                }
                Action::Remove(number) => {
                    if self.has_key(number, &folded)? {
                        return Ok(None);
                    }
                }
                Action::RemoveOne(number) => {
                    removed.insert(record::removed_by(&self.records()?, &self.r, number)?);
                }
                Action::InSets => {
                    let set_key = duplicates_key(&index_key);
                    return sets::last_where(&self.sets()?, &self.r, &set_key, &mut |number| {
                        Ok(!removed.contains(number) && self.has_key(number, &folded)?)
                    });
                }
            }
        }
        Ok(None)
    }

    /// Whether a record with this number exists and assigns a value to the key. Reads no value.
    pub(crate) fn is_set(&self, number: u64, folded: &[u8]) -> Result<bool> {
        match self.records()?.get(&self.r, &number.to_be_bytes())? {
            Some(value) => {
                let bytes = record::start_of(number, &value)?;
                record::is_set(number, &bytes, folded, &self.options)
            }
            None => Ok(false),
        }
    }

    /// Whether a record with the index key of `folded` has exactly this key. Reads no value.
    fn has_key(&self, number: u64, folded: &[u8]) -> Result<bool> {
        Ok(!self.options.is_hashed()
            || record::folded_key(&self.records()?, &self.r, number, &self.options)? == folded)
    }

    fn is_of_key(&self, record: &Record<'_>, folded: &[u8]) -> bool {
        !self.options.is_hashed() || *self.options.folded(record.key()) == *folded
    }

    /// The record with this number. It must exist, because the index refers to it; otherwise an error is returned.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn expect(&self, number: u64) -> Result<Record<'_>> {
        record::expect(&self.records()?, &self.r, number)
    }

    /// The record with this number, if it still exists. This includes records that were replaced or removed and are
    /// kept as history or until compaction.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn record(&self, number: u64) -> Result<Option<Record<'_>>> {
        record::get(&self.records()?, &self.r, number)
    }

    /// All entries of an index key, oldest first.
    fn actions(&self, index_key: &[u8]) -> Result<Vec<Action>> {
        let mut actions = Vec::new();
        let mut push = |payload: &[u8]| {
            actions.push(Action::decode(payload)?);
            Ok(())
        };
        in_table(&self.main()?, &self.r, index_key, &mut push)?;
        if !self.state.runs.is_empty() {
            let runs = self.runs()?;
            let is_filtered = self.prepare_filters(1)?;
            for (index, run) in self.state.runs.with_key(index_key) {
                if is_filtered && !self.filters.may_have(index, index_key, &self.r)? {
                    continue;
                }
                in_run(&runs, &self.r, run.number, index_key, &mut push)?;
            }
        }
        Ok(actions)
    }

    /// The numbers of all records of a key; at most one in a table without duplicates.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// Two page descents, and another one for each block of 65,536 record numbers that contains records of the key. In
    /// a table with hashed keys, each record is read to compare its key.
    pub fn duplicates(&self, key: &[u8]) -> Result<RoaringTreemap> {
        let folded = self.options.folded(key);
        let index_key = self.options.index_key(&folded);
        let actions = self.actions(&index_key)?;
        self.live(&index_key, &actions, Some(&folded))
    }

    /// The records that remain after applying the entries of an index key: the records of the key `folded`, or of all
    /// keys with this index key.
    pub(crate) fn live(
        &self,
        index_key: &[u8],
        actions: &[Action],
        folded: Option<&[u8]>,
    ) -> Result<RoaringTreemap> {
        let mut live = RoaringTreemap::new();
        let hashed = self.options.is_hashed();
        for action in actions {
            match *action {
                Action::Set(number) => {
                    if !self.options.duplicates {
                        self.remove_others(&mut live, number)?;
                    }
                    live.insert(number);
                }
                Action::Remove(number) => self.remove_others(&mut live, number)?,
                Action::RemoveOne(number) => {
                    live.remove(record::removed_by(&self.records()?, &self.r, number)?);
                }
                Action::InSets => {
                    live |= sets::get(&self.sets()?, &self.r, &duplicates_key(index_key))?
                }
            }
        }
        if let Some(folded) = folded.filter(|_| hashed) {
            let mut of_key = RoaringTreemap::new();
            for number in &live {
                if self.has_key(number, folded)? {
                    of_key.insert(number);
                }
            }
            return Ok(of_key);
        }
        Ok(live)
    }

    /// Removes the records with the key of record `number` from `live`. All members of `live` have the same index key.
    fn remove_others(&self, live: &mut RoaringTreemap, number: u64) -> Result<()> {
        if !self.options.is_hashed() || live.is_empty() {
            live.clear();
            return Ok(());
        }
        let records = Records {
            table: self.records()?,
            r: &self.r,
            options: &self.options,
        };
        *live -= records.of_same_key(live, number)?;
        Ok(())
    }

    /// The versions of a key that are kept, newest first: the current one, if the key exists, and the history that the
    /// table keeps, including removals of the key. A table without history has only the current records.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn history(&self, key: &[u8]) -> Result<Vec<Record<'_>>> {
        let folded = self.options.folded(key);
        let index_key = self.options.index_key(&folded);
        let actions = self.actions(&index_key)?;
        let numbers = match self.options.history {
            History::None => self.live(&index_key, &actions, None)?,
            History::Last(_) | History::All => {
                let mut numbers = sets::get(&self.sets()?, &self.r, &versions_key(&index_key))?;
                numbers.extend(actions.iter().map(|action| action.record()));
                numbers
            }
        };
        let most = match self.options.history {
            History::Last(versions) => versions as usize + 1,
            History::None | History::All => usize::MAX,
        };
        let mut versions = Vec::new();
        for number in numbers.iter().rev() {
            if versions.len() == most {
                break;
            }
            let record = self.expect(number)?;
            if self.is_of_key(&record, &folded) {
                versions.push(record);
            }
        }
        Ok(versions)
    }

    /// Calls `each` with the records of the store in the order in which they were written, beginning at the number
    /// `from`, until it returns false. This includes records that are replaced or removed.
    ///
    /// # Errors
    /// A damaged or unreadable page; errors of `each`.
    pub fn each_record(
        &self,
        from: u64,
        each: &mut dyn FnMut(Record<'_>) -> Result<bool>,
    ) -> Result<()> {
        let mut rows = self.records()?.cursor(&self.r)?;
        let mut there = rows.seek_ge(&from.to_be_bytes())?;
        while there {
            let number = record::number_of(rows.key())?;
            if !each(Record::of_value(number, rows.value()?)?)? {
                break;
            }
            there = rows.next()?;
        }
        Ok(())
    }
}
