//! A snapshot that becomes a write transaction, and a write transaction that becomes a snapshot.

use crate::database::handle::Database;
use crate::txn::read::ReadTxn;
use crate::txn::write::{Commit, WriteTxn};
use crate::types::error::Result;
use tidalite_pager::Durability;

impl Database {
    /// Begins the write transaction on top of exactly what a snapshot of this database shows, so that what was read there still holds: decide
    /// with a snapshot, which is in nobody's way, and write only if nothing has changed since. `None` when there is a newer
    /// commit, of any process or one that still waits for its sync: read again then. The snapshot stays as it is.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::MemoryStorage::new()))?;
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
    /// That of `begin_write`, the waiting for other writers included.
    pub fn amend(&self, snapshot: &ReadTxn) -> Result<Option<WriteTxn>> {
        let tx = self.begin_write()?;
        // Commits of one number may differ, after a crash or in two files: their roots tell them apart.
        let (base, seen) = (tx.pages.base_txn(), snapshot.pages.txn());
        let same = base == seen && tx.pages.app() == snapshot.pages.app();
        Ok(same.then_some(tx))
    }
}

impl WriteTxn {
    /// Commits, and goes on as a reader of exactly this commit: nobody comes between. The turn goes on to others.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// tx.table("stock")?.put(b"bolts", b"3")?;
    /// let (commit, snap) = tx.commit_and_read(tidalite::Durability::Durable)?;
    /// assert_eq!(snap.txn(), commit.txn);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`checkpoint`](Self::checkpoint), and as for [`Database::begin_read`]: the commit is there then.
    ///
    /// # Cost
    /// That of a checkpoint and of beginning a read.
    pub fn commit_and_read(self, durability: Durability) -> Result<(Commit, ReadTxn)> {
        let (commit, next) = self.checkpoint(durability)?;
        let snapshot = next.pages.pager().begin_read()?;
        let shared = &next.shared;
        let read = ReadTxn::begin_again(snapshot, &shared.newest, shared.scan_threads)?;
        Ok((commit, read))
    }
}
