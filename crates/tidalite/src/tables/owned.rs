//! A table that owns its snapshot, for structs and iterators that outlive the function that took the snapshot.

use crate::catalog::table_name::Named;
use crate::tables::batches::Batches;
use crate::tables::codec::{TableKey, TableValue};
use crate::tables::key_range::KeyRange;
use crate::tables::table::Table;
use crate::txn::pages::Pages;
use crate::txn::read::ReadTxn;
use crate::types::error::Result;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::sync::Arc;
use tidalite_kv::Tree;

/// A table together with its snapshot, returned by [`ReadTxn::owned_table`] or [`ReadTxn::owned_typed_table`]. The
/// value borrows nothing, so it can be a field of a struct; [`view`](Self::view) gives the table.
///
/// ```
/// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
/// use tidalite::{Database, Result};
/// use tidalite::table::OwnedTable;
///
/// struct Prices(OwnedTable<str, u32>);
///
/// impl Prices {
///     fn of(&self, article: &str) -> Result<Option<u32>> {
///         self.0.view().get(article)
///     }
/// }
///
/// fn prices(db: &Database) -> Result<Option<Prices>> {
///     let snap = db.begin_read()?;
///     Ok(snap.owned_typed_table("prices")?.map(Prices))
/// }
///
/// let mut tx = db.begin_write()?;
/// tx.typed_table::<str, u32>("prices")?.extend([("apple", 3), ("pear", 4)])?;
/// tx.commit()?;
/// let prices = prices(&db)?.ok_or("no prices")?;
/// assert_eq!(prices.of("pear")?, Some(4));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct OwnedTable<K: ?Sized = [u8], V: ?Sized = [u8]> {
    snapshot: ReadTxn,
    tree: Tree,
    name: Arc<str>,
    types: PhantomData<fn(&K, &V)>,
}

impl<K: ?Sized, V: ?Sized> Clone for OwnedTable<K, V> {
    fn clone(&self) -> Self {
        Self {
            snapshot: self.snapshot.clone(),
            tree: self.tree,
            name: Arc::clone(&self.name),
            types: PhantomData,
        }
    }
}

impl ReadTxn {
    /// Opens the table with this name, together with a clone of the snapshot; returns `None` if it does not exist.
    ///
    /// # Errors
    /// As for [`table`](Self::table).
    pub fn owned_table(&self, name: &str) -> Result<Option<OwnedTable>> {
        Ok(self.table(name)?.and_then(|table| self.own(name, &table)))
    }

    /// Opens the table with this name, with keys of type `K` and values of type `V`, together with a clone of the
    /// snapshot; returns `None` if it does not exist.
    ///
    /// # Errors
    /// As for [`typed_table`](Self::typed_table).
    pub fn owned_typed_table<K, V>(&self, name: &str) -> Result<Option<OwnedTable<K, V>>>
    where
        K: TableKey + ?Sized,
        V: TableValue + ?Sized,
    {
        let table = self.typed_table::<K, V>(name)?;
        Ok(table.and_then(|table| self.own(name, &table)))
    }

    fn own<K: ?Sized, V: ?Sized>(
        &self,
        name: &str,
        table: &Table<'_, K, V>,
    ) -> Option<OwnedTable<K, V>> {
        let (_, tree) = table.parts();
        // A table of the catalog always has a tree; only a nested table may have none.
        Some(OwnedTable {
            snapshot: self.clone(),
            tree: *tree?,
            name: name.into(),
            types: PhantomData,
        })
    }
}

impl<K: TableKey + ?Sized, V: TableValue + ?Sized> OwnedTable<K, V> {
    /// The table, borrowed from this value. Reads nothing.
    #[must_use]
    pub fn view(&self) -> Table<'_, K, V> {
        let pages = Pages::Snapshot(&self.snapshot.pages);
        Table::new(pages, self.tree, Named::Lent(&self.name))
    }

    /// The snapshot that the table is read from.
    #[must_use]
    pub fn snapshot(&self) -> &ReadTxn {
        &self.snapshot
    }

    /// The entries with keys in a range, ascending, as an iterator that owns the snapshot.
    ///
    /// # Cost
    /// A descent for each 64 entries, and copies of the entries; [`Table::range`] of a view costs neither.
    pub fn into_entries(self, range: impl KeyRange<K>) -> OwnedEntries<K, V> {
        OwnedEntries {
            table: self,
            batches: Batches::new(range),
        }
    }
}

/// Iterator over the entries of an [`OwnedTable`], in ascending order of keys. An error ends the iteration.
pub struct OwnedEntries<K: TableKey + ?Sized = [u8], V: TableValue + ?Sized = [u8]> {
    table: OwnedTable<K, V>,
    batches: Batches<K, V>,
}

impl<K: TableKey + ?Sized, V: TableValue + ?Sized> Iterator for OwnedEntries<K, V> {
    type Item = Result<(K::Owned, V::Owned)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batches.next(|read| read(&self.table.view()))
    }
}

impl<K: TableKey + ?Sized, V: TableValue + ?Sized> FusedIterator for OwnedEntries<K, V> {}
