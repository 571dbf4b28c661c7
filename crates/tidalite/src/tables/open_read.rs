//! Opening tables of a snapshot, or of a write transaction at one moment.

use crate::catalog::table_name::Named;
use crate::catalog::table_roots::find_table;
use crate::tables::codec::{TableKey, TableValue};
use crate::tables::open_write::expect_kind;
use crate::tables::set_table::SetTable;
use crate::tables::table::Table;
use crate::txn::open_table::{TABLE_NAME_BYTES_MAX, names};
use crate::txn::pages::ReadSource;
use crate::txn::read::Reading;
use crate::types::error::Result;
use tidalite_kv::Tree;

impl<S: ReadSource> Reading<S> {
    /// The table with this name.
    ///
    /// # Errors
    /// `TableKind` for a table of sets; a damaged or unreadable page.
    pub fn table(&self, name: &str) -> Result<Option<Table<'_>>> {
        let found = expect_kind(self.find(name)?, name, false)?;
        Ok(found.map(|(named, tree)| Table::new(self.pages.view(), tree, named)))
    }

    /// The table with this name, with keys of type `K` and values of type `V`.
    ///
    /// # Errors
    /// As for `table`.
    pub fn typed_table<K, V>(&self, name: &str) -> Result<Option<Table<'_, K, V>>>
    where
        K: TableKey + ?Sized,
        V: TableValue + ?Sized,
    {
        Ok(self.table(name)?.map(Table::typed))
    }

    /// The table of sets with this name.
    ///
    /// # Errors
    /// `TableKind` for a table with one value per key; a damaged or unreadable page.
    pub fn set_table(&self, name: &str) -> Result<Option<SetTable<'_>>> {
        let found = expect_kind(self.find(name)?, name, true)?;
        let named = |(named, tree)| SetTable::new(self.pages.view(), tree, named);
        Ok(found.map(named))
    }

    /// The table of sets with this name, with keys of type `K` and values of type `V`.
    ///
    /// # Errors
    /// As for `set_table`.
    pub fn typed_set_table<K, V>(&self, name: &str) -> Result<Option<SetTable<'_, K, V>>>
    where
        K: TableKey + ?Sized,
        V: TableKey + ?Sized,
    {
        Ok(self.set_table(name)?.map(SetTable::typed))
    }

    /// Whether the table with this name has sets of values; `None` if it does not exist.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn is_set_table(&self, name: &str) -> Result<Option<bool>> {
        Ok(self.find(name)?.map(|(_, tree)| tree.is_multi()))
    }

    /// The names of all tables, in order.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn tables(&self) -> Result<Vec<String>> {
        names(&self.begun.roots, &self.pages, &self.begun.open)
    }

    /// A table's name and root.
    fn find(&self, name: &str) -> Result<Option<(Named<'_>, Tree)>> {
        match self.begun.open.iter().find(|open| open.name == name) {
            Some(open) => Ok(Some((Named::Lent(&open.name), open.tree))),
            None if name.is_empty() || name.len() > TABLE_NAME_BYTES_MAX => Ok(None),
            // An evictable snapshot has to read pages for its answer.
            None if self.pages.may_end() => self.look_for(name),
            None => self.find_kept(name),
        }
    }

    /// Like `find`, from the cache of this commit's snapshots.
    fn find_kept(&self, name: &str) -> Result<Option<(Named<'_>, Tree)>> {
        let kept = &self.begun.tables;
        if let Some((name, tree)) = kept.get(name) {
            return Ok(Some((Named::Lent(name), tree)));
        }
        let found = self.look_for(name)?;
        if let Some((_, tree)) = found {
            kept.note(name, tree);
        }
        Ok(found)
    }

    /// Like `find`, from the catalog.
    fn look_for(&self, name: &str) -> Result<Option<(Named<'_>, Tree)>> {
        let found = find_table(&self.begun.roots, &self.pages, name)?;
        Ok(found.map(|(_, tree)| (Named::of(name), tree)))
    }
}
