//! Double-ended iterators over ranges of tables.
//!
//! The number of remaining entries is computed from ranks (a descent for each bound), so that an iterator need not
//! compare keys to detect where its two ends meet.

use crate::tables::bounds::{Ends, owned, prefixed};
use crate::tables::codec::{TableKey, TableValue};
use crate::tables::key_range::KeyRange;
use crate::tables::table::Table;
use crate::tables::table_cursor::TableCursor;
use crate::types::error::Result;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::Bound;
use tidalite_base::Corrupt;

/// The size hint of an iterator with `left` entries: at least one item and at most `left`, because an item may be an
/// error, which ends the iteration. `ExactSizeIterator` is therefore not implemented.
pub(crate) fn size_hint(left: u64) -> (usize, Option<usize>) {
    (usize::from(left > 0), usize::try_from(left).ok())
}

pub(crate) fn fewer() -> crate::Error {
    Corrupt::new("table", 0, "fewer entries", "those that its branches count").into()
}

/// Iterator over the entries of a range, key and value, from either end. An error ends the iteration; otherwise `left`
/// is exact.
pub struct TableRange<'a, K: ?Sized = [u8], V: ?Sized = [u8]> {
    front: TableCursor<'a>,
    back: TableCursor<'a>,
    ends: Ends,
    left: u64,
    types: PhantomData<fn(&K, &V)>,
}

impl<K: TableKey + ?Sized, V: TableValue + ?Sized> Table<'_, K, V> {
    /// The entries with keys in a range, from either end (`rev`). Inverted bounds are an empty range. For a nested
    /// table the iterator yields an error (`WrongType`); use [`cursor`](Self::cursor) to reach nested tables.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// tx.table("t")?.extend([("a", "1"), ("ab", "2"), ("b", "3")])?;
    /// tx.commit()?;
    /// let snap = db.begin_read()?;
    /// let table = snap.table("t")?.ok_or("no table")?;
    /// let found: Result<Vec<_>, _> = table.prefix(b"a")?.rev().collect();
    /// let keys: Vec<_> = found?.into_iter().map(|(key, _)| key).collect();
    /// assert_eq!(keys, [b"ab".to_vec(), b"a".to_vec()]);
    /// assert_eq!(table.range("ab"..)?.left(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A damaged or unreadable page. The iterator yields `WrongType` for an entry whose bytes do not decode as `K` or
    /// `V`.
    ///
    /// # Cost
    /// A descent for each bound, then one for the first entry from each end. Keys are copied; a
    /// [`cursor`](Self::cursor) lends them instead.
    pub fn range(&self, range: impl KeyRange<K>) -> Result<TableRange<'_, K, V>> {
        self.between(owned(range.bounds()))
    }

    /// True if the table has no entries. Reads nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// The entry with the least key; `None` if the table is empty. Cost: one page per level.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let mut table = tx.table("t")?;
    /// assert!(table.view()?.is_empty() && table.view()?.first()?.is_none());
    /// table.extend([("a", "1"), ("b", "2")])?;
    /// let view = table.view()?;
    /// let (key, value) = view.last()?.ok_or("no entry")?;
    /// assert_eq!((&key[..], &value[..]), (&b"b"[..], &b"2"[..]));
    /// assert_eq!(view.iter().count(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A damaged or unreadable page; `WrongType` if the entry is a nested table; bytes that do not decode as `K` or `V`
    /// (`WrongType`).
    pub fn first(&self) -> Result<Option<(K::Owned, V::Lent<'_>)>> {
        let mut cursor = self.cursor();
        cursor.first()?.then(|| cursor.entry()).transpose()
    }

    /// The entry with the greatest key; `None` if the table is empty. Cost: one page per level.
    ///
    /// # Errors
    /// As for `first`.
    pub fn last(&self) -> Result<Option<(K::Owned, V::Lent<'_>)>> {
        let mut cursor = self.cursor();
        cursor.last()?.then(|| cursor.entry()).transpose()
    }

    /// The entry with the greatest key less than or equal to `key`. Cost: one page per level.
    ///
    /// # Errors
    /// As for `first`.
    pub fn floor(&self, key: &K) -> Result<Option<(K::Owned, V::Lent<'_>)>> {
        let mut cursor = self.cursor();
        cursor.seek_le(key)?.then(|| cursor.entry()).transpose()
    }

    /// The entry with the least key greater than or equal to `key`. Cost: one page per level.
    ///
    /// # Errors
    /// As for `first`.
    pub fn ceiling(&self, key: &K) -> Result<Option<(K::Owned, V::Lent<'_>)>> {
        let mut cursor = self.cursor();
        cursor.seek_ge(key)?.then(|| cursor.entry()).transpose()
    }

    /// All entries, from either end. Reads nothing before the first entry is requested.
    #[must_use]
    pub fn iter(&self) -> TableRange<'_, K, V> {
        self.within((Bound::Unbounded, Bound::Unbounded), self.count())
    }

    fn between(&self, ends: Ends) -> Result<TableRange<'_, K, V>> {
        let (from, to) = self.ranks(
            ends.0.as_ref().map(Vec::as_slice),
            ends.1.as_ref().map(Vec::as_slice),
        )?;
        Ok(self.within(ends, to.saturating_sub(from)))
    }

    fn within(&self, ends: Ends, left: u64) -> TableRange<'_, K, V> {
        TableRange {
            front: self.cursor_as(),
            back: self.cursor_as(),
            ends,
            left,
            types: PhantomData,
        }
    }
}

impl<V: TableValue + ?Sized> Table<'_, [u8], V> {
    /// The entries whose keys begin with these bytes, from either end.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn prefix(&self, prefix: &[u8]) -> Result<TableRange<'_, [u8], V>> {
        self.between(prefixed(prefix))
    }
}

/// An entry as an iteration returns it: key and value.
type Entry<'a, K, V> = (<K as TableKey>::Owned, <V as TableValue>::Lent<'a>);

impl<'a, K: TableKey + ?Sized, V: TableValue + ?Sized> TableRange<'a, K, V> {
    /// Number of entries that neither end has returned yet.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.left
    }

    fn taken(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<Entry<'a, K, V>>,
    ) -> Option<Result<Entry<'a, K, V>>> {
        if self.left == 0 {
            return None;
        }
        let entry = step(self);
        self.left = if entry.is_ok() { self.left - 1 } else { 0 };
        Some(entry)
    }
}

impl<'a, K: TableKey + ?Sized, V: TableValue + ?Sized> Iterator for TableRange<'a, K, V> {
    type Item = Result<Entry<'a, K, V>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.taken(|this| {
            let front = &mut this.front;
            let there = match front.is_at_entry() {
                true => front.next()?,
                false => front.begin_at(&this.ends.0)?,
            };
            if there {
                front.entry_as::<K, V>()
            } else {
                Err(fewer())
            }
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        size_hint(self.left)
    }
}

impl<K: TableKey + ?Sized, V: TableValue + ?Sized> FusedIterator for TableRange<'_, K, V> {}

impl<K: TableKey + ?Sized, V: TableValue + ?Sized> DoubleEndedIterator for TableRange<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.taken(|this| {
            let back = &mut this.back;
            let there = match &this.ends.1 {
                _ if back.is_at_entry() => back.previous()?,
                Bound::Unbounded => back.last()?,
                Bound::Included(key) => back.seek_le(key)?,
                Bound::Excluded(key) => back.seek_lt(key)?,
            };
            if there {
                back.entry_as::<K, V>()
            } else {
                Err(fewer())
            }
        })
    }
}
