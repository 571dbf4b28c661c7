//! Cursors for reading tables with one value per key.

use crate::catalog::table_name::Named;
use crate::tables::codec::{TableKey, TableValue, key_of, lent_of, value_of};
use crate::tables::lent::Lent;
use crate::tables::table::Table;
use crate::txn::pages::Pages;
use crate::types::error::{Error, Result};
use std::marker::PhantomData;
use std::ops::Bound;
use tidalite_kv::{Cursor, PutRow, Tree, Value};

#[cold]
fn damaged(found: &str) -> Error {
    let expected = "a small nested table";
    tidalite_base::Corrupt::new("nested table", 0, found, expected).into()
}

/// A cursor over the entries of a table. Each move returns whether there is an entry at the new position.
///
/// Steps and borrowed values copy nothing, so this is the fastest walk over a table.
pub struct TableCursor<'a, K: ?Sized = [u8], V: ?Sized = [u8]> {
    inner: Cursor<'a, Pages<'a>>,
    pages: Pages<'a>,
    named: Named<'a>,
    /// Description of the damage of a small nested table; the first move returns it as an error.
    damage: Option<String>,
    types: PhantomData<fn(&K, &V)>,
}

impl<K: ?Sized, V: ?Sized> Clone for TableCursor<'_, K, V> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            pages: self.pages,
            named: self.named.clone(),
            damage: self.damage.clone(),
            types: PhantomData,
        }
    }
}

impl<K: ?Sized, V: ?Sized> Table<'_, K, V> {
    /// Creates a cursor over the entries, which moves in both directions.
    #[must_use]
    pub fn cursor(&self) -> TableCursor<'_, K, V> {
        self.cursor_as()
    }

    /// Creates a cursor that decodes keys and values as the types `L` and `W`.
    pub(crate) fn cursor_as<L: ?Sized, W: ?Sized>(&self) -> TableCursor<'_, L, W> {
        let (inner, damage) = match self.sub.cursor(&self.pages) {
            Ok(inner) => (inner, None),
            Err(error) => (Tree::new(0).cursor(&self.pages), Some(error.to_string())),
        };
        TableCursor {
            inner,
            pages: self.pages,
            named: self.named.clone(),
            damage,
            types: PhantomData,
        }
    }
}

impl Table<'_> {
    /// Calls `f` with the bytes of key and value of every entry in key order. Nothing is copied, except long values.
    ///
    /// # Errors
    /// A damaged or unreadable page; `WrongType` if an entry is a nested table.
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

macro_rules! moves {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $of:ident)?);)*) => {
        impl<K: TableKey + ?Sized, V: TableValue + ?Sized> TableCursor<'_, K, V> {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// A damaged or unreadable page.
                pub fn $name(&mut self $(, $arg: &$of)?) -> Result<bool> {
                    self.check()?;
                    Ok(self.inner.$name($(&$arg.key_code())?)?)
                }
            )*
        }
    };
}

moves! {
    /// Moves to the first entry.
    first();
    /// Moves to the last entry.
    last();
    /// Moves to the previous entry.
    previous();
    /// Moves to the entry with exactly this key. If there is none, moves as `seek_ge` does and returns false.
    seek(key: K);
    /// Moves to the first entry whose key is greater than or equal to `key` (ceiling).
    seek_ge(key: K);
    /// Moves to the first entry whose key is greater than `key`.
    seek_gt(key: K);
    /// Moves to the last entry whose key is less than or equal to `key` (floor).
    seek_le(key: K);
    /// Moves to the last entry whose key is less than `key`.
    seek_lt(key: K);
}

impl<'a, K: TableKey + ?Sized, V: TableValue + ?Sized> TableCursor<'a, K, V> {
    #[inline]
    fn check(&self) -> Result<()> {
        match &self.damage {
            None => Ok(()),
            Some(found) => Err(damaged(found)),
        }
    }

    /// Moves to the entry with this rank: the number of entries before it. Cost: one page per level.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn select(&mut self, rank: u64) -> Result<bool> {
        self.check()?;
        Ok(self.inner.select(rank)?)
    }

    /// Rank of the current entry, the number of entries before it, which `select` takes; `None` if the cursor is at no
    /// entry. Cost: adds up the counts in the pages of the descent path; reads no page.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let mut table = tx.table("t")?;
    /// table.extend((0..10_000u32).map(|key| (key.to_be_bytes(), "value")))?;
    /// let view = table.view()?;
    /// let mut cursor = view.cursor();
    /// assert_eq!(cursor.rank()?, None);
    /// cursor.seek(&7_000u32.to_be_bytes())?;
    /// assert_eq!(cursor.rank()?, Some(7_000));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A damaged page.
    pub fn rank(&self) -> Result<Option<u64>> {
        Ok(self.inner.rank()?)
    }

    /// True when the cursor is at an entry.
    #[must_use]
    pub fn is_at_entry(&self) -> bool {
        self.inner.is_at_row()
    }

    /// True if the cursor is at the first entry of the table.
    #[must_use]
    pub fn on_first(&self) -> bool {
        self.inner.on_first()
    }

    /// True if the cursor is at the last entry of the table.
    #[must_use]
    pub fn on_last(&self) -> bool {
        self.inner.on_last()
    }

    /// True if the last step forward found no further entry, or if the table is empty.
    #[must_use]
    pub fn eof(&self) -> bool {
        self.inner.eof()
    }

    /// True if the current entry is a nested table and not a value.
    ///
    /// # Panics
    /// If the last move found no entry.
    #[must_use]
    pub fn is_nested(&self) -> bool {
        self.inner.is_nested()
    }

    /// The nested table at the cursor; `None` if the entry is a value. This costs nothing if the table is stored in its
    /// leaf. So to look up a path with a wildcard, such as `a/b/+/4`, walk over the table `a/b`.
    ///
    /// # Errors
    /// The nested table is damaged.
    ///
    /// # Panics
    /// If the last move found no entry.
    pub fn nested(&self) -> Result<Option<Table<'a>>> {
        if !self.is_nested() {
            return Ok(None);
        }
        let sub = self.inner.nested()?;
        Ok(Some(Table::of(self.pages, sub, self.named.clone())))
    }

    /// Moves to the next entry.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    #[expect(
        clippy::should_implement_trait,
        reason = "a fallible step, not an iterator"
    )]
    #[inline(always)]
    pub fn next(&mut self) -> Result<bool> {
        // No check for damage is needed here: the cursor of a damaged nested table has no current leaf, so this returns
        // false.
        if self.inner.next_in_leaf() {
            return Ok(true);
        }
        self.next_elsewhere()
    }

    #[inline(never)]
    fn next_elsewhere(&mut self) -> Result<bool> {
        self.check()?;
        Ok(self.inner.next()?)
    }

    /// Passes the current entry and the entries after it to `put`, up to the next nested table. Returns true if the
    /// cursor is at a nested table, false at the end of the table.
    pub(crate) fn lend_rows(&mut self, put: &mut PutRow<'_>) -> tidalite_pager::Result<bool> {
        while !self.inner.is_nested() {
            match self.inner.value_slice() {
                Some(value) => put(self.inner.key(), value)?,
                None => put(self.inner.key(), &self.inner.value()?.to_vec()?)?,
            }
            if !self.inner.next()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Decodes the key and the value at the cursor.
    ///
    /// # Errors
    /// As for [`value`](Self::value); `WrongType` if the key's bytes do not decode as `K`.
    ///
    /// # Panics
    /// If the last move found no entry.
    pub fn entry(&self) -> Result<(K::Owned, V::Lent<'a>)> {
        self.entry_as::<K, V>()
    }

    pub(crate) fn entry_as<L: TableKey + ?Sized, W: TableValue + ?Sized>(
        &self,
    ) -> Result<(L::Owned, W::Lent<'a>)> {
        let key = key_of::<L>(&self.named, self.inner.key())?;
        let value = lent_of::<W>(&self.named, Lent::of(self.plain_value()?)?)?;
        Ok((key, value))
    }

    fn plain_value(&self) -> Result<Value<'a>> {
        let value = self.inner.plain_value();
        value.map_err(|error| self.named.error(error))
    }

    /// Decodes the value at the cursor.
    ///
    /// # Errors
    /// A damaged or unreadable large value; `WrongType` if the entry is a nested table or its bytes do not decode as
    /// `V`.
    ///
    /// # Panics
    /// If the last move found no entry.
    pub fn value(&self) -> Result<V::Owned> {
        value_of::<V>(&self.named, Lent::of(self.plain_value()?)?)
    }

    /// Resets the cursor to the position before the first entry of `table`, which may be another table or belong to
    /// another snapshot. The cursor's memory is reused.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// # let mut tx = db.begin_write()?;
    /// # tx.table("t")?.put(b"a", b"1")?;
    /// # tx.commit()?;
    /// let (old, new) = (db.begin_read()?, db.begin_read()?);
    /// let old = old.table("t")?.ok_or("no table")?;
    /// let new = new.table("t")?.ok_or("no table")?;
    /// let mut cursor = old.cursor();
    /// cursor.last()?;
    /// cursor.renew(&new);
    /// assert!(!cursor.is_at_entry() && cursor.next()? && cursor.key() == b"a");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn renew(&mut self, table: &'a Table<'_, K, V>) {
        let Some(tree) = table.sub.tree() else {
            *self = table.cursor();
            return;
        };
        self.inner.renew(tree, &table.pages);
        (self.pages, self.damage) = (table.pages, None);
        self.named = table.named.clone();
    }
}

impl<V: TableValue + ?Sized> TableCursor<'_, [u8], V> {
    /// Moves to the first entry of a range with this lower bound.
    pub(crate) fn begin_at(&mut self, from: &Bound<Vec<u8>>) -> Result<bool> {
        match from {
            Bound::Unbounded => self.first(),
            Bound::Included(key) => self.seek_ge(key),
            Bound::Excluded(key) => self.seek_gt(key),
        }
    }
}

impl<V: ?Sized> TableCursor<'_, [u8], V> {
    /// The bytes of the key at the cursor.
    ///
    /// # Panics
    /// If the last move found no entry.
    #[must_use]
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.inner.key()
    }
}

impl<K: ?Sized> TableCursor<'_, K> {
    /// The bytes of the value at the cursor, if the value is stored in its leaf; `None` if it is stored in pieces (then
    /// use `value`).
    ///
    /// # Panics
    /// If the last move found no entry.
    #[must_use]
    #[inline]
    pub fn value_ref(&self) -> Option<&[u8]> {
        self.inner.value_slice()
    }
}
