//! Entries collected from pages: computes the size of a page that would hold them, chooses a split point, and writes
//! them to pages. This is the slow path of every change; `edit.rs` is the fast path.
//!
//! Two pages always suffice for the entries of one page plus one more. Under the old page's prefix the entries take at
//! most a page plus half of a page's space (invariant 6 of `layout.rs`). If the left page is filled until the next
//! entry does not fit, at most that much is left for the right page. Each side's own prefix is at least as long as the
//! old one. A new key that does not begin with the old prefix sorts before or after all others, and then the unchanged
//! old page is one of the two sides.

use crate::page::edit::{self, put_cell, put_slot};
use crate::page::key::{Key, KeyBuf, prefix_bytes_max, read_rest};
use crate::page::layout::{
    COUNT_AT, HEAP_AT, PREFIX_AT, Payload, cell_size, child_rows, head_of, slot_bytes, small,
};
use crate::page::node::Node;
use crate::page::row_count::weight;
use std::ops::Range;
use tidalite_base::{put_u16, put_u32};
use tidalite_pager::{PageRead, Result};

/// A split point may be up to 1/`SPLIT_SLACK_DIV` of a page away from the middle, if that gives a shorter separator.
const SPLIT_SLACK_DIV: usize = 8;

/// An entry with its key in two parts, borrowed from a copy of its page.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a> {
    pub(crate) key: (&'a [u8], &'a [u8]),
    /// The reference to the remaining bytes of a key that is too long for its page; empty for any other key.
    pub(crate) rest: &'a [u8],
    pub(crate) payload: Payload<'a>,
}

/// Length in bytes of the common prefix of two slices.
pub(crate) fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

impl<'a> Entry<'a> {
    /// Creates an entry that is in no page yet.
    pub(crate) fn new(key: Key<'a>, payload: Payload<'a>) -> Self {
        Self {
            key: (&[], key.inline),
            rest: key.rest,
            payload,
        }
    }

    fn key_len(&self) -> usize {
        self.key.0.len() + self.key.1.len()
    }

    fn common(&self, other: &Self) -> usize {
        // Entries from one page share the same prefix slice, so the prefix need not be compared.
        if std::ptr::eq(self.key.0, other.key.0) {
            return self.key.0.len() + common(self.key.1, other.key.1);
        }
        let whole = |entry: &Self| entry.key.0.iter().chain(entry.key.1).copied();
        std::iter::zip(whole(self), whole(other))
            .take_while(|(a, b)| a == b)
            .count()
    }

    /// The key without its first `skip` bytes.
    fn key_after(&self, skip: usize) -> (&'a [u8], &'a [u8]) {
        debug_assert!(skip <= self.key_len(), "the prefix is a part of the key");
        let (first, second) = self.key;
        if skip <= first.len() {
            (&first[skip..], second)
        } else {
            (&[], &second[skip - first.len()..])
        }
    }
}

/// The expected position of new entries, which decides the choice of a split point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bias {
    /// New entries may be anywhere: both pages of the split become about equal.
    Balance,
    /// New entries come at the end of the table, and keys probably keep ascending: the left page of the split stays
    /// full.
    Ascending,
}

/// Entries of one level of the tree, in key order.
pub(crate) struct Group<'a> {
    pub(crate) entries: Vec<Entry<'a>>,
    leaf: bool,
    page_size: usize,
    /// True in a table of sets, where a leaf entry counts as many rows as its set has values.
    multi: bool,
}

impl<'a> Group<'a> {
    /// Creates a group without entries.
    pub(crate) fn empty(leaf: bool, page_size: usize, multi: bool) -> Self {
        Self {
            entries: Vec::new(),
            leaf,
            page_size,
            multi,
        }
    }

    /// Appends all entries of a page to the group. `first_key` is the key of a branch's first entry, which the page
    /// itself does not store.
    pub(crate) fn add_page(&mut self, node: &Node<'a>, first_key: Key<'a>) -> Result<()> {
        debug_assert!(node.is_leaf() == self.leaf, "entries of one level");
        self.entries.reserve(node.count() + 1);
        for index in 0..node.count() {
            let cell = node.cell(index)?;
            let (key, rest): ((&[u8], &[u8]), &[u8]) = if self.leaf || index > 0 {
                ((node.prefix(), cell.suffix), cell.rest)
            } else {
                ((&[], first_key.inline), first_key.rest)
            };
            self.entries.push(Entry {
                key,
                rest,
                payload: Payload {
                    tag: cell.tag,
                    bytes: cell.payload,
                },
            });
        }
        Ok(())
    }

    /// Number of rows in or below the entries of this range.
    pub(crate) fn rows(&self, range: Range<usize>) -> u64 {
        debug_assert!(range.end <= self.entries.len(), "the entries exist");
        if self.leaf && !self.multi {
            return range.len() as u64;
        }
        if self.leaf {
            let entries = self.entries[range].iter();
            return entries.map(|entry| weight(entry.payload)).sum();
        }
        let rows = |entry: &Entry<'_>| child_rows(entry.payload.bytes);
        // A damaged count must not cause a panic; `check` finds it.
        self.entries[range]
            .iter()
            .map(rows)
            .fold(0, u64::wrapping_add)
    }

    /// The entries in this range whose keys a page would store: in a branch, all except the first.
    fn keyed(&self, range: &Range<usize>) -> Range<usize> {
        range.start + usize::from(!self.leaf)..range.end
    }

    /// Length of the common prefix of the keys in a page with this range of entries. A single key gets no prefix: the
    /// prefix would be the whole key, and the next insert would have to rewrite the page.
    fn prefix_len(&self, range: &Range<usize>) -> usize {
        let keyed = self.keyed(range);
        if keyed.len() < 2 {
            return 0;
        }
        let ends = self.entries[keyed.start].common(&self.entries[keyed.end - 1]);
        // Among ordered keys no key is shorter than the common prefix of the first and the last; among damaged keys it
        // may be.
        let shortest = self.entries[keyed].iter().map(Entry::key_len).min();
        ends.min(shortest.unwrap_or(0))
            .min(prefix_bytes_max(self.page_size))
    }

    /// Number of bytes used in a page that holds exactly this range of entries.
    pub(crate) fn page_bytes(&self, range: Range<usize>) -> usize {
        let prefix = self.prefix_len(&range);
        let keyed = self.keyed(&range).start;
        let cells: usize = range
            .map(|index| {
                let entry = &self.entries[index];
                let suffix = if index < keyed {
                    (0, 0)
                } else {
                    (entry.key_len() - prefix, entry.rest.len())
                };
                cell_size(self.leaf, suffix, entry.payload) + slot_bytes(self.leaf, self.page_size)
            })
            .sum();
        PREFIX_AT + prefix + cells
    }

    /// Index of the entry that becomes the first of the right page in a split. `None` if no split gives two pages that
    /// hold their entries, which happens only for damaged pages.
    pub(crate) fn split_point(&self, page_size: usize, bias: Bias) -> Option<usize> {
        debug_assert!(page_size == self.page_size, "both pages have this size");
        let count = self.entries.len();
        let fits = |at: usize| {
            self.page_bytes(0..at) <= page_size && self.page_bytes(at..count) <= page_size
        };
        if bias == Bias::Ascending {
            // The right branch of a split keeps at least two children, so that no branch has a single child.
            let right = if self.leaf { 1 } else { 2 };
            if count > right && fits(count - right) {
                return Some(count - right);
            }
        }
        let estimate = self.estimate();
        let total = *estimate.last()?;
        let miss = |at: usize| (2 * estimate[at]).abs_diff(total);
        let nearest = (1..count).min_by_key(|&at| miss(at))?;
        let slack = miss(nearest) + page_size / SPLIT_SLACK_DIV;
        let best = (1..count)
            .filter(|&at| miss(at) <= slack)
            .min_by_key(|&at| (self.separator_len(at), miss(at)))?;
        [best, nearest]
            .into_iter()
            .chain(1..count)
            .find(|&at| fits(at))
    }

    /// Running sum of the sizes of the entries in bytes, each key counted without the common prefix.
    pub(crate) fn estimate(&self) -> Vec<usize> {
        let mut sums = Vec::with_capacity(self.entries.len() + 1);
        let mut sum = 0;
        sums.push(sum);
        let prefix = self.prefix_len(&(0..self.entries.len()));
        for entry in &self.entries {
            let suffix = entry.key_len().saturating_sub(prefix);
            let suffix = (suffix, entry.rest.len());
            sum +=
                cell_size(self.leaf, suffix, entry.payload) + slot_bytes(self.leaf, self.page_size);
            sums.push(sum);
        }
        sums
    }

    /// Approximate length in bytes of the separator before entry `at`. A separator that may need an extent counts as at
    /// least a page, so that the choice of the split point avoids it.
    fn separator_len(&self, at: usize) -> usize {
        let entry = &self.entries[at];
        if !self.leaf {
            return entry.key_len() + entry.rest.len() * self.page_size;
        }
        match self.plain_separator_len(at) {
            Some(len) => len,
            None => self.page_size,
        }
    }

    /// Leaf only: length in bytes of the separator before entry `at`; `None` if the separator depends on key bytes that
    /// are stored outside the page.
    fn plain_separator_len(&self, at: usize) -> Option<usize> {
        debug_assert!(at > 0, "a separator has an entry before it");
        let (before, entry) = (&self.entries[at - 1], &self.entries[at]);
        let common = entry.common(before);
        let decided = |entry: &Entry<'_>| entry.rest.is_empty() || common < entry.key_len();
        (decided(before) && decided(entry)).then_some(common + 1)
    }

    /// The shortest key that is above every key before entry `at` and not above any key from `at` on. `None` if the two
    /// neighbouring keys differ only in bytes stored outside the page; see `whole_key`.
    pub(crate) fn separator(&self, at: usize) -> Option<KeyBuf> {
        debug_assert!(0 < at && at < self.entries.len(), "both pages have entries");
        let entry = &self.entries[at];
        let inline = [entry.key.0, entry.key.1].concat();
        if !self.leaf {
            let rest = entry.rest.to_vec();
            return Some(KeyBuf { inline, rest });
        }
        let mut inline = inline;
        inline.truncate(self.plain_separator_len(at)?);
        Some(KeyBuf::plain(inline))
    }

    /// The complete key of entry `at`, including bytes that are stored outside the page.
    pub(crate) fn whole_key(&self, r: &dyn PageRead, at: usize) -> Result<Vec<u8>> {
        let entry = &self.entries[at];
        let mut key = [entry.key.0, entry.key.1].concat();
        if !entry.rest.is_empty() {
            read_rest(r, entry.rest, 0, &mut key)?;
        }
        Ok(key)
    }

    /// Writes exactly this range of entries into `page`; the caller must know that the range fits.
    pub(crate) fn write(&self, range: Range<usize>, level: u8, page: &mut [u8]) {
        debug_assert!(self.leaf == (level == 0), "entries of this level");
        assert!(!range.is_empty(), "no page without entries is written");
        let prefix = self.prefix_len(&range);
        let keyed = self.keyed(&range).start;
        let heads_at = PREFIX_AT + prefix;
        edit::init(page, level, prefix);
        if prefix > 0 {
            let (first, second) = self.entries[keyed].key;
            let from_first = prefix.min(first.len());
            let (to_first, to_second) = page[PREFIX_AT..heads_at].split_at_mut(from_first);
            to_first.copy_from_slice(&first[..from_first]);
            to_second.copy_from_slice(&second[..prefix - from_first]);
        }
        let count = range.len();
        let slots_end = heads_at + count * slot_bytes(self.leaf, page.len());
        let mut heap = page.len();
        for (slot, index) in range.enumerate() {
            let entry = &self.entries[index];
            let (suffix, rest): ((&[u8], &[u8]), &[u8]) = if index < keyed {
                ((&[], &[]), &[])
            } else {
                (entry.key_after(prefix), entry.rest)
            };
            let suffix_len = suffix.0.len() + suffix.1.len();
            heap -= cell_size(self.leaf, (suffix_len, rest.len()), entry.payload);
            put_cell(page, heap, self.leaf, suffix, rest, entry.payload);
            let (head, child) = (head_of_two(suffix), entry.payload.bytes);
            put_slot(page, heads_at, (slot, count), self.leaf, head, child, heap);
        }
        assert!(slots_end <= heap, "the caller asks what fits");
        page[slots_end..heap].fill(0);
        put_u32(page, HEAP_AT, small(heap));
        debug_assert!(count <= usize::from(u16::MAX), "the count has two bytes");
        put_u16(page, COUNT_AT, count as u16);
    }
}

fn head_of_two((first, second): (&[u8], &[u8])) -> u32 {
    if first.is_empty() {
        return head_of(second);
    }
    let mut head = [0u8; 4];
    for (to, from) in head.iter_mut().zip(first.iter().chain(second)) {
        *to = *from;
    }
    head_of(&head)
}
