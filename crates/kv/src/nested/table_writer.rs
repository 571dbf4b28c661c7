//! A table that is being changed, wherever it lies: in pages of its own, or small inside its parent's leaf.
//!
//! ```text
//! Work::Tree    pages of its own; its root is a row of its parent, or a root of the catalog
//! Work::Small   entries in memory, written back into the parent's row
//! ```
//!
//! A small table moves to pages when it takes more than a quarter of a page (or when it would make its row too
//! large), and back when it takes less than an eighth: so tables of a few rows cost a few bytes each, and one at the border does
//! not move with every change.

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

/// A small table takes at most one part in this many of a page.
const SMALL_DIV: usize = 4;

/// A table in one leaf becomes small again when it takes at most one part in this many of a page.
const SMALL_AGAIN_DIV: usize = 8;

/// What a change does where a table on its way is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// Nothing is changed.
    Leave,
    /// It is made if it gets an entry, or numbers of its sequence are taken: a change that is refused, or has nothing to store, makes none.
    MakeToFill,
    /// It is made, empty if nothing is put into it.
    Make,
}

/// A table while it is changed.
#[derive(Clone, Debug)]
pub struct Work {
    pub(crate) form: Form,
    /// The owner of its pages.
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

    /// The table's root, when it has pages of its own.
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

    /// Rows.
    #[must_use]
    pub fn len(&self) -> u64 {
        match &self.form {
            Form::Tree(tree) => tree.len(),
            Form::Small(small) => small.entries.len() as u64,
        }
    }

    /// True without rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes `count` numbers of the table's sequence and returns the first; `None` when they are used up.
    pub fn take_sequence(&mut self, count: u64) -> Option<u64> {
        let sequence = match &mut self.form {
            Form::Tree(tree) => return tree.take_sequence(count),
            Form::Small(small) => &mut small.sequence,
        };
        let first = *sequence;
        *sequence = first.checked_add(count)?;
        Some(first)
    }

    /// What is under a key.
    pub(crate) fn find<R: PageRead>(&self, r: &R, key: &[u8]) -> Result<Option<SmallEntry>> {
        match &self.form {
            Form::Small(small) => Ok(small.place(key).ok().map(|at| small.entries[at].clone())),
            Form::Tree(tree) => tree.find_payload(r, key),
        }
    }

    /// Whether `key` is there.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn contains<R: PageRead>(&self, r: &R, key: &[u8]) -> Result<bool> {
        match &self.form {
            Form::Small(small) => Ok(small.place(key).is_ok()),
            Form::Tree(tree) => tree.contains(r, key),
        }
    }

    /// The value of a key, in memory.
    ///
    /// # Errors
    /// `Corrupt`, `Io`; `IsTable` where a nested table is.
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

    /// Puts a row in, or replaces the value of one; true when the key was there.
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
            // A spilled key lies in pages.
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

    /// Puts a row in behind all others; false, and nothing changed, when its key is not above the last one.
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

    /// Puts many rows in; returns how many keys were new. From the first on that finds the table in pages of its own
    /// they are laid out as by [`Tree::append`].
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

    /// As [`extend`](Self::extend), of rows that `feed` lends one after the other to what it is given.
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

    /// Puts a row of `len` bytes in and lets `fill` write them: see [`Tree::insert_with`].
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

    /// Takes a row out; true when it was there.
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

    /// Takes everything out.
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

    /// Takes out every row with `from <= key < to`; returns how many.
    ///
    /// # Errors
    /// As for [`Tree::remove_range`].
    pub fn remove_range<W: PageWrite>(&mut self, w: &mut W, from: &[u8], to: &[u8]) -> Result<u64> {
        self.remove_between(w, from, Some(to))
    }

    /// Takes out every row from `from` on; returns how many.
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

    /// A small table that has become large moves to pages at once, so that filling one in a row stays linear.
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

    /// Changes the table at the end of a path of keys; `absent` says what becomes of tables on the way that are not there. `None`: one of
    /// them is not there, and nothing was changed.
    ///
    /// # Errors
    /// `Unsupported` when a key on the way holds a value; `Limit` for too deep a path; what `change` returns. After
    /// a `Limit` or `IsTable` from `change` what it did before is kept.
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
            // A change of many entries may have put some in before one was refused.
            Err(Error::Limit { .. } | Error::IsTable { .. }) => !is_new || !below.is_unused(),
            _ => false,
        };
        if is_changed {
            self.keep_below(w, key, below)?;
        }
        done
    }

    /// Whether it has no entries, nor had its sequence begun: as a table that was never made.
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

    /// The row of a nested table.
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

    /// The only key of a small table that has one row without a value.
    pub(crate) fn only_key(&self) -> Option<&[u8]> {
        match &self.form {
            Form::Small(small) if small.entries.len() == 1 => Some(&small.entries[0].key),
            _ => None,
        }
    }
}

/// Whether a small table of these bytes may be, and lie in the row of a key of this length.
pub(crate) fn fits_row(page_size: usize, key_len: usize, small: &[u8]) -> bool {
    let payload = Payload {
        tag: tag::of(tag::NESTED, small.len()),
        bytes: small,
    };
    let key = key::stored_bytes(page_size, key_len);
    let row = slot_bytes(true, page_size) + cell_size(true, key, payload);
    small.len() <= small_bytes_max(page_size) && row <= cell_bytes_max(page_size)
}

/// Bytes of a small table at most.
pub(crate) const fn small_bytes_max(page_size: usize) -> usize {
    page_size / SMALL_DIV
}

/// Frees what an entry of a small table leads to.
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

/// The rows of a table that is small again; its page is freed.
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
    /// What a leaf holds under a key.
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
