//! Several tables of a write transaction that are open for changes at once.
//!
//! Invariants
//! 1. Each call borrows the transaction for its own duration only.
//! 2. A handle finds its table by its index among the open tables. The index stays the same, because a shared
//!    transaction does not drop or rename tables and rolls nothing back.

use crate::tables::batches::Batches;
use crate::tables::codec::{TableKey, TableValue};
use crate::tables::key_range::KeyRange;
use crate::tables::set_table_mut::SetTableMut;
use crate::tables::table_mut::TableMut;
use crate::txn::write::WriteTxn;
use crate::types::error::{Error, Result};
use std::cell::{RefCell, RefMut};
use std::iter::FusedIterator;
use std::marker::PhantomData;

/// A write transaction in which several tables can be open for changes side by side. The handles of the tables take
/// turns in using the transaction, so that one table can be read while another is changed.
///
/// ```
/// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
/// let mut tx = db.begin_write()?;
/// tx.table("city of")?.extend([("ann", "Oslo"), ("ben", "Oslo"), ("eve", "Rome")])?;
///
/// let tables = tx.share();
/// let cities = tables.table("city of")?;
/// let index = tables.set_table("persons in")?;
/// for entry in cities.entries(..) {
///     let (person, city) = entry?;
///     index.put(&city, &person)?;
///     cities.put(&person, &city.to_ascii_lowercase())?;
/// }
/// assert_eq!(index.with(|index| index.view()?.count_of(b"Oslo"))?, 2);
/// assert_eq!(cities.get(b"eve")?, Some(b"rome".to_vec()));
/// tx.commit()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Cost
/// Each call tests a flag. Tables that are opened without sharing the transaction do not pay for this.
pub struct SharedTxn<'t>(RefCell<&'t mut WriteTxn>);

impl WriteTxn {
    /// Shares the transaction among several tables, which can then be open for changes at the same time. The
    /// transaction itself can be used again when the handles of these tables are gone.
    pub fn share(&mut self) -> SharedTxn<'_> {
        SharedTxn(RefCell::new(self))
    }
}

impl<'t> SharedTxn<'t> {
    /// Opens a table like [`WriteTxn::table`].
    ///
    /// # Errors
    /// As for [`WriteTxn::table`]; `Unsupported` inside a function passed to [`SharedTable::with`].
    pub fn table(&self, name: &str) -> Result<SharedTable<'_, 't>> {
        self.typed_table(name)
    }

    /// Opens a table like [`WriteTxn::typed_table`].
    ///
    /// # Errors
    /// As for [`WriteTxn::typed_table`]; `Unsupported` as for `table`.
    pub fn typed_table<K, V>(&self, name: &str) -> Result<SharedTable<'_, 't, K, V>>
    where
        K: TableKey + ?Sized,
        V: TableValue + ?Sized,
    {
        Ok(SharedTable {
            index: self.borrow()?.typed_table::<K, V>(name)?.index(),
            txn: self,
            types: PhantomData,
        })
    }

    /// Opens a table of sets like [`WriteTxn::set_table`].
    ///
    /// # Errors
    /// As for [`WriteTxn::set_table`]; `Unsupported` as for `table`.
    pub fn set_table(&self, name: &str) -> Result<SharedSetTable<'_, 't>> {
        self.typed_set_table(name)
    }

    /// Opens a table of sets like [`WriteTxn::typed_set_table`].
    ///
    /// # Errors
    /// As for [`WriteTxn::typed_set_table`]; `Unsupported` as for `table`.
    pub fn typed_set_table<K, V>(&self, name: &str) -> Result<SharedSetTable<'_, 't, K, V>>
    where
        K: TableKey + ?Sized,
        V: TableKey + ?Sized,
    {
        Ok(SharedSetTable {
            index: self.borrow()?.typed_set_table::<K, V>(name)?.index(),
            txn: self,
            types: PhantomData,
        })
    }

    fn borrow(&self) -> Result<RefMut<'_, &'t mut WriteTxn>> {
        self.0.try_borrow_mut().map_err(|_| {
            let found = "a call on a shared table inside `with` of another one".to_owned();
            let expected = "calls one after the other".to_owned();
            tidalite_pager::Error::Unsupported { found, expected }.into()
        })
    }
}

/// A table of a [`SharedTxn`]. Each method uses the transaction only during its call.
pub struct SharedTable<'s, 't, K: ?Sized = [u8], V: ?Sized = [u8]> {
    txn: &'s SharedTxn<'t>,
    index: usize,
    types: PhantomData<fn(&K, &V)>,
}

impl<K: ?Sized, V: ?Sized> Clone for SharedTable<'_, '_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: ?Sized, V: ?Sized> Copy for SharedTable<'_, '_, K, V> {}

impl<'s, 't, K: TableKey + ?Sized, V: TableValue + ?Sized> SharedTable<'s, 't, K, V> {
    /// Passes the table to `work`, which can make any call of [`TableMut`]. `work` may return an error type of its own,
    /// as in [`WriteTxn::nested`]. Changes that `work` has made before an error stay.
    ///
    /// # Errors
    /// The errors of `work`; `Unsupported` if `work` uses another table of the same [`SharedTxn`].
    pub fn with<T, E: From<Error>>(
        &self,
        work: impl FnOnce(&mut TableMut<'_, K, V>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut txn = self.txn.borrow()?;
        work(&mut TableMut::new(&mut txn, self.index))
    }

    /// Returns the value of a key, like [`TableMut::get`].
    ///
    /// # Errors
    /// As for [`TableMut::get`].
    pub fn get(&self, key: &K) -> Result<Option<V::Owned>> {
        self.with(|table| table.get(key))
    }

    /// Stores a value under a key, like [`TableMut::put`].
    ///
    /// # Errors
    /// As for [`TableMut::put`].
    pub fn put(&self, key: &K, value: &V::Borrowed) -> Result<bool> {
        self.with(|table| table.put(key, value))
    }

    /// Stores a value under a key and returns the old value, like [`TableMut::replace`].
    ///
    /// # Errors
    /// As for [`TableMut::replace`].
    pub fn replace(&self, key: &K, value: &V::Borrowed) -> Result<Option<V::Owned>> {
        self.with(|table| table.replace(key, value))
    }

    /// Removes a key, like [`TableMut::remove`].
    ///
    /// # Errors
    /// As for [`TableMut::remove`].
    pub fn remove(&self, key: &K) -> Result<bool> {
        self.with(|table| table.remove(key))
    }

    /// The entries with keys in a range, in ascending order. Between two steps this table and others can be changed. Up
    /// to 64 entries are read in advance; the iteration then continues after the last entry read, in the current state
    /// of the table.
    ///
    /// # Cost
    /// One descent for every 64 entries, and a copy of each entry.
    pub fn entries(&self, range: impl KeyRange<K>) -> SharedEntries<'s, 't, K, V> {
        SharedEntries {
            table: *self,
            batches: Batches::new(range),
        }
    }
}

/// A table of sets of a [`SharedTxn`]. Each method uses the transaction only during its call.
pub struct SharedSetTable<'s, 't, K: ?Sized = [u8], V: ?Sized = [u8]> {
    txn: &'s SharedTxn<'t>,
    index: usize,
    types: PhantomData<fn(&K, &V)>,
}

impl<K: TableKey + ?Sized, V: TableKey + ?Sized> SharedSetTable<'_, '_, K, V> {
    /// Passes the table to `work`, which can make any call of [`SetTableMut`], like [`SharedTable::with`].
    ///
    /// # Errors
    /// As for [`SharedTable::with`].
    pub fn with<T, E: From<Error>>(
        &self,
        work: impl FnOnce(&mut SetTableMut<'_, K, V>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut txn = self.txn.borrow()?;
        work(&mut SetTableMut::new(&mut txn, self.index))
    }

    /// Stores a pair, like [`SetTableMut::put`].
    ///
    /// # Errors
    /// As for [`SetTableMut::put`].
    pub fn put(&self, key: &K, value: &V) -> Result<bool> {
        self.with(|table| table.put(key, value))
    }

    /// Removes a pair, like [`SetTableMut::remove`].
    ///
    /// # Errors
    /// As for [`SetTableMut::remove`].
    pub fn remove(&self, key: &K, value: &V) -> Result<bool> {
        self.with(|table| table.remove(key, value))
    }

    /// All values of a key, ascending.
    ///
    /// # Errors
    /// As for [`SetTable::values`](crate::SetTable::values).
    pub fn values(&self, key: &K) -> Result<Vec<V::Owned>> {
        self.with(|table| table.view()?.values(key)?.collect())
    }
}

/// Iterator over the entries of a [`SharedTable`], in ascending order of keys. An error ends the iteration.
pub struct SharedEntries<'s, 't, K: TableKey + ?Sized = [u8], V: TableValue + ?Sized = [u8]> {
    table: SharedTable<'s, 't, K, V>,
    batches: Batches<K, V>,
}

impl<K: TableKey + ?Sized, V: TableValue + ?Sized> Iterator for SharedEntries<'_, '_, K, V> {
    type Item = Result<(K::Owned, V::Owned)>;

    fn next(&mut self) -> Option<Self::Item> {
        let table = self.table;
        (self.batches).next(|read| table.with(|table| read(&table.view()?)))
    }
}

impl<K: TableKey + ?Sized, V: TableValue + ?Sized> FusedIterator for SharedEntries<'_, '_, K, V> {}
