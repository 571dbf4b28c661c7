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

use crate::catalog::entries::{self as catalog, SeriesKey};
use crate::catalog::roots::Roots;
use crate::catalog::table_name::Named;
use crate::catalog::table_roots::find_table;
use crate::catalog::texts::Texts;
use crate::database::handle::Shared;
use crate::maintenance::compact::table_from;
use crate::series::record::Record;
use crate::series::write::SeriesMut;
use crate::tables::multi::MultiTable;
use crate::tables::open::still_known;
use crate::tables::table::Table;
use crate::txn::leaves::Leaves;
use crate::txn::open_series::OpenSeries;
use crate::txn::pages::Pages;
use crate::types::error::{Error, Result};
use crate::types::merge_policy::MergePolicy;
use crate::types::name::SeriesName;
use crate::types::schema::Schema;
use std::ops::Bound;
use std::sync::Arc;
use tidalite_base::{SeriesId, TxnId};
use tidalite_kv::{Ending, Tree};
use tidalite_pager::{Durability, PageRead, PageWrite, Ticket};
use tidalite_runs::{Beside, Front, Staging};
use tidalite_series::Sealed;

/// Bytes of a table name at most.
pub const TABLE_NAME_BYTES_MAX: usize = 255;

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

/// A table that this transaction opened.
#[derive(Clone, Debug)]
pub(crate) struct OpenTable {
    pub(crate) name: String,
    pub(crate) id: u64,
    pub(crate) tree: Tree,
    /// Where its last row is, while rows are put in behind it.
    pub(crate) ending: Ending,
    pub(crate) changed: bool,
    /// It is not in the `tables` tree under this name.
    pub(crate) created: bool,
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

    /// Opens the series with this name; creates it with the default point (`flags`, `value`, ns) when
    /// there is none.
    ///
    /// # Errors
    /// `Name` for a text that is no name; what the file reports.
    pub fn series(&mut self, name: &str) -> Result<SeriesMut<'_>> {
        if let Some(index) = self.open.named(name) {
            self.turn_to(index)?;
            return Ok(SeriesMut::new(self, index));
        }
        let parsed = SeriesName::parse(name)?;
        let index = self.open_or_create(SeriesKey::Name(&parsed), None)?;
        self.open.name(name, index);
        Ok(SeriesMut::new(self, index))
    }

    /// Opens the series with this name and schema; creates it when there is none.
    ///
    /// # Errors
    /// `Schema` when the series is there with another schema; else as for `series`.
    pub fn series_with(&mut self, name: &str, schema: &Schema) -> Result<SeriesMut<'_>> {
        let parsed = SeriesName::parse(name)?;
        let index = self.open_or_create(SeriesKey::Name(&parsed), Some(schema))?;
        Ok(SeriesMut::new(self, index))
    }

    /// Opens the series with this name and adds the columns of the schema that it lacks behind its own; creates it when
    /// there is none. So a program whose records have grown by some fields at their end goes on with the series it has.
    ///
    /// # Errors
    /// `Schema` when the columns that the series has are not the first ones of the schema; else as for
    /// [`SeriesMut::add_columns`].
    pub fn series_extended(&mut self, name: &str, schema: &Schema) -> Result<SeriesMut<'_>> {
        let parsed = SeriesName::parse(name)?;
        let key = SeriesKey::Name(&parsed);
        let Some(id) = catalog::find(&self.roots, &self.pages, key)? else {
            return self.series_with(name, schema);
        };
        let mut series = self.series_by_id(id)?;
        let own = &series.info().schema;
        let added = schema.columns.strip_prefix(&own.columns[..]);
        let Some(added) = added.filter(|_| own.unit == schema.unit) else {
            catalog::expect_schema(series.info(), schema)?;
            return Ok(series);
        };
        if !added.is_empty() {
            series.add_columns(added)?;
        }
        Ok(series)
    }

    /// Opens the series with this name, schema and merge policy; creates it when there is none.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{Error, MemoryStorage, MergePolicy, Options, Schema};
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let mut series = tx.series_merging("first", &Schema::point(), MergePolicy::KeepFirst)?;
    /// series.insert(1_i64, 0.5)?;
    /// series.insert(1_i64, 0.75)?;
    /// assert_eq!(series.view()?.latest()?.ok_or("no row")?.f64(1), 0.5);
    /// let mut series = tx.series_merging("once", &Schema::point(), MergePolicy::Error)?;
    /// series.insert(1_i64, 0.5)?;
    /// assert!(matches!(series.insert(1_i64, 0.75), Err(Error::TimeTaken { time: 1, .. })));
    /// series.insert(2_i64, 0.75)?;
    /// tx.commit()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Schema` when the series is there with another schema or another policy ([`SeriesMut::set_merge`] changes it);
    /// else as for `series`.
    pub fn series_merging(
        &mut self,
        name: &str,
        schema: &Schema,
        merge: MergePolicy,
    ) -> Result<SeriesMut<'_>> {
        let parsed = SeriesName::parse(name)?;
        let there = catalog::find(&self.roots, &self.pages, SeriesKey::Name(&parsed))?.is_some();
        let mut series = self.series_with(name, schema)?;
        if !there {
            series.set_merge(merge)?;
        } else if series.info().merge != merge {
            let own = series.info().merge.name();
            let problem = format!(
                "series {parsed} has the merge policy {own}, asked for was {}",
                merge.name()
            );
            return Err(Error::Schema { problem });
        }
        Ok(series)
    }

    /// Opens or creates the series of a record type.
    ///
    /// # Errors
    /// As for `series_with`.
    pub fn series_of<R: Record>(&mut self, name: &str) -> Result<SeriesMut<'_>> {
        self.series_with(name, &R::schema())
    }

    /// Opens or creates the series that a GUID identifies.
    ///
    /// # Errors
    /// As for `series_with`.
    pub fn series_of_guid(&mut self, guid: [u8; 16], schema: &Schema) -> Result<SeriesMut<'_>> {
        let index = self.open_or_create(SeriesKey::Guid(&guid), Some(schema))?;
        Ok(SeriesMut::new(self, index))
    }

    /// Opens a series by its number: an array index once it was opened in this transaction.
    ///
    /// # Errors
    /// `NoSuchSeries`; what the file reports.
    // Always: what a call puts together field by field, and its caller then copies in larger pieces, waits for the stores of the
    // fields: that was a third of what a row of series in turn cost.
    #[inline(always)]
    pub fn series_by_id(&mut self, id: SeriesId) -> Result<SeriesMut<'_>> {
        let index = match self.open.index(id) {
            Some(index) => index,
            None => self.open_by_id(id)?,
        };
        Ok(SeriesMut::new(self, index))
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
        self.store_rows()?;
        self.roots.front =
            self.front
                .commit(&mut self.pages, &mut self.staging, &mut self.leaves)?;
        self.leaves.finish(&mut self.pages, &mut self.roots)?;
        self.texts.flush(&mut self.pages, &mut self.roots.texts)?;
        if matches!(durability, Durability::Durable | Durability::OneFlush) {
            self.pages.hand_over()?;
        }
        self.keep_table_roots()?;
        for tree in self.roots.catalog_trees() {
            tree.seal(&mut self.pages)?;
        }
        let app = self.app_with_clock();
        let done = commit(self.pages, &app)?;
        let staged = self.shared.give_staging(self.staging, self.open.count());
        self.shared.newest.kept.give(self.open, &self.roots, staged);
        let tables = still_known(self.tables, self.known, &self.roots.tables);
        self.shared.give_roots(app, self.roots, tables);
        Ok(done)
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

    /// An open table for reading.
    pub(crate) fn opened_view(&self, index: usize) -> Result<Table<'_>> {
        self.check_usable()?;
        let OpenTable { name, tree, .. } = &self.tables[index];
        Ok(Table::new(self.pages_view(), *tree, Named::Lent(name)))
    }

    /// The same of a table of multi-values.
    pub(crate) fn opened_multi_view(&self, index: usize) -> Result<MultiTable<'_>> {
        self.check_usable()?;
        let OpenTable { name, tree, .. } = &self.tables[index];
        Ok(MultiTable::new(self.pages_view(), *tree, Named::Lent(name)))
    }

    pub(crate) fn pages_view(&self) -> Pages<'_> {
        Pages::Writer(&self.pages)
    }

    fn open_or_create(&mut self, key: SeriesKey<'_>, schema: Option<&Schema>) -> Result<usize> {
        self.check_usable()?;
        if let Some(id) = catalog::find(&self.roots, &self.pages, key)? {
            let index = match self.open.index(id) {
                Some(index) => index,
                None => self.open_by_id(id)?,
            };
            if let Some(schema) = schema {
                catalog::expect_schema(&self.open[index].info, schema)?;
            }
            return Ok(index);
        }
        let default = Schema::point();
        let schema = schema.unwrap_or(&default);
        catalog::expect_room(&self.roots, schema)?;
        if let SeriesKey::Name(name) = key {
            self.check_name_fits(name)?;
        }
        let info =
            self.changing(|txn| catalog::create(&mut txn.roots, &mut txn.pages, key, schema))?;
        Ok(self.open.enter(info, &mut self.staging))
    }

    /// Names are keys of the catalog, and small pages hold but short ones.
    pub(crate) fn check_name_fits(&self, name: &SeriesName) -> Result<()> {
        let (name, most) = (name.to_string(), self.key_bytes_max());
        if name.len() <= most {
            return Ok(());
        }
        let problem = format!(
            "{} bytes are beyond the {most} that fit the file's small pages",
            name.len()
        );
        Err(Error::Name { name, problem })
    }

    pub(crate) fn key_bytes_max(&self) -> usize {
        tidalite_kv::key_bytes_max(self.pages.page_size())
    }

    #[cold]
    #[inline(never)]
    fn open_by_id(&mut self, id: SeriesId) -> Result<usize> {
        self.check_usable()?;
        if let Some(index) = self.open.known(id) {
            self.turn_to(index)?;
            return Ok(index);
        }
        let info = catalog::info(&self.roots, &self.pages, id)?;
        let info = info.ok_or_else(|| Error::NoSuchSeries {
            wanted: format!("number {}", id.0),
        })?;
        Ok(self.open.enter(info, &mut self.staging))
    }

    /// Puts the roots of changed tables where the next reader finds them.
    /// Moves pages of the table `name`, or of the next one when there is none; from `key` on. Where to go on; `None` behind the last table.
    pub(crate) fn relocate_table(
        &mut self,
        name: &str,
        key: &[u8],
        step: &mut tidalite_kv::Relocation,
    ) -> Result<Option<(String, Vec<u8>)>> {
        let tables = self.roots.tables;
        let from = Bound::Included(name.as_bytes());
        let Some(found) = table_from(&tables, &self.pages, from)? else {
            return Ok(None);
        };
        let from = if found == name { key } else { &[] };
        let Some((id, mut tree)) = find_table(&self.roots, &self.pages, &found)? else {
            return Ok(None);
        };
        let before = tree;
        let stop = tree.relocate(&mut self.pages, step, from)?;
        if tree != before {
            self.tables.push(OpenTable {
                name: found.clone(),
                id,
                tree,
                ending: Ending::default(),
                changed: true,
                created: false,
            });
            self.keep_table_roots()?;
            self.tables.clear();
            self.known.1.clear();
        }
        if let Some(key) = stop {
            return Ok(Some((found, key)));
        }
        let tables = self.roots.tables;
        let next = table_from(&tables, &self.pages, Bound::Excluded(found.as_bytes()))?;
        Ok(next.map(|name| (name, Vec::new())))
    }
}
