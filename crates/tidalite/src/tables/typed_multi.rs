//! Tables of multi-values with keys and values of Rust types, on top of tables of bytes.

use crate::tables::bounds::PairEnds;
use crate::tables::codec::wrong_type;
use crate::tables::multi::MultiTable;
use crate::tables::multi_mut::MultiTableMut;
use crate::tables::range::MultiRange;
use crate::types::error::Result;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use tidalite_base::Ordered;

/// A table of multi-values with keys of type `K` and values of type `V`, both in their order.
///
/// ```
/// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
/// use tidalite::{TypedMultiTable, TypedMultiTableMut};
///
/// let mut tx = db.begin_write()?;
/// let mut scores = TypedMultiTableMut::<String, f64>::of(tx.multi_table("scores")?);
/// scores.put_many(&"ann".into(), &[7.5, -1.0, 30.25])?;
/// scores.put(&"ben".into(), &8.0)?;
/// tx.commit()?;
///
/// let snap = db.begin_read()?;
/// let scores = TypedMultiTable::<String, f64>::of(snap.multi_table("scores")?.ok_or("no table")?);
/// assert_eq!(scores.get(&"ann".into())?, Some((-1.0, 3)));
/// let best = scores.values(&"ann".into())?.next_back().transpose()?;
/// assert_eq!(best, Some(30.25));
/// let above_zero: Result<Vec<f64>, _> = scores.values_in(&"ann".into(), 0.0..)?.collect();
/// assert_eq!(above_zero?, [7.5, 30.25]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TypedMultiTable<'a, K, V> {
    table: MultiTable<'a>,
    types: PhantomData<(K, V)>,
}

fn decode<T: Ordered>(table: &str, part: &'static str, bytes: &[u8]) -> Result<T> {
    T::from_key(bytes).ok_or_else(|| wrong_type::<T>(table, part, bytes))
}

fn value_of<V: Ordered>(table: &str, bytes: &[u8]) -> Result<V> {
    decode(table, "value", bytes)
}

fn keys_between<K: Ordered>(range: &impl RangeBounds<K>) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let bytes = |bound: Bound<&K>| bound.map(Ordered::to_key);
    (bytes(range.start_bound()), bytes(range.end_bound()))
}

fn pairs_between<K: Ordered, V: Ordered>(range: &impl RangeBounds<(K, V)>) -> PairEnds {
    let bytes = |bound: Bound<&(K, V)>| bound.map(|(key, value)| (key.to_key(), value.to_key()));
    (bytes(range.start_bound()), bytes(range.end_bound()))
}

/// The pairs of one key whose values lie in a range.
fn values_between<K: Ordered, V: Ordered>(key: &K, range: &impl RangeBounds<V>) -> PairEnds {
    let key = key.to_key();
    let pair = |value: &V| (key.clone(), value.to_key());
    let from = match range.start_bound() {
        Bound::Unbounded => Bound::Included((key.clone(), Vec::new())),
        bound => bound.map(pair),
    };
    let to = match range.end_bound() {
        // The next key after this one is this key with a zero byte appended.
        Bound::Unbounded => Bound::Excluded(([&key[..], &[0]].concat(), Vec::new())),
        bound => bound.map(pair),
    };
    (from, to)
}

fn typed<'r, K: Ordered, V: Ordered>(
    table: &'r str,
    range: MultiRange<'r>,
) -> impl DoubleEndedIterator<Item = Result<(K, V)>> {
    range.map(move |pair| {
        let (key, value) = pair?;
        Ok((decode(table, "key", &key)?, value_of(table, &value)?))
    })
}

impl<'a, K: Ordered, V: Ordered> TypedMultiTable<'a, K, V> {
    /// Reads a table with these types.
    #[must_use]
    pub fn of(table: MultiTable<'a>) -> Self {
        Self {
            table,
            types: PhantomData,
        }
    }

    /// The least value of a key, and its number of values.
    ///
    /// # Errors
    /// A damaged or unreadable page; bytes that do not decode as `V` (`WrongType`).
    pub fn get(&self, key: &K) -> Result<Option<(V, u64)>> {
        let first = self.table.get(&key.to_key())?;
        first
            .map(|(value, count)| Ok((value_of(self.table.name(), &value)?, count)))
            .transpose()
    }

    /// Whether a pair exists.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn contains(&self, key: &K, value: &V) -> Result<bool> {
        self.table.contains(&key.to_key(), &value.to_key())
    }

    /// The number of values of a key. Cost: one page per level.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn count_of(&self, key: &K) -> Result<u64> {
        self.table.count_of(&key.to_key())
    }

    /// Number of pairs, without reading any.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.table.count()
    }

    /// Number of distinct keys, without reading any.
    #[must_use]
    pub fn count_keys(&self) -> u64 {
        self.table.count_keys()
    }

    /// The exact number of pairs with keys in a range. Cost: two descents, for any range.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn count_range(&self, range: impl RangeBounds<K>) -> Result<u64> {
        self.table.count_range(keys_between(&range))
    }

    /// The least pair.
    ///
    /// # Errors
    /// A damaged or unreadable page; bytes that do not decode as `K` or `V` (`WrongType`).
    pub fn first(&self) -> Result<Option<(K, V)>> {
        self.range(..)?.next().transpose()
    }

    /// The greatest pair.
    ///
    /// # Errors
    /// A damaged or unreadable page; bytes that do not decode as `K` or `V` (`WrongType`).
    pub fn last(&self) -> Result<Option<(K, V)>> {
        self.range(..)?.next_back().transpose()
    }

    /// The values of one key, from either end.
    ///
    /// # Errors
    /// A damaged or unreadable page; for single values: bytes that do not decode as `V` (`WrongType`).
    pub fn values(&self, key: &K) -> Result<impl DoubleEndedIterator<Item = Result<V>>> {
        self.values_in(key, ..)
    }

    /// The values of one key that lie in a range, from either end.
    ///
    /// # Errors
    /// As for `values`.
    pub fn values_in(
        &self,
        key: &K,
        range: impl RangeBounds<V>,
    ) -> Result<impl DoubleEndedIterator<Item = Result<V>>> {
        let pairs = self.table.range_of_pairs(values_between(key, &range))?;
        Ok(pairs.map(|pair| value_of(self.table.name(), &pair?.1)))
    }

    /// The pairs with keys in a range, from either end.
    ///
    /// # Errors
    /// A damaged or unreadable page; for single pairs: bytes that do not decode as `K` or `V` (`WrongType`).
    pub fn range(
        &self,
        range: impl RangeBounds<K>,
    ) -> Result<impl DoubleEndedIterator<Item = Result<(K, V)>>> {
        Ok(typed(
            self.table.name(),
            self.table.range(keys_between(&range))?,
        ))
    }

    /// The pairs in a range of pairs, from either end.
    ///
    /// # Errors
    /// As for `range`.
    pub fn range_of_pairs(
        &self,
        range: impl RangeBounds<(K, V)>,
    ) -> Result<impl DoubleEndedIterator<Item = Result<(K, V)>>> {
        let pairs = self.table.range_of_pairs(pairs_between(&range))?;
        Ok(typed(self.table.name(), pairs))
    }

    /// The underlying table of bytes.
    #[must_use]
    pub fn bytes(&self) -> &MultiTable<'a> {
        &self.table
    }
}

/// A typed table of multi-values in a write transaction.
pub struct TypedMultiTableMut<'t, K, V> {
    table: MultiTableMut<'t>,
    types: PhantomData<(K, V)>,
}

impl<'t, K: Ordered, V: Ordered> TypedMultiTableMut<'t, K, V> {
    /// Changes a table with these types.
    #[must_use]
    pub fn of(table: MultiTableMut<'t>) -> Self {
        Self {
            table,
            types: PhantomData,
        }
    }

    /// The table in its current state, for reading.
    ///
    /// # Errors
    /// As for [`MultiTableMut::view`].
    pub fn view(&self) -> Result<TypedMultiTable<'_, K, V>> {
        Ok(TypedMultiTable::of(self.table.view()?))
    }

    /// Stores a pair; returns true if it is new.
    ///
    /// # Errors
    /// As for [`MultiTableMut::put`].
    pub fn put(&mut self, key: &K, value: &V) -> Result<bool> {
        self.table.put(&key.to_key(), &value.to_key())
    }

    /// Stores many values of one key; returns the number of new ones.
    ///
    /// # Errors
    /// As for [`MultiTableMut::put_many`].
    pub fn put_many(&mut self, key: &K, values: &[V]) -> Result<u64> {
        let values: Vec<_> = values.iter().map(Ordered::to_key).collect();
        self.table.put_many(&key.to_key(), &values)
    }

    /// Appends a pair after all others.
    ///
    /// # Errors
    /// As for [`MultiTableMut::append`].
    pub fn append(&mut self, key: &K, value: &V) -> Result<()> {
        self.table.append(&key.to_key(), &value.to_key())
    }

    /// Appends a value after all others of its key.
    ///
    /// # Errors
    /// As for [`MultiTableMut::append_dup`].
    pub fn append_dup(&mut self, key: &K, value: &V) -> Result<()> {
        self.table.append_dup(&key.to_key(), &value.to_key())
    }

    /// Removes everything.
    ///
    /// # Errors
    /// As for [`MultiTableMut::clear`].
    pub fn clear(&mut self) -> Result<()> {
        self.table.clear()
    }

    /// Stores a pair if the key has no value yet; returns whether it was stored.
    ///
    /// # Errors
    /// As for [`MultiTableMut::insert`].
    pub fn insert(&mut self, key: &K, value: &V) -> Result<bool> {
        self.table.insert(&key.to_key(), &value.to_key())
    }

    /// Replaces the single value of an existing key by `value`; returns whether the key exists.
    ///
    /// # Errors
    /// As for [`MultiTableMut::update`].
    pub fn update(&mut self, key: &K, value: &V) -> Result<bool> {
        self.table.update(&key.to_key(), &value.to_key())
    }

    /// Replaces one value of a key by another; returns whether the pair existed.
    ///
    /// # Errors
    /// As for [`MultiTableMut::replace`].
    pub fn replace(&mut self, key: &K, old: &V, new: &V) -> Result<bool> {
        let (old, new) = (old.to_key(), new.to_key());
        self.table.replace(&key.to_key(), &old, &new)
    }

    /// Removes a pair; returns whether it existed.
    ///
    /// # Errors
    /// As for [`MultiTableMut::remove`].
    pub fn remove(&mut self, key: &K, value: &V) -> Result<bool> {
        self.table.remove(&key.to_key(), &value.to_key())
    }

    /// Removes a key that has a single value, and returns the value.
    ///
    /// # Errors
    /// As for [`MultiTableMut::take`]; a value that does not decode as `V`: it is removed then.
    pub fn take(&mut self, key: &K) -> Result<Option<V>> {
        let old = self.table.take(&key.to_key())?;
        old.map(|bytes| value_of(self.table.view()?.name(), &bytes))
            .transpose()
    }

    /// Removes all values of a key; returns their number.
    ///
    /// # Errors
    /// As for [`MultiTableMut::remove_all`].
    pub fn remove_all(&mut self, key: &K) -> Result<u64> {
        self.table.remove_all(&key.to_key())
    }

    /// Removes the pairs with keys in a range; returns their number.
    ///
    /// # Errors
    /// As for [`MultiTableMut::remove_range`].
    pub fn remove_range(&mut self, range: impl RangeBounds<K>) -> Result<u64> {
        self.table.remove_range(keys_between(&range))
    }

    /// Removes the values of one key that lie in a range; returns their number.
    ///
    /// # Errors
    /// As for [`MultiTableMut::remove_range_of_pairs`].
    pub fn remove_values_in(&mut self, key: &K, range: impl RangeBounds<V>) -> Result<u64> {
        let pairs = values_between(key, &range);
        self.table.remove_range_of_pairs(pairs)
    }

    /// The underlying table of bytes.
    #[must_use]
    pub fn bytes(&mut self) -> &mut MultiTableMut<'t> {
        &mut self.table
    }
}
