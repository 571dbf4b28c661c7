//! A table of multi-values in a write transaction: every way to change it.

use crate::tables::bounds::{PairEnds, pairs_between};
use crate::tables::key_range::KeyRange;
use crate::tables::multi::MultiTable;
use crate::txn::write::WriteTxn;
use crate::types::error::{Error, Result};
use std::ops::{Bound, RangeBounds};
use tidalite_kv::PutRow;

/// A table of multi-values in a write transaction.
///
/// # Cost
/// Descents that methods name are those in the table. Where a key has so many values that its set has pages of its own, each goes on with
/// one in the set; a smaller set is read and written whole.
pub struct MultiTableMut<'t> {
    txn: &'t mut WriteTxn,
    index: usize,
}

impl<'t> MultiTableMut<'t> {
    pub(crate) fn new(txn: &'t mut WriteTxn, index: usize) -> Self {
        Self { txn, index }
    }

    /// The table as it stands in this transaction, for reading. Reads nothing.
    ///
    /// # Errors
    /// `TransactionBroken`.
    pub fn view(&self) -> Result<MultiTable<'_>> {
        self.txn.opened_multi_view(self.index)
    }

    /// Stores a pair; returns true when it is new.
    ///
    /// # Errors
    /// A key or value beyond 16 MiB (`Limit`); a full disk; a damaged page.
    ///
    /// # Cost
    /// One descent, and one in the key's set where that has pages of its own. A set that lies in its row, of up to a quarter of a page, is
    /// written again with it: values of one key that are known together are best given to [`put_many`](Self::put_many) or
    /// [`extend`](Self::extend). Pairs that ascend behind the last one need no descent.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.txn
            .change_table_near_end(self.index, |tree, ending, pages| {
                tree.pairs().insert_near_end(pages, ending, key, value)
            })
    }

    /// Stores many values of one key; returns how many are new.
    ///
    /// # Errors
    /// As for `put`.
    ///
    /// # Cost
    /// Two descents, however many values; in a set with pages of its own one for each.
    pub fn put_many<V: AsRef<[u8]>>(&mut self, key: &[u8], values: &[V]) -> Result<u64> {
        self.txn.change_table(self.index, |tree, pages| {
            tree.pairs().insert_many(pages, key, values)
        })
    }

    /// Stores many pairs; those that ascend beyond the last one fill pages to the brim and need no descents. Returns how many were new.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let mut tags = tx.multi_table("tags")?;
    /// assert_eq!(tags.extend([("a", "1"), ("a", "2"), ("b", "1")])?, 3);
    /// assert_eq!(tags.extend([("b", "1"), ("b", "2")])?, 1);
    /// assert_eq!(tags.view()?.count_of(b"b")?, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for `put`. After a `Limit` the pairs before it are there, and the transaction goes on.
    ///
    /// # Cost
    /// The values of a key that follow each other are put in together, whatever the order of keys: its set is changed once. Ascending, a copy of each pair.
    /// Values are held in memory until there is another key or they are more than a set that lies in its row may be.
    pub fn extend<K, V>(&mut self, pairs: impl IntoIterator<Item = (K, V)>) -> Result<u64>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        self.txn
            .change_table(self.index, |tree, pages| tree.pairs().extend(pages, pairs))
    }

    /// As `extend`, of pairs that `feed` lends to what it is given.
    pub(crate) fn extend_lent(
        &mut self,
        feed: impl FnOnce(&mut PutRow<'_>) -> tidalite_pager::Result<()>,
    ) -> Result<u64> {
        self.txn.change_table(self.index, |tree, pages| {
            tree.pairs().extend_lent(pages, feed)
        })
    }

    /// Stores a pair behind all others.
    ///
    /// # Errors
    /// `OutOfOrder` when the pair is not above the last one: nothing has changed; else as for `put`.
    ///
    /// # Cost
    /// A descent for the first ones, none for those that follow.
    pub fn append(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let behind = self
            .txn
            .change_table_near_end(self.index, |tree, ending, pages| {
                tree.pairs().append_near_end(pages, ending, key, value)
            })?;
        self.in_order(behind)
    }

    /// Stores a value behind all others of its key.
    ///
    /// # Errors
    /// `OutOfOrder` when the value is not above the key's last one: nothing has changed; else as for `put`.
    ///
    /// # Cost
    /// As of `put`.
    pub fn append_dup(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let behind = self
            .txn
            .change_table_near_end(self.index, |tree, ending, pages| {
                tree.pairs()
                    .append_to_key_near_end(pages, ending, key, value)
            })?;
        self.in_order(behind)
    }

    fn in_order(&self, behind: bool) -> Result<()> {
        match behind {
            true => Ok(()),
            false => Err(Error::OutOfOrder {
                table: self.txn.table_name(self.index),
            }),
        }
    }

    /// Stores a pair if the key has no value yet; returns whether it did.
    ///
    /// # Errors
    /// As for `put`.
    ///
    /// # Cost
    /// One descent, and a `put` if it stores.
    pub fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        Ok(self.view()?.count_of(key)? == 0 && self.put(key, value)?)
    }

    /// Puts `value` in the place of the one value of a key that is there; returns whether it did.
    ///
    /// # Errors
    /// `Ambiguous` when the key has several: say which one with `replace`; else as for `put`. Nothing has changed then.
    ///
    /// # Cost
    /// One descent, and a `replace` if the key is there.
    pub fn update(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        match self.only(key)? {
            Some(old) => self.replace(key, &old, value),
            None => Ok(false),
        }
    }

    /// Replaces one value of a key by another; returns whether the pair was there. If it was not, nothing changes. If the new pair is there
    /// already, the old one is only removed.
    ///
    /// # Errors
    /// As for `put`.
    ///
    /// # Cost
    /// A `remove`, and a `put` if the pair was there.
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
    ///
    /// # Cost
    /// Three descents; one for a pair that is not there.
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
    ///
    /// # Cost
    /// One descent, and a `remove` if the key is there.
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
    ///
    /// # Cost
    /// Two descents; one for a key that is not there. Of a set with pages of its own the branches are read.
    pub fn remove_all(&mut self, key: &[u8]) -> Result<u64> {
        self.txn.pages.free_space();
        self.txn.change_table(self.index, |tree, pages| {
            tree.pairs().remove_all(pages, key)
        })
    }

    /// Removes all pairs whose keys lie in a range, by cutting branches off; returns how many. Cost: two descents, and the pages in between are
    /// freed, each read once.
    ///
    /// # Errors
    /// A full disk; a damaged page.
    pub fn remove_range(&mut self, range: impl KeyRange) -> Result<u64> {
        self.cut(pairs_between(range.begin(), range.end()))
    }

    /// Removes all pairs in a range of pairs, so that of the first key and of the last one some values may stay; returns how many. Bounds the
    /// wrong way round hold nothing.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let mut tags = tx.multi_table("tags")?;
    /// tags.put_many(b"a", &["1", "2", "3"])?;
    /// tags.put_many(b"b", &["1", "2"])?;
    /// assert_eq!(tags.remove_range_of_pairs(("a", "2")..("b", "2"))?, 3);
    /// assert_eq!(tags.view()?.get(b"a")?, Some((b"1".to_vec(), 1)));
    /// assert_eq!(tags.view()?.get(b"b")?, Some((b"2".to_vec(), 1)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A full disk; a damaged page.
    ///
    /// # Cost
    /// As of `remove_range`, and as much in the sets of the first key and of the last one.
    pub fn remove_range_of_pairs<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        range: impl RangeBounds<(K, V)>,
    ) -> Result<u64> {
        self.cut(crate::tables::bounds::owned_pairs(&range))
    }

    fn cut(&mut self, (begin, end): PairEnds) -> Result<u64> {
        self.txn.pages.free_space();
        // The least pair above one has a value that ends in a zero byte more.
        let above = |(key, mut value): (Vec<u8>, Vec<u8>)| {
            value.push(0);
            (key, value)
        };
        let from = match begin {
            Bound::Unbounded => (Vec::new(), Vec::new()),
            Bound::Included(pair) => pair,
            Bound::Excluded(pair) => above(pair),
        };
        let to = match end {
            Bound::Unbounded => None,
            Bound::Excluded(pair) => Some(pair),
            Bound::Included(pair) => Some(above(pair)),
        };
        let to = to.as_ref().map(|(key, value)| (&key[..], &value[..]));
        self.txn.change_table(self.index, |tree, pages| {
            tree.pairs().remove_range(pages, (&from.0, &from.1), to)
        })
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

    /// Whether the page that holds this key, or would, was changed by this transaction already.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn is_dirty(&self, key: &[u8]) -> Result<bool> {
        let (tree, pages) = self.txn.table_tree(self.index)?;
        Ok(tree.is_dirty(pages, key)?)
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
        match self.view()?.get(key)? {
            Some((_, values)) if values > 1 => Err(Error::Ambiguous {
                table: self.txn.table_name(self.index),
                values,
            }),
            found => Ok(found.map(|(value, _)| value)),
        }
    }
}
