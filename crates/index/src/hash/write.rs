//! Stores the records of a transaction, merges runs into the main table, and frees space.
//!
//! Storing n records adds one run of n entries. While runs are waiting to be merged into the main table, each store
//! also merges about twice as many entries into it as it adds, in steps of at least `merge_entries`. So the size of all
//! runs stays below a share of the main table. From time to time a store merges runs of similar size with each other
//! (`runs/write.rs`): the size of the largest run bounds this work, regardless of the size of the commit.

use crate::block::BlockBuilder;
use crate::hash::buffer::Buffer;
use crate::hash::entry::{Action, RECORDS_MAX};
use crate::hash::main_table;
use crate::hash::opened::Opened;
use crate::hash::options::HashOptions;
use crate::hash::read::HashReader;
use crate::hash::record::{self, Kind, RECORD_VALUE_MAX, Record};
use crate::hash::settle::{DEAD, HashRules};
use crate::hash::state::State;
use crate::parts::{Part, change, part, row};
use crate::postings::sets;
use crate::runs::write::{add_run, begin_merge, take_merged};
use roaring::RoaringTreemap;
use std::sync::{Arc, OnceLock};
use tidalite_kv::Tree;
use tidalite_pager::{Error, PageRead, PageWrite, Result};

/// Merging into the main table begins when the bytes of the runs exceed the bytes of the main table divided by this.
const MAIN_SHARE: u64 = 4;
/// Default of `HashWriter::with_run_bytes`.
pub const RUN_BYTES_DEFAULT: u64 = if cfg!(test) { 2 << 10 } else { 1 << 20 };

/// A hash table in a write transaction: its options and state, and its records that are not stored yet.
///
/// The caller keeps the root of the table and passes it to each call.
#[derive(Clone, Debug)]
pub struct HashWriter {
    pub(crate) options: HashOptions,
    pub(crate) state: State,
    pub(crate) buffer: Buffer,
    /// Runs are merged into the main table only if they have at least this many bytes in total.
    run_bytes: u64,
    /// The stored table, as opened since its last change.
    opened: OnceLock<Arc<Opened>>,
    /// The folded key of the last call of `has_record`, and the numbers of the key's records.
    of_key: Option<(Vec<u8>, RoaringTreemap)>,
}

/// The state of a key according to the records in memory.
#[derive(Debug)]
pub enum Buffered {
    /// Number of its newest record.
    Record(u64),
    /// The key does not exist.
    Removed,
    /// The stored table must be read, ignoring these records of the key, which were removed one by one.
    Stored(RoaringTreemap),
}

impl HashWriter {
    /// Sets the number of bytes of runs at which merging into the main table begins. A smaller number also makes the
    /// steps smaller: fewer entries are merged at a time, and fewer dead records are enough for a compaction.
    #[must_use]
    pub fn with_run_bytes(mut self, bytes: u64) -> Self {
        self.run_bytes = bytes;
        self
    }

    /// Minimum number of entries that are merged into the main table at a time: 4096 by default.
    fn merge_entries(&self) -> u64 {
        (self.run_bytes / 256).clamp(16, 1 << 16)
    }

    /// Dead records are compacted automatically once there are this many and at least as many as live records: 65,536
    /// by default.
    fn dead_min(&self) -> u64 {
        (self.run_bytes / 16).max(16)
    }

    /// Creates a hash table in an empty table.
    ///
    /// # Errors
    /// A full disk; a damaged page.
    pub fn create<W: PageWrite>(root: &mut Tree, w: &mut W, options: HashOptions) -> Result<Self> {
        let state = State::default();
        root.insert(w, &Part::Options.key(), &options.encode())?;
        root.insert(w, &Part::State.key(), &state.encode())?;
        Ok(Self::with(options, state))
    }

    /// Opens a hash table.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn open<R: PageRead>(root: &Tree, r: &R) -> Result<Self> {
        let options = HashOptions::decode(&row(root, r, Part::Options)?)?;
        let state = State::decode(&row(root, r, Part::State)?)?;
        Ok(Self::with(options, state))
    }

    pub(crate) fn with(options: HashOptions, state: State) -> Self {
        Self {
            options,
            buffer: Buffer::new(state.next_record),
            state,
            run_bytes: RUN_BYTES_DEFAULT,
            opened: OnceLock::new(),
            of_key: None,
        }
    }

    /// Makes `number` the number of the next record. Tests use it to reach numbers for which they would need too many
    /// records.
    #[cfg(test)]
    pub(crate) fn start_at(&mut self, number: u64) {
        self.state.next_record = number;
        self.buffer.reset(number);
    }

    /// The options of the table.
    #[must_use]
    pub fn options(&self) -> &HashOptions {
        &self.options
    }

    /// Whether there are records to store.
    #[must_use]
    pub fn is_stored(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Whether the records take so much memory that they should be stored.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.buffer.is_full()
    }

    /// Sets a key: adds a record, and returns its number. The record replaces the newest one of the key, unless the
    /// table allows duplicates.
    ///
    /// # Errors
    /// `Limit` for a key or a value that is too long; `Refused` for a key that is not UTF-8 in a table that ignores
    /// case.
    pub fn set(&mut self, key: &[u8], value: &[u8]) -> Result<u64> {
        if value.len() > RECORD_VALUE_MAX {
            return Err(Error::Limit {
                what: "bytes of a value of the hash table",
                found: value.len() as u64,
                limit: RECORD_VALUE_MAX as u64,
            });
        }
        self.push(Kind::Set, key, value)
    }

    /// Removes a key with all its records. The key need not exist. Returns the number of the record that stores the
    /// removal.
    ///
    /// # Errors
    /// As for `set`.
    pub fn remove(&mut self, key: &[u8]) -> Result<u64> {
        self.push(Kind::Remove, key, &[])
    }

    /// Removes one record of a key, in a table with duplicates. The record must belong to the key.
    ///
    /// # Errors
    /// As for `set`.
    pub fn remove_record(&mut self, key: &[u8], record: u64) -> Result<u64> {
        self.push(Kind::RemoveOne, key, &record.to_be_bytes())
    }

    fn push(&mut self, kind: Kind, key: &[u8], value: &[u8]) -> Result<u64> {
        self.options.check_key(key)?;
        if self.buffer.next() >= RECORDS_MAX {
            return Err(Error::Limit {
                what: "records of a hash table",
                found: RECORDS_MAX + 1,
                limit: RECORDS_MAX,
            });
        }
        let number = self.buffer.push(&self.options, kind, key, value);
        if let Some((of_key, live)) = &mut self.of_key
            && *self.options.folded(key) == **of_key
        {
            match (kind, value.first_chunk()) {
                (Kind::Set, _) => drop(live.insert(number)),
                (Kind::RemoveOne, Some(removed)) => drop(live.remove(u64::from_be_bytes(*removed))),
                _ => live.clear(),
            }
        }
        Ok(number)
    }

    /// State of a key according to the records not stored yet.
    ///
    /// # Errors
    /// Only damage.
    pub fn buffered(&self, key: &[u8]) -> Result<Buffered> {
        let mut removed = RoaringTreemap::new();
        let mut found = None;
        self.each_of_key(key, &mut |number, action| {
            found = match action {
                Action::Set(_) if removed.contains(number) => None,
                Action::RemoveOne(one) => {
                    removed.insert(one);
                    None
                }
                Action::Set(_) => Some(Buffered::Record(number)),
                _ => Some(Buffered::Removed),
            };
            found.is_some()
        })?;
        Ok(found.unwrap_or(Buffered::Stored(removed)))
    }

    /// A record that is in memory.
    ///
    /// # Errors
    /// Only damage.
    pub fn buffered_record(&self, number: u64) -> Result<Option<Record<'static>>> {
        let bytes = self.buffer.record(number);
        bytes
            .map(|bytes| Record::of_bytes(number, bytes))
            .transpose()
    }

    /// Whether a key has a record, in a table with duplicates.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// As for `HashReader::duplicates`, but free if the last call that found a record had the same key.
    pub fn has_record<R: PageRead>(
        &mut self,
        root: &Tree,
        r: R,
        key: &[u8],
        record: u64,
    ) -> Result<bool> {
        let folded = self.options.folded(key);
        if let Some((_, live)) = self.of_key.as_ref().filter(|(of, _)| **of == *folded) {
            return Ok(live.contains(record));
        }
        let reader = self.reader(root, r)?;
        let sets_key = match self.buffer.record(record) {
            Some(bytes) => record::is_set(record, bytes, &folded, &self.options)?,
            None => reader.is_set(record, &folded)?,
        };
        if !sets_key {
            return Ok(false);
        }
        let (mut live, mut removed) = (RoaringTreemap::new(), RoaringTreemap::new());
        let mut is_stored = true;
        self.each_of_key(key, &mut |number, action| {
            match action {
                Action::Set(_) => drop(live.insert(number)),
                Action::RemoveOne(one) => drop(removed.insert(one)),
                _ => is_stored = false,
            }
            !is_stored
        })?;
        if is_stored {
            live |= reader.duplicates(key)?;
        }
        live -= removed;
        let has_it = live.contains(record);
        self.of_key = Some((folded.into_owned(), live));
        Ok(has_it)
    }

    /// Calls `each` with the numbers and actions of the records of a key that are in memory, newest first, until it
    /// returns true. In this call, `RemoveOne` comes with the number of the removed record.
    fn each_of_key(&self, key: &[u8], each: &mut dyn FnMut(u64, Action) -> bool) -> Result<()> {
        self.buffer
            .each_of_key(&self.options, key, &mut |number, parts| {
                let action = match (parts.kind, parts.value.first_chunk()) {
                    (Kind::RemoveOne, Some(one)) => Action::RemoveOne(u64::from_be_bytes(*one)),
                    (kind, _) => kind.action(number),
                };
                Ok(each(number, action))
            })
    }

    /// A reader of the stored table, without the records in memory.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn reader<R: PageRead>(&self, root: &Tree, r: R) -> Result<HashReader<R>> {
        if let Some(opened) = self.opened.get().filter(|opened| opened.root == *root) {
            return Ok(HashReader::of(Arc::clone(opened), r));
        }
        let opened = Opened::new(root, &r, self.options, self.state.clone())?;
        let opened = Arc::new(opened);
        // Another thread may have set it first, with the same result.
        let _ = self.opened.set(Arc::clone(&opened));
        Ok(HashReader::of(opened, r))
    }

    /// Stores the records that are in memory.
    ///
    /// # Errors
    /// A damaged page, a full disk: the table is then half changed, and the transaction must be rolled back.
    pub fn store<W: PageWrite>(&mut self, root: &mut Tree, w: &mut W) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let buffer = &self.buffer;
        change(root, w, Part::Records, &mut |w, records| {
            records.extend_lent(w, |put| {
                buffer.each_record(&mut |number, bytes| put(&number.to_be_bytes(), bytes))
            })
        })?;
        let entries = self.buffer.entries();
        self.state.next_record = self.buffer.next();
        self.buffer.reset(self.state.next_record);
        self.index(root, w, &entries)?;
        self.compact_dead(root, w)?;
        self.put_state(root, w)
    }

    /// Adds entries to the index.
    pub(crate) fn index<W: PageWrite>(
        &mut self,
        root: &mut Tree,
        w: &mut W,
        entries: &BlockBuilder,
    ) -> Result<()> {
        let Self { options, state, .. } = self;
        let mut rules = HashRules::new(options);
        add_run(root, w, &mut state.runs, entries, &mut rules)?;
        state.dead += rules.finish(root, w)?;
        let limit = self.run_bytes.max(state.main_bytes / MAIN_SHARE);
        if state.runs.merging == 0 && state.runs.bytes() > limit {
            begin_merge(&mut state.runs);
        }
        self.merge_due(root, w)
    }

    /// Merges entries into the main table, as many as are due for the runs that were added since the merge began.
    fn merge_due<W: PageWrite>(&mut self, root: &mut Tree, w: &mut W) -> Result<()> {
        let runs = &self.state.runs;
        let new = &runs.list[runs.merging..];
        let wanted: u64 = new.iter().map(|run| 2 * run.entries).sum();
        while self.state.runs.merging > 0 && self.state.runs.merged + self.merge_entries() <= wanted
        {
            self.merge_step(root, w)?;
        }
        Ok(())
    }

    /// Merges some entries into the main table, as the next step.
    fn merge_step<W: PageWrite>(&mut self, root: &mut Tree, w: &mut W) -> Result<()> {
        let count = self.merge_entries() as usize;
        let Self { options, state, .. } = self;
        let mut rules = HashRules::new(options);
        if let Some(taken) = take_merged(root, w, &mut state.runs, count, &mut rules)? {
            state.dead += rules.finish(root, w)?;
            main_table::merge_in(root, w, state, &taken, &mut rules)?;
            state.dead += rules.finish(root, w)?;
        }
        Ok(())
    }

    pub(crate) fn put_state<W: PageWrite>(&mut self, root: &mut Tree, w: &mut W) -> Result<()> {
        self.opened = OnceLock::new();
        root.insert(w, &Part::State.key(), &self.state.encode())
            .map(drop)
    }

    /// Merges all runs into the main table, and removes all dead records.
    ///
    /// # Errors
    /// As for `store`.
    pub fn compact<W: PageWrite>(&mut self, root: &mut Tree, w: &mut W) -> Result<()> {
        self.store(root, w)?;
        while !self.state.runs.is_empty() {
            begin_merge(&mut self.state.runs);
            self.merge_step(root, w)?;
        }
        self.remove_dead(root, w, u64::MAX)?;
        self.put_state(root, w)
    }

    /// Removes dead records in one step if there are many of them.
    fn compact_dead<W: PageWrite>(&mut self, root: &mut Tree, w: &mut W) -> Result<()> {
        let rows = part(root, &*w, Part::Records)?.len();
        if self.state.dead < self.dead_min() || self.state.dead < rows / 2 {
            return Ok(());
        }
        self.remove_dead(root, w, 1)
    }

    /// Removes the dead records in the first `containers` containers that have any. The lowest numbers are removed
    /// first: otherwise the removal of a key could be deleted while an older record of the key still exists, and
    /// rebuilding the index would make that record valid again.
    fn remove_dead<W: PageWrite>(
        &mut self,
        root: &mut Tree,
        w: &mut W,
        mut containers: u64,
    ) -> Result<()> {
        while containers > 0 {
            let found = {
                let table = part(root, &*w, Part::Sets)?;
                sets::first_container(&table, &*w, DEAD)?
            };
            let Some(dead) = found else {
                break;
            };
            change(root, w, Part::Records, &mut |w, records| {
                let mut numbers = dead.iter().peekable();
                while let Some(first) = numbers.next() {
                    let mut last = first;
                    while numbers.next_if_eq(&(last + 1)).is_some() {
                        last += 1;
                    }
                    let end = (last + 1).to_be_bytes();
                    records.remove_range(w, &first.to_be_bytes(), &end)?;
                }
                Ok(())
            })?;
            change(root, w, Part::Sets, &mut |w, table| {
                sets::change_set(table, w, DEAD, &RoaringTreemap::new(), &dead)
            })?;
            self.state.dead = self.state.dead.saturating_sub(dead.len());
            containers -= 1;
        }
        Ok(())
    }

    /// Removes all keys and records, stored or not. New records do not reuse the old numbers.
    ///
    /// # Errors
    /// As for `store`.
    pub fn clear<W: PageWrite>(&mut self, root: &mut Tree, w: &mut W) -> Result<()> {
        let next_record = self.buffer.next();
        for stale in [
            Part::Records,
            Part::Main,
            Part::Runs,
            Part::Filters,
            Part::Sets,
        ] {
            change(root, w, stale, &mut |w, table| table.clear(w))?;
        }
        self.buffer.reset(next_record);
        self.of_key = None;
        self.state = State {
            next_record,
            ..State::default()
        };
        self.put_state(root, w)
    }
}
