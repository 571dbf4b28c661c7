//! Changes the bytes of one page of an ordered table in place. `layout.rs` describes the layout of the page.
//!
//! Every function checks its page (`Shape::of`), because a page that this transaction copied from the file
//! may have damage that a checksum does not detect.

use crate::error::damaged;
use crate::page::header::Shape;
use crate::page::key::{Key, Rest, prefix_bytes_max};
use crate::page::layout::{
    ASCENDS, CHILD_BYTES, COUNT_AT, DEAD_AT, FLAGS_AT, HEAP_AT, LEVEL_AT, NESTED, PREFIX_AT,
    PREFIX_LEN_AT, Payload, SPILLED, WHOSE, cell_size, child_bytes, child_rows, head_of, kind_of,
    slot_bytes, slot_parts, small, tag,
};
use crate::page::node::Node;
use tidalite_base::{put_u16, put_u32};
use tidalite_pager::{Ptr, Result};

/// Makes the page an empty page of this level in the same table; the caller writes the prefix.
pub(crate) fn init(page: &mut [u8], level: u8, prefix_len: usize) {
    let heap = page.len();
    debug_assert!(PREFIX_AT + prefix_len <= heap, "the prefix fits the page");
    put_u16(page, COUNT_AT, 0);
    page[LEVEL_AT] = level;
    page[FLAGS_AT] &= WHOSE;
    put_u32(page, HEAP_AT, small(heap));
    put_u32(page, DEAD_AT, 0);
    put_u32(page, PREFIX_LEN_AT, small(prefix_len));
}

pub(crate) fn put_varint(page: &mut [u8], mut at: usize, mut number: u32) -> usize {
    while number >= 0x80 {
        page[at] = (number & 0x7f) as u8 | 0x80;
        number >>= 7;
        at += 1;
    }
    page[at] = number as u8;
    at + 1
}

/// Writes a cell at `offset`. The suffix may come in two parts; `rest` is the reference to the remaining bytes of a key
/// that is too long for its page, or empty.
pub(crate) fn put_cell(
    page: &mut [u8],
    offset: usize,
    leaf: bool,
    suffix: (&[u8], &[u8]),
    rest: &[u8],
    payload: Payload<'_>,
) {
    debug_assert!(leaf || payload.tag == 0, "a branch cell has no tag");
    debug_assert!(
        !leaf || tag::len(payload.tag) == payload.bytes.len(),
        "the tag has the length of the payload"
    );
    let len = small(suffix.0.len() + suffix.1.len());
    let spilled = if rest.is_empty() { 0 } else { SPILLED };
    let mut at = put_varint(page, offset, len | spilled);
    if leaf {
        at = put_varint(page, at, payload.tag);
    }
    for part in [suffix.0, suffix.1, rest] {
        page[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    if leaf {
        page[at..at + payload.bytes.len()].copy_from_slice(payload.bytes);
        if payload.nested() {
            page[FLAGS_AT] |= NESTED;
        }
    }
}

/// Writes the slot `index` of `count`: the head (first four bytes of the suffix), the child pointer and the cell
/// offset.
pub(crate) fn put_slot(
    page: &mut [u8],
    heads_at: usize,
    (index, count): (usize, usize),
    leaf: bool,
    head: u32,
    child: &[u8],
    offset: usize,
) {
    debug_assert!(index < count, "the slot exists");
    debug_assert!(
        leaf || child.len() == CHILD_BYTES,
        "a branch slot has a child"
    );
    let [head_bytes, child_len, width] = slot_parts(leaf, page.len());
    put_u32(page, heads_at + index * head_bytes, head);
    let children_at = heads_at + count * head_bytes;
    if !leaf {
        let at = children_at + index * child_len;
        page[at..at + child_len].copy_from_slice(child);
    }
    let at = children_at + count * child_len + index * width;
    if width == 2 {
        put_u16(page, at, offset as u16);
    } else {
        put_u32(page, at, small(offset));
    }
}

/// Result of an attempt to insert in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// The entry was inserted.
    Yes,
    /// There is no room, or the key does not begin with the page's prefix: the page must be rewritten or split.
    No,
}

/// Inserts an entry at `index` if the free space between slots and cells suffices; otherwise changes nothing.
pub(crate) fn try_insert(
    page: &mut [u8],
    level: u8,
    at: u64,
    index: usize,
    key: Key<'_>,
    payload: Payload<'_>,
) -> Result<Placed> {
    let shape = Shape::of(page, level, at)?;
    let leaf = level == 0;
    debug_assert!(index <= shape.count, "insert beyond the end");
    let first_of_branch = !leaf && index == 0;
    let prefix = &page[PREFIX_AT..shape.heads];
    if first_of_branch && shape.count > 0 || !first_of_branch && !key.inline.starts_with(prefix) {
        return Ok(Placed::No);
    }
    let (suffix, rest): (&[u8], &[u8]) = if first_of_branch {
        (&[], &[])
    } else {
        (&key.inline[prefix.len()..], key.rest)
    };
    if !rest.is_empty() && prefix.len() > prefix_bytes_max(page.len()) {
        return Ok(Placed::No);
    }
    let size = cell_size(leaf, (suffix.len(), rest.len()), payload);
    if shape.heap - shape.slots_end < size + slot_bytes(leaf, page.len()) {
        return Ok(Placed::No);
    }
    let offset = shape.heap - size;
    put_cell(page, offset, leaf, (suffix, &[]), rest, payload);

    // The slots are stored as separate arrays of heads, children and offsets. Each array opens a gap at `index` and
    // moves by the growth of the arrays before it, so the last array moves first.
    let count = shape.count;
    let parts = slot_parts(leaf, page.len());
    let mut end = shape.slots_end;
    let mut shift: usize = parts.iter().sum();
    for part in parts.iter().rev() {
        let start = end - part * count;
        page.copy_within(start + index * part..end, start + index * part + shift);
        shift -= part;
        page.copy_within(start..start + index * part, start + shift);
        end = start;
    }
    debug_assert!((end, shift) == (shape.heads, 0), "all arrays have moved");
    debug_assert!(
        shape.slots_end + slot_bytes(leaf, page.len()) <= offset,
        "slots do not overlap the cells"
    );
    let slot = (index, count + 1);
    put_slot(
        page,
        shape.heads,
        slot,
        leaf,
        head_of(suffix),
        payload.bytes,
        offset,
    );
    put_u16(page, COUNT_AT, (count + 1) as u16);
    put_u32(page, HEAP_AT, small(offset));
    Ok(Placed::Yes)
}

/// Removes the entry at `index`. Must not be called for the first entry of a branch that has other entries, because
/// that entry stores no key (invariant 3 of `layout.rs`).
pub(crate) fn remove(page: &mut [u8], level: u8, at: u64, index: usize) -> Result<()> {
    let node = Node::open(page, level, at)?;
    let shape = node.shape();
    let cell = node.cell(index)?;
    let (offset, size) = (cell.offset, cell.size);
    debug_assert!(
        level == 0 || index > 0 || shape.count == 1,
        "rewrite the branch"
    );
    let mut start = shape.heads;
    let mut shift = 0;
    for part in slot_parts(level == 0, page.len()) {
        let end = start + part * shape.count;
        page.copy_within(start..start + index * part, start - shift);
        shift += part;
        page.copy_within(
            start + (index + 1) * part..end,
            start + (index + 1) * part - shift,
        );
        start = end;
    }
    debug_assert!(start == shape.slots_end, "all arrays have moved");
    put_u16(page, COUNT_AT, (shape.count - 1) as u16);
    if offset == shape.heap {
        put_u32(page, HEAP_AT, small(offset + size));
    } else {
        put_u32(page, DEAD_AT, small(shape.dead + size));
    }
    Ok(())
}

/// Leaf only: overwrites the payload of the entry at `index` if the new payload has the same tag and length; otherwise
/// returns false.
pub(crate) fn overwrite(
    page: &mut [u8],
    at: u64,
    index: usize,
    payload: Payload<'_>,
) -> Result<bool> {
    debug_assert!(
        tag::len(payload.tag) == payload.bytes.len(),
        "the tag has the length of the payload"
    );
    let cell = Node::open(page, 0, at)?.cell(index)?;
    if cell.tag != payload.tag || cell.payload.len() != payload.bytes.len() {
        return Ok(false);
    }
    let from = cell.payload_at;
    page[from..from + payload.bytes.len()].copy_from_slice(payload.bytes);
    Ok(true)
}

/// Replaces the reference to the remaining bytes of a key that is too long for its page.
pub(crate) fn replace_rest(
    page: &mut [u8],
    level: u8,
    at: u64,
    (old, new): (&Rest, &Rest),
) -> Result<()> {
    let node = Node::open(page, level, at)?;
    debug_assert!(old != new, "the new extent is another one");
    let mut found = None;
    for index in usize::from(level > 0)..node.count() {
        let cell = node.cell(index)?;
        if cell.rest == old {
            found = Some(node.rest_at(&cell));
        }
    }
    let Some(from) = found else {
        return Err(damaged("table page", at, "no such spilled key", "one"));
    };
    page[from..from + new.len()].copy_from_slice(new);
    Ok(())
}

/// Branch only: offset in the page of the child pointer of the entry at `index`.
fn child_at(page: &[u8], level: u8, at: u64, index: usize) -> Result<usize> {
    let shape = Shape::of(page, level, at)?;
    if level == 0 || index >= shape.count {
        return Err(damaged("table page", at, "no such child", "a branch"));
    }
    let [head_bytes, child_bytes, _] = slot_parts(false, page.len());
    Ok(shape.heads + shape.count * head_bytes + index * child_bytes)
}

/// Branch only: replaces the child pointer and the row count of the entry at `index`.
pub(crate) fn set_child(
    page: &mut [u8],
    level: u8,
    at: u64,
    index: usize,
    ptr: &Ptr,
    rows: u64,
) -> Result<()> {
    debug_assert!(ptr.kind == kind_of(level - 1), "a child is one level lower");
    let from = child_at(page, level, at, index)?;
    page[from..from + CHILD_BYTES].copy_from_slice(&child_bytes(ptr, rows));
    Ok(())
}

/// Branch only: replaces the child pointer of the entry at `index`.
pub(crate) fn set_child_ptr(
    page: &mut [u8],
    level: u8,
    at: u64,
    index: usize,
    ptr: &Ptr,
) -> Result<()> {
    let from = child_at(page, level, at, index)?;
    let child = &mut page[from..from + CHILD_BYTES];
    debug_assert!(ptr.kind == kind_of(level - 1), "a child is one level lower");
    let rows = child_rows(child);
    child.copy_from_slice(&child_bytes(ptr, rows));
    Ok(())
}

/// Branch only: adds `change` to the row count of the entry at `index`. The addition wraps, because a damaged count
/// must not cause a panic; `check` reports such a count.
pub(crate) fn change_rows(
    page: &mut [u8],
    level: u8,
    at: u64,
    index: usize,
    change: i64,
) -> Result<()> {
    let from = child_at(page, level, at, index)?;
    let child = &mut page[from..from + CHILD_BYTES];
    let rows = child_rows(child).wrapping_add_signed(change);
    child[CHILD_BYTES - 6..].copy_from_slice(&rows.to_le_bytes()[..6]);
    Ok(())
}

/// Number of entries in the page, and the total length in bytes of their cells, their slots and the prefix.
pub(crate) fn fill(page: &[u8], level: u8, at: u64) -> Result<(usize, usize)> {
    let shape = Shape::of(page, level, at)?;
    let live = shape.slots_end - PREFIX_AT + page.len() - shape.heap - shape.dead;
    Ok((shape.count, live))
}

/// Copies the `ASCENDS` flag from `before`, the bytes of the page before a rewrite, to the rewritten page, whose flag
/// was cleared.
pub(crate) fn keep_mark(page: &mut [u8], before: &[u8]) {
    debug_assert!(page.len() == before.len(), "the same page before and after");
    page[FLAGS_AT] |= before[FLAGS_AT] & ASCENDS;
}

/// Marks a leaf as filled in ascending order, by setting its `ASCENDS` flag.
pub(crate) fn mark(page: &mut [u8]) {
    debug_assert!(page[LEVEL_AT] == 0, "only leaves are marked");
    page[FLAGS_AT] |= ASCENDS;
}
