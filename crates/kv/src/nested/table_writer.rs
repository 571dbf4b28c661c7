//! Write access to a table, which has pages of its own or lies inline in a leaf of its parent table.

use crate::bulk::append::PutRow;
use crate::bulk::append_cursor::AppendCursor;
use crate::error::{damaged, key_holds_table};
use crate::inline::inline_table::{InlineEntry, InlineTable};
use crate::nested::conversion::{
    fits_row, inline_bytes_max, root_payload, shrink_to_inline, to_pages,
};
use crate::nested::table_repr::TableRepr;
use crate::page::key;
use crate::page::layout::{Payload, key_bytes_max, tag};
use crate::table::free::{OldPayload, VisitedPages};
use crate::table::tree::{Tree, check_depth};
use crate::value::{self, Stored, Value};
use tidalite_pager::{Error, PageRead, PageWrite, Result};

/// How a change treats tables on its path that do not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingTable {
    /// Nothing is changed if a table is missing.
    Ignore,
    /// A missing table is created if it gets an entry, or numbers of its sequence are taken; a change that fails, or
    /// stores nothing, creates no table.
    CreateToFill,
    /// A missing table is created, even if it stays empty.
    Create,
}

/// Write access to a table, nested or not.
#[derive(Clone, Debug)]
pub struct TableWriter {
    pub(crate) repr: TableRepr<InlineTable>,
    /// The owner id that the table's pages carry.
    id: u64,
}

impl TableWriter {
    /// Write access to a table that has pages of its own.
    #[must_use]
    pub fn of(tree: Tree) -> Self {
        Self {
            id: tree.id,
            repr: TableRepr::Pages(tree),
        }
    }

    /// The tree, if the table has pages of its own; `None` for an inline table.
    #[must_use]
    pub fn tree(&self) -> Option<&Tree> {
        self.repr.tree()
    }

    fn of_payload(payload: Payload<'_>, id: u64, page_size: usize, at: u64) -> Result<Self> {
        let inline = || InlineTable::decode(payload.bytes, at);
        let repr = TableRepr::decode(payload, id, page_size, at, inline)?;
        Ok(Self { repr, id })
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.repr.len()
    }

    /// True if the table has no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes `count` numbers of the table's sequence and returns the first; `None` if the sequence is exhausted.
    pub fn take_sequence(&mut self, count: u64) -> Option<u64> {
        let sequence = match &mut self.repr {
            TableRepr::Pages(tree) => return tree.take_sequence(count),
            TableRepr::Inline(inline) => &mut inline.sequence,
        };
        let first = *sequence;
        *sequence = first.checked_add(count)?;
        Some(first)
    }

    /// The entry stored under `key`, read into memory; `None` if the key does not exist.
    pub(crate) fn find<R: PageRead>(&self, r: &R, key: &[u8]) -> Result<Option<InlineEntry>> {
        match &self.repr {
            TableRepr::Inline(inline) => {
                Ok(inline.place(key).ok().map(|at| inline.entries[at].clone()))
            }
            TableRepr::Pages(tree) => tree.find_payload(r, key),
        }
    }

    /// True if `key` exists.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn contains<R: PageRead>(&self, r: &R, key: &[u8]) -> Result<bool> {
        self.repr.contains(r, key)
    }

    /// The value stored under `key`, read into memory; `None` if the key does not exist.
    ///
    /// # Errors
    /// `Corrupt`, `Io`; `IsTable` if the key holds a nested table.
    pub fn get<R: PageRead>(&self, r: &R, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let Some(entry) = self.find(r, key)? else {
            return Ok(None);
        };
        match tag::kind(entry.tag) {
            tag::INLINE => Ok(Some(entry.payload)),
            tag::REFERENCE => {
                let found = value::reference(entry.tag, &entry.payload, r.page_size(), 0)?;
                found
                    .map(|reference| Value::referenced(r, reference).to_vec())
                    .transpose()
            }
            _ => Err(key_holds_table(0, key)),
        }
    }

    /// Inserts a row, or replaces the value of an existing row; returns true if the key existed.
    ///
    /// # Errors
    /// As for [`Tree::insert`].
    pub fn insert<W: PageWrite>(&mut self, w: &mut W, key: &[u8], value: &[u8]) -> Result<bool> {
        match &mut self.repr {
            TableRepr::Pages(tree) => tree.insert(w, key, value),
            TableRepr::Inline(inline) => {
                let there = inline.place(key).map(|at| inline.entries[at].tag);
                if there.is_ok_and(|there| tag::kind(there) >= tag::NESTED) {
                    return Err(key_holds_table(0, key));
                }
                let stored = Stored::put(w, self.id, key, value)?;
                Ok(self.put_payload(w, key, stored.payload(), OldPayload::Free)? > 0)
            }
        }
    }

    pub(crate) fn put_payload<W: PageWrite>(
        &mut self,
        w: &mut W,
        key: &[u8],
        payload: Payload<'_>,
        old: OldPayload,
    ) -> Result<u64> {
        if let TableRepr::Inline(inline) = &self.repr
            && key.len() > key_bytes_max(w.page_size())
        {
            // A key that is too long for a page needs an extent, so its table must have pages.
            self.repr = TableRepr::Pages(to_pages(w, self.id, inline)?);
        }
        match &mut self.repr {
            TableRepr::Pages(tree) => tree.put_payload(w, key, payload, old),
            TableRepr::Inline(inline) => {
                let before = inline.put(InlineEntry {
                    key: key.to_vec(),
                    tag: payload.tag,
                    payload: payload.bytes.to_vec(),
                });
                let rows = u64::from(before.is_some());
                if let (Some(before), OldPayload::Free) = (before, old) {
                    free(w, self.id, &before)?;
                }
                self.grow(w)?;
                Ok(rows)
            }
        }
    }

    /// Inserts a row after all others; returns false, with nothing changed, if `key` is not above the last key.
    ///
    /// # Errors
    /// As for [`Tree::insert`].
    pub fn append<W: PageWrite>(&mut self, w: &mut W, key: &[u8], value: &[u8]) -> Result<bool> {
        let above = match &mut self.repr {
            TableRepr::Pages(tree) => {
                return tree.append_hinted(w, &mut AppendCursor::default(), key, value);
            }
            TableRepr::Inline(inline) => {
                let last = inline.entries.last();
                last.is_none_or(|last| last.key.as_slice() < key)
            }
        };
        if above {
            self.insert(w, key, value)?;
        }
        Ok(above)
    }

    /// Inserts many rows; returns the number of new keys. As soon as the table has pages of its own,
    /// the remaining rows are inserted by [`Tree::append`].
    ///
    /// # Errors
    /// As for [`Tree::append`].
    pub fn extend<W, K, V>(
        &mut self,
        w: &mut W,
        rows: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64>
    where
        W: PageWrite,
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        let (before, mut rows) = (self.len(), rows.into_iter());
        loop {
            if let TableRepr::Pages(tree) = &mut self.repr {
                tree.append(w, rows)?;
                break;
            }
            let Some((key, value)) = rows.next() else {
                break;
            };
            self.insert(w, key.as_ref(), value.as_ref())?;
        }
        Ok(self.len().wrapping_sub(before))
    }

    /// As [`extend`](Self::extend), for rows that `feed` passes one by one to the callback that it receives.
    ///
    /// # Errors
    /// As for [`Tree::append_lent`].
    pub fn extend_lent<W: PageWrite>(
        &mut self,
        w: &mut W,
        feed: impl FnOnce(&mut PutRow<'_>) -> Result<()>,
    ) -> Result<()> {
        match &mut self.repr {
            TableRepr::Pages(tree) => tree.append_lent(w, feed).map(drop),
            TableRepr::Inline(_) => feed(&mut |key, value| self.insert(w, key, value).map(drop)),
        }
    }

    /// Inserts a row with a value of `len` bytes that `fill` writes into a buffer of zeros. Returns true if the key
    /// existed.
    ///
    /// # Errors
    /// As for [`Tree::insert`].
    pub fn insert_with<W: PageWrite>(
        &mut self,
        w: &mut W,
        key: &[u8],
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<bool> {
        key::check_len(key)?;
        value::check_len(len as u64)?;
        let mut bytes = vec![0; len];
        fill(&mut bytes);
        self.insert(w, key, &bytes)
    }

    /// Removes a row; returns true if it existed.
    ///
    /// # Errors
    /// As for [`Tree::remove`].
    pub fn remove<W: PageWrite>(&mut self, w: &mut W, key: &[u8]) -> Result<bool> {
        match &mut self.repr {
            TableRepr::Pages(tree) => tree.remove(w, key),
            TableRepr::Inline(inline) => {
                let Ok(at) = inline.place(key) else {
                    return Ok(false);
                };
                let old = inline.entries.remove(at);
                free(w, self.id, &old)?;
                Ok(true)
            }
        }
    }

    /// Removes all rows.
    ///
    /// # Errors
    /// As for [`Tree::clear`].
    pub fn clear<W: PageWrite>(&mut self, w: &mut W) -> Result<()> {
        match &mut self.repr {
            TableRepr::Pages(tree) => tree.clear(w),
            TableRepr::Inline(inline) => {
                for old in std::mem::take(&mut inline.entries) {
                    free(w, self.id, &old)?;
                }
                Ok(())
            }
        }
    }

    /// Removes every row with `from <= key < to`; returns the number of rows.
    ///
    /// # Errors
    /// As for [`Tree::remove_range`].
    pub fn remove_range<W: PageWrite>(&mut self, w: &mut W, from: &[u8], to: &[u8]) -> Result<u64> {
        self.remove_between(w, from, Some(to))
    }

    /// Removes every row with `from <= key < to`, or from `from` on without `to`; returns the number of rows.
    ///
    /// # Errors
    /// As for [`Tree::remove_range`].
    pub fn remove_between<W: PageWrite>(
        &mut self,
        w: &mut W,
        from: &[u8],
        to: Option<&[u8]>,
    ) -> Result<u64> {
        match &mut self.repr {
            TableRepr::Pages(tree) => match to {
                Some(to) => tree.remove_range(w, from, to),
                None => {
                    let mut cursor = tree.cursor(&*w);
                    if !cursor.last()? {
                        return Ok(0);
                    }
                    let end = [cursor.key(), &[0][..]].concat();
                    drop(cursor);
                    tree.remove_range(w, from, &end)
                }
            },
            TableRepr::Inline(inline) => {
                let gone = |entry: &InlineEntry| {
                    entry.key.as_slice() >= from && to.is_none_or(|to| entry.key.as_slice() < to)
                };
                let (removed, kept) = std::mem::take(&mut inline.entries)
                    .into_iter()
                    .partition::<Vec<_>, _>(gone);
                inline.entries = kept;
                for old in &removed {
                    free(w, self.id, old)?;
                }
                Ok(removed.len() as u64)
            }
        }
    }

    /// Moves an inline table that has become too large to pages at once, so that filling a table takes linear time.
    fn grow<W: PageWrite>(&mut self, w: &mut W) -> Result<()> {
        let TableRepr::Inline(inline) = &self.repr else {
            return Ok(());
        };
        if inline.encoded_len() <= inline_bytes_max(w.page_size()) {
            return Ok(());
        }
        let tree = to_pages(w, self.id, inline)?;
        self.repr = TableRepr::Pages(tree);
        Ok(())
    }

    /// Changes the table at the end of a path of keys; `missing` determines what happens to tables on the path that do
    /// not exist. Returns `None` if a table is missing and was not created; nothing was changed then.
    ///
    /// # Errors
    /// `Refused` if a key of the path holds a value; `Limit` for too deep a path; errors of `change`. If `change`
    /// returns `Limit` or `IsTable`, its changes up to then are kept.
    pub fn at<W: PageWrite, T>(
        &mut self,
        w: &mut W,
        path: &[Vec<u8>],
        missing: MissingTable,
        change: &mut dyn FnMut(&mut W, &mut Self) -> Result<T>,
    ) -> Result<Option<T>> {
        check_depth(path.len())?;
        let Some((key, rest)) = path.split_first() else {
            return change(w, self).map(Some);
        };
        let found = self.find(w, key)?;
        let is_new = found.is_none();
        let mut below = match found {
            Some(entry) => Self::of_payload(entry.payload(), self.id, w.page_size(), 0)?,
            None if missing == MissingTable::Ignore => return Ok(None),
            None => {
                key::check_len(key)?;
                Self {
                    repr: TableRepr::Inline(InlineTable::default()),
                    id: self.id,
                }
            }
        };
        let done = below.at(w, rest, missing, change);
        let is_changed = match &done {
            Ok(Some(_)) => !is_new || missing == MissingTable::Create || !below.repr.is_unused(),
            // A change that inserts many entries may have inserted some of them before the error.
            Err(Error::Limit { .. } | Error::IsTable { .. }) => !is_new || !below.repr.is_unused(),
            _ => false,
        };
        if is_changed {
            self.store_nested(w, key, below)?;
        }
        done
    }

    /// Stores a nested table as a row of this table.
    pub(crate) fn store_nested<W: PageWrite>(
        &mut self,
        w: &mut W,
        key: &[u8],
        below: Self,
    ) -> Result<()> {
        let (tag, bytes) = below.into_payload(w, key.len())?;
        let payload = Payload { tag, bytes: &bytes };
        self.put_payload(w, key, payload, OldPayload::Keep)?;
        Ok(())
    }

    /// Converts this table to the payload of the row that holds it in the parent table.
    pub(crate) fn into_payload<W: PageWrite>(
        self,
        w: &mut W,
        key_len: usize,
    ) -> Result<(u32, Vec<u8>)> {
        let inline = match self.repr {
            TableRepr::Inline(inline) => inline,
            TableRepr::Pages(tree) => match shrink_to_inline(w, &tree)? {
                Some(inline) => inline,
                None => return Ok(root_payload(&tree)),
            },
        };
        let bytes = inline.encode();
        if inline.entries.is_empty() || fits_row(w.page_size(), key_len, &bytes) {
            return Ok((tag::of(tag::NESTED, bytes.len()), bytes));
        }
        Ok(root_payload(&to_pages(w, self.id, &inline)?))
    }

    /// Decodes the set of values of a key from the payload in the key's entry.
    pub(crate) fn of_set(entry: Option<&InlineEntry>, id: u64, page_size: usize) -> Result<Self> {
        match entry {
            Some(entry) if tag::kind(entry.tag) >= tag::NESTED => {
                Self::of_payload(entry.payload(), id, page_size, 0)
            }
            Some(entry) if tag::kind(entry.tag) == tag::REFERENCE => {
                Err(damaged("row of a table", 0, "an extent", "a set of values"))
            }
            one => Ok(Self {
                repr: TableRepr::Inline(InlineTable {
                    entries: one
                        .map(|entry| InlineEntry {
                            key: entry.payload.clone(),
                            tag: 0,
                            payload: Vec::new(),
                        })
                        .into_iter()
                        .collect(),
                    sequence: 0,
                }),
                id,
            }),
        }
    }

    /// The key of an inline table with exactly one row; `None` for any other table.
    pub(crate) fn only_key(&self) -> Option<&[u8]> {
        match &self.repr {
            TableRepr::Inline(inline) if inline.entries.len() == 1 => Some(&inline.entries[0].key),
            _ => None,
        }
    }
}

/// Frees the pages and extents that an entry of an inline table refers to.
fn free<W: PageWrite>(w: &mut W, id: u64, old: &InlineEntry) -> Result<()> {
    Tree::new(id).free_payload(w, old.tag, &old.payload, 0, &mut VisitedPages::default())
}
