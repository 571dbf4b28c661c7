//! Operations on many keys at once, and on places instead of keys.

use crate::nested::table_reader::Sub;
use crate::page::key;
use crate::page::node::{Node, tag};
use crate::page::prefetch::slots_ahead;
use crate::sets::values::cuts;
use crate::table::tree::Tree;
use crate::value::{self, Value};
use std::ops::Range;
use tidalite_pager::{Error, PageRead, PageRef, PageWrite, Result};

/// Keys that go down the tree side by side: as many waits for memory overlap.
const SIDE_BY_SIDE: usize = 16;

/// A row of a leaf, where it lies.
pub(crate) struct FoundRow<'r> {
    pub(crate) page: PageRef<'r>,
    pub(crate) tag: u32,
    /// Of its payload, in the page.
    pub(crate) range: Range<usize>,
    /// The address of the page.
    pub(crate) at: u64,
}

impl Tree {
    /// The values of many keys, in their order, given to `found` with the place of the key. Sorted keys are best:
    /// neighbours then share pages.
    ///
    /// # Errors
    /// `Corrupt`, `Io`; what `found` returns.
    ///
    /// # Cost
    /// One page a level and key, but the waits for memory of sixteen keys at a time overlap, and those for the disk where pages are read
    /// alone (`PageRead::reads_alone`).
    pub fn get_many<'r, R: PageRead, K: AsRef<[u8]>>(
        &self,
        r: &'r R,
        keys: &[K],
        found: impl FnMut(usize, Option<Value<'r>>) -> Result<()>,
    ) -> Result<()> {
        self.get_many_else(r, keys, found, value::is_a_table)
    }

    /// As `get_many`; `nested` is what is wrong where a nested table is, in the leaf at this address.
    pub(crate) fn get_many_else<'r, R: PageRead, K: AsRef<[u8]>>(
        &self,
        r: &'r R,
        keys: &[K],
        mut found: impl FnMut(usize, Option<Value<'r>>) -> Result<()>,
        nested: fn(u64, &[u8]) -> Error,
    ) -> Result<()> {
        self.find_many(r, keys, |place, row| {
            let Some(FoundRow {
                page,
                tag,
                range,
                at,
            }) = row
            else {
                return found(place, None);
            };
            let value = if tag::kind(tag) == tag::INLINE {
                Value::inline(page, range)
            } else {
                match value::reference(tag, &page[range], r.page_size(), at)? {
                    Some(reference) => Value::referenced(r, reference),
                    None => return Err(nested(at, keys[place].as_ref())),
                }
            };
            found(place, Some(value))
        })
    }

    /// The rows of many keys, in their order.
    pub(crate) fn find_many<'r, R: PageRead, K: AsRef<[u8]>>(
        &self,
        r: &'r R,
        keys: &[K],
        mut found: impl FnMut(usize, Option<FoundRow<'r>>) -> Result<()>,
    ) -> Result<()> {
        if self.root.is_null() {
            return (0..keys.len()).try_for_each(|place| found(place, None));
        }
        let alone = r.reads_alone();
        for (chunk, keys) in keys.chunks(SIDE_BY_SIDE).enumerate() {
            let mut at = [self.root; SIDE_BY_SIDE];
            for level in (1..self.height).rev() {
                for (ptr, key) in at.iter_mut().zip(keys) {
                    let page = r.page(ptr)?;
                    let node = Node::open(&page, level, ptr.addr)?;
                    let (child, rows) = node.child(node.find_child(r, key.as_ref())?)?;
                    *ptr = child;
                    r.prefetch(ptr, slots_ahead(level, rows));
                    if alone {
                        r.read_ahead(ptr.addr, u64::from(ptr.len));
                    }
                }
            }
            let mut places = [(0, false); SIDE_BY_SIDE];
            for ((place, ptr), key) in places.iter_mut().zip(&at).zip(keys) {
                let page = r.page(ptr)?;
                let node = Node::open(&page, 0, ptr.addr)?;
                *place = node.find(r, key.as_ref())?;
                if place.1 {
                    node.ask_for(place.0);
                }
            }
            for (index, (ptr, (entry, there))) in at.iter().zip(places).take(keys.len()).enumerate()
            {
                let place = chunk * SIDE_BY_SIDE + index;
                if !there {
                    found(place, None)?;
                    continue;
                }
                let page = r.page(ptr)?;
                let cell = Node::open(&page, 0, ptr.addr)?.cell(entry)?;
                let (tag, range) = (
                    cell.tag,
                    cell.payload_at..cell.payload_at + cell.payload.len(),
                );
                let at = ptr.addr;
                found(
                    place,
                    Some(FoundRow {
                        page,
                        tag,
                        range,
                        at,
                    }),
                )?;
            }
        }
        Ok(())
    }

    /// Keys that cut the table into `parts` of equal size, within one row: one less than parts, fewer where
    /// there are not so many rows.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    ///
    /// # Cost
    /// One descent a key.
    pub fn split_keys<R: PageRead>(&self, r: &R, parts: usize) -> Result<Vec<Vec<u8>>> {
        self.split_range(r, (0, self.rows), parts)
    }

    /// As `split_keys`, for the rows from one rank up to another.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn split_range<R: PageRead>(
        &self,
        r: &R,
        (from, to): (u64, u64),
        parts: usize,
    ) -> Result<Vec<Vec<u8>>> {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        let mut cursor = self.cursor(r);
        for rank in cuts(from, to.min(self.rows), parts) {
            if cursor.select(rank)?
                && keys
                    .last()
                    .is_none_or(|last| last.as_slice() < cursor.key())
            {
                keys.push(cursor.key().to_vec());
            }
        }
        Ok(keys)
    }

    /// Puts a row of `len` bytes in and lets `fill` write them where they will lie (a large value: in memory first).
    /// They are zeros before. True when the key was there.
    ///
    /// # Errors
    /// As for `insert`.
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
        if len > w.page_size() / 4 {
            fill(&mut bytes);
            return self.insert(w, key, &bytes);
        }
        let was = self.insert(w, key, &bytes)?;
        let path = self.own_path(w, key)?;
        let page = w.page_mut(&path.leaf)?;
        let cell = Node::open(page, 0, path.leaf.addr)?.cell(path.index)?;
        let (from, kind) = (cell.payload_at, tag::kind(cell.tag));
        if kind == tag::INLINE {
            fill(&mut page[from..from + len]);
        } else {
            fill(&mut bytes);
            self.insert(w, key, &bytes)?;
        }
        Ok(was)
    }

    /// Whether the leaf that holds `key`, or would, was changed by the running transaction.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn is_dirty<W: PageWrite>(&self, w: &W, key: &[u8]) -> Result<bool> {
        let mut ptr = self.root;
        for level in (1..self.height).rev() {
            if ptr.birth != w.txn() {
                return Ok(false);
            }
            let page = w.page(&ptr)?;
            let node = Node::open(&page, level, ptr.addr)?;
            ptr = node.child(node.find_child(w, key)?)?.0;
        }
        Ok(!ptr.is_null() && ptr.birth == w.txn())
    }

    /// The same of a key of the table at the end of a path of keys. A small table lies in a leaf of one above it; of one that
    /// is not there it is asked where it would begin.
    ///
    /// # Errors
    /// `Corrupt`, `Io`; `Unsupported` where a key on the way holds a value.
    pub fn is_dirty_at<W: PageWrite>(&self, w: &W, path: &[Vec<u8>], key: &[u8]) -> Result<bool> {
        let mut sub = Sub::of(*self);
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
