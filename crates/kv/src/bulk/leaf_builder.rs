//! Leaf builder: lays out a leaf in memory, from its first row to its last, before it becomes a page.
//!
//! ```text
//! | header | ... | prefix | heads ... ->    free    <- ... cells |     offsets: `finish` puts them after the heads
//! ```
//!
//! Invariants
//! 1. Rows ascend, their keys are plain, and all of them begin with the prefix; at any time `finish` makes a page that
//!    satisfies `layout.rs`, without dead bytes.
//! 2. Head, offset and cell of a row are all present, or none of them is.
//!
//! The prefix is chosen before the keys are known: the common part of the first key and the predicted last key,
//! assuming that keys advance as they did in the leaf before. If a key without this prefix comes, the leaf is laid out
//! again with a shorter one.

use crate::page::edit::put_varint;
use crate::page::entries::common;
use crate::page::key::prefix_bytes_max;
use crate::page::layout::{
    COUNT_AT, DEAD_AT, FLAGS_AT, HEAD_BYTES, HEAP_AT, LEVEL_AT, NESTED, PREFIX_AT, PREFIX_LEN_AT,
    Payload, head_of, offset_bytes, small, tag, varint, varint_len,
};
use crate::page::row_count::weight;
use tidalite_base::{put_u16, put_u32};

/// A row larger than 1/`ROW_DIV` of a page is inserted by a descent, so that two laid-out rows always fit one page.
const ROW_DIV: usize = 4;

/// As `ROW_DIV`, for a row with a set of values: the set may be as large as a quarter of a page, and the row adds a
/// key.
const SET_DIV: usize = 3;

/// Number of bytes of each key that are compared to predict by how much keys advance.
const PREDICTION_BYTES: usize = 16;

#[derive(Debug)]
pub(crate) struct LeafBuilder {
    page: Box<[u8]>,
    prefix_len: usize,
    count: usize,
    /// Number of rows that this leaf adds to the row counts in the branches above.
    weight: u64,
    /// Two flags: whether some row holds a set of values, and whether some set has pages of its own.
    nested: (bool, bool),
    /// Offset of the lowest cell in the page.
    heap: usize,
    /// The encoded offsets of the cells, in the form in which the page will store them.
    offsets: Vec<u8>,
    first_key: Vec<u8>,
    last_head: u32,
    /// Offset and length of the last key's suffix in the page.
    last_suffix: (usize, usize),
}

impl LeafBuilder {
    fn new(page_size: usize) -> Self {
        Self {
            page: vec![0; page_size].into(),
            prefix_len: 0,
            count: 0,
            weight: 0,
            nested: (false, false),
            heap: page_size,
            offsets: Vec::new(),
            first_key: Vec::new(),
            last_head: 0,
            last_suffix: (0, 0),
        }
    }

    /// True if a row may be put into a leaf that this builder lays out.
    #[inline]
    pub(crate) fn accepts(page_size: usize, key: &[u8], payload: Payload<'_>) -> bool {
        let part = if payload.nested() { SET_DIV } else { ROW_DIV };
        key.len() + payload.bytes.len() <= page_size / part
    }

    /// A builder without rows; `begin` must be called before any other use. `first_key` is the first key of the leaf
    /// before, from which the common prefix is predicted.
    pub(crate) fn after(page_size: usize, first_key: Vec<u8>) -> Self {
        Self {
            first_key,
            ..Self::new(page_size)
        }
    }

    /// Discards the builder's rows, which are now in the leaf before, and begins a leaf with the given row, for which
    /// `accepts` must be true.
    pub(crate) fn begin(&mut self, key: &[u8], payload: Payload<'_>) {
        let prefix_len =
            predicted_prefix_len(&self.first_key, key).min(prefix_bytes_max(self.page.len()));
        debug_assert!(Self::accepts(self.page.len(), key, payload), "the row fits");
        self.restart(&key[..prefix_len]);
        self.first_key.clear();
        self.first_key.extend_from_slice(key);
        let laid = self.write_row(&key[prefix_len..], payload);
        debug_assert!(laid, "a third of a page fits an empty one");
    }

    fn restart(&mut self, prefix: &[u8]) {
        self.prefix_len = prefix.len();
        self.page[PREFIX_AT..PREFIX_AT + prefix.len()].copy_from_slice(prefix);
        (self.count, self.weight, self.heap) = (0, 0, self.page.len());
        self.nested = (false, false);
        self.offsets.clear();
    }

    /// Adds a row. Returns false, with nothing changed, if the row does not fit, its key is not greater than the last
    /// key, or `accepts` is false for it.
    #[inline]
    pub(crate) fn push(&mut self, key: &[u8], payload: Payload<'_>) -> bool {
        if !Self::accepts(self.page.len(), key, payload) {
            return false;
        }
        let Some(suffix) = key.strip_prefix(self.prefix()) else {
            return self.push_shorter_prefix(key, payload);
        };
        let head = head_of(suffix);
        let ascends =
            head > self.last_head || head == self.last_head && suffix > self.last_suffix();
        ascends && self.write_row(suffix, payload)
    }

    /// As `push`, for a key that does not begin with the leaf's common prefix.
    #[cold]
    fn push_shorter_prefix(&mut self, key: &[u8], payload: Payload<'_>) -> bool {
        let shared = common(self.prefix(), key);
        if key < self.prefix() || !self.shorten(shared) {
            return false;
        }
        self.write_row(&key[shared..], payload)
    }

    /// Lays the rows out again with a shorter common prefix; returns false, with nothing changed, if they do not fit
    /// then.
    fn shorten(&mut self, len: usize) -> bool {
        let mut other = Self::new(self.page.len());
        debug_assert!(len < self.prefix_len, "the prefix becomes shorter");
        other.restart(&self.prefix()[..len]);
        let mut suffix = self.prefix()[len..].to_vec();
        let more = suffix.len();
        for (old, payload) in self.rows() {
            suffix.truncate(more);
            suffix.extend_from_slice(old);
            if !other.write_row(&suffix, payload) {
                return false;
            }
        }
        other.first_key = std::mem::take(&mut self.first_key);
        *self = other;
        true
    }

    /// The key suffix and the payload of each row, in key order.
    fn rows(&self) -> impl Iterator<Item = (&[u8], Payload<'_>)> {
        let width = offset_bytes(self.page.len());
        self.offsets.chunks_exact(width).filter_map(move |offset| {
            let mut wide = [0; 8];
            wide[..width].copy_from_slice(offset);
            let (len, at) = varint(&self.page, u64::from_le_bytes(wide) as usize)?;
            let (tag, at) = varint(&self.page, at)?;
            let payload_at = at + len as usize;
            let bytes = &self.page[payload_at..payload_at + tag::len(tag)];
            Some((&self.page[at..payload_at], Payload { tag, bytes }))
        })
    }

    /// Writes the head (first four bytes), offset and cell of a row after the other rows; returns false if there is no
    /// room.
    #[inline]
    fn write_row(&mut self, suffix: &[u8], payload: Payload<'_>) -> bool {
        let Payload { tag, bytes: value } = payload;
        let len = small(suffix.len());
        let size = varint_len(len) + varint_len(tag) + suffix.len() + value.len();
        let width = offset_bytes(self.page.len());
        let head_at = PREFIX_AT + self.prefix_len + self.count * HEAD_BYTES;
        let slots_end = head_at + HEAD_BYTES + (self.count + 1) * width;
        if slots_end + size > self.heap {
            return false;
        }
        debug_assert!(
            self.count == 0 || suffix > self.last_suffix(),
            "rows ascend (invariant 1)"
        );
        let heap = self.heap - size;
        let mut at = put_varint(&mut self.page, heap, len);
        at = put_varint(&mut self.page, at, tag);
        let cell = &mut self.page[at..self.heap];
        let (to_suffix, to_value) = cell.split_at_mut(suffix.len());
        to_suffix.copy_from_slice(suffix);
        to_value.copy_from_slice(value);
        let head = head_of(suffix);
        put_u32(&mut self.page, head_at, head);
        self.offsets
            .extend_from_slice(&(heap as u64).to_le_bytes()[..width]);
        self.last_head = head;
        self.last_suffix = (at, suffix.len());
        self.heap = heap;
        self.count += 1;
        self.weight += weight(payload);
        self.nested.0 |= payload.nested();
        self.nested.1 |= tag::kind(tag) == tag::ROOT;
        true
    }

    fn prefix(&self) -> &[u8] {
        &self.page[PREFIX_AT..PREFIX_AT + self.prefix_len]
    }

    fn last_suffix(&self) -> &[u8] {
        let (at, len) = self.last_suffix;
        &self.page[at..at + len]
    }

    /// True if `key` is greater than the last key in the builder.
    pub(crate) fn is_below(&self, key: &[u8]) -> bool {
        match key.strip_prefix(self.prefix()) {
            Some(suffix) => suffix > self.last_suffix(),
            None => key > self.prefix(),
        }
    }

    /// Number of rows in the leaf; a row with a set counts once for each value of the set.
    pub(crate) fn weight(&self) -> u64 {
        self.weight
    }

    /// True if a row refers to a set with pages of its own; such pages must be sealed before this leaf.
    pub(crate) fn has_page_sets(&self) -> bool {
        self.nested.1
    }

    pub(crate) fn first_key(&self) -> &[u8] {
        &self.first_key
    }

    /// Copies the last key into `key`.
    pub(crate) fn copy_last_key(&self, key: &mut Vec<u8>) {
        key.clear();
        key.extend_from_slice(self.prefix());
        key.extend_from_slice(self.last_suffix());
    }

    /// The bytes of the finished page, with zeros in place of the page header; `flags` are the flags of every page of
    /// the table. No rows may be added afterwards.
    pub(crate) fn finish(&mut self, flags: u8) -> &[u8] {
        assert!(self.count > 0, "a leaf has a row");
        debug_assert!(
            self.count <= usize::from(u16::MAX),
            "the count has two bytes"
        );
        debug_assert!(
            self.offsets.len() == self.count * offset_bytes(self.page.len()),
            "an offset for each row (invariant 2)"
        );
        let page = &mut self.page;
        put_u16(page, COUNT_AT, self.count as u16);
        page[LEVEL_AT] = 0;
        page[FLAGS_AT] = flags | if self.nested.0 { NESTED } else { 0 };
        put_u32(page, HEAP_AT, small(self.heap));
        put_u32(page, DEAD_AT, 0);
        put_u32(page, PREFIX_LEN_AT, small(self.prefix_len));
        let offsets_at = PREFIX_AT + self.prefix_len + self.count * HEAD_BYTES;
        let slots_end = offsets_at + self.offsets.len();
        debug_assert!(slots_end <= self.heap, "slots do not overlap the cells");
        page[offsets_at..slots_end].copy_from_slice(&self.offsets);
        page[slots_end..self.heap].fill(0);
        page
    }
}

/// Predicts the common prefix of the leaf's keys. Keys are taken as numbers, and the last key of the leaf is assumed to
/// be as far after `key` as `key` is after `before`. Returns the number of leading bytes that these two share.
fn predicted_prefix_len(before: &[u8], key: &[u8]) -> usize {
    let shared = common(before, key);
    // Starts a few bytes before the first difference of the two keys, so that a carry in the addition does not
    // overflow.
    let from = shared.saturating_sub(PREDICTION_BYTES / 2);
    let number = |key: &[u8]| {
        let mut bytes = [0; PREDICTION_BYTES];
        let part = &key[from.min(key.len())..];
        let len = part.len().min(PREDICTION_BYTES);
        bytes[..len].copy_from_slice(&part[..len]);
        u128::from_be_bytes(bytes)
    };
    let (before, now) = (number(before), number(key));
    let step = now.saturating_sub(before);
    // Predicts a key a little beyond the end of the leaf, because leaves differ in their number of rows.
    let Some(end) = now
        .checked_add(step)
        .and_then(|end| end.checked_add(step / 16))
    else {
        return from.min(key.len());
    };
    let same = (now ^ end).leading_zeros() as usize / 8;
    (from + same).min(key.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::node::Node;

    #[test]
    fn prefix_prediction_follows_the_advance_of_keys() {
        let key = |n: u64| n.to_be_bytes();
        assert_eq!(predicted_prefix_len(&key(0x1000), &key(0x1010)), 7);
        // From the key 0x10f0 on, an advance of 0x10 changes the next higher byte as well.
        assert_eq!(predicted_prefix_len(&key(0x10e0), &key(0x10f0)), 6);
        assert_eq!(predicted_prefix_len(&key(0xfff0), &key(0xfffe)), 5);
        assert_eq!(predicted_prefix_len(b"same", b"same"), 4);
        assert_eq!(predicted_prefix_len(&key(u64::MAX - 1), &key(u64::MAX)), 0);
        assert_eq!(predicted_prefix_len(b"", b"k"), 0);
        let text = predicted_prefix_len(
            b"a long shared beginning of keys 17",
            b"a long shared beginning of keys 18",
        );
        assert_eq!(text, 33);
    }

    #[test]
    fn key_without_the_prefix_shortens_it() {
        let mut builder = LeafBuilder::after(512, b"user-100".to_vec());
        let value = |bytes| Payload {
            tag: tag::of(tag::INLINE, <[u8]>::len(bytes)),
            bytes,
        };
        builder.begin(b"user-101", value(b"one"));
        assert_eq!(builder.prefix(), b"user-10");
        assert!(builder.push(b"user-102", value(b"two")));
        assert!(
            !builder.push(b"user-102", value(b"again")),
            "not above the last"
        );
        assert!(!builder.push(b"user-09", value(b"below")));
        assert!(!builder.push(b"tail", value(b"below")));
        assert!(builder.push(b"user-11", value(b"three")));
        assert_eq!(builder.prefix(), b"user-1");
        assert!(builder.push(b"zebra", value(b"")));
        assert_eq!((builder.prefix(), builder.count), (&b""[..], 4));
        let mut last = vec![1];
        builder.copy_last_key(&mut last);
        assert_eq!(last, b"zebra");
        let node = Node::open(builder.finish(0), 0, 0).unwrap();
        let keys = (0..4).map(|row| node.cell(row).unwrap());
        let keys: Vec<_> = keys.map(|cell| (cell.suffix, cell.payload)).collect();
        let expected: [(&[u8], &[u8]); 4] = [
            (b"user-101", b"one"),
            (b"user-102", b"two"),
            (b"user-11", b"three"),
            (b"zebra", b""),
        ];
        assert_eq!(keys, expected);
    }
}
