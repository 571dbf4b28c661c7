//! The write-protocol monitor: a storage that wraps another storage and checks every write when it happens. It finds
//! errors in the order of writes in ordinary tests, without a crash.
//!
//! Rules
//! 1. A meta record of a new commit is written only after all data that this commit sees is synced. (Writes of a later
//!    commit or of an open transaction at the same time are exempt.)
//! 2. At every moment, some synced meta block holds the newest durable record.
//! 3. A page is never overwritten while it is in use, or while a live reader, the newest commit, the newest durable
//!    commit, the newest lazy commit, the flush in progress or, if it is kept, the previous durable commit sees it.
//!    Pages of the redo log that the newest durable record names are exempt. (The monitor computes by itself which
//!    commit sees a page, from the reports of each commit.)
//! 4. When a durable commit is reported, both copies of its record are synced.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidalite_base::{checksum, get_u32, get_u64};
use tidalite_disk::storage::{Committed, Growth, Observer, Places};
use tidalite_pager::{Header, Kind, Storage};

const BLOCK: u64 = 4096;
const HEAD: u64 = 6 * BLOCK;
/// Offset of the sequence number in a meta record, as in docs/format.md section 3.
const SEQUENCE_AT: usize = 48;
/// Offset of the page size in the superblock, as in docs/format.md section 2.
const PAGE_SIZE_AT: usize = 52;
/// Offset in a meta record of the location of the redo log.
const REDO_AT: usize = 1952;
/// Size in bytes of the units whose state is tracked; every page size is a multiple of it.
const UNIT: u64 = 512;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Record {
    sequence: u64,
    txn: u64,
    /// First page and number of pages of the redo log that the record names, if there is one.
    log: Option<(u64, u64)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    synced: Option<Record>,
    written: Option<Option<Record>>,
}

#[derive(Clone, Copy, Debug)]
struct Life {
    birth: u64,
    freed: Option<u64>,
    /// True if the commit that created this unit has left the write of the unit to a later commit.
    unwritten: bool,
    /// True if the later commit has written the unit. It may fail after that; then the unit is written again.
    written_late: bool,
}

#[derive(Debug, Default)]
struct State {
    page_size: u64,
    /// The state of each block of the file's head, by block number; 1, 2, 4 and 5 are meta blocks.
    slots: [Slot; 6],
    newest: Record,
    /// Units that are written but not synced yet, each with the number of its last write.
    unsynced: HashMap<u64, u64>,
    writes: u64,
    lives: HashMap<u64, Life>,
    any_unwritten: bool,
    readers: BTreeMap<u64, u64>,
    durable: u64,
    /// The transaction of the previous durable commit, if that commit is kept.
    older: Option<u64>,
    newest_txn: u64,
    /// The handle that committed `newest_txn`.
    newest_by: usize,
    flushing: Option<u64>,
    weak: Option<u64>,
    violations: Vec<String>,
}

/// A storage that checks every write. When it is dropped and has found violations that no test has taken, the test
/// fails.
pub struct Monitor {
    inner: Arc<dyn Storage>,
    shared: Arc<Shared>,
    /// Number of this handle among the handles that share the state.
    handle: usize,
}

/// The state that all handles on one storage share.
#[derive(Debug)]
pub(crate) struct Shared(Mutex<State>);

fn record(block: &[u8]) -> Option<Record> {
    let header = Header::decode(block);
    let sound = header.kind == Kind::Meta && checksum(&block[8..]) == get_u64(block, 0);
    sound.then(|| Record {
        sequence: get_u64(block, SEQUENCE_AT),
        txn: header.birth.0,
        log: Some((get_u64(block, REDO_AT), get_u64(block, REDO_AT + 8))).filter(|log| log.1 > 0),
    })
}

impl Monitor {
    /// Creates a monitor of a storage; the current content of the storage counts as synced.
    pub fn new(inner: Arc<dyn Storage>) -> Arc<Self> {
        Self::watching(inner, false)
    }

    /// Creates a monitor of a storage whose writers keep the previous durable commit (`Options::keep_older`).
    pub fn keeping_older(inner: Arc<dyn Storage>) -> Arc<Self> {
        Self::watching(inner, true)
    }

    fn watching(inner: Arc<dyn Storage>, keeps_older: bool) -> Arc<Self> {
        let mut head = [0; 64];
        let read = inner.read_at(0, &mut head);
        let mut state = State {
            page_size: read.map_or(0, |()| u64::from(get_u32(&head, PAGE_SIZE_AT))),
            ..State::default()
        };
        let len = inner.len().unwrap_or(0);
        for number in [1, 2, 4, 5] {
            let mut block = vec![0; BLOCK as usize];
            let at = number as u64 * BLOCK;
            if at + BLOCK <= len && inner.read_at(at, &mut block).is_ok() {
                state.slots[number].synced = record(&block);
            }
        }
        let mut records: Vec<Record> = state.slots.iter().filter_map(|slot| slot.synced).collect();
        records.sort_unstable();
        records.dedup();
        if let Some(newest) = records.pop() {
            state.newest = newest;
            state.newest_txn = newest.txn;
            state.durable = newest.txn;
        }
        if keeps_older {
            state.older = Some(records.pop().map_or(state.durable, |older| older.txn));
        }
        Self::sharing(inner, Arc::new(Shared(Mutex::new(state))))
    }

    /// Creates a monitor for another handle on a storage that is already monitored.
    pub(crate) fn sharing(inner: Arc<dyn Storage>, shared: Arc<Shared>) -> Arc<Self> {
        static HANDLES: AtomicUsize = AtomicUsize::new(1);
        Arc::new(Self {
            inner,
            shared,
            handle: HANDLES.fetch_add(1, Ordering::Relaxed),
        })
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn judge(&self, at: u64, pieces: &[&[u8]]) {
        let (mut state, mut place) = (self.state(), at);
        if at >= HEAD {
            state.writes_now(self.handle);
        }
        for piece in pieces {
            state.write(place, piece, &*self.inner);
            place += piece.len() as u64;
        }
    }

    /// Takes the violations found so far, so that the test does not fail when the monitor is dropped.
    pub fn take_violations(&self) -> Vec<String> {
        std::mem::take(&mut self.state().violations)
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let violations = self.take_violations();
            assert!(violations.is_empty(), "write protocol: {violations:#?}");
        }
    }
}

impl State {
    fn violated(&mut self, what: String) {
        if self.violations.len() < 20 {
            self.violations.push(what);
        }
    }

    fn write(&mut self, at: u64, bytes: &[u8], below: &dyn Storage) {
        if at >= HEAD {
            let known = self.violations.len();
            self.write_data(at, bytes.len() as u64);
            if self.violations.len() > known {
                // Pages of the redo log are rewritten in place, so a write of the bytes that are already there is not
                // an error.
                let mut before = vec![0; bytes.len()];
                if below.read_at(at, &mut before).is_ok() && before == bytes {
                    self.violations.truncate(known);
                }
            }
            self.writes += 1;
            for unit in at / UNIT..(at + bytes.len() as u64).div_ceil(UNIT) {
                self.unsynced.insert(unit, self.writes);
            }
            return;
        }
        let mut done = 0;
        while done < bytes.len() {
            let block_at = at + done as u64;
            let len = (BLOCK - block_at % BLOCK).min((bytes.len() - done) as u64) as usize;
            let number = (block_at / BLOCK) as usize;
            let whole = len as u64 == BLOCK;
            if number == 0 && whole {
                self.page_size = u64::from(get_u32(&bytes[done..], PAGE_SIZE_AT));
            }
            if [1, 2, 4, 5].contains(&number) {
                let found = whole.then(|| record(&bytes[done..done + len])).flatten();
                self.write_meta(number, found);
            }
            done += len;
        }
    }

    fn write_meta(&mut self, number: usize, found: Option<Record>) {
        if self.newest == Record::default() {
            // There is no durable record yet, because the file is being created.
            self.slots[number].written = Some(found);
            return;
        }
        let newer = |found: &Record| found.sequence > self.newest.sequence;
        if let Some(found) = found.filter(newer) {
            let sees = |unit: &&u64| {
                self.lives.get(unit).is_some_and(|life| {
                    life.birth <= found.txn && life.freed.is_none_or(|freed| found.txn < freed)
                })
            };
            let unsynced = self.unsynced.keys().filter(sees).min().copied();
            let missing = self
                .lives
                .iter()
                .filter(|(unit, life)| life.unwritten && !life.written_late && sees(unit));
            if let Some((unit, _)) = missing.min_by_key(|(unit, _)| **unit) {
                let byte = unit * UNIT;
                self.violated(format!(
                    "{found:?} sees byte {byte}, which was never written"
                ));
                return;
            }
            // Units that no commit has claimed yet belong to an open transaction, so they need not be synced.
            if let Some(unit) = unsynced {
                let byte = unit * UNIT;
                self.violated(format!(
                    "{found:?} is written before its data is synced (byte {byte})"
                ));
            }
        }
        let newest = self.newest;
        let safe = |(other, slot): (usize, &Slot)| {
            other != number && slot.written.is_none() && slot.synced == Some(newest)
        };
        if !self.slots.iter().enumerate().any(safe) {
            self.violated(format!(
                "block {number} is written while no other synced block holds {newest:?}"
            ));
        }
        self.slots[number].written = Some(found);
    }

    /// Another handle writes now: commits of the previous handle that were never recorded are lost, so the monitor
    /// forgets them.
    fn writes_now(&mut self, handle: usize) {
        let before = std::mem::replace(&mut self.newest_by, handle);
        if before == handle || before == 0 {
            return;
        }
        let recorded = [self.flushing, self.weak].into_iter().flatten();
        let recorded = recorded.fold(self.durable, u64::max);
        if self.newest_txn > recorded {
            self.newest_txn = recorded;
            self.lives.retain(|_, life| {
                life.freed = life.freed.filter(|freed| *freed <= recorded);
                life.birth <= recorded
            });
        }
    }

    fn write_data(&mut self, at: u64, len: u64) {
        let newest = self.newest_txn;
        let (page, pages) = self.newest.log.unwrap_or_default();
        let log = page * self.page_size / UNIT..(page + pages) * self.page_size / UNIT;
        for unit in at / UNIT..(at + len).div_ceil(UNIT) {
            if log.contains(&unit) {
                continue;
            }
            let life = self.lives.get_mut(&unit);
            match life.filter(|life| life.unwritten) {
                Some(life) => life.written_late = true,
                None => self.lose(unit * UNIT, UNIT, &[newest]),
            }
        }
    }

    /// Checks that a range may be overwritten: no reader, no durable commit, and none of the snapshots `besides` may
    /// see the range.
    fn lose(&mut self, at: u64, len: u64, besides: &[u64]) {
        let readers = self.readers.keys().map(|txn| (*txn, "of a reader"));
        let mut snapshots: Vec<(u64, &str)> = readers.collect();
        snapshots.push((self.durable, "durable"));
        snapshots.extend(self.older.map(|txn| (txn, "durable before")));
        snapshots.extend(besides.iter().map(|txn| (*txn, "the newest")));
        snapshots.extend(self.flushing.map(|txn| (txn, "being made durable")));
        snapshots.extend(self.weak.map(|txn| (txn, "lazy")));
        for unit in at / UNIT..(at + len).div_ceil(UNIT) {
            let Some(&life) = self.lives.get(&unit) else {
                continue;
            };
            let seen = |(s, _): &&(u64, &str)| {
                life.birth <= *s && life.freed.is_none_or(|freed| *s < freed)
            };
            if let Some((snapshot, whose)) = snapshots.iter().find(seen) {
                let byte = unit * UNIT;
                self.violated(format!(
                    "byte {byte} ({life:?}) is written over, and transaction {snapshot} ({whose}) sees it"
                ));
            }
        }
    }

    /// Marks the first `begun` writes as synced: the writes that were done when the sync began.
    fn synced(&mut self, begun: u64) {
        self.unsynced.retain(|_, write| *write > begun);
        for slot in &mut self.slots {
            if let Some(written) = slot.written.take() {
                slot.synced = written;
            }
        }
        let newest = self.slots.iter().filter_map(|slot| slot.synced).max();
        self.newest = newest.unwrap_or_default().max(self.newest);
        if self.durable == 0 {
            self.durable = self.newest.txn;
            self.newest_txn = self.newest.txn;
        }
    }
}

impl Storage for Monitor {
    fn read_at(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.inner.read_at(at, bytes)
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.judge(at, &[bytes]);
        self.inner.write_at(at, bytes)
    }

    fn write_pieces(&self, at: u64, pieces: &[&[u8]]) -> io::Result<()> {
        self.judge(at, pieces);
        self.inner.write_pieces(at, pieces)
    }

    fn write_back(&self, at: u64, len: u64) {
        self.inner.write_back(at, len);
    }

    fn writes_back(&self) -> bool {
        self.inner.writes_back()
    }

    fn write_passing(&self, at: u64, pieces: &[&[u8]]) -> io::Result<()> {
        self.judge(at, pieces);
        self.inner.write_passing(at, pieces)
    }

    fn places(&self) -> Option<Box<dyn Places>> {
        self.inner.places()
    }

    fn changed_in_place(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.judge(at, &[bytes]);
        self.inner.changed_in_place(at, bytes)
    }

    fn write_durably(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.judge(at, &[bytes]);
        self.inner.write_durably(at, bytes)?;
        let units = at / UNIT..(at + bytes.len() as u64).div_ceil(UNIT);
        self.state()
            .unsynced
            .retain(|unit, _| !units.contains(unit));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let begun = self.state().writes;
        self.inner.sync()?;
        self.state().synced(begun);
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        let begun = self.state().writes;
        self.inner.sync_all()?;
        self.state().synced(begun);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn grow(&self, len: u64, how: Growth) -> io::Result<()> {
        self.inner.grow(len, how)
    }

    fn cut(&self, len: u64) -> io::Result<()> {
        let end = self.inner.len()?.max(len);
        // Truncation may remove data at the end of the file only if that data was never durable.
        self.state().lose(len, end - len, &[]);
        self.inner.cut(len)
    }

    fn punch(&self, at: u64, len: u64) -> io::Result<bool> {
        self.state().write_data(at, len);
        self.inner.punch(at, len)
    }

    fn resizes(&self) -> bool {
        self.inner.resizes()
    }

    fn refresh(&self) -> io::Result<()> {
        self.inner.refresh()
    }

    fn mapped_page(&self, at: u64, len: usize) -> Option<&[u8]> {
        self.inner.mapped_page(at, len)
    }

    fn reads_single_pages(&self) -> bool {
        self.inner.reads_single_pages()
    }

    fn mapped_in_order(&self, at: u64, len: usize) -> Option<&[u8]> {
        self.inner.mapped_in_order(at, len)
    }

    fn reads_ahead_in_order(&self) -> bool {
        self.inner.reads_ahead_in_order()
    }

    fn lock_in_memory(&self, bytes: u64) -> io::Result<u64> {
        self.inner.lock_in_memory(bytes)
    }

    fn read_ahead(&self, at: u64, len: u64) -> io::Result<()> {
        self.inner.read_ahead(at, len)
    }

    fn mapped(&self, at: u64, len: usize) -> Option<&[u8]> {
        self.inner.mapped(at, len)
    }

    fn observer(&self) -> Option<&dyn Observer> {
        Some(self)
    }
}

impl Observer for Monitor {
    fn committed(&self, commit: &Committed<'_>) {
        let mut state = self.state();
        state.writes_now(self.handle);
        for &(at, len) in commit.allocated {
            for unit in at / UNIT..(at + len) / UNIT {
                let life = Life {
                    birth: commit.txn,
                    freed: None,
                    unwritten: false,
                    written_late: false,
                };
                state.lives.insert(unit, life);
            }
        }
        if commit.unwritten.is_empty() && state.any_unwritten {
            // This commit has written all data that earlier commits had left to a later commit.
            let lives = state.lives.values_mut();
            lives.for_each(|life| life.unwritten &= !life.written_late);
            state.any_unwritten = false;
        }
        state.any_unwritten |= !commit.unwritten.is_empty();
        for &(at, len) in commit.unwritten {
            for unit in at / UNIT..(at + len) / UNIT {
                if let Some(life) = state.lives.get_mut(&unit) {
                    life.unwritten = true;
                }
            }
        }
        for &(at, len, birth) in commit.freed {
            for unit in at / UNIT..(at + len) / UNIT {
                let known = state.lives.get(&unit);
                let life = Life {
                    birth,
                    freed: Some(commit.txn),
                    unwritten: known.is_some_and(|life| life.unwritten),
                    written_late: known.is_some_and(|life| life.written_late),
                };
                state.lives.insert(unit, life);
            }
        }
        state.newest_txn = commit.txn;
    }

    fn flush_began(&self, txn: u64) {
        self.state().flushing = Some(txn);
    }

    fn durable(&self, txn: u64) {
        let mut state = self.state();
        state.flushing = None;
        if state.older.is_some() && txn != state.durable {
            state.older = Some(state.durable);
        }
        state.durable = txn;
        if state.weak.is_some_and(|weak| weak <= txn) {
            state.weak = None;
        }
        let synced = state.slots.iter();
        let copies = synced
            .filter(|slot| slot.written.is_none() && slot.synced.is_some_and(|r| r.txn == txn))
            .count();
        if copies != 2 {
            state.violated(format!(
                "transaction {txn} is acknowledged with {copies} synced copies of its record"
            ));
        }
    }

    fn unsynced_meta(&self, txn: u64) {
        self.state().weak = Some(txn);
    }

    fn reader_began(&self, txn: u64) {
        *self.state().readers.entry(txn).or_default() += 1;
    }

    fn reader_ended(&self, txn: u64) {
        let mut state = self.state();
        if let Some(count) = state.readers.get_mut(&txn) {
            *count -= 1;
            if *count == 0 {
                state.readers.remove(&txn);
            }
        }
    }
}
