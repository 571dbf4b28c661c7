//! Tables of sets: each key has a sorted set of values, and a row of the table is a key-value pair.
//!
//! The set of a key is a nested table whose keys are the values: one value lies in the row itself, a few lie packed
//! in the leaf, many have pages of their own. Branches count pairs.

use crate::error::damaged;
use crate::inline::inline_table::{InlineTable, KeyAdded, KeyList, add_key};
use crate::nested::conversion::{fits_row, root_payload, to_pages};
use crate::nested::table_writer::TableWriter;
use crate::page::key::{self, KEY_BYTES_MAX};
use crate::page::layout::{Payload, cell_bytes_max, cell_size, slot_bytes, tag};
use crate::table::free::OldPayload;
use crate::table::tree::Tree;
use tidalite_pager::{PageRead, PageWrite, Result};

/// The operations that change a table of sets; created by [`Tree::pairs`].
pub struct PairWriter<'t> {
    pub(crate) tree: &'t mut Tree,
}

/// The positions at which an insert may put a new pair; at any other position the insert changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllowedPosition {
    /// Anywhere.
    Any,
    /// Only after the other values of its key.
    LastOfKey,
    /// Only after all pairs of the table.
    LastOfTable,
}

/// Result of inserting a pair into a table of sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PairInsert {
    New {
        /// True if the new pair is the last pair of the table.
        last: bool,
    },
    There,
    /// The pair would not be at an allowed position; nothing has changed.
    NotLast,
}

/// Result of adding one value to the set in a row.
pub(crate) enum SetWithValue {
    There,
    /// The new contents of the row; `last` is true if the value is above the others of its set.
    Row {
        bytes: Vec<u8>,
        last: bool,
    },
    /// The set has pages of its own; these are the bytes of its root, unchanged.
    Pages(Vec<u8>),
}

/// Adds `value` to the set of values in a row, whose leaf lies at address `at`.
pub(crate) fn set_with_value(set: Payload<'_>, value: &[u8], at: u64) -> Result<SetWithValue> {
    match tag::kind(set.tag) {
        tag::INLINE if set.bytes == value => Ok(SetWithValue::There),
        tag::INLINE => {
            let last = set.bytes < value;
            let mut both = KeyList::default();
            let [first, second] = if last {
                [set.bytes, value]
            } else {
                [value, set.bytes]
            };
            both.push(first);
            both.push(second);
            let bytes = both.encode();
            Ok(SetWithValue::Row { bytes, last })
        }
        tag::NESTED => Ok(match add_key(set.bytes, value, at)? {
            KeyAdded::There => SetWithValue::There,
            KeyAdded::New { bytes, last } => SetWithValue::Row { bytes, last },
        }),
        tag::ROOT => Ok(SetWithValue::Pages(set.bytes.to_vec())),
        _ => Err(damaged(
            "row of a table",
            at,
            "an extent",
            "a set of values",
        )),
    }
}

/// The payload of the row of a key with a single value; `None` if the value does not fit the row.
pub(crate) fn only<'v>(page_size: usize, key_len: usize, value: &'v [u8]) -> Option<Payload<'v>> {
    let payload = Payload::inline(value);
    let row = cell_size(true, key::stored_bytes(page_size, key_len), payload);
    (row <= cell_bytes_max(page_size) - slot_bytes(true, page_size)).then_some(payload)
}

impl Tree {
    /// Access for changing the pairs of this table.
    ///
    /// # Panics
    /// If the table was not created by `new_multi`, so that its keys have single values.
    pub fn pairs(&mut self) -> PairWriter<'_> {
        assert!(self.is_multi(), "a table of sets");
        PairWriter { tree: self }
    }

    /// Number of values of a key. Costs one page per level of the table.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn values_of<R: PageRead>(&self, r: &R, key: &[u8]) -> Result<u64> {
        let entry = self.find_payload(r, key)?;
        Ok(entry.map_or(0, |entry| crate::page::row_count::weight(entry.payload())))
    }
}

impl PairWriter<'_> {
    /// Passes the set of a key to `change`, stores the changed set, and returns the result of `change`.
    pub(crate) fn change<W: PageWrite, T>(
        &mut self,
        w: &mut W,
        key: &[u8],
        change: impl FnOnce(&mut W, &mut TableWriter) -> Result<T>,
    ) -> Result<T> {
        let old = self.tree.find_payload(w, key)?;
        let mut set = TableWriter::of_set(old.as_ref(), self.tree.id, w.page_size())?;
        let done = change(w, &mut set)?;
        if set.is_empty() {
            if old.is_some() {
                self.tree.remove_payload(w, key, OldPayload::Keep)?;
            }
            return Ok(done);
        }
        let page_size = w.page_size();
        let only = |value| only(page_size, key.len(), value);
        if let Some(payload) = set.only_key().and_then(only) {
            self.tree.put_payload(w, key, payload, OldPayload::Keep)?;
            return Ok(done);
        }
        let (tag, bytes) = set.into_payload(w, key.len())?;
        let payload = Payload { tag, bytes: &bytes };
        self.tree.put_payload(w, key, payload, OldPayload::Keep)?;
        Ok(done)
    }

    /// Inserts a pair; returns true if it was new. A value may be as long as a key.
    ///
    /// # Errors
    /// `Limit` for a key or value that is too long: nothing has changed in that case.
    ///
    /// # Cost
    /// One descent in the table, and another in the key's set if the set has pages of its own; no page is copied for a
    /// pair that exists. An inline set, which takes at most a quarter of a page, is rewritten with its row.
    pub fn insert<W: PageWrite>(&mut self, w: &mut W, key: &[u8], value: &[u8]) -> Result<bool> {
        key::check_len(key)?;
        key::check_len(value)?;
        let put = self.put(w, key, value, AllowedPosition::Any)?;
        Ok(put != PairInsert::There)
    }

    /// Inserts a pair, whose lengths were checked, if its position is allowed.
    pub(crate) fn put<W: PageWrite>(
        &mut self,
        w: &mut W,
        key: &[u8],
        value: &[u8],
        order: AllowedPosition,
    ) -> Result<PairInsert> {
        debug_assert!(key.len() <= KEY_BYTES_MAX, "the length was checked");
        debug_assert!(value.len() <= KEY_BYTES_MAX, "the length was checked");
        let found = self.tree.read_path(&*w, key, |leaf, index, found| {
            let cell = found.then(|| leaf.cell(index)).transpose()?;
            cell.map(|cell| set_with_value(cell.payload(), value, leaf.at()))
                .transpose()
        })?;
        let Some((read_path, set_with_value)) = found else {
            let (tag, bytes) = self.set_of_one(w, key, value)?;
            let payload = Payload { tag, bytes: &bytes };
            self.tree.put_payload(w, key, payload, OldPayload::Keep)?;
            return Ok(PairInsert::New { last: true });
        };
        if order == AllowedPosition::LastOfTable && !read_path.last {
            return Ok(PairInsert::NotLast);
        }
        let ((tag, bytes), last) = match set_with_value {
            None => (self.set_of_one(w, key, value)?, true),
            Some(SetWithValue::There) => return Ok(PairInsert::There),
            Some(SetWithValue::Row { last: false, .. }) if order != AllowedPosition::Any => {
                return Ok(PairInsert::NotLast);
            }
            Some(SetWithValue::Row { bytes, last }) => (self.set_of(w, key, bytes)?, last),
            Some(SetWithValue::Pages(root)) => {
                let mut set = Tree::decode_nested_root(&root, self.tree.id, w.page_size(), 0)?;
                match set.add(w, value, order != AllowedPosition::Any)? {
                    PairInsert::New { last } => (root_payload(&set), last),
                    other => return Ok(other),
                }
            }
        };
        let last = last && read_path.last;
        let path = self.tree.own_read_path(w, read_path, last)?;
        let payload = Payload { tag, bytes: &bytes };
        self.tree.put_at(w, path, key, payload, OldPayload::Keep)?;
        Ok(PairInsert::New { last })
    }

    /// Creates the payload of the row of a key with a single value.
    pub(crate) fn set_of_one<W: PageWrite>(
        &self,
        w: &mut W,
        key: &[u8],
        value: &[u8],
    ) -> Result<(u32, Vec<u8>)> {
        if let Some(payload) = only(w.page_size(), key.len(), value) {
            return Ok((payload.tag, value.to_vec()));
        }
        let mut set = TableWriter::of_set(None, self.tree.id, w.page_size())?;
        set.insert(w, value, &[])?;
        set.into_payload(w, key.len())
    }

    /// Creates the payload of the row of a key with a small set: the set itself, or the root of new pages if the set
    /// does not fit the row.
    pub(crate) fn set_of<W: PageWrite>(
        &self,
        w: &mut W,
        key: &[u8],
        small: Vec<u8>,
    ) -> Result<(u32, Vec<u8>)> {
        if fits_row(w.page_size(), key.len(), &small) {
            return Ok((tag::of(tag::NESTED, small.len()), small));
        }
        debug_assert!(small.len() > 1, "a set with its header");
        let set = to_pages(w, self.tree.id, &InlineTable::decode(&small, 0)?)?;
        Ok(root_payload(&set))
    }

    /// Inserts many values of one key with a single change of the key's set; returns the number of new values.
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

    /// Removes a pair; returns true if it existed.
    ///
    /// # Errors
    /// As for [`Tree::remove`].
    pub fn remove<W: PageWrite>(&mut self, w: &mut W, key: &[u8], value: &[u8]) -> Result<bool> {
        if !self.tree.contains_pair(w, key, value)? {
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
            self.tree.remove_payload(w, key, OldPayload::Free)?;
        }
        Ok(count)
    }

    /// Removes every pair from `from` up to but excluding `to`, or up to the table's end if no `to` is given. Returns
    /// the number of removed pairs.
    ///
    /// # Errors
    /// As for [`Tree::remove`].
    ///
    /// # Cost
    /// A range delete in the set of a key that keeps some of its values; for the keys in between the cost of
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
        let mut keys = TableWriter::of(*self.tree);
        let whole = keys.remove_between(w, &first_whole, to.map(|to| to.0));
        if let Some(tree) = keys.tree() {
            *self.tree = *tree;
        }
        Ok(removed.wrapping_add(whole?))
    }

    /// Removes the values of one key from `from` up to but excluding `to`, or up to the end of the set if no `to` is
    /// given.
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
        self.change(w, key, |w, set| set.remove_between(w, from, to))
    }
}

impl Tree {
    /// Adds a value as a key to this tree, which is the set of values of some key. If `behind`, adds it only if it
    /// comes after all other values.
    fn add<W: PageWrite>(&mut self, w: &mut W, key: &[u8], behind: bool) -> Result<PairInsert> {
        let Some((read_path, ())) = self.read_path(&*w, key, |_, _, _| Ok(()))? else {
            self.put_payload(w, key, Payload::inline(&[]), OldPayload::Keep)?;
            return Ok(PairInsert::New { last: true });
        };
        if read_path.found {
            return Ok(PairInsert::There);
        }
        let last = read_path.last;
        if behind && !last {
            return Ok(PairInsert::NotLast);
        }
        let path = self.own_read_path(w, read_path, last)?;
        self.put_at(w, path, key, Payload::inline(&[]), OldPayload::Keep)?;
        Ok(PairInsert::New { last })
    }

    /// True if the pair exists in this table of sets.
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
        TableWriter::of_set(Some(&entry), self.id, r.page_size())?.contains(r, value)
    }
}
