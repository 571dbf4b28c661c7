//! The write transaction over everything: tables, series, catalog, front.
//!
//! ```text
//! insert -> staging -(leaf full, budget, commit)-> front -(stretches)-> Leaves: series trees, packer
//! put    -> kv tree of the table
//! commit:   front, leaves, series records, extents table, table roots, seal every tree, meta block
//! ```
//!
//! Invariants:
//! 1. Nothing of this transaction can be seen by others before `commit` returns; drop = roll back.
//! 2. After an operation failed half-way the transaction is *broken*: reads and the commit are refused,
//!    only rolling back is left. An error that comes before anything was changed does not break it.
//! 3. Which series are open stands in `open` (`open_series.rs`); those of the transaction before are known there, and open when
//!    they are turned to.

use crate::catalog::roots::{INLINE_ROOTS_MAX, Roots};
use crate::catalog::table_name::Named;
use crate::catalog::table_roots::{flush_inline, table_entry};
use crate::catalog::texts::Texts;
use crate::txn::leaves::Leaves;
use crate::txn::open_series::OpenSeries;
use crate::txn::open_table::{OpenTable, still_known};
use crate::txn::pages::Pages;
use crate::txn::shared::Shared;
use crate::types::error::{Error, Result};
use std::sync::Arc;
use tidalite_base::TxnId;
use tidalite_kv::{Ending, Tree};
use tidalite_pager::{Durability, PageRead, PageWrite, Ticket};
use tidalite_runs::{Beside, Front, Staging};
use tidalite_series::Sealed;

/// What a commit did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its number.
    pub txn: TxnId,
    /// Pages and blocks written, meta blocks not counted.
    pub pages_written: u64,
    /// Bytes written, meta blocks included.
    pub bytes_written: u64,
}

impl Commit {
    pub(crate) fn of(info: tidalite_pager::CommitInfo) -> Self {
        Self {
            txn: info.txn,
            pages_written: info.pages_written,
            bytes_written: info.bytes_written,
        }
    }
}

/// A transaction in the middle of a change: a panic breaks it, be it the caller's own (of an iterator, of what fills a value). What was
/// changed so far may have no root that leads to it.
struct Changing<'t> {
    txn: &'t mut WriteTxn,
    returned: bool,
}

impl<'t> Changing<'t> {
    fn begin(txn: &'t mut WriteTxn) -> Self {
        let returned = false;
        Self { txn, returned }
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        if !self.returned {
            let broken = || "a panic in the middle of a change".to_owned();
            self.txn.broken.get_or_insert_with(broken);
        }
    }
}

/// The one write transaction. Not tied to a thread. Dropping it rolls everything back.
pub struct WriteTxn {
    pub(crate) shared: Arc<Shared>,
    pub(crate) pages: tidalite_pager::WriteTxn,
    /// These are large, and the transaction is moved a few times.
    pub(crate) roots: Box<Roots>,
    pub(crate) front: Front,
    pub(crate) staging: Box<Staging>,
    /// Threads that have rows of it.
    pub(crate) beside: Beside<Sealed>,
    pub(crate) leaves: Leaves,
    pub(crate) texts: Texts,
    pub(crate) open: OpenSeries,
    pub(crate) tables: Vec<OpenTable>,
    /// Tables that it has not opened, as the transaction before left them: they hold while the catalog of tables is this one.
    pub(crate) known: (Tree, Vec<OpenTable>),
    pub(crate) broken: Option<String>,
    /// The wall clock is right (`clock.rs`).
    pub(crate) clock_confirmed: bool,
    /// Appenders that still have rows.
    pub(crate) appending: usize,
}

impl WriteTxn {
    pub(crate) fn begin(shared: Arc<Shared>, pages: tidalite_pager::WriteTxn) -> Result<Self> {
        let (roots, known) = shared.take_roots(pages.app())?;
        let front = Front::load(&pages, &roots.front)?;
        let mut staging = shared.take_staging();
        let leaves = Leaves::new(&roots, staging.budget_bytes(), shared.leaf_vectors);
        let open = shared.newest.kept.take(&roots);
        if !open.is_of(&staging) {
            // Its slots are of series that may have other columns by now.
            staging.reset();
        }
        Ok(Self {
            shared,
            pages,
            tables: Vec::with_capacity(known.len()),
            known: (roots.tables, known),
            roots,
            front,
            staging,
            beside: Beside::default(),
            leaves,
            texts: Texts::default(),
            open,
            broken: None,
            clock_confirmed: false,
            appending: 0,
        })
    }

    /// The number that this transaction will have.
    #[must_use]
    pub fn txn(&self) -> TxnId {
        self.pages.txn()
    }

    /// This transaction frees space: on a full disk it may use what is kept for such ([`Options::reserve_bytes`](crate::Options::reserve_bytes)).
    /// Every delete, removal and clearing says so by itself. A transaction that has used it has to free at least as many pages as it takes, but
    /// for an eighth of what is kept, which may be lost so in all: else its commit is refused with `DiskFull`.
    pub fn free_space(&mut self) {
        self.pages.free_space();
    }

    /// Commits durably: when this returns, everything is stored and visible.
    ///
    /// # Errors
    /// `DiskFull` and others before the meta block: the transaction is rolled back. A failed sync:
    /// `Poisoned` from then on; whether the transaction is there shows after reopening.
    pub fn commit(self) -> Result<Commit> {
        self.commit_with(Durability::Durable)
    }

    /// Commits with this durability.
    ///
    /// # Errors
    /// As for `commit`.
    pub fn commit_with(self, durability: Durability) -> Result<Commit> {
        let ticket = self.commit_ticket(durability)?;
        let info = match durability {
            Durability::Durable | Durability::OneFlush => ticket.wait()?,
            _ => ticket.info(),
        };
        Ok(Commit::of(info))
    }

    /// Commits without waiting for the medium: the next writer can begin. The ticket tells when the commit is durable,
    /// or waits for that; many threads' commits then share one sync. Readers see a durable commit when it is durable.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("tidalite-ticket-{}.tdl", std::process::id()));
    /// use tidalite::{Database, Durability};
    /// let db = Database::open(&path)?;
    /// let mut tickets = Vec::new();
    /// for i in 0..10u8 {
    ///     let mut tx = db.begin_write()?;
    ///     tx.table("t")?.put(&[i], b"value")?;
    ///     tickets.push(tx.commit_ticket(Durability::Durable)?);
    /// }
    /// // One flush for all of them.
    /// for ticket in &tickets {
    ///     ticket.wait()?;
    /// }
    /// assert_eq!(db.metrics().records, 1);
    /// # drop((tickets, db));
    /// # std::fs::remove_file(&path)?;
    /// # drop(std::fs::remove_file(path.with_extension("tdl-lock")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for `commit`, those of the flush excepted: the ticket tells these.
    pub fn commit_ticket(self, durability: Durability) -> Result<Ticket> {
        self.commit_by(durability, |pages, app| {
            pages.commit_ticket(app, durability)
        })
    }

    /// Brings everything into pages, seals them, and commits them by `commit`, which is given what the record is to say of them.
    pub(crate) fn commit_by<T>(
        mut self,
        durability: Durability,
        commit: impl FnOnce(tidalite_pager::WriteTxn, &[u8]) -> tidalite_pager::Result<T>,
    ) -> Result<T> {
        self.check_usable()?;
        if self.appending > 0 {
            let first = format!("{} appenders never gave their rows", self.appending);
            return Err(Error::TransactionBroken { first });
        }
        self.bring_into_pages()?;
        if matches!(durability, Durability::Durable | Durability::OneFlush) {
            self.pages.hand_over()?;
        }
        self.seal_catalog()?;
        let app = self.app_with_clock();
        let done = commit(self.pages, &app)?;
        let staged = self.shared.give_staging(self.staging, self.open.count());
        self.shared.newest.kept.give(self.open, &self.roots, staged);
        let tables = still_known(self.tables, self.known, &self.roots.tables);
        self.shared.give_roots(app, self.roots, tables);
        Ok(done)
    }

    /// All rows and texts are in pages then, and the roots lead to them.
    pub(crate) fn bring_into_pages(&mut self) -> Result<()> {
        self.store_rows()?;
        self.roots.front =
            self.front
                .commit(&mut self.pages, &mut self.staging, &mut self.leaves)?;
        self.leaves.finish(&mut self.pages, &mut self.roots)?;
        self.texts.flush(&mut self.pages, &mut self.roots.texts)
    }

    fn seal_catalog(&mut self) -> Result<()> {
        self.keep_table_roots()?;
        for tree in self.roots.catalog_trees() {
            tree.seal(&mut self.pages)?;
        }
        Ok(())
    }

    /// What the front did in this transaction: for the searches that must reach all of it.
    #[cfg(feature = "seeded-bugs")]
    #[must_use]
    pub fn front_work(&self) -> tidalite_runs::Work {
        self.front.work()
    }

    /// The user data that the commit will carry: what was set here, else that of the commit before.
    #[must_use]
    pub fn user_data(&self) -> &[u8] {
        self.pages.user_data()
    }

    /// Sets the user data: up to [`USER_BYTES_MAX`](crate::USER_BYTES_MAX) bytes in the commit itself that readers get with
    /// their snapshot, such as the position in a log that has been applied. It stays until it is set anew.
    ///
    /// # Errors
    /// `Store` (a limit) for more bytes.
    pub fn set_user_data(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.pages.set_user_data(bytes)?)
    }

    /// Runs a change that, when it fails, leaves the transaction broken.
    pub(crate) fn changing<T>(&mut self, change: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.check_usable()?;
        let mut changing = Changing::begin(self);
        let result = change(changing.txn);
        changing.returned = true;
        if let Err(error) = &result {
            changing.txn.broken = Some(error.to_string());
        }
        result
    }

    pub(crate) fn check_usable(&self) -> Result<()> {
        match &self.broken {
            None => Ok(()),
            Some(first) => Err(Error::TransactionBroken {
                first: first.clone(),
            }),
        }
    }

    pub(crate) fn change_table<T>(
        &mut self,
        index: usize,
        change: impl FnOnce(&mut Tree, &mut tidalite_pager::WriteTxn) -> tidalite_pager::Result<T>,
    ) -> Result<T> {
        self.tables[index].ending.forget();
        self.change_table_near_end(index, |tree, _, pages| change(tree, pages))
    }

    /// As `change_table`, where the change keeps to what `Ending` says, or makes it forget.
    pub(crate) fn change_table_near_end<T>(
        &mut self,
        index: usize,
        change: impl FnOnce(
            &mut Tree,
            &mut Ending,
            &mut tidalite_pager::WriteTxn,
        ) -> tidalite_pager::Result<T>,
    ) -> Result<T> {
        self.check_usable()?;
        let mut changing = Changing::begin(self);
        let Self {
            tables,
            pages,
            broken,
            ..
        } = &mut *changing.txn;
        let table = &mut tables[index];
        let result = change(&mut table.tree, &mut table.ending, pages);
        changing.returned = true;
        match result {
            Ok(result) => {
                table.changed = true;
                Ok(result)
            }
            // A bound was checked before anything was touched; of many pairs, those before it are stored. So it is when
            // a value is where a nested table was looked for, or the other way round.
            Err(
                error @ (tidalite_pager::Error::Limit { .. }
                | tidalite_pager::Error::Unsupported { .. }
                | tidalite_pager::Error::IsTable { .. }),
            ) => {
                table.changed = true;
                Err(Named::Lent(&table.name).error(error))
            }
            Err(error) => {
                *broken = Some(error.to_string());
                Err(error.into())
            }
        }
    }

    /// An open table's root and the pages to read it from.
    pub(crate) fn table_tree(&self, index: usize) -> Result<(&Tree, &tidalite_pager::WriteTxn)> {
        self.check_usable()?;
        Ok((&self.tables[index].tree, &self.pages))
    }

    pub(crate) fn pages_view(&self) -> Pages<'_> {
        Pages::Writer(&self.pages)
    }

    pub(crate) fn key_bytes_max(&self) -> usize {
        tidalite_kv::key_bytes_max(self.pages.page_size())
    }

    /// Notes the root of every table that changed.
    pub(crate) fn keep_table_roots(&mut self) -> Result<()> {
        let Self {
            tables,
            roots,
            pages,
            ..
        } = self;
        for table in tables.iter_mut().filter(|table| table.changed) {
            table.tree.seal(pages)?;
            if table.created {
                let entry = table_entry(table.id, &table.tree);
                roots.tables.insert(pages, table.name.as_bytes(), &entry)?;
                continue;
            }
            if let Some((_, root)) = roots.inline.iter_mut().find(|(id, _)| *id == table.id) {
                *root = table.tree;
                continue;
            }
            if roots.inline.len() == INLINE_ROOTS_MAX {
                flush_inline(roots, pages)?;
            }
            roots.inline.push((table.id, table.tree));
        }
        Ok(())
    }
}
