//! Sets of numbers under byte keys, stored in a table with one row for each container of a set.
//!
//! ```text
//! key      the key of the set | number >> 16, u32 big-endian
//! value    see container.rs
//! ```
//!
//! Invariants:
//! 1. No key of a set is a prefix of another one, so the rows of a set are adjacent. The caller must ensure this.
//! 2. Numbers are less than `NUMBERS_MAX`.
//! 3. No container is empty: a set without members has no row.
//! 4. A container is stored exactly as `container::encode` encodes its members.

use crate::postings::changes::Changes;
use crate::postings::container;
use roaring::{RoaringBitmap, RoaringTreemap};
use tidalite_base::Corrupt;
use tidalite_kv::{Cursor, TableReader, TableWriter};
use tidalite_pager::{Error, PageRead, PageWrite, Result};

/// Numbers in a set are below this value.
pub const NUMBERS_MAX: u64 = 1 << 48;

/// Length in bytes of the number of the container at the end of a row's key.
const BLOCK_BYTES: usize = 4;

pub(crate) fn row_key(key: &[u8], block: u32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(key.len() + BLOCK_BYTES);
    bytes.extend_from_slice(key);
    bytes.extend_from_slice(&block.to_be_bytes());
    bytes
}

/// Splits the key of a row into the key of the set and the number of the container.
pub(crate) fn parse(row: &[u8]) -> Result<(&[u8], u32)> {
    let (key, block) = row.split_last_chunk::<BLOCK_BYTES>().ok_or_else(|| {
        let found = format!("a key of {} bytes", row.len());
        Error::from(Corrupt::new("postings", 0, found, "4 bytes at least"))
    })?;
    Ok((key, u32::from_be_bytes(*block)))
}

/// Calls `each` with the containers of a set, in ascending order.
fn each_container<'r, R: PageRead>(
    table: impl Into<TableReader<'r>>,
    r: &'r R,
    key: &[u8],
    each: &mut dyn FnMut(u32, &[u8]) -> Result<()>,
) -> Result<()> {
    let mut cursor = table.into().cursor(r)?;
    let mut there = cursor.seek_ge(&row_key(key, 0))?;
    while there {
        let (own, block) = parse(cursor.key())?;
        if own != key {
            break;
        }
        each(block, &cursor.value()?.bytes()?)?;
        there = cursor.next()?;
    }
    Ok(())
}

/// Reads a set; a key without members gives the empty set. Cost: one row for each container.
///
/// # Errors
/// A damaged or unreadable page.
pub fn get<'r, R: PageRead>(
    table: impl Into<TableReader<'r>>,
    r: &'r R,
    key: &[u8],
) -> Result<RoaringTreemap> {
    let mut all = Collected::default();
    each_container(table, r, key, &mut |block, bytes| all.push(block, bytes))?;
    Ok(RoaringTreemap::from_bitmaps(all.0))
}

/// Reads those members of a set that are in the same blocks of 65,536 numbers as members of `within`: enough to
/// intersect the set with `within`, or to subtract it. Cost: one row for each of these blocks.
///
/// # Errors
/// As for `get`.
pub fn get_within<'r, R: PageRead>(
    table: impl Into<TableReader<'r>>,
    r: &'r R,
    key: &[u8],
    within: &RoaringTreemap,
) -> Result<RoaringTreemap> {
    let table = table.into();
    let mut all = Collected::default();
    for block in blocks_of(within) {
        if let Some(value) = table.get(r, &row_key(key, block))? {
            all.push(block, &value.bytes()?)?;
        }
    }
    Ok(RoaringTreemap::from_bitmaps(all.0))
}

/// Containers in ascending order, joined into one bitmap for each 2^32 numbers.
#[derive(Default)]
struct Collected(Vec<(u32, RoaringBitmap)>);

impl Collected {
    fn push(&mut self, block: u32, bytes: &[u8]) -> Result<()> {
        let members = container::decode(block, bytes)?;
        match self.0.last_mut() {
            Some((high, bitmap)) if *high == block >> 16 => *bitmap |= members,
            _ => self.0.push((block >> 16, members)),
        }
        Ok(())
    }
}

/// Number of members of a set, without decoding them.
///
/// # Errors
/// As for `get`.
pub fn count<'r, R: PageRead>(
    table: impl Into<TableReader<'r>>,
    r: &'r R,
    key: &[u8],
) -> Result<u64> {
    let mut count = 0;
    each_container(table, r, key, &mut |block, bytes| {
        count += container::count(block, bytes)?;
        Ok(())
    })?;
    Ok(count)
}

/// The members in the first container of a set; `None` for an empty set.
pub(crate) fn first_container<'r, R: PageRead>(
    table: impl Into<TableReader<'r>>,
    r: &'r R,
    key: &[u8],
) -> Result<Option<RoaringTreemap>> {
    let mut cursor = table.into().cursor(r)?;
    if !cursor.seek_ge(&row_key(key, 0))? {
        return Ok(None);
    }
    let (own, block) = parse(cursor.key())?;
    if own != key {
        return Ok(None);
    }
    let mut all = Collected::default();
    all.push(block, &cursor.value()?.bytes()?)?;
    Ok(Some(RoaringTreemap::from_bitmaps(all.0)))
}

/// The greatest member of a set for which `wanted` returns true. Cost: one row for each container down to this member.
pub(crate) fn last_where<'r, R: PageRead>(
    table: impl Into<TableReader<'r>>,
    r: &'r R,
    key: &[u8],
    wanted: &mut dyn FnMut(u64) -> Result<bool>,
) -> Result<Option<u64>> {
    let mut cursor = table.into().cursor(r)?;
    let mut there = cursor.seek_le(&row_key(key, u32::MAX))?;
    while there {
        let (own, block) = parse(cursor.key())?;
        if own != key {
            break;
        }
        let members = container::decode(block, &cursor.value()?.bytes()?)?;
        for low in members.iter().rev() {
            let number = u64::from(block >> 16) << 32 | u64::from(low);
            if wanted(number)? {
                return Ok(Some(number));
            }
        }
        there = cursor.previous()?;
    }
    Ok(None)
}

/// A cursor over the sets of a table, in the order of their keys.
pub struct SetCursor<'r, R: PageRead> {
    cursor: Cursor<'r, R>,
    key: Vec<u8>,
}

/// A cursor at the first set whose key is `from` or greater; `None` if no such set exists.
///
/// # Errors
/// As for `get`.
pub fn set_cursor<'r, R: PageRead>(
    table: impl Into<TableReader<'r>>,
    r: &'r R,
    from: &[u8],
) -> Result<Option<SetCursor<'r, R>>> {
    let mut cursor = table.into().cursor(r)?;
    if !cursor.seek_ge(from)? {
        return Ok(None);
    }
    let key = parse(cursor.key())?.0.to_vec();
    Ok(Some(SetCursor { cursor, key }))
}

impl<R: PageRead> SetCursor<'_, R> {
    /// Key of this set.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Adds the members of this set to `all` and moves to the next set; returns false at the end.
    ///
    /// # Errors
    /// As for `get`.
    pub fn add_to(&mut self, all: &mut RoaringTreemap) -> Result<bool> {
        self.each(&mut |block, bytes| {
            let members = container::decode(block, bytes)?;
            let high = block >> 16;
            if members.len() > 8 {
                *all |= RoaringTreemap::from_bitmaps([(high, members)]);
            } else {
                all.extend(
                    members
                        .iter()
                        .map(|low| u64::from(high) << 32 | u64::from(low)),
                );
            }
            Ok(())
        })
    }

    /// Adds the number of members of this set to `count` and moves to the next set; returns false at the end.
    ///
    /// # Errors
    /// As for `get`.
    pub fn count_to(&mut self, count: &mut u64) -> Result<bool> {
        self.each(&mut |block, bytes| {
            *count += container::count(block, bytes)?;
            Ok(())
        })
    }

    /// Moves to the next set; returns false at the end.
    ///
    /// # Errors
    /// As for `get`.
    pub fn skip(&mut self) -> Result<bool> {
        let last = row_key(&self.key, u32::MAX);
        if !self.cursor.next()? {
            return Ok(false);
        }
        // Most sets have one row.
        if parse(self.cursor.key())?.0 == self.key && !self.cursor.seek_gt(&last)? {
            return Ok(false);
        }
        self.at_key()
    }

    /// Moves to the first set whose key is `from` or greater; `from` must be after the current set. Returns false at
    /// the end.
    ///
    /// # Errors
    /// As for `get`.
    pub fn skip_to(&mut self, from: &[u8]) -> Result<bool> {
        if !self.cursor.seek_ge(from)? {
            return Ok(false);
        }
        self.at_key()
    }

    fn each(&mut self, each: &mut dyn FnMut(u32, &[u8]) -> Result<()>) -> Result<bool> {
        loop {
            let (_, block) = parse(self.cursor.key())?;
            each(block, &self.cursor.value()?.bytes()?)?;
            if !self.cursor.next()? {
                return Ok(false);
            }
            if parse(self.cursor.key())?.0 != self.key {
                return self.at_key();
            }
        }
    }

    /// Reads the key at the cursor. Keys must ascend: otherwise a walk through a damaged table might never end.
    fn at_key(&mut self) -> Result<bool> {
        let (key, _) = parse(self.cursor.key())?;
        if key <= &self.key[..] {
            let found = key.escape_ascii().to_string();
            return Err(Corrupt::new("keys of postings", 0, found, "keys that ascend").into());
        }
        key.clone_into(&mut self.key);
        Ok(true)
    }
}

/// Stores changes, in the order in which they were made, and clears them. Each changed container is read and written
/// once.
///
/// # Errors
/// `Corrupt`, also for a number of [`NUMBERS_MAX`] or more; `DiskFull`, `Io`. After these errors the table is partly
/// changed, and the transaction must be rolled back.
pub fn apply<W: PageWrite>(
    table: &mut TableWriter,
    w: &mut W,
    changes: &mut Changes,
) -> Result<()> {
    let changes = &mut changes.changes;
    // The sort is stable: if a member has several changes, the last one counts.
    changes.sort_by(|a, b| (&a.key, a.number).cmp(&(&b.key, b.number)));
    if let Some(change) = changes.iter().find(|change| change.number >= NUMBERS_MAX) {
        let expected = "less than 2^48";
        return Err(Corrupt::new("number of a set", 0, change.number, expected).into());
    }
    let block_of = |number: u64| (number >> 16) as u32;
    for group in changes.chunk_by(|a, b| a.key == b.key && block_of(a.number) == block_of(b.number))
    {
        let block = block_of(group[0].number);
        let row = row_key(&group[0].key, block);
        let mut members = match table.get(w, &row)? {
            Some(bytes) => container::decode(block, &bytes)?,
            None => RoaringBitmap::new(),
        };
        let mut changed = false;
        for change in group {
            let low = change.number as u32;
            changed |= if change.add {
                members.insert(low)
            } else {
                members.remove(low)
            };
        }
        if !changed {
            continue;
        }
        if members.is_empty() {
            table.remove(w, &row)?;
        } else {
            table.insert(w, &row, &container::encode(&mut members))?;
        }
    }
    changes.clear();
    Ok(())
}

/// Adds the members of `added` to a set and then removes the members of `removed`. Each changed container is read and
/// written once.
///
/// # Errors
/// As for `apply`.
pub(crate) fn change_set<W: PageWrite>(
    table: &mut TableWriter,
    w: &mut W,
    key: &[u8],
    added: &RoaringTreemap,
    removed: &RoaringTreemap,
) -> Result<()> {
    for block in blocks_of(&(added | removed)) {
        let row = row_key(key, block);
        let mut members = match table.get(w, &row)? {
            Some(bytes) => container::decode(block, &bytes)?,
            None => RoaringBitmap::new(),
        };
        members |= members_in(added, block);
        members -= members_in(removed, block);
        if members.is_empty() {
            table.remove(w, &row)?;
        } else {
            table.insert(w, &row, &container::encode(&mut members))?;
        }
    }
    Ok(())
}

/// The blocks of 65,536 numbers in which a set has members.
fn blocks_of(set: &RoaringTreemap) -> Vec<u32> {
    let mut blocks = Vec::new();
    let mut numbers = set.iter();
    while let Some(number) = numbers.next() {
        let block = (number >> 16) as u32;
        blocks.push(block);
        numbers.advance_to((u64::from(block) + 1) << 16);
    }
    blocks
}

/// The lowest 32 bits of the members in a block.
fn members_in(set: &RoaringTreemap, block: u32) -> RoaringBitmap {
    let mut numbers = set.iter();
    numbers.advance_to(u64::from(block) << 16);
    let numbers = numbers.take_while(|number| (number >> 16) as u32 == block);
    numbers.map(|number| number as u32).collect()
}
