//! Changes to a hash table in a write transaction.

use crate::catalog::table_name::Named;
use crate::hash::read::{HashTable, value_in};
use crate::tables::codec::{AsArg, TableKey, TableValue, not_encoded};
use crate::tables::open_write::Found;
use crate::txn::pages::Pages;
use crate::txn::write::WriteTxn;
use crate::types::error::Result;
use std::borrow::Cow;
use std::marker::PhantomData;
use tidalite_index::{Buffered, HashOptions, HashWriter};
use tidalite_pager::{Error as FileError, Refusal};

/// A hash table in a write transaction, for changes. Keys are of type `K`, values of type `V`.
///
/// Records are collected in memory and stored in batches, at the latest by the commit. `get` and `contains` also search
/// the records in memory; [`view`](Self::view) stores them first.
pub struct HashTableMut<'t, K: ?Sized = [u8], V: ?Sized = [u8]> {
    txn: &'t mut WriteTxn,
    /// Indexes among the open tables and the open hash tables of the transaction.
    index: usize,
    at: usize,
    types: PhantomData<fn(&K, &V)>,
}

impl<'t, K: TableKey + ?Sized, V: TableValue + ?Sized> HashTableMut<'t, K, V> {
    pub(crate) fn new(txn: &'t mut WriteTxn, index: usize, at: usize) -> Self {
        Self {
            txn,
            index,
            at,
            types: PhantomData,
        }
    }

    fn writer(&self) -> Result<&HashWriter> {
        self.txn.check_usable()?;
        Ok(&self.txn.hashes[self.at].writer)
    }

    fn writer_mut(&mut self) -> Result<&mut HashWriter> {
        self.txn.check_usable()?;
        Ok(&mut self.txn.hashes[self.at].writer)
    }

    /// The options with which the table was created.
    #[must_use]
    pub fn options(&self) -> HashOptions {
        *self.txn.hashes[self.at].writer.options()
    }

    fn code<'v>(&self, value: &'v V::Borrowed) -> Result<Cow<'v, [u8]>> {
        let table = self.txn.table_name(self.index);
        V::value_code(value).map_err(|source| not_encoded::<V>(table, source))
    }

    /// Sets a key to a value and returns the number of the new record. The value replaces an existing value of the key;
    /// in a table with duplicates it is added to the existing ones.
    ///
    /// # Errors
    /// [`Limit`](crate::ErrorKind::Limit) for a key that is longer than the table allows, or a value of more than 1
    /// GiB; `InvalidInput` for a key that is no text in a table that ignores case. After these errors nothing has
    /// changed. A full disk; a damaged page.
    ///
    /// # Cost
    /// Independent of the size of the table until the records are stored.
    pub fn set(&mut self, key: &K, value: &V::Borrowed) -> Result<u64> {
        let (key, value) = (key.key_code(), self.code(value)?);
        let number = self.writer_mut()?.set(&key, &value)?;
        self.store_if_full()?;
        Ok(number)
    }

    /// Sets many keys, in order.
    ///
    /// # Errors
    /// As for `set`; the pairs before the failing one are set.
    pub fn extend<A, B>(&mut self, pairs: impl IntoIterator<Item = (A, B)>) -> Result<()>
    where
        A: AsArg<K>,
        B: AsArg<V::Borrowed>,
    {
        for (key, value) in pairs {
            self.set(key.as_arg(), value.as_arg())?;
        }
        Ok(())
    }

    /// Sets a key that does not exist; returns the number of the new record, or `None` if the key exists.
    ///
    /// # Errors
    /// As for `set`.
    ///
    /// # Cost
    /// A lookup.
    pub fn insert(&mut self, key: &K, value: &V::Borrowed) -> Result<Option<u64>> {
        match self.contains(key)? {
            true => Ok(None),
            false => self.set(key, value).map(Some),
        }
    }

    /// The value of a key, as this transaction sees it; `None` if the key does not exist.
    ///
    /// # Errors
    /// As for [`HashTable::get`].
    pub fn get(&self, key: &K) -> Result<Option<V::Owned>> {
        let (writer, code) = (self.writer()?, key.key_code());
        match writer.buffered(&code)? {
            Buffered::Record(number) => match writer.buffered_record(number)? {
                Some(record) => {
                    let named = Named::Lent(self.txn.table_name(self.index));
                    value_in::<V>(&named, &record)
                }
                None => Ok(None),
            },
            Buffered::Removed => Ok(None),
            Buffered::Stored(removed) => self.stored_view()?.get_but(&code, removed),
        }
    }

    /// Whether a key exists, as this transaction sees it.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// A descent of the index. If the index holds hashes, a record is read to compare its key.
    pub fn contains(&self, key: &K) -> Result<bool> {
        let code = key.key_code();
        match self.writer()?.buffered(&code)? {
            Buffered::Record(_) => Ok(true),
            Buffered::Removed => Ok(false),
            Buffered::Stored(removed) => {
                let reader = &self.stored_view()?.reader;
                Ok(match removed.is_empty() {
                    true => reader.contains(&code)?,
                    false => reader.newest_but(&code, removed)?.is_some(),
                })
            }
        }
    }

    /// Removes a key with all its records; returns whether it existed. If the key does not exist, nothing is written.
    ///
    /// # Errors
    /// As for `set`.
    ///
    /// # Cost
    /// A lookup.
    pub fn remove(&mut self, key: &K) -> Result<bool> {
        let there = self.contains(key)?;
        if there {
            self.writer_mut()?.remove(&key.key_code())?;
            self.store_if_full()?;
        }
        Ok(there)
    }

    /// Removes one record of a key in a table with duplicates; returns whether the key had it.
    ///
    /// # Errors
    /// As for `set`; `WrongType` in a table without duplicates.
    ///
    /// # Cost
    /// A lookup of the key's records, which is skipped if the previous call removed a record of the same key.
    pub fn remove_record(&mut self, key: &K, record: u64) -> Result<bool> {
        if !self.writer()?.options().duplicates {
            return Err(FileError::refused(
                Refusal::WrongType,
                "one record of a key to be removed from a table without duplicates",
                "`remove`, which removes the key",
            )
            .into());
        }
        let code = key.key_code();
        let txn = &mut *self.txn;
        let writer = &mut txn.hashes[self.at].writer;
        let pages = Pages::Writer(&txn.pages);
        let there = writer.has_record(&txn.tables[self.index].tree, pages, &code, record)?;
        if there {
            writer.remove_record(&code, record)?;
            self.store_if_full()?;
        }
        Ok(there)
    }

    /// A view of the table in its current state, for reading. Stores the records that are in memory.
    ///
    /// # Errors
    /// A full disk; a damaged page.
    pub fn view(&mut self) -> Result<HashTable<'_, K, V>> {
        self.store()?;
        self.stored_view()
    }

    fn stored_view(&self) -> Result<HashTable<'_, K, V>> {
        let table = &self.txn.tables[self.index];
        let reader = self.writer()?.reader(&table.tree, self.txn.pages_view())?;
        Ok(HashTable::new(reader, Found::open(table).named))
    }

    fn store_if_full(&mut self) -> Result<()> {
        match self.writer()?.is_full() {
            true => self.store(),
            false => Ok(()),
        }
    }

    /// Stores the records that are in memory. The commit does so, too; nothing is durable before it.
    ///
    /// # Errors
    /// A full disk; a damaged page.
    pub fn store(&mut self) -> Result<()> {
        match self.writer()?.is_stored() {
            true => Ok(()),
            false => self
                .txn
                .change_hash(self.at, |writer, tree, pages| writer.store(tree, pages)),
        }
    }

    /// Merges all runs into the index, and frees the space of records that were replaced or removed and that the
    /// history does not keep. A table does this by itself, in steps, while it is written; afterwards lookups and counts
    /// are fastest.
    ///
    /// # Errors
    /// A full disk; a damaged page.
    ///
    /// # Cost
    /// Reads and writes the index once.
    pub fn compact(&mut self) -> Result<()> {
        self.txn
            .change_hash(self.at, |writer, tree, pages| writer.compact(tree, pages))
    }

    /// Deletes the index and rebuilds it from the records.
    ///
    /// # Errors
    /// A full disk; a damaged page, or a record that a table with these options cannot have.
    ///
    /// # Cost
    /// Reads all records and writes the index.
    pub fn rebuild(&mut self) -> Result<()> {
        self.txn
            .change_hash(self.at, |writer, tree, pages| writer.rebuild(tree, pages))
    }

    /// Removes all keys and records. New records do not reuse the old numbers.
    ///
    /// # Errors
    /// A full disk; a damaged page.
    pub fn clear(&mut self) -> Result<()> {
        self.txn
            .change_hash(self.at, |writer, tree, pages| writer.clear(tree, pages))
    }
}
