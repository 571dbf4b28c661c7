//! The write transaction over everything: tables, series, catalog, delta.
//!
//! ```text
//! insert -> write buffer -(leaf full, budget, commit)-> delta -(vectors)-> Leaves: series trees, packer
//! put    -> kv tree of the table
//! commit:   delta, leaves, series records, extents table, table roots, seal every tree, meta block
//! ```
//!
//! Invariants:
//! 1. Changes of this transaction are invisible to others before `commit` returns; drop = roll back.
//! 2. After an operation failed half-way the transaction is *broken*: reads and the commit are refused; it can only be
//!    rolled back. An error that comes before any change does not break it.
//! 3. `open` (`open_series.rs`) holds the open series; it also keeps the previous transaction's series, which are
//!    opened when selected.

use crate::catalog::roots::{INLINE_ROOTS_MAX, Roots};
use crate::catalog::table_name::Named;
use crate::catalog::table_roots::flush_inline;
use crate::catalog::texts::Texts;
use crate::txn::leaves::Leaves;
use crate::txn::open_series::OpenSeries;
use crate::txn::open_table::{OpenTable, still_known};
use crate::txn::pages::Pages;
use crate::txn::shared::Shared;
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use std::sync::Arc;
use tidalite_base::TxnId;
use tidalite_delta::{BackgroundFlush, Delta, WriteBuffer};
use tidalite_kv::{AppendCursor, Tree};
use tidalite_pager::{Durability, PageRead, PageWrite, Ticket};
use tidalite_series::EncodedVectors;

/// Result of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The commit's number.
    pub txn: TxnId,
    /// Pages and blocks written, without meta blocks.
    pub pages_written: u64,
    /// Bytes written, including meta blocks.
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

/// Guards a transaction in the middle of a change: a panic, even in the caller's code (an iterator, a closure that
/// fills a value), breaks the transaction, since its partial changes may not be reachable from any root.
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
    /// The roots, boxed because they are large and the transaction is moved a few times.
    pub(crate) roots: Box<Roots>,
    pub(crate) delta: Delta,
    pub(crate) write_buffer: Box<WriteBuffer>,
    /// Worker threads that hold rows of this transaction.
    pub(crate) background: BackgroundFlush<EncodedVectors>,
    pub(crate) leaves: Leaves,
    pub(crate) texts: Texts,
    pub(crate) open: OpenSeries,
    pub(crate) tables: Vec<OpenTable>,
    /// Tables not opened yet, as the previous transaction left them; valid while the catalog of tables has this root.
    pub(crate) known: (Tree, Vec<OpenTable>),
    pub(crate) broken: Option<String>,
    /// Whether the user has confirmed the wall clock (`txn/clock.rs`).
    pub(crate) clock_confirmed: bool,
    /// Number of appenders that still have rows.
    pub(crate) appending: usize,
}

impl WriteTxn {
    pub(crate) fn begin(shared: Arc<Shared>, pages: tidalite_pager::WriteTxn) -> Result<Self> {
        let (roots, known) = shared.take_roots(pages.app())?;
        let delta = Delta::load(&pages, &roots.delta)?;
        let mut write_buffer = shared.take_write_buffer();
        let leaves = Leaves::new(&roots, write_buffer.budget_bytes(), shared.leaf_vectors);
        let open = shared.newest.writer_series.take(&roots);
        if !open.is_of(&write_buffer) {
            // The slots of the buffer belong to series that may have other columns by now.
            write_buffer.reset();
        }
        Ok(Self {
            shared,
            pages,
            tables: Vec::with_capacity(known.len()),
            known: (roots.tables, known),
            roots,
            delta,
            write_buffer,
            background: BackgroundFlush::default(),
            leaves,
            texts: Texts::default(),
            open,
            broken: None,
            clock_confirmed: false,
            appending: 0,
        })
    }

    /// The number of this transaction's commit.
    #[must_use]
    pub fn txn(&self) -> TxnId {
        self.pages.txn()
    }

    /// Declares that this transaction frees space: on a full disk it may use the reserve
    /// ([`Tuning::reserve_bytes`](crate::Tuning::reserve_bytes)). Every delete, removal and clear does so by itself.
    /// A transaction that used the reserve must free at least as many pages as it takes, less an eighth of the reserve,
    /// which in total may be consumed this way; else its commit is refused with `Full`.
    pub fn free_space(&mut self) {
        self.pages.free_space();
    }

    /// Commits durably: when this returns, everything is stored and visible.
    ///
    /// # Errors
    /// `Full` and others before the meta block: the transaction is rolled back. A failed sync: `Broken` from then
    /// on; reopening shows whether the transaction was committed.
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

    /// Commits without waiting for the medium: the next writer can begin. The ticket reports when the commit is durable,
    /// or waits for it; many threads' commits then share one sync. Readers see a durable commit once it is durable.
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
    /// As for `commit`, except errors of the flush, which the ticket reports.
    pub fn commit_ticket(self, durability: Durability) -> Result<Ticket> {
        self.commit_by(durability, |pages, app| {
            pages.commit_ticket(app, durability)
        })
    }

    /// Stores everything in pages, seals them, and commits through `commit`, which gets the contents of the meta
    /// record.
    pub(crate) fn commit_by<T>(
        mut self,
        durability: Durability,
        commit: impl FnOnce(tidalite_pager::WriteTxn, &[u8]) -> tidalite_pager::Result<T>,
    ) -> Result<T> {
        self.check_usable()?;
        if self.appending > 0 {
            let first = format!("{} appenders never gave their rows", self.appending);
            return Err(Error::from(Cause::TransactionBroken { first }));
        }
        self.bring_into_pages()?;
        if matches!(durability, Durability::Durable | Durability::OneFlush) {
            self.pages.write_leaves()?;
        }
        self.seal_catalog()?;
        let app = self.app_with_clock();
        let done = commit(self.pages, &app)?;
        let buffered = self
            .shared
            .give_write_buffer(self.write_buffer, self.open.count());
        self.shared
            .newest
            .writer_series
            .give(self.open, &self.roots, buffered);
        let tables = still_known(self.tables, self.known, &self.roots.tables);
        self.shared.give_roots(app, self.roots, tables);
        Ok(done)
    }

    /// Stores all rows and texts in pages, and sets the roots.
    pub(crate) fn bring_into_pages(&mut self) -> Result<()> {
        self.store_rows()?;
        self.roots.delta =
            self.delta
                .commit(&mut self.pages, &mut self.write_buffer, &mut self.leaves)?;
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

    /// Statistics of the delta in this transaction, for searches that must reach all of its paths.
    #[cfg(feature = "seeded-bugs")]
    #[must_use]
    pub fn delta_work(&self) -> tidalite_delta::Work {
        self.delta.work()
    }

    /// The user data of the commit: set by this transaction, else inherited from the previous commit.
    #[must_use]
    pub fn user_data(&self) -> &[u8] {
        self.pages.user_data()
    }

    /// Sets the user data: up to [`USER_BYTES_MAX`](crate::limits::USER_BYTES_MAX) bytes in the commit itself that
    /// readers get with their snapshot, such as the last applied position of a log. They stay until set again.
    ///
    /// # Errors
    /// [`Limit`](crate::ErrorKind::Limit) if there are more bytes.
    pub fn set_user_data(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.pages.set_user_data(bytes)?)
    }

    /// Runs a change whose failure breaks the transaction.
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
            Some(first) => Err(Error::from(Cause::TransactionBroken {
                first: first.clone(),
            })),
        }
    }

    pub(crate) fn change_table<T>(
        &mut self,
        index: usize,
        change: impl FnOnce(&mut Tree, &mut tidalite_pager::WriteTxn) -> tidalite_pager::Result<T>,
    ) -> Result<T> {
        self.tables[index].append_cursor.forget();
        self.change_table_with_cursor(index, |tree, _, pages| change(tree, pages))
    }

    /// Like `change_table`, for a change that keeps the `AppendCursor` valid or resets it.
    pub(crate) fn change_table_with_cursor<T>(
        &mut self,
        index: usize,
        change: impl FnOnce(
            &mut Tree,
            &mut AppendCursor,
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
        let result = change(&mut table.tree, &mut table.append_cursor, pages);
        changing.returned = true;
        match result {
            Ok(result) => {
                table.changed = true;
                Ok(result)
            }
            // These errors are detected before anything is changed; of many pairs, those before the failing one are
            // stored. A value in place of a nested table, or the reverse, is detected likewise.
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

    /// Records the root of every changed table.
    pub(crate) fn keep_table_roots(&mut self) -> Result<()> {
        let Self {
            tables,
            roots,
            pages,
            ..
        } = self;
        for table in tables.iter_mut().filter(|table| table.changed) {
            table.tree.seal(pages)?;
            if table.created || table.retyped {
                let entry = table.entry().encode();
                roots.tables.insert(pages, table.name.as_bytes(), &entry)?;
                roots.inline.retain(|(id, _)| *id != table.id);
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
