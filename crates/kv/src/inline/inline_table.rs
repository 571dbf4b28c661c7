//! Inline table: a small nested table whose entries lie contiguously inside the leaf cell of its parent.
//!
//! ```text
//! form 0:  | 0 u8 | entries varint | cells: key length varint | tag varint | key | payload |
//! form 1:  | 1 u8 | entries varint | bytes of each key varint | keys, one after the other  |
//! ```
//!
//! Forms 2 and 3 are forms 0 and 1 for a table whose sequence has begun: the next sequence number, a u64, follows the
//! form byte.
//! Form 1 is for keys of one length without payloads: the duplicates of a table of sets, packed.
//! Tags have the same format as in a leaf; keys ascend strictly.

use crate::error::damaged;
use crate::inline::fixed_width::FixedWidthKeys;
use crate::page::layout::{Payload, VARINT_BYTES_MAX, tag, varint, varint_len};
use crate::page::row_count::{BEGUN, CELLS, PACKED, head};
use std::cmp::Ordering;
use tidalite_base::varint::push as push_varint;
use tidalite_pager::Result;

/// Maximum size of the page that a cursor builds in memory from an inline table, if offsets of two bytes suffice.
pub(crate) const PAGE_BYTES: usize = 1 << 16;

/// Maximum number of bytes that a new key without a payload adds to an inline table, besides the key itself: two
/// varints, and one byte if the entry count becomes longer.
const ENTRY_BYTES: usize = 2 * VARINT_BYTES_MAX + 1;

/// An entry of an inline table, with its own copy of key and payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InlineEntry {
    pub(crate) key: Vec<u8>,
    pub(crate) tag: u32,
    pub(crate) payload: Vec<u8>,
}

impl InlineEntry {
    pub(crate) fn payload(&self) -> Payload<'_> {
        Payload {
            tag: self.tag,
            bytes: &self.payload,
        }
    }
}

/// An inline table while it is changed: its entries in key order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct InlineTable {
    pub(crate) entries: Vec<InlineEntry>,
    /// The next number of the table's sequence.
    pub(crate) sequence: u64,
}

/// A borrowed entry of an inline table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InlineCell<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) tag: u32,
    pub(crate) payload: &'a [u8],
    /// Offset of the payload in the bytes of the inline table.
    pub(crate) payload_at: usize,
}

/// Iterator over the entries of an inline table; damage ends it with an error.
pub(crate) struct InlineCells<'a> {
    bytes: &'a [u8],
    at: usize,
    left: usize,
    /// Length in bytes of each key in the packed form (keys of one length, without payloads); `None` for the other
    /// form.
    packed: Option<usize>,
    last: Option<&'a [u8]>,
    leaf_at: u64,
}

/// The next number of the table's sequence; 0 if the sequence has not begun, or the bytes are invalid.
pub(crate) fn sequence(bytes: &[u8]) -> u64 {
    head(bytes).map_or(0, |(_, sequence, _)| sequence)
}

/// True if the table has the packed form, whose keys refer to no pages; false also for invalid bytes.
pub(crate) fn is_packed(bytes: &[u8]) -> bool {
    head(bytes).is_some_and(|(packed, _, _)| packed)
}

/// The keys of a table in the packed form, and the offset of the first key; `None` for the other form.
pub(crate) fn packed(bytes: &[u8], leaf_at: u64) -> Result<Option<(usize, FixedWidthKeys<'_>)>> {
    let all = cells(bytes, leaf_at)?;
    let Some(size) = all.packed else {
        return Ok(None);
    };
    // All keys are checked here, so that damaged keys are neither used nor written again.
    let keys = bytes.get(all.at..).unwrap_or_default();
    let keys = FixedWidthKeys::new(keys, size, all.left).filter(FixedWidthKeys::ascend);
    let keys = keys.ok_or_else(|| broken(leaf_at))?;
    Ok(Some((all.at, keys)))
}

/// Iterates over the entries of an inline table.
pub(crate) fn cells(bytes: &[u8], leaf_at: u64) -> Result<InlineCells<'_>> {
    let begin = || {
        let (packed, _, at) = head(bytes)?;
        let (count, at) = varint(bytes, at)?;
        let (packed, at) = match packed {
            false => (None, at),
            true => {
                let (size, at) = varint(bytes, at)?;
                (Some(size as usize), at)
            }
        };
        Some(InlineCells {
            bytes,
            at,
            left: count as usize,
            packed,
            last: None,
            leaf_at,
        })
    };
    begin().ok_or_else(|| broken(leaf_at))
}

#[cold]
fn broken(leaf_at: u64) -> tidalite_pager::Error {
    damaged(
        "nested table",
        leaf_at,
        "invalid bytes",
        "ascending entries",
    )
}

impl<'a> InlineCells<'a> {
    fn cell(&mut self) -> Option<InlineCell<'a>> {
        let (key_len, tag) = match self.packed {
            Some(size) => (size, 0),
            None => {
                let (key_len, at) = varint(self.bytes, self.at)?;
                let (tag, at) = varint(self.bytes, at)?;
                self.at = at;
                (key_len as usize, tag)
            }
        };
        let payload_at = self.at + key_len;
        let key = self.bytes.get(self.at..payload_at)?;
        let payload = self.bytes.get(payload_at..payload_at + tag::len(tag))?;
        self.at = payload_at + payload.len();
        if self.last.is_some_and(|last| last >= key) {
            return None;
        }
        self.last = Some(key);
        Some(InlineCell {
            key,
            tag,
            payload,
            payload_at,
        })
    }
}

impl<'a> Iterator for InlineCells<'a> {
    type Item = Result<InlineCell<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            let rest = self.bytes.len() - self.at.min(self.bytes.len());
            self.at = self.bytes.len();
            return (rest > 0).then(|| Err(broken(self.leaf_at)));
        }
        self.left -= 1;
        let cell = self.cell();
        if cell.is_none() {
            self.left = 0;
            self.at = self.bytes.len();
        }
        Some(cell.ok_or_else(|| broken(self.leaf_at)))
    }
}

/// The entry with this key; `None` if it does not exist. Cost: reads the entries before it.
pub(crate) fn find<'a>(
    bytes: &'a [u8],
    key: &[u8],
    leaf_at: u64,
) -> Result<Option<InlineCell<'a>>> {
    for cell in cells(bytes, leaf_at)? {
        let cell = cell?;
        match cell.key.cmp(key) {
            Ordering::Less => {}
            Ordering::Equal => return Ok(Some(cell)),
            Ordering::Greater => break,
        }
    }
    Ok(None)
}

/// Result of adding one key to an inline table.
pub(crate) enum KeyAdded {
    /// The key exists already; nothing is added.
    There,
    New {
        bytes: Vec<u8>,
        /// True if the key is above all other keys of the table.
        last: bool,
    },
}

/// Adds a key without a payload to the bytes of an inline table. If the form stays the same, the entries are copied
/// without decoding.
pub(crate) fn add_key(bytes: &[u8], key: &[u8], leaf_at: u64) -> Result<KeyAdded> {
    let (begin, count, size, at) = match packed(bytes, leaf_at)? {
        Some((begin, keys)) => match keys.place(key) {
            Ok(_) => return Ok(KeyAdded::There),
            Err(place) => {
                let size = keys.size();
                (begin, keys.count(), Some(size), begin + place * size)
            }
        },
        None => {
            let all = cells(bytes, leaf_at)?;
            let (begin, count) = (all.at, all.left);
            match place(all, key)? {
                Some(at) => (begin, count, None, at),
                None => return Ok(KeyAdded::There),
            }
        }
    };
    debug_assert!(
        begin <= at && at <= bytes.len(),
        "a position among the entries"
    );
    let last = at == bytes.len();
    let stays = count > 1 && size.is_none_or(|size| size == key.len());
    let Some((_, _, count_at)) = head(bytes).filter(|_| stays) else {
        let mut small = InlineTable::decode(bytes, leaf_at)?;
        small.put(InlineEntry {
            key: key.to_vec(),
            tag: 0,
            payload: Vec::new(),
        });
        let bytes = small.encode();
        return Ok(KeyAdded::New { bytes, last });
    };
    let mut with = Vec::with_capacity(bytes.len() + key.len() + ENTRY_BYTES);
    with.extend_from_slice(&bytes[..count_at]);
    push_varint(&mut with, count as u64 + 1);
    if let Some(size) = size {
        push_varint(&mut with, size as u64);
    }
    with.extend_from_slice(&bytes[begin..at]);
    if size.is_none() {
        push_varint(&mut with, key.len() as u64);
        push_varint(&mut with, 0);
    }
    with.extend_from_slice(key);
    with.extend_from_slice(&bytes[at..]);
    debug_assert!(
        is_packed(&with) == size.is_some(),
        "the form stays the same"
    );
    Ok(KeyAdded::New { bytes: with, last })
}

/// Offset of the first entry above a key, or the end of the entries; `None` if the key exists. Checks all entries, so
/// that damaged entries are not written again.
fn place(mut all: InlineCells<'_>, key: &[u8]) -> Result<Option<usize>> {
    let mut place = None;
    loop {
        let at = all.at;
        let Some(cell) = all.next() else {
            return Ok(Some(place.unwrap_or(all.bytes.len())));
        };
        match cell?.key.cmp(key) {
            Ordering::Equal => return Ok(None),
            Ordering::Greater if place.is_none() => place = Some(at),
            _ => {}
        }
    }
}

/// Ascending keys without payloads that are collected to become an inline table.
#[derive(Default)]
pub(crate) struct KeyList {
    bytes: Vec<u8>,
    /// End offset of each key in the collected bytes.
    ends: Vec<usize>,
    /// True if some key differs in length from the first key.
    uneven: bool,
    /// Number of bytes that the encoded key lengths take; used only if the key lengths differ.
    lengths: usize,
}

impl KeyList {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        (self.uneven, self.lengths) = (false, 0);
    }

    /// Adds a key, which must be above all keys collected so far.
    pub(crate) fn push(&mut self, key: &[u8]) {
        debug_assert!(self.last().is_none_or(|last| last < key), "keys ascend");
        self.uneven |= self.ends.first().is_some_and(|first| *first != key.len());
        self.lengths += varint_len(key.len() as u32);
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn last(&self) -> Option<&[u8]> {
        let before = self.ends.iter().rev().nth(1).copied().unwrap_or(0);
        (!self.ends.is_empty()).then(|| &self.bytes[before..])
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        let places = begins.zip(&self.ends);
        places.map(|(begin, end)| &self.bytes[begin..*end])
    }

    /// Length in bytes of the result of `encode`.
    pub(crate) fn encoded_len(&self) -> usize {
        let each = match self.packed() {
            Some(size) => varint_len(size as u32),
            None => self.lengths + self.len(),
        };
        1 + varint_len(self.len() as u32) + each + self.bytes.len()
    }

    fn packed(&self) -> Option<usize> {
        let size = self.ends.first().filter(|_| !self.uneven && self.len() > 1);
        size.copied()
    }

    /// Encodes the collected keys into the same bytes as `InlineTable::encode` would.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.encoded_len());
        let packed = self.packed();
        push_head(&mut bytes, packed, 0, self.len());
        match packed {
            Some(_) => bytes.extend_from_slice(&self.bytes),
            None => self.iter().for_each(|key| {
                push_varint(&mut bytes, key.len() as u64);
                push_varint(&mut bytes, 0);
                bytes.extend_from_slice(key);
            }),
        }
        debug_assert!(
            bytes.len() == self.encoded_len(),
            "the length was predicted"
        );
        bytes
    }
}

/// Writes the header of an inline table: the form, the sequence number if it has begun, and the number of entries.
fn push_head(bytes: &mut Vec<u8>, packed: Option<usize>, sequence: u64, count: usize) {
    debug_assert!(packed.is_none() || count > 1, "a single key is not packed");
    let begun = if sequence > 0 { BEGUN } else { 0 };
    bytes.push(begun | if packed.is_some() { PACKED } else { CELLS });
    if sequence > 0 {
        bytes.extend_from_slice(&sequence.to_le_bytes());
    }
    push_varint(bytes, count as u64);
    if let Some(size) = packed {
        push_varint(bytes, size as u64);
    }
}

impl InlineTable {
    pub(crate) fn decode(bytes: &[u8], leaf_at: u64) -> Result<Self> {
        let mut entries = Vec::new();
        for cell in cells(bytes, leaf_at)? {
            let cell = cell?;
            entries.push(InlineEntry {
                key: cell.key.to_vec(),
                tag: cell.tag,
                payload: cell.payload.to_vec(),
            });
        }
        let sequence = sequence(bytes);
        Ok(Self { entries, sequence })
    }

    /// Length in bytes of each key if the packed form applies; otherwise `None`.
    fn packed(&self) -> Option<usize> {
        let size = self.entries.first()?.key.len();
        let same = |entry: &InlineEntry| entry.key.len() == size && entry.tag == 0;
        (self.entries.len() > 1 && self.entries.iter().all(same)).then_some(size)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        debug_assert!(
            self.entries.is_sorted_by(|a, b| a.key < b.key),
            "keys ascend strictly"
        );
        let mut bytes = Vec::with_capacity(self.encoded_len());
        let packed = self.packed();
        push_head(&mut bytes, packed, self.sequence, self.entries.len());
        for entry in &self.entries {
            if packed.is_none() {
                push_varint(&mut bytes, entry.key.len() as u64);
                push_varint(&mut bytes, entry.tag.into());
            }
            bytes.extend_from_slice(&entry.key);
            bytes.extend_from_slice(&entry.payload);
        }
        debug_assert!(
            bytes.len() == self.encoded_len(),
            "the length was predicted"
        );
        bytes
    }

    /// Length in bytes of the result of `encode`.
    pub(crate) fn encoded_len(&self) -> usize {
        let cell = |entry: &InlineEntry| {
            varint_len(entry.key.len() as u32)
                + varint_len(entry.tag)
                + entry.key.len()
                + entry.payload.len()
        };
        let cells = match self.packed() {
            Some(size) => varint_len(size as u32) + size * self.entries.len(),
            None => self.entries.iter().map(cell).sum(),
        };
        let begun = if self.sequence > 0 { 8 } else { 0 };
        1 + begun + varint_len(self.entries.len() as u32) + cells
    }

    pub(crate) fn place(&self, key: &[u8]) -> std::result::Result<usize, usize> {
        self.entries
            .binary_search_by(|entry| entry.key.as_slice().cmp(key))
    }

    /// Inserts an entry; returns the previous entry with this key.
    pub(crate) fn put(&mut self, entry: InlineEntry) -> Option<InlineEntry> {
        debug_assert!(
            tag::len(entry.tag) == entry.payload.len(),
            "the tag has the length"
        );
        match self.place(&entry.key) {
            Ok(at) => Some(std::mem::replace(&mut self.entries[at], entry)),
            Err(at) => {
                self.entries.insert(at, entry);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidalite_testkit::rng::Rng;

    /// Adding keys by copying bytes, collecting keys one by one, and encoding the entries anew give the same bytes and
    /// the predicted length.
    #[test]
    fn all_writers_of_an_inline_set_give_the_same_bytes() {
        for seed in 0..if cfg!(miri) { 3 } else { 300 } {
            let mut rng = Rng::new(seed);
            let lens = if rng.one_in(3) { 3 } else { 1 };
            let mut small = InlineTable {
                sequence: rng.below(2) * 7,
                ..InlineTable::default()
            };
            let mut bytes = small.encode();
            for _ in 0..1 + rng.below(200) {
                let mut key = vec![0; 2 + rng.index(lens)];
                rng.fill(&mut key);
                let last = small.entries.last().is_none_or(|last| last.key < key);
                let entry = InlineEntry {
                    key: key.clone(),
                    tag: 0,
                    payload: Vec::new(),
                };
                let was = small.put(entry).is_some();
                match add_key(&bytes, &key, 0).unwrap() {
                    KeyAdded::There => assert!(was, "seed {seed}"),
                    KeyAdded::New {
                        bytes: new,
                        last: told,
                    } => {
                        assert_eq!((was, told), (false, last), "seed {seed}");
                        bytes = new;
                    }
                }
                assert_eq!(bytes, small.encode(), "seed {seed}");
                assert_eq!(bytes.len(), small.encoded_len());
            }
            small.sequence = 0;
            let mut keys = KeyList::default();
            small.entries.iter().for_each(|entry| keys.push(&entry.key));
            assert_eq!(keys.encode(), small.encode(), "seed {seed}");
            assert_eq!(keys.encoded_len(), small.encoded_len());
            assert_eq!(keys.last(), small.entries.last().map(|last| &last.key[..]));
            assert!(
                keys.iter()
                    .eq(small.entries.iter().map(|entry| &entry.key[..]))
            );
        }
    }

    #[test]
    fn adding_a_key_to_damaged_bytes_fails() {
        for bytes in [
            &b""[..],
            b"\x04\x00",
            b"\x01\x02\x02bbaa",
            b"\x01\x02\x02aabbc",
            b"\x01\x03\x02aabb",
        ] {
            assert!(add_key(bytes, b"zz", 0).is_err(), "{bytes:?}");
        }
    }
}
