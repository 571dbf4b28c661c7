//! An ordered table in a write transaction: every way to change it.

use crate::tables::key_range::KeyRange;
use crate::tables::table::Table;
use crate::txn::write::WriteTxn;
use crate::types::error::{Error, Result};
use std::ops::Bound;
use tidalite_kv::{Absent, PutRow, Work};

/// A table of a write transaction, for changing; with a path, the table that is nested there.
///
/// # Cost
/// What a method does in the table stands there; a descent is a page a level, which is copied when the transaction changes something in it for the
/// first time. In a nested table each call costs one more for each key of the path, which looks for the table, and a change another, which
/// stores its row anew. A small nested table lies in that row, and is read and written whole.
pub struct TableMut<'t> {
    txn: &'t mut WriteTxn,
    index: usize,
    path: Vec<Vec<u8>>,
}

impl<'t> TableMut<'t> {
    pub(crate) fn new(txn: &'t mut WriteTxn, index: usize) -> Self {
        Self {
            txn,
            index,
            path: Vec::new(),
        }
    }

    /// The table nested under a key. It is made by the first entry that is put into it, with the tables on the way, and by
    /// [`make`](Self::make) and [`take_sequence`](Self::take_sequence); a call that is refused, or has nothing to store, makes none. Reads nothing.
    #[must_use]
    pub fn nested(&mut self, key: &[u8]) -> TableMut<'_> {
        let mut path = self.path.clone();
        path.push(key.to_vec());
        TableMut {
            txn: self.txn,
            index: self.index,
            path,
        }
    }

    /// The table at the end of a path of keys, from here.
    #[must_use]
    pub fn nested_at<K: AsRef<[u8]>>(&mut self, keys: &[K]) -> TableMut<'_> {
        let mut path = self.path.clone();
        path.extend(keys.iter().map(|key| key.as_ref().to_vec()));
        TableMut {
            txn: self.txn,
            index: self.index,
            path,
        }
    }

    /// Changes the table; `None` when it is nested, not there and not to be made.
    fn change<T>(
        &mut self,
        absent: Absent,
        change: &mut dyn FnMut(
            &mut tidalite_pager::WriteTxn,
            &mut Work,
        ) -> tidalite_pager::Result<T>,
    ) -> Result<Option<T>> {
        let path = &self.path;
        self.txn.change_table(self.index, |tree, pages| {
            let mut work = Work::of(*tree);
            let done = work.at(pages, path, absent, change);
            if let Some(changed) = work.tree() {
                *tree = *changed;
            }
            done
        })
    }

    /// Stores a pair, whether the key is there or not; returns true when it is new.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::MemoryStorage::new()))?;
    /// use tidalite::Error;
    /// let mut tx = db.begin_write()?;
    /// let mut table = tx.table("t")?;
    /// assert!(table.put(b"a", b"1")? && !table.put(b"a", b"2")?);
    /// // A nested table is not lost by a put: it is removed by one who means it.
    /// table.nested(b"b").put(b"in", b"3")?;
    /// assert!(matches!(table.put(b"b", b"4"), Err(Error::IsTable { .. })));
    /// assert!(table.remove(b"b")? && table.put(b"b", b"4")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A key beyond 16 MiB or a value beyond 4 GiB (`Limit`); `IsTable` when the key holds a nested table; `Store` with `Unsupported` where a
    /// key on the way to a nested table holds a value: nothing has changed then. A full disk; a damaged page.
    ///
    /// # Cost
    /// One descent; none for keys that ascend behind the last one, put one after the other from the third on (not in a nested table).
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        if self.path.is_empty() {
            let was = self
                .txn
                .change_table_near_end(self.index, |tree, ending, pages| {
                    tree.insert_near_end(pages, ending, key, value)
                })?;
            return Ok(!was);
        }
        let was = self.change(Absent::MakeToFill, &mut |pages, table| {
            table.insert(pages, key, value)
        })?;
        Ok(was == Some(false))
    }

    /// Makes the table, empty, if it is nested and not there yet.
    ///
    /// # Errors
    /// As for `put`.
    pub fn make(&mut self) -> Result<()> {
        self.change(Absent::Make, &mut |_, _| Ok(()))?;
        Ok(())
    }

    /// Stores a pair if the key is not there; returns whether it did. A nested table is there, too.
    ///
    /// # Errors
    /// As for `put`.
    ///
    /// # Cost
    /// One descent, two if it stores.
    pub fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        let done = self.change(Absent::MakeToFill, &mut |pages, table| {
            Ok(!table.contains(pages, key)? && !table.insert(pages, key, value)?)
        })?;
        Ok(done == Some(true))
    }

    /// Stores a value under a key that is there; returns whether it did.
    ///
    /// # Errors
    /// As for `put`.
    ///
    /// # Cost
    /// As of `insert`.
    pub fn update(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        let done = self.change(Absent::Leave, &mut |pages, table| {
            Ok(table.contains(pages, key)? && table.insert(pages, key, value)?)
        })?;
        Ok(done == Some(true))
    }

    /// Stores a pair and returns the value that it replaces.
    ///
    /// # Errors
    /// As for `put`.
    ///
    /// # Cost
    /// Two descents; the old value is read.
    pub fn replace(&mut self, key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>> {
        let old = self.change(Absent::MakeToFill, &mut |pages, table| {
            let old = table.get(pages, key)?;
            table.insert(pages, key, value)?;
            Ok(old)
        })?;
        Ok(old.flatten())
    }

    /// Removes a key and returns its value.
    ///
    /// # Errors
    /// As for `remove`; `IsTable` for a nested table.
    ///
    /// # Cost
    /// One descent, two if the key is there; its value is read.
    pub fn take(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.txn.pages.free_space();
        let old = self.change(Absent::Leave, &mut |pages, table| {
            let old = table.get(pages, key)?;
            if old.is_some() {
                table.remove(pages, key)?;
            }
            Ok(old)
        })?;
        Ok(old.flatten())
    }

    /// Makes the value of a key `new` if it is `expected` now; `None` stands for no value. Returns whether it was.
    ///
    /// # Errors
    /// As for `put`.
    ///
    /// # Cost
    /// One descent, two if it was; the value is read.
    pub fn compare_and_set(
        &mut self,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool> {
        let absent = match expected.is_none() && new.is_some() {
            true => Absent::MakeToFill,
            false => Absent::Leave,
        };
        if new.is_none() {
            self.txn.pages.free_space();
        }
        let done = self.change(absent, &mut |pages, table| {
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

    /// Removes a key if its value is `expected`; returns whether it did.
    ///
    /// # Errors
    /// As for `remove`.
    pub fn remove_if(&mut self, key: &[u8], expected: &[u8]) -> Result<bool> {
        self.compare_and_set(key, Some(expected), None)
    }

    /// Stores many pairs; ascending keys above the last one fill pages to the brim and cost one
    /// descent a page. Returns how many keys were new.
    ///
    /// # Errors
    /// As for `put`. After a `Limit` the pairs before it are there, and the transaction goes on.
    pub fn extend<K, V>(&mut self, pairs: impl IntoIterator<Item = (K, V)>) -> Result<u64>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        if self.path.is_empty() {
            return self
                .txn
                .change_table(self.index, |tree, pages| tree.append(pages, pairs));
        }
        let mut pairs = Some(pairs);
        let new = self.change(Absent::MakeToFill, &mut |pages, table| match pairs.take() {
            Some(pairs) => table.extend(pages, pairs),
            None => Ok(0),
        })?;
        Ok(new.unwrap_or(0))
    }

    /// As `extend`, of entries that `feed` lends to what it is given.
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
        self.change(Absent::MakeToFill, &mut |pages, table| match feed.take() {
            Some(feed) => table.extend_lent(pages, feed),
            None => Ok(()),
        })?;
        Ok(())
    }

    /// Stores a pair behind all others.
    ///
    /// # Errors
    /// `OutOfOrder` when the key is not above the last one: nothing has changed; else as for `put`.
    ///
    /// # Cost
    /// Two descents; none from the third of several in a row on (not in a nested table).
    pub fn append(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let done = if self.path.is_empty() {
            self.txn
                .change_table_near_end(self.index, |tree, ending, pages| {
                    tree.append_near_end(pages, ending, key, value)
                })?
        } else {
            self.change(Absent::MakeToFill, &mut |pages, table| {
                table.append(pages, key, value)
            })? == Some(true)
        };
        if done {
            return Ok(());
        }
        Err(Error::OutOfOrder {
            table: self.txn.table_name(self.index),
        })
    }

    /// Stores a value of `len` bytes that `fill` writes; they are zeros before. Returns true when the key is new.
    ///
    /// `fill` is given the bytes in the page where the value lies, when it is no longer than a quarter of a page, lies in the leaf beside its key,
    /// and the table has pages of its own. Else it is given memory, which is then stored: for a long value, and in a small nested table.
    /// A panic of `fill` breaks the transaction.
    ///
    /// # Errors
    /// As for `put`.
    ///
    /// # Cost
    /// In the page two descents and a copy of zeros, which is more than `put` costs with bytes that are at hand; else as of `put`.
    pub fn reserve(
        &mut self,
        key: &[u8],
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<bool> {
        let mut fill = Some(fill);
        let was = self.change(Absent::MakeToFill, &mut |pages, table| match fill.take() {
            Some(fill) => table.insert_with(pages, key, len, fill),
            None => Ok(true),
        })?;
        Ok(was == Some(false))
    }

    /// Removes a key, and a nested table under it with all that is in it; returns whether it was there.
    ///
    /// # Errors
    /// A full disk; a damaged page.
    ///
    /// # Cost
    /// One descent; of a nested table what [`clear`](Self::clear) costs there.
    pub fn remove(&mut self, key: &[u8]) -> Result<bool> {
        self.txn.pages.free_space();
        if self.path.is_empty() {
            return self
                .txn
                .change_table(self.index, |tree, pages| tree.remove(pages, key));
        }
        let was = self.change(Absent::Leave, &mut |pages, table| table.remove(pages, key))?;
        Ok(was == Some(true))
    }

    /// Removes a range by cutting branches off; returns how many pairs. Cost: two descents, and the pages in between
    /// are freed, most of them unread.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::MemoryStorage::new()))?;
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
    pub fn remove_range(&mut self, range: impl KeyRange) -> Result<u64> {
        self.txn.pages.free_space();
        // The least key above one ends in a zero byte more.
        let after = |key: &[u8]| [key, &[0]].concat();
        let from = match range.begin() {
            Bound::Unbounded => Vec::new(),
            Bound::Included(key) => key.to_vec(),
            Bound::Excluded(key) => after(key),
        };
        let to = match range.end() {
            Bound::Unbounded => None,
            Bound::Excluded(key) => Some(key.to_vec()),
            Bound::Included(key) => Some(after(key)),
        };
        let removed = self.change(Absent::Leave, &mut |pages, table| match &to {
            Some(to) => table.remove_range(pages, &from, to),
            None => table.remove_from(pages, &from),
        })?;
        Ok(removed.unwrap_or(0))
    }

    /// Removes everything.
    ///
    /// # Errors
    /// A damaged page.
    ///
    /// # Cost
    /// Branches are read; the leaves, too, where some rows may lead to other pages.
    pub fn clear(&mut self) -> Result<()> {
        self.txn.pages.free_space();
        self.change(Absent::Leave, &mut |pages, table| table.clear(pages))?;
        Ok(())
    }

    /// Takes `count` numbers of the table's sequence and returns the first. They are used up when the transaction
    /// commits. A nested table has a sequence of its own, which ends with the table; it is made if it is not there and numbers are taken.
    ///
    /// # Errors
    /// `Limit` when 2^64 numbers are used up.
    pub fn take_sequence(&mut self, count: u64) -> Result<u64> {
        let taken = self.change(Absent::MakeToFill, &mut |_, table| {
            Ok(table.take_sequence(count))
        })?;
        taken.flatten().ok_or(Error::Limit {
            what: "numbers of a table's sequence",
            found: u64::MAX,
            limit: u64::MAX,
        })
    }

    /// Whether the page that holds this key, or would, was changed by this transaction already. A small nested table lies in a page of
    /// the one that it is in.
    ///
    /// # Errors
    /// A damaged or unreadable page; `Store` with `Unsupported` where a key on the way holds a value.
    pub fn is_dirty(&self, key: &[u8]) -> Result<bool> {
        let (tree, pages) = self.txn.table_tree(self.index)?;
        Ok(tree.is_dirty_at(pages, &self.path, key)?)
    }

    /// The table as it stands in this transaction, for reading; `None` for a nested one that is not there.
    ///
    /// # Errors
    /// `Store` with `Unsupported` where a key on the way holds a value; `TransactionBroken`; a damaged page.
    ///
    /// # Cost
    /// A descent for each key of the path.
    pub fn try_view(&self) -> Result<Option<Table<'_>>> {
        self.txn.opened_view(self.index)?.nested_at(&self.path)
    }

    /// The table as it stands in this transaction, for reading. A nested one that is not there is empty (see `try_view`).
    ///
    /// # Errors
    /// As for `try_view`.
    ///
    /// # Cost
    /// As of `try_view`.
    pub fn view(&self) -> Result<Table<'_>> {
        let there = self.try_view()?;
        match there {
            Some(table) => Ok(table),
            None => Ok(self.txn.opened_view(self.index)?.emptied()),
        }
    }

    /// The value of a key, own writes included.
    ///
    /// # Errors
    /// As for `try_view`; where a nested table is, as for [`Table::get`].
    ///
    /// # Cost
    /// A descent, and one for each key of the path.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        match self.try_view()? {
            Some(table) => table.get(key),
            None => Ok(None),
        }
    }
}
