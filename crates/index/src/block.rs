//! A block: entries in ascending order of their keys, stored as the value of one table row.
//!
//! ```text
//! 0   | key bytes u16 | payload bytes u16 | entries u32 | head of the last key u64 |
//! 16  entries of equal size: | key | payload | one after the other
//!     others (both sizes are 0xffff): the end of each entry, u32 each, counted from the end of this list;
//!     then the entries: | key bytes u16 | key | payload |
//! ```
//!
//! The head of a key is its first 8 bytes as a big-endian number; shorter keys are padded with zeros. In a block whose
//! entries have equal sizes, an entry is found by interpolation between heads, because keys are often hashes or numbers
//! that are spread evenly.
//!
//! Invariants:
//! 1. Keys ascend; equal keys are adjacent, the oldest entry first.
//! 2. A block has at least one entry. The form with equal sizes is used whenever it fits.

use tidalite_base::{Corrupt, get_u16, get_u32, get_u64};
use tidalite_pager::{Error, Result};

const HEAD_BYTES: usize = 16;
/// Marks a block whose entries differ in size; it is stored in place of both sizes. Keys are shorter than this.
const VARYING: u16 = u16::MAX;
/// Bytes that each entry of varying size takes in addition to its key and payload.
const VARYING_COST: usize = 4 + 2;

/// One entry of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) payload: &'a [u8],
}

/// A block whose header has been checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block<'a> {
    /// The bytes after the header.
    body: &'a [u8],
    count: usize,
    /// Length in bytes of a key and of an entry, if all entries have the same sizes; `None` for entries of varying
    /// size.
    equal: Option<(usize, usize)>,
    /// The head of the last key.
    last: u64,
}

#[cold]
pub(crate) fn damaged(found: impl std::fmt::Display, expected: &str) -> Error {
    Corrupt::new("block of an index", 0, found, expected).into()
}

#[cold]
pub(crate) fn out_of_order(key: &[u8]) -> Error {
    let found = key.escape_ascii().to_string();
    Corrupt::new("keys of an index", 0, found, "keys that ascend").into()
}

impl<'a> Block<'a> {
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self> {
        let Some((head, body)) = bytes.split_first_chunk::<HEAD_BYTES>() else {
            return Err(damaged(format!("{} bytes", bytes.len()), "16 at least"));
        };
        let (key, payload) = (get_u16(head, 0), get_u16(head, 2));
        let count = get_u32(head, 4) as usize;
        let equal =
            (key != VARYING).then(|| (usize::from(key), usize::from(key) + usize::from(payload)));
        let fits = match equal {
            Some((_, entry)) => entry.checked_mul(count) == Some(body.len()) && entry > 0,
            None => {
                payload == VARYING && count.checked_mul(4).is_some_and(|ends| ends < body.len())
            }
        };
        if count == 0 || !fits {
            let found = format!(
                "{count} entries of {key} and {payload} in {} bytes",
                body.len()
            );
            return Err(damaged(found, "entries that fill the block"));
        }
        let last = get_u64(head, 8);
        Ok(Self {
            body,
            count,
            equal,
            last,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Whether `key` is the last key of the block according to the header.
    pub(crate) fn ends_with(&self, key: &[u8]) -> bool {
        self.last == head(key)
    }

    /// The entry at `index`, which must be less than `len`.
    #[inline]
    pub(crate) fn entry(&self, index: usize) -> Result<Entry<'a>> {
        match self.equal {
            Some((key, entry)) => {
                let bytes = &self.body[index * entry..(index + 1) * entry];
                let (key, payload) = bytes.split_at(key);
                Ok(Entry { key, payload })
            }
            None => self.varying(index),
        }
    }

    fn varying(&self, index: usize) -> Result<Entry<'a>> {
        let (ends, entries) = self.body.split_at(self.count * 4);
        let end_of = |index: usize| get_u32(ends, index * 4) as usize;
        let start = if index == 0 { 0 } else { end_of(index - 1) };
        let bytes = entries.get(start..end_of(index)).unwrap_or_default();
        let parts = bytes.split_first_chunk::<2>().and_then(|(len, rest)| {
            let len = usize::from(u16::from_le_bytes(*len));
            rest.split_at_checked(len)
        });
        match parts {
            Some((key, payload)) => Ok(Entry { key, payload }),
            None => Err(damaged(
                format!("an entry at {start}"),
                "a key and a payload",
            )),
        }
    }

    /// Index of the first entry whose key is `key` or greater; `len` if no such entry exists.
    pub(crate) fn lower_bound(&self, key: &[u8]) -> Result<usize> {
        match self.equal {
            Some((width, entry)) => Ok(self.interpolate(key, width, entry)),
            None => self.bisect(key, 0, self.count),
        }
    }

    fn bisect(&self, key: &[u8], mut from: usize, mut to: usize) -> Result<usize> {
        while from < to {
            let middle = from.midpoint(to);
            if self.entry(middle)?.key < key {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        Ok(from)
    }

    /// The index at which a key is expected if keys are spread evenly.
    fn guess(&self, key: &[u8], width: usize) -> usize {
        let last = self.count - 1;
        let (low, head) = (head(&self.body[..width]), head(key));
        match (head.checked_sub(low), self.last.checked_sub(low)) {
            (Some(above), Some(span)) if above < span => {
                // The result is exact for all but the longest spans. A division of 128 bits would take longer than the
                // search.
                let share = above as f64 / span as f64;
                ((share * last as f64) as usize).min(last)
            }
            (Some(_), _) => last,
            (None, _) => 0,
        }
    }

    /// `lower_bound` among keys of equal length. It guesses a position from the heads, moves from there in steps of
    /// growing length, and ends with a bisection. This takes a constant number of steps for keys that are spread
    /// evenly, and a logarithmic number for others.
    fn interpolate(&self, key: &[u8], width: usize, entry: usize) -> usize {
        let key_at = |index: usize| &self.body[index * entry..index * entry + width];
        let less = |index: usize| key_at(index) < key;
        let guess = self.guess(key, width);
        // All entries before `from` are less than the key, and no entry at or after `to` is.
        let (mut from, mut to);
        let mut step = 4;
        if less(guess) {
            (from, to) = (guess + 1, self.count);
            while from + step < to {
                if less(from + step) {
                    from += step + 1;
                    step *= 2;
                } else {
                    to = from + step;
                    break;
                }
            }
        } else {
            (from, to) = (0, guess);
            while to > from + step {
                if less(to - step) {
                    from = to - step + 1;
                    break;
                }
                to -= step;
                step *= 2;
            }
        }
        while from < to {
            let middle = from.midpoint(to);
            if less(middle) {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        from
    }
}

/// The first 8 bytes of a key as a number that sorts like them.
pub(crate) fn head(key: &[u8]) -> u64 {
    match key.first_chunk::<8>() {
        Some(head) => u64::from_be_bytes(*head),
        None => {
            let mut head = [0; 8];
            head[..key.len()].copy_from_slice(key);
            u64::from_be_bytes(head)
        }
    }
}

/// Collects entries and encodes them as a block.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockBuilder {
    /// Keys and payloads, one after the other.
    bytes: Vec<u8>,
    /// The end of each key and of each payload in `bytes`.
    ends: Vec<(u32, u32)>,
    /// The sizes of key and payload, as long as all entries have the same sizes.
    equal: Option<(usize, usize)>,
}

impl BlockBuilder {
    pub(crate) fn push(&mut self, key: &[u8], payload: &[u8]) {
        let sizes = (key.len(), payload.len());
        if self.ends.is_empty() {
            self.equal = Some(sizes);
        } else if self.equal != Some(sizes) {
            self.equal = None;
        }
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len() as u32;
        self.bytes.extend_from_slice(payload);
        self.ends.push((key_end, self.bytes.len() as u32));
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Length in bytes of the keys and payloads so far.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Length in bytes of the block that `finish` returns.
    pub(crate) fn block_bytes(&self) -> usize {
        let each = if self.equal.is_some() {
            0
        } else {
            VARYING_COST
        };
        HEAD_BYTES + self.bytes.len() + each * self.ends.len()
    }

    pub(crate) fn entry(&self, index: usize) -> Entry<'_> {
        let start = match index {
            0 => 0,
            index => self.ends[index - 1].1 as usize,
        };
        let (key_end, end) = self.ends[index];
        Entry {
            key: &self.bytes[start..key_end as usize],
            payload: &self.bytes[key_end as usize..end as usize],
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Entry<'_>> {
        (0..self.len()).map(|index| self.entry(index))
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// The block of all entries, which must be ascending. At least one entry is required.
    pub(crate) fn encode(&self) -> Vec<u8> {
        debug_assert!(self.iter().is_sorted_by(|a, b| a.key <= b.key));
        let mut block = Vec::with_capacity(self.block_bytes());
        let sizes = match self.equal {
            Some((key, payload)) if payload < usize::from(VARYING) => (key as u16, payload as u16),
            _ => (VARYING, VARYING),
        };
        block.extend_from_slice(&sizes.0.to_le_bytes());
        block.extend_from_slice(&sizes.1.to_le_bytes());
        block.extend_from_slice(&(self.len() as u32).to_le_bytes());
        let last = self.len().checked_sub(1).map(|last| self.entry(last).key);
        block.extend_from_slice(&head(last.unwrap_or_default()).to_le_bytes());
        if sizes.0 != VARYING {
            block.extend_from_slice(&self.bytes);
            return block;
        }
        let mut start = 0;
        for (index, (_, end)) in self.ends.iter().enumerate() {
            let end_there = end + 2 * (index as u32 + 1);
            block.extend_from_slice(&end_there.to_le_bytes());
        }
        for (key_end, end) in &self.ends {
            let key_len = (key_end - start) as u16;
            block.extend_from_slice(&key_len.to_le_bytes());
            block.extend_from_slice(&self.bytes[start as usize..*end as usize]);
            start = *end;
        }
        block
    }
}
