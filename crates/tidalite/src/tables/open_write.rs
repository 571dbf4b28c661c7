//! Opening, listing, renaming and dropping tables, as part of the transaction.

use crate::catalog::table_name::Named;
use crate::catalog::table_roots::find_table;
use crate::tables::codec::{TableKey, TableValue};
use crate::tables::set_table::SetTable;
use crate::tables::set_table_mut::SetTableMut;
use crate::tables::table::Table;
use crate::tables::table_mut::TableMut;
use crate::txn::open_table::{OpenTable, TABLE_NAME_BYTES_MAX, names};
use crate::txn::write::WriteTxn;
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use tidalite_kv::{AppendCursor, Tree};

/// Returns a table of this kind; an error for the other kind.
pub(crate) fn expect_kind<'a>(
    found: Option<(Named<'a>, Tree)>,
    name: &str,
    multi: bool,
) -> Result<Option<(Named<'a>, Tree)>> {
    match found {
        Some((_, tree)) if tree.is_multi() != multi => Err(other_kind(name, &tree)),
        found => Ok(found),
    }
}

fn other_kind(table: &str, tree: &Tree) -> Error {
    Error::from(Cause::TableKind {
        table: table.to_owned(),
        has_sets: tree.is_multi(),
    })
}

impl WriteTxn {
    /// The index of an open table. `create`: creates a missing table of this kind. Without it, any kind is opened.
    pub(crate) fn open_table(&mut self, name: &str, create: Option<bool>) -> Result<Option<usize>> {
        self.check_usable()?;
        let wrong = |tree: &Tree| create.is_some_and(|multi| multi != tree.is_multi());
        if let Some(index) = self.tables.iter().position(|table| table.name == name) {
            let tree = &self.tables[index].tree;
            if wrong(tree) {
                return Err(other_kind(name, tree));
            }
            return Ok(Some(index));
        }
        if let Some(table) = self.take_known(name) {
            let tree = table.tree;
            self.tables.push(table);
            if wrong(&tree) {
                return Err(other_kind(name, &tree));
            }
            return Ok(Some(self.tables.len() - 1));
        }
        self.check_table_name(name)?;
        let found = find_table(&self.roots, &self.pages, name)?;
        let created = found.is_none();
        let (id, tree) = match (found, create) {
            (Some((_, tree)), _) if wrong(&tree) => return Err(other_kind(name, &tree)),
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
                (id, tree)
            }
        };
        self.tables.push(OpenTable {
            name: name.to_owned(),
            id,
            tree,
            append_cursor: AppendCursor::default(),
            changed: created,
            created,
        });
        Ok(Some(self.tables.len() - 1))
    }

    /// A table as the previous transaction left it.
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

    /// Opens a table for changes; creates it if it does not exist. One table at a time can be open for changes; to only
    /// read a table, use [`view_table`](Self::view_table), which creates nothing.
    ///
    /// A table and its index, changed together: readers see both changes or neither.
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
    /// `Name` for an empty or too long name; `TableKind` for a table of sets; `TransactionBroken`; errors of
    /// the file.
    ///
    /// # Cost
    /// A search among the open tables; on first use in a transaction a descent in the catalog of tables, except for
    /// tables that the previous transaction had open.
    pub fn table(&mut self, name: &str) -> Result<TableMut<'_>> {
        match self.open_table(name, Some(false))? {
            Some(index) => Ok(TableMut::new(self, index)),
            None => unreachable!("it is created"),
        }
    }

    /// Opens a table with keys of type `K` and values of type `V`; creates it if it does not exist.
    ///
    /// # Errors
    /// As for `table`.
    ///
    /// # Cost
    /// As for `table`.
    pub fn typed_table<K, V>(&mut self, name: &str) -> Result<TableMut<'_, K, V>>
    where
        K: TableKey + ?Sized,
        V: TableValue + ?Sized,
    {
        Ok(self.table(name)?.typed())
    }

    /// Opens an existing table; `None` if it does not exist, and nothing is created.
    ///
    /// # Errors
    /// As for `table`.
    pub fn table_if_exists(&mut self, name: &str) -> Result<Option<TableMut<'_>>> {
        let Some(index) = self.open_table(name, None)? else {
            return Ok(None);
        };
        if self.tables[index].tree.is_multi() {
            return Err(other_kind(name, &self.tables[index].tree));
        }
        Ok(Some(TableMut::new(self, index)))
    }

    /// Opens a table whose keys have sorted sets of values; creates it if it does not exist.
    ///
    /// # Errors
    /// `Name` for an empty or too long name; `TableKind` for a table with one value per key; errors of the file.
    pub fn set_table(&mut self, name: &str) -> Result<SetTableMut<'_>> {
        match self.open_table(name, Some(true))? {
            Some(index) => Ok(SetTableMut::new(self, index)),
            None => unreachable!("it is created"),
        }
    }

    /// Opens a table of sets with keys of type `K` and values of type `V`; creates it if it does not exist.
    ///
    /// # Errors
    /// As for `set_table`.
    pub fn typed_set_table<K, V>(&mut self, name: &str) -> Result<SetTableMut<'_, K, V>>
    where
        K: TableKey + ?Sized,
        V: TableKey + ?Sized,
    {
        Ok(self.set_table(name)?.typed())
    }

    /// Opens an existing table of sets; `None` if it does not exist, and nothing is created.
    ///
    /// # Errors
    /// As for `set_table`.
    pub fn set_table_if_exists(&mut self, name: &str) -> Result<Option<SetTableMut<'_>>> {
        let Some(index) = self.open_table(name, None)? else {
            return Ok(None);
        };
        if !self.tables[index].tree.is_multi() {
            return Err(other_kind(name, &self.tables[index].tree));
        }
        Ok(Some(SetTableMut::new(self, index)))
    }

    /// A table in its current state, for reading, own writes included; `None` if it does not exist, and nothing is
    /// created. Any number of tables can be read side by side until the transaction changes something, so data to be
    /// written is copied out first. To read one table while another is changed, see [`reader`](Self::reader).
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
    /// `TableKind` for a table of sets; `TransactionBroken`; a damaged or unreadable page.
    ///
    /// # Cost
    /// As for [`table`](Self::table), but a table that the transaction has not opened is looked up each time.
    pub fn view_table(&self, name: &str) -> Result<Option<Table<'_>>> {
        let found = expect_kind(self.find(name)?, name, false)?;
        Ok(found.map(|(named, tree)| Table::new(self.pages_view(), tree, named)))
    }

    /// As [`view_table`](Self::view_table), for a table of sets.
    ///
    /// # Errors
    /// `TableKind` for a table with one value per key; `TransactionBroken`; a damaged or unreadable page.
    pub fn view_set_table(&self, name: &str) -> Result<Option<SetTable<'_>>> {
        let found = expect_kind(self.find(name)?, name, true)?;
        Ok(found.map(|(named, tree)| SetTable::new(self.pages_view(), tree, named)))
    }

    /// Whether the table with this name has sets of values; `None` if it does not exist.
    ///
    /// # Errors
    /// `TransactionBroken`; a damaged or unreadable page.
    pub fn is_set_table(&self, name: &str) -> Result<Option<bool>> {
        Ok(self.find(name)?.map(|(_, tree)| tree.is_multi()))
    }

    /// A table's name and current root, without opening it.
    fn find(&self, name: &str) -> Result<Option<(Named<'_>, Tree)>> {
        self.check_usable()?;
        let (catalog, known) = &self.known;
        let known = known.iter().filter(|_| *catalog == self.roots.tables);
        let mut at_hand = self.tables.iter().chain(known);
        match at_hand.find(|table| table.name == name) {
            Some(table) => Ok(Some((Named::Lent(&table.name), table.tree))),
            None if name.is_empty() || name.len() > TABLE_NAME_BYTES_MAX => Ok(None),
            None => {
                let found = find_table(&self.roots, &self.pages, name)?;
                Ok(found.map(|(_, tree)| (Named::of(name), tree)))
            }
        }
    }

    /// The names of all tables in this transaction, in order.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn tables(&self) -> Result<Vec<String>> {
        self.check_usable()?;
        names(&self.roots, &self.pages, &self.tables)
    }

    /// Removes a table with all its content; returns whether it existed. Cost: as for clearing it.
    ///
    /// # Errors
    /// A damaged page; the transaction can then only be rolled back.
    pub fn drop_table(&mut self, name: &str) -> Result<bool> {
        let Some(index) = self.open_table(name, None)? else {
            return Ok(false);
        };
        self.pages.free_space();
        self.changing(|txn| {
            txn.tables[index].tree.clear(&mut txn.pages)?;
            txn.forget_table(index)
        })?;
        Ok(true)
    }

    /// Renames a table; returns whether it existed. Only the catalog is written.
    ///
    /// # Errors
    /// `InvalidName` if the new name is invalid, or taken by another table.
    pub fn rename_table(&mut self, from: &str, to: &str) -> Result<bool> {
        self.check_table_name(to)?;
        let Some(index) = self.open_table(from, None)? else {
            return Ok(false);
        };
        if from == to {
            return Ok(true);
        }
        if self.open_table(to, None)?.is_some() {
            return Err(Error::from(Cause::Name {
                name: to.to_owned(),
                problem: "a table has this name already".into(),
            }));
        }
        self.changing(|txn| {
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

    /// Removes a table from the catalog and from the open tables.
    fn forget_table(&mut self, index: usize) -> Result<()> {
        let table = self.tables.swap_remove(index);
        if !table.created {
            self.roots
                .tables
                .remove(&mut self.pages, table.name.as_bytes())?;
            self.roots.inline.retain(|(id, _)| *id != table.id);
        }
        Ok(())
    }

    /// An open table for reading.
    pub(crate) fn opened_view(&self, index: usize) -> Result<Table<'_>> {
        self.check_usable()?;
        let OpenTable { name, tree, .. } = &self.tables[index];
        Ok(Table::new(self.pages_view(), *tree, Named::Lent(name)))
    }

    /// An open table of sets for reading.
    pub(crate) fn opened_set_view(&self, index: usize) -> Result<SetTable<'_>> {
        self.check_usable()?;
        let OpenTable { name, tree, .. } = &self.tables[index];
        Ok(SetTable::new(self.pages_view(), *tree, Named::Lent(name)))
    }
}
