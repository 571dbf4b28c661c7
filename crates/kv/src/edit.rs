//! The bytes of one page of an ordered table, changed in place. The layout is in `node`.
//!
//! Every function checks the page that it is given (`Shape::of`), because a page that this transaction
//! copied from the file may be damaged in ways that a checksum does not tell.

use crate::node::{
    CHILD_BYTES, COUNT_AT, DEAD_AT, HEAP_AT, LEVEL_AT, Node, PREFIX_AT, PREFIX_LEN_AT, RESERVED_AT,
    SLOT_BYTES, SLOT_PART_BYTES, Shape, damaged, head_of, varint_len,
};
use tidalite_base::{get_u64, put_u16, put_u32, put_u64};
use tidalite_pager::{PTR_BYTES, Ptr, Result};

/// A number that is known to be smaller than a page.
pub(crate) fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or_else(|_| unreachable!("pages are smaller than 4 GiB"))
}

/// A payload with its tag, on its way into a cell.
#[derive(Clone, Copy)]
pub(crate) struct Payload<'a> {
    /// As in `Cell`.
    pub(crate) tag: u32,
    pub(crate) bytes: &'a [u8],
}

/// Pointer and rows as a branch stores them.
pub(crate) fn child_bytes(ptr: &Ptr, rows: u64) -> [u8; CHILD_BYTES] {
    let mut bytes = [0; CHILD_BYTES];
    ptr.encode(&mut bytes, 0);
    put_u64(&mut bytes, PTR_BYTES, rows);
    bytes
}

/// Bytes of a cell without its slot.
pub(crate) fn cell_size(leaf: bool, suffix_len: usize, payload: Payload<'_>) -> usize {
    let tag = if leaf { varint_len(payload.tag) } else { 0 };
    varint_len(small(suffix_len)) + tag + payload.bytes.len() + suffix_len
}

/// Makes the page an empty one of this level; the caller writes the prefix.
pub(crate) fn init(page: &mut [u8], level: u8, prefix_len: usize) {
    let heap = page.len();
    put_u16(page, COUNT_AT, 0);
    page[LEVEL_AT] = level;
    page[RESERVED_AT] = 0;
    put_u32(page, HEAP_AT, small(heap));
    put_u32(page, DEAD_AT, 0);
    put_u32(page, PREFIX_LEN_AT, small(prefix_len));
}

fn put_varint(page: &mut [u8], mut at: usize, mut number: u32) -> usize {
    while number >= 0x80 {
        page[at] = (number & 0x7f) as u8 | 0x80;
        number >>= 7;
        at += 1;
    }
    page[at] = number as u8;
    at + 1
}

/// Writes a cell of `size` bytes at `offset`; the suffix may come in two parts.
pub(crate) fn put_cell(
    page: &mut [u8],
    offset: usize,
    leaf: bool,
    suffix: (&[u8], &[u8]),
    payload: Payload<'_>,
) {
    let mut at = put_varint(page, offset, small(suffix.0.len() + suffix.1.len()));
    if leaf {
        at = put_varint(page, at, payload.tag);
    }
    for part in [payload.bytes, suffix.0, suffix.1] {
        page[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
}

/// What became of an attempt to insert in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// The entry is there.
    Yes,
    /// No room, or the key does not begin with the page's prefix: rewrite or split.
    No,
}

/// Inserts an entry at `index` where the room between slots and cells suffices.
pub(crate) fn try_insert(
    page: &mut [u8],
    level: u8,
    at: u64,
    index: usize,
    key: &[u8],
    payload: Payload<'_>,
) -> Result<Placed> {
    let shape = Shape::of(page, level, at)?;
    let leaf = level == 0;
    debug_assert!(index <= shape.count, "insert beyond the end");
    let first_of_branch = !leaf && index == 0;
    let prefix = &page[PREFIX_AT..shape.heads];
    if first_of_branch && shape.count > 0 || !first_of_branch && !key.starts_with(prefix) {
        return Ok(Placed::No);
    }
    let suffix = if first_of_branch {
        &[]
    } else {
        &key[prefix.len()..]
    };
    let size = cell_size(leaf, suffix.len(), payload);
    let slots_end = shape.slots_end();
    if shape.heap - slots_end < size + SLOT_BYTES {
        return Ok(Placed::No);
    }
    let offset = shape.heap - size;
    put_cell(page, offset, leaf, (suffix, &[]), payload);

    let offsets_at = shape.heads + shape.count * SLOT_PART_BYTES;
    let offset_at = offsets_at + index * SLOT_PART_BYTES;
    let head_at = shape.heads + index * SLOT_PART_BYTES;
    page.copy_within(offset_at..slots_end, offset_at + SLOT_BYTES);
    page.copy_within(head_at..offset_at, head_at + SLOT_PART_BYTES);
    put_u32(page, head_at, head_of(suffix));
    put_u32(page, offset_at + SLOT_PART_BYTES, small(offset));

    put_u16(page, COUNT_AT, (shape.count + 1) as u16);
    put_u32(page, HEAP_AT, small(offset));
    Ok(Placed::Yes)
}

/// Takes entry `index` out. Not for the first entry of a branch that has others (invariant 3).
pub(crate) fn remove(page: &mut [u8], level: u8, at: u64, index: usize) -> Result<()> {
    let node = Node::open(page, level, at)?;
    let shape = node.shape();
    let cell = node.cell(index)?;
    let (offset, size) = (cell.offset, cell.size);
    debug_assert!(
        level == 0 || index > 0 || shape.count == 1,
        "rewrite the branch"
    );

    let slots_end = shape.slots_end();
    let offset_at = shape.heads + (shape.count + index) * SLOT_PART_BYTES;
    let head_at = shape.heads + index * SLOT_PART_BYTES;
    page.copy_within(head_at + SLOT_PART_BYTES..offset_at, head_at);
    page.copy_within(
        offset_at + SLOT_PART_BYTES..slots_end,
        offset_at - SLOT_PART_BYTES,
    );
    put_u16(page, COUNT_AT, (shape.count - 1) as u16);
    if offset == shape.heap {
        put_u32(page, HEAP_AT, small(offset + size));
    } else {
        put_u32(page, DEAD_AT, small(shape.dead + size));
    }
    Ok(())
}

/// Overwrites the payload of entry `index` when the new one has the same tag; false when it has not.
pub(crate) fn overwrite(
    page: &mut [u8],
    level: u8,
    at: u64,
    index: usize,
    payload: Payload<'_>,
) -> Result<bool> {
    let cell = Node::open(page, level, at)?.cell(index)?;
    if cell.tag != payload.tag || cell.payload.len() != payload.bytes.len() {
        return Ok(false);
    }
    let from = cell.payload_at;
    page[from..from + payload.bytes.len()].copy_from_slice(payload.bytes);
    Ok(true)
}

/// Branch: replaces pointer and rows of entry `index`.
pub(crate) fn set_child(
    page: &mut [u8],
    level: u8,
    at: u64,
    index: usize,
    ptr: &Ptr,
    rows: u64,
) -> Result<()> {
    let bytes = child_bytes(ptr, rows);
    let payload = Payload {
        tag: 0,
        bytes: &bytes,
    };
    if level == 0 || !overwrite(page, level, at, index, payload)? {
        return Err(damaged("table page", at, "a leaf", "a branch"));
    }
    Ok(())
}

/// Branch: replaces the pointer of entry `index`.
pub(crate) fn set_child_ptr(
    page: &mut [u8],
    level: u8,
    at: u64,
    index: usize,
    ptr: &Ptr,
) -> Result<()> {
    let (_, rows) = Node::open(page, level, at)?.child(index)?;
    set_child(page, level, at, index, ptr, rows)
}

/// Branch: changes the rows of entry `index`. Damaged counts wrap; `check` finds them.
pub(crate) fn change_rows(
    page: &mut [u8],
    level: u8,
    at: u64,
    index: usize,
    change: i64,
) -> Result<()> {
    let cell = Node::open(page, level, at)?.cell(index)?;
    let rows_at = cell.payload_at + PTR_BYTES;
    if level == 0 {
        return Err(damaged("table page", at, "a leaf", "a branch"));
    }
    let rows = get_u64(page, rows_at).wrapping_add_signed(change);
    put_u64(page, rows_at, rows);
    Ok(())
}

/// Entries of the page, and the bytes that they, their slots and the prefix take.
pub(crate) fn fill(page: &[u8], level: u8, at: u64) -> Result<(usize, usize)> {
    let shape = Shape::of(page, level, at)?;
    let live = shape.slots_end() - PREFIX_AT + page.len() - shape.heap - shape.dead;
    Ok((shape.count, live))
}
