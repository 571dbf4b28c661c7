//! Write cursors in tables of multi-values: a position is a pair.
//!
//! The invariant of `table_cursor_mut.rs` holds.

use crate::tables::multi::MultiCursor;
use crate::tables::multi_mut::MultiTableMut;
use crate::tables::table_cursor_mut::At;
use crate::types::error::Result;

type Pair = (Vec<u8>, Vec<u8>);

/// Steps through the pairs of a table of multi-values in a write transaction and changes the current pair. Each move
/// returns whether it found its target. The moves are named and behave as in [`MultiCursor`], with one exception: a
/// move to an exact key, pair or value that does not exist leaves the cursor in the gap at its position, and a removal
/// in the gap left by the pair. A step from a gap goes to the neighbour and skips nothing. A failed move among the
/// values of a key (`next_dup`, `prev_dup`) leaves the cursor where it was.
///
/// ```
/// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
/// let mut tx = db.begin_write()?;
/// let mut tags = tx.multi_table("tags")?;
/// tags.put_many(b"a", &["1", "2", "3"])?;
/// tags.put(b"c", b"4")?;
/// // Only the greatest value of the key `a` stays.
/// let mut edit = tags.cursor_mut();
/// edit.seek_key(b"a")?;
/// edit.last_dup()?;
/// while edit.prev_dup()? {
///     edit.remove()?;
/// }
/// assert!(!edit.seek(b"b", b"0")? && edit.prev_pair()? && edit.value() == b"3");
/// assert_eq!(tags.view()?.count(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Cost
/// The cursor stores its position as a pair: every move, even among the values of a key, is a descent in the table, and
/// one in the key's set of values if that has pages of its own. If nothing is changed on the way, [`MultiCursor`] steps
/// without descents.
pub struct MultiEdit<'e, 't> {
    table: &'e mut MultiTableMut<'t>,
    at: At<Pair>,
}

impl<'t> MultiTableMut<'t> {
    /// A write cursor, positioned before the first pair.
    pub fn cursor_mut(&mut self) -> MultiEdit<'_, 't> {
        MultiEdit {
            table: self,
            at: At::Before,
        }
    }

    /// Removes the first pair and returns it.
    ///
    /// # Errors
    /// As for [`remove`](Self::remove).
    pub fn pop_first(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let mut edit = self.cursor_mut();
        edit.first()?;
        edit.take()
    }

    /// Removes the last pair and returns it.
    ///
    /// # Errors
    /// As for [`remove`](Self::remove).
    pub fn pop_last(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let mut edit = self.cursor_mut();
        edit.last()?;
        edit.take()
    }
}

fn owned(key: &[u8], value: &[u8]) -> Pair {
    (key.to_vec(), value.to_vec())
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
                    let found = self.find(|cursor| cursor.$name($($arg),*))?;
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
    /// Moves to the first pair.
    first() = At::After;
    /// Moves to the last pair.
    last() = At::Before;
    /// Moves to the first value of exactly this key.
    seek_key(key) = At::Gap(owned(key, &[]));
    /// Moves to the first value of the first key at or above this one.
    seek_key_ge(key) = At::After;
    /// Moves to the first value of the first key above this one.
    seek_key_gt(key) = At::After;
    /// Moves to the last value of the last key at or below this one.
    seek_key_le(key) = At::Before;
    /// Moves to the last value of the last key below this one.
    seek_key_lt(key) = At::Before;
    /// Moves to exactly this pair.
    seek(key, value) = At::Gap(owned(key, value));
    /// Moves to the first value of exactly this key at or above `value`.
    seek_value_ge(key, value) = At::Gap(owned(key, value));
    /// Moves to the first value of exactly this key above `value`.
    // The gap is after the value, which may exist: the next value has a zero byte appended.
    seek_value_gt(key, value) = At::Gap((key.to_vec(), [value, &[0]].concat()));
    /// Moves to the last value of exactly this key at or below `value`.
    seek_value_le(key, value) = At::Gap(owned(key, value));
    /// Moves to the last value of exactly this key below `value`.
    seek_value_lt(key, value) = At::Gap(owned(key, value));
    /// Moves to the first pair at or above this one.
    seek_ge(key, value) = At::After;
    /// Moves to the first pair above this one.
    seek_gt(key, value) = At::After;
    /// Moves to the last pair at or below this one.
    seek_le(key, value) = At::Before;
    /// Moves to the last pair below this one.
    seek_lt(key, value) = At::Before;
}

impl MultiEdit<'_, '_> {
    /// The pair to which a read cursor would move.
    fn find(&self, go: impl FnOnce(&mut MultiCursor<'_>) -> Result<bool>) -> Result<Option<Pair>> {
        let view = self.table.view()?;
        let mut cursor = view.cursor();
        let found = go(&mut cursor)?;
        Ok(found.then(|| owned(cursor.key(), cursor.value())))
    }

    /// Moves to a pair if there is one; else stays.
    fn go_if_there(
        &mut self,
        go: impl FnOnce(&mut MultiCursor<'_>) -> Result<bool>,
    ) -> Result<bool> {
        let found = self.find(go)?;
        let there = found.is_some();
        if let Some(pair) = found {
            self.at = At::On(pair);
        }
        Ok(there)
    }

    /// Moves to the next pair, of this key or the next.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn next_pair(&mut self) -> Result<bool> {
        match self.at.clone() {
            At::Before => self.first(),
            At::On((key, value)) => self.seek_gt(&key, &value),
            At::Gap((key, value)) => self.seek_ge(&key, &value),
            At::After => Ok(false),
        }
    }

    /// Moves to the previous pair, of this key or the previous one.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn prev_pair(&mut self) -> Result<bool> {
        match self.at.clone() {
            At::Before => Ok(false),
            At::On((key, value)) | At::Gap((key, value)) => self.seek_lt(&key, &value),
            At::After => self.last(),
        }
    }

    /// Moves to the next value of this key; returns false without moving if none exists.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn next_dup(&mut self) -> Result<bool> {
        match self.at.clone() {
            At::On((key, value)) => self.go_if_there(|cursor| cursor.seek_value_gt(&key, &value)),
            At::Gap((key, value)) => self.go_if_there(|cursor| cursor.seek_value_ge(&key, &value)),
            At::Before | At::After => Ok(false),
        }
    }

    /// Moves to the previous value of this key; returns false without moving if none exists.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn prev_dup(&mut self) -> Result<bool> {
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
    pub fn next_nodup(&mut self) -> Result<bool> {
        match self.at.clone() {
            At::Before => self.first(),
            At::On((key, _)) | At::Gap((key, _)) => self.seek_key_gt(&key),
            At::After => Ok(false),
        }
    }

    /// Moves to the last value of the previous key.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn prev_nodup(&mut self) -> Result<bool> {
        match self.at.clone() {
            At::Before => Ok(false),
            At::On((key, _)) | At::Gap((key, _)) => self.seek_key_lt(&key),
            At::After => self.last(),
        }
    }

    /// Moves to the first value of this key; returns false without moving if it has none.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn first_dup(&mut self) -> Result<bool> {
        match self.at.clone() {
            At::On((key, _)) | At::Gap((key, _)) => {
                self.go_if_there(|cursor| cursor.seek_key(&key))
            }
            At::Before | At::After => Ok(false),
        }
    }

    /// Moves to the last value of this key; returns false without moving if it has none.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn last_dup(&mut self) -> Result<bool> {
        match self.at.clone() {
            At::On((key, _)) | At::Gap((key, _)) => {
                self.go_if_there(|cursor| Ok(cursor.seek_key(&key)? && cursor.last_dup()?))
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
            At::On((key, _)) => self.table.view()?.count_of(key),
            _ => Ok(0),
        }
    }

    /// True if the cursor is at a pair.
    #[must_use]
    pub fn is_at_pair(&self) -> bool {
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

    /// True if the cursor is at the first value of a key. Cost: a move.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn on_first_dup(&self) -> Result<bool> {
        self.is_end(|cursor, (key, value)| cursor.seek_value_lt(key, value))
    }

    /// True if the cursor is at the last value of a key. Cost: a move.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn on_last_dup(&self) -> Result<bool> {
        self.is_end(|cursor, (key, value)| cursor.seek_value_gt(key, value))
    }

    /// Whether a cursor at the current pair cannot make this move.
    fn is_end(&self, go: impl FnOnce(&mut MultiCursor<'_>, &Pair) -> Result<bool>) -> Result<bool> {
        match &self.at {
            At::On(pair) => Ok(!go(&mut self.table.view()?.cursor(), pair)?),
            _ => Ok(false),
        }
    }

    /// True if a move forward found no more pairs.
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

    /// The current key.
    ///
    /// # Panics
    /// If the cursor is at no pair.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.pair().0
    }

    /// The current value.
    ///
    /// # Panics
    /// If the cursor is at no pair.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        &self.pair().1
    }

    /// Stores a pair and moves to it; returns true if it is new.
    ///
    /// # Errors
    /// As for [`MultiTableMut::put`].
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        let new = self.table.put(key, value)?;
        self.at = At::On((key.to_vec(), value.to_vec()));
        Ok(new)
    }

    /// Replaces the current value; the cursor moves to the new one.
    ///
    /// # Errors
    /// As for [`MultiTableMut::put`].
    ///
    /// # Panics
    /// If the cursor is at no pair.
    pub fn replace(&mut self, value: &[u8]) -> Result<()> {
        let (key, old) = self.pair().clone();
        self.table.replace(&key, &old, value)?;
        self.at = At::On((key, value.to_vec()));
        Ok(())
    }

    /// Removes the current pair; the next move continues from there. False if the cursor is at no pair.
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

    /// Removes the current pair and returns it.
    fn take(&mut self) -> Result<Option<Pair>> {
        let At::On(pair) = &self.at else {
            return Ok(None);
        };
        let pair = pair.clone();
        self.remove()?;
        Ok(Some(pair))
    }

    /// Removes the current key with all its values; returns their number, 0 if the cursor is at no pair. The next move
    /// continues with the next key.
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
