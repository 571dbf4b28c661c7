//! A table being changed: in pages of its own, or inline in its parent's leaf.
//!
//! ```text
//! Work::Tree    pages of its own; its root is a row of its parent, or a root of the catalog
//! Work::Small   entries in memory, written back into the parent's row
//! ```
//!
//! An inline table moves to pages when it takes more than a quarter of a page (or when it would make its row too
//! large), and back when it takes at most an eighth. So tables of a few rows cost a few bytes each, and a table near
//! the threshold does not move with every change.

use crate::bulk::append::PutRow;
use crate::bulk::append_cursor::Ending;
use crate::error::{damaged, holds_a_table, unexpected};
use crate::inline::inline_table::{Small, SmallEntry};
use crate::page::key;
use crate::page::layout::{Payload, cell_bytes_max, cell_size, key_bytes_max, slot_bytes, tag};
use crate::page::node::Node;
use crate::table::free::{Freed, Old};
use crate::table::tree::{LEADS_ON, Tree, check_depth};
use crate::value::{self, Stored, Value};
use tidalite_pager::{Error, PageRead, PageWrite, Result};

/// An inline table takes at most one part in this many of a page.
const SMALL_DIV: usize = 4;

/// A table in one leaf becomes inline again when it takes at most one part in this many of a page.
const SMALL_AGAIN_DIV: usize = 8;

/// Treatment of missing tables on the path of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// Nothing is changed.
    Leave,
    /// A missing table is created if it gets an entry, or numbers of its sequence are taken; a change that fails, or
    /// stores nothing, creates none.
    MakeToFill,
    /// A missing table is created, even if it stays empty.
    Make,
}

/// A table being changed.
#[derive(Clone, Debug)]
pub struct Work {
    pub(crate) form: Form,
    /// The owner id of its pages.
    id: u64,
}

#[derive(Clone, Debug)]
pub(crate) enum Form {
    Tree(Tree),
    Small(Small),
}

impl Work {
    /// A table in pages.
    #[must_use]
    pub fn of(tree: Tree) -> Self {
        Self {
            id: tree.id,
            form: Form::Tree(tree),
        }
    }

    /// The table's root, if it has pages of its own.
    #[must_use]
    pub fn tree(&self) -> Option<&Tree> {
        match &self.form {
            Form::Tree(tree) => Some(tree),
            Form::Small(_) => None,
        }
    }

    fn of_payload(payload: Payload<'_>, id: u64, page_size: usize, at: u64) -> Result<Self> {
        let form = match tag::kind(payload.tag) {
            tag::NESTED => Form::Small(Small::decode(payload.bytes, at)?),
            tag::ROOT => Form::Tree(Tree::of_nested_root(payload.bytes, id, page_size, at)?),
            _ => return Err(unexpected("a value", "a nested table")),
        };
        Ok(Self { form, id })
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> u64 {
        match &self.form {
            Form::Tree(tree) => tree.len(),
            Form::Small(small) => small.entries.len() as u64,
        }
    }

    /// True for a table without rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes `count` numbers of the table's sequence and returns the first; `None` if the sequence is exhausted.
    pub fn take_sequence(&mut self, count: u64) -> Option<u64> {
        let sequence = match &mut self.form {
            Form::Tree(tree) => return tree.take_sequence(count),
            Form::Small(small) => &mut small.sequence,
        };
        let first = *sequence;
        *sequence = first.checked_add(count)?;
        Some(first)
    }

    /// The entry of a key.
    pub(crate) fn find<R: PageRead>(&self, r: &R, key: &[u8]) -> Result<Option<SmallEntry>> {
        match &self.form {
            Form::Small(small) => Ok(small.place(key).ok().map(|at| small.entries[at].clone())),
            Form::Tree(tree) => tree.find_payload(r, key),
        }
    }

    /// Whether `key` exists.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn contains<R: PageRead>(&self, r: &R, key: &[u8]) -> Result<bool> {
        match &self.form {
            Form::Small(small) => Ok(small.place(key).is_ok()),
            Form::Tree(tree) => tree.contains(r, key),
        }
    }

    /// The value of a key, read into memory.
    ///
    /// # Errors
    /// `Corrupt`, `Io`; `IsTable` for a nested table.
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
            _ => Err(holds_a_table(0, key)),
        }
    }

    /// Inserts a row, or replaces its value; true if the key existed.
    ///
    /// # Errors
    /// As for [`Tree::insert`].
    pub fn insert<W: PageWrite>(&mut self, w: &mut W, key: &[u8], value: &[u8]) -> Result<bool> {
        match &mut self.form {
            Form::Tree(tree) => tree.insert(w, key, value),
            Form::Small(small) => {
                let there = small.place(key).map(|at| small.entries[at].tag);
                if there.is_ok_and(|there| tag::kind(there) >= tag::NESTED) {
                    return Err(holds_a_table(0, key));
                }
                let stored = Stored::put(w, self.id, key, value)?;
                Ok(self.put_payload(w, key, stored.payload(), Old::Free)? > 0)
            }
        }
    }

    pub(crate) fn put_payload<W: PageWrite>(
        &mut self,
        w: &mut W,
        key: &[u8],
        payload: Payload<'_>,
        old: Old,
    ) -> Result<u64> {
        if let Form::Small(small) = &self.form
            && key.len() > key_bytes_max(w.page_size())
        {
            // A table with a spilled key must have pages.
            self.form = Form::Tree(to_pages(w, self.id, small)?);
        }
        match &mut self.form {
            Form::Tree(tree) => tree.put_payload(w, key, payload, old),
            Form::Small(small) => {
                let before = small.put(SmallEntry {
                    key: key.to_vec(),
                    tag: payload.tag,
                    payload: payload.bytes.to_vec(),
                });
                let rows = u64::from(before.is_some());
                if let (Some(before), Old::Free) = (before, old) {
                    free(w, self.id, &before)?;
                }
                self.grow(w)?;
                Ok(rows)
            }
        }
    }

    /// Inserts a row after all others; false, with nothing changed, if its key is not above the last one.
    ///
    /// # Errors
    /// As for [`Tree::insert`].
    pub fn append<W: PageWrite>(&mut self, w: &mut W, key: &[u8], value: &[u8]) -> Result<bool> {
        let above = match &mut self.form {
            Form::Tree(tree) => {
                return tree.append_near_end(w, &mut Ending::default(), key, value);
            }
            Form::Small(small) => {
                let last = small.entries.last();
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
            if let Form::Tree(tree) = &mut self.form {
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

    /// As [`extend`](Self::extend), for rows that `feed` lends one by one to its callback.
    ///
    /// # Errors
    /// As for [`Tree::append_lent`].
    pub fn extend_lent<W: PageWrite>(
        &mut self,
        w: &mut W,
        feed: impl FnOnce(&mut PutRow<'_>) -> Result<()>,
    ) -> Result<()> {
        match &mut self.form {
            Form::Tree(tree) => tree.append_lent(w, feed).map(drop),
            Form::Small(_) => feed(&mut |key, value| self.insert(w, key, value).map(drop)),
        }
    }

    /// Inserts a row with a value of `len` bytes and lets `fill` write them: see [`Tree::insert_with`].
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
        if let Form::Tree(tree) = &mut self.form {
            return tree.insert_with(w, key, len, fill);
        }
        key::check_len(key)?;
        value::check_len(len as u64)?;
        let mut bytes = vec![0; len];
        fill(&mut bytes);
        self.insert(w, key, &bytes)
    }

    /// Removes a row; true if it existed.
    ///
    /// # Errors
    /// As for [`Tree::remove`].
    pub fn remove<W: PageWrite>(&mut self, w: &mut W, key: &[u8]) -> Result<bool> {
        match &mut self.form {
            Form::Tree(tree) => tree.remove(w, key),
            Form::Small(small) => {
                let Ok(at) = small.place(key) else {
                    return Ok(false);
                };
                let old = small.entries.remove(at);
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
        match &mut self.form {
            Form::Tree(tree) => tree.clear(w),
            Form::Small(small) => {
                for old in std::mem::take(&mut small.entries) {
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

    /// Removes every row from `from` on; returns the number of rows.
    ///
    /// # Errors
    /// As for [`Tree::remove_range`].
    pub fn remove_from<W: PageWrite>(&mut self, w: &mut W, from: &[u8]) -> Result<u64> {
        self.remove_between(w, from, None)
    }

    fn remove_between<W: PageWrite>(
        &mut self,
        w: &mut W,
        from: &[u8],
        to: Option<&[u8]>,
    ) -> Result<u64> {
        match &mut self.form {
            Form::Tree(tree) => match to {
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
            Form::Small(small) => {
                let gone = |entry: &SmallEntry| {
                    entry.key.as_slice() >= from && to.is_none_or(|to| entry.key.as_slice() < to)
                };
                let (removed, kept) = std::mem::take(&mut small.entries)
                    .into_iter()
                    .partition::<Vec<_>, _>(gone);
                small.entries = kept;
                for old in &removed {
                    free(w, self.id, old)?;
                }
                Ok(removed.len() as u64)
            }
        }
    }

    /// Moves an inline table that has become too large to pages at once, so that filling a table takes linear time.
    fn grow<W: PageWrite>(&mut self, w: &mut W) -> Result<()> {
        let Form::Small(small) = &self.form else {
            return Ok(());
        };
        if small.encoded_len() <= small_bytes_max(w.page_size()) {
            return Ok(());
        }
        let tree = to_pages(w, self.id, small)?;
        self.form = Form::Tree(tree);
        Ok(())
    }

    /// Changes the table at the end of a path of keys; `absent` controls the treatment of missing tables on the path.
    /// `None`: a table is missing, and nothing was changed.
    ///
    /// # Errors
    /// `Unsupported` if a key of the path holds a value; `Limit` for too deep a path; errors of `change`. If `change`
    /// returns `Limit` or `IsTable`, its changes up to then are kept.
    pub fn at<W: PageWrite, T>(
        &mut self,
        w: &mut W,
        path: &[Vec<u8>],
        absent: Absent,
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
            None if absent == Absent::Leave => return Ok(None),
            None => {
                key::check_len(key)?;
                Self {
                    form: Form::Small(Small::default()),
                    id: self.id,
                }
            }
        };
        let done = below.at(w, rest, absent, change);
        let is_changed = match &done {
            Ok(Some(_)) => !is_new || absent == Absent::Make || !below.is_unused(),
            // A change of many entries may have inserted some before the error.
            Err(Error::Limit { .. } | Error::IsTable { .. }) => !is_new || !below.is_unused(),
            _ => false,
        };
        if is_changed {
            self.keep_below(w, key, below)?;
        }
        done
    }

    /// Whether it has no entries and its sequence has not begun, like a table that was never created.
    fn is_unused(&self) -> bool {
        let sequence = match &self.form {
            Form::Tree(tree) => tree.sequence,
            Form::Small(small) => small.sequence,
        };
        self.is_empty() && sequence == 0
    }

    /// Stores a nested table as a row.
    pub(crate) fn keep_below<W: PageWrite>(
        &mut self,
        w: &mut W,
        key: &[u8],
        below: Self,
    ) -> Result<()> {
        let (tag, bytes) = below.into_payload(w, key.len())?;
        let payload = Payload { tag, bytes: &bytes };
        self.put_payload(w, key, payload, Old::Keep)?;
        Ok(())
    }

    /// The payload for a nested table's row.
    pub(crate) fn into_payload<W: PageWrite>(
        self,
        w: &mut W,
        key_len: usize,
    ) -> Result<(u32, Vec<u8>)> {
        let small = match self.form {
            Form::Small(small) => small,
            Form::Tree(tree) => match shrunk(w, &tree)? {
                Some(small) => small,
                None => return Ok(root_payload(&tree)),
            },
        };
        let bytes = small.encode();
        if small.entries.is_empty() || fits_row(w.page_size(), key_len, &bytes) {
            return Ok((tag::of(tag::NESTED, bytes.len()), bytes));
        }
        Ok(root_payload(&to_pages(w, self.id, &small)?))
    }

    /// The set of values of a key, from its payload.
    pub(crate) fn of_set(entry: Option<&SmallEntry>, id: u64, page_size: usize) -> Result<Self> {
        match entry {
            Some(entry) if tag::kind(entry.tag) >= tag::NESTED => {
                Self::of_payload(entry.payload(), id, page_size, 0)
            }
            Some(entry) if tag::kind(entry.tag) == tag::REFERENCE => {
                Err(damaged("row of a table", 0, "an extent", "a set of values"))
            }
            one => Ok(Self {
                form: Form::Small(Small {
                    entries: one
                        .map(|entry| SmallEntry {
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

    /// The key of an inline table with exactly one row.
    pub(crate) fn only_key(&self) -> Option<&[u8]> {
        match &self.form {
            Form::Small(small) if small.entries.len() == 1 => Some(&small.entries[0].key),
            _ => None,
        }
    }
}

/// Whether an inline table with these bytes is small enough, by itself and in the row of a key of this length.
pub(crate) fn fits_row(page_size: usize, key_len: usize, small: &[u8]) -> bool {
    let payload = Payload {
        tag: tag::of(tag::NESTED, small.len()),
        bytes: small,
    };
    let key = key::stored_bytes(page_size, key_len);
    let row = slot_bytes(true, page_size) + cell_size(true, key, payload);
    small.len() <= small_bytes_max(page_size) && row <= cell_bytes_max(page_size)
}

/// Maximum bytes of an inline table.
pub(crate) const fn small_bytes_max(page_size: usize) -> usize {
    page_size / SMALL_DIV
}

/// Frees the pages and extents that an entry of an inline table refers to.
fn free<W: PageWrite>(w: &mut W, id: u64, old: &SmallEntry) -> Result<()> {
    Tree::new(id).free_payload(w, old.tag, &old.payload, 0, &mut Freed::default())
}

pub(crate) fn root_payload(tree: &Tree) -> (u32, Vec<u8>) {
    if tree.is_empty() {
        let none = Small {
            sequence: tree.sequence,
            ..Small::default()
        };
        let bytes = none.encode();
        return (tag::of(tag::NESTED, bytes.len()), bytes);
    }
    let bytes = tree.nested_root();
    (tag::of(tag::ROOT, bytes.len()), bytes)
}

pub(crate) fn to_pages<W: PageWrite>(w: &mut W, id: u64, small: &Small) -> Result<Tree> {
    let mut tree = Tree {
        sequence: small.sequence,
        ..Tree::new_inner(id)
    };
    for entry in &small.entries {
        tree.put_payload(w, &entry.key, entry.payload(), Old::Keep)?;
    }
    Ok(tree)
}

/// The rows of a table that has become small enough to be inline; its page is freed.
fn shrunk<W: PageWrite>(w: &mut W, tree: &Tree) -> Result<Option<Small>> {
    if tree.height != 1 {
        return Ok(None);
    }
    let page = w.page(&tree.root)?.to_vec();
    let (_, live) = crate::page::edit::fill(&page, 0, tree.root.addr)?;
    if live > w.page_size() / SMALL_AGAIN_DIV {
        return Ok(None);
    }
    let node = Node::open(&page, 0, tree.root.addr)?;
    if tree.flags & LEADS_ON != 0 && !node.rests()?.is_empty() {
        return Ok(None);
    }
    let mut small = Small {
        sequence: tree.sequence,
        ..Small::default()
    };
    for index in 0..node.count() {
        let cell = node.cell(index)?;
        small.entries.push(SmallEntry {
            key: node.key(w, index)?,
            tag: cell.tag,
            payload: cell.payload.to_vec(),
        });
    }
    w.free_page(&tree.root);
    Ok(Some(small))
}

impl Tree {
    /// The payload of a key in its leaf.
    pub(crate) fn find_payload<R: PageRead>(
        &self,
        r: &R,
        key: &[u8],
    ) -> Result<Option<SmallEntry>> {
        let Some((page, at)) = self.leaf_for(r, key)? else {
            return Ok(None);
        };
        let node = Node::open(&page, 0, at)?;
        let (index, found) = node.find(r, key)?;
        if !found {
            return Ok(None);
        }
        let cell = node.cell(index)?;
        Ok(Some(SmallEntry {
            key: key.to_vec(),
            tag: cell.tag,
            payload: cell.payload.to_vec(),
        }))
    }
}
