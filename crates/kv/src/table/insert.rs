//! Putting rows in: descent with shadowing, in-place edit, split, new root.
//!
//! A descent for writing shadows each page on the way and stores its new address in the parent at
//! once, so the tree is whole after every step. The leaf is then edited in place where there is room;
//! else it is rewritten (a longer prefix, no dead bytes) or split, and the split carried upward.

use crate::nested::table_reader::holds_a_table;
use crate::page::edit::{self, Payload, Placed};
use crate::page::entries::{Bias, Entry, Group, common};
use crate::page::header::Shape;
use crate::page::key::{self, Key, KeyBuf, Rest};
use crate::page::node::{Node, PREFIX_AT, child_bytes, damaged, slot_bytes, tag};
use crate::page::prefetch::slots_ahead;
use crate::table::remove::Freed;
use crate::table::sequential::{self, Likely, likely};
use crate::table::tree::{HEIGHT_MAX, LEADS_ON, Tree, weight};
use crate::value::Stored;
use tidalite_pager::{Counters, Error, PageRead, PageWrite, Ptr, Result};

/// A branch on the way down, owned by the transaction, and the entry taken there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) ptr: Ptr,
    pub(crate) index: usize,
}

/// The way to a leaf, all of it owned by the transaction.
pub(crate) struct Path {
    pub(crate) steps: Vec<Step>,
    pub(crate) leaf: Ptr,
    pub(crate) index: usize,
    pub(crate) found: bool,
    /// The place is behind every row of the table, or what grows there is the last of its rows.
    at_end: bool,
}

impl Path {
    /// The place of the last row, for one that takes its place.
    pub(crate) fn to_last(steps: Vec<Step>, leaf: Ptr, index: usize) -> Self {
        Self {
            steps,
            leaf,
            index,
            found: false,
            at_end: true,
        }
    }
}

/// The way to a key as it was read: nothing on it has been made the transaction's own.
pub(crate) struct Trail {
    /// The pages with the entry taken in each, the leaf last.
    steps: Vec<Step>,
    pub(crate) found: bool,
    /// The key is the last one of the table, or would be.
    pub(crate) last: bool,
}

/// What becomes of what the old payload led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Old {
    /// It is freed: by a removal all of it, by a put the extent of a value. No put takes a nested table's place.
    Free,
    /// They belong to the new payload.
    Keep,
}

/// A copy of a payload that leads to something; of a plain value nothing.
pub(crate) fn leading_on(payload: Payload<'_>) -> Vec<u8> {
    if tag::kind(payload.tag) == tag::INLINE {
        return Vec::new();
    }
    payload.bytes.to_vec()
}

/// A page that became two.
pub(crate) struct Split {
    pub(crate) left_rows: u64,
    pub(crate) separator: KeyBuf,
    pub(crate) right: Ptr,
    pub(crate) right_rows: u64,
}

impl Tree {
    /// Puts a row in, or replaces the value of one; true when the key was there.
    ///
    /// # Errors
    /// `Limit` for a key beyond `KEY_BYTES_MAX` or a value beyond `VALUE_BYTES_MAX`, `IsTable` for a key that holds a nested table: nothing
    /// has changed then. After any other error the transaction must be rolled back.
    ///
    /// # Cost
    /// One page copied a level when first touched in a transaction; a split writes one more.
    pub fn insert<W: PageWrite>(&mut self, w: &mut W, key: &[u8], value: &[u8]) -> Result<bool> {
        let stored = Stored::put(w, self.id, key, value)?;
        let before = self.put_payload(w, key, stored.payload(), Old::Free);
        Ok(stored.unless_refused(w, before)? > 0)
    }

    /// Puts a payload under `key`, whose length was checked. Returns the rows of the payload that was there, 0
    /// for none.
    pub(crate) fn put_payload<W: PageWrite>(
        &mut self,
        w: &mut W,
        key: &[u8],
        payload: Payload<'_>,
        old: Old,
    ) -> Result<u64> {
        Ok(self.put_payload_anywhere(w, key, payload, old)?.0)
    }

    /// As `put_payload`; tells besides whether it went behind every row.
    pub(crate) fn put_payload_anywhere<W: PageWrite>(
        &mut self,
        w: &mut W,
        key: &[u8],
        payload: Payload<'_>,
        old: Old,
    ) -> Result<(u64, bool)> {
        if self.root.is_null() {
            self.root = self.new_page(w, 0)?;
            self.height = 1;
        }
        let path = self.own_path(w, key)?;
        let at_end = path.at_end;
        Ok((self.put_at(w, path, key, payload, old)?, at_end))
    }

    /// As `put_payload`, where the place is known.
    pub(crate) fn put_at<W: PageWrite>(
        &mut self,
        w: &mut W,
        path: Path,
        key: &[u8],
        payload: Payload<'_>,
        old: Old,
    ) -> Result<u64> {
        if tag::kind(payload.tag) != tag::INLINE {
            self.flags |= LEADS_ON;
        }
        let rows = if self.is_multi() { weight(payload) } else { 1 };
        let mut before = 0;
        let rest;
        if path.found {
            let (was, done);
            (was, done, rest) = self.replace(w, &path, key, payload, old)?;
            before = if self.is_multi() { was } else { 1 };
            self.count_rows(w, &path.steps, rows.wrapping_sub(before).cast_signed())?;
            if done {
                return Ok(before);
            }
        } else {
            self.count_rows(w, &path.steps, rows.cast_signed())?;
            self.keys += u64::from(self.is_multi());
            rest = key::spill(w, self.id, key)?;
            if rest.is_some() {
                self.flags |= LEADS_ON;
            }
        }
        let bias = if path.at_end {
            Bias::Ascending
        } else {
            Bias::Balance
        };
        let key = Key::of(key, rest.as_ref(), w.page_size());
        self.put_in(w, path, key, payload, bias)?;
        Ok(before)
    }

    /// Puts an entry in at the path's end: in place, by sharing with a neighbour, by a split.
    pub(crate) fn put_in<W: PageWrite>(
        &mut self,
        w: &mut W,
        path: Path,
        key: Key<'_>,
        payload: Payload<'_>,
        bias: Bias,
    ) -> Result<()> {
        let (leaf, index) = (path.leaf, path.index);
        let page = w.page_mut(&leaf)?;
        if edit::try_insert(page, 0, leaf.addr, index, key, payload)? == Placed::Yes {
            return Ok(());
        }
        let shape = Shape::of(page, 0, leaf.addr)?;
        let shared = &page[PREFIX_AT..shape.heads];
        let suffix = key.inline.strip_prefix(shared).unwrap_or(key.inline);
        let suffix = (suffix.len(), key.rest.len());
        let size = edit::cell_size(true, suffix, payload) + slot_bytes(true, page.len());
        let overfull = shape.slots_end + size > shape.heap + shape.dead;
        if overfull && bias == Bias::Balance {
            let likely = likely(w.own_page(&leaf)?, &leaf, index)?;
            let placed = likely == Likely::Yes && self.put_ascending(w, &path, key, payload)?;
            if placed || self.share(w, &path, key, payload, likely)? {
                return Ok(());
            }
        }
        let split = self.place(w, &leaf, 0, index, key, payload, bias)?;
        self.carry(w, path.steps, leaf, 1, split, bias)
    }

    /// Descends to where `key` is or would be, making every page on the way the transaction's own.
    pub(crate) fn own_path<W: PageWrite>(&mut self, w: &mut W, key: &[u8]) -> Result<Path> {
        let mut steps = Vec::with_capacity(usize::from(self.height));
        let mut at_end = true;
        let mut ptr = w.shadow(&self.root)?;
        self.root = ptr;
        for level in (1..self.height).rev() {
            let node = Node::open(w.own_page(&ptr)?, level, ptr.addr)?;
            let found = match node.find_plain_child(key)? {
                Some(index) => Some((index, node.child(index)?.0, index + 1 == node.count())),
                None => None,
            };
            let (index, child, last) = match found {
                Some(found) => found,
                None => spilled_child(w, &ptr, level, key)?,
            };
            at_end &= last;
            let own = w.shadow(&child)?;
            if own != child {
                edit::set_child_ptr(w.page_mut(&ptr)?, level, ptr.addr, index, &own)?;
            }
            steps.push(Step { ptr, index });
            ptr = own;
        }
        let page = w.own_page(&ptr)?;
        let (index, found) = if edit::fill(page, 0, ptr.addr)?.0 == 0 {
            (0, false) // the first leaf of an empty table
        } else {
            let node = Node::open(page, 0, ptr.addr)?;
            let (found, count) = (node.find_plain(key)?, node.count());
            let (index, found) = match found {
                Some(found) => found,
                None => spilled_place(w, &ptr, key)?,
            };
            at_end &= index == count;
            (index, found)
        };
        Ok(Path {
            steps,
            leaf: ptr,
            index,
            found,
            at_end,
        })
    }

    /// The way to where a key is or would be, as it is read, and what `look` makes of the leaf and the place in it; `None` in an empty table.
    pub(crate) fn trail<R: PageRead, T>(
        &self,
        r: &R,
        key: &[u8],
        look: impl FnOnce(&Node<'_>, usize, bool) -> Result<T>,
    ) -> Result<Option<(Trail, T)>> {
        if self.root.is_null() {
            return Ok(None);
        }
        let mut last = true;
        let mut way = Vec::with_capacity(usize::from(self.height));
        let mut ptr = self.root;
        for level in (1..self.height).rev() {
            let page = r.page(&ptr)?;
            let node = Node::open(&page, level, ptr.addr)?;
            let index = node.find_child(r, key)?;
            last &= index + 1 == node.count();
            way.push(Step { ptr, index });
            let (child, rows) = node.child(index)?;
            ptr = child;
            r.prefetch(&ptr, slots_ahead(level, rows));
        }
        let page = r.page(&ptr)?;
        let node = Node::open(&page, 0, ptr.addr)?;
        let (index, found) = node.find(r, key)?;
        last &= index + usize::from(found) == node.count();
        way.push(Step { ptr, index });
        let looked = look(&node, index, found)?;
        let trail = Trail {
            steps: way,
            found,
            last,
        };
        Ok(Some((trail, looked)))
    }

    /// Makes every page on a way the transaction's own: found once, the place need not be looked for again. `at_end`: what is put in there
    /// goes behind all that the table holds.
    pub(crate) fn own_trail<W: PageWrite>(
        &mut self,
        w: &mut W,
        trail: Trail,
        at_end: bool,
    ) -> Result<Path> {
        let mut way = trail.steps;
        let mut above: Option<Step> = None;
        for (step, level) in way.iter_mut().zip((1..=self.height).rev()) {
            let own = w.shadow(&step.ptr)?;
            match above {
                None => self.root = own,
                Some(parent) if own != step.ptr => {
                    let page = w.page_mut(&parent.ptr)?;
                    edit::set_child_ptr(page, level, parent.ptr.addr, parent.index, &own)?;
                }
                Some(_) => {}
            }
            step.ptr = own;
            above = Some(*step);
        }
        let Some(leaf) = way.pop() else {
            unreachable!("a way ends with a leaf")
        };
        Ok(Path {
            steps: way,
            leaf: leaf.ptr,
            index: leaf.index,
            found: trail.found,
            at_end,
        })
    }

    /// Changes the rows counted along a path.
    pub(crate) fn count_rows<W: PageWrite>(
        &mut self,
        w: &mut W,
        steps: &[Step],
        change: i64,
    ) -> Result<()> {
        if change == 0 {
            return Ok(());
        }
        self.rows = self.rows.wrapping_add_signed(change);
        for (level, step) in (1..self.height).rev().zip(steps) {
            let page = w.page_mut(&step.ptr)?;
            edit::change_rows(page, level, step.ptr.addr, step.index, change)?;
        }
        Ok(())
    }

    /// Overwrites the payload at the path's end when the new one fits its place; else takes the row out. Tells the
    /// rows of the old one, whether the new one is there, and the rest of its key, which stays. `IsTable`, and nothing has changed, where
    /// the payload of a nested table would be lost.
    fn replace<W: PageWrite>(
        &self,
        w: &mut W,
        path: &Path,
        key: &[u8],
        payload: Payload<'_>,
        old: Old,
    ) -> Result<(u64, bool, Option<Rest>)> {
        let (leaf, at) = (&path.leaf, path.leaf.addr);
        let page = w.page_mut(leaf)?;
        let cell = Node::open(page, 0, at)?.cell(path.index)?;
        if old == Old::Free && tag::kind(cell.tag) >= tag::NESTED {
            return Err(holds_a_table(at, key));
        }
        let rows = if self.is_multi() {
            weight(cell.payload())
        } else {
            1
        };
        let (tag, bytes) = (cell.tag, leading_on(cell.payload()));
        let rest = cell.rest.first_chunk().copied();
        let done = edit::overwrite(page, at, path.index, payload)?;
        if !done {
            edit::remove(page, 0, at, path.index)?;
        }
        if old == Old::Free {
            self.free_payload(w, tag, &bytes, at, &mut Freed::default())?;
        }
        Ok((rows, done, rest))
    }

    /// Puts an entry at `index` of an owned page: in place, by rewriting the page, or by a split.
    #[expect(clippy::too_many_arguments, reason = "a place, an entry and a hint")]
    pub(crate) fn place<W: PageWrite>(
        &self,
        w: &mut W,
        ptr: &Ptr,
        level: u8,
        index: usize,
        key: Key<'_>,
        payload: Payload<'_>,
        bias: Bias,
    ) -> Result<Option<Split>> {
        let page = w.page_mut(ptr)?;
        if edit::try_insert(page, level, ptr.addr, index, key, payload)? == Placed::Yes {
            return Ok(None);
        }
        let copy = page.to_vec();
        let mut group = self.group(level == 0, copy.len());
        if edit::fill(&copy, level, ptr.addr)?.0 > 0 {
            let node = Node::open(&copy, level, ptr.addr)?;
            group.take_in(&node, Key::plain(&[]))?;
        }
        group.entries.insert(index, Entry::new(key, payload));
        let count = group.entries.len();
        if group.page_bytes(0..count) <= copy.len() {
            let page = w.page_mut(ptr)?;
            group.write(0..count, level, page);
            sequential::keep_mark(page, &copy);
            return Ok(None);
        }
        self.split(w, ptr, None, level, &group, bias).map(Some)
    }

    /// Spreads a group over two owned pages; the right one is made when there is none yet.
    pub(crate) fn split<W: PageWrite>(
        &self,
        w: &mut W,
        left: &Ptr,
        right: Option<Ptr>,
        level: u8,
        group: &Group<'_>,
        bias: Bias,
    ) -> Result<Split> {
        let count = group.entries.len();
        let Some(at) = group.split_point(w.page_size(), bias) else {
            return Err(damaged(
                "table page",
                left.addr,
                format!("{count} entries that two pages cannot hold"),
                "entries of at most half a page",
            ));
        };
        self.split_at(w, left, right, level, group, at)
    }

    /// The same where it is known that both pages hold their part; the right one begins with entry `at`.
    pub(crate) fn split_at<W: PageWrite>(
        &self,
        w: &mut W,
        left: &Ptr,
        right: Option<Ptr>,
        level: u8,
        group: &Group<'_>,
        at: usize,
    ) -> Result<Split> {
        let count = group.entries.len();
        let right = match right {
            Some(right) => right,
            None => {
                Counters::bump(&w.counters().pages_split);
                self.new_page(w, level)?
            }
        };
        let separator = self.separator(w, group, at)?;
        group.write(0..at, level, w.page_mut(left)?);
        group.write(at..count, level, w.page_mut(&right)?);
        Ok(Split {
            left_rows: group.rows(0..at),
            separator,
            right,
            right_rows: group.rows(at..count),
        })
    }

    /// The shortest key between two entries; one that must be too long for a page gets an extent.
    pub(crate) fn separator<W: PageWrite>(
        &self,
        w: &mut W,
        group: &Group<'_>,
        at: usize,
    ) -> Result<KeyBuf> {
        if let Some(separator) = group.separator(at) {
            return Ok(separator);
        }
        let (before, mut key) = (group.whole_key(w, at - 1)?, group.whole_key(w, at)?);
        key.truncate(common(&before, &key) + 1);
        KeyBuf::store(w, self.id, key)
    }

    /// Carries a split of `page`, which lies below the last of `steps`, upward; `level` is that of the
    /// step.
    pub(crate) fn carry<W: PageWrite>(
        &mut self,
        w: &mut W,
        mut steps: Vec<Step>,
        mut page: Ptr,
        mut level: u8,
        mut split: Option<Split>,
        bias: Bias,
    ) -> Result<()> {
        while let Some(done) = split {
            let Some(parent) = steps.pop() else {
                return self.grow(w, &page, level, &done);
            };
            let bytes = w.page_mut(&parent.ptr)?;
            let at = parent.ptr.addr;
            edit::set_child(bytes, level, at, parent.index, &page, done.left_rows)?;
            split = self.place_child(w, &parent, level, &done, bias)?;
            page = parent.ptr;
            level += 1;
        }
        Ok(())
    }

    /// Puts the right half of a split behind its left half.
    pub(crate) fn place_child<W: PageWrite>(
        &self,
        w: &mut W,
        parent: &Step,
        level: u8,
        split: &Split,
        bias: Bias,
    ) -> Result<Option<Split>> {
        let child = child_bytes(&split.right, split.right_rows);
        let payload = Payload {
            tag: 0,
            bytes: &child,
        };
        let index = parent.index + 1;
        self.place(
            w,
            &parent.ptr,
            level,
            index,
            split.separator.key(),
            payload,
            bias,
        )
    }

    /// A new root over the two halves of the old one.
    pub(crate) fn grow<W: PageWrite>(
        &mut self,
        w: &mut W,
        left: &Ptr,
        level: u8,
        split: &Split,
    ) -> Result<()> {
        if self.height >= HEIGHT_MAX {
            return Err(Error::Limit {
                what: "levels of a table",
                found: u64::from(self.height) + 1,
                limit: u64::from(HEIGHT_MAX),
            });
        }
        let root = self.new_page(w, level)?;
        let child = child_bytes(left, split.left_rows);
        let payload = Payload {
            tag: 0,
            bytes: &child,
        };
        let first = self.place(w, &root, level, 0, Key::plain(&[]), payload, Bias::Balance)?;
        let step = Step {
            ptr: root,
            index: 0,
        };
        let second = self.place_child(w, &step, level, split, Bias::Balance)?;
        if first.is_some() || second.is_some() {
            let found = format!("a separator of {} bytes", split.separator.inline.len());
            return Err(damaged("table page", left.addr, found, "a shorter one"));
        }
        self.root = root;
        self.height += 1;
        Ok(())
    }
}

/// The entry of an owned branch that leads to `key`, its child, and whether it is the last: where spilled keys are in
/// the way.
#[cold]
fn spilled_child<W: PageWrite>(
    w: &W,
    ptr: &Ptr,
    level: u8,
    key: &[u8],
) -> Result<(usize, Ptr, bool)> {
    let page = w.page(ptr)?;
    let node = Node::open(&page, level, ptr.addr)?;
    let index = node.find_child(w, key)?;
    Ok((index, node.child(index)?.0, index + 1 == node.count()))
}

/// The place of `key` in an owned leaf where spilled keys are in the way.
#[cold]
fn spilled_place<W: PageWrite>(w: &W, ptr: &Ptr, key: &[u8]) -> Result<(usize, bool)> {
    let page = w.page(ptr)?;
    Node::open(&page, 0, ptr.addr)?.find(w, key)
}
