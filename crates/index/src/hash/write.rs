//! Storing the records of a transaction, merging runs into the main table, and giving space back.
//!
//! A store of n records adds one run of n entries. While runs wait for the main table, each store also merges about twice
//! as many entries into it as it adds, in steps of at least `merge_entries`, so the runs together stay below a share of the
//! main table. Now and then a store merges runs of one size with each other (`runs/write.rs`): that work is bounded by the
//! size of the largest run, not by the size of the commit.

use crate::block::BlockBuilder;
use crate::hash::buffer::Buffer;
use crate::hash::entry::RECORDS_MAX;
use crate::hash::main_table;
use crate::hash::options::HashOptions;
use crate::hash::read::HashReader;
use crate::hash::record::{self, Kind, RECORD_VALUE_MAX, Record};
use crate::hash::settle::{DEAD, HashRules};
use crate::hash::state::State;
use crate::parts::{Part, change, part, row};
use crate::postings::sets;
use crate::runs::write::{add_run, begin_merge, take_merged};
use roaring::RoaringTreemap;
use tidalite_kv::Tree;
use tidalite_pager::{Error, PageRead, PageWrite, Result};

/// Merging into the main table begins when the runs have this share of its bytes.
const MAIN_SHARE: u64 = 4;
/// Default of `HashWriter::with_run_bytes`.
pub const RUN_BYTES_DEFAULT: u64 = if cfg!(test) { 2 << 10 } else { 1 << 20 };

/// A hash table in a write transaction: its options and state, and records that are not stored yet.
///
/// The caller keeps the root of the table and passes it to each call.
#[derive(Clone, Debug)]
pub struct HashWriter {
    options: HashOptions,
    state: State,
    buffer: Buffer,
    /// Runs of fewer bytes in all are not merged into the main table.
    run_bytes: u64,
}

impl HashWriter {
    /// Sets the number of bytes of runs from which they are merged into the main table. Smaller steps follow from a
    /// smaller number: fewer entries are merged at a time, and fewer dead records wait for compaction.
    #[must_use]
    pub fn with_run_bytes(mut self, bytes: u64) -> Self {
        self.run_bytes = bytes;
        self
    }

    /// Merging into the main table takes at least this many entries at a time: 4096 by default.
    fn merge_entries(&self) -> u64 {
        (self.run_bytes / 256).clamp(16, 1 << 16)
    }

    /// Records are compacted by themselves when this many are dead, and as many as are alive: 65,536 by default.
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
        Ok(Self {
            options,
            state,
            buffer: Buffer::default(),
            run_bytes: RUN_BYTES_DEFAULT,
        })
    }

    /// Opens a hash table.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn open<R: PageRead>(root: &Tree, r: &R) -> Result<Self> {
        let options = HashOptions::decode(&row(root, r, Part::Options)?)?;
        let state = State::decode(&row(root, r, Part::State)?)?;
        let buffer = Buffer::new(state.next_record);
        Ok(Self {
            options,
            state,
            buffer,
            run_bytes: RUN_BYTES_DEFAULT,
        })
    }

    /// Whether a table has the options of a hash table, which nothing else tells.
    #[must_use]
    pub fn can_recover<R: PageRead>(root: &Tree, r: &R) -> bool {
        let options = row(root, r, Part::Options);
        options.is_ok_and(|options| HashOptions::decode(&options).is_ok())
    }

    /// Opens a hash table of which parts may be lost, and builds everything that can be built from the records. Records
    /// that cannot be decoded are removed. A record that was replaced or removed comes back if the record that says so
    /// is lost, unless compaction was going to remove it.
    ///
    /// # Errors
    /// `Corrupt` if the options are lost; as for `store`.
    pub fn recover<W: PageWrite>(root: &mut Tree, w: &mut W) -> Result<Self> {
        let options = HashOptions::decode(&row(root, &*w, Part::Options)?)?;
        let state = row(root, &*w, Part::State).and_then(|row| State::decode(&row));
        // What is left of the set of dead records keeps replaced records from coming back.
        let dead = part(root, &*w, Part::Sets).and_then(|sets| sets::get(&sets, &*w, DEAD));
        remove_all_but_records(root, w)?;
        remove_stale_records(root, w, &options, &dead.unwrap_or_default())?;
        let next_record = state.map_or(0, |state| state.next_record);
        let mut table = Self {
            options,
            state: State {
                next_record,
                ..State::default()
            },
            buffer: Buffer::default(),
            run_bytes: RUN_BYTES_DEFAULT,
        };
        table.rebuild(root, w)?;
        table.buffer.reset(table.state.next_record);
        Ok(table)
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
    /// `Limit` for a key or a value that is too long; `Unsupported` for a key that is not UTF-8 in a table that ignores
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

    /// Removes a key with all its records. The key need not exist. Returns the number of the record that states it.
    ///
    /// # Errors
    /// As for `set`.
    pub fn remove(&mut self, key: &[u8]) -> Result<u64> {
        self.push(Kind::Remove, key, &[])
    }

    /// Removes one record of a key, in a table with duplicates. The record must be one of the key.
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
        Ok(self.buffer.push(&self.options, kind, key, value))
    }

    /// The newest record of a key that is still in memory: `Some(None)` if it removes the key. `None` if the
    /// answer is in the stored table.
    ///
    /// # Errors
    /// None that a healthy table gives.
    pub fn buffered(&self, key: &[u8]) -> Result<Option<Option<Record<'static>>>> {
        let mut found = None;
        self.buffer
            .each_of_key(&self.options, key, &mut |number, parts, bytes| {
                found = Some(match parts.kind {
                    Kind::Set => Some(Record::of_bytes(number, bytes)?),
                    Kind::Remove | Kind::RemoveOne => None,
                });
                Ok(true)
            })?;
        Ok(found)
    }

    /// A reader of the stored table; the records in memory must have been stored.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn reader<R: PageRead>(&self, root: &Tree, r: R) -> Result<HashReader<R>> {
        HashReader::with(root, r, self.options, self.state.clone())
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
    fn index<W: PageWrite>(
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

    /// Merges entries into the main table, as many as the runs that came after the merge began demand.
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

    /// Merges the next entries into the main table.
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

    fn put_state<W: PageWrite>(&self, root: &mut Tree, w: &mut W) -> Result<()> {
        root.insert(w, &Part::State.key(), &self.state.encode())
            .map(drop)
    }

    /// Merges all runs into the main table, and removes all records that are dead.
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

    /// Removes dead records if there are many, in one step.
    fn compact_dead<W: PageWrite>(&mut self, root: &mut Tree, w: &mut W) -> Result<()> {
        let rows = part(root, &*w, Part::Records)?.len();
        if self.state.dead < self.dead_min() || self.state.dead < rows / 2 {
            return Ok(());
        }
        self.remove_dead(root, w, 1)
    }

    /// Removes the dead records of the first `containers` containers that have some. The lowest numbers go first:
    /// otherwise the removal of a key could be gone while an older record of the key is still there, and rebuilding the
    /// index would bring the record back.
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

    /// Removes all keys and records, stored or not. The numbers of records go on.
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
        self.state = State {
            next_record,
            ..State::default()
        };
        self.put_state(root, w)
    }

    /// Builds the index anew from the records.
    ///
    /// # Errors
    /// As for `store`; `Corrupt` for a row of the record store that is no record.
    pub fn rebuild<W: PageWrite>(&mut self, root: &mut Tree, w: &mut W) -> Result<()> {
        self.store(root, w)?;
        for stale in [Part::Main, Part::Runs, Part::Filters, Part::Sets] {
            change(root, w, stale, &mut |w, table| table.clear(w))?;
        }
        self.state = State {
            next_record: self.state.next_record,
            ..State::default()
        };
        let mut from = 0;
        loop {
            let mut batch = Buffer::new(from);
            let mut numbers = Vec::new();
            {
                let records = part(root, &*w, Part::Records)?;
                let mut rows = records.cursor(&*w)?;
                let mut there = rows.seek_ge(&u64::to_be_bytes(from))?;
                while there && !batch.is_full() {
                    let number = record::number_of(rows.key())?;
                    let value = rows.value()?;
                    let bytes = record::start_of(number, &value)?;
                    let parts = checked(number, &bytes, &self.options)?;
                    // Only the key matters to the index.
                    batch.push(&self.options, parts.kind, parts.key, &[]);
                    numbers.push(number);
                    from = number + 1;
                    there = rows.next()?;
                }
            }
            if batch.is_empty() {
                break;
            }
            let entries = batch.entries_of(&numbers);
            self.index(root, w, &entries)?;
        }
        self.state.next_record = self.state.next_record.max(from);
        self.put_state(root, w)
    }
}

/// Removes all rows of the root table but the options and the records.
fn remove_all_but_records<W: PageWrite>(root: &mut Tree, w: &mut W) -> Result<()> {
    let mut stale = Vec::new();
    {
        let mut rows = root.cursor(&*w);
        let mut there = rows.first()?;
        while there {
            let stays = match rows.is_nested() {
                true => rows.key() == Part::Records.key(),
                false => rows.key() == Part::Options.key(),
            };
            if !stays {
                stale.push(rows.key().to_vec());
            }
            there = rows.next()?;
        }
    }
    for key in stale {
        root.remove(w, &key)?;
    }
    Ok(())
}

/// Removes rows of the record store that are no records of a table with these options, and records that are dead.
///
/// Dead removals stay: they may concern older records whose part of the set of dead records is lost.
fn remove_stale_records<W: PageWrite>(
    root: &mut Tree,
    w: &mut W,
    options: &HashOptions,
    dead: &RoaringTreemap,
) -> Result<()> {
    let mut stale = Vec::new();
    {
        let records = part(root, &*w, Part::Records)?;
        let mut rows = records.cursor(&*w)?;
        let mut there = rows.first()?;
        while there {
            let is_kept = match (rows.is_nested(), record::number_of(rows.key())) {
                (false, Ok(number)) => {
                    let value = rows.value()?;
                    let bytes = record::start_of(number, &value)?;
                    let parts = checked(number, &bytes, options);
                    parts.is_ok_and(|parts| parts.kind != Kind::Set || !dead.contains(number))
                }
                _ => false,
            };
            if !is_kept {
                stale.push(rows.key().to_vec());
            }
            there = rows.next()?;
        }
    }
    if stale.is_empty() {
        return Ok(());
    }
    change(root, w, Part::Records, &mut |w, records| {
        for key in &stale {
            records.remove(w, key)?;
        }
        Ok(())
    })
}

/// Decodes the kind and the key of a record; an error if a table with these options cannot have the record.
fn checked<'b>(number: u64, bytes: &'b [u8], options: &HashOptions) -> Result<record::Parts<'b>> {
    let parts = record::decode(number, bytes)?;
    if number >= RECORDS_MAX {
        return Err(record::damaged(number, "a number of 2^46 or more"));
    }
    if parts.kind == Kind::RemoveOne && !options.duplicates {
        return Err(record::damaged(number, "a removal of one duplicate"));
    }
    match options.check_key(parts.key) {
        Ok(()) => Ok(parts),
        Err(error) => Err(record::damaged(number, error)),
    }
}
