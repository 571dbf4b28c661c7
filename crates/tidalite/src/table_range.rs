//! Ranges of tables as iterators from both ends.
//!
//! How many entries are left is known from ranks (two descents), so that the two ends need not compare keys to know where
//! they meet.

use crate::error::Result;
use crate::multi::{MultiCursor, MultiTable};
use crate::table::{Lent, Table, TableCursor};
use std::ops::{Bound, RangeBounds};
use tidalite_base::Corrupt;

type Ends = (Bound<Vec<u8>>, Bound<Vec<u8>>);

fn owned<K: AsRef<[u8]>>(range: &impl RangeBounds<K>) -> Ends {
    let owned = |bound: Bound<&K>| bound.map(|key| key.as_ref().to_vec());
    (owned(range.start_bound()), owned(range.end_bound()))
}

/// The range of all keys that begin with `prefix`.
fn prefixed(prefix: &[u8]) -> Ends {
    let mut end = prefix.to_vec();
    while end.last() == Some(&u8::MAX) {
        end.pop();
    }
    let end = match end.last_mut() {
        Some(last) => {
            *last += 1;
            Bound::Excluded(end)
        }
        None => Bound::Unbounded,
    };
    (Bound::Included(prefix.to_vec()), end)
}

fn fewer() -> crate::Error {
    Corrupt::new("table", 0, "fewer entries", "those that its branches count").into()
}

/// Entries of a range from either end: key and value. After an error there are no more.
pub struct TableRange<'a> {
    front: TableCursor<'a>,
    back: TableCursor<'a>,
    ends: Ends,
    left: u64,
}

impl Table<'_> {
    /// The entries with keys in a range, from either end (`rev`). Bounds the wrong way round hold nothing. A nested table
    /// is an error of its entry (`Unsupported`), see [`cursor`](Self::cursor) for those.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// tx.table("t")?.extend([("a", "1"), ("ab", "2"), ("b", "3")])?;
    /// tx.commit()?;
    /// let snap = db.begin_read()?;
    /// let table = snap.table("t")?.ok_or("no table")?;
    /// let found: Result<Vec<_>, _> = table.prefix(b"a")?.rev().collect();
    /// let keys: Vec<_> = found?.into_iter().map(|(key, _)| key).collect();
    /// assert_eq!(keys, [b"ab".to_vec(), b"a".to_vec()]);
    /// assert_eq!(table.range("ab"..)?.left(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// Two descents; then one for the first entry from each end.
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<TableRange<'_>> {
        self.between(owned(&range))
    }

    /// The entries whose keys begin with these bytes, from either end.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn prefix(&self, prefix: &[u8]) -> Result<TableRange<'_>> {
        self.between(prefixed(prefix))
    }

    fn between(&self, ends: Ends) -> Result<TableRange<'_>> {
        let left = self.count_range(ends.clone())?;
        Ok(TableRange {
            front: self.cursor(),
            back: self.cursor(),
            ends,
            left,
        })
    }
}

impl<'a> TableRange<'a> {
    /// Entries not yet taken from either end.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.left
    }

    fn taken(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<(Vec<u8>, Lent<'a>)>,
    ) -> Option<Result<(Vec<u8>, Lent<'a>)>> {
        if self.left == 0 {
            return None;
        }
        let entry = step(self);
        self.left = if entry.is_ok() { self.left - 1 } else { 0 };
        Some(entry)
    }
}

impl<'a> Iterator for TableRange<'a> {
    type Item = Result<(Vec<u8>, Lent<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.taken(|this| {
            let front = &mut this.front;
            let there = match &this.ends.0 {
                _ if front.is_at_entry() => front.next()?,
                Bound::Unbounded => front.first()?,
                Bound::Included(key) => front.seek_ge(key)?,
                Bound::Excluded(key) => front.seek_gt(key)?,
            };
            if there { front.entry() } else { Err(fewer()) }
        })
    }
}

impl DoubleEndedIterator for TableRange<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.taken(|this| {
            let back = &mut this.back;
            let there = match &this.ends.1 {
                _ if back.is_at_entry() => back.previous()?,
                Bound::Unbounded => back.last()?,
                Bound::Included(key) => back.seek_le(key)?,
                Bound::Excluded(key) => back.seek_lt(key)?,
            };
            if there { back.entry() } else { Err(fewer()) }
        })
    }
}

/// Pairs of a range of keys from either end. After an error there are no more.
pub struct MultiRange<'a> {
    front: MultiCursor<'a>,
    back: MultiCursor<'a>,
    ends: Ends,
    left: u64,
}

impl MultiTable<'_> {
    /// The pairs with keys in a range, from either end (`rev`).
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// Two descents; then one for the first pair from each end.
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<MultiRange<'_>> {
        self.between(owned(&range))
    }

    /// The pairs whose keys begin with these bytes, from either end.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn prefix(&self, prefix: &[u8]) -> Result<MultiRange<'_>> {
        self.between(prefixed(prefix))
    }

    /// The values of one key, from either end.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn values(&self, key: &[u8]) -> Result<MultiRange<'_>> {
        let key = || Bound::Included(key.to_vec());
        self.between((key(), key()))
    }

    /// Exactly how many pairs have keys in a range. Cost: two descents, whatever the range holds.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn count_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<u64> {
        let above = |key: &[u8]| Ok::<_, crate::Error>(self.rank(key)? + self.count_of(key)?);
        let from = match range.start_bound() {
            Bound::Unbounded => 0,
            Bound::Included(key) => self.rank(key.as_ref())?,
            Bound::Excluded(key) => above(key.as_ref())?,
        };
        let to = match range.end_bound() {
            Bound::Unbounded => self.count(),
            Bound::Excluded(key) => self.rank(key.as_ref())?,
            Bound::Included(key) => above(key.as_ref())?,
        };
        Ok(to.saturating_sub(from))
    }

    fn between(&self, ends: Ends) -> Result<MultiRange<'_>> {
        let left = self.count_range(ends.clone())?;
        Ok(MultiRange {
            front: self.cursor(),
            back: self.cursor(),
            ends,
            left,
        })
    }
}

impl MultiRange<'_> {
    /// Pairs not yet taken from either end.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.left
    }

    fn taken(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<(Vec<u8>, Vec<u8>)>,
    ) -> Option<Result<(Vec<u8>, Vec<u8>)>> {
        if self.left == 0 {
            return None;
        }
        let pair = step(self);
        self.left = if pair.is_ok() { self.left - 1 } else { 0 };
        Some(pair)
    }
}

fn pair(cursor: &MultiCursor<'_>, there: bool) -> Result<(Vec<u8>, Vec<u8>)> {
    if !there {
        return Err(fewer());
    }
    Ok((cursor.key().to_vec(), cursor.value().to_vec()))
}

impl Iterator for MultiRange<'_> {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.taken(|this| {
            let front = &mut this.front;
            let there = match &this.ends.0 {
                _ if front.is_at_pair() => front.next_pair()?,
                Bound::Unbounded => front.first()?,
                Bound::Included(key) => front.seek_key_ge(key)?,
                Bound::Excluded(key) => front.seek_key_ge(&[key, &[0][..]].concat())?,
            };
            pair(front, there)
        })
    }
}

impl DoubleEndedIterator for MultiRange<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.taken(|this| {
            let back = &mut this.back;
            let there = match &this.ends.1 {
                _ if back.is_at_pair() => back.prev_pair()?,
                Bound::Unbounded => back.last()?,
                Bound::Included(key) => back.seek_lt(&[key, &[0][..]].concat(), &[])?,
                Bound::Excluded(key) => back.seek_lt(key, &[])?,
            };
            pair(back, there)
        })
    }
}
