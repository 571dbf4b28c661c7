//! Tables of keys and values of Rust types, over tables of bytes.

use crate::error::Result;
use crate::table::{Lent, Table};
use crate::table_mut::TableMut;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use tidalite_base::{Corrupt, Ordered};

/// A table whose keys are `K`, in their order, and whose values are `V`.
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

pub(crate) fn decode<T: Ordered>(what: &str, bytes: &[u8]) -> Result<T> {
    T::from_key(bytes).ok_or_else(|| {
        let found = format!("{} bytes", bytes.len());
        Corrupt::new(what, 0, found, std::any::type_name::<T>()).into()
    })
}

impl<'a, K: Ordered, V: Ordered> TypedTable<'a, K, V> {
    /// Reads a table as one of these types.
    #[must_use]
    pub fn of(table: Table<'a>) -> Self {
        Self {
            table,
            types: PhantomData,
        }
    }

    /// The value of a key.
    ///
    /// # Errors
    /// A damaged or unreadable page; bytes that are no `V`.
    pub fn get(&self, key: &K) -> Result<Option<V>> {
        let value = self.table.get_ref(&key.to_key())?;
        value
            .map(|bytes| decode("value of a table", &bytes))
            .transpose()
    }

    /// Whether a key is there.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn contains(&self, key: &K) -> Result<bool> {
        self.table.contains(&key.to_key())
    }

    /// Pairs of the table, without reading any.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.table.count()
    }

    /// The pair with the least key.
    ///
    /// # Errors
    /// A damaged or unreadable page; bytes that are no `K` or `V`.
    pub fn first(&self) -> Result<Option<(K, V)>> {
        self.range(..)?.next().transpose()
    }

    /// The pair with the greatest key.
    ///
    /// # Errors
    /// A damaged or unreadable page; bytes that are no `K` or `V`.
    pub fn last(&self) -> Result<Option<(K, V)>> {
        self.range(..)?.next_back().transpose()
    }

    /// Calls `f` with every pair in the order of the keys.
    ///
    /// # Errors
    /// A damaged or unreadable page; bytes that are no `K` or `V`.
    pub fn for_each(&self, mut f: impl FnMut(K, V)) -> Result<()> {
        let mut cursor = self.table.cursor();
        while cursor.next()? {
            let key = decode("key of a table", cursor.key())?;
            let value = match cursor.value_ref() {
                Some(bytes) => decode("value of a table", bytes)?,
                None => decode("value of a table", &cursor.value()?)?,
            };
            f(key, value);
        }
        Ok(())
    }

    /// The pairs with keys in a range, from either end.
    ///
    /// # Errors
    /// A damaged or unreadable page; of a pair: bytes that are no `K` or `V`.
    pub fn range(
        &self,
        range: impl RangeBounds<K>,
    ) -> Result<impl DoubleEndedIterator<Item = Result<(K, V)>>> {
        let bytes = |bound: Bound<&K>| bound.map(Ordered::to_key);
        let ends = (bytes(range.start_bound()), bytes(range.end_bound()));
        let typed = |entry: Result<(Vec<u8>, Lent<'_>)>| {
            let (key, value) = entry?;
            let key = decode("key of a table", &key)?;
            Ok((key, decode("value of a table", &value)?))
        };
        Ok(self.table.range(ends)?.map(typed))
    }

    /// The table of bytes below.
    #[must_use]
    pub fn bytes(&self) -> &Table<'a> {
        &self.table
    }
}

/// A typed table in a write transaction.
pub struct TypedTableMut<'t, K, V> {
    table: TableMut<'t>,
    types: PhantomData<(K, V)>,
}

impl<'t, K: Ordered, V: Ordered> TypedTableMut<'t, K, V> {
    /// Changes a table as one of these types.
    #[must_use]
    pub fn of(table: TableMut<'t>) -> Self {
        Self {
            table,
            types: PhantomData,
        }
    }

    /// Stores a pair; returns true when the key is new.
    ///
    /// # Errors
    /// As for [`TableMut::put`].
    pub fn put(&mut self, key: &K, value: &V) -> Result<bool> {
        self.table.put(&key.to_key(), &value.to_key())
    }

    /// Stores a pair if the key is not there; returns whether it did.
    ///
    /// # Errors
    /// As for [`TableMut::put`].
    pub fn insert(&mut self, key: &K, value: &V) -> Result<bool> {
        self.table.insert(&key.to_key(), &value.to_key())
    }

    /// Stores a value under a key that is there; returns whether it did.
    ///
    /// # Errors
    /// As for [`TableMut::put`].
    pub fn update(&mut self, key: &K, value: &V) -> Result<bool> {
        self.table.update(&key.to_key(), &value.to_key())
    }

    /// Stores a pair and returns the value that it replaces.
    ///
    /// # Errors
    /// As for [`TableMut::put`]; an old value that is no `V`: the new one is stored then.
    pub fn replace(&mut self, key: &K, value: &V) -> Result<Option<V>> {
        let old = self.table.replace(&key.to_key(), &value.to_key())?;
        old.map(|bytes| decode("value of a table", &bytes))
            .transpose()
    }

    /// Removes a key and returns its value.
    ///
    /// # Errors
    /// As for [`TableMut::remove`]; a value that is no `V`: it is removed then.
    pub fn take(&mut self, key: &K) -> Result<Option<V>> {
        let old = self.table.take(&key.to_key())?;
        old.map(|bytes| decode("value of a table", &bytes))
            .transpose()
    }

    /// Removes the pairs with keys in a range; returns how many.
    ///
    /// # Errors
    /// As for [`TableMut::remove_range`].
    pub fn remove_range(&mut self, range: impl RangeBounds<K>) -> Result<u64> {
        let bytes = |bound: Bound<&K>| bound.map(Ordered::to_key);
        let ends = (bytes(range.start_bound()), bytes(range.end_bound()));
        self.table.remove_range(ends)
    }

    /// The table as it stands in this transaction, for reading.
    ///
    /// # Errors
    /// As for [`TableMut::view`].
    pub fn view(&self) -> Result<TypedTable<'_, K, V>> {
        Ok(TypedTable::of(self.table.view()?))
    }

    /// The value of a key, own writes included.
    ///
    /// # Errors
    /// A damaged or unreadable page; bytes that are no `V`.
    pub fn get(&self, key: &K) -> Result<Option<V>> {
        let value = self.table.get(&key.to_key())?;
        value
            .map(|bytes| decode("value of a table", &bytes))
            .transpose()
    }

    /// Removes a key; returns whether it was there.
    ///
    /// # Errors
    /// As for [`TableMut::remove`].
    pub fn remove(&mut self, key: &K) -> Result<bool> {
        self.table.remove(&key.to_key())
    }

    /// The table of bytes below.
    #[must_use]
    pub fn bytes(&mut self) -> &mut TableMut<'t> {
        &mut self.table
    }
}
