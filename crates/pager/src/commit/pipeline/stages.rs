//! Decisions of the commit pipeline: the unsynced meta record of a lazy commit, the commit of the next flush, and the
//! threads to wake. All of it runs under the lock of the pipeline; nothing here waits or writes to the file.

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
    /// Asserts the order of the commits: `covered` <= `tip` <= `base`, and a flush writes a commit that is newer than
    /// the durable record. Call after each change.
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

    /// Called when everything is durable: resets the counters of unsynced data.
    pub(super) fn note_all_durable(&mut self) {
        self.unsynced_bytes = 0;
        self.unsynced_since = None;
    }

    /// The newest commit that meets the condition.
    pub(super) fn reached(&self, wanted: Until) -> u64 {
        let recorded = if self.on_medium { self.durable.txn } else { 0 };
        match wanted {
            Until::Kept => recorded.max(self.logged),
            Until::Recorded => recorded,
        }
    }

    /// Writes the unsynced meta record of a commit to the lock area, into the slot that does not hold the newest one.
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

    /// Begins a flush: chooses the commit and the form (log blocks, or a record) in which it becomes durable.
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

    /// Updates the state after a record has reached the medium.
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

    /// Updates the state after log blocks have reached the medium.
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
            // Other processes find the commit by its unsynced meta record.
            self.set_unsynced_meta(files, &commit.record);
            if let Some(observer) = files.observer() {
                observer.unsynced_meta(txn);
            }
        }
        commit
    }

    /// Notes that a sync begins, which covers the data of the newest commit.
    pub(super) fn cover(&mut self) {
        self.covered.clone_from(&self.tip);
    }

    fn is_reached(&self, one: &Waiting) -> bool {
        self.reached(one.wanted) >= one.txn
    }

    /// Called after a flush: whether the leader thread leads the next one.
    pub(super) fn continues(&self, leader: &LeaderThread) -> bool {
        let waits = |one: &&Waiting| !self.is_reached(one);
        let left = self.waiting.iter().filter(waits).count();
        match self.on_duty {
            true => left > 0,
            false => left >= LEADER_FROM && leader.is_running(),
        }
    }

    /// Removes the threads to wake: a leader for the next flush, unless the leader thread leads, followed by the
    /// waiters whose condition is met.
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

    /// Removes all waiters.
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
