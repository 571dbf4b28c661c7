//! Durability of commits: tuning, `sync`, and statistics.

use crate::database::handle::Database;
use crate::database::tuning::Tuning;
use crate::types::error::Result;
use std::time::Duration;
use tidalite_base::TxnId;
use tidalite_pager::{MetricsReport, Recovery};

impl Tuning {
    /// Lazy commits are made durable after writing this many bytes (by the commit that reaches it, or by the background
    /// flusher). `None`, the default: not by bytes.
    pub fn sync_bytes(mut self, bytes: Option<u64>) -> Self {
        self.store.sync_bytes = bytes;
        self
    }

    /// Lazy commits are made durable when the oldest has this age; checked with every lazy commit. `None`, the default:
    /// not by time.
    pub fn sync_after(mut self, age: Option<Duration>) -> Self {
        self.store.sync_after = age;
        self
    }

    /// Starts a thread that makes lazy commits durable at intervals of `pause`. `None`, the default: no thread.
    pub fn background_flush(mut self, pause: Option<Duration>) -> Self {
        self.store.background_flush = pause;
        self
    }
}

impl Database {
    /// Makes every commit so far durable, including lazy and `None` ones, concurrently with an open write transaction.
    /// After a commit of `None`, and while another process has the writer lock, it waits for that transaction, so do
    /// not call it while holding the lock. Returns the newest commit.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("tidalite-sync-{}.tdl", std::process::id()));
    /// use tidalite::{Database, Durability};
    /// let db = Database::open(&path)?;
    /// let mut tx = db.begin_write()?;
    /// tx.table("t")?.put(b"key", b"value")?;
    /// let ticket = tx.commit_ticket(Durability::Lazy)?;
    /// assert!(!ticket.is_durable());
    /// db.sync()?;
    /// assert!(ticket.is_durable());
    /// # drop((ticket, db));
    /// # std::fs::remove_file(&path)?;
    /// # drop(std::fs::remove_file(path.with_extension("tdl-lock")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Broken`](crate::ErrorKind::Broken) after a failed sync; any error of a sync or of writing the record;
    /// [`Moved`](crate::ErrorKind::Moved) if another file is now at its path.
    pub fn sync(&self) -> Result<TxnId> {
        Ok(self.pager.sync()?)
    }

    /// Closes this handle without a sync, as dropping it does: lazy commits survive the process but not a power cut,
    /// `None` commits are lost.
    pub fn close_without_sync(self) {}

    /// Counters and times of the commits since this handle was opened: commits, syncs, bytes, and a histogram for each
    /// phase of a commit.
    #[must_use]
    pub fn metrics(&self) -> MetricsReport {
        self.pager.metrics()
    }

    /// The recovery work done at opening to find a complete state.
    #[must_use]
    pub fn recovery(&self) -> Recovery {
        self.pager.recovery()
    }
}
