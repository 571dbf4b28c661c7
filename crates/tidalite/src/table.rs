//! Ordered tables as a user sees them: byte keys to byte values, in key order.

use crate::error::Result;
use crate::pages::Pages;
use crate::write::WriteTxn;
use tidalite_kv::{Cursor, Piece, Tree, Value};

/// A table of a snapshot, or of a write transaction as it stands.
#[derive(Clone)]
pub struct Table<'a> {
    pages: Pages<'a>,
    tree: Tree,
}

impl<'a> Table<'a> {
    pub(crate) fn new(pages: Pages<'a>, tree: Tree) -> Self {
        Self { pages, tree }
    }

    /// The value of a key. Cost: one page per level.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self
            .tree
            .get(&self.pages, key)?
            .map(|value| value.to_vec())
            .transpose()?)
    }

    /// The value of a key without copying it: lent by the table while it lies in its leaf. Cost: as `get`.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    #[inline]
    pub fn get_ref(&self, key: &[u8]) -> Result<Option<Lent<'_>>> {
        match self.tree.get(&self.pages, key)? {
            Some(value) => Ok(Some(Lent::of(value)?)),
            None => Ok(None),
        }
    }

    /// Entries of the table, without reading any.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.tree.len()
    }

    /// A cursor over the pairs, both ways.
    #[must_use]
    pub fn cursor(&self) -> TableCursor<'_> {
        TableCursor {
            inner: self.tree.cursor(&self.pages),
        }
    }

    /// Calls `f` with every pair in key order.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn for_each(&self, mut f: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let mut cursor = self.cursor();
        let mut found = cursor.first()?;
        while found {
            match cursor.inner.value_slice() {
                Some(value) => f(cursor.key(), value),
                None => f(cursor.key(), &cursor.value()?),
            }
            found = cursor.next()?;
        }
        Ok(())
    }
}

/// A value, lent from its leaf, or read into memory because it lies in pieces.
#[derive(Clone, Debug)]
pub struct Lent<'a>(Held<'a>);

#[derive(Clone, Debug)]
enum Held<'a> {
    Leaf(Piece<'a>),
    Memory(Vec<u8>),
}

impl<'a> Lent<'a> {
    #[inline]
    fn of(value: Value<'a>) -> Result<Self> {
        Ok(Self(match value.into_piece() {
            Ok(piece) => Held::Leaf(piece),
            Err(value) => Held::Memory(value.to_vec()?),
        }))
    }
}

impl std::ops::Deref for Lent<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Held::Leaf(piece) => piece,
            Held::Memory(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for Lent<'_> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// Steps through a table. Each move tells whether there is an entry at the new place.
pub struct TableCursor<'a> {
    inner: Cursor<'a, Pages<'a>>,
}

impl TableCursor<'_> {
    /// To the first entry.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn first(&mut self) -> Result<bool> {
        Ok(self.inner.first()?)
    }

    /// To the last entry.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn last(&mut self) -> Result<bool> {
        Ok(self.inner.last()?)
    }

    /// To the first entry at or above `key` (ceiling).
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn seek_ge(&mut self, key: &[u8]) -> Result<bool> {
        Ok(self.inner.seek_ge(key)?)
    }

    /// To the last entry at or below `key` (floor).
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn seek_le(&mut self, key: &[u8]) -> Result<bool> {
        Ok(self.inner.seek_le(key)?)
    }

    /// To the next entry.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    #[expect(
        clippy::should_implement_trait,
        reason = "a fallible step, not an iterator"
    )]
    pub fn next(&mut self) -> Result<bool> {
        Ok(self.inner.next()?)
    }

    /// To the previous entry.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn previous(&mut self) -> Result<bool> {
        Ok(self.inner.previous()?)
    }

    /// The key here.
    ///
    /// # Panics
    /// When the last move found no entry.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.inner.key()
    }

    /// The value here, where it lies in its leaf; `None` for one that lies in pieces (then `value`).
    ///
    /// # Panics
    /// When the last move found no entry.
    #[must_use]
    #[inline]
    pub fn value_ref(&self) -> Option<&[u8]> {
        self.inner.value_slice()
    }

    /// The value here.
    ///
    /// # Errors
    /// A damaged or unreadable large value.
    ///
    /// # Panics
    /// When the last move found no entry.
    pub fn value(&self) -> Result<Vec<u8>> {
        Ok(self.inner.value()?.to_vec()?)
    }
}

/// A table of a write transaction, for changing.
pub struct TableMut<'t> {
    txn: &'t mut WriteTxn,
    index: usize,
}

impl<'t> TableMut<'t> {
    pub(crate) fn new(txn: &'t mut WriteTxn, index: usize) -> Self {
        Self { txn, index }
    }

    /// Stores a pair; returns whether the key was there.
    ///
    /// # Errors
    /// A key beyond a third of a page or a value beyond 4 GiB (`Limit`); a full disk; a damaged page.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.txn
            .change_table(self.index, |tree, pages| tree.insert(pages, key, value))
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
        self.txn
            .change_table(self.index, |tree, pages| tree.append(pages, pairs))
    }

    /// Removes a key; returns whether it was there.
    ///
    /// # Errors
    /// A full disk; a damaged page.
    pub fn remove(&mut self, key: &[u8]) -> Result<bool> {
        self.txn.pages.free_space();
        self.txn
            .change_table(self.index, |tree, pages| tree.remove(pages, key))
    }

    /// Removes everything.
    ///
    /// # Errors
    /// A damaged page.
    pub fn clear(&mut self) -> Result<()> {
        self.txn.pages.free_space();
        self.txn
            .change_table(self.index, |tree, pages| tree.clear(pages))
    }

    /// The table as it stands in this transaction, for reading.
    #[must_use]
    pub fn view(&self) -> Table<'_> {
        self.txn.table_view(self.index)
    }

    /// The value of a key, own writes included.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.view().get(key)
    }
}
