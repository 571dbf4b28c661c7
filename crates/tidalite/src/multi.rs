//! Tables of multi-values: each key has a sorted set of values.
//!
//! One value lies in its row, a few lie packed together in the leaf, many have pages of their own. Keys and values of
//! integers are best given in big-endian bytes (see `tidalite_base::order`): they then sort by number.

use crate::error::{Error, Result};
use crate::pages::Pages;
use crate::write::WriteTxn;
use tidalite_kv::{PairCursor, Tree};

/// A table of multi-values, of a snapshot or of a write transaction as it stands.
#[derive(Clone)]
pub struct MultiTable<'a> {
    pages: Pages<'a>,
    tree: Tree,
}

impl<'a> MultiTable<'a> {
    pub(crate) fn new(pages: Pages<'a>, tree: Tree) -> Self {
        Self { pages, tree }
    }

    /// The first value of a key, and how many it has.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn get(&self, key: &[u8]) -> Result<Option<(Vec<u8>, u64)>> {
        let mut cursor = self.tree.pair_cursor(&self.pages);
        Ok(cursor
            .seek_key(key)?
            .then(|| (cursor.value().to_vec(), cursor.count())))
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

    /// How many pairs have a key below `key`. Cost: one page per level.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn rank(&self, key: &[u8]) -> Result<u64> {
        Ok(self.tree.rank(&self.pages, key)?)
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

/// Steps through the pairs of a table of multi-values. Each move tells whether there is a pair at the new place; a move
/// among the values of a key that finds none (`next_dup`, `prev_dup`) leaves the cursor where it was.
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
    /// To exactly this pair.
    seek(key, value) = seek;
    /// Of exactly this key, to the first value at or above this one.
    seek_value_ge(key, value) = seek_value_ge;
    /// To the first pair at or above this one.
    seek_ge(key, value) = seek_ge;
    /// To the first pair above this one.
    seek_gt(key, value) = seek_gt;
    /// To the last pair at or below this one.
    seek_le(key, value) = seek_le;
    /// To the last pair below this one.
    seek_lt(key, value) = seek_lt;
}

impl MultiCursor<'_> {
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
        self.inner
            .get_multiple(most, |value| values.push(value.to_vec()))?;
        Ok(values)
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

/// A table of multi-values in a write transaction.
pub struct MultiTableMut<'t> {
    txn: &'t mut WriteTxn,
    index: usize,
}

impl<'t> MultiTableMut<'t> {
    pub(crate) fn new(txn: &'t mut WriteTxn, index: usize) -> Self {
        Self { txn, index }
    }

    /// The table as it stands in this transaction, for reading.
    #[must_use]
    pub fn view(&self) -> MultiTable<'_> {
        MultiTable::new(self.txn.pages_view(), self.txn.tables[self.index].tree)
    }

    /// Stores a pair; returns whether it is new.
    ///
    /// # Errors
    /// A key or value beyond 16 MiB (`Limit`); a full disk; a damaged page.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.txn.change_table(self.index, |tree, pages| {
            tree.pairs().insert(pages, key, value)
        })
    }

    /// Stores many values of one key with one descent; returns how many are new.
    ///
    /// # Errors
    /// As for `put`.
    pub fn put_many<V: AsRef<[u8]>>(&mut self, key: &[u8], values: &[V]) -> Result<u64> {
        self.txn.change_table(self.index, |tree, pages| {
            tree.pairs().insert_many(pages, key, values)
        })
    }

    /// Stores a pair behind all others.
    ///
    /// # Errors
    /// `OutOfOrder` when the pair is not above the last one: nothing has changed; else as for `put`.
    pub fn append(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let view = self.view();
        let mut cursor = view.cursor();
        let behind = !cursor.last()? || (cursor.key(), cursor.value()) < (key, value);
        drop(cursor);
        self.append_if(behind, key, value)
    }

    /// Stores a value behind all others of its key.
    ///
    /// # Errors
    /// `OutOfOrder` when the value is not above the key's last one: nothing has changed; else as for `put`.
    pub fn append_dup(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let view = self.view();
        let mut cursor = view.cursor();
        let behind = !cursor.seek_key(key)? || cursor.last_dup()? && cursor.value() < value;
        drop(cursor);
        self.append_if(behind, key, value)
    }

    fn append_if(&mut self, behind: bool, key: &[u8], value: &[u8]) -> Result<()> {
        if !behind {
            return Err(Error::OutOfOrder {
                table: self.txn.table_name(self.index),
            });
        }
        self.put(key, value).map(drop)
    }

    /// Makes `value` the only value of a key that has one or none; returns the one that it had.
    ///
    /// # Errors
    /// `Ambiguous` when the key has several: say which one with `replace`. Nothing has changed then.
    pub fn update(&mut self, key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>> {
        let old = self.only(key)?;
        if let Some(old) = &old {
            self.remove(key, old)?;
        }
        self.put(key, value)?;
        Ok(old)
    }

    /// Replaces one value of a key by another; returns whether the pair was there. If the new pair is there already, the old one
    /// is only removed.
    ///
    /// # Errors
    /// As for `put`.
    pub fn replace(&mut self, key: &[u8], old: &[u8], new: &[u8]) -> Result<bool> {
        let most = tidalite_kv::KEY_BYTES_MAX;
        if new.len() > most {
            return Err(Error::Limit {
                what: "bytes of a value among several",
                found: new.len() as u64,
                limit: most as u64,
            });
        }
        let was = self.remove(key, old)?;
        if was {
            self.put(key, new)?;
        }
        Ok(was)
    }

    /// Removes a pair; returns whether it was there.
    ///
    /// # Errors
    /// A full disk; a damaged page.
    pub fn remove(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.txn.pages.free_space();
        self.txn.change_table(self.index, |tree, pages| {
            tree.pairs().remove(pages, key, value)
        })
    }

    /// Removes a key that has one value, and returns it.
    ///
    /// # Errors
    /// `Ambiguous` when the key has several: nothing has changed then.
    pub fn take(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let old = self.only(key)?;
        if let Some(old) = &old {
            self.remove(key, old)?;
        }
        Ok(old)
    }

    /// Removes all values of a key; returns how many.
    ///
    /// # Errors
    /// A full disk; a damaged page.
    pub fn remove_all(&mut self, key: &[u8]) -> Result<u64> {
        self.txn.pages.free_space();
        self.txn.change_table(self.index, |tree, pages| {
            tree.pairs().remove_all(pages, key)
        })
    }

    /// Removes all pairs with `from <= key < to`; returns how many. Cost: one descent a key.
    ///
    /// # Errors
    /// A full disk; a damaged page.
    pub fn remove_range(&mut self, from: &[u8], to: &[u8]) -> Result<u64> {
        self.txn.pages.free_space();
        self.txn
            .change_table(self.index, |tree, pages| tree.remove_range(pages, from, to))
    }

    /// Removes everything.
    ///
    /// # Errors
    /// A damaged page.
    pub fn clear(&mut self) -> Result<()> {
        self.txn.pages.free_space();
        self.txn
            .change_table(self.index, |tree, pages| tree.clear(pages))
    }

    /// Takes `count` numbers of the table's sequence and returns the first.
    ///
    /// # Errors
    /// `Limit` when 2^64 numbers are used up.
    pub fn take_sequence(&mut self, count: u64) -> Result<u64> {
        let taken = self
            .txn
            .change_table(self.index, |tree, _| Ok(tree.take_sequence(count)))?;
        taken.ok_or(Error::Limit {
            what: "numbers of a table's sequence",
            found: u64::MAX,
            limit: u64::MAX,
        })
    }

    /// The value of a key that has one; an error for several.
    fn only(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        match self.view().get(key)? {
            Some((_, values)) if values > 1 => Err(Error::Ambiguous {
                table: self.txn.table_name(self.index),
                values,
            }),
            found => Ok(found.map(|(value, _)| value)),
        }
    }
}
