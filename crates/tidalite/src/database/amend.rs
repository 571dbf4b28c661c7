//! Turning a snapshot into a write transaction, and a write transaction into a snapshot.

use crate::database::handle::Database;
use crate::txn::read::ReadTxn;
use crate::txn::write::{Commit, WriteTxn};
use crate::types::error::Result;
use tidalite_pager::Durability;

impl Database {
    /// Begins the write transaction exactly on the state that a snapshot of this database shows. Everything read from
    /// the snapshot then still holds: decide with a snapshot, which blocks no writer, and write only if nothing has
    /// changed since. Returns `None` if any process has made a newer commit, even one that still waits for its sync;
    /// take a new snapshot then. The snapshot itself does not change.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// tx.table("stock")?.put(b"bolts", b"3")?;
    /// tx.commit()?;
    /// loop {
    ///     let snap = db.begin_read()?;
    ///     let left = snap.table("stock")?.ok_or("no table")?.get(b"bolts")?;
    ///     if left.as_deref() != Some(b"3") {
    ///         break;
    ///     }
    ///     let Some(mut tx) = db.amend(&snap)? else {
    ///         continue;
    ///     };
    ///     tx.table("stock")?.put(b"bolts", b"2")?;
    ///     tx.commit()?;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`begin_write`](Self::begin_write).
    ///
    /// # Cost
    /// As for `begin_write`, including the wait for other writers.
    pub fn amend(&self, snapshot: &ReadTxn) -> Result<Option<WriteTxn>> {
        let tx = self.begin_write()?;
        // Two commits with the same number may differ, after a crash or in two files. Their roots distinguish them.
        let (base, seen) = (tx.pages.base_txn(), snapshot.pages.txn());
        let same = base == seen && tx.pages.app() == snapshot.pages.app();
        Ok(same.then_some(tx))
    }
}

impl WriteTxn {
    /// Commits, and returns a snapshot of exactly this commit, with no other commit in between. Releases the writer
    /// lock.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// tx.table("stock")?.put(b"bolts", b"3")?;
    /// let (commit, snap) = tx.commit_and_read(tidalite::Durability::Durable)?;
    /// assert_eq!(snap.txn(), commit.txn);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`checkpoint`](Self::checkpoint) and [`Database::begin_read`]; after an error of the latter the commit
    /// exists.
    ///
    /// # Cost
    /// As for a checkpoint and for beginning a read.
    pub fn commit_and_read(self, durability: Durability) -> Result<(Commit, ReadTxn)> {
        let (commit, next) = self.checkpoint(durability)?;
        let snapshot = next.pages.pager().begin_read()?;
        let shared = &next.shared;
        let read = ReadTxn::begin_again(snapshot, &shared.newest, shared.scan_threads)?;
        Ok((commit, read))
    }
}
