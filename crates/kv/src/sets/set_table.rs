//! Tables of multi-values: each key has a sorted set of values, and a row of the table is a pair.
//!
//! The set of a key is a nested table whose keys are the values: one value lies in the row itself, a few lie packed
//! in the leaf, many have pages of their own. Branches count pairs.

use crate::bulk::append::inline;
use crate::error::damaged;
use crate::inline::inline_table::{Keys, Small, With, with_key};
use crate::nested::table_writer::{Work, fits_row, root_payload, to_pages};
use crate::page::key;
use crate::page::layout::{Payload, cell_bytes_max, cell_size, slot_bytes, tag};
use crate::table::free::Old;
use crate::table::tree::Tree;
use tidalite_pager::{PageRead, PageWrite, Result};

/// The operations of a table of multi-values; see [`Tree::pairs`].
pub struct Pairs<'t> {
    pub(crate) tree: &'t mut Tree,
}

/// Allowed positions of a new pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Any,
    /// After the other values of its key.
    InKey,
    /// After all pairs of the table.
    InTable,
}

/// Result of inserting a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    New {
        /// It is the last pair of the table.
        last: bool,
    },
    There,
    /// The pair would not be in the allowed position: nothing has changed.
    NotBehind,
}

/// A set after adding one value, as far as its row shows.
pub(crate) enum Grown {
    There,
    /// The new contents of the row; `last`: the value is above the others.
    Row {
        bytes: Vec<u8>,
        last: bool,
    },
    /// The set has pages of its own; these are the bytes of its root.
    Pages(Vec<u8>),
}

/// Adds `value` to the set of a row.
pub(crate) fn grown(set: Payload<'_>, value: &[u8], at: u64) -> Result<Grown> {
    match tag::kind(set.tag) {
        tag::INLINE if set.bytes == value => Ok(Grown::There),
        tag::INLINE => {
            let last = set.bytes < value;
            let mut both = Keys::default();
            let [first, second] = if last {
                [set.bytes, value]
            } else {
                [value, set.bytes]
            };
            both.push(first);
            both.push(second);
            let bytes = both.encode();
            Ok(Grown::Row { bytes, last })
        }
        tag::NESTED => Ok(match with_key(set.bytes, value, at)? {
            With::There => Grown::There,
            With::New { bytes, last } => Grown::Row { bytes, last },
        }),
        tag::ROOT => Ok(Grown::Pages(set.bytes.to_vec())),
        _ => Err(damaged(
            "row of a table",
            at,
            "an extent",
            "a set of values",
        )),
    }
}

/// The payload of a key's only value, if it fits the row.
pub(crate) fn only<'v>(page_size: usize, key_len: usize, value: &'v [u8]) -> Option<Payload<'v>> {
    let payload = inline(value);
    let row = cell_size(true, key::stored_bytes(page_size, key_len), payload);
    (row <= cell_bytes_max(page_size) - slot_bytes(true, page_size)).then_some(payload)
}

impl Tree {
    /// Access to the pairs of the table, for changing.
    ///
    /// # Panics
    /// If the table was not created by `new_multi`.
    pub fn pairs(&mut self) -> Pairs<'_> {
        assert!(self.is_multi(), "a table of multi-values");
        Pairs { tree: self }
    }

    /// Number of values of a key. Costs one page per level.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn values_of<R: PageRead>(&self, r: &R, key: &[u8]) -> Result<u64> {
        let entry = self.find_payload(r, key)?;
        Ok(entry.map_or(0, |entry| crate::page::row_count::weight(entry.payload())))
    }
}

impl Pairs<'_> {
    /// Changes the set of a key; returns the result of `change`.
    pub(crate) fn change<W: PageWrite, T>(
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
        let only = |value| only(page_size, key.len(), value);
        if let Some(payload) = set.only_key().and_then(only) {
            self.tree.put_payload(w, key, payload, Old::Keep)?;
            return Ok(done);
        }
        let (tag, bytes) = set.into_payload(w, key.len())?;
        let payload = Payload { tag, bytes: &bytes };
        self.tree.put_payload(w, key, payload, Old::Keep)?;
        Ok(done)
    }

    /// Inserts a pair; true if it was new. A value may be as long as a key.
    ///
    /// # Errors
    /// `Limit` for a long key or value: nothing has changed in that case.
    ///
    /// # Cost
    /// One descent, and another in the key's set if it has pages of its own; no page is copied for a pair that exists.
    /// An inline set is rewritten with its row, at most a quarter of a page.
    pub fn insert<W: PageWrite>(&mut self, w: &mut W, key: &[u8], value: &[u8]) -> Result<bool> {
        key::check_len(key)?;
        key::check_len(value)?;
        let put = self.put(w, key, value, Order::Any)?;
        Ok(put != Put::There)
    }

    /// Inserts a pair whose lengths were checked, if its position is allowed.
    pub(crate) fn put<W: PageWrite>(
        &mut self,
        w: &mut W,
        key: &[u8],
        value: &[u8],
        order: Order,
    ) -> Result<Put> {
        let found = self.tree.trail(&*w, key, |leaf, index, found| {
            let cell = found.then(|| leaf.cell(index)).transpose()?;
            cell.map(|cell| grown(cell.payload(), value, leaf.at()))
                .transpose()
        })?;
        let Some((trail, grown)) = found else {
            let (tag, bytes) = self.set_of_one(w, key, value)?;
            let payload = Payload { tag, bytes: &bytes };
            self.tree.put_payload(w, key, payload, Old::Keep)?;
            return Ok(Put::New { last: true });
        };
        if order == Order::InTable && !trail.last {
            return Ok(Put::NotBehind);
        }
        let ((tag, bytes), last) = match grown {
            None => (self.set_of_one(w, key, value)?, true),
            Some(Grown::There) => return Ok(Put::There),
            Some(Grown::Row { last: false, .. }) if order != Order::Any => {
                return Ok(Put::NotBehind);
            }
            Some(Grown::Row { bytes, last }) => (self.set_of(w, key, bytes)?, last),
            Some(Grown::Pages(root)) => {
                let mut set = Tree::of_nested_root(&root, self.tree.id, w.page_size(), 0)?;
                match set.add(w, value, order != Order::Any)? {
                    Put::New { last } => (root_payload(&set), last),
                    other => return Ok(other),
                }
            }
        };
        let last = last && trail.last;
        let path = self.tree.own_trail(w, trail, last)?;
        let payload = Payload { tag, bytes: &bytes };
        self.tree.put_at(w, path, key, payload, Old::Keep)?;
        Ok(Put::New { last })
    }

    /// The payload of the row of a key with one value.
    pub(crate) fn set_of_one<W: PageWrite>(
        &self,
        w: &mut W,
        key: &[u8],
        value: &[u8],
    ) -> Result<(u32, Vec<u8>)> {
        if let Some(payload) = only(w.page_size(), key.len(), value) {
            return Ok((payload.tag, value.to_vec()));
        }
        let mut set = Work::of_set(None, self.tree.id, w.page_size())?;
        set.insert(w, value, &[])?;
        set.into_payload(w, key.len())
    }

    /// The payload of the row of a key with this small set: the set itself, or a root if it is too large.
    pub(crate) fn set_of<W: PageWrite>(
        &self,
        w: &mut W,
        key: &[u8],
        small: Vec<u8>,
    ) -> Result<(u32, Vec<u8>)> {
        if fits_row(w.page_size(), key.len(), &small) {
            return Ok((tag::of(tag::NESTED, small.len()), small));
        }
        let set = to_pages(w, self.tree.id, &Small::decode(&small, 0)?)?;
        Ok(root_payload(&set))
    }

    /// Inserts many values of one key with a single change of its set; returns the number of new ones.
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

    /// Removes a pair; true if it existed.
    ///
    /// # Errors
    /// As for [`Tree::remove`].
    pub fn remove<W: PageWrite>(&mut self, w: &mut W, key: &[u8], value: &[u8]) -> Result<bool> {
        if !self.contains(w, key, value)? {
            return Ok(false);
        }
        self.change(w, key, |w, set| set.remove(w, value))
    }

    /// Removes all values of a key; returns their number.
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

    /// Removes every pair from one up to another, exclusive (`None`: to the end); returns the number of pairs.
    ///
    /// # Errors
    /// As for [`Tree::remove`].
    ///
    /// # Cost
    /// For a key that keeps some of its values, a range delete in its set; for the keys in between as
    /// [`Tree::remove_range`].
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

    /// Removes the values of one key from one up to another, exclusive.
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

    /// Whether the pair exists.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn contains<R: PageRead>(&self, r: &R, key: &[u8], value: &[u8]) -> Result<bool> {
        self.tree.contains_pair(r, key, value)
    }
}

impl Tree {
    /// Inserts a key without a value into a set; `behind`: only if it comes after all others.
    fn add<W: PageWrite>(&mut self, w: &mut W, key: &[u8], behind: bool) -> Result<Put> {
        let Some((trail, ())) = self.trail(&*w, key, |_, _, _| Ok(()))? else {
            self.put_payload(w, key, inline(&[]), Old::Keep)?;
            return Ok(Put::New { last: true });
        };
        if trail.found {
            return Ok(Put::There);
        }
        let last = trail.last;
        if behind && !last {
            return Ok(Put::NotBehind);
        }
        let path = self.own_trail(w, trail, last)?;
        self.put_at(w, path, key, inline(&[]), Old::Keep)?;
        Ok(Put::New { last })
    }

    /// Whether a pair exists in a table of multi-values.
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
