//! Durability of commits: tuning, `sync`, and statistics.

use crate::database::handle::Database;
use crate::database::tuning::Tuning;
use crate::types::error::Result;
use std::time::Duration;
use tidalite_base::TxnId;
use tidalite_pager::{MetricsReport, Recovery};

impl Tuning {
    /// Lazy commits are made durable once they have written this many bytes, by the commit that reaches the bound or by
    /// the background flusher. `None`, the default: their bytes do not matter.
    pub fn sync_bytes(mut self, bytes: Option<u64>) -> Self {
        self.store.sync_bytes = bytes;
        self
    }

    /// Lazy commits are made durable when the oldest of them has this age; every lazy commit checks the age. `None`,
    /// the default: their age does not matter.
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
    /// Makes every commit so far durable, including lazy commits and commits of `Durability::None`, concurrently with
    /// an open write transaction. After a commit of `Durability::None`, and while another process has the writer lock,
    /// `sync` waits for that write transaction, so do not call it while holding the lock yourself. Returns the newest
    /// commit.
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
    /// [`Broken`](crate::ErrorKind::Broken) after a failed sync; any error of a sync or of writing the meta record;
    /// [`Moved`](crate::ErrorKind::Moved) if another file is now at the path of the database.
    pub fn sync(&self) -> Result<TxnId> {
        Ok(self.pager.sync()?)
    }

    /// Closes this handle without a sync, as dropping the handle does: lazy commits survive the process but not a power
    /// cut, and commits of `Durability::None` are lost.
    pub fn close_without_sync(self) {}

    /// Counters and times of the commits since this handle was opened: commits, syncs, bytes, and a histogram for each
    /// phase of a commit.
    #[must_use]
    pub fn metrics(&self) -> MetricsReport {
        self.pager.metrics()
    }

    /// Reports the recovery that opening the file needed to find a complete state.
    #[must_use]
    pub fn recovery(&self) -> Recovery {
        self.pager.recovery()
    }
}
