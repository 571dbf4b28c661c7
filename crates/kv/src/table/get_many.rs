//! Looks up many keys at once.

use crate::error::corrupt_by_table;
use crate::page::layout::tag;
use crate::page::node::Node;
use crate::page::prefetch::slots_ahead;
use crate::table::tree::Tree;
use crate::value::{self, Value};
use std::ops::Range;
use tidalite_pager::{Error, PageRead, PageRef, Result};

/// Number of keys whose descents are interleaved, so that their waits for memory overlap.
const SIDE_BY_SIDE: usize = 16;

/// A row that a lookup found, in its leaf.
pub(crate) struct FoundRow<'r> {
    pub(crate) page: PageRef<'r>,
    pub(crate) tag: u32,
    /// Range of the row's payload in the page.
    pub(crate) range: Range<usize>,
    pub(crate) at: u64,
}

impl Tree {
    /// The row of a key; `None` if the key does not exist.
    #[inline]
    pub(crate) fn find_row<'r, R: PageRead>(
        &self,
        r: &'r R,
        key: &[u8],
    ) -> Result<Option<FoundRow<'r>>> {
        let Some((page, at)) = self.leaf_for(r, key)? else {
            return Ok(None);
        };
        let node = Node::open(&page, 0, at)?;
        let (index, found) = node.find(r, key)?;
        if !found {
            return Ok(None);
        }
        let cell = node.cell(index)?;
        let (tag, range) = (cell.tag, cell.range());
        Ok(Some(FoundRow {
            page,
            tag,
            range,
            at,
        }))
    }

    /// Passes the values of many keys to `found`, in the order of the keys, each with the index of its key. Sorted keys
    /// are best: neighbours then share pages.
    ///
    /// # Errors
    /// `Corrupt`, `Io`; errors of `found`.
    ///
    /// # Cost
    /// One page per level and key, but the waits for memory of sixteen keys at a time overlap. The waits for the disk
    /// overlap, too, if the kernel reads each page alone (`PageRead::reads_single_pages`).
    pub fn get_many<'r, R: PageRead, K: AsRef<[u8]>>(
        &self,
        r: &'r R,
        keys: &[K],
        found: impl FnMut(usize, Option<Value<'r>>) -> Result<()>,
    ) -> Result<()> {
        self.get_many_else(r, keys, found, corrupt_by_table)
    }

    /// As `get_many`; `nested` creates the error for a key with a nested table, from the leaf's address and the key.
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

    /// The rows of many keys, in the order of the keys; `None` for each key that does not exist.
    pub(crate) fn find_many<'r, R: PageRead, K: AsRef<[u8]>>(
        &self,
        r: &'r R,
        keys: &[K],
        mut found: impl FnMut(usize, Option<FoundRow<'r>>) -> Result<()>,
    ) -> Result<()> {
        if self.root.is_null() {
            return (0..keys.len()).try_for_each(|place| found(place, None));
        }
        let alone = r.reads_single_pages();
        for (chunk, keys) in keys.chunks(SIDE_BY_SIDE).enumerate() {
            let mut at = [self.root; SIDE_BY_SIDE];
            debug_assert!(keys.len() <= SIDE_BY_SIDE, "a key for each descent");
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
                    node.prefetch_cell(place.0);
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
                let (tag, range) = (cell.tag, cell.range());
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
}
