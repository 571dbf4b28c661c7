//! Write cursors in tables of sets. The position of a cursor is a pair of key and value.
//!
//! The invariant at the head of `table_cursor_mut.rs` holds here, too.

use crate::tables::bounds::Pair;
use crate::tables::codec::TableKey;
use crate::tables::set_cursor::SetCursor;
use crate::tables::set_table_mut::SetTableMut;
use crate::tables::table_cursor_mut::At;
use crate::types::error::Result;

/// A cursor over the pairs of a table of sets in a write transaction, which can change the current pair. Each move
/// returns whether it found its target. The moves are named and behave as in [`SetCursor`], with one exception: a move
/// to an exact key, pair or value that does not exist leaves the cursor in the gap where that would be, and a removal
/// leaves the cursor in the gap of the removed pair. A step from a gap goes to the neighbour and skips nothing. A
/// failed move among the values of a key (`next_value`, `previous_value`) leaves the cursor where it was.
///
/// ```
/// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
/// let mut tx = db.begin_write()?;
/// let mut tags = tx.set_table("tags")?;
/// tags.put_many(b"a", &["1", "2", "3"])?;
/// tags.put(b"c", b"4")?;
/// // Only the greatest value of the key `a` stays.
/// let mut edit = tags.cursor_mut();
/// edit.seek_key(b"a")?;
/// edit.last_value()?;
/// while edit.previous_value()? {
///     edit.remove()?;
/// }
/// assert!(!edit.seek(b"b", b"0")? && edit.previous()? && edit.value() == b"3");
/// assert_eq!(tags.view()?.count(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Cost
/// The cursor stores its position as a pair: every move, even among the values of a key, is a descent in the table, and
/// a second descent in the key's set of values if that set has pages of its own. If nothing is changed on the way, use
/// [`SetCursor`], which steps without descents.
pub struct SetCursorMut<'e, 't, K: ?Sized = [u8], V: ?Sized = [u8]> {
    table: &'e mut SetTableMut<'t, K, V>,
    at: At<Pair>,
}

impl<'t, K: TableKey + ?Sized, V: TableKey + ?Sized> SetTableMut<'t, K, V> {
    /// Creates a write cursor, positioned before the first pair.
    pub fn cursor_mut(&mut self) -> SetCursorMut<'_, 't, K, V> {
        SetCursorMut {
            table: self,
            at: At::Before,
        }
    }

    /// Removes the first pair and returns it.
    ///
    /// # Errors
    /// As for [`remove`](Self::remove); `WrongType` if the bytes do not decode as `K` or `V`, in which case the pair
    /// stays.
    pub fn pop_first(&mut self) -> Result<Option<(K::Owned, V::Owned)>> {
        let mut edit = self.cursor_mut();
        edit.first()?;
        edit.take()
    }

    /// Removes the last pair and returns it.
    ///
    /// # Errors
    /// As for `pop_first`.
    pub fn pop_last(&mut self) -> Result<Option<(K::Owned, V::Owned)>> {
        let mut edit = self.cursor_mut();
        edit.last()?;
        edit.take()
    }
}

fn owned(key: &[u8], value: &[u8]) -> Pair {
    (key.to_vec(), value.to_vec())
}

macro_rules! pair_seeks {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $of:ident),*) = $end:expr;)*) => {
        impl<K: TableKey + ?Sized, V: TableKey + ?Sized> SetCursorMut<'_, '_, K, V> {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// A damaged or unreadable page.
                pub fn $name(&mut self $(, $arg: &$of)*) -> Result<bool> {
                    $(let $arg = &$arg.key_code()[..];)*
                    self.go(|cursor| cursor.$name($($arg),*), $end)
                }
            )*
        }
    };
}

pair_seeks! {
    /// Moves to the first pair of the table.
    first() = At::After;
    /// Moves to the last pair of the table.
    last() = At::Before;
    /// Moves to the first value of exactly the key `key`.
    seek_key(key: K) = At::Gap(owned(key, &[]));
    /// Moves to the first value of the first key greater than or equal to `key`.
    seek_key_ge(key: K) = At::After;
    /// Moves to the first value of the first key greater than `key`.
    seek_key_gt(key: K) = At::After;
    /// Moves to the last value of the last key less than or equal to `key`.
    seek_key_le(key: K) = At::Before;
    /// Moves to the last value of the last key less than `key`.
    seek_key_lt(key: K) = At::Before;
    /// Moves to exactly the pair (`key`, `value`).
    seek(key: K, value: V) = At::Gap(owned(key, value));
    /// Moves to the first value of exactly the key `key` that is greater than or equal to `value`.
    seek_value_ge(key: K, value: V) = At::Gap(owned(key, value));
    /// Moves to the first value of exactly the key `key` that is greater than `value`.
    // If no value is found, the cursor is in the gap after `value`, which may exist: the least greater value is `value`
    // with a zero byte appended.
    seek_value_gt(key: K, value: V) = At::Gap((key.to_vec(), [value, &[0]].concat()));
    /// Moves to the last value of exactly the key `key` that is less than or equal to `value`.
    seek_value_le(key: K, value: V) = At::Gap(owned(key, value));
    /// Moves to the last value of exactly the key `key` that is less than `value`.
    seek_value_lt(key: K, value: V) = At::Gap(owned(key, value));
    /// Moves to the first pair greater than or equal to (`key`, `value`).
    seek_ge(key: K, value: V) = At::After;
    /// Moves to the first pair greater than (`key`, `value`).
    seek_gt(key: K, value: V) = At::After;
    /// Moves to the last pair less than or equal to (`key`, `value`).
    seek_le(key: K, value: V) = At::Before;
    /// Moves to the last pair less than (`key`, `value`).
    seek_lt(key: K, value: V) = At::Before;
}

impl<K: TableKey + ?Sized, V: TableKey + ?Sized> SetCursorMut<'_, '_, K, V> {
    /// The pair to which the move `go` takes a read cursor; `None` if the move finds no pair.
    fn find(&self, go: impl FnOnce(&mut SetCursor<'_>) -> Result<bool>) -> Result<Option<Pair>> {
        let view = self.table.view()?;
        let mut cursor = view.cursor_as();
        let found = go(&mut cursor)?;
        Ok(found.then(|| owned(cursor.key(), cursor.value())))
    }

    /// Makes the move `go`: to the pair to which a read cursor would move, or to `end` if there is no such pair.
    fn go(
        &mut self,
        go: impl FnOnce(&mut SetCursor<'_>) -> Result<bool>,
        end: At<Pair>,
    ) -> Result<bool> {
        self.at = match self.find(go)? {
            Some(pair) => At::On(pair),
            None => end,
        };
        Ok(self.is_at_entry())
    }

    /// Makes the move `go` if it finds a pair; otherwise the cursor stays where it is.
    fn go_if_there(&mut self, go: impl FnOnce(&mut SetCursor<'_>) -> Result<bool>) -> Result<bool> {
        let found = self.find(go)?;
        let there = found.is_some();
        if let Some(pair) = found {
            self.at = At::On(pair);
        }
        Ok(there)
    }

    /// Moves to the next pair: the next value of the current key, or the first value of the next key.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    #[expect(
        clippy::should_implement_trait,
        reason = "a fallible step, not an iterator"
    )]
    pub fn next(&mut self) -> Result<bool> {
        match self.at.clone() {
            At::Before => self.first(),
            At::On((key, value)) => self.go(|cursor| cursor.seek_gt(&key, &value), At::After),
            At::Gap((key, value)) => self.go(|cursor| cursor.seek_ge(&key, &value), At::After),
            At::After => Ok(false),
        }
    }

    /// Moves to the previous pair: the previous value of the current key, or the last value of the previous key.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn previous(&mut self) -> Result<bool> {
        match self.at.clone() {
            At::Before => Ok(false),
            At::On((key, value)) | At::Gap((key, value)) => {
                self.go(|cursor| cursor.seek_lt(&key, &value), At::Before)
            }
            At::After => self.last(),
        }
    }

    /// Moves to the next value of the current key; returns false without moving if there is none.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn next_value(&mut self) -> Result<bool> {
        match self.at.clone() {
            At::On((key, value)) => self.go_if_there(|cursor| cursor.seek_value_gt(&key, &value)),
            At::Gap((key, value)) => self.go_if_there(|cursor| cursor.seek_value_ge(&key, &value)),
            At::Before | At::After => Ok(false),
        }
    }

    /// Moves to the previous value of the current key; returns false without moving if there is none.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn previous_value(&mut self) -> Result<bool> {
        match self.at.clone() {
            At::On((key, value)) | At::Gap((key, value)) => {
                self.go_if_there(|cursor| cursor.seek_value_lt(&key, &value))
            }
            At::Before | At::After => Ok(false),
        }
    }

    /// Moves to the first value of the next key.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn next_key(&mut self) -> Result<bool> {
        match self.at.clone() {
            At::Before => self.first(),
            At::On((key, _)) | At::Gap((key, _)) => {
                self.go(|cursor| cursor.seek_key_gt(&key), At::After)
            }
            At::After => Ok(false),
        }
    }

    /// Moves to the last value of the previous key.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn previous_key(&mut self) -> Result<bool> {
        match self.at.clone() {
            At::Before => Ok(false),
            At::On((key, _)) | At::Gap((key, _)) => {
                self.go(|cursor| cursor.seek_key_lt(&key), At::Before)
            }
            At::After => self.last(),
        }
    }

    /// Moves to the first value of the current key; returns false without moving if the key has no values.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn first_value(&mut self) -> Result<bool> {
        match self.at.clone() {
            At::On((key, _)) | At::Gap((key, _)) => {
                self.go_if_there(|cursor| cursor.seek_key(&key))
            }
            At::Before | At::After => Ok(false),
        }
    }

    /// Moves to the last value of the current key; returns false without moving if the key has no values.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn last_value(&mut self) -> Result<bool> {
        match self.at.clone() {
            At::On((key, _)) | At::Gap((key, _)) => {
                self.go_if_there(|cursor| Ok(cursor.seek_key(&key)? && cursor.last_value()?))
            }
            At::Before | At::After => Ok(false),
        }
    }

    /// Number of values of the current key; 0 if the cursor is at no pair. Cost: a descent.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn count(&self) -> Result<u64> {
        match &self.at {
            At::On((key, _)) => self.table.view()?.bytes().count_of(key),
            _ => Ok(0),
        }
    }

    /// True if the cursor is at a pair.
    #[must_use]
    pub fn is_at_entry(&self) -> bool {
        matches!(self.at, At::On(_))
    }

    /// True if the cursor is at the first pair of the table. Cost: a move.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn on_first(&self) -> Result<bool> {
        self.is_end(|cursor, (key, value)| cursor.seek_lt(key, value))
    }

    /// True if the cursor is at the last pair of the table. Cost: a move.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn on_last(&self) -> Result<bool> {
        self.is_end(|cursor, (key, value)| cursor.seek_gt(key, value))
    }

    /// True if the cursor is at the first value of its key. Cost: a move.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn on_first_value(&self) -> Result<bool> {
        self.is_end(|cursor, (key, value)| cursor.seek_value_lt(key, value))
    }

    /// True if the cursor is at the last value of its key. Cost: a move.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn on_last_value(&self) -> Result<bool> {
        self.is_end(|cursor, (key, value)| cursor.seek_value_gt(key, value))
    }

    /// Whether the cursor is at a pair from which the move `go` finds no further pair.
    fn is_end(&self, go: impl FnOnce(&mut SetCursor<'_>, &Pair) -> Result<bool>) -> Result<bool> {
        match &self.at {
            At::On(pair) => Ok(!go(&mut self.table.view()?.cursor_as(), pair)?),
            _ => Ok(false),
        }
    }

    /// True if the last move forward found no further pair.
    #[must_use]
    pub fn eof(&self) -> bool {
        self.at == At::After
    }

    fn pair(&self) -> &Pair {
        match &self.at {
            At::On(pair) => pair,
            _ => panic!("the cursor is not at a pair"),
        }
    }

    /// Decodes the key and the value at the cursor.
    ///
    /// # Errors
    /// Bytes that do not decode as `K` or `V` (`WrongType`); `Broken`.
    ///
    /// # Panics
    /// If the cursor is at no pair.
    pub fn entry(&self) -> Result<(K::Owned, V::Owned)> {
        let (key, value) = self.pair();
        self.table.view()?.pair(key, value)
    }

    /// Stores a pair and moves the cursor to it; returns true if the pair is new.
    ///
    /// # Errors
    /// As for [`SetTableMut::put`].
    pub fn put(&mut self, key: &K, value: &V) -> Result<bool> {
        let new = self.table.put(key, value)?;
        self.at = At::On(owned(&key.key_code(), &value.key_code()));
        Ok(new)
    }

    /// Replaces the value of the current pair; the cursor moves to the new pair.
    ///
    /// # Errors
    /// As for [`SetTableMut::put`].
    ///
    /// # Panics
    /// If the cursor is at no pair.
    pub fn replace(&mut self, value: &V) -> Result<()> {
        let (key, old) = self.pair().clone();
        let value = value.key_code();
        self.table.replace_code((&key, &old), &value)?;
        self.at = At::On((key, value.to_vec()));
        Ok(())
    }

    /// Removes the current pair; the next move continues from its place. Returns false if the cursor is at no pair.
    ///
    /// # Errors
    /// As for [`SetTableMut::remove`].
    pub fn remove(&mut self) -> Result<bool> {
        let At::On(pair) = &self.at else {
            return Ok(false);
        };
        let pair = pair.clone();
        self.table.remove_code(&pair.0, &pair.1)?;
        self.at = At::Gap(pair);
        Ok(true)
    }

    /// Removes the current pair and returns it; `None` if the cursor is at no pair.
    fn take(&mut self) -> Result<Option<(K::Owned, V::Owned)>> {
        if !self.is_at_entry() {
            return Ok(None);
        }
        let pair = self.entry()?;
        self.remove()?;
        Ok(Some(pair))
    }

    /// Removes the current key with all its values; returns the number of values, 0 if the cursor is at no pair. The
    /// next move continues with the next key.
    ///
    /// # Errors
    /// As for [`SetTableMut::remove_all`].
    pub fn remove_all(&mut self) -> Result<u64> {
        let At::On((key, value)) = &self.at else {
            return Ok(0);
        };
        let (key, value) = (key.clone(), value.clone());
        let removed = self.table.remove_all_code(&key)?;
        self.at = At::Gap((key, value));
        Ok(removed)
    }
}

impl<V: TableKey + ?Sized> SetCursorMut<'_, '_, [u8], V> {
    /// The bytes of the key at the cursor.
    ///
    /// # Panics
    /// If the cursor is at no pair.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.pair().0
    }
}

impl<K: TableKey + ?Sized> SetCursorMut<'_, '_, K> {
    /// The bytes of the value at the cursor.
    ///
    /// # Panics
    /// If the cursor is at no pair.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        &self.pair().1
    }
}
