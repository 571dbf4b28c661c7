//! Tables of sets: each key has a sorted set of values.
//!
//! A single value is stored in the row, a few values are packed together in the leaf, many get pages of their own.
//! Integer keys and values are best stored as big-endian bytes (see `tidalite_base::order`), which sort by number.

use crate::catalog::table_name::Named;
use crate::tables::bounds::{Pair, PairEnds, pairs_of};
use crate::tables::codec::{AsArg, TableKey, key_of, set_value_of};
use crate::tables::key_range::KeyRange;
use crate::txn::pages::Pages;
use crate::types::error::Result;
use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::Bound;
use tidalite_kv::{PutRow, TableShape, Tree};

/// The first value of a key, and the number of the key's values.
type First<V> = (<V as TableKey>::Owned, u64);

/// A table whose keys have sorted sets of values, in a snapshot or in the current state of a write transaction. Keys
/// are of type `K`, values of type `V`, both in their order; both are plain bytes by default. An entry is a pair: a key
/// and one of its values.
///
/// ```
/// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
/// let mut tx = db.begin_write()?;
/// let mut scores = tx.typed_set_table::<str, f64>("scores")?;
/// scores.put_many("ann", &[7.5, -1.0, 30.25])?;
/// scores.put("ben", &8.0)?;
/// tx.commit()?;
///
/// let snap = db.begin_read()?;
/// let scores = snap.typed_set_table::<str, f64>("scores")?.ok_or("no table")?;
/// assert_eq!(scores.get("ann")?, Some((-1.0, 3)));
/// let best = scores.values("ann")?.next_back().transpose()?;
/// assert_eq!(best, Some(30.25));
/// let above_zero: Result<Vec<_>, _> = scores.values_in("ann", 0.0..)?.collect();
/// assert_eq!(above_zero?, [7.5, 30.25]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Cost
/// A key's set of values is stored in the key's row, up to a quarter of a page: values of equal length take only their
/// bytes, others take two bytes more each. A larger set is a table of its own: each value takes about 8 bytes besides
/// its own, less the prefix shared with its neighbours. Reaching a pair takes one descent, plus one in the key's set if
/// that set has pages of its own; the number of a key's values needs no descent in the set. Steps and borrowed values
/// copy nothing.
pub struct SetTable<'a, K: ?Sized = [u8], V: ?Sized = [u8]> {
    pub(crate) pages: Pages<'a>,
    pub(crate) tree: Tree,
    /// Name of the table, for error messages.
    pub(crate) named: Named<'a>,
    types: PhantomData<fn(&K, &V)>,
}

impl<K: ?Sized, V: ?Sized> Clone for SetTable<'_, K, V> {
    fn clone(&self) -> Self {
        Self::new(self.pages, self.tree, self.named.clone())
    }
}

impl<'a, K: ?Sized, V: ?Sized> SetTable<'a, K, V> {
    pub(crate) fn new(pages: Pages<'a>, tree: Tree, named: Named<'a>) -> Self {
        Self {
            pages,
            tree,
            named,
            types: PhantomData,
        }
    }

    /// This table with keys and values as plain bytes.
    #[must_use]
    pub fn bytes(&self) -> SetTable<'a> {
        SetTable::new(self.pages, self.tree, self.named.clone())
    }

    /// True if the table has no pairs. Reads nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tree.len() == 0
    }

    /// Page statistics of the table, including large sets of values.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// As of [`Table::shape`](crate::Table::shape).
    pub fn shape(&self) -> Result<TableShape> {
        Ok(self.tree.shape(&self.pages)?)
    }
}

impl<K: TableKey + ?Sized, V: TableKey + ?Sized> SetTable<'_, K, V> {
    /// The first value of a key and the number of its values; `None` if the key does not exist.
    ///
    /// # Errors
    /// A damaged or unreadable page; bytes that do not decode as `V` (`WrongType`).
    pub fn get(&self, key: &K) -> Result<Option<(V::Owned, u64)>> {
        Ok(self.first_values(&[key.key_code()])?.pop().flatten())
    }

    /// The number of values of a key, 0 if the key does not exist. Cost: one page per level.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn count_of(&self, key: &K) -> Result<u64> {
        Ok(self.tree.values_of(&self.pages, &key.key_code())?)
    }

    /// Whether the table contains the pair (`key`, `value`).
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn contains(&self, key: &K, value: &V) -> Result<bool> {
        self.has(&key.key_code(), &value.key_code())
    }

    fn has(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        Ok(self.tree.contains_pair(&self.pages, key, value)?)
    }

    /// Number of pairs. Reads nothing.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.tree.len()
    }

    /// Number of distinct keys. Reads nothing.
    #[must_use]
    pub fn count_keys(&self) -> u64 {
        self.tree.keys()
    }

    /// For each of many keys, the first value and the number of values, in the order of the keys; `None` for a missing
    /// key. Fastest for sorted keys; the waits for memory of sixteen keys overlap.
    ///
    /// # Errors
    /// As for `get`.
    ///
    /// # Cost
    /// As for one `get` per key, but the waits for memory do not add up.
    pub fn get_many<A: AsArg<K>>(&self, keys: &[A]) -> Result<Vec<Option<First<V>>>> {
        let keys: Vec<Cow<'_, [u8]>> = keys.iter().map(|key| key.as_arg().key_code()).collect();
        self.first_values(&keys)
    }

    fn first_values(&self, keys: &[Cow<'_, [u8]>]) -> Result<Vec<Option<First<V>>>> {
        let mut all = Vec::with_capacity(keys.len());
        let mut failed = None;
        self.tree.values_of_many(&self.pages, keys, |_, values| {
            let Some(values) = values else {
                all.push(None);
                return Ok(());
            };
            let mut first = None;
            values.each(&self.pages, |value| {
                match set_value_of::<V>(&self.named, value) {
                    Ok(value) => first = Some((value, values.len())),
                    Err(error) => failed = Some(error),
                }
                false
            })?;
            all.push(first);
            Ok(())
        })?;
        failed.map_or(Ok(all), Err)
    }

    /// Passes the bytes of every value of many keys to `take`, each with the index of its key: key after key in the
    /// given order, the values of each key ascending. Missing keys are skipped.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let mut tags = tx.set_table("tags")?;
    /// tags.put_many(b"a", &["1", "2"])?;
    /// tags.put(b"b", b"3")?;
    /// let mut found = Vec::new();
    /// tags.view()?.each_value_of(&["b", "none", "a"], |place, value| found.push((place, value.to_vec())))?;
    /// assert_eq!(found, [(0, b"3".to_vec()), (2, b"1".to_vec()), (2, b"2".to_vec())]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A damaged or unreadable page, after the values before it were passed to `take`.
    pub fn each_value_of<A: AsArg<K>>(
        &self,
        keys: &[A],
        mut take: impl FnMut(usize, &[u8]),
    ) -> Result<()> {
        let keys: Vec<Cow<'_, [u8]>> = keys.iter().map(|key| key.as_arg().key_code()).collect();
        Ok(self
            .tree
            .values_of_many(&self.pages, &keys, |place, values| match values {
                None => Ok(()),
                Some(values) => values.each(&self.pages, |value| {
                    take(place, value);
                    true
                }),
            })?)
    }

    /// Calls `f` with the bytes of every value of a key, ascending; returns the number of values. Values are borrowed
    /// from pages: nothing is copied or allocated per value.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let mut tags = tx.set_table("tags")?;
    /// tags.put_many(b"a", &["1", "22"])?;
    /// let mut bytes = 0;
    /// assert_eq!(tags.view()?.for_each_value(b"a", |value| bytes += value.len())?, 2);
    /// assert_eq!(bytes, 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A damaged or unreadable page, after the values before it were passed to `f`.
    ///
    /// # Cost
    /// One descent, and the pages of the key's set.
    pub fn for_each_value(&self, key: &K, mut f: impl FnMut(&[u8])) -> Result<u64> {
        let Some(values) = self.tree.values(&self.pages, &key.key_code())? else {
            return Ok(0);
        };
        values.each(&self.pages, |value| {
            f(value);
            true
        })?;
        Ok(values.len())
    }

    /// Calls `f` with the bytes of key and value of every pair, in order. The bytes are borrowed.
    ///
    /// # Errors
    /// A damaged or unreadable page, after the pairs before it were passed to `f`.
    pub fn for_each(&self, mut f: impl FnMut(&[u8], &[u8])) -> Result<()> {
        Ok(self.lend_pairs(&mut |key, value| {
            f(key, value);
            Ok(())
        })?)
    }

    pub(crate) fn lend_pairs(&self, put: &mut PutRow<'_>) -> tidalite_pager::Result<()> {
        let mut cursor = self.tree.pair_cursor(&self.pages);
        cursor.first()?;
        cursor.each(put)
    }

    /// Number of pairs whose key is less than `key`. Cost: one page per level.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn rank(&self, key: &K) -> Result<u64> {
        self.rank_of(&key.key_code())
    }

    fn rank_of(&self, key: &[u8]) -> Result<u64> {
        Ok(self.tree.rank(&self.pages, key)?)
    }

    /// Number of pairs less than the pair (`key`, `value`), whether or not that pair exists;
    /// [`SetCursor::select`](crate::SetCursor::select) is the inverse. Cost: two descents, and one in the key's set.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn rank_pair(&self, key: &K, value: &V) -> Result<u64> {
        let (key, value) = (&key.key_code(), &value.key_code());
        Ok(self.tree.rank_pair(&self.pages, key, value)?)
    }

    /// Finds pairs that split a range of keys into `parts` of equal size (within one pair), for parallel scans: one
    /// pair less than `parts`, or fewer if there are not enough pairs. A key with many values may be split too: a part
    /// begins with its pair, see [`range_of_pairs`](Self::range_of_pairs).
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// # use std::ops::Bound::{Excluded, Included, Unbounded};
    /// let mut tx = db.begin_write()?;
    /// let values: Vec<[u8; 4]> = (0..1000u32).map(u32::to_be_bytes).collect();
    /// tx.set_table("tags")?.put_many(b"one key", &values)?;
    /// tx.commit()?;
    /// let snap = db.begin_read()?;
    /// let table = snap.set_table("tags")?.ok_or("no table")?;
    /// let cuts = table.split(.., 4)?;
    /// assert_eq!(cuts.len(), 3);
    /// let begins = std::iter::once(Unbounded).chain(cuts.iter().cloned().map(Included));
    /// let ends = cuts.iter().cloned().map(Excluded).chain([Unbounded]);
    /// std::thread::scope(|threads| {
    ///     for part in begins.zip(ends) {
    ///         let table = &table;
    ///         threads.spawn(move || assert_eq!(table.range_of_pairs(part).unwrap().count(), 250));
    ///     }
    /// });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// One descent per pair, and one in its key's set.
    pub fn split(
        &self,
        range: impl KeyRange<K>,
        parts: usize,
    ) -> Result<Vec<(K::Owned, V::Owned)>> {
        let ranks = self.ranks(&pairs_of(&range))?;
        let cuts = self.tree.split_pairs(&self.pages, ranks, parts)?;
        let pairs = cuts.iter().map(|(key, value)| self.pair(key, value));
        pairs.collect()
    }

    pub(crate) fn pair(&self, key: &[u8], value: &[u8]) -> Result<(K::Owned, V::Owned)> {
        let key = key_of::<K>(&self.named, key)?;
        Ok((key, set_value_of::<V>(&self.named, value)?))
    }

    /// The exact number of pairs with keys in a range. Cost: two descents, for any range.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn count_range(&self, range: impl KeyRange<K>) -> Result<u64> {
        let (from, to) = self.ranks(&pairs_of(&range))?;
        Ok(to.saturating_sub(from))
    }

    /// Number of pairs before the beginning of a range, and number of pairs before its end.
    pub(crate) fn ranks(&self, ends: &PairEnds) -> Result<(u64, u64)> {
        let below = |(key, value): &Pair| {
            // The empty value is the least value a key can have, so no value of this key is less.
            match value.is_empty() {
                true => self.rank_of(key),
                false => Ok(self.tree.rank_pair(&self.pages, key, value)?),
            }
        };
        let above = |pair: &Pair| {
            let there = self.has(&pair.0, &pair.1)?;
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

    /// The number that the table's sequence assigns next.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.tree.sequence()
    }
}

impl<'a> SetTable<'a> {
    /// This table with other types of keys and values, whatever was stored in it: bytes of another type are an error
    /// (`WrongType`) only if they do not decode.
    #[must_use]
    pub fn typed<K: TableKey + ?Sized, V: TableKey + ?Sized>(self) -> SetTable<'a, K, V> {
        SetTable::new(self.pages, self.tree, self.named)
    }
}
