//! Opening tables for reading, in a snapshot or in a write transaction.

use crate::tables::codec::{TableKey, TableValue};
use crate::tables::open_types::Requested;
use crate::tables::open_write::{Found, expect_kind};
use crate::tables::set_table::SetTable;
use crate::tables::table::Table;
use crate::txn::open_table::{TABLE_NAME_BYTES_MAX, names};
use crate::txn::pages::ReadSource;
use crate::txn::read::Reading;
use crate::types::error::Result;
use crate::types::table_types::TableTypes;
use std::borrow::Cow;

impl<S: ReadSource> Reading<S> {
    /// Opens the table with this name; returns `None` if it does not exist.
    ///
    /// # Errors
    /// `WrongType` for a table of sets or a hash table; a damaged or unreadable page.
    pub fn table(&self, name: &str) -> Result<Option<Table<'_>>> {
        let found = expect_kind(self.find(name)?, name, false)?;
        Ok(found.map(|found| Table::new(self.pages.view(), found.tree, found.named)))
    }

    /// Opens a table like [`table`](Self::table), whatever types and layout are stored with it: a hash table, for
    /// example, is opened as the rows and nested tables in which it is stored.
    ///
    /// # Errors
    /// As for `table`, without the error for hash tables.
    pub fn raw_table(&self, name: &str) -> Result<Option<Table<'_>>> {
        match self.find(name)? {
            Some(found) if !found.tree.is_multi() => {
                Ok(Some(Table::new(self.pages.view(), found.tree, found.named)))
            }
            _ => self.table(name),
        }
    }

    /// Opens the table with this name, with keys of type `K` and values of type `V`; returns `None` if it does not
    /// exist.
    ///
    /// # Errors
    /// As for `table`; `WrongType` if other types are stored with the table, or no types and the table has entries
    /// ([`Table::typed`] does not check the types).
    pub fn typed_table<K, V>(&self, name: &str) -> Result<Option<Table<'_, K, V>>>
    where
        K: TableKey + ?Sized,
        V: TableValue + ?Sized,
    {
        let found = expect_kind(self.find(name)?, name, false)?;
        let Some(found) = found else {
            return Ok(None);
        };
        Requested::of::<K, V>().expect(name, found.types.as_deref(), &found.tree)?;
        let table = Table::new(self.pages.view(), found.tree, found.named);
        Ok(Some(table))
    }

    /// Opens the table of sets with this name; returns `None` if it does not exist.
    ///
    /// # Errors
    /// `WrongType` for a table with one value per key; a damaged or unreadable page.
    pub fn set_table(&self, name: &str) -> Result<Option<SetTable<'_>>> {
        let found = expect_kind(self.find(name)?, name, true)?;
        Ok(found.map(|found| SetTable::new(self.pages.view(), found.tree, found.named)))
    }

    /// Opens the table of sets with this name, with keys of type `K` and values of type `V`; returns `None` if it does
    /// not exist.
    ///
    /// # Errors
    /// As for `set_table`; `WrongType` if other types are stored with the table, or no types and the table has entries
    /// ([`SetTable::typed`] does not check the types).
    pub fn typed_set_table<K, V>(&self, name: &str) -> Result<Option<SetTable<'_, K, V>>>
    where
        K: TableKey + ?Sized,
        V: TableKey + ?Sized,
    {
        let found = expect_kind(self.find(name)?, name, true)?;
        let Some(found) = found else {
            return Ok(None);
        };
        Requested::of_sets::<K, V>().expect(name, found.types.as_deref(), &found.tree)?;
        let table = SetTable::new(self.pages.view(), found.tree, found.named);
        Ok(Some(table))
    }

    /// Whether the table with this name is a table of sets; `None` if there is no such table.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn is_set_table(&self, name: &str) -> Result<Option<bool>> {
        Ok(self.find(name)?.map(|found| found.tree.is_multi()))
    }

    /// The names of the types that are stored with this table; `None` for a table of plain bytes, or if there is no
    /// such table.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn table_types(&self, name: &str) -> Result<Option<TableTypes>> {
        let found = self.find(name)?;
        Ok(found.and_then(|found| found.types.map(Cow::into_owned)))
    }

    /// The names of all tables, in order.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn tables(&self) -> Result<Vec<String>> {
        names(&self.cache.roots, &self.pages, &self.cache.open)
    }

    /// Finds a table's name, root and types.
    pub(crate) fn find(&self, name: &str) -> Result<Option<Found<'_>>> {
        match self.cache.open.iter().find(|open| open.name == name) {
            Some(open) => Ok(Some(Found::open(open))),
            None if name.is_empty() || name.len() > TABLE_NAME_BYTES_MAX => Ok(None),
            // An evictable snapshot must not answer from a cache: it has to read pages, because that is how it notices
            // its eviction.
            None if self.pages.may_end() => Found::in_catalog(&self.cache.roots, &self.pages, name),
            None => self.find_kept(name),
        }
    }

    /// Finds a table like `find`, in the cache that all snapshots of this commit share, or else in the catalog.
    fn find_kept(&self, name: &str) -> Result<Option<Found<'_>>> {
        let kept = &self.cache.tables;
        if let Some(kept) = kept.get(name) {
            return Ok(Some(Found::kept(kept)));
        }
        let found = Found::in_catalog(&self.cache.roots, &self.pages, name)?;
        if let Some(found) = &found {
            kept.note(name, found.tree, found.types.as_deref());
        }
        Ok(kept.get(name).map(Found::kept).or(found))
    }
}
