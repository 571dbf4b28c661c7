//! Ordered tables with one value per key, for reading.

use crate::catalog::table_name::Named;
use crate::tables::codec::{AsArg, TableKey, TableValue, key_of, lent_of, value_of};
use crate::tables::key_range::{KeyRange, lent};
use crate::tables::lent::Lent;
use crate::txn::pages::Pages;
use crate::types::error::{Error, Result};
use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::Bound;
use tidalite_kv::{TableReader, TableShape, Tree, Value};

/// A table in a snapshot, or in the current state of a write transaction. Keys are of type `K`, in the order of that
/// type, values of type `V`; both are plain bytes by default.
///
/// ```
/// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
/// let mut tx = db.begin_write()?;
/// let mut heights = tx.typed_table::<(String, i32), f64>("heights")?;
/// heights.put(&("north".into(), -3), &80.5)?;
/// heights.put(&("north".into(), 2), &91.0)?;
/// tx.commit()?;
///
/// let snap = db.begin_read()?;
/// let heights = snap.typed_table::<(String, i32), f64>("heights")?.ok_or("no table")?;
/// assert_eq!(heights.get(&("north".into(), 2))?, Some(91.0));
/// let rows: Result<Vec<_>, _> = heights.iter().collect();
/// assert_eq!(rows?, [(("north".into(), -3), 80.5), (("north".into(), 2), 91.0)]);
/// // `str` is the type of text that is given as `&str`.
/// let mut tx = db.begin_write()?;
/// let mut limits = tx.typed_table::<str, Option<u32>>("limits")?;
/// limits.put("pressure", &Some(16))?;
/// assert_eq!(limits.get("pressure")?, Some(Some(16)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Table<'a, K: ?Sized = [u8], V: ?Sized = [u8]> {
    pub(crate) pages: Pages<'a>,
    pub(crate) sub: TableReader<'a>,
    /// Name of the table; for a nested table, name of the outermost table.
    pub(crate) named: Named<'a>,
    types: PhantomData<fn(&K, &V)>,
}

impl<K: ?Sized, V: ?Sized> Clone for Table<'_, K, V> {
    fn clone(&self) -> Self {
        Self {
            pages: self.pages,
            sub: self.sub.clone(),
            named: self.named.clone(),
            types: PhantomData,
        }
    }
}

impl<'a, K: ?Sized, V: ?Sized> Table<'a, K, V> {
    pub(crate) fn new(pages: Pages<'a>, tree: Tree, named: Named<'a>) -> Self {
        Self::of(pages, TableReader::of(tree), named)
    }

    pub(crate) fn of(pages: Pages<'a>, sub: TableReader<'a>, named: Named<'a>) -> Self {
        Self {
            pages,
            sub,
            named,
            types: PhantomData,
        }
    }

    /// This table with keys and values as plain bytes.
    #[must_use]
    pub fn bytes(&self) -> Table<'a> {
        Table::of(self.pages, self.sub.clone(), self.named.clone())
    }

    /// The source from which pages are read, and the table's tree; `None` for a nested table without pages of its own.
    pub(crate) fn parts(&self) -> (Pages<'a>, Option<&Tree>) {
        (self.pages, self.sub.tree())
    }

    /// An empty table with the same name and source of pages.
    pub(crate) fn emptied(self) -> Self {
        Self::new(self.pages, Tree::new(0), self.named)
    }

    /// Adds the table's name to an error.
    pub(crate) fn error(&self, error: tidalite_pager::Error) -> Error {
        self.named.error(error)
    }
}

impl<'a, K: TableKey + ?Sized, V: TableValue + ?Sized> Table<'a, K, V> {
    fn value(&self, bytes: Lent<'_>) -> Result<V::Owned> {
        value_of::<V>(&self.named, bytes)
    }

    /// Page statistics of the table: levels, branches, leaves, pages of long values and keys, and of nested tables. A
    /// small nested table is stored in a leaf of its parent and has no pages; its long values and keys are counted with
    /// the parent.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// tx.table("t")?.extend((0..1000u32).map(|i| (i.to_be_bytes(), "value")))?;
    /// tx.table("t")?.put(b"long", &[7; 10_000])?;
    /// tx.commit()?;
    /// let snap = db.begin_read()?;
    /// let shape = snap.table("t")?.ok_or("no table")?.shape()?;
    /// assert_eq!((shape.depth, shape.branch_pages, shape.overflow_pages), (2, 1, 3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Reads each branch; also reads the leaves if some rows may lead to other pages.
    ///
    /// # Cost
    /// Reads each branch; also the leaves if some rows may lead to other pages.
    pub fn shape(&self) -> Result<TableShape> {
        let tree = self.sub.tree();
        let shape = tree.map(|tree| tree.shape(&self.pages)).transpose()?;
        Ok(shape.unwrap_or_default())
    }

    /// The values of many keys, in the order of the keys; `None` for a missing key. Sorted keys are fastest. The memory
    /// accesses of sixteen keys overlap.
    ///
    /// # Errors
    /// A damaged or unreadable page; `WrongType` if a key holds a nested table. An error is for the whole call, because
    /// `None` would mean a missing key. The error names the key, so that the caller can call again without that key.
    pub fn get_many<A: AsArg<K>>(&self, keys: &[A]) -> Result<Vec<Option<V::Lent<'_>>>> {
        let keys: Vec<Cow<'_, [u8]>> = keys.iter().map(|key| key.as_arg().key_code()).collect();
        let mut found = Vec::with_capacity(keys.len());
        let mut failed = None;
        let lend = |value| lent_of::<V>(&self.named, Lent::of(value)?);
        let done = self.sub.get_many(&self.pages, &keys, |_, value| {
            match value.map(lend).transpose() {
                Ok(value) => found.push(value),
                Err(error) => failed = Some(error),
            }
            Ok(())
        });
        done.map_err(|error| self.error(error))?;
        failed.map_or(Ok(found), Err)
    }

    /// Whether a key exists. Cost: as for `get`.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn contains(&self, key: &K) -> Result<bool> {
        Ok(self.sub.contains(&self.pages, &key.key_code())?)
    }

    /// Number of keys less than `key`. Cost: one page per level.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn rank(&self, key: &K) -> Result<u64> {
        self.rank_of(&key.key_code())
    }

    fn rank_of(&self, key: &[u8]) -> Result<u64> {
        Ok(self.sub.rank(&self.pages, key)?)
    }

    /// The exact number of keys in a range. Cost: one descent for each bound of the range, however long the range is.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn count_range(&self, range: impl KeyRange<K>) -> Result<u64> {
        let (from, to) = range.bounds();
        let (from, to) = self.ranks(lent(&from), lent(&to))?;
        Ok(to.saturating_sub(from))
    }

    /// The number of keys before a range, and the number of keys before its end.
    pub(crate) fn ranks(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Result<(u64, u64)> {
        // The least key above a given key is that key with a zero byte appended.
        let above = |key: &[u8]| self.rank_of(&[key, &[0]].concat());
        let from = match from {
            Bound::Unbounded => 0,
            Bound::Included(key) => self.rank_of(key)?,
            Bound::Excluded(key) => above(key)?,
        };
        let to = match to {
            Bound::Unbounded => self.count(),
            Bound::Excluded(key) => self.rank_of(key)?,
            Bound::Included(key) => above(key)?,
        };
        Ok((from, to))
    }

    /// Keys that split a range into `parts` parts of equal size (within one entry), for parallel scans. Returns one key
    /// less than `parts`, or fewer if there are not enough entries. Cost: one descent per key.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn split(&self, range: impl KeyRange<K>, parts: usize) -> Result<Vec<K::Owned>> {
        let (from, to) = range.bounds();
        let ranks = self.ranks(lent(&from), lent(&to))?;
        let cuts = self.sub.split_range(&self.pages, ranks, parts)?;
        let keys = cuts.iter().map(|key| key_of::<K>(&self.named, key));
        keys.collect()
    }

    /// The number that the table's sequence assigns next.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sub.sequence()
    }

    pub(crate) fn find(&self, key: &[u8]) -> Result<Option<Value<'_>>> {
        let found = self.sub.get(&self.pages, key);
        found.map_err(|error| self.error(error))
    }

    /// The value of a key; `None` if the key does not exist. Cost: one page per level.
    ///
    /// # Errors
    /// A damaged or unreadable page; `WrongType` if the key holds a nested table, or its bytes do not decode as `V`.
    pub fn get(&self, key: &K) -> Result<Option<V::Owned>> {
        self.get_code(&key.key_code())
    }

    /// The value of the key with these stored bytes.
    pub(crate) fn get_code(&self, key: &[u8]) -> Result<Option<V::Owned>> {
        let value = self.find(key)?;
        value.map(|value| self.value(Lent::of(value)?)).transpose()
    }

    /// Number of entries. Reads nothing.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.sub.len()
    }
}

impl<'a, K: TableKey + ?Sized> Table<'a, K> {
    /// The bytes of the value of a key without a copy: they are borrowed from the snapshot or the transaction if the
    /// value is stored in its leaf. Cost: as for `get`.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// # let mut tx = db.begin_write()?;
    /// # tx.table("t")?.put(b"a", b"1")?;
    /// # tx.commit()?;
    /// let snap = db.begin_read()?;
    /// // The value outlives the table.
    /// let value = snap.table("t")?.ok_or("no table")?.get_ref(b"a")?;
    /// assert_eq!(value.as_deref(), Some(&b"1"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for `get`.
    #[inline]
    pub fn get_ref(&self, key: &K) -> Result<Option<Lent<'a>>> {
        let key = &key.key_code();
        let value = match self.pages {
            Pages::Snapshot(pages) => self.sub.get(pages, key),
            Pages::Writer(pages) => self.sub.get(pages, key),
            Pages::Uncommitted(pages) => self.sub.get(pages, key),
        };
        let value = value.map_err(|error| self.error(error))?;
        value.map(Lent::of).transpose()
    }
}

impl<'a> Table<'a> {
    /// This table with other types of keys and values, whatever was stored in it. Bytes of another type are an error
    /// (`WrongType`) only if they do not decode. Use this for nested tables, and for tables of programs that store
    /// bytes.
    #[must_use]
    pub fn typed<K: TableKey + ?Sized, V: TableValue + ?Sized>(self) -> Table<'a, K, V> {
        Table::of(self.pages, self.sub, self.named)
    }

    /// The table nested under a key; `None` if the key does not exist. Cost: one page per level.
    ///
    /// # Errors
    /// [`WrongType`](crate::ErrorKind::WrongType) if the key holds a value; a damaged or unreadable page.
    pub fn nested(&self, key: &[u8]) -> Result<Option<Self>> {
        self.nested_at(&[key])
    }

    /// The table at the end of a path of keys, each of which leads to a nested table; `None` if one of the keys does
    /// not exist.
    ///
    /// # Errors
    /// As for `nested`.
    pub fn nested_at<K: AsRef<[u8]>>(&self, path: &[K]) -> Result<Option<Self>> {
        let mut sub = self.sub.clone();
        for key in path {
            let below = match self.pages {
                Pages::Snapshot(pages) => sub.nested(pages, key.as_ref())?,
                Pages::Writer(pages) => sub.nested(pages, key.as_ref())?,
                Pages::Uncommitted(pages) => sub.nested(pages, key.as_ref())?,
            };
            match below {
                Some(below) => sub = below,
                None => return Ok(None),
            }
        }
        Ok(Some(Self::of(self.pages, sub, self.named.clone())))
    }
}
