//! Read cursors of tables of sets.

use crate::catalog::table_name::Named;
use crate::tables::codec::{TableKey, key_of, set_value_of};
use crate::tables::set_table::SetTable;
use crate::txn::pages::Pages;
use crate::types::error::Result;
use std::marker::PhantomData;
use tidalite_kv::PairCursor;

/// A cursor over the pairs of key and value in a table of sets. Each move returns whether it found its target. A failed
/// move among the values of a key (`next_value`, `previous_value`) leaves the cursor where it was. A move to an exact
/// key, pair or value that does not exist leaves the cursor at the next pair, as `seek_ge` and `seek_gt` do
/// (`seek_value_le`, `seek_value_lt`: at the previous pair, as `seek_le` and `seek_lt` do): a step from there skips
/// nothing.
///
/// ```
/// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
/// let mut tx = db.begin_write()?;
/// let mut tags = tx.set_table("tags")?;
/// tags.put_many(b"a", &["1", "3"])?;
/// tags.put(b"c", b"2")?;
/// let view = tags.view()?;
/// let mut cursor = view.cursor();
/// assert!(!cursor.seek(b"a", b"2")? && cursor.value() == b"3");
/// assert!(!cursor.seek_key(b"b")? && cursor.key() == b"c");
/// assert!(cursor.seek_key_le(b"b")? && cursor.value() == b"3");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SetCursor<'a, K: ?Sized = [u8], V: ?Sized = [u8]> {
    inner: PairCursor<'a, Pages<'a>>,
    named: Named<'a>,
    types: PhantomData<fn(&K, &V)>,
}

impl<K: ?Sized, V: ?Sized> Clone for SetCursor<'_, K, V> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            named: self.named.clone(),
            types: PhantomData,
        }
    }
}

impl<K: ?Sized, V: ?Sized> SetTable<'_, K, V> {
    /// Creates a cursor over the pairs of key and value, which moves in both directions.
    #[must_use]
    pub fn cursor(&self) -> SetCursor<'_, K, V> {
        self.cursor_as()
    }

    /// Creates a cursor that decodes keys and values as the types `L` and `W`.
    pub(crate) fn cursor_as<L: ?Sized, W: ?Sized>(&self) -> SetCursor<'_, L, W> {
        SetCursor {
            inner: self.tree.pair_cursor(&self.pages),
            named: self.named.clone(),
            types: PhantomData,
        }
    }
}

macro_rules! moves {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $of:ident),*) = $inner:ident;)*) => {
        #[expect(
            clippy::should_implement_trait,
            reason = "`next` is a fallible step, not an iterator"
        )]
        impl<K: TableKey + ?Sized, V: TableKey + ?Sized> SetCursor<'_, K, V> {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// A damaged or unreadable page.
                pub fn $name(&mut self $(, $arg: &$of)*) -> Result<bool> {
                    Ok(self.inner.$inner($(&$arg.key_code()),*)?)
                }
            )*
        }
    };
}

moves! {
    /// Moves to the first pair of the table.
    first() = first;
    /// Moves to the last pair of the table.
    last() = last;
    /// Moves to the next pair: the next value of the current key, or the first value of the next key.
    next() = next;
    /// Moves to the previous pair: the previous value of the current key, or the last value of the previous key.
    previous() = previous;
    /// Moves to the next value of the current key.
    next_value() = next_dup;
    /// Moves to the previous value of the current key.
    previous_value() = previous_dup;
    /// Moves to the first value of the next key.
    next_key() = next_nodup;
    /// Moves to the last value of the previous key.
    previous_key() = previous_nodup;
    /// Moves to the first value of the current key.
    first_value() = first_dup;
    /// Moves to the last value of the current key.
    last_value() = last_dup;
    /// Moves to the first value of exactly the key `key`.
    seek_key(key: K) = seek_key;
    /// Moves to the first value of the first key greater than or equal to `key`.
    seek_key_ge(key: K) = seek_key_ge;
    /// Moves to the first value of the first key greater than `key`.
    seek_key_gt(key: K) = seek_key_gt;
    /// Moves to the last value of the last key less than or equal to `key`.
    seek_key_le(key: K) = seek_key_le;
    /// Moves to the last value of the last key less than `key`.
    seek_key_lt(key: K) = seek_key_lt;
    /// Moves to exactly the pair (`key`, `value`).
    seek(key: K, value: V) = seek;
    /// Moves to the first value of exactly the key `key` that is greater than or equal to `value`.
    seek_value_ge(key: K, value: V) = seek_value_ge;
    /// Moves to the first value of exactly the key `key` that is greater than `value`.
    seek_value_gt(key: K, value: V) = seek_value_gt;
    /// Moves to the last value of exactly the key `key` that is less than or equal to `value`.
    seek_value_le(key: K, value: V) = seek_value_le;
    /// Moves to the last value of exactly the key `key` that is less than `value`.
    seek_value_lt(key: K, value: V) = seek_value_lt;
    /// Moves to the first pair greater than or equal to (`key`, `value`).
    seek_ge(key: K, value: V) = seek_ge;
    /// Moves to the first pair greater than (`key`, `value`).
    seek_gt(key: K, value: V) = seek_gt;
    /// Moves to the last pair less than or equal to (`key`, `value`).
    seek_le(key: K, value: V) = seek_le;
    /// Moves to the last pair less than (`key`, `value`).
    seek_lt(key: K, value: V) = seek_lt;
}

impl<'a, K: TableKey + ?Sized, V: TableKey + ?Sized> SetCursor<'a, K, V> {
    /// Resets the cursor to the position before the first pair of `table`, which may be another table or belong to
    /// another snapshot.
    pub fn renew(&mut self, table: &'a SetTable<'_, K, V>) {
        self.inner.renew(&table.tree, &table.pages);
        self.named = table.named.clone();
    }

    /// Moves to the pair with this rank: the number of pairs before it. Cost: one page per level of the table and of
    /// the key's set.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn select(&mut self, rank: u64) -> Result<bool> {
        Ok(self.inner.select(rank)?)
    }

    /// Moves to the pair with this rank (the number of pairs before it), and from there to the first value of the same
    /// key.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn select_key(&mut self, rank: u64) -> Result<bool> {
        Ok(self.inner.select_key(rank)?)
    }

    /// Moves to the value of exactly this key that has this rank: the number of values of the key before it.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn select_value(&mut self, key: &K, rank: u64) -> Result<bool> {
        Ok(self.inner.select_value(&key.key_code(), rank)?)
    }

    /// Decodes the key and the value at the cursor.
    ///
    /// # Errors
    /// Bytes that do not decode as `K` or `V` (`WrongType`).
    ///
    /// # Panics
    /// If the last move found no pair.
    pub fn entry(&self) -> Result<(K::Owned, V::Owned)> {
        self.entry_as::<K, V>()
    }

    pub(crate) fn entry_as<L, W>(&self) -> Result<(L::Owned, W::Owned)>
    where
        L: TableKey + ?Sized,
        W: TableKey + ?Sized,
    {
        let key = key_of::<L>(&self.named, self.inner.key())?;
        Ok((key, self.value_as::<W>()?))
    }

    pub(crate) fn value_as<W: TableKey + ?Sized>(&self) -> Result<W::Owned> {
        set_value_of::<W>(&self.named, self.inner.value())
    }

    /// Number of values of the current key; 0 if the cursor is at no pair. Reads nothing.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.inner.count()
    }

    /// Returns at most `most` values of the current key, beginning with the current one. The cursor moves to the last
    /// value returned.
    ///
    /// # Errors
    /// A damaged or unreadable page; bytes that do not decode as `V` (`WrongType`).
    pub fn values(&mut self, most: usize) -> Result<Vec<V::Owned>> {
        let named = self.named.clone();
        let mut values = Vec::new();
        self.for_each_value(most, |value| values.push(set_value_of::<V>(&named, value)))?;
        values.into_iter().collect()
    }

    /// Calls `f` with the bytes of at most `most` values of the current key, beginning with the current one; returns
    /// the number of values. The cursor moves to the last of them.
    ///
    /// # Errors
    /// A damaged or unreadable page, after the values before it were passed to `f`.
    pub fn for_each_value(&mut self, most: usize, f: impl FnMut(&[u8])) -> Result<usize> {
        Ok(self.inner.get_multiple(most, f)?)
    }

    /// Returns at most `most` values of the current key after the current one. The cursor moves to the last value
    /// returned.
    ///
    /// # Errors
    /// As for `values`.
    pub fn next_values(&mut self, most: usize) -> Result<Vec<V::Owned>> {
        if !self.inner.next_dup()? {
            return Ok(Vec::new());
        }
        self.values(most)
    }

    /// Returns at most `most` values of the current key before the current one, ascending. The cursor moves to the
    /// first value returned.
    ///
    /// # Errors
    /// As for `values`.
    pub fn previous_values(&mut self, most: usize) -> Result<Vec<V::Owned>> {
        let mut values = Vec::new();
        while values.len() < most && self.inner.previous_dup()? {
            values.push(self.value_as::<V>()?);
        }
        values.reverse();
        Ok(values)
    }

    /// True if the cursor is at a pair.
    #[must_use]
    pub fn is_at_entry(&self) -> bool {
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

    /// True if the cursor is at the first value of its key.
    #[must_use]
    pub fn on_first_value(&self) -> bool {
        self.inner.on_first_dup()
    }

    /// True if the cursor is at the last value of its key.
    #[must_use]
    pub fn on_last_value(&self) -> bool {
        self.inner.on_last_dup()
    }

    /// True if the last step forward found no further pair.
    #[must_use]
    pub fn eof(&self) -> bool {
        self.inner.eof()
    }
}

impl<V: ?Sized> SetCursor<'_, [u8], V> {
    /// The bytes of the key at the cursor.
    ///
    /// # Panics
    /// If the last move found no pair.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.inner.key()
    }
}

impl<K: ?Sized> SetCursor<'_, K> {
    /// The bytes of the value at the cursor.
    ///
    /// # Panics
    /// If the last move found no pair.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        self.inner.value()
    }
}
