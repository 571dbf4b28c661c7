//! Read cursors of tables of sets.

use crate::catalog::table_name::Named;
use crate::tables::codec::{TableKey, key_of, set_value_of};
use crate::tables::set_table::SetTable;
use crate::txn::pages::Pages;
use crate::types::error::Result;
use std::marker::PhantomData;
use tidalite_kv::PairCursor;

/// Steps through the pairs of a table of sets. Each move returns whether it found its target. A failed move among the
/// values of a key (`next_value`, `previous_value`) leaves the cursor where it was. A move to an exact key, pair or
/// value that does not exist leaves it at the next pair, as `seek_ge` and `seek_gt` do (`seek_value_le`,
/// `seek_value_lt`: at the previous pair, as `seek_le` and `seek_lt` do): a step from there skips nothing.
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
    /// A bidirectional cursor over the pairs.
    #[must_use]
    pub fn cursor(&self) -> SetCursor<'_, K, V> {
        self.cursor_as()
    }

    /// A cursor that reads keys and values as other types.
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
    /// Moves to the first pair.
    first() = first;
    /// Moves to the last pair.
    last() = last;
    /// Moves to the next pair, of this key or the next.
    next() = next;
    /// Moves to the previous pair, of this key or the previous one.
    previous() = previous;
    /// Moves to the next value of this key.
    next_value() = next_dup;
    /// Moves to the previous value of this key.
    previous_value() = previous_dup;
    /// Moves to the first value of the next key.
    next_key() = next_nodup;
    /// Moves to the last value of the previous key.
    previous_key() = previous_nodup;
    /// Moves to the first value of this key.
    first_value() = first_dup;
    /// Moves to the last value of this key.
    last_value() = last_dup;
    /// Moves to the first value of exactly this key.
    seek_key(key: K) = seek_key;
    /// Moves to the first value of the first key at or above this one.
    seek_key_ge(key: K) = seek_key_ge;
    /// Moves to the first value of the first key above this one.
    seek_key_gt(key: K) = seek_key_gt;
    /// Moves to the last value of the last key at or below this one.
    seek_key_le(key: K) = seek_key_le;
    /// Moves to the last value of the last key below this one.
    seek_key_lt(key: K) = seek_key_lt;
    /// Moves to exactly this pair.
    seek(key: K, value: V) = seek;
    /// Moves to the first value of exactly this key at or above `value`.
    seek_value_ge(key: K, value: V) = seek_value_ge;
    /// Moves to the first value of exactly this key above `value`.
    seek_value_gt(key: K, value: V) = seek_value_gt;
    /// Moves to the last value of exactly this key at or below `value`.
    seek_value_le(key: K, value: V) = seek_value_le;
    /// Moves to the last value of exactly this key below `value`.
    seek_value_lt(key: K, value: V) = seek_value_lt;
    /// Moves to the first pair at or above this one.
    seek_ge(key: K, value: V) = seek_ge;
    /// Moves to the first pair above this one.
    seek_gt(key: K, value: V) = seek_gt;
    /// Moves to the last pair at or below this one.
    seek_le(key: K, value: V) = seek_le;
    /// Moves to the last pair below this one.
    seek_lt(key: K, value: V) = seek_lt;
}

impl<'a, K: TableKey + ?Sized, V: TableKey + ?Sized> SetCursor<'a, K, V> {
    /// Resets the cursor to before the first pair, of this or another table, of this or another snapshot.
    pub fn renew(&mut self, table: &'a SetTable<'_, K, V>) {
        self.inner.renew(&table.tree, &table.pages);
        self.named = table.named.clone();
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
    pub fn select_value(&mut self, key: &K, rank: u64) -> Result<bool> {
        Ok(self.inner.select_value(&key.key_code(), rank)?)
    }

    /// The current key and value.
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

    /// Number of values of the current key; 0 if the cursor is at no pair.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.inner.count()
    }

    /// At most `most` values of this key, starting with the current one; the cursor moves to the last of them.
    ///
    /// # Errors
    /// A damaged or unreadable page; bytes that do not decode as `V` (`WrongType`).
    pub fn values(&mut self, most: usize) -> Result<Vec<V::Owned>> {
        let named = self.named.clone();
        let mut values = Vec::new();
        self.for_each_value(most, |value| values.push(set_value_of::<V>(&named, value)))?;
        values.into_iter().collect()
    }

    /// Like `values`, with the bytes of the values borrowed by `f`; returns their number.
    ///
    /// # Errors
    /// A damaged or unreadable page; the values before it were passed.
    pub fn for_each_value(&mut self, most: usize, f: impl FnMut(&[u8])) -> Result<usize> {
        Ok(self.inner.get_multiple(most, f)?)
    }

    /// At most `most` values of this key after the current one; the cursor moves to the last of them.
    ///
    /// # Errors
    /// As for `values`.
    pub fn next_values(&mut self, most: usize) -> Result<Vec<V::Owned>> {
        if !self.inner.next_dup()? {
            return Ok(Vec::new());
        }
        self.values(most)
    }

    /// At most `most` values of this key before the current one, ascending; the cursor moves to the first of them.
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

    /// True if the cursor is at the first value of a key.
    #[must_use]
    pub fn on_first_value(&self) -> bool {
        self.inner.on_first_dup()
    }

    /// True if the cursor is at the last value of a key.
    #[must_use]
    pub fn on_last_value(&self) -> bool {
        self.inner.on_last_dup()
    }

    /// True if a step forward went past the end.
    #[must_use]
    pub fn eof(&self) -> bool {
        self.inner.eof()
    }
}

impl<V: ?Sized> SetCursor<'_, [u8], V> {
    /// The current key.
    ///
    /// # Panics
    /// If the last move found no pair.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.inner.key()
    }
}

impl<K: ?Sized> SetCursor<'_, K> {
    /// The current value.
    ///
    /// # Panics
    /// If the last move found no pair.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        self.inner.value()
    }
}
