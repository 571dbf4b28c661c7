//! An open file as its users have it: snapshots, the write transaction, syncs, figures.

use crate::commit::found::Recovery;
use crate::commit::metrics::{MetricsReport, Phase};
use crate::commit::pipeline::Until;
use crate::error::{Error, Result};
use crate::format::pins::Pin;
use crate::lock::readers::{Reader, WriterSeen};
use crate::lock::{Patience, protocol};
use crate::options::Options;
use crate::options::event::Event;
use crate::space::large::Large;
use crate::storage::Look;
use crate::system::clock::Clocks;
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

/// The system reads ahead no more than this at once, whatever it is asked for.
const WARM_BYTES: u64 = 128 << 10;

/// Figures about the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stat {
    /// Bytes of a page.
    pub page_size: usize,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Pages of the file, its head included.
    pub pages_total: u64,
    /// Pages that can be allocated now.
    pub pages_free: u64,
    /// Pages that are dead but seen by a snapshot or needed by the newest durable states, in both files.
    pub pages_pending: u64,
    /// Pages of the log of small commits, which count as in use.
    pub log_pages: u64,
    /// The longest free stretch, at most.
    pub longest_free_pages: u64,
    /// Bytes of the second file, for large values, as of the newest commit; 0 without one.
    pub large_bytes: u64,
    /// Pages of the second file that can be allocated now.
    pub large_pages_free: u64,
    /// The newest commit.
    pub txn: TxnId,
    /// Its wall-clock time, nanoseconds since 1970.
    pub commit_time_ns: i64,
    /// The file's identity.
    pub uuid: [u8; 16],
}

impl Pager {
    /// A snapshot of the newest commit of any process; any number, in any thread. Waits for nobody: about as
    /// long as a miss of the cache, unless another process has committed since the last one.
    ///
    /// # Errors
    /// `Limit` when too many snapshots are held, in all processes together; `Forked`; after a commit of another
    /// process `Io` and `Corrupt` from reading its record.
    pub fn begin_read(&self) -> Result<Snapshot> {
        Snapshot::begin(&self.inner, 0)
    }

    /// As [`begin_read`](Self::begin_read), for less, when this handle's newest commit is still what another snapshot showed; `None` when it
    /// is not.
    ///
    /// # Errors
    /// As for `begin_read`.
    #[inline]
    pub fn begin_read_as(&self, shown: &Shown) -> Result<Option<Snapshot>> {
        shown.begin(&self.inner)
    }

    /// A snapshot that the writer may take away when it holds space for too long
    /// ([`Options::evictable_age_max`], [`Options::on_laggard`], a full disk): every read copies, looks whether the snapshot is
    /// still there, and gives `Evicted` when it is not.
    ///
    /// # Errors
    /// As for `begin_read`.
    pub fn begin_read_evictable(&self) -> Result<Snapshot> {
        Snapshot::begin(&self.inner, protocol::EVICTABLE)
    }

    /// A snapshot of a pinned version; `None` when there is no pin of that name.
    ///
    /// # Errors
    /// As for `begin_read`; damage in the table of pins or in the pin's record.
    pub fn begin_read_at(&self, pin: &str) -> Result<Option<Snapshot>> {
        Snapshot::begin_at(&self.inner, pin)
    }

    /// All pins of the newest commit, the oldest first.
    ///
    /// # Errors
    /// As for `begin_read`; damage in the table of pins.
    pub fn pins(&self) -> Result<Vec<Pin>> {
        self.begin_read()?.pins()
    }

    /// The newest commit that is known to have been done at or before this time (nanoseconds since 1970, by the wall
    /// clock of the writers), with its time. Known are the newest commit, the pins, and about one a minute, fewer
    /// where they are old.
    ///
    /// # Errors
    /// As for `begin_read`; damage in the clock.
    pub fn txn_at(&self, time_ns: i64) -> Result<Option<(TxnId, i64)>> {
        self.begin_read()?.txn_at(time_ns)
    }

    /// Begins the write transaction; waits for others, first come first served among processes. Of the threads of one handle who is awake
    /// when the turn becomes free may have it before who sleeps and waits for it, for 5 ms at most.
    ///
    /// # Errors
    /// `ReadOnly`, `Poisoned`, `Forked`; `FileMoved` when the file is no longer the one at its path; what reading the free space or confirming the newest state meets; `LargeFile` when another process
    /// has given the database another second file than this handle has.
    pub fn begin_write(&self) -> Result<WriteTxn> {
        self.inner.files.check_writable()?;
        let begun = Instant::now();
        let turn = self.inner.turn_since(begun);
        let metrics = &self.inner.pipeline.metrics;
        metrics.lap(Phase::WaitForWriter, begun);
        WriteTxn::begin(Arc::clone(&self.inner), turn?)
    }

    /// Begins the write transaction unless others have it for longer than this.
    ///
    /// # Errors
    /// `WriterBusy`, which names the writer; else as for `begin_write`.
    pub fn begin_write_within(&self, patience: Duration) -> Result<WriteTxn> {
        self.inner.files.check_writable()?;
        self.inner.let_others()?;
        let patience = Patience {
            until: Instant::now().checked_add(patience),
            ..Patience::default()
        };
        match self.inner.files.turns.wait(&patience, &mut || ())? {
            Some(turn) => WriteTxn::begin(Arc::clone(&self.inner), turn),
            None => Err(self.inner.files.writer_busy()),
        }
    }

    /// Begins the write transaction; waits in line for others as long as `goes_on` says so (then `None`). That is asked every few milliseconds, must be quick, and must not use
    /// the database.
    ///
    /// # Errors
    /// As for `begin_write`.
    pub fn begin_write_while(&self, goes_on: &dyn Fn() -> bool) -> Result<Option<WriteTxn>> {
        self.inner.files.check_writable()?;
        self.inner.let_others()?;
        let patience = Patience {
            goes_on: Some(goes_on),
            ..Patience::default()
        };
        match self.inner.files.turns.wait(&patience, &mut || ())? {
            Some(turn) => WriteTxn::begin(Arc::clone(&self.inner), turn).map(Some),
            None => Ok(None),
        }
    }

    /// Begins the write transaction unless another one is under way in any process (then `None`).
    ///
    /// # Errors
    /// As for `begin_write`.
    pub fn try_begin_write(&self) -> Result<Option<WriteTxn>> {
        self.inner.files.check_writable()?;
        let Some(turn) = self.inner.files.turns.try_take()? else {
            return Ok(None);
        };
        WriteTxn::begin(Arc::clone(&self.inner), turn).map(Some)
    }

    /// What the clocks of this handle show ([`Options::clock`]).
    #[must_use]
    pub fn clocks(&self) -> Clocks {
        self.inner.files.options.clock.read()
    }

    /// Tells the logger, if there is one.
    pub fn log_event(&self, event: &Event) {
        self.inner.files.log(event);
    }

    /// What opening had to do to find a state that is whole.
    #[must_use]
    pub fn recovery(&self) -> Recovery {
        self.inner.recovery
    }

    /// Makes every commit so far durable, whoever made it. Waits for a write transaction under way in another handle, or where the newest
    /// commits are `None`; so it must not be called by who holds one after such a commit. Returns the newest commit.
    ///
    /// # Errors
    /// `Poisoned`; `FileMoved`; any error of a sync or of writing the record (then nothing more is acknowledged until
    /// reopened); what reading the record of another process meets.
    pub fn sync(&self) -> Result<TxnId> {
        self.make_durable(Until::Kept)
    }

    /// The same, and the log is emptied: all is in the newest record. Costs two barriers where there is something in the log.
    ///
    /// # Errors
    /// As for `sync`.
    pub fn checkpoint(&self) -> Result<TxnId> {
        self.make_durable(Until::Recorded)
    }

    fn make_durable(&self, wanted: Until) -> Result<TxnId> {
        let inner = &self.inner;
        inner.files.check_writable()?;
        inner.check_moved(Look::Full)?;
        inner.refresh()?;
        let newest = inner.pipeline.base(inner.state()).txn;
        // Another process may have seen to it.
        if inner.files.lock.area.durable().load(Ordering::Acquire) < newest.0 {
            make_durable(inner, (newest, wanted), None)?;
        }
        Ok(newest)
    }

    /// Makes everything durable, empties the log and closes this handle. (Others, and snapshots, keep the file open.) The record that was
    /// found when the file was opened is left as it is when this handle has had nothing to write: `sync` makes sure of it.
    ///
    /// Where the log takes much of the file and lies at its end, and nobody else has the file open, its pages are given back.
    ///
    /// # Errors
    /// As for `sync`.
    ///
    /// # Cost
    /// Two barriers where there is something in the log; four where its pages are given back.
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
                // No room for such a record: the log stays, empty.
                Err(Error::DiskFull { .. } | Error::FileFull { .. }) => {}
                done => return done,
            }
        }
        self.inner.check_moved(Look::Full)?;
        make_durable(&self.inner, (newest, Until::Recorded), None).map(|_| ())
    }

    /// The first record frees the log's pages, the second one no longer holds them; either makes durable what was in the log.
    fn give_log_back(&self) -> Result<()> {
        for _ in 0..2 {
            let mut txn = self.begin_write()?;
            txn.compact(u64::MAX);
            let app = txn.app().to_vec();
            txn.commit(&app, Durability::Durable)?;
        }
        Ok(())
    }

    /// Where the file would be much shorter without its log: how many pages lie behind that, few compared with it. `None` too where somebody else has the
    /// file open or writes to it.
    ///
    /// # Errors
    /// What reading the free space meets.
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
        let Some(_turn) = inner.files.turns.try_take()? else {
            return Ok(None);
        };
        let writer = inner.take_writer(&inner.state())?;
        let behind = writer.pages_behind_ballast();
        inner.put_writer(writer);
        Ok(behind)
    }

    /// Closes this handle without a sync, as dropping it does: lazy commits survive the process, not a power cut;
    /// `None` commits are lost.
    pub fn close_without_sync(self) {}

    /// Has the system read the file into memory ahead, from its beginning, up to `bytes_max` bytes; returns how many that is. It does not
    /// wait for them. Where the file is larger than what memory is to spare, nothing is gained beyond that.
    ///
    /// # Errors
    /// `Io` when the system refuses.
    pub fn warm_up(&self, bytes_max: u64) -> Result<u64> {
        let bytes = self.inner.state().bytes.min(bytes_max);
        for at in (0..bytes).step_by(WARM_BYTES as usize) {
            let len = (bytes - at).min(WARM_BYTES);
            let asked = self.inner.files.storage.read_ahead(at, len);
            asked.map_err(|source| Error::Io {
                what: "reading ahead".into(),
                at,
                source,
            })?;
        }
        Ok(bytes)
    }

    /// Keeps the file in memory from its beginning on, up to `bytes_max` bytes of what it is long now, and lets go what this handle kept beyond that:
    /// 0 ends it. Reads what is not there yet. Returns how many bytes that is; none where the file is not mapped. Closing the handle ends
    /// it; what the file grows by is not kept until this is called again.
    ///
    /// # Errors
    /// `Io` when the system refuses: beyond what it lets a process keep (RLIMIT_MEMLOCK). Nothing is kept then. `Forked`; after a commit of another
    /// process as for `begin_read`, and nothing changes.
    pub fn lock_in_memory(&self, bytes_max: u64) -> Result<u64> {
        self.inner.files.lock.check_process()?;
        self.inner.refresh()?;
        let bytes = self.inner.state().bytes.min(bytes_max);
        let locked = self.inner.files.storage.lock_in_memory(bytes);
        locked.map_err(|source| Error::Io {
            what: "keeping the file in memory".into(),
            at: 0,
            source,
        })
    }

    /// Counters and times of what was committed since the file was opened by this handle.
    #[must_use]
    pub fn metrics(&self) -> MetricsReport {
        self.inner.pipeline.metrics.report()
    }

    /// Bytes of a page.
    #[must_use]
    pub fn page_size(&self) -> usize {
        self.inner.files.page_size
    }

    /// Where the file is, without links: of one that was opened by its path.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.inner.files.path.as_deref()
    }

    /// The file's identity.
    #[must_use]
    pub fn uuid(&self) -> [u8; 16] {
        self.inner.files.superblock.uuid
    }

    /// From now on the file is at least `least` bytes long, free or not, and at most `most` ([`Options::file_bytes_min`], [`Options::file_bytes_max`]): what this handle, with its
    /// clones, makes of it. Others have their own bounds. A file that is longer than `most` stays so until free space at its end is cut off.
    pub fn set_file_bytes(&self, least: u64, most: u64) {
        self.inner.files.bounds.set(least, most);
    }

    /// How the file was opened.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.inner.files.options
    }

    /// Figures about the file, as of the newest commit. Waits for nobody. While a write transaction is under way, in whatever process, and where another handle
    /// has written since this one, they are those of the newest commit that all processes see: commits of `None` are left out then.
    ///
    /// # Errors
    /// What reading the free space meets; as for `begin_read`.
    ///
    /// # Cost
    /// In the handle that has written last, between two transactions, none but a sum over the zones of 128 MiB. Else the free space is read: a page a zone, and the lists of
    /// pages that are held.
    pub fn stat(&self) -> Result<Stat> {
        let inner = &self.inner;
        if inner.files.options.read_only {
            let _turn = inner.turn()?;
            return self.stat_in_turn();
        }
        inner.files.lock.check_process()?;
        // Taking the turn after others would make them read the free space anew.
        if inner.files.lock.is_last_writer()
            && let Some(_turn) = inner.files.turns.try_take()?
        {
            return self.stat_in_turn();
        }
        let (snapshot, writer) = published(inner)?;
        Ok(self.figures(&snapshot, &writer))
    }

    fn stat_in_turn(&self) -> Result<Stat> {
        // What a handle that only reads finds its free space in must stay as it is meanwhile.
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
            pages_pending: writer.space.held_pages(),
            log_pages: writer.meta.redo.map_or(0, |redo| redo.pages),
            longest_free_pages: writer.space.longest_free(),
            large_bytes: large.map_or(0, |large| large.pages() * page_size as u64),
            large_pages_free: large.map_or(0, Large::free_pages),
            txn: snapshot.txn(),
            commit_time_ns: snapshot.commit_time_ns(),
            uuid: self.inner.files.superblock.uuid,
        }
    }

    /// The snapshots that are held now, in all processes, by slot. Reads the reader table: some nanoseconds a slot
    /// that was ever used, and a system call a process.
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

    /// Who is writing now, in whatever process. Waits for nobody.
    #[must_use]
    pub fn writer(&self) -> Option<WriterSeen> {
        self.inner.files.lock.writer_now()
    }
}
