//! Reads ordered tables (section 5 of docs/format.md): B+trees of pages, long keys and values, sets of values, nested
//! tables.

use crate::block::{Block, HEADER_BYTES, Pointer, kind};
use crate::bytes::{Fields, big, index};
use crate::error::{Error, Result};
use crate::image::Image;
use std::collections::BTreeSet;

/// Length in bytes of the root of a table.
pub const TREE_BYTES: usize = 64;

const HEIGHT_MAX: u8 = 64;
const LEVELS_MAX: usize = 64;
const KEY_BYTES_MAX: u64 = 16 << 20;

/// Flag of a tree whose table has a set of values under each key.
const MULTI_VALUES: u8 = 1;

/// Flags of a page.
const NESTED_PAGE: u8 = 2;

/// Length in bytes of a chunk of a large value, and of the part before its data.
const CHUNK_BYTES: usize = 65_536;
const CHUNK_HEAD_BYTES: usize = 48;
const CHUNK_DATA_BYTES: usize = CHUNK_BYTES - CHUNK_HEAD_BYTES;

/// Bit in the varint of a key's length that marks a key whose last bytes are stored in an extent of their own.
const SPILLED: usize = 1 << 31;

/// The root of a table, wherever the catalog stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Pointer to the root page; `None` for an empty table.
    pub root: Option<Pointer>,
    /// Number of rows; in a table of sets, number of values.
    pub rows: u64,
    /// Number of the owner, which all pages of the table carry.
    pub id: u64,
    /// Number of levels of pages.
    pub height: u8,
    /// True if each key has a set of values.
    pub sets: bool,
    /// Number of keys of a table of sets.
    pub keys: u64,
    /// The next number of the table's sequence.
    pub sequence: u64,
}

/// The rows of a table, in the order of their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// The next number of the table's sequence.
    pub sequence: u64,
    /// The key and the contents of each row.
    pub rows: Vec<(Vec<u8>, Value)>,
}

/// The contents stored under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A plain value.
    Bytes(Vec<u8>),
    /// The values of a key in a table of sets, ascending.
    Set(Vec<Vec<u8>>),
    /// The rows of a nested table.
    Table(Rows),
}

impl Tree {
    /// Reads the 64 bytes of the root of a table.
    ///
    /// # Errors
    /// If the fields of the root contradict each other.
    pub fn read(fields: &mut Fields<'_>) -> Result<Self> {
        let root = Pointer::read(fields)?;
        let rows = fields.u64()?;
        let id = fields.u64()?;
        let height = fields.u8()?;
        let flags = fields.u8()?;
        let tree = Self {
            root,
            rows,
            id,
            height,
            sets: flags & MULTI_VALUES != 0,
            keys: fields.u48()?,
            sequence: fields.u64()?,
        };
        fields.require(flags <= 3, "flags of a table")?;
        fields.require(
            height <= HEIGHT_MAX && (height == 0) == root.is_none(),
            "height of a table",
        )?;
        fields.require(root.is_some() || rows == 0, "an empty table with rows")?;
        Ok(tree)
    }

    /// Reads all rows of the table.
    ///
    /// # Errors
    /// If a page is damaged, or the number of rows differs from the number in the root.
    pub fn rows(&self, image: &Image) -> Result<Rows> {
        let mut walk = Walk {
            image,
            owner: self.id,
            seen: BTreeSet::new(),
        };
        let mut rows = Vec::new();
        if let Some(root) = self.root {
            let bounds = Bounds::default();
            let counted = walk.page(&root, self.height - 1, 1, &bounds, self.sets, &mut rows)?;
            let at = root.address;
            if counted != self.rows {
                return Err(Error::damaged(at, "a table with another number of rows"));
            }
            if self.sets && rows.len() as u64 != self.keys {
                return Err(Error::damaged(at, "a table with another number of keys"));
            }
        }
        Ok(Rows {
            sequence: self.sequence,
            rows,
        })
    }
}

/// The keys that may be below a page: from the first key on, up to but excluding the second.
#[derive(Clone, Debug, Default)]
struct Bounds {
    from: Option<Vec<u8>>,
    below: Option<Vec<u8>>,
}

impl Bounds {
    fn hold(&self, key: &[u8]) -> bool {
        self.from.as_deref().is_none_or(|from| from <= key)
            && self.below.as_deref().is_none_or(|below| key < below)
    }
}

struct Walk<'a> {
    image: &'a Image,
    owner: u64,
    /// Addresses of the pages that were read: a page must not occur twice in a table.
    seen: BTreeSet<u64>,
}

/// The parts of a page in front of its cells.
struct Page<'a> {
    bytes: &'a [u8],
    address: u64,
    prefix: &'a [u8],
    heads: Vec<u32>,
    children: Vec<&'a [u8]>,
    offsets: Vec<usize>,
}

impl<'a> Page<'a> {
    fn read(block: &'a Block, level: u8, nested: bool) -> Result<Self> {
        let mut fields = block.fields()?;
        let count = fields.u16()?;
        let own_level = fields.u8()?;
        let flags = fields.u8()?;
        let heap = fields.u32()?;
        let _dead = fields.u32()?;
        let prefix_bytes = fields.u32()?;
        fields.require(count > 0, "an empty page of a table")?;
        fields.require(own_level == level, "a page of another level")?;
        fields.require((flags & NESTED_PAGE != 0) == nested, "flags of a page")?;
        let prefix = fields.take(prefix_bytes)?;
        let heads = (0..count).map(|_| Ok(u32::from_le_bytes(array(fields.take(4)?))));
        let heads = heads.collect::<Result<_>>()?;
        let children = if level > 0 { count } else { 0 };
        let children = (0..children).map(|_| fields.take(26));
        let children = children.collect::<Result<_>>()?;
        let wide = block.bytes.len() > 1 << 16;
        let offset = |fields: &mut Fields<'_>| if wide { fields.u32() } else { fields.u16() };
        let offsets = (0..count).map(|_| offset(&mut fields));
        let offsets: Vec<usize> = offsets.collect::<Result<_>>()?;
        fields.require(
            fields.position() <= heap && offsets.iter().all(|&offset| offset >= heap),
            "cells outside the heap",
        )?;
        Ok(Self {
            bytes: &block.bytes,
            address: block.header.address,
            prefix,
            heads,
            children,
            offsets,
        })
    }

    fn cell(&self, entry: usize) -> Result<Fields<'a>> {
        Fields::from(self.bytes, self.offsets[entry], self.address)
    }

    /// Compares the head of an entry (first four bytes of the key suffix) with the suffix in its cell.
    fn check_head(&self, entry: usize, suffix: &[u8]) -> Result<()> {
        let mut first = [0; 4];
        let length = suffix.len().min(4);
        first[..length].copy_from_slice(&suffix[..length]);
        if u64::from(self.heads[entry]) == big(&first) {
            Ok(())
        } else {
            Err(Error::damaged(self.address, "the head of an entry"))
        }
    }
}

fn array(bytes: &[u8]) -> [u8; 4] {
    let mut array = [0; 4];
    array.copy_from_slice(bytes);
    array
}

impl Walk<'_> {
    /// Adds the rows below a page; returns the number of rows as the branches above must count them.
    fn page(
        &mut self,
        pointer: &Pointer,
        level: u8,
        depth: usize,
        bounds: &Bounds,
        sets: bool,
        rows: &mut Vec<(Vec<u8>, Value)>,
    ) -> Result<u64> {
        let kind = if level == 0 { kind::LEAF } else { kind::BRANCH };
        if !self.seen.insert(pointer.address) {
            return Err(Error::damaged(pointer.address, "a page occurs twice"));
        }
        if pointer.length != self.image.page_bytes() {
            return Err(Error::damaged(pointer.address, "the length of a page"));
        }
        let block = self.image.block_of(pointer, kind)?;
        if block.header.owner != self.owner {
            return Err(block.damaged("a page of another table"));
        }
        let page = Page::read(&block, level, depth > 1)?;
        if level > 0 {
            return self.branch(&page, level, depth, bounds, sets, rows);
        }
        let mut counted = 0;
        for entry in 0..page.offsets.len() {
            let mut cell = page.cell(entry)?;
            let length = cell.varint32()?;
            let tag = cell.varint32()?;
            let key = self.key(&page, entry, length, page.prefix, &mut cell)?;
            let ascends = rows.last().is_none_or(|(last, _)| *last < key);
            cell.require(ascends && bounds.hold(&key), "keys of a table")?;
            let payload = cell.take(tag / 4)?;
            let value = self.value(tag % 4, payload, depth, sets, page.address)?;
            counted += match &value {
                Value::Set(values) => values.len() as u64,
                _ => 1,
            };
            rows.push((key, value));
        }
        Ok(counted)
    }

    fn branch(
        &mut self,
        page: &Page<'_>,
        level: u8,
        depth: usize,
        bounds: &Bounds,
        sets: bool,
        rows: &mut Vec<(Vec<u8>, Value)>,
    ) -> Result<u64> {
        let count = page.offsets.len();
        let mut keys = Vec::new();
        for entry in 0..count {
            let mut cell = page.cell(entry)?;
            let length = cell.varint32()?;
            let prefix = if entry == 0 { &[] } else { page.prefix };
            let key = self.key(page, entry, length, prefix, &mut cell)?;
            if entry == 0 {
                cell.require(key.is_empty(), "the first key of a branch")?;
                keys.push(bounds.from.clone());
                continue;
            }
            let last = keys.last().and_then(Option::as_ref);
            let ascends = last.is_none_or(|last| *last < key);
            cell.require(ascends && bounds.hold(&key), "keys of a branch")?;
            keys.push(Some(key));
        }
        keys.push(bounds.below.clone());
        let mut total = 0;
        for (entry, child) in page.children.iter().enumerate() {
            let mut fields = Fields::new(child, page.address);
            let (pointer, counted) = self.child(&mut fields, level - 1)?;
            let bounds = Bounds {
                from: keys[entry].clone(),
                below: keys[entry + 1].clone(),
            };
            let found = self.page(&pointer, level - 1, depth, &bounds, sets, rows)?;
            fields.require(found == counted, "a branch with another number of rows")?;
            total += found;
        }
        Ok(total)
    }

    /// Reads the 26 bytes of a child in a branch: the pointer to the child, and the number of rows below it.
    fn child(&self, fields: &mut Fields<'_>, level: u8) -> Result<(Pointer, u64)> {
        let page = fields.u48()?;
        let birth = fields.u48()?;
        let checksum = fields.u64()?;
        let rows = fields.u48()?;
        let length = self.image.page_bytes();
        let pointer = Pointer {
            address: page * length as u64,
            length,
            kind: if level == 0 { kind::LEAF } else { kind::BRANCH },
            checksum,
            birth,
        };
        Ok((pointer, rows))
    }

    /// The whole key of an entry, including bytes that are stored outside the page.
    fn key(
        &self,
        page: &Page<'_>,
        entry: usize,
        length: usize,
        prefix: &[u8],
        cell: &mut Fields<'_>,
    ) -> Result<Vec<u8>> {
        let suffix = cell.take(length & !SPILLED)?;
        page.check_head(entry, suffix)?;
        let mut key = [prefix, suffix].concat();
        if length & SPILLED != 0 {
            let rest = self.large(cell.take(40)?, page.address)?;
            key.extend_from_slice(&rest);
            cell.require(key.len() as u64 <= KEY_BYTES_MAX, "the length of a key")?;
        }
        Ok(key)
    }

    /// Decodes the contents of a key from its payload.
    fn value(
        &mut self,
        form: usize,
        payload: &[u8],
        depth: usize,
        sets: bool,
        address: u64,
    ) -> Result<Value> {
        let plain = match form {
            0 => payload.to_vec(),
            1 => self.large(payload, address)?,
            _ => {
                let nested = self.nested(form, payload, depth + 1, address)?;
                return if sets {
                    set_of(nested, address)
                } else {
                    Ok(Value::Table(nested))
                };
            }
        };
        Ok(if sets {
            Value::Set(vec![plain])
        } else {
            Value::Bytes(plain)
        })
    }

    /// Reads a nested table: form 2 is a small table inside the payload, form 3 is the root of a table with pages.
    fn nested(&mut self, form: usize, payload: &[u8], depth: usize, address: u64) -> Result<Rows> {
        if depth > LEVELS_MAX {
            return Err(Error::damaged(address, "too many tables in one another"));
        }
        let mut fields = Fields::new(payload, address);
        if form == 2 {
            return self.small_table(&mut fields, depth);
        }
        let mut root = fields.clone();
        fields.skip(26)?;
        let height = fields.u8()?;
        let flags = fields.u8()?;
        fields.require(flags & !2 == 0, "flags of a nested table")?;
        fields.require(
            (1..=HEIGHT_MAX).contains(&height),
            "height of a nested table",
        )?;
        let sequence = if fields.left() == 0 {
            0
        } else {
            let sequence = fields.u64()?;
            fields.require(sequence > 0, "the sequence of a nested table")?;
            sequence
        };
        fields.require(fields.left() == 0, "the root of a nested table goes on")?;
        let (pointer, counted) = self.child(&mut root, height - 1)?;
        let mut rows = Vec::new();
        let bounds = Bounds::default();
        let found = self.page(&pointer, height - 1, depth, &bounds, false, &mut rows)?;
        fields.require(
            found == counted,
            "a nested table with another number of rows",
        )?;
        Ok(Rows { sequence, rows })
    }

    fn small_table(&mut self, fields: &mut Fields<'_>, depth: usize) -> Result<Rows> {
        let form = fields.u8()?;
        fields.require(form <= 3, "the form of a small table")?;
        let sequence = if form >= 2 { fields.u64()? } else { 0 };
        fields.require(form < 2 || sequence > 0, "the sequence of a small table")?;
        let count = fields.varint32()?;
        let same_length = if form % 2 == 1 {
            Some(fields.varint32()?)
        } else {
            None
        };
        let mut rows: Vec<(Vec<u8>, Value)> = Vec::new();
        for _ in 0..count {
            let (key, value) = if let Some(length) = same_length {
                let key = fields.take(length)?.to_vec();
                (key, Value::Bytes(Vec::new()))
            } else {
                let length = fields.varint32()?;
                let tag = fields.varint32()?;
                let key = fields.take(length)?.to_vec();
                let payload = fields.take(tag / 4)?;
                (key, self.value(tag % 4, payload, depth, false, 0)?)
            };
            let ascends = rows.last().is_none_or(|(last, _)| *last < key);
            fields.require(ascends, "keys of a small table")?;
            rows.push((key, value));
        }
        fields.require(fields.left() == 0, "a small table goes on")?;
        Ok(Rows { sequence, rows })
    }

    /// Reads a large value, or the rest of a long key, from an extent of its own.
    fn large(&self, reference: &[u8], address: u64) -> Result<Vec<u8>> {
        let mut fields = Fields::new(reference, address);
        let pointer = Pointer::read(&mut fields)?;
        let length = fields.u64()?;
        fields.require(fields.left() == 0, "a reference goes on")?;
        fields.require((1..=1 << 32).contains(&length), "the length of a value")?;
        let mut pointer = pointer.ok_or_else(|| fields.damaged("a reference to nothing"))?;
        let length = index(length);
        let last = length % CHUNK_DATA_BYTES;
        let bytes = length / CHUNK_DATA_BYTES * CHUNK_BYTES
            + if last == 0 {
                0
            } else {
                last + CHUNK_HEAD_BYTES
            };
        let extent = bytes.next_multiple_of(self.image.page_bytes());
        let chunks = extent.div_ceil(CHUNK_BYTES);
        let mut value = Vec::new();
        for number in 0..chunks {
            let at = number * CHUNK_BYTES;
            pointer.length = match number {
                0 => pointer.length,
                _ => (extent - at).min(CHUNK_BYTES),
            };
            let expected = (extent - at).min(CHUNK_BYTES);
            fields.require(pointer.length == expected, "the length of a chunk")?;
            let block = self.image.block_of(&pointer, kind::LARGE)?;
            let mut chunk = block.fields()?;
            let next = chunk.u64()?;
            let own = chunk.u32()?;
            chunk.skip(4)?;
            chunk.require(
                block.header.owner == self.owner && own == number,
                "a chunk of another value",
            )?;
            debug_assert_eq!(chunk.position(), HEADER_BYTES + 16);
            let taken = chunk.left().min(length - value.len());
            value.extend_from_slice(chunk.take(taken)?);
            pointer.address += CHUNK_BYTES as u64;
            pointer.checksum = next;
        }
        fields.require(value.len() == length, "a value ends early")?;
        Ok(value)
    }
}

/// Converts the keys of a nested table to the values of a set.
fn set_of(nested: Rows, address: u64) -> Result<Value> {
    let mut values = Vec::new();
    for (key, value) in nested.rows {
        if value != Value::Bytes(Vec::new()) {
            return Err(Error::damaged(address, "a value of a set with a payload"));
        }
        values.push(key);
    }
    if values.is_empty() || nested.sequence != 0 {
        return Err(Error::damaged(address, "the set of a key"));
    }
    Ok(Value::Set(values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_that_contradicts_itself_is_refused() {
        let mut bytes = [0; TREE_BYTES];
        bytes[40] = 16;
        let read = |bytes: &[u8]| Tree::read(&mut Fields::new(bytes, 0));
        assert_eq!(read(&bytes).map(|tree| tree.id), Ok(16));
        for (at, byte) in [(48, 1), (32, 1), (49, 4), (0, 1)] {
            let mut damaged = bytes;
            damaged[at] = byte;
            assert!(read(&damaged).is_err(), "byte {at}");
        }
    }

    #[test]
    fn bounds_include_their_first_key_only() {
        let bounds = Bounds {
            from: Some(b"b".to_vec()),
            below: Some(b"d".to_vec()),
        };
        assert!(bounds.hold(b"b") && bounds.hold(b"c"));
        assert!(!bounds.hold(b"a") && !bounds.hold(b"d"));
    }
}
