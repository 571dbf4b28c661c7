//! Read access to a table, which has pages of its own or lies inline in a leaf of its parent table.

use crate::cursor::select::cuts;
use crate::cursor::tree_cursor::Cursor;
use crate::error::{key_holds_table, unexpected};
use crate::inline::inline_table;
use crate::inline::packed_set::PackedSet;
use crate::nested::table_repr::{InlineBytes, TableRepr};
use crate::page::entries::{Entry, Group};
use crate::page::key::Key;
use crate::page::layout::{Payload, tag};
use crate::page::overflow::PageSlice;
use crate::table::tree::Tree;
use crate::value::{self, Value};
use std::sync::Arc;
use tidalite_pager::{PageRead, PageRef, PageWrite, Result};

/// Read access to a table, nested or not.
#[derive(Clone, Debug)]
pub struct TableReader<'r>(TableRepr<InlineBytes<'r>>);

impl From<&Tree> for TableReader<'_> {
    fn from(tree: &Tree) -> Self {
        Self::of(*tree)
    }
}

impl From<&Self> for TableReader<'_> {
    fn from(table: &Self) -> Self {
        table.clone()
    }
}

impl<'r> TableReader<'r> {
    /// Read access to a table that has pages of its own.
    #[must_use]
    pub fn of(tree: Tree) -> Self {
        Self(TableRepr::Pages(tree))
    }

    /// The tree, if the table has pages of its own; `None` for an inline table.
    #[must_use]
    pub fn tree(&self) -> Option<&Tree> {
        self.0.tree()
    }

    /// Decodes a nested table from the payload at `range` of a leaf's page.
    pub(crate) fn of_payload<R: PageRead>(
        r: &R,
        page: &PageRef<'r>,
        (tag, range): (u32, std::ops::Range<usize>),
        id: u64,
        at: u64,
    ) -> Result<Self> {
        let payload = Payload {
            tag,
            bytes: &page[range.clone()],
        };
        let inline = || {
            Ok(InlineBytes {
                bytes: PageSlice::new(page.clone(), range),
                id,
                at,
            })
        };
        TableRepr::decode(payload, id, r.page_size(), at, inline).map(Self)
    }

    /// Number of rows. Reads no page.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// The next number of the table's sequence. Reads no page.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.0.sequence()
    }

    /// True if the table has no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value stored under `key`; `None` if the key does not exist.
    ///
    /// # Errors
    /// `Corrupt`, `Io`; `IsTable` if the key holds a nested table.
    #[inline]
    pub fn get<R: PageRead>(&self, r: &'r R, key: &[u8]) -> Result<Option<Value<'r>>> {
        let (bytes, at) = match &self.0 {
            TableRepr::Pages(tree) => return tree.get_else(r, key, key_holds_table),
            TableRepr::Inline(InlineBytes { bytes, at, .. }) => (bytes, *at),
        };
        let Some(cell) = inline_table::find(bytes, key, at)? else {
            return Ok(None);
        };
        if tag::kind(cell.tag) == tag::INLINE {
            let range = cell.payload_at..cell.payload_at + cell.payload.len();
            return Ok(Some(Value::part(bytes, range)));
        }
        match value::reference(cell.tag, cell.payload, r.page_size(), at)? {
            Some(reference) => Ok(Some(Value::referenced(r, reference))),
            None => Err(key_holds_table(at, key)),
        }
    }

    /// The value of the last row whose key is not greater than `key` and not less than `least`; `None` if there is
    /// none.
    ///
    /// # Errors
    /// As for `get`.
    pub fn floor<R: PageRead>(
        &self,
        r: &'r R,
        key: &[u8],
        least: &[u8],
    ) -> Result<Option<Value<'r>>> {
        if let Some(tree) = self.tree() {
            return tree.floor(r, key, least);
        }
        let mut cursor = self.cursor(r)?;
        match cursor.seek_le(key)? && cursor.key() >= least {
            true => cursor.value().map(Some),
            false => Ok(None),
        }
    }

    /// Passes the values of many keys to `found`, in the order of the keys, each with the index of its key: see
    /// [`Tree::get_many`].
    ///
    /// # Errors
    /// As for `get`; errors of `found`.
    pub fn get_many<R: PageRead, K: AsRef<[u8]>>(
        &self,
        r: &'r R,
        keys: &[K],
        mut found: impl FnMut(usize, Option<Value<'r>>) -> Result<()>,
    ) -> Result<()> {
        if let TableRepr::Pages(tree) = &self.0 {
            return tree.get_many_else(r, keys, found, key_holds_table);
        }
        let mut keys = keys.iter().enumerate();
        keys.try_for_each(|(place, key)| found(place, self.get(r, key.as_ref())?))
    }

    /// Keys that divide the rows from one rank up to another into `parts` of equal size: see [`Tree::split_range`].
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn split_range<R: PageRead>(
        &self,
        r: &R,
        (from, to): (u64, u64),
        parts: usize,
    ) -> Result<Vec<Vec<u8>>> {
        if let TableRepr::Pages(tree) = &self.0 {
            return tree.split_range(r, (from, to), parts);
        }
        let mut cursor = self.cursor(r)?;
        let mut keys = Vec::new();
        for rank in cuts(from, to.min(self.len()), parts) {
            if cursor.select(rank)? {
                keys.push(cursor.key().to_vec());
            }
        }
        Ok(keys)
    }

    /// True if `key` exists.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn contains<R: PageRead>(&self, r: &R, key: &[u8]) -> Result<bool> {
        self.0.contains(r, key)
    }

    /// The nested table stored under `key`; `None` if the key does not exist.
    ///
    /// # Errors
    /// `Corrupt`, `Io`; `Refused` if the key holds a value.
    pub fn nested<R: PageRead>(&self, r: &'r R, key: &[u8]) -> Result<Option<Self>> {
        match &self.0 {
            TableRepr::Pages(tree) => {
                let Some(row) = tree.find_row(r, key)? else {
                    return Ok(None);
                };
                Self::of_payload(r, &row.page, (row.tag, row.range), tree.id, row.at).map(Some)
            }
            TableRepr::Inline(InlineBytes { bytes, id, at }) => {
                let Some(cell) = inline_table::find(bytes, key, *at)? else {
                    return Ok(None);
                };
                let range = cell.payload_at..cell.payload_at + cell.payload.len();
                let (page, range) = bytes.within(range);
                Self::of_payload(r, page, (cell.tag, range), *id, *at).map(Some)
            }
        }
    }

    /// Number of keys below `key`.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn rank<R: PageRead>(&self, r: &R, key: &[u8]) -> Result<u64> {
        let (bytes, at) = match &self.0 {
            TableRepr::Pages(tree) => return tree.rank(r, key),
            TableRepr::Inline(InlineBytes { bytes, at, .. }) => (bytes, *at),
        };
        if let Some((_, keys)) = inline_table::packed(bytes, at)? {
            return Ok(keys.below(key, false) as u64);
        }
        let mut rank = 0;
        for cell in inline_table::cells(bytes, at)? {
            rank += u64::from(cell?.key < key);
        }
        Ok(rank)
    }

    /// The set of values, if it is stored packed in the row of its key.
    pub(crate) fn packed(&self) -> Result<Option<PackedSet<'r>>> {
        match &self.0 {
            TableRepr::Inline(InlineBytes { bytes, at, .. }) => PackedSet::of(bytes, *at),
            TableRepr::Pages(_) => Ok(None),
        }
    }

    /// Passes the keys in ascending order to `take`, until `take` returns false.
    pub(crate) fn each_key<R: PageRead>(
        &self,
        r: &R,
        mut take: impl FnMut(&[u8]) -> bool,
    ) -> Result<()> {
        match &self.0 {
            TableRepr::Inline(InlineBytes { bytes, at, .. }) => {
                if let Some((_, keys)) = inline_table::packed(bytes, *at)? {
                    let _all_wanted = keys.iter().all(take);
                    return Ok(());
                }
                for cell in inline_table::cells(bytes, *at)? {
                    if !take(cell?.key) {
                        break;
                    }
                }
            }
            TableRepr::Pages(tree) => {
                let mut cursor = tree.cursor(r);
                let mut there = cursor.first()?;
                while there && take(cursor.key()) {
                    there = cursor.next()?;
                }
            }
        }
        Ok(())
    }

    /// Creates a cursor before the first row. For an inline table, first builds a page in memory.
    ///
    /// # Errors
    /// `Corrupt` for a damaged inline table.
    pub fn cursor<R: PageRead>(&self, r: &'r R) -> Result<Cursor<'r, R>> {
        match &self.0 {
            TableRepr::Pages(tree) => Ok(tree.cursor(r)),
            TableRepr::Inline(InlineBytes { bytes, id, at }) => {
                Ok(Cursor::over(Tree::new(*id), r, leaf_of(bytes, *at)?))
            }
        }
    }
}

/// Builds a leaf in memory with the rows of an inline table; `None` for an empty table. In files with the largest pages
/// an inline table may have so many short rows that their slots do not fit a page with two-byte offsets.
fn leaf_of(bytes: &[u8], at: u64) -> Result<Option<PageRef<'static>>> {
    let narrow = inline_table::PAGE_BYTES;
    for page_size in [narrow, 2 * narrow] {
        let mut group = Group::empty(true, page_size, false);
        for cell in inline_table::cells(bytes, at)? {
            let cell = cell?;
            let payload = Payload {
                tag: cell.tag,
                bytes: cell.payload,
            };
            group
                .entries
                .push(Entry::new(Key::plain(cell.key), payload));
        }
        let count = group.entries.len();
        if count == 0 {
            return Ok(None);
        }
        let bytes = group.page_bytes(0..count);
        if count > usize::from(u16::MAX) || page_size == narrow && bytes > narrow {
            continue;
        }
        // The width of row offsets depends on the size of the page.
        let least = if page_size == narrow { 0 } else { narrow + 1 };
        let mut page = vec![0; bytes.max(least)];
        group.write(0..count, 0, &mut page);
        return Ok(Some(PageRef::Owned(Arc::from(page))));
    }
    Err(unexpected(
        "a nested table too large for its leaf",
        "a small one",
    ))
}

impl Tree {
    /// As [`is_dirty`](Self::is_dirty), for a key of the table at the end of a path of keys. For an inline table the
    /// answer is for the leaf of the table that contains it; for a missing table, for the leaf that would contain it.
    ///
    /// # Errors
    /// `Corrupt`, `Io`; `Refused` if a key of the path holds a value.
    pub fn is_dirty_at<W: PageWrite>(&self, w: &W, path: &[Vec<u8>], key: &[u8]) -> Result<bool> {
        let mut sub = TableReader::of(*self);
        let (mut tree, mut held) = (*self, key);
        for key in path {
            if let Some(own) = sub.tree() {
                (tree, held) = (*own, key);
            }
            match sub.nested(w, key)? {
                Some(below) => sub = below,
                None => return tree.is_dirty(w, held),
            }
        }
        if let Some(own) = sub.tree() {
            (tree, held) = (*own, key);
        }
        tree.is_dirty(w, held)
    }
}

impl<'r, R: PageRead> Cursor<'r, R> {
    /// The nested table that the current row holds.
    ///
    /// # Errors
    /// `Corrupt`; `Refused` if the row holds a value.
    ///
    /// # Panics
    /// When the cursor is not at a row.
    pub fn nested(&self) -> Result<TableReader<'r>> {
        let (page, payload, at) = self.payload_place();
        TableReader::of_payload(self.reader(), page, payload, self.owner(), at)
    }
}
