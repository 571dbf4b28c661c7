//! Tables of multi-values: each key has a sorted set of values.
//!
//! A single value is stored in the row, a few are packed together in the leaf, many get pages of their own. Integer
//! keys and values are best stored as big-endian bytes (see `tidalite_base::order`): they then sort by number.

use crate::catalog::table_name::Named;
use crate::tables::bounds::pairs_of;
use crate::tables::key_range::KeyRange;
use crate::txn::pages::Pages;
use crate::types::error::Result;
use tidalite_kv::{PairCursor, PutRow, TableShape, Tree};

type Pair = (Vec<u8>, Vec<u8>);

/// The first value of a key, and its number of values.
type First = (Vec<u8>, u64);

/// A table of multi-values, in a snapshot or in the current state of a write transaction.
///
/// # Cost
/// A key's set of values is stored in the key's row, up to a quarter of a page: values of one length take only their
/// bytes, others two bytes more each. A larger set is a table of its own: each value takes about 8 bytes besides its
/// own, less the prefix shared with its neighbours. Reaching a pair takes one descent, plus one in the key's set if
/// that has pages of its own; the number of a key's values needs no descent in the set. Steps and borrowed values copy
/// nothing.
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

    /// The first value of a key, and its number of values.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn get(&self, key: &[u8]) -> Result<Option<(Vec<u8>, u64)>> {
        Ok(self.get_many(&[key])?.pop().flatten())
    }

    /// The number of values of a key. Cost: one page per level.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn count_of(&self, key: &[u8]) -> Result<u64> {
        Ok(self.tree.values_of(&self.pages, key)?)
    }

    /// Whether a pair exists.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn contains(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        Ok(self.tree.contains_pair(&self.pages, key, value)?)
    }

    /// Number of pairs, without reading any.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.tree.len()
    }

    /// Number of distinct keys, without reading any.
    #[must_use]
    pub fn count_keys(&self) -> u64 {
        self.tree.keys()
    }

    /// The first value of each of many keys and its number of values, in the order of the keys; `None` for a missing
    /// key. Sorted keys are best; the memory waits of sixteen keys overlap.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// The cost of as many `get` calls, without their consecutive waits.
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

    /// Passes every value of many keys to `take`, with the index of its key: key after key in the given order, the
    /// values of each ascending. Missing keys are skipped.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
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
    /// A damaged or unreadable page; the values before it were passed.
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

    /// Calls `f` with every value of a key, ascending; returns their number. Values are borrowed from pages: nothing is
    /// copied or allocated per value.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
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
    /// A damaged or unreadable page; the values before it were passed.
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

    /// Calls `f` with every pair, in order; key and value are borrowed.
    ///
    /// # Errors
    /// A damaged or unreadable page; the pairs before it were passed.
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

    /// Number of pairs whose key is below `key`. Cost: one page per level.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn rank(&self, key: &[u8]) -> Result<u64> {
        Ok(self.tree.rank(&self.pages, key)?)
    }

    /// Number of pairs below this one, whether or not it exists; [`MultiCursor::select`] is the inverse. Cost: two
    /// descents, and one in the key's set.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn rank_pair(&self, key: &[u8], value: &[u8]) -> Result<u64> {
        Ok(self.tree.rank_pair(&self.pages, key, value)?)
    }

    /// Pairs that split a range of keys into `parts` of equal size (within one pair), for parallel scans: one less than
    /// `parts`, fewer if there are not enough pairs. A key with many values may be split too: a part begins with its
    /// pair, see [`range_of_pairs`](Self::range_of_pairs).
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
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
    /// One descent per pair, and one in its key's set.
    pub fn split(&self, range: impl KeyRange<[u8]>, parts: usize) -> Result<Vec<Pair>> {
        let ranks = self.ranks(&pairs_of(&range))?;
        Ok(self.tree.split_pairs(&self.pages, ranks, parts)?)
    }

    /// The next number of the table's sequence.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.tree.sequence()
    }

    /// A bidirectional cursor over the pairs.
    #[must_use]
    pub fn cursor(&self) -> MultiCursor<'_> {
        MultiCursor {
            inner: self.tree.pair_cursor(&self.pages),
        }
    }
}

/// Steps through the pairs of a table of multi-values. Each move returns whether it found its target. A failed move
/// among the values of a key (`next_dup`, `prev_dup`) leaves the cursor where it was. A move to an exact key, pair or
/// value that does not exist leaves it at the next pair, as `seek_ge` and `seek_gt` do (`seek_value_le`,
/// `seek_value_lt`: at the previous pair, as `seek_le` and `seek_lt` do): a step from there skips nothing.
///
/// ```
/// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
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
    /// Moves to the first pair.
    first() = first;
    /// Moves to the last pair.
    last() = last;
    /// Moves to the next pair, of this key or the next.
    next_pair() = next;
    /// Moves to the previous pair, of this key or the previous one.
    prev_pair() = previous;
    /// Moves to the next value of this key.
    next_dup() = next_dup;
    /// Moves to the previous value of this key.
    prev_dup() = previous_dup;
    /// Moves to the first value of the next key.
    next_nodup() = next_nodup;
    /// Moves to the last value of the previous key.
    prev_nodup() = previous_nodup;
    /// Moves to the first value of this key.
    first_dup() = first_dup;
    /// Moves to the last value of this key.
    last_dup() = last_dup;
    /// Moves to the first value of exactly this key.
    seek_key(key) = seek_key;
    /// Moves to the first value of the first key at or above this one.
    seek_key_ge(key) = seek_key_ge;
    /// Moves to the first value of the first key above this one.
    seek_key_gt(key) = seek_key_gt;
    /// Moves to the last value of the last key at or below this one.
    seek_key_le(key) = seek_key_le;
    /// Moves to the last value of the last key below this one.
    seek_key_lt(key) = seek_key_lt;
    /// Moves to exactly this pair.
    seek(key, value) = seek;
    /// Moves to the first value of exactly this key at or above `value`.
    seek_value_ge(key, value) = seek_value_ge;
    /// Moves to the first value of exactly this key above `value`.
    seek_value_gt(key, value) = seek_value_gt;
    /// Moves to the last value of exactly this key at or below `value`.
    seek_value_le(key, value) = seek_value_le;
    /// Moves to the last value of exactly this key below `value`.
    seek_value_lt(key, value) = seek_value_lt;
    /// Moves to the first pair at or above this one.
    seek_ge(key, value) = seek_ge;
    /// Moves to the first pair above this one.
    seek_gt(key, value) = seek_gt;
    /// Moves to the last pair at or below this one.
    seek_le(key, value) = seek_le;
    /// Moves to the last pair below this one.
    seek_lt(key, value) = seek_lt;
}

impl<'a> MultiCursor<'a> {
    /// Resets the cursor to before the first pair, of this or another table, of this or another snapshot.
    pub fn renew(&mut self, table: &'a MultiTable<'_>) {
        self.inner.renew(&table.tree, &table.pages);
    }

    /// Moves to the pair with this rank, counted from 0. Cost: one page per level of the table and of the key's set.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn select(&mut self, rank: u64) -> Result<bool> {
        Ok(self.inner.select(rank)?)
    }

    /// Moves to the first value of the key that contains the pair with this rank.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn select_key(&mut self, rank: u64) -> Result<bool> {
        Ok(self.inner.select_key(rank)?)
    }

    /// Moves to the value of exactly this key that has this rank among its values, counted from 0.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn select_value(&mut self, key: &[u8], rank: u64) -> Result<bool> {
        Ok(self.inner.select_value(key, rank)?)
    }

    /// The current key.
    ///
    /// # Panics
    /// If the last move found no pair.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.inner.key()
    }

    /// The current value.
    ///
    /// # Panics
    /// If the last move found no pair.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        self.inner.value()
    }

    /// Number of values of the current key; 0 if the cursor is at no pair.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.inner.count()
    }

    /// At most `most` values of this key, starting with the current one; the cursor moves to the last of them.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn get_multiple(&mut self, most: usize) -> Result<Vec<Vec<u8>>> {
        let mut values = Vec::new();
        self.for_each_multiple(most, |value| values.push(value.to_vec()))?;
        Ok(values)
    }

    /// Like `get_multiple`, with values borrowed by `f`; returns their number.
    ///
    /// # Errors
    /// A damaged or unreadable page; the values before it were passed.
    pub fn for_each_multiple(&mut self, most: usize, f: impl FnMut(&[u8])) -> Result<usize> {
        Ok(self.inner.get_multiple(most, f)?)
    }

    /// At most `most` values of this key after the current one; the cursor moves to the last of them.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn next_multiple(&mut self, most: usize) -> Result<Vec<Vec<u8>>> {
        if !self.inner.next_dup()? {
            return Ok(Vec::new());
        }
        self.get_multiple(most)
    }

    /// At most `most` values of this key before the current one, ascending; the cursor moves to the first of them.
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

    /// True if the cursor is at a pair.
    #[must_use]
    pub fn is_at_pair(&self) -> bool {
        self.inner.is_at_row()
    }

    /// True if the cursor is at the first pair of the table.
    #[must_use]
    pub fn on_first(&self) -> bool {
        self.inner.on_first()
    }

    /// True if the cursor is at the last pair of the table.
    #[must_use]
    pub fn on_last(&self) -> bool {
        self.inner.on_last()
    }

    /// True if the cursor is at the first value of a key.
    #[must_use]
    pub fn on_first_dup(&self) -> bool {
        self.inner.on_first_dup()
    }

    /// True if the cursor is at the last value of a key.
    #[must_use]
    pub fn on_last_dup(&self) -> bool {
        self.inner.on_last_dup()
    }

    /// True if a step forward went past the end.
    #[must_use]
    pub fn eof(&self) -> bool {
        self.inner.eof()
    }
}
