//! Savepoints, nested transactions, and checkpoints.
//!
//! A savepoint first stores everything in pages, as a commit would, but without a meta record: the write buffer is
//! flushed to the delta, and the roots of tables are recorded in the in-memory roots. A rollback then only has to
//! restore the pages, which the pager does, and the roots.

use crate::catalog::roots::Roots;
use crate::catalog::texts::Texts;
use crate::txn::leaves::Leaves;
use crate::txn::open_table::OpenTable;
use crate::txn::write::{Commit, WriteTxn};
use crate::types::error::{Error, Result};
use std::sync::Arc;
use tidalite_delta::{BackgroundFlush, Delta};
use tidalite_pager::Durability;

/// A state of a write transaction to which the transaction can be rolled back. Dropping a savepoint costs nothing.
#[derive(Debug)]
pub struct Savepoint {
    pages: tidalite_pager::Savepoint,
    roots: Box<Roots>,
    tables: Vec<OpenTable>,
}

impl WriteTxn {
    /// Marks the current state. Flushes the write buffer first, so many savepoints in a large import cost as much as
    /// small commits without their syncs; changes of tables need no flush.
    ///
    /// # Errors
    /// A full disk; a damaged page: the transaction can then only be rolled back.
    pub fn savepoint(&mut self) -> Result<Savepoint> {
        self.changing(|txn| {
            txn.store_hashes()?;
            if !txn.open.is_empty() || !txn.tags.is_empty() {
                txn.store_buffered()?;
                for tree in txn.roots.catalog_trees() {
                    tree.seal(&mut txn.pages)?;
                }
                txn.begin_again()?;
            }
            for table in &mut txn.tables {
                table.tree.seal(&mut txn.pages)?;
            }
            Ok(Savepoint {
                pages: txn.pages.savepoint()?,
                roots: txn.roots.clone(),
                tables: txn.tables.clone(),
            })
        })
    }

    /// Undoes everything since a savepoint, in tables and series, including an error that broke the transaction. Later
    /// savepoints become invalid; this one stays valid.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) if the savepoint belongs to another transaction or was itself
    /// undone, and then nothing has changed. An error of the file breaks the transaction; the rollback may be tried
    /// again.
    pub fn rollback_to(&mut self, savepoint: &Savepoint) -> Result<()> {
        self.pages.rollback_to(&savepoint.pages)?;
        self.roots = savepoint.roots.clone();
        self.tables = savepoint.tables.clone();
        self.hashes.clear();
        self.buffered.clear();
        let again = self.begin_again();
        self.broken = again.as_ref().err().map(ToString::to_string);
        again
    }

    /// Flushes the write buffer and sets the roots of the delta, the texts and the leaves. The caller must open series
    /// again.
    pub(crate) fn store_buffered(&mut self) -> Result<()> {
        self.store_rows()?;
        self.store_tags()?;
        let Self {
            delta,
            pages,
            write_buffer,
            leaves,
            texts,
            roots,
            ..
        } = self;
        roots.delta = delta.commit(pages, write_buffer, leaves)?;
        texts.flush(pages, &mut roots.texts)?;
        leaves.finish(pages, roots)
    }

    /// Reloads the state of the transaction from the roots. The caller must open series again.
    pub(crate) fn begin_again(&mut self) -> Result<()> {
        self.delta = Delta::load(&self.pages, &self.roots.delta)?;
        self.leaves = Leaves::new(
            &self.roots,
            self.write_buffer.budget_bytes(),
            self.shared.leaf_vectors,
        );
        self.texts = Texts::default();
        self.tags.clear();
        self.background = BackgroundFlush::default();
        self.write_buffer.reset();
        self.open.clear();
        Ok(())
    }

    /// Runs `work` as a nested transaction: its changes stay if it returns `Ok`; otherwise they are undone, and the
    /// outer transaction continues as before. A panic of `work` that the caller catches undoes the changes, too.
    /// Nesting may have any depth.
    ///
    /// `work` may return an error type of its own, to undo the changes for a reason of the program:
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// #[derive(Debug)]
    /// enum Refused {
    ///     Overdrawn(u64),
    ///     Database(tidalite::Error),
    /// }
    ///
    /// impl From<tidalite::Error> for Refused {
    ///     fn from(error: tidalite::Error) -> Self {
    ///         Self::Database(error)
    ///     }
    /// }
    ///
    /// let mut tx = db.begin_write()?;
    /// let refused = tx.nested(|tx| {
    ///     tx.table("accounts")?.put(b"a", b"-5")?;
    ///     Err::<(), _>(Refused::Overdrawn(5))
    /// });
    /// assert!(matches!(refused, Err(Refused::Overdrawn(5))));
    /// assert_eq!(tx.table("accounts")?.view()?.count(), 0);
    /// # Ok::<(), tidalite::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error of `work`; an error from making the savepoint or rolling back to it.
    pub fn nested<T, E: From<Error>>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let savepoint = self.savepoint()?;
        let mut undo = Undo {
            txn: self,
            to: Some(savepoint),
        };
        let done = work(undo.txn);
        let done = done.and_then(|done| Ok(undo.txn.check_usable().map(|()| done)?));
        if let Some(savepoint) = undo.to.take()
            && done.is_err()
        {
            undo.txn.rollback_to(&savepoint)?;
        }
        done
    }

    /// Commits and continues with a new transaction without releasing the writer lock: other writers, in this process
    /// or another, keep waiting; readers see the commit. A long piece of work thus becomes durable step by step without
    /// other writers' commits in between.
    ///
    /// Lazy commits become durable meanwhile if [`Tuning`](crate::Tuning) says so (`sync_bytes`, `sync_after`,
    /// `background_flush`). Otherwise they become durable by an occasional durable commit, after the last transaction,
    /// or when another thread waits for one of them or for an earlier commit, by its ticket or with
    /// [`Database::sync`](crate::Database::sync), which flushes concurrently.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// use tidalite::Durability;
    /// let mut tx = db.begin_write()?;
    /// for batch in 0..10u8 {
    ///     tx.table("t")?.put(&[batch], b"done")?;
    ///     (_, tx) = tx.checkpoint(Durability::Lazy)?;
    ///     assert!(db.try_begin_write()?.is_none(), "the turn stays here");
    ///     let snap = db.begin_read()?;
    ///     assert_eq!(snap.table("t")?.map(|table| table.count()), Some(batch as u64 + 1));
    /// }
    /// tx.commit()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for `commit_with`: the work since the previous commit is lost, or shows after reopening. As for `begin_write`
    /// if the commit succeeded and the next transaction cannot begin; `Database::begin_read` shows which case applies.
    /// The writer lock is released in either case.
    pub fn checkpoint(self, durability: Durability) -> Result<(Commit, Self)> {
        let shared = Arc::clone(&self.shared);
        let (info, pages) =
            self.commit_by(durability, |pages, app| pages.checkpoint(app, durability))?;
        Ok((Commit::of(info), Self::begin(shared, pages)?))
    }
}

/// Guard that rolls back to a savepoint if it is dropped while a panic unwinds.
struct Undo<'t> {
    txn: &'t mut WriteTxn,
    to: Option<Savepoint>,
}

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        if let Some(savepoint) = self.to.take()
            && let Err(error) = self.txn.rollback_to(&savepoint)
        {
            self.txn.broken = Some(error.to_string());
        }
    }
}
