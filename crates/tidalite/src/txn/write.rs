//! The write transaction, which covers tables, series, the catalog and the delta.
//!
//! ```text
//! insert -> write buffer -(leaf full, budget, commit)-> delta -(vectors)-> Leaves: series trees, packer
//! put    -> kv tree of the table
//! commit:   delta, leaves, series records, extents table, table roots, seal every tree, meta block
//! ```
//!
//! Invariants:
//! 1. Changes of this transaction are invisible to others before `commit` returns; dropping the transaction rolls it
//!    back.
//! 2. After an operation has failed half-way the transaction is *broken*: reads and the commit are refused; it can only
//!    be rolled back. An error that comes before any change does not break the transaction.
//! 3. `open` (`open_series.rs`) holds the open series. It also keeps the series that the previous transaction knew;
//!    these are opened when they are selected.

use crate::catalog::roots::{INLINE_ROOTS_MAX, Roots};
use crate::catalog::table_name::Named;
use crate::catalog::table_roots::flush_inline;
use crate::catalog::tags::update;
use crate::catalog::texts::Texts;
use crate::txn::leaves::Leaves;
use crate::txn::open_hash::{OpenBuffered, OpenHash};
use crate::txn::open_series::OpenSeries;
use crate::txn::open_table::{OpenTable, still_known};
use crate::txn::pages::Pages;
use crate::txn::shared::Shared;
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use std::sync::Arc;
use tidalite_base::TxnId;
use tidalite_delta::{BackgroundFlush, Delta, WriteBuffer};
use tidalite_index::Changes;
use tidalite_kv::{AppendCursor, Tree};
use tidalite_pager::{Durability, PageRead, PageWrite, Ticket};
use tidalite_series::EncodedVectors;

/// Result of a commit: its number, and the amount of data written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Number of the commit.
    pub txn: TxnId,
    /// Number of pages and blocks written, without meta blocks.
    pub pages_written: u64,
    /// Number of bytes written, including meta blocks.
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

/// Guard of a transaction in the middle of a change: a panic, even in the caller's code (an iterator, a closure that
/// fills a value), breaks the transaction, because partial changes may not be reachable from any root.
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

/// The write transaction, of which there is one at a time. It may move between threads. Dropping it rolls everything
/// back.
pub struct WriteTxn {
    pub(crate) shared: Arc<Shared>,
    pub(crate) pages: tidalite_pager::WriteTxn,
    /// The roots, boxed because they are large and the transaction is moved several times.
    pub(crate) roots: Box<Roots>,
    pub(crate) delta: Delta,
    pub(crate) write_buffer: Box<WriteBuffer>,
    /// The worker threads that hold rows of this transaction.
    pub(crate) background: BackgroundFlush<EncodedVectors>,
    pub(crate) leaves: Leaves,
    pub(crate) texts: Texts,
    /// Changes of the index of tags that are not stored yet.
    pub(crate) tags: Changes,
    pub(crate) open: OpenSeries,
    pub(crate) tables: Vec<OpenTable>,
    /// The open hash tables; each is among `tables`, too.
    pub(crate) hashes: Vec<OpenHash>,
    /// The open buffered tables; each is among `tables`, too.
    pub(crate) buffered: Vec<OpenBuffered>,
    /// Tables that the previous transaction had open and this one has not; valid while the catalog of tables has the
    /// root in the first field.
    pub(crate) known: (Tree, Vec<OpenTable>),
    pub(crate) broken: Option<String>,
    /// Whether the user has confirmed that the wall clock is right (`txn/clock.rs`).
    pub(crate) clock_confirmed: bool,
    /// Number of appenders that have not delivered all their rows.
    pub(crate) appending: usize,
    /// Whether series of containers may be changed, because their container or a copy changes them.
    pub(crate) changes_containers: bool,
}

impl WriteTxn {
    pub(crate) fn begin(shared: Arc<Shared>, pages: tidalite_pager::WriteTxn) -> Result<Self> {
        let (roots, known) = shared.take_roots(pages.app())?;
        let delta = Delta::load(&pages, &roots.delta)?;
        let mut write_buffer = shared.take_write_buffer();
        let leaves = Leaves::new(&roots, write_buffer.budget_bytes(), shared.leaf_vectors);
        let open = shared.newest.writer_series.take(&roots);
        if !open.is_of(&write_buffer) {
            // The buffer is not in the state in which the known series left it: its slots may belong to series that
            // have other columns by now.
            write_buffer.reset();
        }
        Ok(Self {
            shared,
            pages,
            tables: Vec::with_capacity(known.len()),
            hashes: Vec::new(),
            buffered: Vec::new(),
            known: (roots.tables, known),
            roots,
            delta,
            write_buffer,
            background: BackgroundFlush::default(),
            leaves,
            texts: Texts::default(),
            tags: Changes::default(),
            open,
            broken: None,
            clock_confirmed: false,
            appending: 0,
            changes_containers: false,
        })
    }

    /// The number that this transaction's commit will have.
    #[must_use]
    pub fn txn(&self) -> TxnId {
        self.pages.txn()
    }

    /// Declares that this transaction frees space: on a full disk it may use the reserve
    /// ([`Tuning::reserve_bytes`](crate::Tuning::reserve_bytes)). Every delete, removal and clear does so by itself. A
    /// transaction that used the reserve must free at least as many pages as it takes, less an eighth of the reserve,
    /// which in total may be consumed this way; otherwise its commit is refused with `Full`.
    pub fn free_space(&mut self) {
        self.pages.free_space();
    }

    /// Commits durably: when this returns, everything is stored and visible.
    ///
    /// # Errors
    /// `Full` and other errors before the meta block is written: the transaction is rolled back. `Broken` from a failed
    /// sync on; reopening shows whether the transaction was committed.
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

    /// Commits without waiting for the medium: the next writer can begin. The ticket reports when the commit is
    /// durable, or waits until it is; commits of many threads then share one sync. Readers see a durable commit once it
    /// is durable.
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

    /// Stores everything in pages, seals these pages, and commits by calling `commit` with the pages and the encoded
    /// roots for the meta record.
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

    /// Stores all buffered rows and texts in pages, and sets the roots of the delta, the leaves and the texts.
    pub(crate) fn bring_into_pages(&mut self) -> Result<()> {
        self.store_hashes()?;
        self.store_rows()?;
        self.roots.delta =
            self.delta
                .commit(&mut self.pages, &mut self.write_buffer, &mut self.leaves)?;
        self.leaves.finish(&mut self.pages, &mut self.roots)?;
        self.store_tags()?;
        self.texts.flush(&mut self.pages, &mut self.roots.texts)
    }

    /// Stores the changes of the index of tags.
    pub(crate) fn store_tags(&mut self) -> Result<()> {
        update::store(&mut self.roots.tags, &mut self.pages, &mut self.tags)
    }

    fn seal_catalog(&mut self) -> Result<()> {
        self.keep_table_roots()?;
        for tree in self.roots.catalog_trees() {
            tree.seal(&mut self.pages)?;
        }
        Ok(())
    }

    /// Counters of the delta's work in this transaction, for tests that check whether they have reached all code paths
    /// of the delta.
    #[cfg(feature = "seeded-bugs")]
    #[must_use]
    pub fn delta_work(&self) -> tidalite_delta::Work {
        self.delta.work()
    }

    /// The user data that the commit will have: set by this transaction, otherwise inherited from the previous commit.
    #[must_use]
    pub fn user_data(&self) -> &[u8] {
        self.pages.user_data()
    }

    /// Sets the user data: up to [`USER_BYTES_MAX`](crate::limits::USER_BYTES_MAX) bytes that are stored in the commit
    /// and that readers get with their snapshot, such as the last applied position of a log. Later commits keep these
    /// bytes until they are set again.
    ///
    /// # Errors
    /// [`Limit`](crate::ErrorKind::Limit) if there are more bytes.
    pub fn set_user_data(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.pages.set_user_data(bytes)?)
    }

    /// Runs `change`; an error of `change` breaks the transaction.
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

    /// Changes a table like `change_table`, by a function that keeps the table's `AppendCursor` valid or resets it.
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
            // These errors are detected before anything is changed, so the transaction is not broken; of many pairs,
            // those before the failing one are stored. A value in place of a nested table, or the reverse, is detected
            // likewise.
            Err(
                error @ (tidalite_pager::Error::Limit { .. }
                | tidalite_pager::Error::Unsupported { .. }
                | tidalite_pager::Error::Refused { .. }
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

    /// The tree of an open table, and the pages from which it is read.
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

    /// Records the root of every changed table in the inline list or in the `tables` tree.
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
