//! Cursors that write: a place in a table of a write transaction, where entries are changed and removed.
//!
//! A place is a key (and a value), not a page: it stays good whatever the transaction does in between, and each move is
//! a descent. Behind a removed entry the next move goes on where it was.

use crate::error::Result;
use crate::multi_mut::MultiTableMut;
use crate::table_mut::TableMut;

/// Where a cursor is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum At<P> {
    Before,
    /// At an entry.
    On(P),
    /// Where an entry was.
    Gap(P),
    After,
}

/// Steps through a table of a write transaction and changes what it is at. Every move tells whether there is an entry at
/// the new place.
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
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TableEdit<'e, 't> {
    table: &'e mut TableMut<'t>,
    at: At<Vec<u8>>,
}

impl<'t> TableMut<'t> {
    /// A cursor that writes, before the first entry.
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
    /// To the first entry.
    first() = At::After;
    /// To the last entry.
    last() = At::Before;
    /// To the entry with exactly this key; without one the cursor is behind all.
    seek(key) = At::After;
    /// To the first entry at or above `key` (ceiling).
    seek_ge(key) = At::After;
    /// To the first entry above `key`.
    seek_gt(key) = At::After;
    /// To the last entry at or below `key` (floor).
    seek_le(key) = At::Before;
    /// To the last entry below `key`.
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

    /// To the next entry.
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
            At::On(key) | At::Gap(key) => self.seek_gt(&key),
            At::After => Ok(false),
        }
    }

    /// To the entry before.
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

    /// The key here.
    ///
    /// # Panics
    /// When the cursor is at no entry.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        match &self.at {
            At::On(key) => key,
            _ => panic!("the cursor is not at an entry"),
        }
    }

    /// The value here.
    ///
    /// # Errors
    /// A damaged or unreadable page; `IsTable` where a nested table is.
    ///
    /// # Panics
    /// When the cursor is at no entry.
    pub fn value(&self) -> Result<Vec<u8>> {
        Ok(self.table.get(self.key())?.unwrap_or_default())
    }

    /// Stores a pair and goes to it; returns true when it is new.
    ///
    /// # Errors
    /// As for [`TableMut::put`].
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        let new = self.table.put(key, value)?;
        self.at = At::On(key.to_vec());
        Ok(new)
    }

    /// Replaces the value here and returns the one that was.
    ///
    /// # Errors
    /// As for [`TableMut::put`].
    ///
    /// # Panics
    /// When the cursor is at no entry.
    pub fn replace(&mut self, value: &[u8]) -> Result<Option<Vec<u8>>> {
        let key = self.key().to_vec();
        self.table.replace(&key, value)
    }

    /// Removes the entry here, a nested table with all that is in it, and returns its key; the next move goes on from
    /// there. `None` at no entry.
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

type Pair = (Vec<u8>, Vec<u8>);

/// Steps through the pairs of a table of multi-values in a write transaction and changes what it is at.
pub struct MultiEdit<'e, 't> {
    table: &'e mut MultiTableMut<'t>,
    at: At<Pair>,
}

impl<'t> MultiTableMut<'t> {
    /// A cursor that writes, before the first pair.
    pub fn edit(&mut self) -> MultiEdit<'_, 't> {
        MultiEdit {
            table: self,
            at: At::Before,
        }
    }
}

macro_rules! pair_seeks {
    ($($(#[$doc:meta])* $name:ident($($arg:ident),*) = $end:expr;)*) => {
        impl MultiEdit<'_, '_> {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// A damaged or unreadable page.
                pub fn $name(&mut self $(, $arg: &[u8])*) -> Result<bool> {
                    let found = {
                        let view = self.table.view()?;
                        let mut cursor = view.cursor();
                        let pair = |cursor: &crate::MultiCursor<'_>| {
                            (cursor.key().to_vec(), cursor.value().to_vec())
                        };
                        cursor.$name($($arg),*)?.then(|| pair(&cursor))
                    };
                    self.at = match found {
                        Some(pair) => At::On(pair),
                        None => $end,
                    };
                    Ok(self.is_at_pair())
                }
            )*
        }
    };
}

pair_seeks! {
    /// To the first pair.
    first() = At::After;
    /// To the last pair.
    last() = At::Before;
    /// To the first value of exactly this key.
    seek_key(key) = At::After;
    /// To the first value of the first key at or above this one.
    seek_key_ge(key) = At::After;
    /// To the first value of the first key above this one.
    seek_key_gt(key) = At::After;
    /// To the last value of the last key at or below this one.
    seek_key_le(key) = At::Before;
    /// To the last value of the last key below this one.
    seek_key_lt(key) = At::Before;
    /// To exactly this pair.
    seek(key, value) = At::After;
    /// To the first pair at or above this one.
    seek_ge(key, value) = At::After;
    /// To the first pair above this one.
    seek_gt(key, value) = At::After;
    /// To the last pair at or below this one.
    seek_le(key, value) = At::Before;
    /// To the last pair below this one.
    seek_lt(key, value) = At::Before;
}

impl MultiEdit<'_, '_> {
    /// To the next pair.
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
            At::On((key, value)) | At::Gap((key, value)) => self.seek_gt(&key, &value),
            At::After => Ok(false),
        }
    }

    /// To the pair before.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn previous(&mut self) -> Result<bool> {
        match self.at.clone() {
            At::Before => Ok(false),
            At::On((key, value)) | At::Gap((key, value)) => self.seek_lt(&key, &value),
            At::After => self.last(),
        }
    }

    /// True when the cursor is at a pair.
    #[must_use]
    pub fn is_at_pair(&self) -> bool {
        matches!(self.at, At::On(_))
    }

    fn pair(&self) -> &Pair {
        match &self.at {
            At::On(pair) => pair,
            _ => panic!("the cursor is not at a pair"),
        }
    }

    /// The key here.
    ///
    /// # Panics
    /// When the cursor is at no pair.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.pair().0
    }

    /// The value here.
    ///
    /// # Panics
    /// When the cursor is at no pair.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        &self.pair().1
    }

    /// Stores a pair and goes to it; returns true when it is new.
    ///
    /// # Errors
    /// As for [`MultiTableMut::put`].
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        let new = self.table.put(key, value)?;
        self.at = At::On((key.to_vec(), value.to_vec()));
        Ok(new)
    }

    /// Puts another value in the place of the one here; the cursor is at it then.
    ///
    /// # Errors
    /// As for [`MultiTableMut::put`].
    ///
    /// # Panics
    /// When the cursor is at no pair.
    pub fn replace(&mut self, value: &[u8]) -> Result<()> {
        let (key, old) = self.pair().clone();
        self.table.replace(&key, &old, value)?;
        self.at = At::On((key, value.to_vec()));
        Ok(())
    }

    /// Removes the pair here; the next move goes on from there. False at no pair.
    ///
    /// # Errors
    /// As for [`MultiTableMut::remove`].
    pub fn remove(&mut self) -> Result<bool> {
        let At::On(pair) = &self.at else {
            return Ok(false);
        };
        let pair = pair.clone();
        self.table.remove(&pair.0, &pair.1)?;
        self.at = At::Gap(pair);
        Ok(true)
    }

    /// Removes the key here with all its values; returns how many, 0 at no pair. The next move goes on with the next key.
    ///
    /// # Errors
    /// As for [`MultiTableMut::remove_all`].
    pub fn remove_all(&mut self) -> Result<u64> {
        let At::On((key, value)) = &self.at else {
            return Ok(0);
        };
        let (key, value) = (key.clone(), value.clone());
        let removed = self.table.remove_all(&key)?;
        self.at = At::Gap((key, value));
        Ok(removed)
    }
}
