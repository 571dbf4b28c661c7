//! Opening, listing, renaming and dropping tables in a write transaction.

use crate::catalog::roots::Roots;
use crate::catalog::table_name::Named;
use crate::catalog::table_roots::{TableEntry, find_table};
use crate::tables::codec::{TableKey, TableValue};
use crate::tables::open_types::{Requested, expect_bytes, expect_rows};
use crate::tables::set_table::SetTable;
use crate::tables::set_table_mut::SetTableMut;
use crate::tables::table::Table;
use crate::tables::table_mut::TableMut;
use crate::txn::open_table::{OpenTable, TABLE_NAME_BYTES_MAX, names};
use crate::txn::table_cache::Kept;
use crate::txn::write::WriteTxn;
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use crate::types::table_types::{TableLayout, TableTypes};
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use tidalite_kv::{AppendCursor, Tree};
use tidalite_pager::PageRead;
use tidalite_relations::Layout;

/// A table that was found by its name, in a transaction or in the catalog.
pub(crate) struct Found<'a> {
    pub(crate) named: Named<'a>,
    pub(crate) tree: Tree,
    /// The types stored with the table; `None` for plain bytes.
    pub(crate) types: Option<Cow<'a, TableTypes>>,
    /// The place for the decoded schema of a relation, if the table is kept in memory.
    pub(crate) layout: Option<&'a OnceLock<Arc<Layout>>>,
}

impl<'a> Found<'a> {
    pub(crate) fn open(table: &'a OpenTable) -> Self {
        Self {
            named: Named::Lent(&table.name),
            tree: table.tree,
            types: table.types.as_ref().map(Cow::Borrowed),
            layout: Some(&table.layout),
        }
    }

    pub(crate) fn kept(table: &'a Kept) -> Self {
        Self {
            named: Named::Lent(&table.name),
            tree: table.tree,
            types: table.types.as_ref().map(Cow::Borrowed),
            layout: Some(&table.layout),
        }
    }

    pub(crate) fn in_catalog<R: PageRead>(
        roots: &Roots,
        pages: &R,
        name: &str,
    ) -> Result<Option<Self>> {
        Ok(find_table(roots, pages, name)?.map(|entry| Self {
            named: Named::of(name),
            tree: entry.tree,
            types: entry.types.map(Cow::Owned),
            layout: None,
        }))
    }
}

/// Returns the table if it is of the requested kind: a table of sets if `multi`, otherwise a table with one value per
/// key. Returns an error for other kinds.
pub(crate) fn expect_kind<'a>(
    found: Option<Found<'a>>,
    name: &str,
    multi: bool,
) -> Result<Option<Found<'a>>> {
    match found {
        Some(Found { tree, types, .. }) if tree.is_multi() != multi => {
            Err(other_kind(name, &tree, types.as_deref()))
        }
        Some(found) => {
            expect_rows(name, found.types.as_deref())?;
            Ok(Some(found))
        }
        None => Ok(None),
    }
}

fn other_kind(table: &str, tree: &Tree, types: Option<&TableTypes>) -> Error {
    if let Err(error) = expect_rows(table, types) {
        return error;
    }
    let (is, open_with) = match tree.is_multi() {
        true => ("has several values per key", "set_table"),
        false => ("has one value per key", "table"),
    };
    Error::from(Cause::TableKind {
        table: table.to_owned(),
        is,
        open_with,
    })
}

impl WriteTxn {
    /// Opens a table and returns its index among the open tables. `create` is the kind of the table (true for a table
    /// of sets), which is created if it does not exist; with `None`, a table of either kind is opened and none is
    /// created.
    pub(crate) fn open_table(&mut self, name: &str, create: Option<bool>) -> Result<Option<usize>> {
        self.check_usable()?;
        let wrong = |tree: &Tree| create.is_some_and(|multi| multi != tree.is_multi());
        if let Some(index) = self.tables.iter().position(|table| table.name == name) {
            let OpenTable { tree, types, .. } = &self.tables[index];
            if wrong(tree) {
                return Err(other_kind(name, tree, types.as_ref()));
            }
            return Ok(Some(index));
        }
        if let Some(table) = self.take_known(name) {
            self.tables.push(table);
            let index = self.tables.len() - 1;
            let OpenTable { tree, types, .. } = &self.tables[index];
            return match wrong(tree) {
                true => Err(other_kind(name, tree, types.as_ref())),
                false => Ok(Some(index)),
            };
        }
        self.check_table_name(name)?;
        let found = find_table(&self.roots, &self.pages, name)?;
        let created = found.is_none();
        let entry = match (found, create) {
            (Some(found), _) if wrong(&found.tree) => {
                return Err(other_kind(name, &found.tree, found.types.as_ref()));
            }
            (Some(found), _) => found,
            (None, None) => return Ok(None),
            (None, Some(multi)) => {
                let id = self.roots.next_table;
                self.roots.next_table += 1;
                let tree = if multi {
                    Tree::new_multi(id)
                } else {
                    Tree::new(id)
                };
                let types = None;
                TableEntry { id, tree, types }
            }
        };
        let opened = OpenTable::of(name.to_owned(), entry, created);
        self.tables.push(opened);
        Ok(Some(self.tables.len() - 1))
    }

    /// Opens a table of the given kind (`sets`: a table of sets), or creates it, and returns its index among the open
    /// tables.
    fn open_kind(&mut self, name: &str, sets: bool) -> Result<usize> {
        match self.open_table(name, Some(sets))? {
            Some(index) => Ok(index),
            None => unreachable!("it is created"),
        }
    }

    /// Opens a table like `open_kind`; returns an error if types other than plain bytes are stored with it.
    fn open_bytes(&mut self, name: &str, sets: bool) -> Result<usize> {
        let index = self.open_kind(name, sets)?;
        expect_bytes(name, self.tables[index].types.as_ref())?;
        Ok(index)
    }

    /// Opens a table like `open_kind`, for entries of these types. Stores the types with a table that has no entries,
    /// and otherwise compares them with the stored ones.
    fn open_typed(&mut self, name: &str, sets: bool, types: Requested) -> Result<usize> {
        if let Some(found) = self.find(name)?
            && found.tree.is_multi() == sets
        {
            types.expect(name, found.types.as_deref(), &found.tree)?;
            if found.types.is_some() {
                return self.open_kind(name, sets);
            }
        }
        let types = types.to_record()?;
        self.open_with(name, sets, types)
    }

    /// Opens a table like `open_kind`, and stores these types with it, whatever entries it has; `None` stands for plain
    /// bytes.
    pub(crate) fn open_with(
        &mut self,
        name: &str,
        sets: bool,
        types: Option<TableTypes>,
    ) -> Result<usize> {
        let index = self.open_kind(name, sets)?;
        let table = &mut self.tables[index];
        if table.types != types {
            table.types = types;
            table.layout = OnceLock::new();
            table.retyped = true;
            table.changed = true;
        }
        Ok(index)
    }

    /// Returns an error if a hash table or a buffered table has this name.
    fn expect_rows_in(&self, name: &str) -> Result<()> {
        match self.find(name)? {
            Some(found) => expect_rows(name, found.types.as_deref()),
            None => Ok(()),
        }
    }

    /// Takes the table from the list of tables that the previous transaction had open, if the catalog of tables has not
    /// changed since.
    fn take_known(&mut self, name: &str) -> Option<OpenTable> {
        let (catalog, known) = &mut self.known;
        let at = known.iter().position(|table| table.name == name)?;
        if *catalog != self.roots.tables {
            return None;
        }
        let table = known.swap_remove(at);
        Some(OpenTable {
            append_cursor: AppendCursor::default(),
            changed: false,
            ..table
        })
    }

    fn check_table_name(&self, name: &str) -> Result<()> {
        let most = TABLE_NAME_BYTES_MAX.min(self.key_bytes_max());
        if !name.is_empty() && name.len() <= most {
            return Ok(());
        }
        let problem = format!("{} bytes, 1 to {most} can be", name.len());
        Err(Error::from(Cause::Name {
            name: name.to_owned(),
            problem,
        }))
    }

    pub(crate) fn table_name(&self, index: usize) -> &str {
        &self.tables[index].name
    }

    /// Opens a table for changes; creates it if it does not exist. One table at a time can be open in this way; for
    /// several, use [`share`](Self::share). To only read a table, use [`view_table`](Self::view_table), which creates
    /// nothing.
    ///
    /// In the example a table and its index are changed together: readers see both changes or neither.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// use tidalite::{Result, WriteTxn};
    ///
    /// /// The city of each person, and the persons of each city.
    /// fn move_to(tx: &mut WriteTxn, person: &[u8], city: &[u8]) -> Result<()> {
    ///     let old = tx.table("city of")?.replace(person, city)?;
    ///     let mut index = tx.set_table("persons in")?;
    ///     if let Some(old) = old {
    ///         index.remove(&old, person)?;
    ///     }
    ///     index.put(city, person)?;
    ///     Ok(())
    /// }
    ///
    /// let mut tx = db.begin_write()?;
    /// for (person, city) in [("ann", "Oslo"), ("ben", "Oslo"), ("eve", "Rome")] {
    ///     move_to(&mut tx, person.as_bytes(), city.as_bytes())?;
    /// }
    /// // The index is read and the result copied; then both are changed.
    /// let mut persons = Vec::new();
    /// if let Some(index) = tx.view_set_table("persons in")? {
    ///     for person in index.values(b"Oslo")? {
    ///         persons.push(person?);
    ///     }
    /// }
    /// for person in &persons {
    ///     move_to(&mut tx, person, b"Rome")?;
    /// }
    /// // Any number of tables can be read side by side.
    /// let (cities, index) = (tx.view_table("city of")?, tx.view_set_table("persons in")?);
    /// let (cities, index) = (cities.ok_or("no table")?, index.ok_or("no table")?);
    /// assert_eq!(cities.get(b"ben")?, Some(b"Rome".to_vec()));
    /// assert_eq!((index.count_of(b"Oslo")?, index.count_of(b"Rome")?), (0, 3));
    /// tx.commit()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidName` for an empty or too long name; `WrongType` for a table of sets; `WrongType` for a table with
    /// recorded types (use [`raw_table`](Self::raw_table)); `Broken`; errors of the file.
    ///
    /// # Cost
    /// A search among the open tables; on first use in a transaction a descent in the catalog of tables, except for
    /// tables that the previous transaction had open.
    pub fn table(&mut self, name: &str) -> Result<TableMut<'_>> {
        let index = self.open_bytes(name, false)?;
        Ok(TableMut::new(self, index))
    }

    /// Opens a table for changes to the bytes of its keys and values, whatever types are recorded with it; creates it
    /// if it does not exist.
    ///
    /// # Errors
    /// As for `table`, without the error for other types. A hash table or a buffered table is `WrongType`: its rows
    /// belong together, and [`raw_hash_table`](Self::raw_hash_table) and
    /// [`raw_buffered_table`](Self::raw_buffered_table) change them.
    ///
    /// # Cost
    /// As for `table`.
    pub fn raw_table(&mut self, name: &str) -> Result<TableMut<'_>> {
        let index = self.open_kind(name, false)?;
        expect_rows(name, self.tables[index].types.as_ref())?;
        Ok(TableMut::new(self, index))
    }

    /// Opens a table of any layout for changes to its rows; stores the layout and types `types` with it.
    pub(crate) fn table_to_fill(
        &mut self,
        name: &str,
        types: Option<TableTypes>,
    ) -> Result<TableMut<'_>> {
        let index = self.open_with(name, false, types)?;
        // The caller may replace the schema of a relation, which is stored in its rows, so the decoded schema is
        // dropped.
        self.tables[index].layout = OnceLock::new();
        Ok(TableMut::new(self, index))
    }

    /// Opens a table with keys of type `K` and values of type `V`; creates it if it does not exist. The names of the
    /// types ([`TableKey::NAME`], [`TableValue::NAME`]) are stored with a table that has no entries yet, and compared
    /// whenever the table is opened later.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// tx.typed_table::<u64, f64>("levels")?.put(&7, &3.5)?;
    /// let refused = tx.typed_table::<i64, f64>("levels").map(drop);
    /// let text = refused.err().ok_or("no error")?.to_string();
    /// assert!(text.starts_with("table levels holds u64 -> f64, not i64 -> f64"));
    /// // Bytes can always be read, and written by `raw_table`.
    /// assert!(tx.table("levels").is_err());
    /// assert_eq!(tx.view_table("levels")?.ok_or("no table")?.count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for `table`; `WrongType` if other types are stored with the table, or no types and the table has entries
    /// ([`retype_table`](Self::retype_table) does not check the types); `Limit` if the name of a type is longer than
    /// 255 bytes.
    ///
    /// # Cost
    /// As for `table`, and a comparison of the names.
    pub fn typed_table<K, V>(&mut self, name: &str) -> Result<TableMut<'_, K, V>>
    where
        K: TableKey + ?Sized,
        V: TableValue + ?Sized,
    {
        let index = self.open_typed(name, false, Requested::of::<K, V>())?;
        Ok(TableMut::of(self, index, Vec::new()))
    }

    /// Opens a table like [`typed_table`](Self::typed_table), and stores the types with it in place of others, whatever
    /// its entries are: bytes of another type are an error (`WrongType`) only if they do not decode. Use this for
    /// tables of programs that store bytes, and for types that got a new name. For plain bytes, no types are stored.
    ///
    /// # Errors
    /// As for `typed_table`, without the error for other types.
    pub fn retype_table<K, V>(&mut self, name: &str) -> Result<TableMut<'_, K, V>>
    where
        K: TableKey + ?Sized,
        V: TableValue + ?Sized,
    {
        self.expect_rows_in(name)?;
        let types = Requested::of::<K, V>().to_record()?;
        let index = self.open_with(name, false, types)?;
        Ok(TableMut::of(self, index, Vec::new()))
    }

    /// Creates an empty table of any layout, for a copy of another table row by row:
    /// [`ReadTxn::raw_table`](crate::ReadTxn::raw_table) reads its rows and nested tables. The copy can be opened as a
    /// table of its layout when it has all rows. `key` and `value` are the names of the types, as
    /// [`TableTypes`](crate::table::TableTypes) gives them.
    ///
    /// # Errors
    /// `InvalidName` if the name is invalid; `AlreadyExists` if a table has it; `Limit` if the name of a type is longer
    /// than 255 bytes; `Broken`; errors of the file. Layouts without types ignore the two names.
    pub fn create_raw_table(
        &mut self,
        name: &str,
        layout: TableLayout,
        (key, value): (&str, &str),
    ) -> Result<TableMut<'_>> {
        if self.find(name)?.is_some() {
            let table = name.to_owned();
            return Err(Error::from(Cause::TableExists { table }));
        }
        let types = match layout.has_types() {
            true => TableTypes::named(key, value)?.with_layout(layout),
            false => TableTypes::untyped(layout),
        };
        self.table_to_fill(name, Some(types))
    }

    /// Opens an existing table; returns `None`, and creates nothing, if it does not exist.
    ///
    /// # Errors
    /// As for `table`.
    pub fn table_if_exists(&mut self, name: &str) -> Result<Option<TableMut<'_>>> {
        let Some(index) = self.open_table(name, None)? else {
            return Ok(None);
        };
        let OpenTable { tree, types, .. } = &self.tables[index];
        if tree.is_multi() {
            return Err(other_kind(name, tree, types.as_ref()));
        }
        expect_bytes(name, types.as_ref())?;
        Ok(Some(TableMut::new(self, index)))
    }

    /// Opens a table whose keys have sorted sets of values; creates it if it does not exist.
    ///
    /// # Errors
    /// `InvalidName` for an empty or too long name; `WrongType` for a table with one value per key; `WrongType` for a
    /// table with recorded types (use [`raw_set_table`](Self::raw_set_table)); errors of the file.
    pub fn set_table(&mut self, name: &str) -> Result<SetTableMut<'_>> {
        let index = self.open_bytes(name, true)?;
        Ok(SetTableMut::new(self, index))
    }

    /// Opens a table like [`raw_table`](Self::raw_table), but a table of sets.
    ///
    /// # Errors
    /// As for `set_table`, without the error for other types.
    pub fn raw_set_table(&mut self, name: &str) -> Result<SetTableMut<'_>> {
        let index = self.open_kind(name, true)?;
        Ok(SetTableMut::new(self, index))
    }

    /// Opens a table of sets with keys of type `K` and values of type `V`; creates it if it does not exist. The names
    /// of the types are stored and compared as in [`typed_table`](Self::typed_table).
    ///
    /// # Errors
    /// As for `set_table`; `WrongType` and `Limit` as for `typed_table`.
    pub fn typed_set_table<K, V>(&mut self, name: &str) -> Result<SetTableMut<'_, K, V>>
    where
        K: TableKey + ?Sized,
        V: TableKey + ?Sized,
    {
        let index = self.open_typed(name, true, Requested::of_sets::<K, V>())?;
        Ok(SetTableMut::new(self, index))
    }

    /// Opens a table like [`retype_table`](Self::retype_table), but a table of sets.
    ///
    /// # Errors
    /// As for `typed_set_table`, without the error for other types.
    pub fn retype_set_table<K, V>(&mut self, name: &str) -> Result<SetTableMut<'_, K, V>>
    where
        K: TableKey + ?Sized,
        V: TableKey + ?Sized,
    {
        let types = Requested::of_sets::<K, V>().to_record()?;
        let index = self.open_with(name, true, types)?;
        Ok(SetTableMut::new(self, index))
    }

    /// Opens an existing table of sets; returns `None`, and creates nothing, if it does not exist.
    ///
    /// # Errors
    /// As for `set_table`.
    pub fn set_table_if_exists(&mut self, name: &str) -> Result<Option<SetTableMut<'_>>> {
        let Some(index) = self.open_table(name, None)? else {
            return Ok(None);
        };
        if !self.tables[index].tree.is_multi() {
            let OpenTable { tree, types, .. } = &self.tables[index];
            return Err(other_kind(name, tree, types.as_ref()));
        }
        expect_bytes(name, self.tables[index].types.as_ref())?;
        Ok(Some(SetTableMut::new(self, index)))
    }

    /// A view of a table in its current state, including the writes of this transaction; returns `None`, and creates
    /// nothing, if it does not exist. Any number of tables can be read side by side until the transaction changes
    /// something, so data to be written is copied out first. To read one table while another is changed, use
    /// [`share`](Self::share).
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// tx.table("limits")?.put(b"speed", b"7")?;
    /// let limit = match tx.view_table("limits")? {
    ///     Some(limits) => limits.get(b"speed")?,
    ///     None => None,
    /// };
    /// tx.table("wanted")?.put(b"speed", &limit.unwrap_or_default())?;
    /// assert!(tx.view_table("misspelt")?.is_none());
    /// assert_eq!(tx.tables()?, ["limits", "wanted"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `WrongType` for a table of sets; `Broken`; a damaged or unreadable page.
    ///
    /// # Cost
    /// As for [`table`](Self::table), but a table that the transaction has not opened is looked up each time.
    pub fn view_table(&self, name: &str) -> Result<Option<Table<'_>>> {
        let found = expect_kind(self.find(name)?, name, false)?;
        Ok(found.map(|found| Table::new(self.pages_view(), found.tree, found.named)))
    }

    /// A view of a table of sets, like [`view_table`](Self::view_table).
    ///
    /// # Errors
    /// `WrongType` for a table with one value per key; `Broken`; a damaged or unreadable page.
    pub fn view_set_table(&self, name: &str) -> Result<Option<SetTable<'_>>> {
        let found = expect_kind(self.find(name)?, name, true)?;
        Ok(found.map(|found| SetTable::new(self.pages_view(), found.tree, found.named)))
    }

    /// Whether the table with this name is a table of sets; `None` if there is no such table.
    ///
    /// # Errors
    /// `Broken`; a damaged or unreadable page.
    pub fn is_set_table(&self, name: &str) -> Result<Option<bool>> {
        Ok(self.find(name)?.map(|found| found.tree.is_multi()))
    }

    /// The names of the types that are stored with this table; `None` for a table of plain bytes, or if there is no
    /// such table.
    ///
    /// # Errors
    /// `Broken`; a damaged or unreadable page.
    pub fn table_types(&self, name: &str) -> Result<Option<TableTypes>> {
        let found = self.find(name)?;
        Ok(found.and_then(|found| found.types.map(Cow::into_owned)))
    }

    /// Finds a table's name, current root and types, without opening the table.
    pub(crate) fn find(&self, name: &str) -> Result<Option<Found<'_>>> {
        self.check_usable()?;
        let (catalog, known) = &self.known;
        let known = known.iter().filter(|_| *catalog == self.roots.tables);
        let mut at_hand = self.tables.iter().chain(known);
        match at_hand.find(|table| table.name == name) {
            Some(table) => Ok(Some(Found::open(table))),
            None if name.is_empty() || name.len() > TABLE_NAME_BYTES_MAX => Ok(None),
            None => Found::in_catalog(&self.roots, &self.pages, name),
        }
    }

    /// The names of all tables, in order, as this transaction sees them.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn tables(&self) -> Result<Vec<String>> {
        self.check_usable()?;
        names(&self.roots, &self.pages, &self.tables)
    }

    /// Removes a table with all its content; returns whether the table existed. Cost: as for clearing the table.
    ///
    /// # Errors
    /// `WrongType` for a table of containers, which [`drop_containers`](Self::drop_containers) drops with its series; a
    /// damaged page, after which the transaction can only be rolled back.
    pub fn drop_table(&mut self, name: &str) -> Result<bool> {
        self.expect_no_series(name, "drop_containers")?;
        self.drop_any_table(name)
    }

    pub(crate) fn drop_any_table(&mut self, name: &str) -> Result<bool> {
        let Some(index) = self.open_table(name, None)? else {
            return Ok(false);
        };
        self.pages.free_space();
        self.note_if_relation(index);
        self.changing(|txn| {
            txn.tables[index].tree.clear(&mut txn.pages)?;
            txn.forget_table(index)
        })?;
        Ok(true)
    }

    /// Renames a table; returns whether the table existed. Only the catalog is written.
    ///
    /// # Errors
    /// `InvalidName` if the new name is invalid; `AlreadyExists` if a table has it; `WrongType` for a table of
    /// containers, which [`rename_containers`](Self::rename_containers) renames with its series.
    pub fn rename_table(&mut self, from: &str, to: &str) -> Result<bool> {
        self.expect_no_series(from, "rename_containers")?;
        self.rename_any_table(from, to)
    }

    pub(crate) fn rename_any_table(&mut self, from: &str, to: &str) -> Result<bool> {
        self.check_table_name(to)?;
        let Some(index) = self.open_table(from, None)? else {
            return Ok(false);
        };
        if from == to {
            return Ok(true);
        }
        if self.open_table(to, None)?.is_some() {
            let table = to.to_owned();
            return Err(Error::from(Cause::TableExists { table }));
        }
        self.note_if_relation(index);
        self.changing(|txn| {
            txn.store_hashes()?;
            let mut table = txn.tables[index].clone();
            txn.forget_table(index)?;
            table.name = to.to_owned();
            table.created = true;
            table.changed = true;
            txn.tables.push(table);
            Ok(())
        })?;
        Ok(true)
    }

    fn note_if_relation(&mut self, index: usize) {
        let types = self.tables[index].types.as_ref();
        if types.is_some_and(|types| types.layout() == TableLayout::Relation) {
            self.note_relations();
        }
    }

    /// Counts a change of the schema of a relation, so that the version of the catalog changes.
    pub(crate) fn note_relations(&mut self) {
        self.roots.relations = self.roots.relations.wrapping_add(1);
    }

    /// Returns an error if a table has series, which `call` takes along.
    fn expect_no_series(&self, name: &str, call: &'static str) -> Result<()> {
        let found = self.find(name)?;
        let layout = found.and_then(|found| found.types.map(|types| types.layout()));
        match layout {
            Some(TableLayout::Containers) => Err(Error::from(Cause::TableKind {
                table: name.to_owned(),
                is: "has containers, whose series must follow",
                open_with: call,
            })),
            _ => Ok(()),
        }
    }

    /// Removes a table from the catalog and from the open tables.
    fn forget_table(&mut self, index: usize) -> Result<()> {
        let table = self.tables.swap_remove(index);
        self.forget_writer(table.id);
        if !table.created {
            self.roots
                .tables
                .remove(&mut self.pages, table.name.as_bytes())?;
            self.roots.inline.retain(|(id, _)| *id != table.id);
        }
        Ok(())
    }

    /// A view of an open table, given by its index, for reading.
    pub(crate) fn opened_view(&self, index: usize) -> Result<Table<'_>> {
        self.check_usable()?;
        let OpenTable { name, tree, .. } = &self.tables[index];
        Ok(Table::new(self.pages_view(), *tree, Named::Lent(name)))
    }

    /// A view of an open table of sets, given by its index, for reading.
    pub(crate) fn opened_set_view(&self, index: usize) -> Result<SetTable<'_>> {
        self.check_usable()?;
        let OpenTable { name, tree, .. } = &self.tables[index];
        Ok(SetTable::new(self.pages_view(), *tree, Named::Lent(name)))
    }
}
