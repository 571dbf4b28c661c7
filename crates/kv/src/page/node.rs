//! The bytes of one page of an ordered table, for reading.
//!
//! ```text
//! 0        32      34      35      36     40     44           48
//! | header | count | level | flags | heap | dead | prefix len | prefix | slots ... free | cells       |
//! |  32 B  |  u16  |  u8   |  u8   | u32  | u32  |    u32     |        |                | newest lowest |
//!
//! slots of a leaf:    | heads u32 * count |                        | offsets u16 * count |
//! slots of a branch:  | heads u32 * count | children 26 B * count  | offsets u16 * count |
//!                     (offsets are u32 in pages above 64 KiB)
//!
//! leaf cell    | key length varint | tag varint | key suffix | value, reference, nested table |
//! branch cell  | key length varint | key suffix |
//!              (of a key beyond `key_bytes_max` the length has its highest bit set, it is that of the first
//!              bytes of the key, and behind them stands the reference to the rest)
//! child        | page u48 | birth u48 | checksum u64 | rows u48 |
//! ```
//!
//! The prefix lies beside the header, not among the cells: a search then touches one cache line less. The
//! children lie beside the heads for the same reason: the way down needs no cell, unless heads are equal.
//!
//! Invariants of a stored page:
//! 1. Level 0 is a leaf (`Kind::KvLeaf`), above it are branches (`Kind::KvBranch`); a child is exactly one
//!    level below its parent, so that no damage can make a descent endless.
//! 2. There is at least one entry. Keys ascend strictly. Every key is prefix + suffix.
//! 3. The key of a branch's first entry is stored empty and stands for "below everything"; it does not
//!    take part in the prefix.
//! 4. `heads[i]` holds the first four bytes of suffix i, padded with zeros, as a big-endian number
//!    (stored little-endian like every integer). Of a spilled key suffix i is what lies in the page, four
//!    bytes at least: a prefix is never longer than `prefix_bytes_max`.
//! 5. Cells lie in `heap .. page size`, do not overlap, and with `dead` bytes fill it.
//! 6. No cell with its slot takes more than half of what a page offers (`cell_bytes_max`), so that
//!    an overfull page can always be split in two.
//! 7. A leaf with a nested table in it, inline or not, has `NESTED` among its flags: whoever seals,
//!    frees or checks pages looks into the cells of such a leaf, and only of such.
//! 8. The flags `WHOSE` are those of the table: each of its pages has them.
//! 9. `ASCENDS`, of leaves, is a hint (`ascend`), and nothing else hangs on it.

use crate::page::edit::Payload;
use crate::page::header::Shape;
use crate::page::key::{self, KeyBuf};
use crate::page::prefetch::CELL_AHEAD_BYTES;
use crate::table::tree::ROOT_BYTES;
use crate::value::REFERENCE_BYTES;
use tidalite_base::limits::{PAGE_SIZE_MAX, PAGE_SIZE_MIN};
use tidalite_base::{Corrupt, TxnId, get_u16, get_u32, get_u64, put_u64};
use tidalite_pager::{Error, HEADER_BYTES, Kind, PageRead, Ptr, Result};

pub(crate) const COUNT_AT: usize = HEADER_BYTES;
pub(crate) const LEVEL_AT: usize = COUNT_AT + 2;
pub(crate) const FLAGS_AT: usize = LEVEL_AT + 1;
pub(crate) const HEAP_AT: usize = FLAGS_AT + 1;
pub(crate) const DEAD_AT: usize = HEAP_AT + 4;
pub(crate) const PREFIX_LEN_AT: usize = DEAD_AT + 4;
pub(crate) const PREFIX_AT: usize = PREFIX_LEN_AT + 4;
const _: () = assert!(PREFIX_AT == 48);

/// Bytes of one head.
pub(crate) const HEAD_BYTES: usize = 4;
/// Bytes of a child: page, birth, checksum, rows.
pub(crate) const CHILD_BYTES: usize = 6 + 6 + 8 + 6;
/// Pages up to this size have offsets of two bytes.
pub(super) const NARROW_PAGE_MAX: usize = 1 << 16;
/// Flag of a leaf: a cell holds a nested table.
pub(crate) const NESTED: u8 = 1;
/// Flag of every page of a nested table: so that whoever finds one without its tree does not take its rows for those
/// of the outermost table, whose number it carries.
pub(crate) const INNER_PAGE: u8 = 2;
/// Flag of every page of a table of multi-values, but not of the sets in it.
pub(crate) const SETS: u8 = 4;
/// Flag of a leaf: rows were put in one behind the other where it ends.
pub(crate) const ASCENDS: u8 = 8;
/// The flags that say whose page it is, whatever is in it.
pub(crate) const WHOSE: u8 = INNER_PAGE | SETS;

/// Bytes of one offset.
#[inline(always)]
pub(crate) const fn offset_bytes(page_size: usize) -> usize {
    if page_size <= NARROW_PAGE_MAX { 2 } else { 4 }
}

/// Bytes of each part of a slot, in the order of the arrays; a leaf has no children.
#[inline(always)]
pub(crate) const fn slot_parts(leaf: bool, page_size: usize) -> [usize; 3] {
    let child = if leaf { 0 } else { CHILD_BYTES };
    [HEAD_BYTES, child, offset_bytes(page_size)]
}

/// Bytes that an entry takes outside its cell.
#[inline(always)]
pub(crate) const fn slot_bytes(leaf: bool, page_size: usize) -> usize {
    let [head, child, offset] = slot_parts(leaf, page_size);
    head + child + offset
}

/// 48 bits.
const U48: u64 = (1 << 48) - 1;

/// The child that a branch stores: everything of the pointer that does not follow from its place.
pub(crate) fn child_bytes(ptr: &Ptr, rows: u64) -> [u8; CHILD_BYTES] {
    let mut bytes = [0; CHILD_BYTES];
    let page = ptr.addr / u64::from(ptr.len.max(1));
    put_u64(&mut bytes, 0, page & U48 | ptr.birth.0 << 48);
    put_u64(&mut bytes, 18, rows << 16);
    // The birth's upper 32 bits lie in 8..12, the checksum behind them.
    bytes[8..12].copy_from_slice(&((ptr.birth.0 >> 16) as u32).to_le_bytes());
    put_u64(&mut bytes, 12, ptr.checksum);
    bytes
}

/// Pointer and rows of a child of this level. `bytes` has a child's bytes at least.
#[inline(always)]
pub(crate) fn child_of(bytes: &[u8], level: u8, page_size: usize) -> (Ptr, u64) {
    let ptr = Ptr {
        addr: (get_u64(bytes, 0) & U48).saturating_mul(page_size as u64),
        len: page_size as u32,
        kind: kind_of(level),
        checksum: get_u64(bytes, 12),
        birth: TxnId(get_u64(bytes, 6) & U48),
    };
    (ptr, child_rows(&bytes[..CHILD_BYTES]))
}

/// Rows below a child.
#[inline]
pub(crate) fn child_rows(bytes: &[u8]) -> u64 {
    get_u64(bytes, CHILD_BYTES - 8) >> 16
}

/// Bytes of the longest varint (32 bits).
pub(crate) const VARINT_BYTES_MAX: usize = 5;

// The smallest entry (two varints, a slot) cannot overflow the count.
const _: () = assert!((PAGE_SIZE_MAX - PREFIX_AT) / (HEAD_BYTES + 4 + 2) < u16::MAX as usize);
const _: () = assert!((NARROW_PAGE_MAX - PREFIX_AT) / (HEAD_BYTES + 2 + 2) < u16::MAX as usize);

/// Set in a cell's length of key: the key is spilled.
pub(crate) const SPILLED: u32 = 1 << 31;

/// The longest key that lies in a page of this size: a third of a page, rounded up. A longer one has its rest in an
/// extent of its own.
#[must_use]
pub const fn key_bytes_max(page_size: usize) -> usize {
    page_size.div_ceil(3)
}

/// The most that one entry may take, slot included: half of what the page offers (invariant 6).
pub(crate) const fn cell_bytes_max(page_size: usize) -> usize {
    (page_size - PREFIX_AT) / 2
}

// The longest key, plain or spilled, fits beside a child pointer and beside a reference to a large value.
const _: () = {
    let key = key_bytes_max(PAGE_SIZE_MIN);
    let varint = VARINT_BYTES_MAX;
    assert!(slot_bytes(false, PAGE_SIZE_MIN) + varint + key <= cell_bytes_max(PAGE_SIZE_MIN));
    let fixed = slot_bytes(true, PAGE_SIZE_MIN) + varint + 2;
    assert!(fixed + REFERENCE_BYTES + key <= cell_bytes_max(PAGE_SIZE_MIN));
    assert!(fixed + ROOT_BYTES + key <= cell_bytes_max(PAGE_SIZE_MIN));
};

/// Bytes that `number` takes as a varint: seven bits a byte, low first.
pub(crate) const fn varint_len(number: u32) -> usize {
    match number {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        0x20_0000..0x1000_0000 => 4,
        _ => VARINT_BYTES_MAX,
    }
}

/// Reads a varint at `at`; the number and where it ends.
#[inline]
pub(crate) fn varint(bytes: &[u8], at: usize) -> Option<(u32, usize)> {
    let first = *bytes.get(at)?;
    if first < 0x80 {
        return Some((u32::from(first), at + 1));
    }
    let mut number = u64::from(first & 0x7f);
    for step in 1..VARINT_BYTES_MAX {
        let byte = *bytes.get(at + step)?;
        number |= u64::from(byte & 0x7f) << (7 * step);
        if byte < 0x80 {
            return Some((u32::try_from(number).ok()?, at + step + 1));
        }
    }
    None
}

/// The first four bytes of a suffix as a number that compares like them.
#[inline]
pub(crate) fn head_of(suffix: &[u8]) -> u32 {
    if let Some(first) = suffix.first_chunk::<4>() {
        return u32::from_be_bytes(*first);
    }
    let mut padded = [0u8; 4];
    padded[..suffix.len()].copy_from_slice(suffix);
    u32::from_be_bytes(padded)
}

/// The kind of a page at this level.
pub(crate) fn kind_of(level: u8) -> Kind {
    if level == 0 {
        Kind::KvLeaf
    } else {
        Kind::KvBranch
    }
}

#[cold]
pub(crate) fn damaged(
    what: &str,
    at: u64,
    found: impl std::fmt::Display,
    expected: impl std::fmt::Display,
) -> Error {
    Error::Corrupt(Corrupt::new(what, at, found, expected))
}

/// One entry, taken apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell<'a> {
    pub(crate) suffix: &'a [u8],
    /// The reference to the rest of a spilled key; empty for a plain one.
    pub(crate) rest: &'a [u8],
    /// Leaf: four times the payload's length, and what it is. Branch: 0.
    pub(crate) tag: u32,
    /// Leaf: value, reference, nested table. Branch: the child.
    pub(crate) payload: &'a [u8],
    /// Where the payload begins in the page.
    pub(crate) payload_at: usize,
    /// Bytes of the cell.
    pub(crate) size: usize,
    /// Where the cell begins in the page.
    pub(crate) offset: usize,
}

impl<'a> Cell<'a> {
    pub(crate) fn payload(&self) -> Payload<'a> {
        Payload {
            tag: self.tag,
            bytes: self.payload,
        }
    }
}

/// What a leaf's payload is: the low bits of its tag.
pub(crate) mod tag {
    /// The value itself.
    pub(crate) const INLINE: u32 = 0;
    /// A reference to an extent.
    pub(crate) const REFERENCE: u32 = 1;
    /// A small nested table.
    pub(crate) const NESTED: u32 = 2;
    /// The root of a nested table.
    pub(crate) const ROOT: u32 = 3;

    /// The tag of a payload of this kind and length.
    pub(crate) const fn of(kind: u32, len: usize) -> u32 {
        (len as u32) << 2 | kind
    }

    pub(crate) const fn kind(tag: u32) -> u32 {
        tag & 3
    }

    pub(crate) const fn len(tag: u32) -> usize {
        (tag >> 2) as usize
    }
}

/// A page for reading.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a> {
    bytes: &'a [u8],
    pub(super) heads: &'a [[u8; HEAD_BYTES]],
    shape: Shape,
    pub(super) at: u64,
}

impl<'a> Node<'a> {
    /// The page at address `at`, which must be of this level and hold at least one entry.
    ///
    /// This and the three below are inlined by force: as calls they return their results through memory,
    /// and waiting for those stores took half of a `get` (415 ns against 230 ns among 500 rows).
    #[inline(always)]
    pub(crate) fn open(bytes: &'a [u8], level: u8, at: u64) -> Result<Self> {
        let shape = Shape::of(bytes, level, at)?;
        if shape.count == 0 {
            return Err(damaged("table page", at, "no entries", "at least one"));
        }
        Ok(Self::with(bytes, shape, at))
    }

    /// The page whose shape is known: `shape` came from these bytes.
    #[inline(always)]
    pub(crate) fn with(bytes: &'a [u8], shape: Shape, at: u64) -> Self {
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

    /// What all keys begin with.
    #[inline]
    pub(crate) fn prefix(&self) -> &'a [u8] {
        &self.bytes[PREFIX_AT..self.shape.heads]
    }

    #[inline]
    pub(crate) fn head(&self, index: usize) -> u32 {
        u32::from_le_bytes(self.heads[index])
    }

    /// The cell of entry `index`, checked to lie among the cells.
    #[inline(always)]
    pub(crate) fn cell(&self, index: usize) -> Result<Cell<'a>> {
        match self.plain_cell(index) {
            Some(cell) => Ok(cell),
            None => self.other_cell(index),
        }
    }

    /// A cell that is no plain one: spilled, or damaged.
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

    /// Where in the page the reference to the rest of a spilled key lies.
    pub(crate) fn rest_at(&self, cell: &Cell<'_>) -> usize {
        if self.is_leaf() {
            cell.payload_at - REFERENCE_BYTES
        } else {
            cell.offset + cell.size - REFERENCE_BYTES
        }
    }

    /// Asks the processor for the beginning of a cell.
    #[inline]
    pub(crate) fn ask_for(&self, index: usize) {
        if let Some(offset) = self.offset(index) {
            let end = (offset + CELL_AHEAD_BYTES).min(self.bytes.len());
            tidalite_base::prefetch(&self.bytes[offset.min(end)..end]);
        }
    }

    /// Where the cell of entry `index` begins.
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

    /// The cell of a plain key; `None` for a spilled one, and for damage.
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

    /// Branch: where the child of entry `index` lies.
    #[inline(always)]
    fn child_at(&self, index: usize) -> usize {
        self.shape.heads + self.shape.count * HEAD_BYTES + index * CHILD_BYTES
    }

    /// Branch: pointer and rows of entry `index`. Kind and length of the pointer follow from the level.
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

    /// Branch: the entries whose children were born in a transaction. A few of many, so nothing else of the others is looked at.
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

    /// The whole key of entry `index`.
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

    /// The key of entry `index` as it is stored.
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

    /// References to the rests of its spilled keys.
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
