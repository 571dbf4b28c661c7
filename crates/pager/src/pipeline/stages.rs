//! What the stages of a commit decide: the weak record that a lazy commit leaves, the commit that the next flush takes, and who is woken
//! by it. All of it under the lock of the pipeline; nothing here waits or writes.

use super::{Chosen, Flushing, Recorded, Stages, Waiting, Weak};
use crate::layout::meta_at;
use crate::meta::{Meta, Standing};
use crate::pager::Inner;
use crate::seeded::{Bug, active};
use std::sync::Arc;
use std::thread::Thread;
use tidalite_base::get_u64;

impl Stages {
    /// Everything is durable.
    pub(super) fn settle(&mut self) {
        self.unsynced_bytes = 0;
        self.unsynced_since = None;
    }

    /// The weak record of a commit, and the slot for it: not that of the newest one.
    pub(super) fn weak_record(&mut self, inner: &Inner, commit: &Meta) -> (usize, Vec<u8>) {
        let slot = match self.weak {
            Some(weak) if !active(Bug::WeakInOneSlot) => 1 - weak.slot,
            _ => 0,
        };
        self.weak = Some(Weak {
            txn: commit.txn,
            slot,
        });
        let record = Meta {
            sequence: self.durable.sequence + 1,
            standing: Standing {
                sequence: self.durable.sequence,
                checksum: self.durable_checksum,
                next_checksum: match &self.flushing {
                    Some(next) if !active(Bug::WeakStandsOnOne) => next.checksum,
                    _ => 0,
                },
                boot_id: inner.lock.area.identity().boot,
            },
            ..commit.clone()
        };
        (slot, record.encode(0))
    }

    /// Begins a flush.
    pub(super) fn choose(&mut self, syncs_done: u64) -> Option<Chosen> {
        let weak = self.weak.map_or(0, |weak| weak.txn);
        let is_covered = |commit: &&Arc<Recorded>| {
            let reached = commit.syncs_before < syncs_done || active(Bug::CoveredTooEarly);
            reached && commit.txn() >= weak
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
        // One barrier, when nothing but what it lists has been written since the newest durable record.
        let flushed = match &commit.flushed {
            Some((on, ranges)) if *on == durable && !covered => Some(ranges.clone()),
            _ => None,
        };
        let record = Meta {
            sequence: self.durable.sequence + 1,
            flushed,
            ..commit.record.clone()
        };
        let block = record.encode(meta_at(record.pair(), 0));
        let checksum = get_u64(&block, 0);
        self.flushing = Some(Flushing {
            txn: record.txn,
            checksum,
        });
        Some(Chosen {
            commit,
            record,
            block,
            checksum,
            covered,
            length_unsynced: std::mem::take(&mut self.length_unsynced),
        })
    }

    /// A sync begins now: it reaches the data of the newest commit.
    pub(super) fn cover(&mut self) {
        self.covered.clone_from(&self.tip);
    }

    /// Who waits for a transaction up to this one, and one more to lead the next flush: they are to be woken. The leader is the first.
    pub(super) fn take_up_to(&mut self, txn: u64) -> Vec<Thread> {
        let mut woken = Vec::with_capacity(self.waiting.len());
        let (done, waiting) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|waiting| waiting.txn <= txn);
        self.waiting = waiting;
        woken.extend(self.take_leader());
        let done: Vec<Waiting> = done;
        woken.extend(done.into_iter().map(|waiting| waiting.thread));
        woken
    }

    pub(super) fn take_leader(&mut self) -> Option<Thread> {
        let leads = self.flushing.is_none();
        let leader = leads.then(|| self.waiting.pop()).flatten()?;
        Some(leader.thread)
    }
}
