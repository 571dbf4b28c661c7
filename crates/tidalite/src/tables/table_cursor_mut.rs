//! Write cursors: a position in a table of a write transaction, where entries are changed and removed.
//!
//! A position is a key (in a table of sets: a key and a value), not a page. It stays valid whatever the transaction
//! does in between, and each move is a descent.
//!
//! Invariant: a cursor that is at no entry is in a gap. The entries greater than or equal to the gap's key are exactly
//! those after the gap. A step from a gap therefore skips nothing, in either direction.

use crate::tables::codec::{TableKey, TableValue, key_of};
use crate::tables::table_cursor::TableCursor;
use crate::tables::table_mut::TableMut;
use crate::types::error::Result;
use tidalite_base::Corrupt;

/// The position of a cursor, as a key or as a pair of key and value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum At<P> {
    Before,
    /// At the entry with this key or pair.
    On(P),
    /// In the gap before all entries greater than or equal to this key or pair, where an entry was or would be.
    Gap(P),
    After,
}

/// A cursor over a table of a write transaction, which can change the current entry. Every move returns whether there
/// is an entry at the new position. A move to an exact key that does not exist leaves the cursor in the gap where the
/// key would be, and a removal leaves the cursor in the gap of the removed entry. A step from a gap goes to the
/// neighbour and skips nothing.
///
/// ```
/// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
/// let mut tx = db.begin_write()?;
/// let mut table = tx.table("t")?;
/// table.extend([("a", "1"), ("b", "2"), ("c", "3")])?;
/// let mut cursor = table.cursor_mut();
/// while cursor.next()? {
///     match cursor.key() {
///         b"b" => drop(cursor.remove()?),
///         _ => drop(cursor.replace(b"new")?),
///     }
/// }
/// assert_eq!(table.get(b"b")?, None);
/// assert_eq!(table.get(b"c")?, Some(b"new".to_vec()));
/// let mut cursor = table.cursor_mut();
/// assert!(!cursor.seek(b"b")? && cursor.next()? && cursor.key() == b"c");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Cost
/// The cursor stores its position as a key, so every move is a descent, and so is `value`. In a nested table each call
/// adds a descent for each key of the path. If nothing is changed on the way, use
/// [`Table::cursor`](crate::Table::cursor), which steps without descents; to remove entries by a predicate, use
/// [`TableMut::retain`], which is faster.
pub struct TableCursorMut<'e, 't, K: ?Sized = [u8], V: ?Sized = [u8]> {
    table: &'e mut TableMut<'t, K, V>,
    at: At<Vec<u8>>,
}

impl<'t, K: TableKey + ?Sized, V: TableValue + ?Sized> TableMut<'t, K, V> {
    /// Creates a write cursor, positioned before the first entry.
    pub fn cursor_mut(&mut self) -> TableCursorMut<'_, 't, K, V> {
        TableCursorMut {
            table: self,
            at: At::Before,
        }
    }

    /// Removes the first entry and returns it.
    ///
    /// # Errors
    /// As for [`remove`](Self::remove); `WrongType` if the bytes do not decode as `K` or `V`, in which case the entry
    /// stays.
    pub fn pop_first(&mut self) -> Result<Option<(K::Owned, V::Owned)>> {
        let mut cursor = self.cursor_mut();
        cursor.first()?;
        cursor.take()
    }

    /// Removes the last entry and returns it.
    ///
    /// # Errors
    /// As for `pop_first`.
    pub fn pop_last(&mut self) -> Result<Option<(K::Owned, V::Owned)>> {
        let mut cursor = self.cursor_mut();
        cursor.last()?;
        cursor.take()
    }
}

macro_rules! moves {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $of:ident)?) = $end:expr;)*) => {
        impl<K: TableKey + ?Sized, V: TableValue + ?Sized> TableCursorMut<'_, '_, K, V> {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// A damaged or unreadable page.
                pub fn $name(&mut self $(, $arg: &$of)?) -> Result<bool> {
                    $(let $arg = &$arg.key_code()[..];)?
                    self.go(|cursor| cursor.$name($($arg)?), $end)
                }
            )*
        }
    };
}

moves! {
    /// Moves to the first entry.
    first() = At::After;
    /// Moves to the last entry.
    last() = At::Before;
    /// Moves to the entry with exactly this key. If there is none, moves to the gap where it would be.
    seek(key: K) = At::Gap(key.to_vec());
    /// Moves to the first entry whose key is greater than or equal to `key` (ceiling).
    seek_ge(key: K) = At::After;
    /// Moves to the first entry whose key is greater than `key`.
    seek_gt(key: K) = At::After;
    /// Moves to the last entry whose key is less than or equal to `key` (floor).
    seek_le(key: K) = At::Before;
    /// Moves to the last entry whose key is less than `key`.
    seek_lt(key: K) = At::Before;
}

impl<K: TableKey + ?Sized, V: TableValue + ?Sized> TableCursorMut<'_, '_, K, V> {
    /// Moves to the entry that a read cursor reaches with the move `go`, or to `end` if it reaches none.
    fn go(
        &mut self,
        go: impl FnOnce(&mut TableCursor<'_>) -> Result<bool>,
        end: At<Vec<u8>>,
    ) -> Result<bool> {
        let found = match self.table.try_view()? {
            None => None,
            Some(view) => {
                let mut cursor = view.cursor_as();
                go(&mut cursor)?.then(|| cursor.key().to_vec())
            }
        };
        self.at = match found {
            Some(key) => At::On(key),
            None => end,
        };
        Ok(self.is_at_entry())
    }

    /// Moves to the next entry.
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
            At::On(key) => self.go(|cursor| cursor.seek_gt(&key), At::After),
            At::Gap(key) => self.go(|cursor| cursor.seek_ge(&key), At::After),
            At::After => Ok(false),
        }
    }

    /// Moves to the previous entry.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn previous(&mut self) -> Result<bool> {
        match self.at.clone() {
            At::Before => Ok(false),
            At::On(key) | At::Gap(key) => self.go(|cursor| cursor.seek_lt(&key), At::Before),
            At::After => self.last(),
        }
    }

    /// True when the cursor is at an entry.
    #[must_use]
    pub fn is_at_entry(&self) -> bool {
        matches!(self.at, At::On(_))
    }

    /// True if the cursor is at the first entry of the table. Cost: a move.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn on_first(&self) -> Result<bool> {
        let At::On(key) = &self.at else {
            return Ok(false);
        };
        Ok(!self.table.view()?.bytes().cursor().seek_lt(key)?)
    }

    /// True if the cursor is at the last entry of the table. Cost: a move.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn on_last(&self) -> Result<bool> {
        let At::On(key) = &self.at else {
            return Ok(false);
        };
        Ok(!self.table.view()?.bytes().cursor().seek_gt(key)?)
    }

    /// True if the last move forward found no further entry.
    #[must_use]
    pub fn eof(&self) -> bool {
        self.at == At::After
    }

    /// The stored bytes of the key at the cursor.
    fn code(&self) -> &[u8] {
        match &self.at {
            At::On(key) => key,
            _ => panic!("the cursor is not at an entry"),
        }
    }

    /// Decodes the key and the value at the cursor.
    ///
    /// # Errors
    /// As for [`value`](Self::value); `WrongType` if the key's bytes do not decode as `K`.
    ///
    /// # Panics
    /// If the cursor is at no entry.
    pub fn entry(&self) -> Result<(K::Owned, V::Owned)> {
        let view = self.table.view()?;
        Ok((key_of::<K>(&view.named, self.code())?, self.value()?))
    }

    /// Decodes the value at the cursor.
    ///
    /// # Errors
    /// A damaged or unreadable page; `WrongType` if the entry is a nested table or its bytes do not decode as `V`.
    ///
    /// # Panics
    /// If the cursor is at no entry.
    pub fn value(&self) -> Result<V::Owned> {
        let value = self.table.view()?.get_code(self.code())?;
        let missing = || Corrupt::new("table", 0, "no entry", "the entry of a cursor").into();
        value.ok_or_else(missing)
    }

    /// Stores a value under a key and moves to that entry; returns true if the key is new.
    ///
    /// # Errors
    /// As for [`TableMut::put`].
    pub fn put(&mut self, key: &K, value: &V::Borrowed) -> Result<bool> {
        let new = self.table.put(key, value)?;
        self.at = At::On(key.key_code().into_owned());
        Ok(new)
    }

    /// Replaces the value at the cursor and returns the old value.
    ///
    /// # Errors
    /// As for [`TableMut::put`].
    ///
    /// # Panics
    /// If the cursor is at no entry.
    pub fn replace(&mut self, value: &V::Borrowed) -> Result<Option<V::Owned>> {
        let key = self.code().to_vec();
        self.table.replace_code(&key, value)
    }

    /// Removes the current entry; if it is a nested table, with all its content. The next move continues from the same
    /// place. Returns false if the cursor is at no entry.
    ///
    /// # Errors
    /// As for [`TableMut::remove`].
    pub fn remove(&mut self) -> Result<bool> {
        let At::On(key) = &self.at else {
            return Ok(false);
        };
        let key = key.clone();
        self.table.remove_code(&key)?;
        self.at = At::Gap(key);
        Ok(true)
    }

    /// Removes the current entry and returns it; `None` if the cursor is at no entry.
    fn take(&mut self) -> Result<Option<(K::Owned, V::Owned)>> {
        if !self.is_at_entry() {
            return Ok(None);
        }
        let entry = self.entry()?;
        self.remove()?;
        Ok(Some(entry))
    }
}

impl<V: TableValue + ?Sized> TableCursorMut<'_, '_, [u8], V> {
    /// The bytes of the key at the cursor.
    ///
    /// # Panics
    /// If the cursor is at no entry.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.code()
    }
}
