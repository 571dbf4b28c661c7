//! The pipeline that makes commits durable: group commit, lazy commits, and the flush of the newest commit.
//!
//! ```text
//! writer, has the writer lock                 flush, does not have it
//! stage, write pages, `push`                  choose the newest commit (or one whose data is already synced)
//! Durable: wait here, or keep a ticket        if the redo log has room: append the commits, sync; else
//! Lazy: unsynced meta record, visible to all    sync the data, unless a sync began after it was written
//! None: visible to this process                 write the meta record to both blocks of the pair, sync
//!                                             publish; acknowledge all commits up to it
//! ```
//!
//! A thread that waits for a commit leads the flush if no other thread does: a lone writer flushes its own commit in
//! its own thread. While a transaction is open in this handle, another thread can flush an earlier lazy commit
//! without the writer lock, however long the transaction or its successors (`WriteTxn::checkpoint`) run. Commits that
//! arrive during a flush share the next flush. If many threads wait, a dedicated thread leads the flushes (`leader`).
//!
//! Invariants
//! 1. `base` is the newest commit of this handle if it is newer than the commit shown to readers. The next writer
//!    builds on it.
//! 2. `tip` is the newest commit with a meta record; one flush can make everything up to it durable. `covered` is an
//!    older commit whose data is covered by a sync that has already begun.
//! 3. One flush runs at a time (`flushing`), started by a waiting thread or by the leader thread (`on_duty`). The
//!    writer lock has two parts: one between handles, and one between the threads of a handle. A flush keeps only the
//!    first (`WriterLock::set_keep`), so the next writer of this handle can begin.
//! 4. `durable` is the newest meta record of the file. It counts as durable only while it is known to be on the
//!    medium (`on_medium`): a meta record found at opening, or after another handle has written, may be only in the
//!    cache of the operating system until a writer confirms it (`Writer::confirm`). `logged` is the newest commit
//!    that is durable through the redo log of that meta record; it has an unsynced meta record, by which other
//!    processes find it.
//! 5. An unsynced meta record builds on `durable`, and during a flush also on the meta record being written. It is
//!    therefore valid whichever of the two a killed process leaves as the newest.
//! 6. `holds` lists all commits named in these invariants, so their pages are not overwritten.
//! 7. A flush counts its sync as done only when no other sync of this handle runs or has failed. The system reports a
//!    lost write to only one of the concurrent syncs, which may be the other one.

pub(crate) mod flush;
mod leader;
mod stages;
#[cfg(test)]
mod tests;

use super::found::UnsyncedMeta;
use super::versions::Versions;
use crate::format::meta::checksum_of;
pub(crate) use leader::LeaderThread;
use leader::unpark;
use tidalite_disk::storage::MoveCheck;

use super::found::Found;
use super::metrics::{Metrics, Phase};
use super::redo::area::COMMIT_PAGE_BYTES_MAX;
use super::redo::{Appended, Entry, Log};
use crate::commit::files::Files;
use crate::commit::versions::State;
use crate::error::{Error, Result};
use crate::format::layout::BLOCK_BYTES;
use crate::format::meta::Meta;
use crate::seeded::{Bug, active};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::Instant;

/// A commit that has a meta record, which a flush can make durable.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) state: Arc<State>,
    /// The meta record of the commit. Its sequence number and lazy base are set only when it is written to the file.
    pub(crate) record: Arc<Meta>,
    /// Number of syncs of this handle that began before the data of the commit was completely written. A later sync
    /// makes the data durable.
    pub(crate) syncs_before: u64,
}

impl Recorded {
    fn txn(&self) -> u64 {
        self.record.txn
    }
}

/// The commit that a flush is making durable.
#[derive(Debug)]
struct Flushing {
    txn: u64,
    /// Checksum of the meta record that the flush writes (`checksum_of`), or 0 if the flush writes to the redo log.
    checksum: u64,
}

#[derive(Debug)]
struct Waiting {
    txn: u64,
    wanted: Until,
    thread: Thread,
}

#[derive(Debug)]
struct Stages {
    base: Option<Arc<State>>,
    tip: Option<Arc<Recorded>>,
    covered: Option<Arc<Recorded>>,
    flushing: Option<Flushing>,
    durable: Meta,
    durable_checksum: u64,
    on_medium: bool,
    log: Option<Log>,
    logged: u64,
    /// Whether the next flush must write a meta record, even if the redo log has room.
    wants_meta: bool,
    /// Number of consecutive flushes in this handle without a large commit.
    small: u32,
    unsynced_meta: Option<UnsyncedMeta>,
    /// Buffer for the next unsynced meta record, reused to avoid an allocation.
    unsynced_block: Vec<u8>,
    length_unsynced: bool,
    /// Number of bytes that commits have written since the newest durable meta record.
    unsynced_bytes: u64,
    unsynced_since: Option<Instant>,
    waiting: Vec<Waiting>,
    /// Whether the leader thread leads the flushes now.
    on_duty: bool,
}

#[derive(Debug)]
pub(crate) struct Pipeline {
    stages: Mutex<Stages>,
    /// Transaction numbers of the newest commits that satisfy `Until::Kept` and `Until::Recorded`. Threads that are
    /// woken read them without the lock, because sixteen threads that take the lock at the same time would delay the
    /// writer.
    kept: AtomicU64,
    recorded: AtomicU64,
    /// Transaction number of the newest commit with a meta record that this handle has written or found.
    newest: AtomicU64,
    syncs_begun: AtomicU64,
    /// The highest number of a sync that has succeeded; syncs are numbered in the order in which they begin.
    syncs_done: AtomicU64,
    /// Held while `sync_in_background` runs until its result is known; if the sync fails, until the handle is
    /// poisoned.
    beside: Mutex<()>,
    pub(crate) metrics: Metrics,
    pub(crate) leader: LeaderThread,
}

/// Contents that a flush writes: a meta record, or blocks of the redo log.
enum Chosen {
    Record(Box<ChosenMeta>),
    Log(ChosenLog),
}

/// The commit that a flush makes durable by a meta record.
struct ChosenMeta {
    commit: Arc<Recorded>,
    record: Meta,
    block: Vec<u8>,
    checksum: u64,
    covered: bool,
    length_unsynced: bool,
}

/// The commit that a flush makes durable by the redo log, together with the waiting commits before it.
struct ChosenLog {
    commit: Arc<Recorded>,
    appended: Appended,
}

/// Number of consecutive flushes without a large commit after which it pays off to begin a redo log.
const SMALL_FLUSHES: u32 = 8;

/// Decision whether a commit goes to the redo log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogUse {
    None,
    /// The handle has no redo log yet, but should begin one, since it has made many small commits durable.
    Wanted,
    /// The commit may be appended to the redo log.
    Append,
}

/// The durability of a commit for which a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// The commit survives a power failure.
    Kept,
    /// The commit is covered by a durable meta record, so it no longer depends on the redo log.
    Recorded,
}

/// Result of a wait for a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    Durable,
    /// Only a thread that holds the writer lock can flush this commit. Either the commit has no meta record yet, or
    /// it is visible to all handles and no transaction of this handle is active, so another handle may hold the lock.
    NeedsWriterLock,
    TimedOut,
}

impl Pipeline {
    /// Creates the pipeline for the meta record `found`; `on_medium` says whether this record is known to be on the
    /// medium.
    pub(crate) fn new(found: &Found, on_medium: bool) -> Self {
        let kept = if on_medium { found.durable.txn } else { 0 };
        Self {
            stages: Mutex::new(Stages {
                base: None,
                tip: None,
                covered: None,
                flushing: None,
                durable_checksum: checksum_of(&found.durable),
                durable: found.durable.clone(),
                on_medium,
                log: None,
                logged: 0,
                wants_meta: false,
                small: 0,
                unsynced_meta: found.unsynced_meta,
                unsynced_block: Vec::new(),
                length_unsynced: false,
                unsynced_bytes: 0,
                unsynced_since: None,
                waiting: Vec::new(),
                on_duty: false,
            }),
            kept: AtomicU64::new(kept),
            recorded: AtomicU64::new(kept),
            newest: AtomicU64::new(kept),
            syncs_begun: AtomicU64::new(0),
            syncs_done: AtomicU64::new(0),
            beside: Mutex::new(()),
            metrics: Metrics::new(),
            leader: LeaderThread::default(),
        }
    }

    fn stages(&self) -> MutexGuard<'_, Stages> {
        self.stages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adopts the meta record `found` in the file, because other handles have written since or this handle has not
    /// written yet. `on_medium` says whether this record is known to be on the medium. The caller must hold the
    /// writer lock.
    pub(crate) fn reset(&self, found: &Found, state: &Arc<State>, on_medium: bool) {
        let mut stages = self.stages();
        stages.durable_checksum = checksum_of(&found.durable);
        stages.durable = found.durable.clone();
        stages.on_medium = on_medium;
        (stages.log, stages.logged, stages.small) = (None, 0, 0);
        stages.wants_meta = false;
        stages.unsynced_meta = found.unsynced_meta;
        stages.covered = None;
        stages.base = None;
        stages.tip = None;
        if found.meta.txn > found.durable.txn {
            // The newest commit is a lazy commit of another process, which may have been killed.
            stages.tip = Some(Arc::new(Recorded {
                state: Arc::clone(state),
                record: Arc::new(found.meta.clone()),
                syncs_before: self.syncs_begun.load(Ordering::SeqCst),
            }));
            stages.length_unsynced = true;
            stages.unsynced_since.get_or_insert_with(Instant::now);
        } else {
            stages.note_all_durable();
        }
        stages.check();
        self.note_reached(&stages);
        // Wakes the threads of this process that wait for commits that another process has made durable. Also wakes
        // one of the other waiters, to lead a flush.
        let woken = stages.take_reached();
        drop(stages);
        unpark(woken);
    }

    /// Records that the meta record found in the file is on the medium. The caller must hold the writer lock.
    pub(crate) fn confirmed(&self) {
        let mut stages = self.stages();
        stages.on_medium = true;
        self.note_reached(&stages);
        let woken = stages.take_reached();
        drop(stages);
        unpark(woken);
    }

    /// Whether the meta record found in the file covers the commit `txn` but is not yet confirmed to be on the
    /// medium.
    pub(crate) fn is_as_found(&self, txn: u64) -> bool {
        let stages = self.stages();
        !stages.on_medium && stages.durable.txn >= txn
    }

    /// Returns the commit on which the next writer builds: the newest commit of this handle if it is newer than
    /// `shown`, otherwise `shown`.
    pub(crate) fn base(&self, shown: Arc<State>) -> Arc<State> {
        match &self.stages().base {
            Some(base) if base.txn > shown.txn => Arc::clone(base),
            _ => shown,
        }
    }

    /// Returns the newest durable meta record.
    pub(crate) fn durable(&self) -> Meta {
        self.stages().durable.clone()
    }

    pub(crate) fn durable_txn(&self) -> u64 {
        self.stages().durable.txn
    }

    /// Returns the newest commit that survives a power failure, by its meta record or by the redo log.
    pub(crate) fn persisted_txn(&self) -> u64 {
        self.stages().reached(Until::Kept)
    }

    /// Decides how a small commit on top of commit `base` uses the redo log. With `at_once`, a redo log is begun
    /// without counting small flushes first.
    pub(crate) fn log_for(&self, base: u64, at_once: bool) -> LogUse {
        let stages = self.stages();
        match &stages.log {
            // The next flush must write a meta record, since only such a flush syncs the file length.
            _ if stages.length_unsynced => LogUse::None,
            Some(log) if log.takes(base) => LogUse::Append,
            None if at_once || stages.small >= SMALL_FLUSHES => LogUse::Wanted,
            _ => LogUse::None,
        }
    }

    /// Makes the next flush write a meta record instead of appending to the redo log, because the meta record frees
    /// much space. The caller must hold the writer lock.
    pub(crate) fn want_meta(&self) {
        self.stages().wants_meta = true;
    }

    /// Whether the commit `txn` is the newest with a meta record, or the one of the newest durable meta record.
    pub(crate) fn has_meta(&self, txn: u64) -> bool {
        let stages = self.stages();
        stages.durable.txn == txn || stages.tip.as_ref().is_some_and(|tip| tip.txn() == txn)
    }

    /// Appends the transaction numbers of the commits in the pipeline whose pages must not be overwritten.
    pub(crate) fn holds(&self, live: &mut Vec<u64>) {
        let stages = self.stages();
        if !active(Bug::ReuseEarly) {
            live.push(stages.durable.txn);
        }
        live.extend(stages.base.iter().map(|state| state.txn.0));
        let commits = stages.tip.iter().chain(&stages.covered);
        live.extend(commits.map(|commit| commit.txn()));
        live.extend(stages.flushing.iter().map(|flushing| flushing.txn));
        live.extend(
            stages
                .unsynced_meta
                .iter()
                .map(|unsynced_meta| unsynced_meta.txn),
        );
    }

    /// Number of syncs that have begun. The caller reads it after the data of a commit is completely written.
    pub(crate) fn syncs_begun(&self) -> u64 {
        self.syncs_begun.load(Ordering::SeqCst)
    }

    /// Adds a complete commit. `recorded` is its meta record, if a flush can make it durable; `entry` is its entry
    /// for the redo log and the commit on which it builds; `lazy` says whether its unsynced meta record is written.
    /// The caller must hold the writer lock, which stays with this handle until the commit is visible to all.
    pub(crate) fn push(
        &self,
        files: &Files,
        state: &Arc<State>,
        recorded: Option<Arc<Recorded>>,
        (bytes, length_unsynced): (u64, bool),
        entry: Option<(u64, Entry)>,
        lazy: bool,
    ) {
        assert!(
            recorded
                .as_ref()
                .is_none_or(|recorded| recorded.txn() == state.txn.0),
            "a commit with the record of another"
        );
        assert!(
            recorded.is_some() || entry.is_none() && !lazy,
            "a log entry or an unsynced meta record needs a meta record"
        );
        let mut stages = self.stages();
        assert!(
            stages.base.as_ref().is_none_or(|base| base.txn < state.txn),
            "commits are added out of order"
        );
        stages.base = Some(Arc::clone(state));
        stages.unsynced_bytes += bytes;
        stages.unsynced_since.get_or_insert_with(Instant::now);
        if bytes > COMMIT_PAGE_BYTES_MAX {
            stages.small = 0;
        }
        if let (Some((base, entry)), Some(log)) = (entry, &mut stages.log) {
            log.push(base, entry);
        }
        if let Some(commit) = recorded.as_ref().filter(|_| lazy) {
            let written = || stages.set_unsynced_meta(files, &commit.record);
            self.metrics.time(Phase::MetaWrite, written);
            Metrics::add(&self.metrics.bytes_meta, BLOCK_BYTES as u64);
        }
        files.writer_lock.set_keep(true);
        if let Some(commit) = recorded {
            stages.length_unsynced |= length_unsynced;
            self.newest.store(commit.txn(), Ordering::SeqCst);
            stages.tip = Some(commit);
            stages.check();
            drop(stages);
            files.writer_lock.notify_listeners();
        }
    }

    /// Makes this handle keep the writer lock until a flush has made the commit `txn`, which all handles see already,
    /// durable. The caller must hold the writer lock.
    pub(crate) fn keep_writer_lock(&self, files: &Files, (txn, wanted): (u64, Until)) {
        if self.stages().reached(wanted) < txn {
            files.writer_lock.set_keep(true);
        }
    }

    /// Writes an unsynced meta record before the data of its commit: the deliberate bug
    /// `Bug::UnsyncedMetaBeforeData`.
    pub(crate) fn write_unsynced_meta_early(&self, files: &Files, record: &Meta) {
        let mut stages = self.stages();
        let before = stages.unsynced_meta;
        stages.set_unsynced_meta(files, record);
        stages.unsynced_meta = before;
    }

    /// Must be called when a commit has become visible to all. Releases the writer lock to other handles, unless a
    /// newer commit is not visible to them yet.
    pub(crate) fn shown(&self, files: &Files) {
        self.may_give(files, &self.stages());
    }

    /// Returns an error if the data file is no longer the file at its path. In this case, commits that other handles
    /// do not see yet will never be published, and the writer lock is released if this handle kept it only for them.
    /// The caller must not hold the lock of the pipeline.
    pub(crate) fn check_moved(&self, files: &Files, look: MoveCheck) -> Result<()> {
        let Some(named) = &files.named else {
            return Ok(());
        };
        named.check(look).inspect_err(|_| self.shown(files))?;
        Ok(())
    }

    fn may_give(&self, files: &Files, stages: &Stages) {
        let shown = files.lock.area.published().load(Ordering::SeqCst);
        let hidden = stages.base.as_ref().is_some_and(|base| base.txn.0 > shown);
        // If the file was moved, the handle completes the flush that is under way and publishes no more commits.
        let flushes = stages.flushing.is_some() && files.check_synced().is_ok();
        let keep = flushes || hidden && files.check_poison().is_ok();
        files.writer_lock.set_keep(keep);
        if !keep {
            files.writer_lock.release_kept();
        }
    }

    /// Waits until a commit is durable; leads a flush if no other thread does.
    pub(crate) fn wait(
        &self,
        files: &Files,
        versions: &Versions,
        (txn, wanted): (u64, Until),
        until: Option<Instant>,
    ) -> Result<Waited> {
        let me = thread::current();
        let mut slept = false;
        loop {
            if slept && self.reached(wanted) >= txn {
                // The thread that made the commit durable has already removed this thread from the waiters.
                return Ok(Waited::Durable);
            }
            let mut stages = self.stages();
            if slept {
                stages.waiting.retain(|other| other.thread.id() != me.id());
            }
            if stages.reached(wanted) >= txn {
                return Ok(Waited::Durable);
            }
            if let Err(error) = files.check_poison() {
                // After an error, unpublished commits will never be published, so the writer lock need not be kept
                // for them.
                self.may_give(files, &stages);
                let woken = stages.take_all();
                drop(stages);
                unpark(woken);
                return Err(error);
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if slept && left.is_some_and(|left| left.is_zero()) {
                // This thread may have been woken to lead the next flush, but its waiting time is over. Wakes another
                // waiter, which leads that flush.
                let leader = stages.take_leader();
                drop(stages);
                unpark(leader);
                return Ok(Waited::TimedOut);
            }
            if stages.flushing.is_none() && !stages.on_duty {
                let Some(chosen) = self.begin(files, &mut stages, wanted) else {
                    // This thread may have been woken to lead a flush, but it cannot lead a flush without the writer
                    // lock. Wakes the other waiters: each decides by its own timeout whether to wait for the writer
                    // lock.
                    let woken = stages.take_all();
                    drop(stages);
                    unpark(woken);
                    return Ok(Waited::NeedsWriterLock);
                };
                drop(stages);
                let (woken, done) = self.flush(files, versions, chosen);
                unpark(woken);
                done?;
                continue;
            }
            stages.waiting.push(Waiting {
                txn,
                wanted,
                thread: me.clone(),
            });
            drop(stages);
            slept = true;
            match left {
                None => thread::park(),
                Some(left) => thread::park_timeout(left),
            }
        }
    }

    /// Begins a flush that satisfies all waiters. Returns `None` if this requires the writer lock.
    fn begin(
        &self,
        files: &Files,
        stages: &mut MutexGuard<'_, Stages>,
        wanted: Until,
    ) -> Option<Chosen> {
        let beside = !files.writer_lock.keeps();
        if beside && !files.writer_lock.keep_for_background() {
            return None;
        }
        let wanted = stages
            .waiting
            .iter()
            .fold(wanted, |most, one| match one.wanted {
                Until::Recorded => Until::Recorded,
                Until::Kept => most,
            });
        let syncs_done = self.syncs_done.load(Ordering::SeqCst);
        let chosen = stages.choose(syncs_done, wanted);
        assert_eq!(
            chosen.is_some(),
            stages.flushing.is_some(),
            "a flush begins exactly if it has a commit"
        );
        if chosen.is_none() && beside {
            self.may_give(files, stages);
        }
        chosen
    }

    /// Whether a thread that waits for the commit `txn` need not take the writer lock: the condition holds already,
    /// or, if a transaction of this handle is active (`leads`), a flush can satisfy it while that transaction is
    /// open.
    pub(crate) fn needs_no_writer_lock(&self, (txn, wanted): (u64, Until), leads: bool) -> bool {
        let newest = leads && self.newest.load(Ordering::SeqCst) >= txn;
        newest || self.reached(wanted) >= txn
    }

    /// Returns the newest commit that satisfies the condition; takes no lock.
    fn reached(&self, wanted: Until) -> u64 {
        match wanted {
            Until::Kept => self.kept.load(Ordering::SeqCst),
            Until::Recorded => self.recorded.load(Ordering::SeqCst),
        }
    }

    /// Updates the values that threads read without the lock. Must be called under the lock of the pipeline when a
    /// newer commit has become durable. The satisfied waiters must be removed before the lock is released.
    fn note_reached(&self, stages: &Stages) {
        let kept = stages.reached(Until::Kept);
        self.kept.store(kept, Ordering::SeqCst);
        let recorded = stages.reached(Until::Recorded);
        assert!(kept >= recorded, "a recorded commit is kept");
        self.recorded.store(recorded, Ordering::SeqCst);
    }

    /// Syncs the file in the thread that has the writer lock, while a flush may be running. A failure poisons the
    /// handle.
    pub(crate) fn sync_in_background(
        &self,
        files: &Files,
        what: &'static str,
        at: u64,
        length: bool,
    ) -> Result<()> {
        let _until_known = self.beside.lock().unwrap_or_else(PoisonError::into_inner);
        let synced = if length {
            files.storage.sync_all()
        } else {
            files.storage.sync()
        };
        synced.map_err(|source| {
            let error = Error::of_call(what, at, source);
            files.poison(&error);
            error
        })
    }

    /// Returns the newest commit that a flush could make durable, if any.
    pub(crate) fn newest_recorded(&self) -> Option<u64> {
        let stages = self.stages();
        stages.tip.as_ref().map(|tip| tip.txn())
    }

    /// Returns the number of bytes that commits have written since the newest durable meta record, and the time of
    /// the first of these commits.
    pub(crate) fn unsynced(&self) -> (u64, Option<Instant>) {
        let stages = self.stages();
        (stages.unsynced_bytes, stages.unsynced_since)
    }
}
