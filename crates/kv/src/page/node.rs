//! Read access to a page of an ordered table. `layout.rs` describes the layout of the page.

use crate::error::damaged;
use crate::page::header::Shape;
use crate::page::key::{self, KeyBuf};
use crate::page::layout::{
    CHILD_BYTES, HEAD_BYTES, PREFIX_AT, Payload, REFERENCE_BYTES, SPILLED, U48, child_of,
    offset_bytes, tag, varint,
};
use crate::page::prefetch::CELL_AHEAD_BYTES;
use tidalite_base::{TxnId, get_u16, get_u32, get_u64};
use tidalite_pager::{PageRead, Ptr, Result};

/// One decoded entry of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell<'a> {
    pub(crate) suffix: &'a [u8],
    /// The reference to the remaining bytes of a key that is too long for its page; empty for any other key.
    pub(crate) rest: &'a [u8],
    /// In a leaf, four times the payload's length plus its type (`layout::tag`); in a branch, 0.
    pub(crate) tag: u32,
    /// In a leaf, the value, the reference to a value, or the nested table; in a branch, the child.
    pub(crate) payload: &'a [u8],
    /// Offset of the payload in the page.
    pub(crate) payload_at: usize,
    /// Length in bytes of the cell.
    pub(crate) size: usize,
    /// Offset of the cell in the page.
    pub(crate) offset: usize,
}

impl<'a> Cell<'a> {
    pub(crate) fn payload(&self) -> Payload<'a> {
        Payload {
            tag: self.tag,
            bytes: self.payload,
        }
    }

    /// Range of the payload in the page.
    #[inline]
    pub(crate) fn range(&self) -> std::ops::Range<usize> {
        self.payload_at..self.payload_at + self.payload.len()
    }
}

/// Read access to a page whose header fields were checked.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a> {
    bytes: &'a [u8],
    pub(super) heads: &'a [[u8; HEAD_BYTES]],
    shape: Shape,
    pub(super) at: u64,
}

impl<'a> Node<'a> {
    /// Opens the page at address `at`, which must have this level and at least one entry.
    ///
    /// This function, `with` and `cell` are always inlined: as calls they return their results through memory,
    /// and waiting for those stores took half of a `get` (415 ns against 230 ns in a table of 500 rows).
    #[inline(always)]
    pub(crate) fn open(bytes: &'a [u8], level: u8, at: u64) -> Result<Self> {
        let shape = Shape::of(bytes, level, at)?;
        if shape.count == 0 {
            return Err(damaged("table page", at, "no entries", "at least one"));
        }
        Ok(Self::with(bytes, shape, at))
    }

    /// Creates access to a page whose header fields were already read into `shape`.
    #[inline(always)]
    pub(crate) fn with(bytes: &'a [u8], shape: Shape, at: u64) -> Self {
        debug_assert!(shape.slots_end <= bytes.len(), "the shape of this page");
        let heads_end = shape.heads + shape.count * HEAD_BYTES;
        Self {
            bytes,
            heads: bytes[shape.heads..heads_end].as_chunks().0,
            shape,
            at,
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.shape.count
    }

    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    pub(crate) fn is_leaf(&self) -> bool {
        self.shape.level == 0
    }

    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// The common prefix of all keys of the page.
    #[inline]
    pub(crate) fn prefix(&self) -> &'a [u8] {
        &self.bytes[PREFIX_AT..self.shape.heads]
    }

    #[inline]
    pub(crate) fn head(&self, index: usize) -> u32 {
        u32::from_le_bytes(self.heads[index])
    }

    /// The cell of the entry at `index`; fails if the cell does not lie in the cell area of the page.
    #[inline(always)]
    pub(crate) fn cell(&self, index: usize) -> Result<Cell<'a>> {
        match self.plain_cell(index) {
            Some(cell) => Ok(cell),
            None => self.other_cell(index),
        }
    }

    /// Slow path of `cell`: decodes the cell of a key that is too long for its page, or returns an error for a damaged
    /// cell.
    #[cold]
    pub(crate) fn other_cell(&self, index: usize) -> Result<Cell<'a>> {
        self.spilled_cell(index).ok_or_else(|| {
            damaged(
                "table page",
                self.at,
                format!("entry {index} outside the cells"),
                format!("cells from {}", self.shape.heap),
            )
        })
    }

    fn spilled_cell(&self, index: usize) -> Option<Cell<'a>> {
        let offset = self.offset(index)?;
        let raw = self.bytes.get(offset..)?;
        let (key_len, mut at) = varint(raw, 0)?;
        let suffix_len = (key_len & !SPILLED) as usize;
        if key_len & SPILLED == 0 || suffix_len > raw.len() {
            return None;
        }
        let mut tag = 0;
        if self.is_leaf() {
            (tag, at) = varint(raw, at)?;
        }
        let suffix_end = at + suffix_len;
        let rest_end = suffix_end + REFERENCE_BYTES;
        let (suffix, rest) = (raw.get(at..suffix_end)?, raw.get(suffix_end..rest_end)?);
        if !self.is_leaf() {
            let child = self.child_at(index);
            return Some(Cell {
                suffix,
                rest,
                tag,
                payload: &self.bytes[child..child + CHILD_BYTES],
                payload_at: child,
                size: rest_end,
                offset,
            });
        }
        let end = rest_end + tag::len(tag);
        Some(Cell {
            suffix,
            rest,
            tag,
            payload: raw.get(rest_end..end)?,
            payload_at: offset + rest_end,
            size: end,
            offset,
        })
    }

    /// Offset in the page of the reference to the remaining bytes of a long key.
    pub(crate) fn rest_at(&self, cell: &Cell<'_>) -> usize {
        debug_assert!(!cell.rest.is_empty(), "a spilled key");
        if self.is_leaf() {
            cell.payload_at - REFERENCE_BYTES
        } else {
            cell.offset + cell.size - REFERENCE_BYTES
        }
    }

    /// Prefetches the beginning of a cell into the processor's cache.
    #[inline]
    pub(crate) fn prefetch_cell(&self, index: usize) {
        if let Some(offset) = self.offset(index) {
            let end = (offset + CELL_AHEAD_BYTES).min(self.bytes.len());
            tidalite_base::prefetch(&self.bytes[offset.min(end)..end]);
        }
    }

    /// Offset in the page of the cell of the entry at `index`; `None` for a damaged page.
    #[inline(always)]
    fn offset(&self, index: usize) -> Option<usize> {
        let width = offset_bytes(self.bytes.len());
        let offset = if index >= self.shape.count {
            return None;
        } else if width == 2 {
            usize::from(get_u16(
                self.bytes,
                self.shape.slots_end - 2 * (self.shape.count - index),
            ))
        } else {
            get_u32(
                self.bytes,
                self.shape.slots_end - 4 * (self.shape.count - index),
            ) as usize
        };
        (offset >= self.shape.heap).then_some(offset)
    }

    /// The cell of a key that is stored whole; `None` for a key that is too long for its page, and for a damaged cell.
    #[inline(always)]
    pub(crate) fn plain_cell(&self, index: usize) -> Option<Cell<'a>> {
        let offset = self.offset(index)?;
        let raw = self.bytes.get(offset..)?;
        let (key_len, mut at) = varint(raw, 0)?;
        if !self.is_leaf() {
            let end = at + key_len as usize;
            let child = self.child_at(index);
            return Some(Cell {
                suffix: raw.get(at..end)?,
                rest: &[],
                tag: 0,
                payload: &self.bytes[child..child + CHILD_BYTES],
                payload_at: child,
                size: end,
                offset,
            });
        }
        let (tag, next) = varint(raw, at)?;
        at = next;
        let suffix_end = at + key_len as usize;
        let end = suffix_end + tag::len(tag);
        Some(Cell {
            suffix: raw.get(at..suffix_end)?,
            rest: &[],
            tag,
            payload: raw.get(suffix_end..end)?,
            payload_at: offset + suffix_end,
            size: end,
            offset,
        })
    }

    /// Branch only: offset in the page of the child pointer of the entry at `index`.
    #[inline(always)]
    fn child_at(&self, index: usize) -> usize {
        self.shape.heads + self.shape.count * HEAD_BYTES + index * CHILD_BYTES
    }

    /// Branch only: the child pointer and the row count of the entry at `index`. The pointer's kind and length follow
    /// from the level of the branch, so they are not stored.
    #[inline(always)]
    pub(crate) fn child(&self, index: usize) -> Result<(Ptr, u64)> {
        let at = self.child_at(index);
        let bytes: Option<&[u8; CHILD_BYTES]> =
            self.bytes.get(at..).and_then(|rest| rest.first_chunk());
        let (Some(bytes), false) = (bytes, self.is_leaf() || index >= self.shape.count) else {
            return Err(damaged("table page", self.at, "a leaf", "a branch"));
        };
        let child = child_of(bytes, self.shape.level - 1, self.bytes.len());
        if child.0.is_null() {
            return Err(damaged("table branch", self.at, "no child", "a child"));
        }
        Ok(child)
    }

    /// Branch only: the indexes of the entries whose child pages were written by this transaction. Usually there are
    /// few, so only the births of the other pointers are decoded.
    pub(crate) fn born_in(&self, txn: TxnId) -> impl Iterator<Item = usize> + use<'a> {
        let (from, to) = match self.is_leaf() {
            true => (0, 0),
            false => (self.child_at(0), self.child_at(self.shape.count)),
        };
        let children = self.bytes.get(from..to).unwrap_or_default();
        let (children, _) = children.as_chunks::<CHILD_BYTES>();
        let born = children.iter().map(|child| get_u64(child, 6) & U48);
        let own = born.enumerate().filter(move |(_, birth)| *birth == txn.0);
        own.map(|(index, _)| index)
    }

    /// The complete key of the entry at `index`, including bytes that are stored outside the page.
    pub(crate) fn key<R: PageRead>(&self, r: &R, index: usize) -> Result<Vec<u8>> {
        if !self.is_leaf() && index == 0 {
            return Ok(Vec::new());
        }
        let cell = self.cell(index)?;
        let mut key = [self.prefix(), cell.suffix].concat();
        if !cell.rest.is_empty() {
            key::read_rest(r, cell.rest, self.at, &mut key)?;
        }
        Ok(key)
    }

    /// The key of the entry at `index` in its stored form: whole, or its first bytes and a reference to the others.
    pub(crate) fn stored_key(&self, index: usize) -> Result<KeyBuf> {
        if !self.is_leaf() && index == 0 {
            return Ok(KeyBuf::default());
        }
        let cell = self.cell(index)?;
        Ok(KeyBuf {
            inline: [self.prefix(), cell.suffix].concat(),
            rest: cell.rest.to_vec(),
        })
    }

    /// The references to the remaining bytes of all keys that are too long for the page.
    pub(crate) fn rests(&self) -> Result<Vec<key::Rest>> {
        let mut rests = Vec::new();
        for index in usize::from(!self.is_leaf())..self.count() {
            if self.plain_cell(index).is_none()
                && let Some(rest) = self.other_cell(index)?.rest.first_chunk()
            {
                rests.push(*rest);
            }
        }
        Ok(rests)
    }
}
