//! Changes to a table of sets in a write transaction.

use crate::catalog::table_name::Named;
use crate::tables::bounds::{PairEnds, owned_pairs, pairs_of, values_between};
use crate::tables::codec::{AsArg, CodedKey, TableKey, set_value_of};
use crate::tables::key_range::KeyRange;
use crate::tables::set_table::SetTable;
use crate::txn::write::WriteTxn;
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use tidalite_kv::{AllowedPosition, PutRow};

/// A table of sets in a write transaction, for changes: each key has a sorted set of values. Keys are of type `K`,
/// values of type `V`; both are plain bytes by default.
///
/// # Cost
/// The descents mentioned in the costs of the methods are descents in the table. If a key's set of values has pages of
/// its own, each call continues with a descent in that set; a smaller set is read and written as a whole.
pub struct SetTableMut<'t, K: ?Sized = [u8], V: ?Sized = [u8]> {
    txn: &'t mut WriteTxn,
    index: usize,
    types: PhantomData<fn(&K, &V)>,
}

impl<'t> SetTableMut<'t> {
    /// This table with other types of keys and values, whatever was stored in it. Bytes of another type are an error
    /// (`WrongType`) only if they do not decode.
    #[must_use]
    pub fn typed<K: TableKey + ?Sized, V: TableKey + ?Sized>(self) -> SetTableMut<'t, K, V> {
        SetTableMut::new(self.txn, self.index)
    }
}

impl<'t, K: TableKey + ?Sized, V: TableKey + ?Sized> SetTableMut<'t, K, V> {
    pub(crate) fn new(txn: &'t mut WriteTxn, index: usize) -> Self {
        Self {
            txn,
            index,
            types: PhantomData,
        }
    }

    /// Index of this table among the open tables of the transaction.
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// This table with keys and values as plain bytes.
    pub fn bytes(&mut self) -> SetTableMut<'_> {
        SetTableMut::new(self.txn, self.index)
    }

    /// A view of the table in its current state, for reading. Creating the view reads nothing.
    ///
    /// # Errors
    /// `Broken`, if an earlier call failed half-way.
    pub fn view(&self) -> Result<SetTable<'_, K, V>> {
        let table = self.txn.opened_set_view(self.index)?;
        Ok(SetTable::new(table.pages, table.tree, table.named))
    }

    /// Stores a pair; returns true if the pair is new.
    ///
    /// # Errors
    /// `Limit` for a key or value longer than 16 MiB; a full disk; a damaged page.
    ///
    /// # Cost
    /// One descent, and one in the key's set if that set has pages of its own. A set of up to a quarter of a page is
    /// stored in its row and rewritten with it: values of one key that are known together are best passed to
    /// [`put_many`](Self::put_many) or [`extend`](Self::extend). Pairs that ascend after the last pair of the table
    /// need no descent.
    pub fn put(&mut self, key: &K, value: &V) -> Result<bool> {
        self.put_at(key, value, AllowedPosition::Any)
    }

    /// Stores many values of one key; returns the number of values that are new.
    ///
    /// # Errors
    /// As for `put`.
    ///
    /// # Cost
    /// Two descents for any number of values; in a set with pages of its own, one per value.
    pub fn put_many<A: AsArg<V>>(&mut self, key: &K, values: &[A]) -> Result<u64> {
        let key = &key.key_code();
        let values: Vec<_> = values
            .iter()
            .map(|value| value.as_arg().key_code())
            .collect();
        self.txn.change_table(self.index, |tree, pages| {
            tree.pairs().insert_many(pages, key, &values)
        })
    }

    /// Stores many pairs; returns the number of pairs that are new. Pairs that ascend beyond the last one fill pages
    /// completely and need no descents.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let mut tags = tx.set_table("tags")?;
    /// assert_eq!(tags.extend([("a", "1"), ("a", "2"), ("b", "1")])?, 3);
    /// assert_eq!(tags.extend([("b", "1"), ("b", "2")])?, 1);
    /// assert_eq!(tags.view()?.count_of(b"b")?, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for `put`. After a `Limit` the pairs before the one that is too long are stored, and the transaction
    /// continues.
    ///
    /// # Cost
    /// Consecutive values of a key are inserted together, whatever the order of the keys, so the key's set is changed
    /// once. Pairs in ascending order cost only a copy of each. Values are held in memory until the key changes or
    /// until they exceed the size of a set that is stored in its row.
    pub fn extend<A, B>(&mut self, pairs: impl IntoIterator<Item = (A, B)>) -> Result<u64>
    where
        A: AsArg<K>,
        B: AsArg<V>,
    {
        let coded = |(key, value)| {
            let (Ok(key), Ok(value)) = (CodedKey::<K, A>::of(key), CodedKey::<V, B>::of(value));
            (key, value)
        };
        let pairs = pairs.into_iter().map(coded);
        self.txn
            .change_table(self.index, |tree, pages| tree.pairs().extend(pages, pairs))
    }

    /// Stores many pairs like `extend`; `feed` passes each pair by reference to its callback.
    pub(crate) fn extend_lent(
        &mut self,
        feed: impl FnOnce(&mut PutRow<'_>) -> tidalite_pager::Result<()>,
    ) -> Result<u64> {
        self.txn.change_table(self.index, |tree, pages| {
            tree.pairs().extend_lent(pages, feed)
        })
    }

    /// Appends a pair, which must be greater than all pairs in the table.
    ///
    /// # Errors
    /// `OutOfOrder` if the pair is not greater than the last one, and then nothing has changed; otherwise as for `put`.
    ///
    /// # Cost
    /// A descent for the first pair that is appended, none for the pairs that follow.
    pub fn append(&mut self, key: &K, value: &V) -> Result<()> {
        self.append_at(key, value, AllowedPosition::LastOfTable)
    }

    /// Appends a value that is greater than all other values of its key.
    ///
    /// # Errors
    /// `OutOfOrder` if the value is not greater than the key's last one, and then nothing has changed; otherwise as for
    /// `put`.
    ///
    /// # Cost
    /// As for `put`.
    pub fn append_value(&mut self, key: &K, value: &V) -> Result<()> {
        self.append_at(key, value, AllowedPosition::LastOfKey)
    }

    fn append_at(&mut self, key: &K, value: &V, at: AllowedPosition) -> Result<()> {
        let behind = self.put_at(key, value, at)?;
        self.in_order(behind)
    }

    fn put_at(&mut self, key: &K, value: &V, at: AllowedPosition) -> Result<bool> {
        let pair = (&key.key_code()[..], &value.key_code()[..]);
        self.txn
            .change_table_with_cursor(self.index, |tree, append_cursor, pages| {
                tree.pairs().insert_hinted(pages, append_cursor, pair, at)
            })
    }

    fn in_order(&self, behind: bool) -> Result<()> {
        match behind {
            true => Ok(()),
            false => Err(Error::from(Cause::OutOfOrder {
                table: self.txn.table_name(self.index).to_owned(),
            })),
        }
    }

    /// Stores a pair if its key has no value yet; returns whether the pair was stored.
    ///
    /// # Errors
    /// As for `put`.
    ///
    /// # Cost
    /// One descent, and a `put` if the pair is stored.
    pub fn insert(&mut self, key: &K, value: &V) -> Result<bool> {
        Ok(self.view()?.count_of(key)? == 0 && self.put(key, value)?)
    }

    /// Replaces the single value of an existing key with `value`; returns whether the key exists.
    ///
    /// # Errors
    /// `InvalidInput` if the key has several values (`replace` names the one to replace); otherwise as for `put`.
    /// Nothing has changed then.
    ///
    /// # Cost
    /// One descent, and a `replace` if the key exists.
    pub fn update(&mut self, key: &K, value: &V) -> Result<bool> {
        match self.only(key)? {
            Some(old) => self.replace_code((&key.key_code(), &old), &value.key_code()),
            None => Ok(false),
        }
    }

    /// Replaces one value of a key with another; returns whether the old pair existed. If it did not exist, nothing
    /// changes. If the new pair exists already, the old one is only removed.
    ///
    /// # Errors
    /// As for `put`.
    ///
    /// # Cost
    /// A `remove`, and a `put` if the pair existed.
    pub fn replace(&mut self, key: &K, old: &V, new: &V) -> Result<bool> {
        let (key, old) = (key.key_code(), old.key_code());
        self.replace_code((&key, &old), &new.key_code())
    }

    pub(crate) fn replace_code(&mut self, (key, old): (&[u8], &[u8]), new: &[u8]) -> Result<bool> {
        let most = tidalite_kv::KEY_BYTES_MAX;
        if new.len() > most {
            return Err(Error::from(Cause::Limit {
                what: "bytes of a value among several",
                found: new.len() as u64,
                limit: most as u64,
            }));
        }
        let was = self.remove_code(key, old)?;
        if was {
            self.bytes().put(key, new)?;
        }
        Ok(was)
    }

    /// Removes a pair; returns whether the pair existed.
    ///
    /// # Errors
    /// A full disk; a damaged page.
    ///
    /// # Cost
    /// Three descents; only one if the pair does not exist.
    pub fn remove(&mut self, key: &K, value: &V) -> Result<bool> {
        self.remove_code(&key.key_code(), &value.key_code())
    }

    pub(crate) fn remove_code(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.txn.pages.free_space();
        self.txn.change_table(self.index, |tree, pages| {
            tree.pairs().remove(pages, key, value)
        })
    }

    /// Removes a key that has a single value, and returns the value.
    ///
    /// # Errors
    /// `InvalidInput` if the key has several values, and then nothing has changed; `WrongType` if the value does not
    /// decode as `V`, and then the value has been removed.
    ///
    /// # Cost
    /// One descent, and a `remove` if the key exists.
    pub fn take(&mut self, key: &K) -> Result<Option<V::Owned>> {
        let Some(old) = self.only(key)? else {
            return Ok(None);
        };
        self.remove_code(&key.key_code(), &old)?;
        let named = Named::Lent(self.txn.table_name(self.index));
        set_value_of::<V>(&named, &old).map(Some)
    }

    /// Removes all values of a key; returns the number of values removed.
    ///
    /// # Errors
    /// A full disk; a damaged page.
    ///
    /// # Cost
    /// Two descents; only one if the key does not exist. If the set has pages of its own, the branches of the set are
    /// read.
    pub fn remove_all(&mut self, key: &K) -> Result<u64> {
        self.remove_all_code(&key.key_code())
    }

    pub(crate) fn remove_all_code(&mut self, key: &[u8]) -> Result<u64> {
        self.txn.pages.free_space();
        self.txn.change_table(self.index, |tree, pages| {
            tree.pairs().remove_all(pages, key)
        })
    }

    /// Removes all pairs whose keys lie in a range, by cutting off branches; returns the number of pairs removed. Cost:
    /// two descents. The pages in between are freed, and each is read once.
    ///
    /// # Errors
    /// A full disk; a damaged page.
    pub fn remove_range(&mut self, range: impl KeyRange<K>) -> Result<u64> {
        self.cut(pairs_of(&range))
    }

    /// Removes all pairs in a range of pairs, so that the first and the last key may keep some values; returns the
    /// number of pairs removed. Inverted bounds are an empty range.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let mut tags = tx.set_table("tags")?;
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
    /// As for `remove_range`, and as much again in the sets of the first and the last key.
    pub fn remove_range_of_pairs<A: AsArg<K>, B: AsArg<V>>(
        &mut self,
        range: impl RangeBounds<(A, B)>,
    ) -> Result<u64> {
        self.cut(owned_pairs::<K, V, A, B>(&range))
    }

    /// Removes the values of one key that lie in a range; returns the number of values removed.
    ///
    /// # Errors
    /// As for `remove_range`.
    ///
    /// # Cost
    /// As for `remove_range_of_pairs`.
    pub fn remove_values_in(&mut self, key: &K, range: impl KeyRange<V>) -> Result<u64> {
        self.cut(values_between(key.key_code().into_owned(), &range))
    }

    fn cut(&mut self, (begin, end): PairEnds) -> Result<u64> {
        self.txn.pages.free_space();
        // The least pair above a pair has a zero byte appended to its value.
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

    /// Removes all pairs of the table.
    ///
    /// # Errors
    /// A damaged page.
    pub fn clear(&mut self) -> Result<()> {
        self.txn.pages.free_space();
        self.txn
            .change_table(self.index, |tree, pages| tree.clear(pages))
    }

    /// Whether this transaction has already changed the page that contains this key or would contain it.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn is_dirty(&self, key: &K) -> Result<bool> {
        let (tree, pages) = self.txn.table_tree(self.index)?;
        Ok(tree.is_dirty(pages, &key.key_code())?)
    }

    /// Takes `count` numbers from the table's sequence and returns the first of them.
    ///
    /// # Errors
    /// `Limit` if all 2^64 numbers are used up.
    pub fn take_sequence(&mut self, count: u64) -> Result<u64> {
        let taken = self
            .txn
            .change_table(self.index, |tree, _| Ok(tree.take_sequence(count)))?;
        taken.ok_or(Error::from(Cause::Limit {
            what: "numbers of a table's sequence",
            found: u64::MAX,
            limit: u64::MAX,
        }))
    }

    /// Returns the value of a key that has a single value, or `None` if the key does not exist; returns an error if the
    /// key has several values.
    fn only(&self, key: &K) -> Result<Option<Vec<u8>>> {
        match self.view()?.bytes().get(&key.key_code())? {
            Some((_, values)) if values > 1 => Err(Error::from(Cause::Ambiguous {
                table: self.txn.table_name(self.index).to_owned(),
                values,
            })),
            found => Ok(found.map(|(value, _)| value)),
        }
    }
}
