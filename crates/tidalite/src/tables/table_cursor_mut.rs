//! Write cursors: a position in a table of a write transaction, where entries are changed and removed.
//!
//! A position is a key (and a value), not a page: it stays valid whatever the transaction does in between, and each
//! move is a descent.
//!
//! Invariant: a cursor at no entry is in a gap; the entries at or above the gap's key are exactly those after the gap.
//! A step from a gap therefore skips nothing, in either direction.

use crate::tables::codec::{TableKey, TableValue, key_of};
use crate::tables::table_cursor::TableCursor;
use crate::tables::table_mut::TableMut;
use crate::types::error::Result;
use tidalite_base::Corrupt;

/// The position of a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum At<P> {
    Before,
    /// At an entry.
    On(P),
    /// Before all entries at or above this one, where an entry was or would be.
    Gap(P),
    After,
}

/// Steps through a table of a write transaction and changes the current entry. Every move returns whether there is an
/// entry at the new position. A move to an exact key that does not exist leaves the cursor in the gap where the key
/// would be, and a removal leaves it in the gap of the removed entry. A step from a gap goes to the neighbour and skips
/// nothing.
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
/// adds a descent for each key of the path. If nothing is changed on the way, [`Table::cursor`](crate::Table::cursor)
/// steps without descents; to remove entries by a predicate, [`TableMut::retain`] is faster.
pub struct TableCursorMut<'e, 't, K: ?Sized = [u8], V: ?Sized = [u8]> {
    table: &'e mut TableMut<'t, K, V>,
    at: At<Vec<u8>>,
}

impl<'t, K: TableKey + ?Sized, V: TableValue + ?Sized> TableMut<'t, K, V> {
    /// A write cursor, positioned before the first entry.
    pub fn cursor_mut(&mut self) -> TableCursorMut<'_, 't, K, V> {
        TableCursorMut {
            table: self,
            at: At::Before,
        }
    }

    /// Removes the first entry and returns it.
    ///
    /// # Errors
    /// As for [`remove`](Self::remove); `WrongType` if the bytes do not decode as `K` or `V`, and then the entry stays.
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

impl<K: TableKey + ?Sized, V: TableValue + ?Sized> TableCursorMut<'_, '_, K, V> {
    /// Moves to the entry that a read cursor reaches with `go`, or to `end` if it reaches none.
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

    /// Moves to the first entry.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn first(&mut self) -> Result<bool> {
        self.go(|cursor| cursor.first(), At::After)
    }

    /// Moves to the last entry.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn last(&mut self) -> Result<bool> {
        self.go(|cursor| cursor.last(), At::Before)
    }

    /// Moves to the entry with exactly this key. If none exists, moves to the gap where it would be.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn seek(&mut self, key: &K) -> Result<bool> {
        let key = key.key_code();
        self.go(|cursor| cursor.seek(&key), At::Gap(key.to_vec()))
    }

    /// Moves to the first entry at or above `key` (ceiling).
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn seek_ge(&mut self, key: &K) -> Result<bool> {
        self.go(|cursor| cursor.seek_ge(&key.key_code()), At::After)
    }

    /// Moves to the first entry above `key`.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn seek_gt(&mut self, key: &K) -> Result<bool> {
        self.go(|cursor| cursor.seek_gt(&key.key_code()), At::After)
    }

    /// Moves to the last entry at or below `key` (floor).
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn seek_le(&mut self, key: &K) -> Result<bool> {
        self.go(|cursor| cursor.seek_le(&key.key_code()), At::Before)
    }

    /// Moves to the last entry below `key`.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn seek_lt(&mut self, key: &K) -> Result<bool> {
        self.go(|cursor| cursor.seek_lt(&key.key_code()), At::Before)
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

    /// True when a move forward found no more entries.
    #[must_use]
    pub fn eof(&self) -> bool {
        self.at == At::After
    }

    /// The bytes of the current key.
    fn code(&self) -> &[u8] {
        match &self.at {
            At::On(key) => key,
            _ => panic!("the cursor is not at an entry"),
        }
    }

    /// The current key and value.
    ///
    /// # Errors
    /// As for [`value`](Self::value); bytes that do not decode as `K` (`WrongType`).
    ///
    /// # Panics
    /// If the cursor is at no entry.
    pub fn entry(&self) -> Result<(K::Owned, V::Owned)> {
        let view = self.table.view()?;
        Ok((key_of::<K>(&view.named, self.code())?, self.value()?))
    }

    /// The current value.
    ///
    /// # Errors
    /// A damaged or unreadable page; `WrongType` if the entry is a nested table; bytes that do not decode as `V`
    /// (`WrongType`).
    ///
    /// # Panics
    /// If the cursor is at no entry.
    pub fn value(&self) -> Result<V::Owned> {
        let value = self.table.view()?.get_code(self.code())?;
        let missing = || Corrupt::new("table", 0, "no entry", "the entry of a cursor").into();
        value.ok_or_else(missing)
    }

    /// Stores a pair and moves to it; returns true if it is new.
    ///
    /// # Errors
    /// As for [`TableMut::put`].
    pub fn put(&mut self, key: &K, value: &V::Borrowed) -> Result<bool> {
        let new = self.table.put(key, value)?;
        self.at = At::On(key.key_code().into_owned());
        Ok(new)
    }

    /// Replaces the current value and returns the old one.
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

    /// Removes the current entry; for a nested table, with all its content. The next move continues from there. Returns
    /// false if the cursor is at no entry.
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

    /// Removes the current entry and returns it.
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
    /// The current key.
    ///
    /// # Panics
    /// If the cursor is at no entry.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.code()
    }
}
