//! Ordered tables for users: byte keys to byte values, in key order.

use crate::catalog::table_name::Named;
use crate::tables::key_range::KeyRange;
use crate::txn::pages::Pages;
use crate::types::error::{Error, Result};
use std::ops::Bound;
use tidalite_kv::{Cursor, Piece, PutRow, Sub, TableShape, Tree, Value};

/// A table in a snapshot, or in a write transaction at one moment.
#[derive(Clone)]
pub struct Table<'a> {
    pages: Pages<'a>,
    sub: Sub<'a>,
    /// The name of the table, or of the outermost table that it is nested in.
    named: Named<'a>,
}

impl<'a> Table<'a> {
    pub(crate) fn new(pages: Pages<'a>, tree: Tree, named: Named<'a>) -> Self {
        Self {
            pages,
            sub: Sub::of(tree),
            named,
        }
    }

    pub(crate) fn name(&self) -> &str {
        self.named.as_str()
    }

    /// The pages of the table, and its tree if it has pages of its own.
    pub(crate) fn parts(&self) -> (Pages<'a>, Option<&Tree>) {
        (self.pages, self.sub.tree())
    }

    /// The table nested under a key; `None` if the key does not exist. Costs one page per level.
    ///
    /// # Errors
    /// `Store` with `Unsupported` if the key holds a value; a damaged or unreadable page.
    pub fn nested(&self, key: &[u8]) -> Result<Option<Self>> {
        self.nested_at(&[key])
    }

    /// The table at the end of a path of keys; `None` if one of them does not exist.
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
        let (pages, named) = (self.pages, self.named.clone());
        Ok(Some(Self { pages, sub, named }))
    }

    /// An empty table in place of this one.
    pub(crate) fn emptied(self) -> Self {
        Self::new(self.pages, Tree::new(0), self.named)
    }

    /// Adds the table's name to an error.
    pub(crate) fn error(&self, error: tidalite_pager::Error) -> Error {
        self.named.error(error)
    }

    /// Page statistics of the table: levels, branches, leaves, pages of long values and keys, and of nested tables. A
    /// small nested table is stored in a leaf of its parent and has no pages; its long values and keys are counted with
    /// the parent.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::MemoryStorage::new()))?;
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
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// Reads each branch; also the leaves if some rows may lead to other pages.
    pub fn shape(&self) -> Result<TableShape> {
        let tree = self.sub.tree();
        let shape = tree.map(|tree| tree.shape(&self.pages)).transpose()?;
        Ok(shape.unwrap_or_default())
    }

    /// The values of many keys in their order, `None` for a missing key. Sorted keys are best; the memory waits of
    /// sixteen keys overlap.
    ///
    /// # Errors
    /// A damaged or unreadable page; `IsTable` if a key holds a nested table, for the whole call, because `None` would
    /// mean a missing key. The error names the key, so that the caller can leave it out.
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Lent<'_>>>> {
        let mut found = Vec::with_capacity(keys.len());
        let mut failed = None;
        let done = self.sub.get_many(&self.pages, keys, |_, value| {
            match value.map(Lent::of).transpose() {
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
    pub fn contains(&self, key: &[u8]) -> Result<bool> {
        Ok(self.sub.contains(&self.pages, key)?)
    }

    /// Number of keys below `key`. Cost: one page per level.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn rank(&self, key: &[u8]) -> Result<u64> {
        Ok(self.sub.rank(&self.pages, key)?)
    }

    /// The exact number of keys in a range. Cost: a descent for each of its bounds, for any range.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn count_range(&self, range: impl KeyRange) -> Result<u64> {
        let (from, to) = self.ranks(&range)?;
        Ok(to.saturating_sub(from))
    }

    fn ranks(&self, range: &impl KeyRange) -> Result<(u64, u64)> {
        // The next key after a key is the key with a zero byte appended.
        let above = |key: &[u8]| self.rank(&[key, &[0]].concat());
        let from = match range.begin() {
            Bound::Unbounded => 0,
            Bound::Included(key) => self.rank(key)?,
            Bound::Excluded(key) => above(key)?,
        };
        let to = match range.end() {
            Bound::Unbounded => self.count(),
            Bound::Excluded(key) => self.rank(key)?,
            Bound::Included(key) => above(key)?,
        };
        Ok((from, to))
    }

    /// Keys that split a range into `parts` of equal size (within one entry), for parallel scans: one less than
    /// `parts`, fewer if there are not enough entries. Cost: one descent per key.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn split(&self, range: impl KeyRange, parts: usize) -> Result<Vec<Vec<u8>>> {
        let ranks = self.ranks(&range)?;
        Ok(self.sub.split_range(&self.pages, ranks, parts)?)
    }

    /// The next number of the table's sequence.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sub.sequence()
    }

    pub(crate) fn find(&self, key: &[u8]) -> Result<Option<Value<'_>>> {
        let found = self.sub.get(&self.pages, key);
        found.map_err(|error| self.error(error))
    }

    /// The value of a key. Cost: one page per level.
    ///
    /// # Errors
    /// A damaged or unreadable page; `IsTable` if the key holds a nested table.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let value = self.find(key)?;
        Ok(value.map(|value| value.to_vec()).transpose()?)
    }

    /// The value of a key without a copy: borrowed from the snapshot or the transaction if it is stored in its leaf.
    /// Cost: as for `get`.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::MemoryStorage::new()))?;
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
    pub fn get_ref(&self, key: &[u8]) -> Result<Option<Lent<'a>>> {
        let value = match self.pages {
            Pages::Snapshot(pages) => self.sub.get(pages, key),
            Pages::Writer(pages) => self.sub.get(pages, key),
            Pages::Uncommitted(pages) => self.sub.get(pages, key),
        };
        let value = value.map_err(|error| self.error(error))?;
        value.map(Lent::of).transpose()
    }

    /// Number of entries, without reading any.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.sub.len()
    }

    /// A bidirectional cursor over the pairs.
    #[must_use]
    pub fn cursor(&self) -> TableCursor<'_> {
        let (inner, damage) = match self.sub.cursor(&self.pages) {
            Ok(inner) => (inner, None),
            Err(error) => (Tree::new(0).cursor(&self.pages), Some(error.to_string())),
        };
        TableCursor {
            inner,
            pages: self.pages,
            named: self.named.clone(),
            damage,
        }
    }

    /// Calls `f` with every pair in key order.
    ///
    /// # Errors
    /// A damaged or unreadable page; `IsTable` if an entry is a nested table.
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

/// A value, borrowed from its leaf, or read into memory if it is stored in pieces.
#[derive(Clone, Debug)]
pub struct Lent<'a>(Held<'a>);

#[derive(Clone, Debug)]
enum Held<'a> {
    Leaf(Piece<'a>),
    Memory(Vec<u8>),
}

impl<'a> Lent<'a> {
    #[inline]
    fn of(value: Value<'a>) -> Result<Self> {
        Ok(Self(match value.into_piece() {
            Ok(piece) => Held::Leaf(piece),
            Err(value) => Held::Memory(value.to_vec()?),
        }))
    }
}

impl std::ops::Deref for Lent<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Held::Leaf(piece) => piece,
            Held::Memory(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for Lent<'_> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

#[cold]
fn damaged(found: &str) -> Error {
    let expected = "a small nested table";
    tidalite_base::Corrupt::new("nested table", 0, found, expected).into()
}

/// Steps through a table. Each move returns whether there is an entry at the new position.
#[derive(Clone)]
pub struct TableCursor<'a> {
    inner: Cursor<'a, Pages<'a>>,
    pages: Pages<'a>,
    named: Named<'a>,
    /// Damage of a small nested table, reported by the first move.
    damage: Option<String>,
}

impl<'a> TableCursor<'a> {
    #[inline]
    fn check(&self) -> Result<()> {
        match &self.damage {
            None => Ok(()),
            Some(found) => Err(damaged(found)),
        }
    }

    /// Moves to the first entry above `key`.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn seek_gt(&mut self, key: &[u8]) -> Result<bool> {
        self.check()?;
        Ok(self.inner.seek_gt(key)?)
    }

    /// Moves to the last entry below `key`.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn seek_lt(&mut self, key: &[u8]) -> Result<bool> {
        self.check()?;
        Ok(self.inner.seek_lt(key)?)
    }

    /// Moves to exactly this key; if it does not exist, moves as `seek_ge` does and returns false.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.check()?;
        Ok(self.inner.seek(key)?)
    }

    /// Moves to the entry with this rank, counted from 0. Cost: one page per level.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn select(&mut self, rank: u64) -> Result<bool> {
        self.check()?;
        Ok(self.inner.select(rank)?)
    }

    /// The rank of the current entry; `None` if the cursor is at no entry. `select` is the inverse. Cost: reads no
    /// page, adds up the counts in the pages of the descent path.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::MemoryStorage::new()))?;
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

    /// True if a step forward went past the end, or the table is empty.
    #[must_use]
    pub fn eof(&self) -> bool {
        self.inner.eof()
    }

    /// True if the current entry is a nested table, not a value.
    ///
    /// # Panics
    /// If the last move found no entry.
    #[must_use]
    pub fn is_nested(&self) -> bool {
        self.inner.is_nested()
    }

    /// The current nested table; `None` if the entry is a value. Costs nothing if the table is stored in its leaf: a
    /// path level with any name, such as `a/b/+/4`, is thus a walk over the table `a/b`.
    ///
    /// # Errors
    /// Damage.
    ///
    /// # Panics
    /// If the last move found no entry.
    pub fn nested(&self) -> Result<Option<Table<'a>>> {
        if !self.is_nested() {
            return Ok(None);
        }
        let sub = self.inner.nested()?;
        let (pages, named) = (self.pages, self.named.clone());
        Ok(Some(Table { pages, sub, named }))
    }

    /// Moves to the first entry.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn first(&mut self) -> Result<bool> {
        self.check()?;
        Ok(self.inner.first()?)
    }

    /// Moves to the last entry.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn last(&mut self) -> Result<bool> {
        self.check()?;
        Ok(self.inner.last()?)
    }

    /// Moves to the first entry at or above `key` (ceiling).
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn seek_ge(&mut self, key: &[u8]) -> Result<bool> {
        self.check()?;
        Ok(self.inner.seek_ge(key)?)
    }

    /// Moves to the last entry at or below `key` (floor).
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn seek_le(&mut self, key: &[u8]) -> Result<bool> {
        self.check()?;
        Ok(self.inner.seek_le(key)?)
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
        // A damaged table has no leaf.
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

    /// Moves to the previous entry.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn previous(&mut self) -> Result<bool> {
        self.check()?;
        Ok(self.inner.previous()?)
    }

    /// The current key.
    ///
    /// # Panics
    /// If the last move found no entry.
    #[must_use]
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.inner.key()
    }

    /// Passes the current entry and those after it, up to the next nested table; returns false if that is the end of
    /// the table.
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

    /// The current key and value.
    pub(crate) fn entry(&self) -> Result<(Vec<u8>, Lent<'a>)> {
        Ok((self.key().to_vec(), Lent::of(self.plain_value()?)?))
    }

    fn plain_value(&self) -> Result<Value<'a>> {
        let value = self.inner.plain_value();
        value.map_err(|error| self.named.error(error))
    }

    /// The current value, if it is stored in its leaf; `None` if it is stored in pieces (then use `value`).
    ///
    /// # Panics
    /// If the last move found no entry.
    #[must_use]
    #[inline]
    pub fn value_ref(&self) -> Option<&[u8]> {
        self.inner.value_slice()
    }

    /// The current value.
    ///
    /// # Errors
    /// A damaged or unreadable large value; `IsTable` if the entry is a nested table.
    ///
    /// # Panics
    /// If the last move found no entry.
    pub fn value(&self) -> Result<Vec<u8>> {
        Ok(self.plain_value()?.to_vec()?)
    }

    /// Resets the cursor to before the first entry, of this or another table, of this or another snapshot, reusing its
    /// memory.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::MemoryStorage::new()))?;
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
    pub fn renew(&mut self, table: &'a Table<'_>) {
        let Some(tree) = table.sub.tree() else {
            *self = table.cursor();
            return;
        };
        self.inner.renew(tree, &table.pages);
        (self.pages, self.damage) = (table.pages, None);
        self.named = table.named.clone();
    }
}
