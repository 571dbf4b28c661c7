//! The directory of a run: a B+tree with one entry per block and one per extent.
//!
//! ```text
//! block   key: class, series, time of its first row        (20 bytes, see key.rs)
//!         value: short integers: address, length, checksum, birth of the block;
//!                last series less the first one; zigzag of the last time less the first one; rows
//! extent  key: class ffff_ffff, address as series, time 0   (sorts after all blocks)
//!         value: | pages u64 | birth u64 | blocks u64: number that the directory lists |
//! ```

use crate::key::{KEY_BYTES, Key};
use std::collections::BTreeMap;
use tidalite_base::limits::{EXTENT_PAGES_MAX, SECOND_FILE_AT};
use tidalite_base::{Corrupt, SeriesId, TxnId, get_u64, put_u64};
use tidalite_codec::short;
use tidalite_kv::{Cursor, Tree};
use tidalite_pager::{Extent, Kind, PageRead, PageWrite, Ptr, Result};

/// Class in the keys of extent entries, which is not used by any layout.
pub(crate) const EXTENT_CLASS: u32 = u32::MAX;

/// Key that sorts after all block entries and before all extent entries.
pub(crate) const END_OF_BLOCKS: Key = Key {
    class: EXTENT_CLASS,
    series: SeriesId(0),
    time: i64::MIN,
};

/// Number of integers in the encoded entry of a block.
const NUMBERS: usize = 7;
const BIRTH_AT: usize = 8;
const BLOCKS_AT: usize = BIRTH_AT + 8;
const EXTENT_VALUE_BYTES: usize = BLOCKS_AT + 8;

/// The directory entry of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) first: Key,
    pub(crate) last: Key,
    pub(crate) ptr: Ptr,
    pub(crate) rows: u32,
}

pub(crate) fn decode_entry(key: &[u8], value: &[u8], tree: &Tree) -> Result<Option<Entry>> {
    let Some(first) = Key::decode(key) else {
        let what = "key in the directory of a run";
        return Err(Corrupt::new(what, tree.root().addr, key.len(), "20 bytes").into());
    };
    if first.class == EXTENT_CLASS {
        return Ok(None);
    }
    let Some((last, ptr, rows)) = decode_value(&first, value) else {
        let what = "entry in the directory of a run";
        let found = format!("{} bytes", value.len());
        let expected = "its numbers";
        return Err(Corrupt::new(what, tree.root().addr, found, expected).into());
    };
    let entry = Entry {
        first,
        last,
        ptr,
        rows,
    };
    // Iteration continues after the last key of an entry. It would not advance if the last key were smaller than the
    // first.
    if entry.last < first {
        let what = "entry in the directory of a run";
        let found = format!("a block that ends at {:?}", entry.last);
        return Err(Corrupt::new(
            what,
            tree.root().addr,
            found,
            format!("not before {first:?}"),
        )
        .into());
    }
    Ok(Some(entry))
}

/// Decodes the last key, the pointer and the number of rows of the block that begins with key `first`.
fn decode_value(first: &Key, value: &[u8]) -> Option<(Key, Ptr, u32)> {
    let (numbers, end) = short::get::<NUMBERS>(value, 0)?;
    // Numbers must use the minimum number of bytes, so that each entry has exactly one encoding.
    if end != value.len() || end != short::bytes(&numbers) {
        return None;
    }
    let [addr, len, checksum, birth, series, time, rows] = numbers;
    let series = first.series.0.checked_add(series)?;
    let time = first.time.wrapping_add(short::unzigzag(time) as i64);
    let ptr = Ptr {
        addr,
        len: u32::try_from(len).ok()?,
        kind: Kind::RunBlock,
        checksum,
        birth: TxnId(birth),
    };
    let last = Key::new(first.class, SeriesId(series), time);
    Some((last, ptr, u32::try_from(rows).ok()?))
}

/// Adds or replaces the entry of a block.
pub(crate) fn put_entry<W: PageWrite>(tree: &mut Tree, w: &mut W, entry: &Entry) -> Result<()> {
    let Entry {
        first,
        last,
        ptr,
        rows,
    } = entry;
    let time = last.time.wrapping_sub(first.time) as u64;
    let numbers: [u64; NUMBERS] = [
        ptr.addr,
        u64::from(ptr.len),
        ptr.checksum,
        ptr.birth.0,
        last.series.0.wrapping_sub(first.series.0),
        short::zigzag(time),
        u64::from(*rows),
    ];
    let mut value = Vec::with_capacity(short::bytes_max(NUMBERS));
    short::put(&numbers, &mut value);
    tree.insert(w, &entry.first.encode(), &value)?;
    Ok(())
}

/// Removes the entry of a block; frees the extent if the block was the last one of the extent.
pub(crate) fn remove_entry<W: PageWrite>(tree: &mut Tree, w: &mut W, entry: &Entry) -> Result<()> {
    tree.remove(w, &entry.first.encode())?;
    let (extent, blocks) = extent_of(tree, w, entry.ptr.addr)?;
    if blocks > 1 {
        return put_extent(tree, w, &extent, blocks - 1);
    }
    tree.remove(w, &extent_key(extent.addr))?;
    w.free_extent(&extent);
    Ok(())
}

/// Removes the entries of all blocks that begin before `end`, and frees extents left without blocks; calls `gone` with
/// each entry.
///
/// # Cost
/// The entries are read, and removed as one range. Each extent is looked up once for consecutive blocks.
pub(crate) fn remove_before<W: PageWrite>(
    tree: &mut Tree,
    w: &mut W,
    end: Key,
    mut gone: impl FnMut(&Entry),
) -> Result<()> {
    // Maps the address of an extent to the extent, the number of its removed blocks, and the number of its blocks in
    // the directory.
    let mut extents: BTreeMap<u64, (Extent, u64, u64)> = BTreeMap::new();
    each_block(tree, w, |entry| {
        if entry.first >= end {
            return Ok(false);
        }
        gone(&entry);
        let addr = entry.ptr.addr;
        let known = extents.range_mut(..=addr).next_back();
        match known.filter(|(_, (extent, ..))| holds(extent, w.page_size(), addr)) {
            Some((_, (_, passed, _))) => *passed += 1,
            None => {
                let (extent, blocks) = extent_of(tree, w, addr)?;
                extents.insert(extent.addr, (extent, 1, blocks));
            }
        }
        Ok(true)
    })?;
    tree.remove_range(w, &Key::MIN.encode(), &end.encode())?;
    for (extent, passed, blocks) in extents.into_values() {
        if blocks > passed {
            put_extent(tree, w, &extent, blocks - passed)?;
        } else {
            tree.remove(w, &extent_key(extent.addr))?;
            w.free_extent(&extent);
        }
    }
    Ok(())
}

fn extent_key(addr: u64) -> [u8; KEY_BYTES] {
    Key::new(EXTENT_CLASS, SeriesId(addr), 0).encode()
}

/// Records an extent that the run owns, and how many of its blocks are in the directory.
pub(crate) fn put_extent<W: PageWrite>(
    tree: &mut Tree,
    w: &mut W,
    extent: &Extent,
    blocks: u64,
) -> Result<()> {
    debug_assert!(blocks > 0, "an extent without blocks is freed");
    let mut value = [0; EXTENT_VALUE_BYTES];
    put_u64(&mut value, 0, extent.pages);
    put_u64(&mut value, BIRTH_AT, extent.birth.0);
    put_u64(&mut value, BLOCKS_AT, blocks);
    tree.insert(w, &extent_key(extent.addr), &value)?;
    Ok(())
}

fn decode_extent(key: &[u8], value: &[u8], tree: &Tree) -> Result<(Extent, u64)> {
    let (Some(key), EXTENT_VALUE_BYTES) = (Key::decode(key), value.len()) else {
        let what = "extent entry in the directory of a run";
        return Err(Corrupt::new(what, tree.root().addr, value.len(), EXTENT_VALUE_BYTES).into());
    };
    let extent = Extent {
        addr: key.series.0,
        pages: get_u64(value, 0),
        birth: TxnId(get_u64(value, BIRTH_AT)),
    };
    if extent.addr >= SECOND_FILE_AT || extent.pages > EXTENT_PAGES_MAX {
        let what = "extent entry in the directory of a run";
        let found = format!("{} pages at {}", extent.pages, extent.addr);
        return Err(Corrupt::new(what, tree.root().addr, found, "an extent of the file").into());
    }
    Ok((extent, get_u64(value, BLOCKS_AT)))
}

fn holds(extent: &Extent, page_size: usize, addr: u64) -> bool {
    let into = addr.checked_sub(extent.addr);
    into.is_some_and(|bytes| bytes / (page_size as u64) < extent.pages)
}

/// Returns the extent that contains the block at `addr`, and the number of its blocks in the directory.
fn extent_of<R: PageRead>(tree: &Tree, r: &R, addr: u64) -> Result<(Extent, u64)> {
    let mut cursor = tree.cursor(r);
    if cursor.seek_le(&extent_key(addr))? && cursor.key() >= extent_key(0).as_slice() {
        let value = cursor.inline_value()?.unwrap_or_default();
        let (extent, blocks) = decode_extent(cursor.key(), value, tree)?;
        // In a damaged directory whose keys do not ascend, the search may find an extent that does not contain the
        // address.
        if holds(&extent, r.page_size(), addr) {
            return Ok((extent, blocks));
        }
    }
    let found = format!("a block at {addr}");
    Err(Corrupt::new(
        "directory of a run",
        tree.root().addr,
        found,
        "one in its extents",
    )
    .into())
}

/// Calls `f` with every extent that the run owns, and the number of its blocks in the directory.
pub(crate) fn each_extent<R: PageRead>(
    tree: &Tree,
    r: &R,
    mut f: impl FnMut(Extent, u64) -> Result<()>,
) -> Result<()> {
    let mut cursor = tree.cursor(r);
    let mut there = cursor.seek_ge(&END_OF_BLOCKS.encode())?;
    while there {
        let value = cursor.inline_value()?.unwrap_or_default();
        let (extent, blocks) = decode_extent(cursor.key(), value, tree)?;
        f(extent, blocks)?;
        there = cursor.next()?;
    }
    Ok(())
}

/// Calls `f` with the entry of every block, in order, until `f` returns false.
fn each_block<R: PageRead>(
    tree: &Tree,
    r: &R,
    mut f: impl FnMut(Entry) -> Result<bool>,
) -> Result<()> {
    let mut cursor = tree.cursor(r);
    let mut there = cursor.first()?;
    while there {
        let value = cursor.inline_value()?.unwrap_or_default();
        let Some(entry) = decode_entry(cursor.key(), value, tree)? else {
            break;
        };
        if !f(entry)? {
            break;
        }
        there = cursor.next()?;
    }
    Ok(())
}

/// Collects up to `max` entries whose blocks may have rows at or after `key`, in order.
pub(crate) fn entries_from<R: PageRead>(
    tree: &Tree,
    r: &R,
    key: &Key,
    max: usize,
    out: &mut Vec<Entry>,
) -> Result<()> {
    let mut cursor = tree.cursor(r);
    let there = cursor.seek_le(&key.encode())? || cursor.first()?;
    collect(tree, &mut cursor, there, key, max, out)
}

/// Like [`entries_from`], but starts with the first block whose key is at or after `bytes`. The block before is not
/// considered, so damage of an earlier page does no harm.
pub(crate) fn entries_at_or_behind<R: PageRead>(
    tree: &Tree,
    r: &R,
    bytes: &[u8],
    max: usize,
    out: &mut Vec<Entry>,
) -> Result<()> {
    let mut cursor = tree.cursor(r);
    let there = cursor.seek_ge(bytes)?;
    collect(tree, &mut cursor, there, &Key::MIN, max, out)
}

fn collect<R: PageRead>(
    tree: &Tree,
    cursor: &mut Cursor<'_, R>,
    mut there: bool,
    key: &Key,
    max: usize,
    out: &mut Vec<Entry>,
) -> Result<()> {
    while there && out.len() < max {
        let value = cursor.inline_value()?.unwrap_or_default();
        let Some(entry) = decode_entry(cursor.key(), value, tree)? else {
            break;
        };
        if entry.last >= *key {
            out.push(entry);
        }
        there = cursor.next()?;
    }
    Ok(())
}

/// Returns the last entry whose block begins at or before `key`.
pub(crate) fn entry_at_or_before<R: PageRead>(
    tree: &Tree,
    r: &R,
    key: &Key,
) -> Result<Option<Entry>> {
    let mut cursor = tree.cursor(r);
    if !cursor.seek_le(&key.encode())? {
        return Ok(None);
    }
    decode_entry(
        cursor.key(),
        cursor.inline_value()?.unwrap_or_default(),
        tree,
    )
}

/// Moves an extent of the run: writes its blocks, in order, to a new extent, and changes their entries in the
/// directory.
pub(crate) fn move_extent<W: PageWrite>(tree: &mut Tree, w: &mut W, extent: &Extent) -> Result<()> {
    let page_size = w.page_size() as u64;
    let end = extent
        .addr
        .saturating_add(extent.pages.saturating_mul(page_size));
    let mut entries = Vec::new();
    each_block(tree, w, |entry| {
        if entry.ptr.addr >= extent.addr && entry.ptr.addr < end {
            entries.push(entry);
        }
        Ok(true)
    })?;
    entries.sort_unstable_by_key(|entry| entry.ptr.addr);
    let align = crate::run::block::BLOCK_ALIGN as u64;
    let bytes = entries
        .iter()
        .map(|entry| u64::from(entry.ptr.len).next_multiple_of(align));
    let pages = bytes.sum::<u64>().div_ceil(page_size);
    tree.remove(w, &extent_key(extent.addr))?;
    if pages == 0 {
        w.free_extent(extent);
        return Ok(());
    }
    let new = w.alloc_extent(pages)?;
    let (mut at, moved) = (new.addr, entries.len() as u64);
    for mut entry in entries {
        let mut block = w.block(&entry.ptr)?.to_vec();
        let header = tidalite_pager::Header {
            address: at,
            birth: new.birth,
            ..tidalite_pager::Header::decode(&block)
        };
        entry.ptr = tidalite_pager::seal_block(&mut block, &header);
        block.resize(block.len().next_multiple_of(align as usize), 0);
        w.write_extent(at, &block)?;
        at += block.len() as u64;
        put_entry(tree, w, &entry)?;
    }
    assert!(
        at <= new.addr + new.pages * page_size,
        "the blocks fit in the new extent"
    );
    let rest = new.addr + new.pages * page_size - at;
    if rest > 0 {
        w.write_extent(at, &vec![0; rest as usize])?;
    }
    w.free_extent(extent);
    put_extent(tree, w, &new, moved)
}
