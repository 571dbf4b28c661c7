//! The public handle of an open file: snapshots, the write transaction, syncs, statistics.

use crate::commit::found::Recovery;
use crate::commit::metrics::{MetricsReport, Phase};
use crate::commit::pipeline::Until;
use crate::error::{Error, Result};
use crate::format::pins::Pin;
use crate::options::Options;
use crate::options::event::Event;
use crate::space::large::Large;
use crate::txn::inner::Pager;
use crate::txn::published::published;
use crate::txn::snapshot::{Shown, Snapshot};
use crate::txn::writer::Writer;
use crate::txn::{Durability, WriteTxn, make_durable};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tidalite_base::TxnId;
use tidalite_disk::lock::{Reader, WriterSeen};
use tidalite_disk::lock::{WaitLimit, protocol};
use tidalite_disk::storage::MoveCheck;
use tidalite_disk::system::Clocks;

/// Maximum number of bytes that the system reads ahead per request, so that larger ranges need several requests.
const WARM_BYTES: u64 = 128 << 10;

/// Statistics of the database file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stat {
    /// Page size in bytes.
    pub page_size: usize,
    /// Length of the file in bytes.
    pub file_bytes: u64,
    /// Number of pages of the file, including its head.
    pub pages_total: u64,
    /// Number of pages that can be allocated now.
    pub pages_free: u64,
    /// Number of freed pages, in both files, that a snapshot or one of the newest two durable commits still needs.
    pub pages_pending: u64,
    /// Number of pages of the redo log, which count as in use.
    pub log_pages: u64,
    /// Upper bound of the length in pages of the longest free range.
    pub longest_free_pages: u64,
    /// Length in bytes of the second file, which stores large values, as of the newest commit; 0 if there is no
    /// second file.
    pub large_bytes: u64,
    /// Number of pages of the second file that can be allocated now.
    pub large_pages_free: u64,
    /// Transaction number of the newest commit.
    pub txn: TxnId,
    /// Wall-clock time of the newest commit, in nanoseconds since 1970.
    pub commit_time_ns: i64,
    /// UUID of the file.
    pub uuid: [u8; 16],
}

impl Pager {
    /// Returns a snapshot of the newest commit of any process. Any number of snapshots may exist, in any thread. This
    /// function never waits; it takes about as long as a cache miss, unless another process has committed since the
    /// last snapshot.
    ///
    /// # Errors
    /// `Limit` if too many snapshots exist, in all processes together; `Forked`; after a commit of another process,
    /// `Io` and `Corrupt` from reading the meta record of that commit.
    pub fn begin_read(&self) -> Result<Snapshot> {
        Snapshot::begin(&self.inner, 0)
    }

    /// A cheaper [`begin_read`](Self::begin_read), which returns a snapshot only if the newest commit that this
    /// handle knows is still the commit `shown` of another snapshot; otherwise returns `None`.
    ///
    /// # Errors
    /// As for `begin_read`.
    #[inline]
    pub fn begin_read_as(&self, shown: &Shown) -> Result<Option<Snapshot>> {
        shown.begin(&self.inner)
    }

    /// Returns a snapshot that the writer may evict when it retains space for too long or when the disk is full
    /// ([`Options::evictable_age_max`], [`Options::on_long_reader`]). Every read copies the bytes, then checks that
    /// the snapshot is still valid, and returns `Evicted` if it is not.
    ///
    /// # Errors
    /// As for `begin_read`.
    pub fn begin_read_evictable(&self) -> Result<Snapshot> {
        Snapshot::begin(&self.inner, protocol::EVICTABLE)
    }

    /// Returns a snapshot of a pinned version; `None` if no pin has this name.
    ///
    /// # Errors
    /// As for `begin_read`; `Corrupt` if the table of pins or the meta record of the pin is damaged.
    pub fn begin_read_at(&self, pin: &str) -> Result<Option<Snapshot>> {
        Snapshot::begin_at(&self.inner, pin)
    }

    /// Returns all pins of the newest commit, the oldest first.
    ///
    /// # Errors
    /// As for `begin_read`; `Corrupt` if the table of pins is damaged.
    pub fn pins(&self) -> Result<Vec<Pin>> {
        self.begin_read()?.pins()
    }

    /// Returns the newest commit known to have been made at or before this time (nanoseconds since 1970, by the wall
    /// clock of the writers), with its time. Only the times of the newest commit, of the pins, and of about one
    /// commit a minute are stored; for old commits, even fewer times.
    ///
    /// # Errors
    /// As for `begin_read`; `Corrupt` if the list of commit times is damaged.
    pub fn txn_at(&self, time_ns: i64) -> Result<Option<(TxnId, i64)>> {
        self.begin_read()?.txn_at(time_ns)
    }

    /// Begins the write transaction. Waits while other threads or processes hold the writer lock; processes get the
    /// lock in order of arrival. Within one handle, a running thread may take a free writer lock before a waiting
    /// thread that sleeps, but delays that thread by at most 5 ms.
    ///
    /// # Errors
    /// `ReadOnly`, `Poisoned`, `Forked`; `FileMoved` if the file at the path is another one now; errors from reading
    /// the free space or confirming the newest commit; `LargeFile` if another process has given the database a second
    /// file that this handle does not have.
    pub fn begin_write(&self) -> Result<WriteTxn> {
        self.inner.files.check_writable()?;
        let begun = Instant::now();
        let guard = self.inner.lock_writer_since(begun);
        let metrics = &self.inner.pipeline.metrics;
        metrics.lap(Phase::WaitForWriter, begun);
        WriteTxn::begin(Arc::clone(&self.inner), guard?)
    }

    /// Begins the write transaction; returns `WriterBusy` if other threads or processes hold the writer lock for
    /// longer than `patience`.
    ///
    /// # Errors
    /// `WriterBusy`, which names the writer; otherwise as for `begin_write`.
    pub fn begin_write_within(&self, patience: Duration) -> Result<WriteTxn> {
        self.inner.files.check_writable()?;
        self.inner.yield_to_other_handles()?;
        let patience = WaitLimit {
            until: Instant::now().checked_add(patience),
            ..WaitLimit::default()
        };
        match self.inner.files.writer_lock.wait(&patience, &mut || ())? {
            Some(guard) => WriteTxn::begin(Arc::clone(&self.inner), guard),
            None => Err(self.inner.files.writer_busy()),
        }
    }

    /// Begins the write transaction. Waits for the writer lock while `goes_on` returns true, and returns `None` once it
    /// returns false. `goes_on` is called every few milliseconds, must be quick, and must not use the database.
    ///
    /// # Errors
    /// As for `begin_write`.
    pub fn begin_write_while(&self, goes_on: &dyn Fn() -> bool) -> Result<Option<WriteTxn>> {
        self.inner.files.check_writable()?;
        self.inner.yield_to_other_handles()?;
        let patience = WaitLimit {
            goes_on: Some(goes_on),
            ..WaitLimit::default()
        };
        match self.inner.files.writer_lock.wait(&patience, &mut || ())? {
            Some(guard) => WriteTxn::begin(Arc::clone(&self.inner), guard).map(Some),
            None => Ok(None),
        }
    }

    /// Begins the write transaction; returns `None` if another one is open in any process.
    ///
    /// # Errors
    /// As for `begin_write`.
    pub fn try_begin_write(&self) -> Result<Option<WriteTxn>> {
        self.inner.files.check_writable()?;
        let Some(guard) = self.inner.files.writer_lock.try_take()? else {
            return Ok(None);
        };
        WriteTxn::begin(Arc::clone(&self.inner), guard).map(Some)
    }

    /// Readings of the clocks of this handle ([`Options::clock`]): now, and when the file was opened.
    #[must_use]
    pub fn clocks(&self) -> (Clocks, Clocks) {
        self.inner.files.clocks()
    }

    /// Passes the event to the logger of this handle, if there is one.
    pub fn log_event(&self, event: &Event) {
        self.inner.files.log(event);
    }

    /// Describes the work that was done at opening to find the newest intact commit.
    #[must_use]
    pub fn recovery(&self) -> Recovery {
        self.inner.recovery
    }

    /// Makes all commits so far durable, including commits of other processes, and returns the newest commit. Waits
    /// for an open write transaction of another handle. Waits for a write transaction of this handle only if the
    /// newest commits have [`Durability::None`]; a thread that holds a write transaction after such a commit must not
    /// call this function.
    ///
    /// # Errors
    /// `Poisoned`; `FileMoved`; any error of a sync or of writing the meta record (no commit is acknowledged then
    /// until the file is reopened); errors from reading the meta record of another process.
    pub fn sync(&self) -> Result<TxnId> {
        self.make_durable(Until::Kept)
    }

    /// Like `sync`, but also empties the redo log by writing a meta record that covers all commits in the redo log.
    /// Costs two syncs if the redo log is not empty.
    ///
    /// # Errors
    /// As for `sync`.
    pub fn checkpoint(&self) -> Result<TxnId> {
        self.make_durable(Until::Recorded)
    }

    fn make_durable(&self, wanted: Until) -> Result<TxnId> {
        let inner = &self.inner;
        inner.files.check_writable()?;
        inner.check_moved(MoveCheck::Full)?;
        inner.refresh()?;
        let newest = inner.pipeline.base(inner.state()).txn;
        // Another process may have made the commit durable already.
        if inner.files.lock.area.durable().load(Ordering::Acquire) < newest.0 {
            make_durable(inner, (newest, wanted), None)?;
        }
        Ok(newest)
    }

    /// Makes everything durable, empties the redo log and closes this handle. (Other handles and snapshots keep the
    /// file open.) If this handle had nothing to write, `close` does not rewrite the meta record found at opening to
    /// confirm that it is on the medium; `sync` does.
    ///
    /// If the redo log is a large part of the file and lies near its end, and no other handle has the file open, the
    /// pages of the log are freed.
    ///
    /// # Errors
    /// As for `sync`.
    ///
    /// # Cost
    /// Two syncs if the redo log is not empty; four if its pages are freed.
    pub fn close(self) -> Result<()> {
        if self.inner.files.options.read_only {
            return Ok(());
        }
        self.inner.files.check_writable()?;
        let newest = self.inner.pipeline.base(self.inner.state()).txn;
        if self.inner.pipeline.is_as_found(newest.0) {
            return Ok(());
        }
        if self.pages_behind_ballast()?.is_some() {
            match self.give_log_back() {
                // If there is not enough room for the pages of these commits, the redo log keeps its pages, but is
                // emptied.
                Err(error) if error.is_full() => {}
                done => return done,
            }
        }
        self.inner.check_moved(MoveCheck::Full)?;
        make_durable(&self.inner, (newest, Until::Recorded), None).map(|_| ())
    }

    /// Frees the pages of the redo log with two commits. The meta record of the first commit frees the pages, and
    /// after the second no durable meta record needs them any more. Each meta record also covers the commits in the
    /// log.
    fn give_log_back(&self) -> Result<()> {
        for _ in 0..2 {
            let mut txn = self.begin_write()?;
            txn.compact(u64::MAX);
            let app = txn.app().to_vec();
            txn.commit(&app, Durability::Durable)?;
        }
        Ok(())
    }

    /// Returns whether freeing the pages of the redo log would make the file much shorter. If so, returns the number
    /// of pages in use after the redo log, which are few in comparison; otherwise `None`. Returns `None` also if
    /// another handle has the file open, or if a thread writes to the file.
    ///
    /// # Errors
    /// Errors from reading the free space.
    pub fn pages_behind_ballast(&self) -> Result<Option<u64>> {
        let inner = &self.inner;
        let mut alone = false;
        inner
            .files
            .lock
            .if_alone(|| alone = inner.files.lock.is_last_writer());
        if !alone || !inner.files.storage.resizes() {
            return Ok(None);
        }
        let Some(_turn) = inner.files.writer_lock.try_take()? else {
            return Ok(None);
        };
        let writer = inner.take_writer(&inner.state())?;
        let behind = writer.pages_behind_ballast();
        inner.put_writer(writer);
        Ok(behind)
    }

    /// Closes this handle without a sync, like dropping it. Lazy commits survive the end of the process, but perhaps
    /// not a power failure; commits with [`Durability::None`] are lost.
    pub fn close_without_sync(self) {}

    /// Makes the system start to read the file into memory, from its beginning, up to `bytes_max` bytes. Returns the
    /// number of bytes requested, without waiting for them. Requesting more than the spare memory gains nothing.
    ///
    /// # Errors
    /// `Io` if the system call fails.
    pub fn warm_up(&self, bytes_max: u64) -> Result<u64> {
        let bytes = self.inner.state().bytes.min(bytes_max);
        for at in (0..bytes).step_by(WARM_BYTES as usize) {
            let len = (bytes - at).min(WARM_BYTES);
            let asked = self.inner.files.storage.read_ahead(at, len);
            asked.map_err(|source| Error::of_call("reading ahead", at, source))?;
        }
        Ok(bytes)
    }

    /// Locks the file in memory from its beginning, up to `bytes_max` bytes of its current length, and reads missing
    /// parts. Unlocks any bytes that this handle has locked beyond these; thus 0 unlocks all bytes. Returns the
    /// number of locked bytes; 0 if the file is not mapped. Closing the handle unlocks the file; bytes by which the
    /// file grows later are not locked until this function is called again.
    ///
    /// # Errors
    /// `Io` if the limit of the process (RLIMIT_MEMLOCK) is exceeded; no bytes are locked then. `Forked`. After a
    /// commit of another process, the errors of `begin_read`; the locked bytes do not change then.
    pub fn lock_in_memory(&self, bytes_max: u64) -> Result<u64> {
        self.inner.files.lock.check_process()?;
        self.inner.refresh()?;
        let bytes = self.inner.state().bytes.min(bytes_max);
        let locked = self.inner.files.storage.lock_in_memory(bytes);
        locked.map_err(|source| Error::of_call("keeping the file in memory", 0, source))
    }

    /// Counts and durations of commits since this handle opened the file.
    #[must_use]
    pub fn metrics(&self) -> MetricsReport {
        self.inner.pipeline.metrics.report()
    }

    /// Page size in bytes.
    #[must_use]
    pub fn page_size(&self) -> usize {
        self.inner.files.page_size
    }

    /// Path of the file with symbolic links resolved, if the file was opened by path.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.inner.files.path.as_deref()
    }

    /// UUID of the file.
    #[must_use]
    pub fn uuid(&self) -> [u8; 16] {
        self.inner.files.superblock.uuid
    }

    /// Keeps the length of the file at least `least` bytes, even if part of the file is free, and at most `most`
    /// bytes ([`Options::file_bytes_min`], [`Options::file_bytes_max`]). This applies to this handle and its clones;
    /// other handles have their own limits. A file that is already longer than `most` becomes shorter only when free
    /// space at its end is truncated.
    pub fn set_file_bytes(&self, least: u64, most: u64) {
        self.inner.files.bounds.set(least, most);
    }

    /// The options with which the file was opened.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.inner.files.options
    }

    /// Statistics of the file, as of the newest commit. Never waits. While a write transaction is open in any
    /// process, or if another handle has written after this handle, the statistics describe the newest commit visible
    /// to all processes; commits with [`Durability::None`] are not counted then.
    ///
    /// # Errors
    /// Errors from reading the free space; the errors of `begin_read`.
    ///
    /// # Cost
    /// In the handle that wrote last, between two transactions: a sum over the regions, which have 128 MiB each.
    /// Otherwise the free space is read: one page per region, and the lists of freed pages that snapshots still need.
    pub fn stat(&self) -> Result<Stat> {
        let inner = &self.inner;
        if inner.files.options.read_only {
            let _turn = inner.lock_writer()?;
            return self.stat_locked();
        }
        inner.files.lock.check_process()?;
        // The writer lock is taken only if this handle was the last writer; otherwise the next writer of the other
        // handle would have to read the free space again.
        if inner.files.lock.is_last_writer()
            && let Some(_turn) = inner.files.writer_lock.try_take()?
        {
            return self.stat_locked();
        }
        let (snapshot, writer) = published(inner)?;
        Ok(self.figures(&snapshot, &writer))
    }

    fn stat_locked(&self) -> Result<Stat> {
        // In a read-only handle, the snapshot retains the pages from which the free space is read.
        let snapshot = self.begin_read()?;
        let mut writer = self.inner.take_writer(snapshot.state())?;
        writer.reclaim(&self.inner);
        let stat = self.figures(&snapshot, &writer);
        self.inner.put_writer(writer);
        Ok(stat)
    }

    fn figures(&self, snapshot: &Snapshot, writer: &Writer) -> Stat {
        let page_size = self.inner.files.page_size;
        let large = writer.space.large.as_deref();
        Stat {
            page_size,
            file_bytes: writer.space.pages() * page_size as u64,
            pages_total: writer.space.pages(),
            pages_free: writer.space.free_pages(),
            pages_pending: writer.space.retained_pages(),
            log_pages: writer.meta.redo.map_or(0, |redo| redo.pages),
            longest_free_pages: writer.space.longest_free(),
            large_bytes: large.map_or(0, |large| large.pages() * page_size as u64),
            large_pages_free: large.map_or(0, Large::free_pages),
            txn: snapshot.txn(),
            commit_time_ns: snapshot.commit_time_ns(),
            uuid: self.inner.files.superblock.uuid,
        }
    }

    /// Returns the snapshots that all processes hold now, in the order of their slots. Reads the reader table, which
    /// takes some nanoseconds for each slot ever used, and a system call for each process.
    ///
    /// # Errors
    /// `Forked`.
    pub fn readers(&self) -> Result<Vec<Reader>> {
        self.inner.files.lock.check_process()?;
        let mut readers = Vec::new();
        let inner = &self.inner;
        inner
            .files
            .lock
            .for_each_reader(|seen| readers.push(inner.reader(seen)));
        Ok(readers)
    }

    /// Describes the current writer, in any process, if there is one. Never waits.
    #[must_use]
    pub fn writer(&self) -> Option<WriterSeen> {
        self.inner.files.lock.writer_now()
    }
}
