//! Cursors that write in tables of multi-values: a place is a pair.
//!
//! The invariant is that of `table_edit.rs`.

use crate::tables::multi::MultiCursor;
use crate::tables::multi_mut::MultiTableMut;
use crate::tables::table_edit::At;
use crate::types::error::Result;

type Pair = (Vec<u8>, Vec<u8>);

/// Steps through the pairs of a table of multi-values in a write transaction and changes what it is at. Each move tells whether it found what it
/// was asked for. The names are those of [`MultiCursor`], and so is what they do, but for this: a move to exactly a key, a pair or a value of a
/// key that is not there leaves the cursor in the gap where it would be, and a removal where the pair was. A step from there goes to the
/// neighbour, and leaves nothing out. A move among the values of a key that finds none (`next_dup`, `prev_dup`) leaves the cursor where it
/// was.
///
/// ```
/// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::MemoryStorage::new()))?;
/// let mut tx = db.begin_write()?;
/// let mut tags = tx.multi_table("tags")?;
/// tags.put_many(b"a", &["1", "2", "3"])?;
/// tags.put(b"c", b"4")?;
/// // Of the key `a` only the greatest value stays.
/// let mut edit = tags.edit();
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
/// The place is a pair, which the cursor keeps: every move is a descent in the table and one in the key's set of values, where it has pages of its
/// own; a step among the values of a key as well. Where nothing is changed on the way, [`MultiCursor`] steps without them.
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

    /// Removes the first pair and returns it.
    ///
    /// # Errors
    /// As for [`remove`](Self::remove).
    pub fn pop_first(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let mut edit = self.edit();
        edit.first()?;
        edit.take()
    }

    /// Removes the last pair and returns it.
    ///
    /// # Errors
    /// As for [`remove`](Self::remove).
    pub fn pop_last(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let mut edit = self.edit();
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
    /// To the first pair.
    first() = At::After;
    /// To the last pair.
    last() = At::Before;
    /// To the first value of exactly this key.
    seek_key(key) = At::Gap(owned(key, &[]));
    /// To the first value of the first key at or above this one.
    seek_key_ge(key) = At::After;
    /// To the first value of the first key above this one.
    seek_key_gt(key) = At::After;
    /// To the last value of the last key at or below this one.
    seek_key_le(key) = At::Before;
    /// To the last value of the last key below this one.
    seek_key_lt(key) = At::Before;
    /// To exactly this pair.
    seek(key, value) = At::Gap(owned(key, value));
    /// Of exactly this key, to the first value at or above this one.
    seek_value_ge(key, value) = At::Gap(owned(key, value));
    /// Of exactly this key, to the first value above this one.
    // Behind the value, which may be there: the least one above ends in a zero byte more.
    seek_value_gt(key, value) = At::Gap((key.to_vec(), [value, &[0]].concat()));
    /// Of exactly this key, to the last value at or below this one.
    seek_value_le(key, value) = At::Gap(owned(key, value));
    /// Of exactly this key, to the last value below this one.
    seek_value_lt(key, value) = At::Gap(owned(key, value));
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
    /// The pair to which a cursor moves.
    fn find(&self, go: impl FnOnce(&mut MultiCursor<'_>) -> Result<bool>) -> Result<Option<Pair>> {
        let view = self.table.view()?;
        let mut cursor = view.cursor();
        let found = go(&mut cursor)?;
        Ok(found.then(|| owned(cursor.key(), cursor.value())))
    }

    /// Goes to a pair if there is one; else it stays.
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

    /// To the next pair, of this key or the next.
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

    /// To the pair before, of this key or the one before.
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

    /// To the next value of this key; false, and no move, when there is none.
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

    /// To the value before of this key; false, and no move, when there is none.
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

    /// To the first value of the next key.
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

    /// To the last value of the key before.
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

    /// To the first value of this key; false, and no move, when it has none.
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

    /// To the last value of this key; false, and no move, when it has none.
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

    /// How many values the key here has; 0 at no pair. Cost: a descent.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn count(&self) -> Result<u64> {
        match &self.at {
            At::On((key, _)) => self.table.view()?.count_of(key),
            _ => Ok(0),
        }
    }

    /// True at a pair.
    #[must_use]
    pub fn is_at_pair(&self) -> bool {
        matches!(self.at, At::On(_))
    }

    /// True at the first pair of the table. Cost: a move.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn on_first(&self) -> Result<bool> {
        self.is_end(|cursor, (key, value)| cursor.seek_lt(key, value))
    }

    /// True at the last pair of the table. Cost: a move.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn on_last(&self) -> Result<bool> {
        self.is_end(|cursor, (key, value)| cursor.seek_gt(key, value))
    }

    /// True at the first value of a key. Cost: a move.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn on_first_dup(&self) -> Result<bool> {
        self.is_end(|cursor, (key, value)| cursor.seek_value_lt(key, value))
    }

    /// True at the last value of a key. Cost: a move.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn on_last_dup(&self) -> Result<bool> {
        self.is_end(|cursor, (key, value)| cursor.seek_value_gt(key, value))
    }

    /// Whether there is no pair to which a cursor could go on from the one here.
    fn is_end(&self, go: impl FnOnce(&mut MultiCursor<'_>, &Pair) -> Result<bool>) -> Result<bool> {
        match &self.at {
            At::On(pair) => Ok(!go(&mut self.table.view()?.cursor(), pair)?),
            _ => Ok(false),
        }
    }

    /// True when a move forward found no more pairs.
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

    /// Removes the pair here and returns it.
    fn take(&mut self) -> Result<Option<Pair>> {
        let At::On(pair) = &self.at else {
            return Ok(None);
        };
        let pair = pair.clone();
        self.remove()?;
        Ok(Some(pair))
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
