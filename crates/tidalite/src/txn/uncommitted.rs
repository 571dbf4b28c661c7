//! Reading the uncommitted state of a write transaction in other threads while the transaction continues.

use crate::catalog::roots::Roots;
use crate::txn::read::Reading;
use crate::txn::write::WriteTxn;
use crate::types::error::Result;

/// The state of a write transaction at one moment, for any number of threads, while the transaction continues in its
/// own thread. The state does not follow the transaction's changes, and ends with the transaction: reading uncommitted
/// data then is an error of kind [`Evicted`](crate::ErrorKind::Evicted). It has the methods of
/// [`ReadTxn`](crate::ReadTxn).
pub type UncommittedRead = Reading<tidalite_pager::UncommittedRead>;

impl WriteTxn {
    /// Creates a reader of the transaction's current state, including uncommitted changes. The write buffer is flushed
    /// first, as for a savepoint; pages are shared, not copied, until the transaction changes them.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("tidalite-uncommitted-{}.tdl", std::process::id()));
    /// use tidalite::Database;
    /// let db = Database::open(&path)?;
    /// let mut tx = db.begin_write()?;
    /// tx.table("config")?.put(b"speed", b"7")?;
    /// let reader = tx.reader()?;
    /// tx.table("config")?.put(b"speed", b"8")?;
    /// std::thread::scope(|threads| {
    ///     for _ in 0..2 {
    ///         threads.spawn(|| {
    ///             let table = reader.table("config").unwrap().unwrap();
    ///             assert_eq!(table.get(b"speed").unwrap().unwrap(), b"7");
    ///         });
    ///     }
    /// });
    /// drop(tx);
    /// assert!(reader.has_ended());
    /// # drop((reader, db));
    /// # std::fs::remove_file(&path)?;
    /// # drop(std::fs::remove_file(path.with_extension("tdl-lock")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for `savepoint`.
    pub fn reader(&mut self) -> Result<UncommittedRead> {
        // A savepoint flushes the write buffer; the savepoint itself is not needed.
        drop(self.savepoint()?);
        self.changing(|txn| {
            let roots = Roots::clone(&txn.roots);
            let catalog = txn.shared.newest.catalog_of(&roots);
            Reading::uncommitted(txn.pages.reader()?, (roots, catalog), txn.tables.clone())
        })
    }
}

impl UncommittedRead {
    /// True if the transaction has ended, or was rolled back to a state before this reader was created.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.pages.has_ended()
    }
}
