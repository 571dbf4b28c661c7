//! The entries of a buffered table in the order of their keys.

use crate::buffered::read::BufferedTable;
use crate::tables::codec::{TableKey, TableValue, key_of, value_of};
use crate::tables::key_range::{KeyRange, lent};
use crate::tables::lent::Lent;
use crate::txn::pages::Pages;
use crate::types::error::Result;
use std::iter::FusedIterator;
use std::ops::Bound;
use tidalite_index::BufferedRange;

/// An iterator over the entries of a range of keys, ascending or descending.
pub struct BufferedEntries<'t, K: ?Sized = [u8], V: ?Sized = [u8]> {
    table: &'t BufferedTable<'t, K, V>,
    range: Option<BufferedRange<'t, Pages<'t>>>,
}

impl<K: TableKey + ?Sized, V: TableValue + ?Sized> BufferedTable<'_, K, V> {
    /// The entries in a range of keys, ascending. The ends of the range need not exist.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn range(&self, range: impl KeyRange<K>) -> Result<BufferedEntries<'_, K, V>> {
        self.entries(range, false)
    }

    /// The entries in a range of keys, descending.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let mut squares = tx.buffered_table::<u32, u32>("squares")?;
    /// squares.extend((0..10).map(|n| (n, n * n)))?;
    /// let last = squares.view()?.range_reversed(..5)?.next().transpose()?;
    /// assert_eq!(last, Some((4, 16)));
    /// # Ok::<(), tidalite::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for `range`.
    pub fn range_reversed(&self, range: impl KeyRange<K>) -> Result<BufferedEntries<'_, K, V>> {
        self.entries(range, true)
    }

    /// Calls `f` with the bytes of the keys and values in a range of keys, in ascending order, until it returns false.
    /// Nothing is decoded or copied, so this is the fastest way to read many entries.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let mut names = tx.buffered_table::<u64, str>("names")?;
    /// names.extend([(1, "pump"), (2, "fan"), (3, "valve")])?;
    /// let mut bytes = 0;
    /// names.view()?.each_entry(2.., |_, name| {
    ///     bytes += name.len();
    ///     true
    /// })?;
    /// assert_eq!(bytes, "fan".len() + "valve".len());
    /// # Ok::<(), tidalite::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for `range`.
    pub fn each_entry(
        &self,
        range: impl KeyRange<K>,
        mut f: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<()> {
        let (start, end) = range.bounds();
        let owned = |bound: Bound<&[u8]>| bound.map(<[u8]>::to_vec);
        let mut range = self
            .reader
            .range(owned(lent(&start)), owned(lent(&end)), false)?;
        while range.step()? {
            match range.value() {
                Some(value) if f(range.key(), value) => {}
                _ => break,
            }
        }
        Ok(())
    }

    /// The first entry.
    ///
    /// # Errors
    /// As for `range`; `WrongType` if its bytes do not decode.
    pub fn first(&self) -> Result<Option<(K::Owned, V::Owned)>> {
        self.range(..)?.next().transpose()
    }

    /// The last entry.
    ///
    /// # Errors
    /// As for `first`.
    pub fn last(&self) -> Result<Option<(K::Owned, V::Owned)>> {
        self.range_reversed(..)?.next().transpose()
    }

    /// Whether the table has no entry.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn is_empty(&self) -> Result<bool> {
        let (start, end) = (Bound::Unbounded, Bound::Unbounded);
        Ok(!self.reader.range(start, end, false)?.step()?)
    }

    fn entries(
        &self,
        range: impl KeyRange<K>,
        is_reversed: bool,
    ) -> Result<BufferedEntries<'_, K, V>> {
        let (start, end) = range.bounds();
        let owned = |bound: Bound<&[u8]>| bound.map(<[u8]>::to_vec);
        let range = self
            .reader
            .range(owned(lent(&start)), owned(lent(&end)), is_reversed)?;
        Ok(BufferedEntries {
            table: self,
            range: Some(range),
        })
    }
}

impl<K: TableKey + ?Sized, V: TableValue + ?Sized> BufferedEntries<'_, K, V> {
    fn entry(&mut self) -> Result<Option<(K::Owned, V::Owned)>> {
        let Some(range) = &mut self.range else {
            return Ok(None);
        };
        if !range.step()? {
            self.range = None;
            return Ok(None);
        }
        let Some(value) = range.value() else {
            return Ok(None);
        };
        let named = &self.table.named;
        let key = key_of::<K>(named, range.key())?;
        let value = match V::decode_value(value) {
            Some(value) => value,
            // Returns an error with the reason.
            None => value_of::<V>(named, Lent::from(value.to_vec()))?,
        };
        Ok(Some((key, value)))
    }
}

impl<K: TableKey + ?Sized, V: TableValue + ?Sized> Iterator for BufferedEntries<'_, K, V> {
    type Item = Result<(K::Owned, V::Owned)>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.entry().transpose();
        if matches!(entry, Some(Err(_))) {
            self.range = None;
        }
        entry
    }
}

impl<K: TableKey + ?Sized, V: TableValue + ?Sized> FusedIterator for BufferedEntries<'_, K, V> {}
