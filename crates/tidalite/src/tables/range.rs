//! Double-ended iterators over ranges of tables.
//!
//! The number of remaining entries is computed from ranks (a descent for each bound), so that the two ends need not
//! compare keys to detect where they meet.

use crate::tables::bounds::{
    Ends, Pair, PairEnds, owned, owned_pairs, pairs_between, pairs_of, prefixed,
};
use crate::tables::codec::{TableKey, TableValue};
use crate::tables::key_range::KeyRange;
use crate::tables::multi::{MultiCursor, MultiTable};
use crate::tables::table::Table;
use crate::tables::table_cursor::TableCursor;
use crate::types::error::Result;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use tidalite_base::Corrupt;

/// At least one item, and as many as are left: one may be an error, which ends the iteration. `ExactSizeIterator` is
/// therefore not implemented.
fn size_hint(left: u64) -> (usize, Option<usize>) {
    (usize::from(left > 0), usize::try_from(left).ok())
}

fn fewer() -> crate::Error {
    Corrupt::new("table", 0, "fewer entries", "those that its branches count").into()
}

/// Entries of a range, key and value, from either end. An error ends the iteration; otherwise `left` is exact.
pub struct TableRange<'a, K: ?Sized = [u8], V: ?Sized = [u8]> {
    delta: TableCursor<'a>,
    back: TableCursor<'a>,
    ends: Ends,
    left: u64,
    types: PhantomData<fn(&K, &V)>,
}

impl<K: TableKey + ?Sized, V: TableValue + ?Sized> Table<'_, K, V> {
    /// The entries with keys in a range, from either end (`rev`). Inverted bounds are an empty range. A nested table
    /// gives an error in place of its entry (`WrongType`); use [`cursor`](Self::cursor) for nested tables.
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
    /// A damaged or unreadable page; for single entries: bytes that do not decode as `K` or `V` (`WrongType`).
    ///
    /// # Cost
    /// A descent for each bound; then one for the first entry from each end. Keys are copied: a
    /// [`cursor`](Self::cursor) lends them.
    pub fn range(&self, range: impl KeyRange<K>) -> Result<TableRange<'_, K, V>> {
        self.between(owned(range.bounds()))
    }

    /// True without entries. Reads nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// The entry with the least key. Cost: one page per level.
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

    /// The entry with the greatest key. Cost: one page per level.
    ///
    /// # Errors
    /// As for `first`.
    pub fn last(&self) -> Result<Option<(K::Owned, V::Lent<'_>)>> {
        let mut cursor = self.cursor();
        cursor.last()?.then(|| cursor.entry()).transpose()
    }

    /// The entry with the greatest key at or below this one. Cost: one page per level.
    ///
    /// # Errors
    /// As for `first`.
    pub fn floor(&self, key: &K) -> Result<Option<(K::Owned, V::Lent<'_>)>> {
        let mut cursor = self.cursor();
        cursor.seek_le(key)?.then(|| cursor.entry()).transpose()
    }

    /// The entry with the least key at or above this one. Cost: one page per level.
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
            delta: self.cursor_as(),
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

/// An entry of an iteration.
type Entry<'a, K, V> = (<K as TableKey>::Owned, <V as TableValue>::Lent<'a>);

impl<'a, K: TableKey + ?Sized, V: TableValue + ?Sized> TableRange<'a, K, V> {
    /// Entries not yet taken from either end.
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
            let delta = &mut this.delta;
            let there = match &this.ends.0 {
                _ if delta.is_at_entry() => delta.next()?,
                Bound::Unbounded => delta.first()?,
                Bound::Included(key) => delta.seek_ge(key)?,
                Bound::Excluded(key) => delta.seek_gt(key)?,
            };
            if there {
                delta.entry_as::<K, V>()
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

/// Pairs of a range from either end. An error ends the iteration.
pub struct MultiRange<'a> {
    delta: MultiCursor<'a>,
    back: MultiCursor<'a>,
    ends: PairEnds,
    left: u64,
}

impl MultiTable<'_> {
    /// The pairs with keys in a range, from either end (`rev`).
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// Two descents; then one for the first pair from each end.
    pub fn range(&self, range: impl KeyRange<[u8]>) -> Result<MultiRange<'_>> {
        self.between(pairs_of(&range))
    }

    /// The pairs in a range of pairs, from either end: a part of [`split`](Self::split), or the rest of a key's values.
    /// Inverted bounds are an empty range.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// As for `range`.
    pub fn range_of_pairs<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        range: impl RangeBounds<(K, V)>,
    ) -> Result<MultiRange<'_>> {
        self.between(owned_pairs(&range))
    }

    /// The pairs whose keys begin with these bytes, from either end.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn prefix(&self, prefix: &[u8]) -> Result<MultiRange<'_>> {
        let (from, to) = prefixed(prefix);
        let ends = (
            from.as_ref().map(Vec::as_slice),
            to.as_ref().map(Vec::as_slice),
        );
        self.between(pairs_between(ends.0, ends.1))
    }

    /// The values of one key, from either end.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn values(&self, key: &[u8]) -> Result<MultiRange<'_>> {
        self.range(key..=key)
    }

    /// The exact number of pairs with keys in a range. Cost: two descents, for any range.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn count_range(&self, range: impl KeyRange<[u8]>) -> Result<u64> {
        let (from, to) = self.ranks(&pairs_of(&range))?;
        Ok(to.saturating_sub(from))
    }

    /// The numbers of pairs before a range, and before its end.
    pub(crate) fn ranks(&self, ends: &PairEnds) -> Result<(u64, u64)> {
        let below = |(key, value): &Pair| {
            // Every value of a key is at or above the empty value.
            match value.is_empty() {
                true => self.rank(key),
                false => self.rank_pair(key, value),
            }
        };
        let above = |pair: &Pair| {
            let there = self.contains(&pair.0, &pair.1)?;
            Ok::<_, crate::Error>(below(pair)?.saturating_add(u64::from(there)))
        };
        let from = match &ends.0 {
            Bound::Unbounded => 0,
            Bound::Included(pair) => below(pair)?,
            Bound::Excluded(pair) => above(pair)?,
        };
        let to = match &ends.1 {
            Bound::Unbounded => self.count(),
            Bound::Excluded(pair) => below(pair)?,
            Bound::Included(pair) => above(pair)?,
        };
        Ok((from, to))
    }

    fn between(&self, ends: PairEnds) -> Result<MultiRange<'_>> {
        let (from, to) = self.ranks(&ends)?;
        Ok(MultiRange {
            delta: self.cursor(),
            back: self.cursor(),
            ends,
            left: to.saturating_sub(from),
        })
    }
}

impl MultiRange<'_> {
    /// Pairs not yet taken from either end.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.left
    }

    fn taken(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<(Vec<u8>, Vec<u8>)>,
    ) -> Option<Result<(Vec<u8>, Vec<u8>)>> {
        if self.left == 0 {
            return None;
        }
        let pair = step(self);
        self.left = if pair.is_ok() { self.left - 1 } else { 0 };
        Some(pair)
    }
}

fn pair(cursor: &MultiCursor<'_>, there: bool) -> Result<(Vec<u8>, Vec<u8>)> {
    if !there {
        return Err(fewer());
    }
    Ok((cursor.key().to_vec(), cursor.value().to_vec()))
}

impl Iterator for MultiRange<'_> {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.taken(|this| {
            let delta = &mut this.delta;
            let there = match &this.ends.0 {
                _ if delta.is_at_pair() => delta.next_pair()?,
                Bound::Unbounded => delta.first()?,
                Bound::Included((key, value)) => delta.seek_ge(key, value)?,
                Bound::Excluded((key, value)) => delta.seek_gt(key, value)?,
            };
            pair(delta, there)
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        size_hint(self.left)
    }
}

impl FusedIterator for MultiRange<'_> {}

impl DoubleEndedIterator for MultiRange<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.taken(|this| {
            let back = &mut this.back;
            let there = match &this.ends.1 {
                _ if back.is_at_pair() => back.prev_pair()?,
                Bound::Unbounded => back.last()?,
                Bound::Included((key, value)) => back.seek_le(key, value)?,
                Bound::Excluded((key, value)) => back.seek_lt(key, value)?,
            };
            pair(back, there)
        })
    }
}
