//! Changes to a buffered table in a write transaction.

use crate::buffered::read::{BufferedTable, view_of};
use crate::catalog::table_name::Named;
use crate::tables::codec::{AsArg, TableKey, TableValue, not_encoded, value_of};
use crate::tables::lent::Lent;
use crate::tables::open_write::Found;
use crate::txn::write::WriteTxn;
use crate::types::error::Result;
use std::marker::PhantomData;
use tidalite_index::BufferedWriter;

/// A buffered table in a write transaction, for changes. Keys are of type `K`, values of type `V`.
///
/// Entries are collected in memory and stored in batches, at the latest by the commit.
pub struct BufferedTableMut<'t, K: ?Sized = [u8], V: ?Sized = [u8]> {
    txn: &'t mut WriteTxn,
    /// Indexes among the open tables and the open buffered tables of the transaction.
    index: usize,
    at: usize,
    types: PhantomData<fn(&K, &V)>,
}

impl<'t, K: TableKey + ?Sized, V: TableValue + ?Sized> BufferedTableMut<'t, K, V> {
    pub(crate) fn new(txn: &'t mut WriteTxn, index: usize, at: usize) -> Self {
        Self {
            txn,
            index,
            at,
            types: PhantomData,
        }
    }

    fn writer(&mut self) -> Result<&mut BufferedWriter> {
        self.txn.check_usable()?;
        Ok(&mut self.txn.buffered[self.at].writer)
    }

    /// Stores a value under a key, whether or not the key exists. The call does not read the table, so it cannot return
    /// whether the key existed.
    ///
    /// # Errors
    /// [`Limit`](crate::ErrorKind::Limit) for a key of more than 32 KiB or a value of more than 16 MiB: nothing has
    /// changed. A full disk; a damaged page.
    ///
    /// # Cost
    /// Independent of the size of the table until the entries are stored.
    pub fn put(&mut self, key: &K, value: &V::Borrowed) -> Result<()> {
        let table = self.txn.table_name(self.index);
        let value = V::value_code(value).map_err(|source| not_encoded::<V>(table, source))?;
        self.writer()?.put(&key.key_code(), &value)?;
        self.store_if_full()
    }

    /// Stores many entries. Keys may come in any order; if a key occurs several times, its last value is stored.
    ///
    /// # Errors
    /// As for `put`; the entries before the failing one are stored.
    pub fn extend<A, B>(&mut self, entries: impl IntoIterator<Item = (A, B)>) -> Result<()>
    where
        A: AsArg<K>,
        B: AsArg<V::Borrowed>,
    {
        for (key, value) in entries {
            self.put(key.as_arg(), value.as_arg())?;
        }
        Ok(())
    }

    /// Removes a key, whether or not it exists. The call does not read the table, so it cannot return whether the key
    /// existed.
    ///
    /// # Errors
    /// As for `put`.
    pub fn remove(&mut self, key: &K) -> Result<()> {
        self.writer()?.remove(&key.key_code())?;
        self.store_if_full()
    }

    /// The value of a key, as this transaction sees it; `None` if the key does not exist.
    ///
    /// # Errors
    /// As for [`BufferedTable::get`].
    pub fn get(&self, key: &K) -> Result<Option<V::Owned>> {
        self.txn.check_usable()?;
        let writer = &self.txn.buffered[self.at].writer;
        match writer.buffered(&key.key_code()) {
            Some(Some(value)) => {
                let named = Named::Lent(self.txn.table_name(self.index));
                value_of::<V>(&named, Lent::from(value.to_vec())).map(Some)
            }
            Some(None) => Ok(None),
            None => self.stored_view()?.get(key),
        }
    }

    /// Whether a key exists, as this transaction sees it.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn contains(&self, key: &K) -> Result<bool> {
        self.txn.check_usable()?;
        let writer = &self.txn.buffered[self.at].writer;
        match writer.buffered(&key.key_code()) {
            Some(value) => Ok(value.is_some()),
            None => self.stored_view()?.contains(key),
        }
    }

    /// A view of the table in its current state, for reading. Stores the entries that are in memory.
    ///
    /// # Errors
    /// A full disk; a damaged page.
    pub fn view(&mut self) -> Result<BufferedTable<'_, K, V>> {
        self.store()?;
        self.stored_view()
    }

    fn stored_view(&self) -> Result<BufferedTable<'_, K, V>> {
        self.txn.check_usable()?;
        let table = &self.txn.tables[self.index];
        view_of(self.txn.pages_view(), Found::open(table))
    }

    fn store_if_full(&mut self) -> Result<()> {
        match self.writer()?.is_full() {
            true => self.store(),
            false => Ok(()),
        }
    }

    /// Stores the entries that are in memory. The commit does so, too; nothing is durable before it.
    ///
    /// # Errors
    /// A full disk; a damaged page.
    pub fn store(&mut self) -> Result<()> {
        match self.writer()?.is_stored() {
            true => Ok(()),
            false => self
                .txn
                .change_buffered(self.at, |writer, tree, pages| writer.store(tree, pages)),
        }
    }

    /// Merges all runs into the rows. A table does this by itself, in steps, while it is written; afterwards a get
    /// takes about 1.2 times as long as in a plain table.
    ///
    /// # Errors
    /// A full disk; a damaged page.
    ///
    /// # Cost
    /// Writes the rows that receive entries.
    pub fn compact(&mut self) -> Result<()> {
        self.txn
            .change_buffered(self.at, |writer, tree, pages| writer.compact(tree, pages))
    }

    /// Removes all entries.
    ///
    /// # Errors
    /// A full disk; a damaged page.
    pub fn clear(&mut self) -> Result<()> {
        self.txn
            .change_buffered(self.at, |writer, tree, pages| writer.clear(tree, pages))
    }
}
