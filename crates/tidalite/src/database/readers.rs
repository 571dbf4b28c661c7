//! Several processes and long readers: who reads and writes, snapshots that may be taken away, renewed or parked.

use crate::database::handle::Database;
use crate::database::options::Options;
use crate::txn::read::ReadTxn;
use crate::types::error::Result;
use std::sync::Arc;
use std::time::Duration;
use tidalite_pager::{Laggard, LaggardAction, OnLaggard, OnWait, Parked, Reader, WriterSeen};

impl Options {
    /// Evictable and parked snapshots older than this lose what they see when the file would have to grow and they hold
    /// pages. Without it they lose it only when the disk is full, or by [`Options::on_laggard`].
    pub fn evictable_age_max(mut self, age: Duration) -> Self {
        self.store.evictable_age_max = Some(age);
        self
    }

    /// Asks `decide` about the reader that holds most, in whatever process, before the file grows while that one holds
    /// `bytes` or more, and whenever the disk is full. It is called inside a write transaction, and must not
    /// begin one.
    ///
    /// ```no_run
    /// use tidalite::{LaggardAction, Options};
    /// let db = Options::new()
    ///     .on_laggard(256 << 20, |laggard| {
    ///         let reader = &laggard.reader;
    ///         eprintln!("process {} holds {} bytes, {} commits behind", reader.process, reader.held_bytes, reader.lag_txns);
    ///         if laggard.retries < 100 { LaggardAction::Wait } else { LaggardAction::Evict }
    ///     })
    ///     .open("plant.tdl")?;
    /// # Ok::<(), tidalite::Error>(())
    /// ```
    pub fn on_laggard(
        mut self,
        bytes: u64,
        decide: impl Fn(&Laggard) -> LaggardAction + Send + Sync + 'static,
    ) -> Self {
        self.store.laggard_bytes = bytes;
        self.store.on_laggard = Some(OnLaggard(Arc::new(decide)));
        self
    }

    /// Tells `tell`, once a second, who has the write transaction that `begin_write` waits for.
    pub fn on_wait(mut self, tell: impl Fn(&WriterSeen) + Send + Sync + 'static) -> Self {
        self.store.on_wait = Some(OnWait(Arc::new(tell)));
        self
    }
}

impl Database {
    /// Takes a snapshot of the newest commit that a writer may take away when it holds space for too long (by age, by
    /// [`Options::on_laggard`], or when the disk is full). Every page is copied when it is read; after the snapshot
    /// was taken away every read gives `Store(Evicted)`, never anything that is not true.
    ///
    /// # Errors
    /// As for `begin_read`.
    pub fn begin_read_evictable(&self) -> Result<ReadTxn> {
        let threads = self.shared.scan_threads;
        ReadTxn::begin(self.pager.begin_read_evictable()?, threads)
    }

    /// The snapshots that are held now, in all processes, with what they hold. Waits for nobody.
    ///
    /// # Errors
    /// `Store(Forked)`.
    pub fn readers(&self) -> Result<Vec<Reader>> {
        Ok(self.pager.readers()?)
    }

    /// Who has the write transaction now, in whatever process. Waits for nobody.
    #[must_use]
    pub fn writer(&self) -> Option<WriterSeen> {
        self.pager.writer()
    }
}

impl ReadTxn {
    /// Goes on to the newest commit of any process, as the same kind of snapshot; clones stay where they are.
    ///
    /// # Errors
    /// As for [`Database::begin_read`]; then it stays as it was.
    pub fn renew(&mut self) -> Result<()> {
        let mut pages = self.pages.clone();
        pages.renew()?;
        *self = Self::begin(pages, self.begun.scan_threads)?;
        Ok(())
    }

    /// True for one that was begun by [`Database::begin_read_evictable`].
    #[must_use]
    pub fn is_evictable(&self) -> bool {
        self.pages.is_evictable()
    }

    /// Puts the snapshot aside: until it is taken up again, a writer that needs the space may take it away. A snapshot of
    /// which there is a clone is kept like the clone.
    #[must_use]
    pub fn park(self) -> ParkedRead {
        ParkedRead {
            scan_threads: self.begun.scan_threads,
            pages: self.pages.park(),
        }
    }
}

/// A snapshot that is put aside; see [`ReadTxn::park`].
pub struct ParkedRead {
    pages: Parked,
    scan_threads: usize,
}

impl ParkedRead {
    /// Takes the snapshot up again.
    ///
    /// # Errors
    /// `Store(Evicted)` when it was taken away; else as for [`Database::begin_read`].
    pub fn unpark(self) -> Result<ReadTxn> {
        ReadTxn::begin(self.pages.unpark()?, self.scan_threads)
    }

    /// Takes the snapshot up again, or one of the newest commit when it was taken away.
    ///
    /// # Errors
    /// As for [`Database::begin_read`].
    pub fn unpark_or_renew(self) -> Result<ReadTxn> {
        ReadTxn::begin(self.pages.unpark_or_renew()?, self.scan_threads)
    }
}
