//! Savepoints, nested transactions, and committing on the way.
//!
//! A savepoint stores everything in pages first, as a commit would, but without writing a record: rows of series that
//! wait in memory go to the front, roots of tables to the catalog's value in memory. What going back must restore is
//! then the pages (the pager's part) and the roots.

use crate::catalog::roots::Roots;
use crate::catalog::texts::Texts;
use crate::txn::leaves::Leaves;
use crate::txn::open_table::OpenTable;
use crate::txn::write::{Commit, WriteTxn};
use crate::types::error::Result;
use std::sync::Arc;
use tidalite_pager::Durability;
use tidalite_runs::{Beside, Front};

/// A state of a write transaction to which it can go back. Dropping it costs nothing.
#[derive(Debug)]
pub struct Savepoint {
    pages: tidalite_pager::Savepoint,
    roots: Box<Roots>,
    tables: Vec<OpenTable>,
}

impl WriteTxn {
    /// Marks the state as it is now. Rows of series that wait in memory are stored first, so many savepoints in a large
    /// import cost as many small commits do, without their syncs; tables cost nothing.
    ///
    /// # Errors
    /// A full disk; a damaged page: the transaction can then only be rolled back.
    pub fn savepoint(&mut self) -> Result<Savepoint> {
        self.changing(|txn| {
            if !txn.open.is_empty() {
                txn.store_staged()?;
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

    /// Undoes everything since a savepoint, in tables and series alike, an error that broke the transaction included.
    /// Savepoints made later end; this one stays.
    ///
    /// # Errors
    /// `Store` with `NoSavepoint` when it belongs to another transaction or was itself undone: nothing is changed then. What the file reports: the
    /// transaction is broken then, and going back may be tried again.
    pub fn rollback_to(&mut self, savepoint: &Savepoint) -> Result<()> {
        self.pages.rollback_to(&savepoint.pages)?;
        self.roots = savepoint.roots.clone();
        self.tables = savepoint.tables.clone();
        let again = self.begin_again();
        self.broken = again.as_ref().err().map(ToString::to_string);
        again
    }

    /// Stores what waits in memory, and puts the roots of front and leaves; the series are to be opened anew.
    pub(crate) fn store_staged(&mut self) -> Result<()> {
        self.store_rows()?;
        let Self {
            front,
            pages,
            staging,
            leaves,
            texts,
            roots,
            ..
        } = self;
        roots.front = front.commit(pages, staging, leaves)?;
        texts.flush(pages, &mut roots.texts)?;
        leaves.finish(pages, roots)
    }

    /// Series are opened anew, from the roots.
    pub(crate) fn begin_again(&mut self) -> Result<()> {
        self.front = Front::load(&self.pages, &self.roots.front)?;
        self.leaves = Leaves::new(
            &self.roots,
            self.staging.budget_bytes(),
            self.shared.leaf_vectors,
        );
        self.texts = Texts::default();
        self.beside = Beside::default();
        self.staging.reset();
        self.open.clear();
        Ok(())
    }

    /// Runs `work` as a nested transaction: what it did stays if it returns `Ok`, else it is undone, and the outer transaction
    /// goes on as it was. So it is when `work` panics and the caller catches that. They nest to any depth.
    ///
    /// # Errors
    /// What `work` returns; what making the savepoint or going back to it meets.
    pub fn nested<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let savepoint = self.savepoint()?;
        let mut undo = Undo {
            txn: self,
            to: Some(savepoint),
        };
        let done = work(undo.txn);
        let done = done.and_then(|done| undo.txn.check_usable().map(|()| done));
        if let Some(savepoint) = undo.to.take()
            && done.is_err()
        {
            undo.txn.rollback_to(&savepoint)?;
        }
        done
    }

    /// Commits and goes on with a new transaction. Whoever else waits to write, in this process or in another, waits on; readers see the
    /// commit. So a long piece of work becomes durable bit by bit, and nobody comes between.
    ///
    /// Lazy commits become durable on the way where `Options` ask for it (`sync_bytes`, `sync_after`, `background_flush`); without these, by a durable
    /// commit now and then, or after the last transaction; or when another thread waits for one of them, or for an earlier commit, by its ticket or with
    /// [`Database::sync`](crate::Database::sync): it flushes beside this one.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::MemoryStorage::new()))?;
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
    /// As for `commit_with`: the work since the commit before is lost, or shows after reopening. As for `begin_write` when the commit is there and
    /// the next transaction cannot begin; `Database::begin_read` tells which. The turn goes on in either case.
    pub fn checkpoint(self, durability: Durability) -> Result<(Commit, Self)> {
        let shared = Arc::clone(&self.shared);
        let (info, pages) =
            self.commit_by(durability, |pages, app| pages.checkpoint(app, durability))?;
        Ok((Commit::of(info), Self::begin(shared, pages)?))
    }
}

/// Goes back to a savepoint while a panic unwinds.
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
