//! A cursor over a table of sets: a position among its key-value pairs.
//!
//! Invariants
//! 1. `inner` is the set of the current key of `outer`, positioned at one of its values; or it is `None`, and `outer`
//!    is off the table or at a key that a seek for a value has passed.
//! 2. A seek for an exact key or pair that does not exist leaves the cursor where the seek to the next pair (or,
//!    downwards, to the previous) would. So a step from there skips no pair.

use crate::bulk::append::PutRow;
use crate::cursor::tree_cursor::Cursor;
use crate::error::unexpected;
use crate::inline::packed_set::PackedSet;
use crate::nested::table_reader::TableReader;
use crate::page::layout::tag;
use crate::table::tree::Tree;
use tidalite_pager::{PageRead, Result};

impl Tree {
    /// Creates a cursor over the pairs of a table of sets; it stands before the first pair.
    pub fn pair_cursor<'r, R: PageRead>(&self, r: &'r R) -> PairCursor<'r, R> {
        PairCursor {
            outer: self.cursor(r),
            inner: InSet::None,
        }
    }
}

enum InSet<'r, R> {
    None,
    /// A single value, which is stored in the row of its key.
    One,
    PackedSet(PackedSet<'r>),
    Set(u64, Box<Cursor<'r, R>>),
}

/// A cursor over the pairs of a table of sets.
///
/// Every move returns whether the cursor is at a pair afterwards. If a move among the values of a key (`next_dup`,
/// `previous_dup`) finds no value, it leaves the cursor where it was.
pub struct PairCursor<'r, R> {
    outer: Cursor<'r, R>,
    inner: InSet<'r, R>,
}

/// Selects the value of a key to which the cursor moves.
enum ValueTarget<'v> {
    First,
    Last,
    Ge(&'v [u8]),
    Le(&'v [u8]),
    /// The value that has this many values of its set before it.
    Nth(u64),
}

impl<R> Clone for PairCursor<'_, R> {
    fn clone(&self) -> Self {
        let inner = match &self.inner {
            InSet::None => InSet::None,
            InSet::One => InSet::One,
            InSet::PackedSet(set) => InSet::PackedSet(set.clone()),
            InSet::Set(count, cursor) => InSet::Set(*count, cursor.clone()),
        };
        Self {
            outer: self.outer.clone(),
            inner,
        }
    }
}

impl<'r, R: PageRead> PairCursor<'r, R> {
    /// Moves the cursor to before the first pair of another table, or of another version of the same table, read
    /// through `r`.
    pub fn renew(&mut self, tree: &Tree, r: &'r R) {
        self.outer.renew(tree, r);
        self.inner = InSet::None;
    }

    /// True if the cursor is at a pair.
    #[must_use]
    pub fn is_at_row(&self) -> bool {
        !matches!(self.inner, InSet::None)
    }

    /// The key of the current pair.
    ///
    /// # Panics
    /// When the cursor is not at a pair.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.outer.key()
    }

    /// The value of the current pair.
    ///
    /// # Panics
    /// When the cursor is not at a pair.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        match &self.inner {
            InSet::One => self.outer.payload().map_or(&[], |(_, value)| value),
            InSet::PackedSet(set) => set.value(),
            InSet::Set(_, cursor) => cursor.key(),
            InSet::None => panic!("the cursor is not at a pair"),
        }
    }

    /// Number of values of the current key. Reads no page.
    #[must_use]
    pub fn count(&self) -> u64 {
        match &self.inner {
            InSet::None => 0,
            InSet::One => 1,
            InSet::PackedSet(set) => set.count(),
            InSet::Set(count, _) => *count,
        }
    }

    /// Moves to a value in the set of the current key of `outer`; returns false if the set has no such value.
    fn enter(&mut self, there: bool, target: &ValueTarget<'_>) -> Result<bool> {
        self.inner = InSet::None;
        let Some((tag, bytes)) = self.outer.payload().filter(|_| there) else {
            return Ok(false);
        };
        match tag::kind(tag) {
            tag::INLINE => {
                let fits = match target {
                    ValueTarget::First | ValueTarget::Last => true,
                    ValueTarget::Ge(value) => bytes >= *value,
                    ValueTarget::Le(value) => bytes <= *value,
                    ValueTarget::Nth(rank) => *rank == 0,
                };
                if fits {
                    self.inner = InSet::One;
                }
                Ok(fits)
            }
            tag::REFERENCE => Err(unexpected("a value in an extent", "a set of values")),
            _ => {
                let set: TableReader<'r> = self.outer.nested()?;
                if let Some(mut packed) = set.packed()? {
                    let found = match target {
                        ValueTarget::First => true,
                        ValueTarget::Last => packed.last(),
                        ValueTarget::Ge(value) => packed.seek_ge(value),
                        ValueTarget::Le(value) => packed.seek_le(value),
                        ValueTarget::Nth(rank) => packed.select(*rank),
                    };
                    if found {
                        self.inner = InSet::PackedSet(packed);
                    }
                    return Ok(found);
                }
                let mut cursor = set.cursor(self.outer.reader())?;
                let found = match target {
                    ValueTarget::First => cursor.first()?,
                    ValueTarget::Last => cursor.last()?,
                    ValueTarget::Ge(value) => cursor.seek_ge(value)?,
                    ValueTarget::Le(value) => cursor.seek_le(value)?,
                    ValueTarget::Nth(rank) => cursor.select(*rank)?,
                };
                if found {
                    self.inner = InSet::Set(set.len(), Box::new(cursor));
                }
                Ok(found)
            }
        }
    }

    /// Moves to the first pair.
    ///
    /// # Errors
    /// `Corrupt`, `Io`, for this and all other moves.
    pub fn first(&mut self) -> Result<bool> {
        let there = self.outer.first()?;
        self.enter(there, &ValueTarget::First)
    }

    /// Moves to the last pair.
    ///
    /// # Errors
    /// As for `first`.
    pub fn last(&mut self) -> Result<bool> {
        let there = self.outer.last()?;
        self.enter(there, &ValueTarget::Last)
    }

    /// Moves to the next pair: the next value of the current key, or the first value of the next key.
    ///
    /// # Errors
    /// As for `first`.
    #[expect(
        clippy::should_implement_trait,
        reason = "a cursor goes both ways and can fail"
    )]
    pub fn next(&mut self) -> Result<bool> {
        Ok(self.next_dup()? || self.next_nodup()?)
    }

    /// Moves to the previous pair: the previous value of the current key, or the last value of the previous key.
    ///
    /// # Errors
    /// As for `first`.
    pub fn previous(&mut self) -> Result<bool> {
        Ok(self.previous_dup()? || self.previous_nodup()?)
    }

    /// Moves to the next value of the current key; returns false, without a move, at the last value of the key.
    ///
    /// # Errors
    /// As for `first`.
    pub fn next_dup(&mut self) -> Result<bool> {
        match &mut self.inner {
            InSet::PackedSet(set) => Ok(set.next()),
            InSet::Set(_, cursor) if !cursor.on_last() => cursor.next(),
            _ => Ok(false),
        }
    }

    /// Moves to the previous value of the current key; returns false, without a move, at the first value of the key.
    ///
    /// # Errors
    /// As for `first`.
    pub fn previous_dup(&mut self) -> Result<bool> {
        match &mut self.inner {
            InSet::PackedSet(set) => Ok(set.previous()),
            InSet::Set(_, cursor) if !cursor.on_first() => cursor.previous(),
            _ => Ok(false),
        }
    }

    /// Moves to the first value of the next key.
    ///
    /// # Errors
    /// As for `first`.
    pub fn next_nodup(&mut self) -> Result<bool> {
        self.inner = InSet::None;
        let there = self.outer.next()?;
        self.enter(there, &ValueTarget::First)
    }

    /// Moves to the last value of the previous key.
    ///
    /// # Errors
    /// As for `first`.
    pub fn previous_nodup(&mut self) -> Result<bool> {
        self.inner = InSet::None;
        let there = self.outer.previous()?;
        self.enter(there, &ValueTarget::Last)
    }

    /// Moves to the first value of the current key.
    ///
    /// # Errors
    /// As for `first`.
    pub fn first_dup(&mut self) -> Result<bool> {
        let there = self.is_at_row();
        self.enter(there, &ValueTarget::First)
    }

    /// Moves to the last value of the current key.
    ///
    /// # Errors
    /// As for `first`.
    pub fn last_dup(&mut self) -> Result<bool> {
        let there = self.is_at_row();
        self.enter(there, &ValueTarget::Last)
    }

    /// Moves to the first value of exactly this key. If the key does not exist, the cursor stands where `seek_key_ge`
    /// leaves it, and the result is false.
    ///
    /// # Errors
    /// As for `first`.
    pub fn seek_key(&mut self, key: &[u8]) -> Result<bool> {
        let there = self.outer.seek(key)?;
        self.enter(self.outer.is_at_row(), &ValueTarget::First)?;
        Ok(there)
    }

    /// Moves to the first value of the first key above `key`.
    ///
    /// # Errors
    /// As for `first`.
    pub fn seek_key_gt(&mut self, key: &[u8]) -> Result<bool> {
        let there = self.outer.seek_gt(key)?;
        self.enter(there, &ValueTarget::First)
    }

    /// Moves to the last value of the last key that is not above `key`.
    ///
    /// # Errors
    /// As for `first`.
    pub fn seek_key_le(&mut self, key: &[u8]) -> Result<bool> {
        let there = self.outer.seek_le(key)?;
        self.enter(there, &ValueTarget::Last)
    }

    /// Moves to the last value of the last key below `key`.
    ///
    /// # Errors
    /// As for `first`.
    pub fn seek_key_lt(&mut self, key: &[u8]) -> Result<bool> {
        let there = self.outer.seek_lt(key)?;
        self.enter(there, &ValueTarget::Last)
    }

    /// Moves to the first value of the first key that is not below `key`.
    ///
    /// # Errors
    /// As for `first`.
    pub fn seek_key_ge(&mut self, key: &[u8]) -> Result<bool> {
        let there = self.outer.seek_ge(key)?;
        self.enter(there, &ValueTarget::First)
    }

    /// Moves to exactly this pair. If the pair does not exist, the cursor stands where `seek_ge` leaves it, and the
    /// result is false.
    ///
    /// # Errors
    /// As for `first`.
    pub fn seek(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        Ok(self.seek_ge(key, value)? && self.key() == key && self.value() == value)
    }

    /// Moves to the first value of exactly this key that is not below `value`. If the key has no such value, the cursor
    /// stands where `seek_ge` leaves it, and the result is false.
    ///
    /// # Errors
    /// As for `first`.
    pub fn seek_value_ge(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        Ok(self.seek_ge(key, value)? && self.key() == key)
    }

    /// Moves to the first value of exactly this key that is above `value`. If the key has no such value, the cursor
    /// stands where `seek_gt` leaves it, and the result is false.
    ///
    /// # Errors
    /// As for `first`.
    pub fn seek_value_gt(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        Ok(self.seek_gt(key, value)? && self.key() == key)
    }

    /// Moves to the last value of exactly this key that is not above `value`. If the key has no such value, the cursor
    /// stands where `seek_le` leaves it, and the result is false.
    ///
    /// # Errors
    /// As for `first`.
    pub fn seek_value_le(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        Ok(self.seek_le(key, value)? && self.key() == key)
    }

    /// Moves to the last value of exactly this key that is below `value`. If the key has no such value, the cursor
    /// stands where `seek_lt` leaves it, and the result is false.
    ///
    /// # Errors
    /// As for `first`.
    pub fn seek_value_lt(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        Ok(self.seek_lt(key, value)? && self.key() == key)
    }

    /// Moves to the first pair that is not below the pair (`key`, `value`).
    ///
    /// # Errors
    /// As for `first`.
    pub fn seek_ge(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        if !self.outer.seek_ge(key)? {
            return self.enter(false, &ValueTarget::First);
        }
        if self.outer.key() != key {
            return self.enter(true, &ValueTarget::First);
        }
        Ok(self.enter(true, &ValueTarget::Ge(value))? || self.next_nodup()?)
    }

    /// Moves to the first pair above the pair (`key`, `value`).
    ///
    /// # Errors
    /// As for `first`.
    pub fn seek_gt(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        if self.seek_ge(key, value)? && self.key() == key && self.value() == value {
            return self.next();
        }
        Ok(self.is_at_row())
    }

    /// Moves to the pair that has exactly `rank` pairs before it in the table.
    ///
    /// # Errors
    /// As for `first`.
    ///
    /// # Cost
    /// One page per level of the table, and one per level of the key's set.
    pub fn select(&mut self, rank: u64) -> Result<bool> {
        match self.outer.select_within(rank)? {
            Some(within) => self.enter(true, &ValueTarget::Nth(within)),
            None => self.enter(false, &ValueTarget::First),
        }
    }

    /// Finds the pair that has exactly `rank` pairs before it in the table, and moves to the first value of its key.
    ///
    /// # Errors
    /// As for `first`.
    pub fn select_key(&mut self, rank: u64) -> Result<bool> {
        let there = self.outer.select(rank)?;
        self.enter(there, &ValueTarget::First)
    }

    /// Moves to the value of exactly this key that has `rank` of the key's values before it. If the key has no such
    /// value, the cursor stands at the next pair, and the result is false.
    ///
    /// # Errors
    /// As for `first`.
    pub fn select_value(&mut self, key: &[u8], rank: u64) -> Result<bool> {
        if !self.outer.seek(key)? {
            self.enter(self.outer.is_at_row(), &ValueTarget::First)?;
            return Ok(false);
        }
        if self.enter(true, &ValueTarget::Nth(rank))? {
            return Ok(true);
        }
        self.next_nodup()?;
        Ok(false)
    }

    /// Moves to the last pair that is not above the pair (`key`, `value`).
    ///
    /// # Errors
    /// As for `first`.
    pub fn seek_le(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        if !self.outer.seek_le(key)? {
            return self.enter(false, &ValueTarget::Last);
        }
        if self.outer.key() != key {
            return self.enter(true, &ValueTarget::Last);
        }
        Ok(self.enter(true, &ValueTarget::Le(value))? || self.previous_nodup()?)
    }

    /// Moves to the last pair below the pair (`key`, `value`).
    ///
    /// # Errors
    /// As for `first`.
    pub fn seek_lt(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        if self.seek_le(key, value)? && self.key() == key && self.value() == value {
            return self.previous();
        }
        Ok(self.is_at_row())
    }

    /// True if the cursor is at the first pair of the table.
    #[must_use]
    pub fn on_first(&self) -> bool {
        self.outer.on_first() && self.on_first_dup()
    }

    /// True if the cursor is at the last pair of the table.
    #[must_use]
    pub fn on_last(&self) -> bool {
        self.outer.on_last() && self.on_last_dup()
    }

    /// True if the cursor is at the first value of a key.
    #[must_use]
    pub fn on_first_dup(&self) -> bool {
        match &self.inner {
            InSet::None => false,
            InSet::One => true,
            InSet::PackedSet(set) => set.on_first(),
            InSet::Set(_, cursor) => cursor.on_first(),
        }
    }

    /// True if the cursor is at the last value of a key.
    #[must_use]
    pub fn on_last_dup(&self) -> bool {
        match &self.inner {
            InSet::None => false,
            InSet::One => true,
            InSet::PackedSet(set) => set.on_last(),
            InSet::Set(_, cursor) => cursor.on_last(),
        }
    }

    /// True if a step forward ran off the end of the table.
    #[must_use]
    pub fn eof(&self) -> bool {
        !self.is_at_row() && self.outer.eof()
    }

    /// Passes at most `most` values of the current key to `take`, from the current value on, and returns their number.
    /// The cursor ends at the last value passed.
    ///
    /// # Errors
    /// As for `first`.
    pub fn get_multiple(&mut self, most: usize, mut take: impl FnMut(&[u8])) -> Result<usize> {
        if !self.is_at_row() || most == 0 {
            return Ok(0);
        }
        let mut given = 1;
        take(self.value());
        while given < most && self.next_dup()? {
            take(self.value());
            given += 1;
        }
        Ok(given)
    }

    /// Passes every pair from the current pair on to `take`; the cursor ends after the last pair of the table. If
    /// `take` fails, the cursor is at some pair of the key whose pair was passed.
    ///
    /// # Errors
    /// As for `first`, and errors of `take`.
    pub fn each(&mut self, take: &mut PutRow<'_>) -> Result<()> {
        while self.is_at_row() {
            match &self.inner {
                InSet::PackedSet(set) => {
                    let key = self.outer.key();
                    for value in set.rest() {
                        take(key, value)?;
                    }
                    self.next_nodup()?;
                }
                _ => {
                    take(self.key(), self.value())?;
                    self.next()?;
                }
            }
        }
        Ok(())
    }
}
