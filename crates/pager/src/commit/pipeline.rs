//! From committed to durable: group commit, lazy commits, and the flush that makes the newest commit durable.
//!
//! ```text
//! a writer, with the turn                     a flush, without it
//! stage, write pages, `push`                  take the newest commit (or one whose data is synced already)
//! Durable: wait here, or keep a ticket        where the log has all of them and room: to the log, with one barrier; else
//! Lazy: weak record, shown to all             sync of the data, unless a sync came after it was written
//! None: shown to this process                 record to both blocks of the pair, sync
//!                                             shown to all; all up to it are acknowledged
//! ```
//!
//! Whoever waits for a commit leads the flush when nobody does: a lone writer flushes its own commit in its own thread. Beside a
//! transaction that is under way in this handle a lazy commit needs no turn for that, however long it or those that go on from it
//! (`WriteTxn::checkpoint`) may take.
//! Commits that come while a flush is under way share the next one. Where many do, a thread of the library leads (`leader`).
//!
//! Invariants
//! 1. `base` is the newest commit of this handle when that is newer than what it shows to readers. The next writer
//!    builds on it.
//! 2. `tip` is the newest commit with a record; everything up to it can be made durable by one flush. `covered` is an older one
//!    whose data a sync has reached already.
//! 3. One flush at a time (`flushing`), begun by one who waits or by the standing leader (`on_duty`). It holds the turn among the handles (`Turns::set_keep`), not the turn among the
//!    threads of this one.
//! 4. `durable` is the newest record of the file. It counts as durable, for whoever waits, only while it is known to be on the medium
//!    (`on_medium`): the one that was found when the file was opened, or when others have written, may be in the system's cache alone
//!    until a writer has confirmed it (`Writer::confirm`). `logged` is the newest commit that is
//!    durable by the log which stands on that record; it has a weak record, by which other processes find it.
//! 5. A weak record stands on `durable`, and on the record being written as well when a flush is under way. So whichever
//!    of the two a killed process leaves as the newest, the weak record counts.
//! 6. What any of these names is in `holds`: nothing of it is written over.
//! 7. A flush counts no sync as done while another of this handle runs or after one has failed: the system tells a lost write
//!    to one of the syncs under way, and that need not be the one of the flush.

pub(crate) mod flush;
mod leader;
mod stages;
#[cfg(test)]
mod tests;

use super::found::Weak;
use super::versions::Versions;
use crate::format::meta::checksum_of;
use crate::storage::Look;
pub(crate) use leader::StandingLeader;
use leader::unpark;

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

/// A commit that has a record.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) state: Arc<State>,
    /// Sequence number and standing are those of the moment when it is written.
    pub(crate) record: Arc<Meta>,
    /// Syncs begun before its data was written to the end.
    pub(crate) syncs_before: u64,
}

impl Recorded {
    fn txn(&self) -> u64 {
        self.record.txn
    }
}

/// A flush under way.
#[derive(Debug)]
struct Flushing {
    txn: u64,
    /// See `checksum_of`.
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
    /// The next flush is to make a record, whatever the log could take.
    wants_record: bool,
    /// Flushes of small commits of this handle, one after the other.
    small: u32,
    weak: Option<Weak>,
    /// Memory for the next weak record.
    weak_block: Vec<u8>,
    length_unsynced: bool,
    /// Written by commits since the newest durable record.
    unsynced_bytes: u64,
    unsynced_since: Option<Instant>,
    waiting: Vec<Waiting>,
    /// The standing leader flushes for those who wait.
    on_duty: bool,
}

#[derive(Debug)]
pub(crate) struct Pipeline {
    stages: Mutex<Stages>,
    /// `Stages::reached` as it was a moment ago, for who was woken: sixteen threads that ask for the lock at once keep the writer from it.
    kept: AtomicU64,
    recorded: AtomicU64,
    /// The newest commit with a record that this handle has made or found.
    newest: AtomicU64,
    syncs_begun: AtomicU64,
    /// The highest number of a sync that has ended well.
    syncs_done: AtomicU64,
    /// Held by `sync_beside` until a failure of it has poisoned.
    beside: Mutex<()>,
    pub(crate) metrics: Metrics,
    pub(crate) leader: StandingLeader,
}

/// What a flush is to write.
enum Chosen {
    Record(Box<ChosenRecord>),
    Log(ChosenLog),
}

/// A commit that gets a durable record.
struct ChosenRecord {
    commit: Arc<Recorded>,
    record: Meta,
    block: Vec<u8>,
    checksum: u64,
    covered: bool,
    length_unsynced: bool,
}

/// A commit that goes to the log, with those before it that wait.
struct ChosenLog {
    commit: Arc<Recorded>,
    appended: Appended,
}

/// So many flushes of small commits make a log worth its while.
const SMALL_FLUSHES: u32 = 8;

/// What the log has to do with a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogUse {
    None,
    /// There is none, and this handle has made many small commits durable.
    Wanted,
    /// It may take the commit.
    Append,
}

/// What must hold when a wait ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// The commit survives a power cut.
    Kept,
    /// It has a durable record: the log is not needed.
    Recorded,
}

/// How a wait for a commit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    Durable,
    /// It is shown to all already and nobody of this handle writes, so others may have the turn; or it has no record yet: a writer must lead.
    NeedsTurn,
    TimedOut,
}

impl Pipeline {
    /// `on_medium`: the record that was found is known to be there.
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
                wants_record: false,
                small: 0,
                weak: found.weak,
                weak_block: Vec::new(),
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
            leader: StandingLeader::default(),
        }
    }

    fn stages(&self) -> MutexGuard<'_, Stages> {
        self.stages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over what was found in the file: others have written since, or nobody has yet. `on_medium`: its record is known to be
    /// there. Only for who has the turn.
    pub(crate) fn reset(&self, found: &Found, state: &Arc<State>, on_medium: bool) {
        let mut stages = self.stages();
        stages.durable_checksum = checksum_of(&found.durable);
        stages.durable = found.durable.clone();
        stages.on_medium = on_medium;
        (stages.log, stages.logged, stages.small) = (None, 0, 0);
        stages.wants_record = false;
        stages.weak = found.weak;
        stages.covered = None;
        stages.base = None;
        stages.tip = None;
        if found.meta.txn > found.durable.txn {
            // A lazy commit of another process, or of one that was killed.
            stages.tip = Some(Arc::new(Recorded {
                state: Arc::clone(state),
                record: Arc::new(found.meta.clone()),
                syncs_before: self.syncs_begun.load(Ordering::SeqCst),
            }));
            stages.length_unsynced = true;
            stages.unsynced_since.get_or_insert_with(Instant::now);
        } else {
            stages.settle();
        }
        self.note_reached(&stages);
        // Another process may have made durable what threads of this one wait for; if not, one of them leads.
        let woken = stages.take_reached();
        drop(stages);
        unpark(woken);
    }

    /// The record that was found is on the medium. Only for who has the turn.
    pub(crate) fn confirmed(&self) {
        let mut stages = self.stages();
        stages.on_medium = true;
        self.note_reached(&stages);
        let woken = stages.take_reached();
        drop(stages);
        unpark(woken);
    }

    /// True while the record that was found is not confirmed: this handle has written nothing yet.
    pub(crate) fn is_as_found(&self, txn: u64) -> bool {
        let stages = self.stages();
        !stages.on_medium && stages.durable.txn >= txn
    }

    /// The state that the next writer builds on, when it is newer than `shown`.
    pub(crate) fn base(&self, shown: Arc<State>) -> Arc<State> {
        match &self.stages().base {
            Some(base) if base.txn > shown.txn => Arc::clone(base),
            _ => shown,
        }
    }

    /// The newest durable record.
    pub(crate) fn durable(&self) -> Meta {
        self.stages().durable.clone()
    }

    pub(crate) fn durable_txn(&self) -> u64 {
        self.stages().durable.txn
    }

    /// The newest commit that a power cut leaves, by its record or by the log.
    pub(crate) fn kept_txn(&self) -> u64 {
        self.stages().reached(Until::Kept)
    }

    /// What the log has to do with a small commit on top of this one.
    /// `at_once`: it need not be seen first that there are many.
    pub(crate) fn log_for(&self, base: u64, at_once: bool) -> LogUse {
        let stages = self.stages();
        match &stages.log {
            // A record comes first, whose flush syncs the length.
            _ if stages.length_unsynced => LogUse::None,
            Some(log) if log.takes(base) => LogUse::Append,
            None if at_once || stages.small >= SMALL_FLUSHES => LogUse::Wanted,
            _ => LogUse::None,
        }
    }

    /// The next flush is to make a record: much space comes back only with that. Only for who has the turn.
    pub(crate) fn want_record(&self) {
        self.stages().wants_record = true;
    }

    /// True when a flush can make this transaction durable, or it is.
    pub(crate) fn has_record(&self, txn: u64) -> bool {
        let stages = self.stages();
        stages.durable.txn == txn || stages.tip.as_ref().is_some_and(|tip| tip.txn() == txn)
    }

    /// The transactions whose pages must stay.
    pub(crate) fn holds(&self, live: &mut Vec<u64>) {
        let stages = self.stages();
        if !active(Bug::ReuseEarly) {
            live.push(stages.durable.txn);
        }
        live.extend(stages.base.iter().map(|state| state.txn.0));
        let commits = stages.tip.iter().chain(&stages.covered);
        live.extend(commits.map(|commit| commit.txn()));
        live.extend(stages.flushing.iter().map(|flushing| flushing.txn));
        live.extend(stages.weak.iter().map(|weak| weak.txn));
    }

    /// Syncs begun so far: for a commit whose data is all written.
    pub(crate) fn syncs_begun(&self) -> u64 {
        self.syncs_begun.load(Ordering::SeqCst)
    }

    /// A commit is whole. `recorded` when it has a record, so that a flush can make it durable; `entry`: what the log gets of it, and on which
    /// commit it stands; with `lazy`, its weak record is written. Only for who has the turn, which stays with this handle until the
    /// commit is shown to all.
    pub(crate) fn push(
        &self,
        files: &Files,
        state: &Arc<State>,
        recorded: Option<Arc<Recorded>>,
        (bytes, length_unsynced): (u64, bool),
        entry: Option<(u64, Entry)>,
        lazy: bool,
    ) {
        let mut stages = self.stages();
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
            let written = || stages.set_weak(files, &commit.record);
            self.metrics.time(Phase::MetaWrite, written);
            Metrics::add(&self.metrics.bytes_meta, BLOCK_BYTES as u64);
        }
        files.turns.set_keep(true);
        if let Some(commit) = recorded {
            stages.length_unsynced |= length_unsynced;
            self.newest.store(commit.txn(), Ordering::SeqCst);
            stages.tip = Some(commit);
            drop(stages);
            files.turns.tell();
        }
    }

    /// Keeps the turn with this handle for the flush of a commit that is shown to all already. Only for who has
    /// the turn.
    pub(crate) fn keep_turn(&self, files: &Files, (txn, wanted): (u64, Until)) {
        if self.stages().reached(wanted) < txn {
            files.turns.set_keep(true);
        }
    }

    /// What `Bug::WeakBeforeData` does.
    pub(crate) fn weak_too_early(&self, files: &Files, record: &Meta) {
        let mut stages = self.stages();
        let before = stages.weak;
        stages.set_weak(files, record);
        stages.weak = before;
    }

    /// A commit is shown to all: the turn may go to others when nothing newer waits.
    pub(crate) fn shown(&self, files: &Files) {
        self.may_give(files, &self.stages());
    }

    /// Looks whether the data file is still the one at its path. Where not, what this handle alone sees is given up, and with it the turn among
    /// the handles that it may have kept for that. Not under the lock of the pipeline.
    pub(crate) fn check_moved(&self, files: &Files, look: Look) -> Result<()> {
        let Some(named) = &files.named else {
            return Ok(());
        };
        named.check(look).inspect_err(|_| self.shown(files))
    }

    fn may_give(&self, files: &Files, stages: &Stages) {
        let shown = files.lock.area.published().load(Ordering::SeqCst);
        let hidden = stages.base.as_ref().is_some_and(|base| base.txn.0 > shown);
        // A handle whose file was moved finishes the flush that it has begun, and shows nothing more.
        let flushes = stages.flushing.is_some() && files.check_synced().is_ok();
        let keep = flushes || hidden && files.check_poison().is_ok();
        files.turns.set_keep(keep);
        if !keep {
            files.turns.give_kept();
        }
    }

    /// Waits until a transaction is durable, leading a flush when nobody else does.
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
                // Whoever made it so has taken this thread from those who wait.
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
                // What is not shown will not be: nobody is to wait for the turn because of it.
                self.may_give(files, &stages);
                let woken = stages.take_all();
                drop(stages);
                unpark(woken);
                return Err(error);
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if slept && left.is_some_and(|left| left.is_zero()) {
                // It may have been this thread's turn to lead.
                let leader = stages.take_leader();
                drop(stages);
                unpark(leader);
                return Ok(Waited::TimedOut);
            }
            if stages.flushing.is_none() && !stages.on_duty {
                let Some(chosen) = self.begin(files, &mut stages, wanted) else {
                    // This one may have been woken to lead: the others find out for themselves, each with its own patience.
                    let woken = stages.take_all();
                    drop(stages);
                    unpark(woken);
                    return Ok(Waited::NeedsTurn);
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

    /// Begins a flush that is enough for all who wait; `None` where that needs the turn.
    fn begin(
        &self,
        files: &Files,
        stages: &mut MutexGuard<'_, Stages>,
        wanted: Until,
    ) -> Option<Chosen> {
        let beside = !files.turns.keeps();
        if beside && !files.turns.keep_beside() {
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
        if chosen.is_none() && beside {
            self.may_give(files, stages);
        }
        chosen
    }

    /// Whether somebody who waits for this need not wait for the turn as well: it is so, or may be made so beside the transaction that leads.
    pub(crate) fn needs_no_turn(&self, (txn, wanted): (u64, Until), leads: bool) -> bool {
        let newest = leads && self.newest.load(Ordering::SeqCst) >= txn;
        newest || self.reached(wanted) >= txn
    }

    /// The newest commit of which this holds, without the lock.
    fn reached(&self, wanted: Until) -> u64 {
        match wanted {
            Until::Kept => self.kept.load(Ordering::SeqCst),
            Until::Recorded => self.recorded.load(Ordering::SeqCst),
        }
    }

    /// Under the lock, when more has become durable; who waits for that is taken from those who wait before the lock is given back.
    fn note_reached(&self, stages: &Stages) {
        let kept = stages.reached(Until::Kept);
        self.kept.store(kept, Ordering::SeqCst);
        let recorded = stages.reached(Until::Recorded);
        self.recorded.store(recorded, Ordering::SeqCst);
    }

    /// A sync by who has the turn, beside the flush that may be under way. A failure poisons.
    pub(crate) fn sync_beside(
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
            let what = what.into();
            let error = Error::Io { what, at, source };
            files.poison(&error);
            error
        })
    }

    /// The newest commit that a flush could make durable, if there is one.
    pub(crate) fn newest_recorded(&self) -> Option<u64> {
        let stages = self.stages();
        stages.tip.as_ref().map(|tip| tip.txn())
    }

    /// What waits to become durable: bytes written since the newest durable record, and since when.
    pub(crate) fn unsynced(&self) -> (u64, Option<Instant>) {
        let stages = self.stages();
        (stages.unsynced_bytes, stages.unsynced_since)
    }
}
