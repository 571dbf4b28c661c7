//! Descends to the leaf of one key: first through pages that the reader lends without a check, because they are already
//! verified; after the first other page, page by page.

use crate::error::corrupt_by_table;
use crate::page::layout::tag;
use crate::page::node::Node;
use crate::page::point_get::{Row, child_towards, row_of};
use crate::page::prefetch::{HEADS_AHEAD_BYTES, prefetch_slots};
use crate::table::tree::Tree;
use crate::value::{self, Value};
use tidalite_pager::PageWrite;
use tidalite_pager::{Error, Kind, PageRead, PageRef, Ptr, Result};

impl Tree {
    /// The value of `key`; `None` if the key does not exist.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    ///
    /// # Cost
    /// One page per level.
    #[inline]
    pub fn get<'r, R: PageRead>(&self, r: &'r R, key: &[u8]) -> Result<Option<Value<'r>>> {
        self.get_else(r, key, corrupt_by_table)
    }

    /// As `get`; `nested` creates the error for a key with a nested table, from the leaf's address and the key.
    #[inline]
    pub(crate) fn get_else<'r, R: PageRead>(
        &self,
        r: &'r R,
        key: &[u8],
        nested: fn(u64, &[u8]) -> Error,
    ) -> Result<Option<Value<'r>>> {
        let Some((leaf, ahead)) = self.leaf_towards(r, key)? else {
            return Ok(None);
        };
        Self::value_in(r, (&leaf, ahead), key, nested)
    }

    /// The value of `key` in the leaf that would hold it; `None` if the key does not exist.
    #[inline(always)]
    pub(crate) fn value_in<'r, R: PageRead>(
        r: &'r R,
        (leaf, ahead): (&Ptr, usize),
        key: &[u8],
        nested: fn(u64, &[u8]) -> Error,
    ) -> Result<Option<Value<'r>>> {
        let lent = lent_page(r, leaf, ahead);
        if let Some(page) = lent {
            match row_of(page, key) {
                Row::There(tag, range) if tag::kind(tag) == tag::INLINE => {
                    return Ok(Some(Value::inline(PageRef::Borrowed(page), range)));
                }
                Row::NotThere => return Ok(None),
                Row::There(..) | Row::Unclear => {}
            }
        }
        get_from(r, (leaf, lent), key, nested)
    }

    /// The value of the last row whose key is not greater than `key` and not less than `least`; `None` if there is
    /// none.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    ///
    /// # Cost
    /// One page per level; more if no row of the leaf that would hold `key` is less. For callers that keep sorted
    /// entries in values: if the value is in an extent, prefetches the part of it where `key` is expected, assuming
    /// that keys are spread evenly between the row and the next row.
    pub fn floor<'r, R: PageRead>(
        &self,
        r: &'r R,
        key: &[u8],
        least: &[u8],
    ) -> Result<Option<Value<'r>>> {
        let Some((leaf, ahead)) = self.leaf_towards(r, key)? else {
            return Ok(None);
        };
        let page = page_of(r, (&leaf, lent_page(r, &leaf, ahead)))?;
        let node = Node::open(&page, 0, leaf.addr)?;
        let (index, found) = node.find(r, key)?;
        let Some(index) = (index + usize::from(found)).checked_sub(1) else {
            return self.floor_before(r, key, least);
        };
        let cell = node.cell(index)?;
        if !cell.rest.is_empty() {
            return self.floor_before(r, key, least);
        }
        let mut own = node.prefix().iter().chain(cell.suffix);
        if !least.is_empty() && own.by_ref().lt(least) {
            return Ok(None);
        }
        let range = cell.range();
        if tag::kind(cell.tag) == tag::INLINE {
            return Ok(Some(Value::inline(page, range)));
        }
        match value::reference(cell.tag, cell.payload, r.page_size(), leaf.addr)? {
            Some(reference) => {
                reference.prefetch(r, node.share(index, key));
                Ok(Some(Value::referenced(r, reference)))
            }
            None => Err(corrupt_by_table(leaf.addr, key)),
        }
    }

    /// As `floor`, with a cursor, for the case that the row is not in the leaf that would hold `key`, or has a long
    /// key.
    #[cold]
    fn floor_before<'r, R: PageRead>(
        &self,
        r: &'r R,
        key: &[u8],
        least: &[u8],
    ) -> Result<Option<Value<'r>>> {
        let mut cursor = self.cursor(r);
        match cursor.seek_le(key)? && cursor.key() >= least {
            true => cursor.value().map(Some),
            false => Ok(None),
        }
    }

    /// True if `key` exists.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn contains<R: PageRead>(&self, r: &R, key: &[u8]) -> Result<bool> {
        match self.leaf_for(r, key)? {
            Some((page, at)) => Ok(Node::open(&page, 0, at)?.find(r, key)?.1),
            None => Ok(false),
        }
    }

    /// The leaf that would hold `key`, and its address; `None` for an empty table.
    #[inline]
    pub(crate) fn leaf_for<'r, R: PageRead>(
        &self,
        r: &'r R,
        key: &[u8],
    ) -> Result<Option<(PageRef<'r>, u64)>> {
        let Some((leaf, ahead)) = self.leaf_towards(r, key)? else {
            return Ok(None);
        };
        r.prefetch(&leaf, ahead);
        Ok(Some((r.page(&leaf)?, leaf.addr)))
    }

    /// The pointer to the leaf that would hold `key`, and the number of bytes to prefetch of that leaf.
    #[inline(always)]
    fn leaf_towards<R: PageRead>(&self, r: &R, key: &[u8]) -> Result<Option<(Ptr, usize)>> {
        if self.root.is_null() {
            return Ok(None);
        }
        let (mut ptr, mut ahead) = (self.root, HEADS_AHEAD_BYTES);
        for level in (1..self.height).rev() {
            let lent = lent_page(r, &ptr, ahead);
            (ptr, ahead) = match lent.and_then(|page| child_towards(page, level, key)) {
                Some(child) => child,
                None => (child_from(r, (&ptr, lent), level, key)?, HEADS_AHEAD_BYTES),
            };
        }
        debug_assert!(ptr.kind == Kind::KvLeaf, "the descent ends at a leaf");
        Ok(Some((ptr, ahead)))
    }

    /// True if the running transaction has changed the leaf that holds or would hold `key`.
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
}

/// Borrows a page that is already verified, and prefetches the bytes that a search reads first.
#[inline(always)]
fn lent_page<'r, R: PageRead>(r: &'r R, ptr: &Ptr, ahead: usize) -> Option<&'r [u8]> {
    let page = r.lent_page(ptr)?;
    prefetch_slots(page, ahead);
    Some(page)
}

/// A page's pointer, and its bytes if they were lent.
type Lent<'r, 'p> = (&'p Ptr, Option<&'r [u8]>);

/// The page's lent bytes if there are any; otherwise reads the page.
#[inline]
fn page_of<'r, R: PageRead>(r: &'r R, (ptr, lent): Lent<'r, '_>) -> Result<PageRef<'r>> {
    lent.map_or_else(|| r.page(ptr), |page| Ok(PageRef::Borrowed(page)))
}

/// As `child_towards`, which handles only the most common pages and keys, for any page and key.
#[inline(never)]
fn child_from<'r, R: PageRead>(
    r: &'r R,
    branch: Lent<'r, '_>,
    level: u8,
    key: &[u8],
) -> Result<Ptr> {
    let (page, ptr) = (page_of(r, branch)?, branch.0);
    let node = Node::open(&page, level, ptr.addr)?;
    Ok(node.child(node.find_child(r, key)?)?.0)
}

/// As `row_of`, which handles only the most common pages and keys, for any page and key: the value of `key` in the leaf
/// that would hold it.
#[inline(never)]
fn get_from<'r, R: PageRead>(
    r: &'r R,
    leaf: Lent<'r, '_>,
    key: &[u8],
    nested: fn(u64, &[u8]) -> Error,
) -> Result<Option<Value<'r>>> {
    let (page, at) = (page_of(r, leaf)?, leaf.0.addr);
    let node = Node::open(&page, 0, at)?;
    let (index, found) = node.find(r, key)?;
    if !found {
        return Ok(None);
    }
    let cell = node.cell(index)?;
    let range = cell.range();
    if tag::kind(cell.tag) == tag::INLINE {
        return Ok(Some(Value::inline(page, range)));
    }
    match value::reference(cell.tag, cell.payload, r.page_size(), at)? {
        Some(reference) => Ok(Some(Value::referenced(r, reference))),
        None => Err(nested(at, key)),
    }
}
