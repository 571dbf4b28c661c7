//! Write cursors: a position in a table of a write transaction, where entries are changed and removed.
//!
//! A position is a key (and a value), not a page: it stays valid whatever the transaction does in between, and each
//! move is a descent.
//!
//! Invariant: a cursor at no entry is in a gap; the entries at or above the gap's key are exactly those after the gap.
//! A step from a gap therefore skips nothing, in either direction.

use crate::tables::table_mut::TableMut;
use crate::types::error::Result;

/// The position of a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum At<P> {
    Before,
    /// At an entry.
    On(P),
    /// Before all entries at or above this one: where an entry was, or would be.
    Gap(P),
    After,
}

/// Steps through a table of a write transaction and changes the current entry. Every move returns whether there is an
/// entry at the new position. A move to an exact key that does not exist leaves the cursor in the gap at its position,
/// and a removal in the gap left by the entry: a step from there goes to the neighbour and skips nothing.
///
/// ```
/// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::MemoryStorage::new()))?;
/// let mut tx = db.begin_write()?;
/// let mut table = tx.table("t")?;
/// table.extend([("a", "1"), ("b", "2"), ("c", "3")])?;
/// let mut edit = table.edit();
/// while edit.next()? {
///     match edit.key() {
///         b"b" => drop(edit.remove()?),
///         _ => drop(edit.replace(b"new")?),
///     }
/// }
/// assert_eq!(table.get(b"b")?, None);
/// assert_eq!(table.get(b"c")?, Some(b"new".to_vec()));
/// let mut edit = table.edit();
/// assert!(!edit.seek(b"b")? && edit.next()? && edit.key() == b"c");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Cost
/// The cursor stores its position as a key: every move is a descent, and so is `value`; in a nested table add one for
/// each key of its path. If nothing is changed on the way, [`Table::cursor`](crate::Table::cursor) steps without
/// descents; to remove entries by a predicate, [`TableMut::retain`] is faster.
pub struct TableEdit<'e, 't> {
    table: &'e mut TableMut<'t>,
    at: At<Vec<u8>>,
}

impl<'t> TableMut<'t> {
    /// A write cursor, positioned before the first entry.
    pub fn edit(&mut self) -> TableEdit<'_, 't> {
        TableEdit {
            table: self,
            at: At::Before,
        }
    }

    /// Removes the first entry and returns it.
    ///
    /// # Errors
    /// As for [`remove`](Self::remove).
    pub fn pop_first(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let mut edit = self.edit();
        if !edit.first()? {
            return Ok(None);
        }
        let value = edit.value()?;
        Ok(edit.remove()?.map(|key| (key, value)))
    }

    /// Removes the last entry and returns it.
    ///
    /// # Errors
    /// As for [`remove`](Self::remove).
    pub fn pop_last(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let mut edit = self.edit();
        if !edit.last()? {
            return Ok(None);
        }
        let value = edit.value()?;
        Ok(edit.remove()?.map(|key| (key, value)))
    }
}

macro_rules! seeks {
    ($($(#[$doc:meta])* $name:ident($($key:ident)?) = $end:expr;)*) => {
        impl TableEdit<'_, '_> {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// A damaged or unreadable page.
                pub fn $name(&mut self $(, $key: &[u8])?) -> Result<bool> {
                    let found = match self.table.try_view()? {
                        None => None,
                        Some(view) => {
                            let mut cursor = view.cursor();
                            cursor.$name($($key)?)?.then(|| cursor.key().to_vec())
                        }
                    };
                    Ok(self.stand(found, $end))
                }
            )*
        }
    };
}

seeks! {
    /// Moves to the first entry.
    first() = At::After;
    /// Moves to the last entry.
    last() = At::Before;
    /// Moves to the entry with exactly this key; if none exists, to the gap at its position.
    seek(key) = At::Gap(key.to_vec());
    /// Moves to the first entry at or above `key` (ceiling).
    seek_ge(key) = At::After;
    /// Moves to the first entry above `key`.
    seek_gt(key) = At::After;
    /// Moves to the last entry at or below `key` (floor).
    seek_le(key) = At::Before;
    /// Moves to the last entry below `key`.
    seek_lt(key) = At::Before;
}

impl TableEdit<'_, '_> {
    fn stand(&mut self, found: Option<Vec<u8>>, end: At<Vec<u8>>) -> bool {
        self.at = match found {
            Some(key) => At::On(key),
            None => end,
        };
        self.is_at_entry()
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
            At::On(key) => self.seek_gt(&key),
            At::Gap(key) => self.seek_ge(&key),
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
            At::On(key) | At::Gap(key) => self.seek_lt(&key),
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
        Ok(!self.table.view()?.cursor().seek_lt(key)?)
    }

    /// True if the cursor is at the last entry of the table. Cost: a move.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn on_last(&self) -> Result<bool> {
        let At::On(key) = &self.at else {
            return Ok(false);
        };
        Ok(!self.table.view()?.cursor().seek_gt(key)?)
    }

    /// True when a move forward found no more entries.
    #[must_use]
    pub fn eof(&self) -> bool {
        self.at == At::After
    }

    /// The current key.
    ///
    /// # Panics
    /// If the cursor is at no entry.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        match &self.at {
            At::On(key) => key,
            _ => panic!("the cursor is not at an entry"),
        }
    }

    /// The current value.
    ///
    /// # Errors
    /// A damaged or unreadable page; `IsTable` if the entry is a nested table.
    ///
    /// # Panics
    /// If the cursor is at no entry.
    pub fn value(&self) -> Result<Vec<u8>> {
        Ok(self.table.get(self.key())?.unwrap_or_default())
    }

    /// Stores a pair and moves to it; returns true if it is new.
    ///
    /// # Errors
    /// As for [`TableMut::put`].
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        let new = self.table.put(key, value)?;
        self.at = At::On(key.to_vec());
        Ok(new)
    }

    /// Replaces the current value and returns the old one.
    ///
    /// # Errors
    /// As for [`TableMut::put`].
    ///
    /// # Panics
    /// If the cursor is at no entry.
    pub fn replace(&mut self, value: &[u8]) -> Result<Option<Vec<u8>>> {
        let key = self.key().to_vec();
        self.table.replace(&key, value)
    }

    /// Removes the current entry, a nested table with all its content, and returns its key; the next move continues
    /// from there. `None` if the cursor is at no entry.
    ///
    /// # Errors
    /// As for [`TableMut::remove`].
    pub fn remove(&mut self) -> Result<Option<Vec<u8>>> {
        let At::On(key) = &self.at else {
            return Ok(None);
        };
        let key = key.clone();
        self.table.remove(&key)?;
        self.at = At::Gap(key.clone());
        Ok(Some(key))
    }
}
