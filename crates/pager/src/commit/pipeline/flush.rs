//! Execution of a flush, which writes a meta record with two syncs, or blocks of the redo log with one sync.

use super::Until;
use super::{Chosen, ChosenLog, ChosenMeta, Pipeline, Recorded, unpark};
use crate::commit::files::Files;
use crate::commit::metrics::{Metrics, Phase};
use crate::commit::second_file::LargeFile;
use crate::commit::versions::Versions;
use crate::error::{Error, Result};
use crate::format::layout::{BLOCK_BYTES, meta_at};
use crate::format::meta::Meta;
use crate::seeded::{Bug, active};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::thread::Thread;
use std::time::Instant;
use tidalite_disk::Error as DiskError;
use tidalite_disk::storage::MoveCheck;
use tidalite_disk::storage::Storage;

impl Pipeline {
    /// Runs one flush in the thread that leads it. Also returns the threads that the caller must wake after the lock
    /// is released; if they were woken under the lock, they would only block on it.
    pub(super) fn flush(
        &self,
        files: &Files,
        versions: &Versions,
        chosen: Chosen,
    ) -> (Vec<Thread>, Result<()>) {
        let unwound = Unwound(self, files);
        let done = match &chosen {
            Chosen::Record(chosen) => self.write(files, chosen),
            Chosen::Log(chosen) => self.append(files, chosen),
        };
        // No commit is acknowledged if the file is no longer at its path. The file then looks as if the process had
        // been killed after the last sync.
        let done = done.and_then(|()| self.check_moved(files, MoveCheck::Full));
        if let Err(error) = done {
            if !matches!(error, Error::Disk(DiskError::FileMoved { .. })) {
                files.poison(&error);
            }
            std::mem::forget(unwound);
            return (self.broken(files), Err(error));
        }
        let mut stages = self.stages();
        let flushed = stages.flushing.take();
        stages.small = stages.small.saturating_add(1);
        let commit = match chosen {
            Chosen::Record(chosen) => stages.recorded(files, *chosen),
            Chosen::Log(chosen) => stages.appended(files, chosen),
        };
        let txn = commit.txn();
        assert!(
            flushed.is_some_and(|flushed| flushed.txn == txn),
            "the flush of another commit ends"
        );
        let is_done = |tip: &Arc<Recorded>| tip.txn() <= txn;
        if stages.tip.as_ref().is_none_or(is_done) {
            stages.note_all_durable();
        }
        let begun = Instant::now();
        versions.publish(&files.lock, &commit.state, true);
        self.metrics.record(Phase::Publish, begun.elapsed());
        self.may_give(files, &stages);
        self.note_reached(&stages);
        let was_on_duty = stages.on_duty;
        stages.on_duty = stages.continues(&self.leader);
        let begins = stages.on_duty && !was_on_duty;
        let woken = stages.take_reached();
        drop(stages);
        if begins {
            self.leader.call();
        }
        files.writer_lock.notify_listeners();
        std::mem::forget(unwound);
        (woken, Ok(()))
    }

    /// Leads flushes while threads wait; returns the last threads, which the caller must wake.
    pub(crate) fn lead(&self, files: &Files, versions: &Versions) -> Vec<Thread> {
        loop {
            let mut stages = self.stages();
            if !stages.on_duty {
                return Vec::new();
            }
            let Some(chosen) = self.begin(files, &mut stages, Until::Kept) else {
                // The next flush requires the writer lock. All waiters are woken: each decides by its own timeout
                // whether to wait for the lock.
                stages.on_duty = false;
                return stages.take_all();
            };
            drop(stages);
            Metrics::add(&self.metrics.flushes_by_leader, 1);
            // The error is stored in the handle, and every affected thread will return it.
            let (woken, _) = self.flush(files, versions, chosen);
            if !self.stages().on_duty {
                return woken;
            }
            unpark(woken);
        }
    }

    /// Ends all flushes after a flush has failed and the handle is poisoned. Returns the threads that the caller must
    /// wake.
    fn broken(&self, files: &Files) -> Vec<Thread> {
        let mut stages = self.stages();
        stages.flushing = None;
        stages.on_duty = false;
        let woken = stages.take_all();
        self.may_give(files, &stages);
        drop(stages);
        files.writer_lock.notify_listeners();
        woken
    }

    /// Writes a meta record, with a sync before and after it.
    fn write(&self, files: &Files, chosen: &ChosenMeta) -> Result<()> {
        debug_assert_eq!(
            chosen.record.txn,
            chosen.commit.txn(),
            "the record of another commit"
        );
        if let Some(observer) = files.observer() {
            observer.flush_began(chosen.record.txn);
        }
        if chosen.covered && !chosen.length_unsynced {
            Metrics::add(&self.metrics.syncs_saved, 1);
        } else {
            let whole = chosen.length_unsynced && !active(Bug::GrowthNotDurable);
            self.sync(files, Phase::SyncData, whole)?;
        }
        let written = || write_meta(&*files.storage, &chosen.record, &chosen.block);
        self.metrics.time(Phase::MetaWrite, written)?;
        Metrics::add(&self.metrics.records, 1);
        Metrics::add(&self.metrics.bytes_meta, 2 * BLOCK_BYTES as u64);
        if active(Bug::LogTooEarly) && chosen.record.redo.is_some() {
            return Ok(());
        }
        self.sync(files, Phase::SyncMeta, false)
    }

    /// Writes blocks of the redo log, with one sync that covers only these blocks.
    fn append(&self, files: &Files, ChosenLog { appended, .. }: &ChosenLog) -> Result<()> {
        let (at, bytes) = appended.blocks();
        assert!(
            !bytes.is_empty() && bytes.len().is_multiple_of(BLOCK_BYTES),
            "the log is written in blocks"
        );
        Metrics::add(&self.metrics.syncs, 1);
        Metrics::add(&self.metrics.appends, 1);
        Metrics::add(&self.metrics.bytes_log, bytes.len() as u64);
        let append = || files.storage.write_durably(at, &bytes);
        let written = self.metrics.time(Phase::Log, append);
        // After a failure, it is unknown which contents the blocks have, so the error poisons the handle.
        written.map_err(|source| Error::of_call("write to the log", at, source))?;
        drop(self.beside.lock().unwrap_or_else(PoisonError::into_inner));
        files.check_poison()
    }

    /// Syncs the file. If the sync succeeds, all earlier writes are on the medium; if it fails, it is unknown which
    /// writes are.
    fn sync(&self, files: &Files, phase: Phase, length: bool) -> Result<()> {
        let number = self.syncs_begun.fetch_add(1, Ordering::SeqCst) + 1;
        if phase == Phase::SyncMeta {
            self.stages().cover();
        }
        Metrics::add(&self.metrics.syncs, 1);
        let synced = self.metrics.time(phase, || {
            files.large.as_ref().map_or(Ok(()), LargeFile::sync)?;
            if length {
                files.storage.sync_all()
            } else {
                files.storage.sync()
            }
        });
        synced.map_err(|source| Error::of_call("sync", 0, source))?;
        drop(self.beside.lock().unwrap_or_else(PoisonError::into_inner));
        files.check_poison()?;
        let done = self.syncs_done.fetch_max(number, Ordering::SeqCst);
        debug_assert!(done < number, "syncs of flushes end in order");
        Ok(())
    }
}

/// Guard that is dropped only if a user-supplied storage or logger panics inside a flush. As after an error, it is
/// unknown which writes reached the medium. The guard poisons the handle and wakes the waiters, which would otherwise
/// wait for ever.
struct Unwound<'a>(&'a Pipeline, &'a Files);

impl Drop for Unwound<'_> {
    fn drop(&mut self) {
        let Self(pipeline, files) = self;
        files.poison_unlogged("panic inside a flush");
        unpark(pipeline.broken(files));
    }
}

/// Writes both copies of a meta record to the pair of meta blocks that does not have the newest durable meta record.
/// `block` is the first copy, already encoded.
fn write_meta(storage: &dyn Storage, record: &Meta, block: &[u8]) -> Result<()> {
    assert_eq!(block.len(), BLOCK_BYTES, "a meta record is one block");
    for copy in [0, 1] {
        let second;
        let at = match copy {
            1 if !active(Bug::CopiesInOneBlock) => meta_at(record.pair(), 1),
            _ => meta_at(record.pair(), 0),
        };
        let bytes = if copy == 0 {
            block
        } else {
            second = record.encode(at);
            &second
        };
        // After a failure, it is unknown which contents the block has, and a later sync may make them durable.
        // Therefore every error, even a full disk, is fatal here.
        let failed = |source| Error::of_call("write of a meta block", at, source);
        storage.write_at(at, bytes).map_err(failed)?;
    }
    Ok(())
}
