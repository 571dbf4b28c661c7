//! The keys of a hash table in the order of its index.

use crate::hash::read::HashTable;
use crate::tables::codec::{TableKey, TableValue};
use crate::tables::key_range::{KeyRange, lent};
use crate::txn::pages::Pages;
use crate::types::error::Result;
use std::iter::FusedIterator;
use std::ops::Bound;
use tidalite_index::{KeyForm, RoaringTreemap, Walk};
use tidalite_pager::{Error as FileError, Refusal};

/// An iterator over keys of a hash table, each with the numbers of its records.
pub struct HashRange<'t, K: ?Sized = [u8], V: ?Sized = [u8]> {
    table: &'t HashTable<'t, K, V>,
    walk: Option<Walk<'t, Pages<'t>>>,
    start: Bound<Vec<u8>>,
    end: Bound<Vec<u8>>,
}

impl<K: TableKey + ?Sized, V: TableValue + ?Sized> HashTable<'_, K, V> {
    /// The keys in a range, each with the numbers of its records. The ends of the range need not exist.
    ///
    /// Keys come in their own order. If the index holds hashes, only the whole range `..` is possible; keys then come
    /// in the order of their hashes, and all keys with the same hash are one item.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let mut squares = tx.hash_table::<u32, u64>("squares")?;
    /// for n in 0..100 {
    ///     squares.set(&n, &u64::from(n * n))?;
    /// }
    /// let squares = squares.view()?;
    /// let keys: Result<Vec<u32>, _> = squares.range(97..)?.map(|item| Ok::<_, tidalite::Error>(item?.0)).collect();
    /// assert_eq!(keys?, [97, 98, 99]);
    /// assert_eq!(squares.records_in(10..20)?.len(), 10);
    /// # Ok::<(), tidalite::Error>(())
    /// ```
    ///
    /// # Errors
    /// `WrongType` for a range of hashed keys; a damaged or unreadable page.
    pub fn range(&self, range: impl KeyRange<K>) -> Result<HashRange<'_, K, V>> {
        let (start, end) = range.bounds();
        let is_whole = matches!((&start, &end), (Bound::Unbounded, Bound::Unbounded));
        if !is_whole && !matches!(self.reader.options().key, KeyForm::Whole { .. }) {
            return Err(FileError::refused(
                Refusal::WrongType,
                "a range of keys in a hash table that holds hashes",
                "the range of all keys, or a table created with whole keys",
            )
            .into());
        }
        let folded =
            |bound: Bound<&[u8]>| bound.map(|key| self.reader.options().folded(key).into_owned());
        let (start, end) = (folded(lent(&start)), folded(lent(&end)));
        let from = match &start {
            Bound::Included(key) | Bound::Excluded(key) => key.as_slice(),
            Bound::Unbounded => &[],
        };
        let walk = self.reader.walk(from)?;
        Ok(HashRange {
            table: self,
            walk: Some(walk),
            start,
            end,
        })
    }

    /// The numbers of the records of all keys in a range, as in [`range`](Self::range).
    ///
    /// # Errors
    /// As for `range`.
    pub fn records_in(&self, range: impl KeyRange<K>) -> Result<RoaringTreemap> {
        let mut all = RoaringTreemap::new();
        let mut keys = self.range(range)?;
        while keys.step()? {
            if let Some(walk) = &keys.walk {
                all |= walk.records();
            }
        }
        Ok(all)
    }
}

impl<K: TableKey + ?Sized, V: TableValue + ?Sized> HashRange<'_, K, V> {
    /// Moves to the next key of the range; returns false at the end.
    fn step(&mut self) -> Result<bool> {
        let Some(walk) = &mut self.walk else {
            return Ok(false);
        };
        let mut there = walk.step()?;
        if there && matches!(&self.start, Bound::Excluded(start) if start == walk.key()) {
            there = walk.step()?;
        }
        let is_inside = match &self.end {
            Bound::Included(end) => walk.key() <= end.as_slice(),
            Bound::Excluded(end) => walk.key() < end.as_slice(),
            Bound::Unbounded => true,
        };
        if !there || !is_inside {
            self.walk = None;
        }
        Ok(self.walk.is_some())
    }

    fn item(&mut self) -> Result<Option<(K::Owned, RoaringTreemap)>> {
        if !self.step()? {
            return Ok(None);
        }
        let Some(walk) = &self.walk else {
            return Ok(None);
        };
        let records = walk.records().clone();
        let newest = records.max().unwrap_or_default();
        let options = self.table.reader.options();
        let key = match options.key {
            KeyForm::Whole { .. } if !options.fold_case => {
                crate::tables::codec::key_of::<K>(&self.table.named, walk.key())?
            }
            _ => self.table.key_of(&self.table.reader.expect(newest)?)?,
        };
        Ok(Some((key, records)))
    }
}

impl<K: TableKey + ?Sized, V: TableValue + ?Sized> Iterator for HashRange<'_, K, V> {
    type Item = Result<(K::Owned, RoaringTreemap)>;

    fn next(&mut self) -> Option<Self::Item> {
        let item = self.item().transpose();
        if matches!(item, Some(Err(_))) {
            self.walk = None;
        }
        item
    }
}

impl<K: TableKey + ?Sized, V: TableValue + ?Sized> FusedIterator for HashRange<'_, K, V> {}
