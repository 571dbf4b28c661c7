//! Data shared by readers, the writer and waiting threads: the files, the commits of this handle, the commit
//! pipeline.

use super::files::Files;
use super::pipeline::{Pipeline, Until, Waited};
use super::versions::{State, Versions};
use crate::error::Result;
use crate::options::event::Event;
use crate::options::long_reader::OnWait;
use crate::seeded::{Bug, active};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tidalite_base::TxnId;
use tidalite_disk::lock::Reader;
use tidalite_disk::lock::Seen;
use tidalite_disk::lock::WaitLimit;
use tidalite_disk::lock::{Acquisition, Satisfied, WriterGuard};
use tidalite_disk::storage::MoveCheck;

/// Initial capacity of the list of transactions whose pages must be kept.
const LIVE: usize = 16;

/// The open file as readers, the writer and waiting threads share it, without the private state of the writer.
pub(crate) struct Shared {
    pub(crate) versions: Versions,
    pub(crate) pipeline: Pipeline,
    /// This field is dropped last, and in it the lock area, which must outlive everything else.
    pub(crate) files: Files,
}

impl Shared {
    /// Returns the newest commit that this handle knows.
    pub(crate) fn state(&self) -> Arc<State> {
        self.versions.state()
    }

    /// Publishes a commit of this handle to readers (see [`Versions::publish`]).
    pub(crate) fn publish(&self, state: &Arc<State>, to_all: bool) {
        self.versions.publish(&self.files.lock, state, to_all);
    }

    /// Adopts the newest commit that another handle has published.
    #[cold]
    pub(crate) fn refresh(&self) -> Result<()> {
        self.versions.refresh(&self.files)
    }

    /// Waits until a commit is durable (see [`Pipeline::wait`]).
    pub(crate) fn wait(&self, wanted: (u64, Until), until: Option<Instant>) -> Result<Waited> {
        self.pipeline
            .wait(&self.files, &self.versions, wanted, until)
    }

    /// Acquires the writer lock; in a read-only handle, only the part of the lock that excludes other threads of this
    /// handle.
    pub(crate) fn lock_writer(&self) -> Result<WriterGuard> {
        self.lock_writer_since(Instant::now())
    }

    /// Like `lock_writer`, for a thread that has already waited since `begun`.
    pub(crate) fn lock_writer_since(&self, begun: Instant) -> Result<WriterGuard> {
        match self.lock_writer_unless(begun, None)? {
            Acquisition::Acquired(guard) => Ok(guard),
            Acquisition::TimedOut | Acquisition::Satisfied => Err(self.files.writer_busy()),
        }
    }

    /// Like `lock_writer_since`, but gives up as soon as `satisfied` returns true (see `WriterLock::wait_unless`).
    pub(crate) fn lock_writer_unless(
        &self,
        begun: Instant,
        satisfied: Option<Satisfied<'_>>,
    ) -> Result<Acquisition> {
        self.files.lock.check_process()?;
        if self.files.options.read_only {
            return Ok(Acquisition::Acquired(
                self.files.writer_lock.wait_as_reader(),
            ));
        }
        self.yield_to_other_handles()?;
        let mut told = 0;
        let mut waiting = || {
            let seconds = begun.elapsed().as_secs();
            if seconds > told
                && let Some(OnWait(tell)) = &self.files.options.on_wait
                && let Some(writer) = self.files.lock.writer_now()
            {
                told = seconds;
                tell(&writer);
            }
        };
        let patience = WaitLimit::default();
        let acquired = self
            .files
            .writer_lock
            .wait_unless(&patience, &mut waiting, satisfied)?;
        Ok(acquired)
    }

    /// Lets other handles write. While commits of this handle wait for a shared flush, this handle keeps the writer
    /// lock, for ever if new commits keep coming. If another handle waits, a writer therefore calls this function
    /// first. It makes the pending commits durable, which releases the lock, so that the caller queues behind the
    /// other handle.
    pub(crate) fn yield_to_other_handles(&self) -> Result<()> {
        if !self.files.writer_lock.keeps() || !self.files.lock.others_wait() {
            return Ok(());
        }
        if let Some(newest) = self.pipeline.newest_recorded() {
            // The result does not matter, since the caller acquires the writer lock next.
            let _ = self.wait((newest, Until::Kept), None)?;
        }
        Ok(())
    }

    /// Returns an error if the data file is no longer the file at its path (see [`Pipeline::check_moved`]). Must not
    /// be called under the lock of the pipeline.
    pub(crate) fn check_moved(&self, look: MoveCheck) -> Result<()> {
        self.pipeline.check_moved(&self.files, look)
    }

    /// Returns the transactions whose pages must be kept, in ascending order: transactions that readers of all
    /// processes see, and the newest commits.
    pub(crate) fn live(&self) -> Vec<u64> {
        let mut live = Vec::with_capacity(LIVE);
        live.push(self.versions.local.load(Ordering::SeqCst));
        if !active(Bug::ReuseEarly) {
            live.push(self.files.lock.area.published().load(Ordering::SeqCst));
        }
        if !active(Bug::ForgetReaders) {
            self.files
                .lock
                .for_each_reader(|reader| live.push(reader.txn));
        }
        self.pipeline.holds(&mut live);
        live.sort_unstable();
        live.dedup();
        live
    }

    /// Whether the lazy commits that are not durable yet exceed `sync_bytes` or are older than `age_max`.
    pub(crate) fn sync_is_due(&self, age_max: Option<Duration>) -> bool {
        let (bytes, since) = self.pipeline.unsynced();
        let by_bytes = self
            .files
            .options
            .sync_bytes
            .is_some_and(|most| bytes >= most);
        let age = || since.map_or(Duration::ZERO, |since| since.elapsed());
        by_bytes || age_max.is_some_and(|most| age() >= most)
    }

    /// Like `sync_is_due`, for a writer that keeps the writer lock between transactions. The background flusher
    /// cannot run meanwhile, so the limit of the background flusher applies as well.
    pub(crate) fn sync_is_due_for_writer(&self) -> bool {
        let ages = [
            self.files.options.sync_after,
            self.files.options.background_flush,
        ];
        self.sync_is_due(ages.into_iter().flatten().min())
    }

    /// Returns the public description of a reader.
    pub(crate) fn reader(&self, seen: &Seen) -> Reader {
        let newest = self.versions.local.load(Ordering::SeqCst);
        let page_bytes = self.files.page_size as u64;
        self.files.lock.describe(seen, newest, page_bytes)
    }

    /// Evicts the snapshot of a reader if it is evictable; returns whether it was evicted.
    pub(crate) fn evict(&self, reader: &Seen) -> bool {
        let evicted = self.files.lock.evict(reader);
        if evicted {
            self.files.log(&Event::Evicted {
                process: reader.process,
                txn: TxnId(reader.txn),
            });
        }
        evicted
    }
}
