//! Tables of multi-values: each key has a sorted set of values, and a place in the table is a pair.
//!
//! The set of a key is a nested table whose keys are the values: one value lies in the row itself, a few lie packed
//! beside each other in the leaf, many have pages of their own. Branches count pairs.

use crate::edit::{Payload, cell_size};
use crate::insert::Old;
use crate::key;
use crate::node::{cell_bytes_max, slot_bytes, tag};
use crate::tree::Tree;
use crate::work::Work;
use tidalite_pager::{PageRead, PageWrite, Result};

/// The operations of a table of multi-values. All panic on a table that is none.
pub struct Pairs<'t> {
    tree: &'t mut Tree,
}

impl Tree {
    /// The table as one of pairs, for changing.
    ///
    /// # Panics
    /// When it was not made by `new_multi`.
    pub fn pairs(&mut self) -> Pairs<'_> {
        assert!(self.is_multi(), "a table of multi-values");
        Pairs { tree: self }
    }

    /// Values of a key. Costs one page a level.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn values_of<R: PageRead>(&self, r: &R, key: &[u8]) -> Result<u64> {
        let entry = self.find_payload(r, key)?;
        Ok(entry.map_or(0, |entry| crate::tree::weight(entry.payload())))
    }
}

impl Pairs<'_> {
    /// Changes the set of a key; `change` returns what it did.
    fn change<W: PageWrite, T>(
        &mut self,
        w: &mut W,
        key: &[u8],
        change: impl FnOnce(&mut W, &mut Work) -> Result<T>,
    ) -> Result<T> {
        let old = self.tree.find_payload(w, key)?;
        let mut set = Work::of_set(old.as_ref(), self.tree.id, w.page_size())?;
        let done = change(w, &mut set)?;
        if set.is_empty() {
            if old.is_some() {
                self.tree.remove_payload(w, key, Old::Keep)?;
            }
            return Ok(done);
        }
        let page_size = w.page_size();
        let row = |payload| cell_size(true, key::stored_bytes(page_size, key.len()), payload);
        let room = cell_bytes_max(page_size) - slot_bytes(true, page_size);
        let only = set.only_key().map(|only| Payload {
            tag: tag::of(tag::INLINE, only.len()),
            bytes: only,
        });
        if let Some(payload) = only.filter(|payload| row(*payload) <= room) {
            self.tree.put_payload(w, key, payload, Old::Keep)?;
            return Ok(done);
        }
        let (tag, bytes) = set.into_payload(w, key.len())?;
        let payload = Payload { tag, bytes: &bytes };
        self.tree.put_payload(w, key, payload, Old::Keep)?;
        Ok(done)
    }

    /// Puts a pair in; true when it was new. A value is at most as long as a key.
    ///
    /// # Errors
    /// `Limit` for a long key or value: nothing has changed then.
    pub fn insert<W: PageWrite>(&mut self, w: &mut W, key: &[u8], value: &[u8]) -> Result<bool> {
        key::check_len(key)?;
        key::check_len(value)?;
        if self.contains(w, key, value)? {
            return Ok(false);
        }
        self.change(w, key, |w, set| set.insert(w, value, &[]))
            .map(|was| !was)
    }

    /// Puts many values of one key in with one change of its set; returns how many were new.
    ///
    /// # Errors
    /// As for `insert`.
    pub fn insert_many<W: PageWrite, V: AsRef<[u8]>>(
        &mut self,
        w: &mut W,
        key: &[u8],
        values: &[V],
    ) -> Result<u64> {
        key::check_len(key)?;
        for value in values {
            key::check_len(value.as_ref())?;
        }
        if values.is_empty() {
            return Ok(0);
        }
        self.change(w, key, |w, set| {
            let mut new = 0;
            for value in values {
                new += u64::from(!set.insert(w, value.as_ref(), &[])?);
            }
            Ok(new)
        })
    }

    /// Takes a pair out; true when it was there.
    ///
    /// # Errors
    /// As for [`Tree::remove`].
    pub fn remove<W: PageWrite>(&mut self, w: &mut W, key: &[u8], value: &[u8]) -> Result<bool> {
        if !self.contains(w, key, value)? {
            return Ok(false);
        }
        self.change(w, key, |w, set| set.remove(w, value))
    }

    /// Takes all values of a key out; returns how many.
    ///
    /// # Errors
    /// As for [`Tree::remove`].
    pub fn remove_all<W: PageWrite>(&mut self, w: &mut W, key: &[u8]) -> Result<u64> {
        let count = self.tree.values_of(w, key)?;
        if count > 0 {
            self.tree.remove_payload(w, key, Old::Free)?;
        }
        Ok(count)
    }

    /// Takes out every pair from one up to before another (`None`: to the end); returns how many.
    ///
    /// # Errors
    /// As for [`Tree::remove`].
    ///
    /// # Cost
    /// Of a key of which some values stay, a cut of its set; of those in between as for [`Tree::remove_range`].
    pub fn remove_range<W: PageWrite>(
        &mut self,
        w: &mut W,
        from: (&[u8], &[u8]),
        to: Option<(&[u8], &[u8])>,
    ) -> Result<u64> {
        if to.is_some_and(|to| from >= to) {
            return Ok(0);
        }
        let mut removed = 0u64;
        let mut first_whole = from.0.to_vec();
        if !from.1.is_empty() {
            let end = to.filter(|to| to.0 == from.0).map(|to| to.1);
            removed = self.remove_values(w, from.0, (from.1, end))?;
            if end.is_some() {
                return Ok(removed);
            }
            first_whole.push(0);
        }
        if let Some((key, end)) = to.filter(|to| !to.1.is_empty()) {
            let cut = self.remove_values(w, key, (&[], Some(end)))?;
            removed = removed.wrapping_add(cut);
        }
        let mut keys = Work::of(*self.tree);
        let whole = match to {
            Some((key, _)) => keys.remove_range(w, &first_whole, key),
            None => keys.remove_from(w, &first_whole),
        };
        if let Some(tree) = keys.tree() {
            *self.tree = *tree;
        }
        Ok(removed.wrapping_add(whole?))
    }

    /// Takes the values of one key from one up to before another out.
    fn remove_values<W: PageWrite>(
        &mut self,
        w: &mut W,
        key: &[u8],
        (from, to): (&[u8], Option<&[u8]>),
    ) -> Result<u64> {
        let below = self.tree.rank_pair(w, key, from)?;
        let until = match to {
            Some(to) => self.tree.rank_pair(w, key, to)?,
            None => {
                let values = self.tree.values_of(w, key)?;
                self.tree.rank(w, key)?.wrapping_add(values)
            }
        };
        if until <= below {
            return Ok(0);
        }
        self.change(w, key, |w, set| match to {
            Some(to) => set.remove_range(w, from, to),
            None => set.remove_from(w, from),
        })
    }

    /// Whether the pair is there.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn contains<R: PageRead>(&self, r: &R, key: &[u8], value: &[u8]) -> Result<bool> {
        self.tree.contains_pair(r, key, value)
    }
}

impl Tree {
    /// Whether a pair is in a table of multi-values.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn contains_pair<R: PageRead>(&self, r: &R, key: &[u8], value: &[u8]) -> Result<bool> {
        let Some(entry) = self.find_payload(r, key)? else {
            return Ok(false);
        };
        if tag::kind(entry.tag) == tag::INLINE {
            return Ok(entry.payload == value);
        }
        Work::of_set(Some(&entry), self.id, r.page_size())?.contains(r, value)
    }
}
