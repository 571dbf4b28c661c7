//! Tables of multi-values: each key has a sorted set of values.
//!
//! One value lies in its row, a few lie packed together in the leaf, many have pages of their own. Keys and values of
//! integers are best given in big-endian bytes (see `tidalite_base::order`): they then sort by number.

use crate::catalog::table_name::Named;
use crate::tables::bounds::pairs_between;
use crate::tables::key_range::KeyRange;
use crate::txn::pages::Pages;
use crate::types::error::Result;
use tidalite_kv::{PairCursor, PutRow, TableShape, Tree};

type Pair = (Vec<u8>, Vec<u8>);

/// The first value of a key, and how many it has.
type First = (Vec<u8>, u64);

/// A table of multi-values, of a snapshot or of a write transaction as it stands.
///
/// # Cost
/// The set of a key lies in the key's row, up to a quarter of a page: values of one length there take their bytes and nothing else, others two
/// bytes more. A larger one is a table of its own: a value takes about 8 bytes beside its own, less what it has in common with its neighbours. A
/// pair is reached by one descent, and one in the key's set if that has pages of its own; how many values a key has is told without the latter.
/// Steps, and values that are lent, copy nothing.
#[derive(Clone)]
pub struct MultiTable<'a> {
    pages: Pages<'a>,
    tree: Tree,
    /// For errors.
    named: Named<'a>,
}

impl<'a> MultiTable<'a> {
    pub(crate) fn new(pages: Pages<'a>, tree: Tree, named: Named<'a>) -> Self {
        Self { pages, tree, named }
    }

    pub(crate) fn name(&self) -> &str {
        self.named.as_str()
    }

    /// True without pairs. Reads nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// How the table lies in pages, those of large sets of values included.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// As of [`Table::shape`](crate::Table::shape).
    pub fn shape(&self) -> Result<TableShape> {
        Ok(self.tree.shape(&self.pages)?)
    }

    /// The first value of a key, and how many it has.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn get(&self, key: &[u8]) -> Result<Option<(Vec<u8>, u64)>> {
        Ok(self.get_many(&[key])?.pop().flatten())
    }

    /// How many values a key has. Cost: one page per level.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn count_of(&self, key: &[u8]) -> Result<u64> {
        Ok(self.tree.values_of(&self.pages, key)?)
    }

    /// Whether a pair is there.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn contains(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        Ok(self.tree.contains_pair(&self.pages, key, value)?)
    }

    /// Pairs of the table, without reading any.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.tree.len()
    }

    /// Distinct keys of the table, without reading any.
    #[must_use]
    pub fn count_keys(&self) -> u64 {
        self.tree.keys()
    }

    /// The first value of each of many keys, and how many it has, in the order of the keys; `None` where there is none. Sorted keys are
    /// best; the waits for memory of sixteen keys overlap.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// As many calls of `get`, without the waits for each other.
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<First>>> {
        let mut all = Vec::with_capacity(keys.len());
        self.tree.values_of_many(&self.pages, keys, |_, values| {
            let Some(values) = values else {
                all.push(None);
                return Ok(());
            };
            let mut first = None;
            values.each(&self.pages, |value| {
                first = Some((value.to_vec(), values.len()));
                false
            })?;
            all.push(first);
            Ok(())
        })?;
        Ok(all)
    }

    /// Gives `take` every value of many keys, with the place of its key among them: key after key in their order, the values of each
    /// ascending. Keys that are not there are left out.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let mut tags = tx.multi_table("tags")?;
    /// tags.put_many(b"a", &["1", "2"])?;
    /// tags.put(b"b", b"3")?;
    /// let mut found = Vec::new();
    /// tags.view()?.each_value_of(&["b", "none", "a"], |place, value| found.push((place, value.to_vec())))?;
    /// assert_eq!(found, [(0, b"3".to_vec()), (2, b"1".to_vec()), (2, b"2".to_vec())]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A damaged or unreadable page; what lies before it was given.
    pub fn each_value_of<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut take: impl FnMut(usize, &[u8]),
    ) -> Result<()> {
        Ok(self
            .tree
            .values_of_many(&self.pages, keys, |place, values| match values {
                None => Ok(()),
                Some(values) => values.each(&self.pages, |value| {
                    take(place, value);
                    true
                }),
            })?)
    }

    /// Calls `f` with every value of a key, ascending; returns how many there are. Lends what lies in pages: nothing is copied or allocated
    /// for a value.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let mut tags = tx.multi_table("tags")?;
    /// tags.put_many(b"a", &["1", "22"])?;
    /// let mut bytes = 0;
    /// assert_eq!(tags.view()?.for_each_value(b"a", |value| bytes += value.len())?, 2);
    /// assert_eq!(bytes, 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A damaged or unreadable page; what lies before it was given.
    ///
    /// # Cost
    /// One descent, and the pages of the key's set.
    pub fn for_each_value(&self, key: &[u8], mut f: impl FnMut(&[u8])) -> Result<u64> {
        let Some(values) = self.tree.values(&self.pages, key)? else {
            return Ok(0);
        };
        values.each(&self.pages, |value| {
            f(value);
            true
        })?;
        Ok(values.len())
    }

    /// Calls `f` with every pair, in order: key and value are lent.
    ///
    /// # Errors
    /// A damaged or unreadable page; what lies before it was given.
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

    /// How many pairs have a key below `key`. Cost: one page per level.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn rank(&self, key: &[u8]) -> Result<u64> {
        Ok(self.tree.rank(&self.pages, key)?)
    }

    /// How many pairs are below this one, whether it is there or not; [`MultiCursor::select`] leads back. Cost: two descents, and one in the
    /// key's set.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn rank_pair(&self, key: &[u8], value: &[u8]) -> Result<u64> {
        Ok(self.tree.rank_pair(&self.pages, key, value)?)
    }

    /// Pairs that cut a range of keys into `parts` of equal size (within one pair), for scans side by side: one less than parts,
    /// fewer where there are not so many pairs. A key with many values is cut, too: a part begins with its pair, see
    /// [`range_of_pairs`](Self::range_of_pairs).
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::MemoryStorage::new()))?;
    /// # use std::ops::Bound::{Excluded, Included, Unbounded};
    /// let mut tx = db.begin_write()?;
    /// let values: Vec<[u8; 4]> = (0..1000u32).map(u32::to_be_bytes).collect();
    /// tx.multi_table("tags")?.put_many(b"one key", &values)?;
    /// tx.commit()?;
    /// let snap = db.begin_read()?;
    /// let table = snap.multi_table("tags")?.ok_or("no table")?;
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
    /// One descent a pair, and one in its key's set.
    pub fn split(&self, range: impl KeyRange, parts: usize) -> Result<Vec<Pair>> {
        let ranks = self.ranks(&pairs_between(range.begin(), range.end()))?;
        Ok(self.tree.split_pairs(&self.pages, ranks, parts)?)
    }

    /// The number that the table's sequence gives next.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.tree.sequence()
    }

    /// A cursor over the pairs, both ways.
    #[must_use]
    pub fn cursor(&self) -> MultiCursor<'_> {
        MultiCursor {
            inner: self.tree.pair_cursor(&self.pages),
        }
    }
}

/// Steps through the pairs of a table of multi-values. Each move tells whether it found what it was asked for. A move
/// among the values of a key that finds none (`next_dup`, `prev_dup`) leaves the cursor where it was. One to exactly a key, a pair or a
/// value of a key that is not there leaves it at the pair behind, as `seek_ge` and `seek_gt` do (`seek_value_le`, `seek_value_lt`: at the one
/// before, as `seek_le` and `seek_lt` do): from there a step leaves out nothing.
///
/// ```
/// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::MemoryStorage::new()))?;
/// let mut tx = db.begin_write()?;
/// let mut tags = tx.multi_table("tags")?;
/// tags.put_many(b"a", &["1", "3"])?;
/// tags.put(b"c", b"2")?;
/// let view = tags.view()?;
/// let mut cursor = view.cursor();
/// assert!(!cursor.seek(b"a", b"2")? && cursor.value() == b"3");
/// assert!(!cursor.seek_key(b"b")? && cursor.key() == b"c");
/// assert!(cursor.seek_key_le(b"b")? && cursor.value() == b"3");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct MultiCursor<'a> {
    inner: PairCursor<'a, Pages<'a>>,
}

macro_rules! moves {
    ($($(#[$doc:meta])* $name:ident($($arg:ident),*) = $inner:ident;)*) => {
        impl MultiCursor<'_> {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// A damaged or unreadable page.
                pub fn $name(&mut self $(, $arg: &[u8])*) -> Result<bool> {
                    Ok(self.inner.$inner($($arg),*)?)
                }
            )*
        }
    };
}

moves! {
    /// To the first pair.
    first() = first;
    /// To the last pair.
    last() = last;
    /// To the next pair, of this key or the next.
    next_pair() = next;
    /// To the pair before, of this key or the one before.
    prev_pair() = previous;
    /// To the next value of this key.
    next_dup() = next_dup;
    /// To the value before of this key.
    prev_dup() = previous_dup;
    /// To the first value of the next key.
    next_nodup() = next_nodup;
    /// To the last value of the key before.
    prev_nodup() = previous_nodup;
    /// To the first value of this key.
    first_dup() = first_dup;
    /// To the last value of this key.
    last_dup() = last_dup;
    /// To the first value of exactly this key.
    seek_key(key) = seek_key;
    /// To the first value of the first key at or above this one.
    seek_key_ge(key) = seek_key_ge;
    /// To the first value of the first key above this one.
    seek_key_gt(key) = seek_key_gt;
    /// To the last value of the last key at or below this one.
    seek_key_le(key) = seek_key_le;
    /// To the last value of the last key below this one.
    seek_key_lt(key) = seek_key_lt;
    /// To exactly this pair.
    seek(key, value) = seek;
    /// Of exactly this key, to the first value at or above this one.
    seek_value_ge(key, value) = seek_value_ge;
    /// Of exactly this key, to the first value above this one.
    seek_value_gt(key, value) = seek_value_gt;
    /// Of exactly this key, to the last value at or below this one.
    seek_value_le(key, value) = seek_value_le;
    /// Of exactly this key, to the last value below this one.
    seek_value_lt(key, value) = seek_value_lt;
    /// To the first pair at or above this one.
    seek_ge(key, value) = seek_ge;
    /// To the first pair above this one.
    seek_gt(key, value) = seek_gt;
    /// To the last pair at or below this one.
    seek_le(key, value) = seek_le;
    /// To the last pair below this one.
    seek_lt(key, value) = seek_lt;
}

impl<'a> MultiCursor<'a> {
    /// Back to before the first pair, of this table or of another, of the same snapshot or of another.
    pub fn renew(&mut self, table: &'a MultiTable<'_>) {
        self.inner.renew(&table.tree, &table.pages);
    }

    /// To the pair that has this many pairs before it. Cost: one page per level of the table and of the key's set.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn select(&mut self, rank: u64) -> Result<bool> {
        Ok(self.inner.select(rank)?)
    }

    /// To the first value of the key that has the pair with this many pairs before it.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn select_key(&mut self, rank: u64) -> Result<bool> {
        Ok(self.inner.select_key(rank)?)
    }

    /// Of exactly this key, to the value that has this many of its values before it.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn select_value(&mut self, key: &[u8], rank: u64) -> Result<bool> {
        Ok(self.inner.select_value(key, rank)?)
    }

    /// The key here.
    ///
    /// # Panics
    /// When the last move found no pair.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.inner.key()
    }

    /// The value here.
    ///
    /// # Panics
    /// When the last move found no pair.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        self.inner.value()
    }

    /// How many values the key here has; 0 at no pair.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.inner.count()
    }

    /// At most `most` values of this key from here on; the cursor is at the last of them.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn get_multiple(&mut self, most: usize) -> Result<Vec<Vec<u8>>> {
        let mut values = Vec::new();
        self.for_each_multiple(most, |value| values.push(value.to_vec()))?;
        Ok(values)
    }

    /// As `get_multiple`, of values that are lent to `f`; returns how many.
    ///
    /// # Errors
    /// A damaged or unreadable page; what lies before it was given.
    pub fn for_each_multiple(&mut self, most: usize, f: impl FnMut(&[u8])) -> Result<usize> {
        Ok(self.inner.get_multiple(most, f)?)
    }

    /// The next at most `most` values of this key behind the one here; the cursor is at the last of them.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn next_multiple(&mut self, most: usize) -> Result<Vec<Vec<u8>>> {
        if !self.inner.next_dup()? {
            return Ok(Vec::new());
        }
        self.get_multiple(most)
    }

    /// The at most `most` values of this key before the one here, ascending; the cursor is at the first of them.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn prev_multiple(&mut self, most: usize) -> Result<Vec<Vec<u8>>> {
        let mut values = Vec::new();
        while values.len() < most && self.inner.previous_dup()? {
            values.push(self.inner.value().to_vec());
        }
        values.reverse();
        Ok(values)
    }

    /// True at a pair.
    #[must_use]
    pub fn is_at_pair(&self) -> bool {
        self.inner.is_at_row()
    }

    /// True at the first pair of the table.
    #[must_use]
    pub fn on_first(&self) -> bool {
        self.inner.on_first()
    }

    /// True at the last pair of the table.
    #[must_use]
    pub fn on_last(&self) -> bool {
        self.inner.on_last()
    }

    /// True at the first value of a key.
    #[must_use]
    pub fn on_first_dup(&self) -> bool {
        self.inner.on_first_dup()
    }

    /// True at the last value of a key.
    #[must_use]
    pub fn on_last_dup(&self) -> bool {
        self.inner.on_last_dup()
    }

    /// True when a step forward ran off the end.
    #[must_use]
    pub fn eof(&self) -> bool {
        self.inner.eof()
    }
}
