//! Changes to an ordered table in a write transaction.

use crate::catalog::table_name::Named;
use crate::tables::codec::{
    AsArg, CodedKey, CodedValue, TableKey, TableValue, not_encoded, value_of,
};
use crate::tables::key_range::{KeyRange, lent};
use crate::tables::table::Table;
use crate::txn::write::WriteTxn;
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::Bound;
use tidalite_kv::{MissingTable, PutRow, TableWriter};

/// A table in a write transaction, for changes; or, with a path of keys, the table nested at that path. Keys are of
/// type `K`, values of type `V`; both are plain bytes by default.
///
/// # Cost
/// The costs of the methods are those in a table that is not nested. A descent reads one page per level, and a page is
/// copied when the transaction first changes it. In a nested table each call adds a descent for each key of the path,
/// which finds the table, and a change adds another, which rewrites the table's row. A small nested table is stored in
/// that row, and is read and written as a whole.
pub struct TableMut<'t, K: ?Sized = [u8], V: ?Sized = [u8]> {
    txn: &'t mut WriteTxn,
    index: usize,
    path: Vec<Vec<u8>>,
    types: PhantomData<fn(&K, &V)>,
}

impl<'t> TableMut<'t> {
    /// This table with other types of keys and values, whatever was stored in it. Bytes of another type are an error
    /// (`WrongType`) only if they do not decode. Use this for nested tables, and for tables of programs that store
    /// bytes.
    #[must_use]
    pub fn typed<K: TableKey + ?Sized, V: TableValue + ?Sized>(self) -> TableMut<'t, K, V> {
        TableMut::of(self.txn, self.index, self.path)
    }

    /// The table nested under a key. The nested table is created, with its missing parents, by the first entry put into
    /// it, by [`make`](Self::make) and by [`take_sequence`](Self::take_sequence); a call that is refused, or stores
    /// nothing, does not create it. Reads nothing.
    #[must_use]
    pub fn nested(&mut self, key: &[u8]) -> TableMut<'_> {
        let mut path = self.path.clone();
        path.push(key.to_vec());
        TableMut::of(self.txn, self.index, path)
    }

    /// The table at the end of a path of keys that starts in this table. Reads nothing.
    #[must_use]
    pub fn nested_at<K: AsRef<[u8]>>(&mut self, keys: &[K]) -> TableMut<'_> {
        let mut path = self.path.clone();
        path.extend(keys.iter().map(|key| key.as_ref().to_vec()));
        TableMut::of(self.txn, self.index, path)
    }
}

impl<'t, K: ?Sized, V: ?Sized> TableMut<'t, K, V> {
    pub(crate) fn new(txn: &'t mut WriteTxn, index: usize) -> Self {
        Self::of(txn, index, Vec::new())
    }

    pub(crate) fn of(txn: &'t mut WriteTxn, index: usize, path: Vec<Vec<u8>>) -> Self {
        Self {
            txn,
            index,
            path,
            types: PhantomData,
        }
    }

    /// Index of this table among the open tables of the transaction.
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// This table with keys and values as plain bytes.
    pub fn bytes(&mut self) -> TableMut<'_> {
        TableMut::of(self.txn, self.index, self.path.clone())
    }

    /// Applies `change` to the table; `missing` says whether a missing nested table is created for this. Returns `None`
    /// if the table is missing and is not to be created.
    fn change<T>(
        &mut self,
        missing: MissingTable,
        change: &mut dyn FnMut(
            &mut tidalite_pager::WriteTxn,
            &mut TableWriter,
        ) -> tidalite_pager::Result<T>,
    ) -> Result<Option<T>> {
        let path = &self.path;
        self.txn.change_table(self.index, |tree, pages| {
            let mut work = TableWriter::of(*tree);
            let done = work.at(pages, path, missing, change);
            if let Some(changed) = work.tree() {
                *tree = *changed;
            }
            done
        })
    }

    /// A view of the table in its current state, for reading; `None` for a nested table that does not exist.
    ///
    /// # Errors
    /// [`WrongType`](crate::ErrorKind::WrongType) if a key on the path holds a value;
    /// [`Broken`](crate::ErrorKind::Broken); a damaged page.
    ///
    /// # Cost
    /// A descent for each key of the path.
    pub fn try_view(&self) -> Result<Option<Table<'_, K, V>>> {
        let there = self.txn.opened_view(self.index)?.nested_at(&self.path)?;
        Ok(there.map(|table| Table::of(table.pages, table.sub, table.named)))
    }

    /// A view of the table in its current state, for reading. A nested table that does not exist gives an empty view
    /// (`try_view` returns `None` for it).
    ///
    /// # Errors
    /// As for `try_view`.
    ///
    /// # Cost
    /// As for `try_view`.
    pub fn view(&self) -> Result<Table<'_, K, V>> {
        match self.try_view()? {
            Some(table) => Ok(table),
            None => {
                let table = self.txn.opened_view(self.index)?.emptied();
                Ok(Table::of(table.pages, table.sub, table.named))
            }
        }
    }
}

impl<K: TableKey + ?Sized, V: TableValue + ?Sized> TableMut<'_, K, V> {
    /// Stores a value under a key, whether or not the key exists; returns true if the key is new.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// use tidalite::ErrorKind;
    /// let mut tx = db.begin_write()?;
    /// let mut table = tx.table("t")?;
    /// assert!(table.put(b"a", b"1")? && !table.put(b"a", b"2")?);
    /// // A put does not overwrite a nested table: it must be removed explicitly.
    /// table.nested(b"b").put(b"in", b"3")?;
    /// let refused = table.put(b"b", b"4").map_err(|error| error.kind());
    /// assert_eq!(refused, Err(ErrorKind::WrongType));
    /// assert!(table.remove(b"b")? && table.put(b"b", b"4")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Limit`](crate::ErrorKind::Limit) for a key longer than 16 MiB or a value longer than 4 GiB;
    /// [`WrongType`](crate::ErrorKind::WrongType) if the key holds a nested table, or if a key on the path of a nested
    /// table holds a value. After these errors nothing has changed. A full disk; a damaged page.
    ///
    /// # Cost
    /// One descent; none for keys that ascend after the last key of the table, from the third consecutive put on (not
    /// in a nested table).
    pub fn put(&mut self, key: &K, value: &V::Borrowed) -> Result<bool> {
        let (key, value) = (&key.key_code(), &self.encoded(value)?);
        if self.path.is_empty() {
            let was = self
                .txn
                .change_table_with_cursor(self.index, |tree, append_cursor, pages| {
                    tree.insert_hinted(pages, append_cursor, key, value)
                })?;
            return Ok(!was);
        }
        let was = self.change(MissingTable::CreateToFill, &mut |pages, table| {
            table.insert(pages, key, value)
        })?;
        Ok(was == Some(false))
    }

    /// Creates this table, empty, if it is a nested table that does not exist yet.
    ///
    /// # Errors
    /// As for `put`.
    pub fn make(&mut self) -> Result<()> {
        self.change(MissingTable::Create, &mut |_, _| Ok(()))?;
        Ok(())
    }

    /// Stores a value under a key that does not exist yet; returns whether it was stored. A key with a nested table
    /// counts as existing.
    ///
    /// # Errors
    /// As for `put`.
    ///
    /// # Cost
    /// One descent, two if the pair is stored.
    pub fn insert(&mut self, key: &K, value: &V::Borrowed) -> Result<bool> {
        let (key, value) = (&key.key_code(), &self.encoded(value)?);
        let done = self.change(MissingTable::CreateToFill, &mut |pages, table| {
            Ok(!table.contains(pages, key)? && !table.insert(pages, key, value)?)
        })?;
        Ok(done == Some(true))
    }

    /// Stores a value under an existing key; returns whether it was stored.
    ///
    /// # Errors
    /// As for `put`.
    ///
    /// # Cost
    /// As for `insert`.
    pub fn update(&mut self, key: &K, value: &V::Borrowed) -> Result<bool> {
        let (key, value) = (&key.key_code(), &self.encoded(value)?);
        let done = self.change(MissingTable::Ignore, &mut |pages, table| {
            Ok(table.contains(pages, key)? && table.insert(pages, key, value)?)
        })?;
        Ok(done == Some(true))
    }

    /// Stores a value under a key, whether or not the key exists, and returns the value that it replaces.
    ///
    /// # Errors
    /// As for `put`.
    ///
    /// # Cost
    /// Two descents; the old value is read.
    pub fn replace(&mut self, key: &K, value: &V::Borrowed) -> Result<Option<V::Owned>> {
        self.replace_code(&key.key_code(), value)
    }

    pub(crate) fn replace_code(
        &mut self,
        key: &[u8],
        value: &V::Borrowed,
    ) -> Result<Option<V::Owned>> {
        let value = &self.encoded(value)?;
        let old = self.change(MissingTable::CreateToFill, &mut |pages, table| {
            let old = table.get(pages, key)?;
            table.insert(pages, key, value)?;
            Ok(old)
        })?;
        old.flatten().map(|old| self.owned(old)).transpose()
    }

    #[inline(always)]
    fn encoded<'v>(&self, value: &'v V::Borrowed) -> Result<Cow<'v, [u8]>> {
        V::value_code(value)
            .map_err(|source| not_encoded::<V>(self.txn.table_name(self.index), source))
    }

    fn owned(&self, bytes: Vec<u8>) -> Result<V::Owned> {
        value_of::<V>(&Named::Lent(self.txn.table_name(self.index)), bytes.into())
    }

    /// Removes a key and returns its value.
    ///
    /// # Errors
    /// As for `remove`; `WrongType` for a nested table.
    ///
    /// # Cost
    /// One descent; two if the key exists. The value is read.
    pub fn take(&mut self, key: &K) -> Result<Option<V::Owned>> {
        let key = &key.key_code();
        self.txn.pages.free_space();
        let old = self.change(MissingTable::Ignore, &mut |pages, table| {
            let old = table.get(pages, key)?;
            if old.is_some() {
                table.remove(pages, key)?;
            }
            Ok(old)
        })?;
        old.flatten().map(|old| self.owned(old)).transpose()
    }

    /// Sets the value of a key to `new` if the present value is `expected`; `None` stands for no value. Returns whether
    /// the present value was `expected`.
    ///
    /// # Errors
    /// As for `put`.
    ///
    /// # Cost
    /// One descent; two if the value was `expected`. The value is read.
    pub fn compare_and_set(
        &mut self,
        key: &K,
        expected: Option<&V::Borrowed>,
        new: Option<&V::Borrowed>,
    ) -> Result<bool> {
        let key = &key.key_code();
        let expected = expected.map(|value| self.encoded(value)).transpose()?;
        let new = new.map(|value| self.encoded(value)).transpose()?;
        let (expected, new) = (expected.as_deref(), new.as_deref());
        let missing = match expected.is_none() && new.is_some() {
            true => MissingTable::CreateToFill,
            false => MissingTable::Ignore,
        };
        if new.is_none() {
            self.txn.pages.free_space();
        }
        let done = self.change(missing, &mut |pages, table| {
            if table.get(pages, key)?.as_deref() != expected {
                return Ok(false);
            }
            match new {
                Some(new) => table.insert(pages, key, new)?,
                None => table.remove(pages, key)?,
            };
            Ok(true)
        })?;
        Ok(done.unwrap_or(expected.is_none()))
    }

    /// Removes a key if its value is `expected`; returns whether the key was removed.
    ///
    /// # Errors
    /// As for `remove`.
    pub fn remove_if(&mut self, key: &K, expected: &V::Borrowed) -> Result<bool> {
        self.compare_and_set(key, Some(expected), None)
    }

    /// Stores many entries; returns the number of keys that are new. Ascending keys above the last one fill pages
    /// completely and cost one descent per page.
    ///
    /// # Errors
    /// As for `put`. After a `Limit`, or a value that cannot be encoded, the entries before the refused one are stored,
    /// and the transaction continues.
    pub fn extend<A, B>(&mut self, pairs: impl IntoIterator<Item = (A, B)>) -> Result<u64>
    where
        A: AsArg<K>,
        B: AsArg<V::Borrowed>,
    {
        let mut failed = None;
        let pairs = pairs.into_iter().map_while(|(key, value)| {
            let Ok(key) = CodedKey::<K, A>::of(key);
            match CodedValue::<V, B>::of(value) {
                Ok(value) => Some((key, value)),
                Err(error) => {
                    failed = Some(error);
                    None
                }
            }
        });
        let new = if self.path.is_empty() {
            self.txn
                .change_table(self.index, |tree, pages| tree.append(pages, pairs))?
        } else {
            let mut pairs = Some(pairs);
            let new = self.change(MissingTable::CreateToFill, &mut |pages, table| match pairs
                .take()
            {
                Some(pairs) => table.extend(pages, pairs),
                None => Ok(0),
            })?;
            new.unwrap_or(0)
        };
        match failed {
            None => Ok(new),
            Some(error) => Err(not_encoded::<V>(self.txn.table_name(self.index), error)),
        }
    }

    /// Stores many entries like `extend`; `feed` passes each entry by reference to its callback.
    pub(crate) fn extend_lent(
        &mut self,
        feed: impl FnOnce(&mut PutRow<'_>) -> tidalite_pager::Result<()>,
    ) -> Result<()> {
        if self.path.is_empty() {
            self.txn
                .change_table(self.index, |tree, pages| tree.append_lent(pages, feed))?;
            return Ok(());
        }
        let mut feed = Some(feed);
        self.change(
            MissingTable::CreateToFill,
            &mut |pages, table| match feed.take() {
                Some(feed) => table.extend_lent(pages, feed),
                None => Ok(()),
            },
        )?;
        Ok(())
    }

    /// Appends an entry, whose key must be greater than all keys in the table.
    ///
    /// # Errors
    /// `OutOfOrder` if the key is not greater than the last one, and then nothing has changed; otherwise as for `put`.
    ///
    /// # Cost
    /// Two descents; none from the third consecutive append on (not in a nested table).
    pub fn append(&mut self, key: &K, value: &V::Borrowed) -> Result<()> {
        let (key, value) = (&key.key_code(), &self.encoded(value)?);
        let done = if self.path.is_empty() {
            self.txn
                .change_table_with_cursor(self.index, |tree, append_cursor, pages| {
                    tree.append_hinted(pages, append_cursor, key, value)
                })?
        } else {
            self.change(MissingTable::CreateToFill, &mut |pages, table| {
                table.append(pages, key, value)
            })? == Some(true)
        };
        if done {
            return Ok(());
        }
        let table = self.txn.table_name(self.index).to_owned();
        Err(Error::from(Cause::OutOfOrder { table }))
    }

    /// Removes a key, and a nested table under it with all its content; returns whether the key existed.
    ///
    /// # Errors
    /// A full disk; a damaged page.
    ///
    /// # Cost
    /// One descent; for a nested table also the cost of [`clear`](Self::clear) for that table.
    pub fn remove(&mut self, key: &K) -> Result<bool> {
        self.remove_code(&key.key_code())
    }

    pub(crate) fn remove_code(&mut self, key: &[u8]) -> Result<bool> {
        self.txn.pages.free_space();
        if self.path.is_empty() {
            return self
                .txn
                .change_table(self.index, |tree, pages| tree.remove(pages, key));
        }
        let was = self.change(MissingTable::Ignore, &mut |pages, table| {
            table.remove(pages, key)
        })?;
        Ok(was == Some(true))
    }

    /// Removes the entries whose keys lie in a range, by cutting off branches; returns the number of entries removed.
    /// Cost: two descents. The pages in between are freed, most of them without being read.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let mut table = tx.table("t")?;
    /// table.extend([("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")])?;
    /// assert_eq!(table.remove_range("b".."d")?, 2);
    /// assert_eq!(table.remove_range(..)?, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for `remove`.
    pub fn remove_range(&mut self, range: impl KeyRange<K>) -> Result<u64> {
        self.txn.pages.free_space();
        let (from, to) = range.bounds();
        // The least key above a given key is that key with a zero byte appended.
        let after = |key: &[u8]| [key, &[0]].concat();
        let from = match lent(&from) {
            Bound::Unbounded => Vec::new(),
            Bound::Included(key) => key.to_vec(),
            Bound::Excluded(key) => after(key),
        };
        let to = match lent(&to) {
            Bound::Unbounded => None,
            Bound::Excluded(key) => Some(key.to_vec()),
            Bound::Included(key) => Some(after(key)),
        };
        let removed = self.change(MissingTable::Ignore, &mut |pages, table| {
            table.remove_between(pages, &from, to.as_deref())
        })?;
        Ok(removed.unwrap_or(0))
    }

    /// Removes all entries of the table.
    ///
    /// # Errors
    /// A damaged page.
    ///
    /// # Cost
    /// Reads the branches of the table; also reads the leaves if some rows may lead to other pages.
    pub fn clear(&mut self) -> Result<()> {
        self.txn.pages.free_space();
        self.change(MissingTable::Ignore, &mut |pages, table| table.clear(pages))?;
        Ok(())
    }

    /// Takes `count` numbers from the table's sequence and returns the first of them. The numbers are used up only if
    /// the transaction commits. A nested table has its own sequence, which ends with the table; taking numbers creates
    /// a missing nested table.
    ///
    /// # Errors
    /// `Limit` if all 2^64 numbers are used up.
    pub fn take_sequence(&mut self, count: u64) -> Result<u64> {
        let taken = self.change(MissingTable::CreateToFill, &mut |_, table| {
            Ok(table.take_sequence(count))
        })?;
        taken.flatten().ok_or(Error::from(Cause::Limit {
            what: "numbers of a table's sequence",
            found: u64::MAX,
            limit: u64::MAX,
        }))
    }

    /// Whether this transaction has already changed the page that contains this key or would contain it. For a small
    /// nested table this is a page of its parent.
    ///
    /// # Errors
    /// A damaged or unreadable page; [`WrongType`](crate::ErrorKind::WrongType) if a key on the path holds a value.
    pub fn is_dirty(&self, key: &K) -> Result<bool> {
        let (tree, pages) = self.txn.table_tree(self.index)?;
        Ok(tree.is_dirty_at(pages, &self.path, &key.key_code())?)
    }

    /// The value of a key, including changes of this transaction.
    ///
    /// # Errors
    /// As for `try_view`; for a nested table, as for [`Table::get`].
    ///
    /// # Cost
    /// A descent, and one for each key of the path.
    pub fn get(&self, key: &K) -> Result<Option<V::Owned>> {
        match self.try_view()? {
            Some(table) => table.get(key),
            None => Ok(None),
        }
    }
}

impl<K: TableKey + ?Sized> TableMut<'_, K> {
    /// Stores a value of `len` bytes under a key. The value begins as zeros, and `fill` writes it. Returns true if the
    /// key is new.
    ///
    /// `fill` gets a memory buffer, which is then stored. A panic of `fill` breaks the transaction.
    ///
    /// # Errors
    /// As for `put`.
    ///
    /// # Cost
    /// As for `put`.
    pub fn reserve(&mut self, key: &K, len: usize, fill: impl FnOnce(&mut [u8])) -> Result<bool> {
        let key = &key.key_code();
        let mut fill = Some(fill);
        let was = self.change(
            MissingTable::CreateToFill,
            &mut |pages, table| match fill.take() {
                Some(fill) => table.insert_with(pages, key, len, fill),
                None => Ok(true),
            },
        )?;
        Ok(was == Some(false))
    }
}
