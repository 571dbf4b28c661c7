//! Searches a key in a page in as few steps as possible; used by point gets.
//!
//! The results are the same as with `Node`. The code reads the page in place, keeps nothing of the page, and returns
//! its
//! result in registers. A `Node` that is passed to a function is first written to memory, and so is a `Result`; a get
//! that found its page in the cache spent half of its time on that.
//!
//! Only the common case of a page is handled: keys that are stored whole in the page, heads (the first four bytes of
//! key suffixes) that distinguish the keys, and offsets of two bytes. Every other page, including a damaged one,
//! returns `None` or `Row::Unclear`: the caller then opens the page as a
//! `Node`, which finds the cause.
//!
//! The position of the value is computed from the length of the searched key, not from the key length in the cell. So
//! the processor can fetch the value, often in the next cache line, while it still waits for the cell.

use crate::page::header::Shape;
use crate::page::layout::{
    CHILD_BYTES, HEAD_BYTES, NARROW_PAGE_MAX, PREFIX_AT, child_of, head_of, tag, varint,
};
use crate::page::prefetch::slots_ahead;
use crate::page::search::first_head;
use std::cmp::Ordering;
use std::ops::Range;
use tidalite_base::get_u16;
use tidalite_pager::Ptr;

/// Result of searching a key in a leaf.
pub(crate) enum Row {
    /// The key exists: the tag (type and length) of its payload, and the payload's range in the page.
    There(u32, Range<usize>),
    NotThere,
    /// This fast search cannot decide: the caller must search with `Node`.
    Unclear,
}

/// Varints below this value take one byte.
const SHORT: u8 = 0x80;
/// Keys are compared in words of this many bytes.
const WORD: usize = 8;
/// Maximum length in bytes of keys that are compared word by word; longer keys are compared by a call of `memcmp`.
const WORDS_BYTES_MAX: usize = 8 * WORD;

/// True if both slices are equal.
#[inline(always)]
fn same(one: &[u8], other: &[u8]) -> bool {
    let len = one.len();
    if len != other.len() {
        return false;
    }
    if !(WORD..=WORDS_BYTES_MAX).contains(&len) {
        return one == other;
    }
    let word = |bytes: &[u8], at: usize| {
        bytes[at..]
            .first_chunk()
            .map(|word| u64::from_le_bytes(*word))
    };
    let mut at = 0;
    while at + WORD < len {
        if word(one, at) != word(other, at) {
            return false;
        }
        at += WORD;
    }
    // The last word may overlap the word before, so that keys need not be a multiple of a word long.
    word(one, len - WORD) == word(other, len - WORD)
}

/// The part of the key after the page's prefix. `None` if the key does not begin with the prefix.
#[inline(always)]
fn suffix_of<'k>(page: &[u8], shape: &Shape, key: &'k [u8]) -> Option<&'k [u8]> {
    let len = shape.heads - PREFIX_AT;
    if len == 0 {
        return Some(key);
    }
    let suffix = key.get(len..)?;
    if len > WORD {
        return (page.get(PREFIX_AT..shape.heads)? == &key[..len]).then_some(suffix);
    }
    let (Some(prefix), Some(first)) = (
        page.get(PREFIX_AT..)?.first_chunk::<WORD>(),
        key.first_chunk::<WORD>(),
    ) else {
        return None;
    };
    let differ = u64::from_be_bytes(*prefix) ^ u64::from_be_bytes(*first);
    (differ >> (u64::BITS as usize - 8 * len) == 0).then_some(suffix)
}

#[inline(always)]
fn heads_of<'p>(page: &'p [u8], shape: &Shape) -> Option<&'p [[u8; HEAD_BYTES]]> {
    let heads = page.get(shape.heads..)?.get(..shape.count * HEAD_BYTES)?;
    Some(heads.as_chunks().0)
}

/// Offset in the page of the cell of the entry at `index`.
#[inline(always)]
fn offset_of(page: &[u8], shape: &Shape, index: usize) -> Option<usize> {
    debug_assert!(index < shape.count, "the entry exists");
    let slot = shape.slots_end - 2 * (shape.count - index);
    let offset = usize::from(get_u16(page, slot));
    (offset >= shape.heap).then_some(offset)
}

/// The key suffix of the entry at `index`, if the key is short and stored whole in the page.
#[inline(always)]
fn key_at<'p>(page: &'p [u8], shape: &Shape, index: usize) -> Option<&'p [u8]> {
    let cell = page.get(offset_of(page, shape, index)?..)?;
    let (&len, mut rest) = cell.split_first()?;
    // A key that is too long for the page has the highest bit of its length set, so the length takes more than one
    // byte.
    if len >= SHORT {
        return None;
    }
    if shape.level == 0 {
        rest = &cell[varint(cell, 1)?.1..];
    }
    rest.get(..usize::from(len))
}

/// Searches, from `index` on, the entries whose head (first four bytes) equals the head of `suffix`. Returns the first
/// entry that is not below `suffix`, and whether that entry equals `suffix`.
#[inline(never)]
fn among_equals(
    page: &[u8],
    shape: &Shape,
    heads: &[[u8; HEAD_BYTES]],
    (index, suffix): (usize, &[u8]),
) -> Option<(usize, bool)> {
    debug_assert!(index < heads.len(), "the search begins in the page");
    let head = head_of(suffix);
    let (mut low, mut high) = (
        index,
        index + first_head(&heads[index..], |found| found <= head),
    );
    while low < high {
        let middle = low + (high - low) / 2;
        match key_at(page, shape, middle)?.cmp(suffix) {
            Ordering::Less => low = middle + 1,
            Ordering::Equal => return Some((middle, true)),
            Ordering::Greater => high = middle,
        }
    }
    Some((low, false))
}

/// The pointer to the child whose subtree would hold `key`, in a branch of this level, and the number of bytes of the
/// child to prefetch.
#[inline(always)]
pub(crate) fn child_towards(page: &[u8], level: u8, key: &[u8]) -> Option<(Ptr, usize)> {
    let shape = Shape::whole(page, level)?;
    if page.len() > NARROW_PAGE_MAX {
        return None;
    }
    let suffix = suffix_of(page, &shape, key)?;
    let heads = heads_of(page, &shape)?;
    let head = head_of(suffix);
    // The first key of a branch means "below everything" and is not compared.
    let first = 1 + first_head(heads.get(1..)?, |found| found < head);
    let mut index = first - 1;
    if let Some(next) = heads.get(first)
        && u32::from_le_bytes(*next) == head
    {
        let (place, there) = among_equals(page, &shape, heads, (first, suffix))?;
        index = if there { place } else { place - 1 };
    }
    let at = shape.heads + shape.count * HEAD_BYTES + index * CHILD_BYTES;
    let child: &[u8; CHILD_BYTES] = page.get(at..)?.first_chunk()?;
    let (ptr, rows) = child_of(child, level.checked_sub(1)?, page.len());
    (!ptr.is_null()).then_some((ptr, slots_ahead(level, rows)))
}

/// Searches `key` in a leaf and returns the place of its payload.
#[inline(always)]
pub(crate) fn row_of(page: &[u8], key: &[u8]) -> Row {
    row(page, key).unwrap_or(Row::Unclear)
}

#[inline(always)]
fn row(page: &[u8], key: &[u8]) -> Option<Row> {
    let shape = Shape::whole(page, 0)?;
    if shape.count == 0 || page.len() > NARROW_PAGE_MAX {
        return None;
    }
    let suffix = suffix_of(page, &shape, key)?;
    let heads = heads_of(page, &shape)?;
    let head = head_of(suffix);
    let mut index = first_head(heads, |found| found < head);
    let has_head = |index: usize| {
        let found = heads.get(index);
        found.is_some_and(|found| u32::from_le_bytes(*found) == head)
    };
    if !has_head(index) {
        return Some(Row::NotThere);
    }
    if has_head(index + 1) {
        let (place, there) = among_equals(page, &shape, heads, (index, suffix))?;
        if !there {
            return Some(Row::NotThere);
        }
        index = place;
    }
    let offset = offset_of(page, &shape, index)?;
    let cell = page.get(offset..)?;
    let &[key_len, low, high, ..] = cell else {
        return None;
    };
    let (tag, lengths) = match (low, high) {
        (0..SHORT, _) => (u32::from(low), 2),
        (_, 0..SHORT) => (u32::from(low & 0x7f) | u32::from(high) << 7, 3),
        _ => return None,
    };
    if key_len >= SHORT || usize::from(key_len) != suffix.len() {
        // The entry has another key with the same head, or a key that is too long for the page.
        return None;
    }
    let payload_at = lengths + suffix.len();
    let end = payload_at + tag::len(tag);
    if end > cell.len() {
        return None;
    }
    if !same(&cell[lengths..payload_at], suffix) {
        return Some(Row::NotThere);
    }
    Some(Row::There(tag, offset + payload_at..offset + end))
}
