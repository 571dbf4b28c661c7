//! Tables of keys and values of Rust types, on top of tables of bytes.

use crate::tables::table::{Lent, Table};
use crate::tables::table_mut::TableMut;
use crate::types::error::{Error, Result};
use crate::types::text_form::key_text;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use tidalite_base::{Ordered, text_key};

/// A table with keys of type `K`, in their order, and values of type `V`.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("tidalite-typed-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir)?;
/// # let db = tidalite::Database::open(dir.join("typed.tdl"))?;
/// use tidalite::{TypedTable, TypedTableMut};
///
/// let mut tx = db.begin_write()?;
/// let mut heights = TypedTableMut::<(String, i32), f64>::of(tx.table("heights")?);
/// heights.put(&("north".into(), -3), &80.5)?;
/// heights.put(&("north".into(), 2), &91.0)?;
/// tx.commit()?;
///
/// let snap = db.begin_read()?;
/// let heights = TypedTable::<(String, i32), f64>::of(snap.table("heights")?.ok_or("no table")?);
/// assert_eq!(heights.get(&("north".into(), 2))?, Some(91.0));
/// let mut rows = Vec::new();
/// heights.for_each(|key, value| rows.push((key.1, value)))?;
/// assert_eq!(rows, [(-3, 80.5), (2, 91.0)]);
/// # drop(heights); drop(snap); drop(db); std::fs::remove_dir_all(dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TypedTable<'a, K, V> {
    table: Table<'a>,
    types: PhantomData<(K, V)>,
}

/// Decodes a key or value of a table as the requested type.
pub(crate) fn decode<T: Ordered>(table: &str, part: &'static str, bytes: &[u8]) -> Result<T> {
    T::from_key(bytes).ok_or_else(|| Error::WrongType {
        table: table.to_owned(),
        part,
        expected: std::any::type_name::<T>(),
        found: format!("{} bytes, {}", bytes.len(), key_text(bytes)),
    })
}

fn bytes_of<K: Ordered>(range: &impl RangeBounds<K>) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let bytes = |bound: Bound<&K>| bound.map(Ordered::to_key);
    (bytes(range.start_bound()), bytes(range.end_bound()))
}

impl<'a, K: Ordered, V: Ordered> TypedTable<'a, K, V> {
    /// Reads a table with these types.
    #[must_use]
    pub fn of(table: Table<'a>) -> Self {
        Self {
            table,
            types: PhantomData,
        }
    }

    fn key(&self, bytes: &[u8]) -> Result<K> {
        decode(self.table.name(), "key", bytes)
    }

    fn value(&self, bytes: &[u8]) -> Result<V> {
        decode(self.table.name(), "value", bytes)
    }

    fn pair(&self, key: &[u8], value: &[u8]) -> Result<(K, V)> {
        Ok((self.key(key)?, self.value(value)?))
    }

    fn get_coded(&self, key: &[u8]) -> Result<Option<V>> {
        let value = self.table.get_ref(key)?;
        value.map(|bytes| self.value(&bytes)).transpose()
    }

    /// The value of a key.
    ///
    /// # Errors
    /// A damaged or unreadable page; bytes that do not decode as `V` (`WrongType`).
    pub fn get(&self, key: &K) -> Result<Option<V>> {
        self.get_coded(&key.to_key())
    }

    /// The values of many keys in their order, `None` for a missing key. Sorted keys are best; the memory waits of
    /// sixteen keys overlap.
    ///
    /// # Errors
    /// As for `get`.
    pub fn get_many(&self, keys: &[K]) -> Result<Vec<Option<V>>> {
        let keys: Vec<_> = keys.iter().map(Ordered::to_key).collect();
        let values = self.table.get_many(&keys)?.into_iter();
        values
            .map(|value| value.map(|bytes| self.value(&bytes)).transpose())
            .collect()
    }

    /// Whether a key exists.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn contains(&self, key: &K) -> Result<bool> {
        self.table.contains(&key.to_key())
    }

    /// Number of pairs, without reading any.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.table.count()
    }

    /// True without pairs. Reads nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Number of keys below `key`. Cost: one page per level.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn rank(&self, key: &K) -> Result<u64> {
        self.table.rank(&key.to_key())
    }

    /// The exact number of keys in a range. Cost: two descents, for any range.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn count_range(&self, range: impl RangeBounds<K>) -> Result<u64> {
        self.table.count_range(bytes_of(&range))
    }

    /// Keys that split a range into `parts` of equal size: see [`Table::split`].
    ///
    /// # Errors
    /// A damaged or unreadable page; bytes that do not decode as `K` (`WrongType`).
    pub fn split(&self, range: impl RangeBounds<K>, parts: usize) -> Result<Vec<K>> {
        let cuts = self.table.split(bytes_of(&range), parts)?;
        cuts.iter().map(|key| self.key(key)).collect()
    }

    /// The pair with the greatest key at or below this one. Cost: one page per level.
    ///
    /// # Errors
    /// A damaged or unreadable page; bytes that do not decode as `K` or `V` (`WrongType`).
    pub fn floor(&self, key: &K) -> Result<Option<(K, V)>> {
        let mut cursor = self.table.cursor();
        let found = cursor.seek_le(&key.to_key())?;
        found
            .then(|| self.pair(cursor.key(), &cursor.value()?))
            .transpose()
    }

    /// The pair with the least key at or above this one. Cost: one page per level.
    ///
    /// # Errors
    /// As for `floor`.
    pub fn ceiling(&self, key: &K) -> Result<Option<(K, V)>> {
        let mut cursor = self.table.cursor();
        let found = cursor.seek_ge(&key.to_key())?;
        found
            .then(|| self.pair(cursor.key(), &cursor.value()?))
            .transpose()
    }

    /// The pair with the least key.
    ///
    /// # Errors
    /// A damaged or unreadable page; bytes that do not decode as `K` or `V` (`WrongType`).
    pub fn first(&self) -> Result<Option<(K, V)>> {
        let first = self.table.first()?;
        first
            .map(|(key, value)| self.pair(&key, &value))
            .transpose()
    }

    /// The pair with the greatest key.
    ///
    /// # Errors
    /// A damaged or unreadable page; bytes that do not decode as `K` or `V` (`WrongType`).
    pub fn last(&self) -> Result<Option<(K, V)>> {
        let last = self.table.last()?;
        last.map(|(key, value)| self.pair(&key, &value)).transpose()
    }

    /// Calls `f` with every pair in key order.
    ///
    /// # Errors
    /// A damaged or unreadable page; bytes that do not decode as `K` or `V` (`WrongType`).
    pub fn for_each(&self, mut f: impl FnMut(K, V)) -> Result<()> {
        let mut cursor = self.table.cursor();
        while cursor.next()? {
            let (key, value) = match cursor.value_ref() {
                Some(bytes) => self.pair(cursor.key(), bytes)?,
                None => self.pair(cursor.key(), &cursor.value()?)?,
            };
            f(key, value);
        }
        Ok(())
    }

    /// The pairs with keys in a range, from either end.
    ///
    /// # Errors
    /// A damaged or unreadable page; for single pairs: bytes that do not decode as `K` or `V` (`WrongType`).
    pub fn range(
        &self,
        range: impl RangeBounds<K>,
    ) -> Result<impl DoubleEndedIterator<Item = Result<(K, V)>>> {
        let entries = self.table.range(bytes_of(&range))?;
        Ok(entries.map(|entry| {
            let (key, value) = entry?;
            self.pair(&key, &value)
        }))
    }

    /// The underlying table of bytes.
    #[must_use]
    pub fn bytes(&self) -> &Table<'a> {
        &self.table
    }
}

impl<V: Ordered> TypedTable<'_, String, V> {
    /// The value of a key given as a `&str`, without building a `String`.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::MemoryStorage::new()))?;
    /// use tidalite::TypedTableMut;
    ///
    /// let mut tx = db.begin_write()?;
    /// let mut heights = TypedTableMut::<String, f64>::of(tx.table("heights")?);
    /// heights.put(&"north".to_owned(), &80.5)?;
    /// let heights = heights.view()?;
    /// assert_eq!(heights.get_str("north")?, Some(80.5));
    /// assert!(!heights.contains_str("south")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for `get`.
    pub fn get_str(&self, key: &str) -> Result<Option<V>> {
        self.get_coded(&text_key(key))
    }

    /// Whether a key exists, as for `get_str`.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn contains_str(&self, key: &str) -> Result<bool> {
        self.table.contains(&text_key(key))
    }
}

/// A typed table in a write transaction.
pub struct TypedTableMut<'t, K, V> {
    table: TableMut<'t>,
    types: PhantomData<(K, V)>,
}

impl<'t, K: Ordered, V: Ordered> TypedTableMut<'t, K, V> {
    /// Changes a table with these types.
    #[must_use]
    pub fn of(table: TableMut<'t>) -> Self {
        Self {
            table,
            types: PhantomData,
        }
    }

    /// Stores a pair; returns true if the key is new.
    ///
    /// # Errors
    /// As for [`TableMut::put`].
    pub fn put(&mut self, key: &K, value: &V) -> Result<bool> {
        self.table.put(&key.to_key(), &value.to_key())
    }

    /// Stores a pair if the key does not exist; returns whether it was stored.
    ///
    /// # Errors
    /// As for [`TableMut::put`].
    pub fn insert(&mut self, key: &K, value: &V) -> Result<bool> {
        self.table.insert(&key.to_key(), &value.to_key())
    }

    /// Stores a value under an existing key; returns whether it was stored.
    ///
    /// # Errors
    /// As for [`TableMut::put`].
    pub fn update(&mut self, key: &K, value: &V) -> Result<bool> {
        self.table.update(&key.to_key(), &value.to_key())
    }

    /// Stores a pair and returns the replaced value.
    ///
    /// # Errors
    /// As for [`TableMut::put`]; an old value that does not decode as `V` (`WrongType`): the new one is stored then.
    pub fn replace(&mut self, key: &K, value: &V) -> Result<Option<V>> {
        let old = self.table.replace(&key.to_key(), &value.to_key())?;
        old.map(|bytes| self.view()?.value(&bytes)).transpose()
    }

    /// Sets the value of a key to `new` if it is `expected`; `None` stands for no value. Returns whether it was
    /// `expected`.
    ///
    /// # Errors
    /// As for [`TableMut::compare_and_set`].
    pub fn compare_and_set(
        &mut self,
        key: &K,
        expected: Option<&V>,
        new: Option<&V>,
    ) -> Result<bool> {
        let (expected, new) = (expected.map(V::to_key), new.map(V::to_key));
        self.table
            .compare_and_set(&key.to_key(), expected.as_deref(), new.as_deref())
    }

    /// Removes a key if its value is `expected`; returns whether it was removed.
    ///
    /// # Errors
    /// As for [`TableMut::remove_if`].
    pub fn remove_if(&mut self, key: &K, expected: &V) -> Result<bool> {
        self.table.remove_if(&key.to_key(), &expected.to_key())
    }

    /// Appends a pair after all others.
    ///
    /// # Errors
    /// `OutOfOrder` if the key is not above the last one: nothing has changed; else as for [`TableMut::append`].
    pub fn append(&mut self, key: &K, value: &V) -> Result<()> {
        self.table.append(&key.to_key(), &value.to_key())
    }

    /// Stores many pairs; ascending keys above the last one fill pages completely. Returns the number of new keys.
    ///
    /// # Errors
    /// As for [`TableMut::extend`].
    pub fn extend(&mut self, pairs: impl IntoIterator<Item = (K, V)>) -> Result<u64> {
        let coded = pairs.into_iter();
        self.table
            .extend(coded.map(|(key, value)| (key.to_key(), value.to_key())))
    }

    /// Removes the pair with the least key and returns it.
    ///
    /// # Errors
    /// As for [`TableMut::pop_first`]; bytes that do not decode as `K` or `V` (`WrongType`): the pair stays then.
    pub fn pop_first(&mut self) -> Result<Option<(K, V)>> {
        self.pop(|table| table.first())
    }

    /// Removes the pair with the greatest key and returns it.
    ///
    /// # Errors
    /// As for `pop_first`.
    pub fn pop_last(&mut self) -> Result<Option<(K, V)>> {
        self.pop(|table| table.last())
    }

    fn pop(
        &mut self,
        end: impl for<'v> FnOnce(&'v Table<'_>) -> Result<Option<(Vec<u8>, Lent<'v>)>>,
    ) -> Result<Option<(K, V)>> {
        let (key, pair) = {
            let view = self.view()?;
            let Some((key, value)) = end(&view.table)? else {
                return Ok(None);
            };
            let pair = view.pair(&key, &value)?;
            (key, pair)
        };
        self.table.remove(&key)?;
        Ok(Some(pair))
    }

    /// Removes everything.
    ///
    /// # Errors
    /// As for [`TableMut::clear`].
    pub fn clear(&mut self) -> Result<()> {
        self.table.clear()
    }

    /// Removes a key and returns its value.
    ///
    /// # Errors
    /// As for [`TableMut::remove`]; a value that does not decode as `V` (`WrongType`): it is removed then.
    pub fn take(&mut self, key: &K) -> Result<Option<V>> {
        let old = self.table.take(&key.to_key())?;
        old.map(|bytes| self.view()?.value(&bytes)).transpose()
    }

    /// Removes the pairs with keys in a range; returns their number.
    ///
    /// # Errors
    /// As for [`TableMut::remove_range`].
    pub fn remove_range(&mut self, range: impl RangeBounds<K>) -> Result<u64> {
        self.table.remove_range(bytes_of(&range))
    }

    /// The table in its current state, for reading.
    ///
    /// # Errors
    /// As for [`TableMut::view`].
    pub fn view(&self) -> Result<TypedTable<'_, K, V>> {
        Ok(TypedTable::of(self.table.view()?))
    }

    /// The value of a key, own writes included.
    ///
    /// # Errors
    /// A damaged or unreadable page; bytes that do not decode as `V` (`WrongType`).
    pub fn get(&self, key: &K) -> Result<Option<V>> {
        let value = self.table.get(&key.to_key())?;
        value.map(|bytes| self.view()?.value(&bytes)).transpose()
    }

    /// Removes a key; returns whether it existed.
    ///
    /// # Errors
    /// As for [`TableMut::remove`].
    pub fn remove(&mut self, key: &K) -> Result<bool> {
        self.table.remove(&key.to_key())
    }

    /// The underlying table of bytes.
    #[must_use]
    pub fn bytes(&mut self) -> &mut TableMut<'t> {
        &mut self.table
    }
}
