//! Decisions of the commit pipeline: the unsynced meta record of a lazy commit, the commit of the next flush, and the
//! threads to wake. All functions of this file run under the lock of the pipeline; none of them waits or writes to
//! the data file.

use super::leader::{LEADER_FROM, LeaderThread};
use super::{Chosen, ChosenLog, ChosenMeta, Flushing, Recorded, Stages, Until, Waiting};
use crate::commit::files::Files;
use crate::commit::found::UnsyncedMeta;
use crate::commit::redo::Log;
use crate::format::layout::{BLOCK_BYTES, meta_at};
use crate::format::meta::{LazyBase, Meta};
use crate::seeded::{Bug, active};
use std::sync::Arc;
use std::thread::Thread;
use tidalite_base::get_u64;

impl Stages {
    /// Asserts the order of the commits: `covered` <= `tip` <= `base`, and a running flush writes a commit that is
    /// newer than the durable meta record. Must be called after each change.
    pub(super) fn check(&self) {
        let tip = self.tip.as_ref().map(|tip| tip.txn());
        if let (Some(tip), Some(base)) = (tip, &self.base) {
            assert!(
                tip <= base.txn.0,
                "a record is newer than the newest commit"
            );
        }
        if let Some(covered) = &self.covered {
            assert!(
                tip.is_some_and(|tip| covered.txn() <= tip),
                "a sync covers a commit without a record"
            );
        }
        if let Some(flushing) = &self.flushing {
            assert!(
                flushing.txn > self.durable.txn,
                "a flush of a durable commit"
            );
            assert!(
                tip.is_some_and(|tip| flushing.txn <= tip),
                "a flush of a commit without a record"
            );
        }
        assert!(
            self.logged <= tip.unwrap_or(0).max(self.durable.txn),
            "the log is newer than every record"
        );
        if let Some(unsynced_meta) = self.unsynced_meta {
            assert!(unsynced_meta.slot < 2, "the lock file has two slots");
        }
        if let Some(log) = &self.log {
            assert!(log.top() >= self.durable.txn, "a log below its record");
        }
    }

    /// Resets the counters of unsynced data, because all commits are durable.
    pub(super) fn note_all_durable(&mut self) {
        self.unsynced_bytes = 0;
        self.unsynced_since = None;
    }

    /// Returns the newest commit that satisfies the condition.
    pub(super) fn reached(&self, wanted: Until) -> u64 {
        let recorded = if self.on_medium { self.durable.txn } else { 0 };
        match wanted {
            Until::Kept => recorded.max(self.logged),
            Until::Recorded => recorded,
        }
    }

    /// Writes the unsynced meta record of a commit to the slot of the lock area that does not have the newest
    /// unsynced meta record.
    pub(super) fn set_unsynced_meta(&mut self, files: &Files, commit: &Meta) {
        assert!(
            commit.txn >= self.durable.txn,
            "an unsynced meta record is older than the durable one"
        );
        let slot = match self.unsynced_meta {
            Some(unsynced_meta) if !active(Bug::UnsyncedMetaInOneSlot) => 1 - unsynced_meta.slot,
            _ => 0,
        };
        self.unsynced_meta = Some(UnsyncedMeta {
            txn: commit.txn,
            slot,
        });
        let lazy_base = LazyBase {
            sequence: self.durable.sequence,
            checksum: self.durable_checksum,
            next_checksum: match &self.flushing {
                Some(next) if !active(Bug::UnsyncedMetaOnOneBase) => next.checksum,
                _ => 0,
            },
            boot_id: files.lock.area.identity().boot,
        };
        let block = &mut self.unsynced_block;
        block.clear();
        block.resize(BLOCK_BYTES, 0);
        commit.encode_with_base(block, 0, lazy_base.sequence + 1, &lazy_base);
        files.lock.area.set_unsynced_meta(slot, block);
    }

    /// Begins a flush: chooses the commit to make durable and the form in which this is done (blocks of the redo log,
    /// or a meta record). Returns `None` if no commit can be flushed.
    pub(super) fn choose(&mut self, syncs_done: u64, wanted: Until) -> Option<Chosen> {
        assert!(self.flushing.is_none(), "two flushes at once");
        let tip = self.tip.as_ref()?;
        if wanted == Until::Kept
            && !self.wants_meta
            && let Some(appended) = self.log.as_ref().and_then(|log| log.flush(tip.txn()))
        {
            self.flushing = Some(Flushing {
                txn: tip.txn(),
                checksum: 0,
            });
            return Some(Chosen::Log(ChosenLog {
                commit: Arc::clone(tip),
                appended,
            }));
        }
        let record = self.choose_meta(syncs_done)?;
        Some(Chosen::Record(Box::new(record)))
    }

    fn choose_meta(&mut self, syncs_done: u64) -> Option<ChosenMeta> {
        let unsynced_meta = self
            .unsynced_meta
            .map_or(0, |unsynced_meta| unsynced_meta.txn);
        let is_covered = |commit: &&Arc<Recorded>| {
            let reached = commit.syncs_before < syncs_done || active(Bug::CoveredTooEarly);
            reached && commit.txn() >= unsynced_meta
        };
        let durable = self.durable.txn;
        let newer = |commit: &&Arc<Recorded>| commit.txn() > durable;
        let tip = self.tip.as_ref().filter(newer)?;
        let covered = self.covered.as_ref().filter(newer).filter(is_covered);
        let (commit, covered) = match covered {
            _ if is_covered(&tip) => (tip, true),
            Some(commit) if !self.length_unsynced => (commit, true),
            _ => (tip, false),
        };
        let commit = Arc::clone(commit);
        assert!(commit.txn() > durable, "a record of a durable commit");
        if let Some(log) = &mut self.log {
            log.go_on_from(commit.txn());
        }
        let record = Meta {
            sequence: self.durable.sequence + 1,
            ..Meta::clone(&commit.record)
        };
        let block = record.encode(meta_at(record.pair(), 0));
        let checksum = get_u64(&block, 0);
        self.flushing = Some(Flushing {
            txn: record.txn,
            checksum,
        });
        Some(ChosenMeta {
            commit,
            record,
            block,
            checksum,
            covered,
            length_unsynced: std::mem::take(&mut self.length_unsynced),
        })
    }

    /// Updates these fields after a meta record has reached the medium. Returns its commit.
    pub(super) fn recorded(&mut self, files: &Files, chosen: ChosenMeta) -> Arc<Recorded> {
        assert_eq!(
            chosen.record.sequence,
            self.durable.sequence + 1,
            "meta records skip a sequence number"
        );
        assert_ne!(
            chosen.record.pair(),
            self.durable.pair(),
            "a meta record overwrites the durable one"
        );
        assert!(
            chosen.record.txn > self.durable.txn,
            "a meta record is older than the durable one"
        );
        self.durable = chosen.record;
        self.durable_checksum = chosen.checksum;
        self.on_medium = true;
        self.wants_meta = false;
        let txn = self.durable.txn;
        let (record, checksum) = (&self.durable, self.durable_checksum);
        self.log = Log::begin(record, checksum, files.page_size, self.log.take());
        self.unsynced_meta = self
            .unsynced_meta
            .filter(|unsynced_meta| unsynced_meta.txn > txn);
        self.covered.take_if(|commit| commit.txn() <= txn);
        let is_old = self.tip.as_ref().is_some_and(|commit| commit.txn() <= txn);
        if let Some(observer) = files.observer() {
            observer.durable(txn);
        }
        files.note_durable(txn);
        if is_old {
            self.tip = None;
        }
        self.check();
        chosen.commit
    }

    /// Updates these fields after blocks of the redo log have reached the medium. Returns the newest commit in them.
    pub(super) fn appended(&mut self, files: &Files, chosen: ChosenLog) -> Arc<Recorded> {
        let ChosenLog { commit, appended } = chosen;
        let txn = commit.txn();
        assert!(txn > self.logged, "commits enter the log out of order");
        assert!(self.log.is_some(), "log blocks without a log");
        if let Some(log) = &mut self.log {
            log.flushed(&appended, txn);
        }
        self.logged = txn;
        self.check();
        if self
            .unsynced_meta
            .is_none_or(|unsynced_meta| unsynced_meta.txn < txn)
        {
            // Other processes find a commit that is only in the redo log by its unsynced meta record.
            self.set_unsynced_meta(files, &commit.record);
            if let Some(observer) = files.observer() {
                observer.unsynced_meta(txn);
            }
        }
        commit
    }

    /// Records that a sync begins, which will make the data of the newest commit durable.
    pub(super) fn cover(&mut self) {
        self.covered.clone_from(&self.tip);
    }

    fn is_reached(&self, one: &Waiting) -> bool {
        self.reached(one.wanted) >= one.txn
    }

    /// Returns whether the leader thread must lead the next flush, after a flush has ended.
    pub(super) fn continues(&self, leader: &LeaderThread) -> bool {
        let waits = |one: &&Waiting| !self.is_reached(one);
        let left = self.waiting.iter().filter(waits).count();
        match self.on_duty {
            true => left > 0,
            false => left >= LEADER_FROM && leader.is_running(),
        }
    }

    /// Removes the threads that must be woken from the waiters: first a thread to lead the next flush, unless the
    /// leader thread leads, then the waiters whose condition is satisfied.
    pub(super) fn take_reached(&mut self) -> Vec<Thread> {
        let (done, waiting) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|one| self.is_reached(one));
        self.waiting = waiting;
        debug_assert!(
            !self.waiting.iter().any(|one| self.is_reached(one)),
            "a thread waits for a commit that is durable"
        );
        let done: Vec<Waiting> = done;
        let leader = self.take_leader();
        let done = done.into_iter().map(|one| one.thread);
        leader.into_iter().chain(done).collect()
    }

    /// Removes all waiters and returns their threads.
    pub(super) fn take_all(&mut self) -> Vec<Thread> {
        let all = std::mem::take(&mut self.waiting);
        all.into_iter().map(|one| one.thread).collect()
    }

    pub(super) fn take_leader(&mut self) -> Option<Thread> {
        let leads = self.flushing.is_none() && !self.on_duty;
        let leader = leads.then(|| self.waiting.pop()).flatten()?;
        Some(leader.thread)
    }
}
