//! Readers and writers in several processes: who holds snapshots and the writer lock, and snapshots that may be
//! evicted, renewed or parked.

use crate::database::handle::Database;
use crate::database::tuning::Tuning;
use crate::txn::read::ReadTxn;
use crate::types::error::Result;
use std::sync::Arc;
use std::time::Duration;
use tidalite_pager::{
    LongReader, LongReaderAction, OnLongReader, OnWait, Parked, Reader, WriterSeen,
};

impl Tuning {
    /// Evictable and parked snapshots older than `age` are evicted when the file would have to grow and they retain
    /// pages. Without this setting they are evicted only when the disk is full, or by [`Tuning::on_long_reader`].
    pub fn evictable_age_max(mut self, age: Duration) -> Self {
        self.store.evictable_age_max = Some(age);
        self
    }

    /// Calls `decide` about the reader that retains most space, in any process, whenever the disk is full, and before
    /// the file grows while that reader retains `bytes` or more. `decide` is called inside a write transaction, and
    /// must not begin one.
    ///
    /// ```no_run
    /// use tidalite::{Options, Tuning};
    /// use tidalite::monitor::LongReaderAction;
    ///
    /// let patient = Tuning::new().on_long_reader(256 << 20, |long| {
    ///     let reader = &long.reader;
    ///     eprintln!("process {} holds {} bytes, {} commits behind", reader.process, reader.retained_bytes, reader.lag_txns);
    ///     if long.retries < 100 { LongReaderAction::Wait } else { LongReaderAction::Evict }
    /// });
    /// let db = Options::new().tuning(patient).open("plant.tdl")?;
    /// # Ok::<(), tidalite::Error>(())
    /// ```
    pub fn on_long_reader(
        mut self,
        bytes: u64,
        decide: impl Fn(&LongReader) -> LongReaderAction + Send + Sync + 'static,
    ) -> Self {
        self.store.long_reader_bytes = bytes;
        self.store.on_long_reader = Some(OnLongReader(Arc::new(decide)));
        self
    }

    /// Calls `tell` once a second while `begin_write` waits, with the current holder of the writer lock.
    pub fn on_wait(mut self, tell: impl Fn(&WriterSeen) + Send + Sync + 'static) -> Self {
        self.store.on_wait = Some(OnWait(Arc::new(tell)));
        self
    }
}

impl Database {
    /// Takes a snapshot of the newest commit that a writer may evict when it retains space for too long (by age, by
    /// [`Tuning::on_long_reader`], or when the disk is full). Every page is copied when it is read; after an eviction
    /// every read is an error of kind [`Evicted`](crate::ErrorKind::Evicted), never wrong data.
    ///
    /// # Errors
    /// As for `begin_read`.
    pub fn begin_read_evictable(&self) -> Result<ReadTxn> {
        let threads = self.shared.scan_threads;
        ReadTxn::begin(self.pager.begin_read_evictable()?, threads)
    }

    /// The current snapshots, in all processes, with the space that they retain. Never waits.
    ///
    /// # Errors
    /// [`Broken`](crate::ErrorKind::Broken) in a forked child.
    pub fn readers(&self) -> Result<Vec<Reader>> {
        Ok(self.pager.readers()?)
    }

    /// The current holder of the writer lock, in any process; `None` if no write transaction is open. Never waits.
    #[must_use]
    pub fn writer(&self) -> Option<WriterSeen> {
        self.pager.writer()
    }
}

impl ReadTxn {
    /// Moves this reader to the newest commit of any process; it stays evictable if it was. Clones do not move.
    ///
    /// # Errors
    /// As for [`Database::begin_read`]; the reader then keeps its old snapshot.
    pub fn renew(&mut self) -> Result<()> {
        let mut pages = self.pages.clone();
        pages.renew()?;
        *self = Self::begin(pages, self.cache.scan_threads)?;
        Ok(())
    }

    /// True for a snapshot that [`Database::begin_read_evictable`] has taken.
    #[must_use]
    pub fn is_evictable(&self) -> bool {
        self.pages.is_evictable()
    }

    /// Parks the snapshot: until it is resumed, a writer that needs the space may evict it. If the snapshot has a clone
    /// that is not parked, the clone keeps the pages.
    #[must_use]
    pub fn park(self) -> ParkedRead {
        ParkedRead {
            scan_threads: self.cache.scan_threads,
            pages: self.pages.park(),
        }
    }
}

/// A parked snapshot, returned by [`ReadTxn::park`].
pub struct ParkedRead {
    pages: Parked,
    scan_threads: usize,
}

impl ParkedRead {
    /// Resumes the parked snapshot.
    ///
    /// # Errors
    /// [`Evicted`](crate::ErrorKind::Evicted) if a writer evicted the snapshot; else as for [`Database::begin_read`].
    pub fn unpark(self) -> Result<ReadTxn> {
        ReadTxn::begin(self.pages.unpark()?, self.scan_threads)
    }

    /// Resumes the parked snapshot or, if a writer has evicted it, takes a new snapshot of the newest commit.
    ///
    /// # Errors
    /// As for [`Database::begin_read`].
    pub fn unpark_or_renew(self) -> Result<ReadTxn> {
        ReadTxn::begin(self.pages.unpark_or_renew()?, self.scan_threads)
    }
}
