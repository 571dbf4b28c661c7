//! A nested table that is small: its entries in one stretch of bytes, inside the leaf cell of its parent.
//!
//! ```text
//! form 0:  | 0 u8 | entries varint | cells: key length varint | tag varint | key | payload |
//! form 1:  | 1 u8 | entries varint | bytes of each key varint | keys, one after the other  |
//! ```
//!
//! Forms 2 and 3 are these two of a table whose sequence has begun: its next number, a u64, stands behind the form.
//! Form 1 is for keys of one length without payloads: the duplicates of a table of multi-values, packed.
//! Tags are those of a leaf; keys ascend strictly.

use crate::edit::Payload;
use crate::node::{damaged, tag, varint, varint_len};
use std::cmp::Ordering;
use tidalite_pager::Result;

/// Bytes of the page that a small table becomes in memory, where offsets of two bytes reach.
pub(crate) const PAGE_BYTES: usize = 1 << 16;

const CELLS: u8 = 0;
const PACKED: u8 = 1;
/// The sequence has begun.
const BEGUN: u8 = 2;

/// An entry of a small table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SmallEntry {
    pub(crate) key: Vec<u8>,
    pub(crate) tag: u32,
    pub(crate) payload: Vec<u8>,
}

impl SmallEntry {
    pub(crate) fn payload(&self) -> Payload<'_> {
        Payload {
            tag: self.tag,
            bytes: &self.payload,
        }
    }
}

/// A small table while it is changed: entries in key order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Small {
    pub(crate) entries: Vec<SmallEntry>,
    /// The next number of its sequence.
    pub(crate) sequence: u64,
}

/// An entry where it lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SmallCell<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) tag: u32,
    pub(crate) payload: &'a [u8],
    /// Where the payload begins.
    pub(crate) payload_at: usize,
}

/// The entries of a small table, one after the other; damage ends it with an error.
pub(crate) struct SmallCells<'a> {
    bytes: &'a [u8],
    at: usize,
    left: usize,
    /// Bytes of each key of the packed form.
    packed: Option<usize>,
    last: Option<&'a [u8]>,
    leaf_at: u64,
}

/// How many entries a small table says that it has.
pub(crate) fn count(bytes: &[u8]) -> u64 {
    let count = head(bytes).and_then(|(_, _, at)| varint(bytes, at));
    count.map_or(0, |(count, _)| u64::from(count))
}

/// The next number of its sequence; 0 also for bytes that are no table.
pub(crate) fn sequence(bytes: &[u8]) -> u64 {
    head(bytes).map_or(0, |(_, sequence, _)| sequence)
}

/// Whether the keys are packed, the sequence, and where the number of entries stands.
fn head(bytes: &[u8]) -> Option<(bool, u64, usize)> {
    let form = *bytes.first()?;
    let (sequence, at) = match form & BEGUN {
        0 => (0, 1),
        _ => (u64::from_le_bytes(*bytes[1..].first_chunk()?), 9),
    };
    let known = form <= BEGUN | PACKED && (sequence > 0) == (form & BEGUN != 0);
    known.then_some((form & PACKED != 0, sequence, at))
}

/// The entries of a small table.
pub(crate) fn cells(bytes: &[u8], leaf_at: u64) -> Result<SmallCells<'_>> {
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
        Some(SmallCells {
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
        "bytes that are none",
        "ascending entries",
    )
}

impl<'a> SmallCells<'a> {
    fn cell(&mut self) -> Option<SmallCell<'a>> {
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
        Some(SmallCell {
            key,
            tag,
            payload,
            payload_at,
        })
    }
}

impl<'a> Iterator for SmallCells<'a> {
    type Item = Result<SmallCell<'a>>;

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

/// The entry with this key. Cost: the entries before it.
pub(crate) fn find<'a>(bytes: &'a [u8], key: &[u8], leaf_at: u64) -> Result<Option<SmallCell<'a>>> {
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

impl Small {
    pub(crate) fn decode(bytes: &[u8], leaf_at: u64) -> Result<Self> {
        let mut entries = Vec::new();
        for cell in cells(bytes, leaf_at)? {
            let cell = cell?;
            entries.push(SmallEntry {
                key: cell.key.to_vec(),
                tag: cell.tag,
                payload: cell.payload.to_vec(),
            });
        }
        let sequence = sequence(bytes);
        Ok(Self { entries, sequence })
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let size = self.entries.first().map_or(0, |entry| entry.key.len());
        let packed = self.entries.len() > 1
            && self
                .entries
                .iter()
                .all(|entry| entry.key.len() == size && entry.tag == 0);
        let form = if packed { PACKED } else { CELLS };
        let mut bytes = vec![form];
        if self.sequence > 0 {
            bytes[0] |= BEGUN;
            bytes.extend_from_slice(&self.sequence.to_le_bytes());
        }
        push_varint(&mut bytes, self.entries.len());
        if packed {
            push_varint(&mut bytes, size);
        }
        for entry in &self.entries {
            if !packed {
                push_varint(&mut bytes, entry.key.len());
                push_varint(&mut bytes, entry.tag as usize);
            }
            bytes.extend_from_slice(&entry.key);
            bytes.extend_from_slice(&entry.payload);
        }
        bytes
    }

    /// Bytes of `encode` at most.
    pub(crate) fn encoded_len(&self) -> usize {
        let cell = |entry: &SmallEntry| {
            varint_len(entry.key.len() as u32)
                + varint_len(entry.tag)
                + entry.key.len()
                + entry.payload.len()
        };
        let begun = if self.sequence > 0 { 8 } else { 0 };
        1 + begun
            + varint_len(self.entries.len() as u32)
            + self.entries.iter().map(cell).sum::<usize>()
    }

    pub(crate) fn place(&self, key: &[u8]) -> std::result::Result<usize, usize> {
        self.entries
            .binary_search_by(|entry| entry.key.as_slice().cmp(key))
    }

    /// Puts an entry in; returns the one that had its key.
    pub(crate) fn put(&mut self, entry: SmallEntry) -> Option<SmallEntry> {
        match self.place(&entry.key) {
            Ok(at) => Some(std::mem::replace(&mut self.entries[at], entry)),
            Err(at) => {
                self.entries.insert(at, entry);
                None
            }
        }
    }
}

fn push_varint(bytes: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}
