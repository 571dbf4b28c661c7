//! The directory of a run: a kv tree with one entry a block and one an extent.
//!
//! ```text
//! block   key: class, series, time of its first row        (20 bytes, see key.rs)
//!         value: | pointer 32 | last series u64 | last time i64 | rows u32 |
//! extent  key: class ffff_ffff, address as series, time 0   (sorts after all blocks)
//!         value: | pages u64 | birth u64 |
//! ```

use crate::key::Key;
use tidalite_base::{
    Corrupt, SeriesId, TxnId, get_i64, get_u32, get_u64, put_i64, put_u32, put_u64,
};
use tidalite_kv::Tree;
use tidalite_pager::{Extent, PTR_BYTES, PageRead, PageWrite, Ptr, Result};

/// The class of extent entries; no layout has it.
pub(crate) const EXTENT_CLASS: u32 = u32::MAX;

const LAST_SERIES_AT: usize = PTR_BYTES;
const LAST_TIME_AT: usize = LAST_SERIES_AT + 8;
const ROWS_AT: usize = LAST_TIME_AT + 8;
const ENTRY_BYTES: usize = ROWS_AT + 4;
const EXTENT_VALUE_BYTES: usize = 16;

/// What the directory says of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) first: Key,
    pub(crate) last: Key,
    pub(crate) ptr: Ptr,
    pub(crate) rows: u32,
}

fn decode_entry(key: &[u8], value: &[u8], tree: &Tree) -> Result<Option<Entry>> {
    let Some(first) = Key::decode(key) else {
        let what = "key in the directory of a run";
        return Err(Corrupt::new(what, tree.root().addr, key.len(), "20 bytes").into());
    };
    if first.class == EXTENT_CLASS {
        return Ok(None);
    }
    if value.len() != ENTRY_BYTES {
        let what = "entry in the directory of a run";
        return Err(Corrupt::new(what, tree.root().addr, value.len(), ENTRY_BYTES).into());
    }
    let entry = Entry {
        first,
        last: Key::new(
            first.class,
            SeriesId(get_u64(value, LAST_SERIES_AT)),
            get_i64(value, LAST_TIME_AT),
        ),
        ptr: Ptr::decode(value, 0),
        rows: get_u32(value, ROWS_AT),
    };
    // Whoever walks a directory goes on behind the last key: it must lead forward.
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

/// Adds or replaces the entry of a block.
pub(crate) fn put_entry<W: PageWrite>(tree: &mut Tree, w: &mut W, entry: &Entry) -> Result<()> {
    let mut value = [0; ENTRY_BYTES];
    entry.ptr.encode(&mut value, 0);
    put_u64(&mut value, LAST_SERIES_AT, entry.last.series.0);
    put_i64(&mut value, LAST_TIME_AT, entry.last.time);
    put_u32(&mut value, ROWS_AT, entry.rows);
    tree.insert(w, &entry.first.encode(), &value)?;
    Ok(())
}

/// Removes the entry of a block.
pub(crate) fn remove_entry<W: PageWrite>(tree: &mut Tree, w: &mut W, first: &Key) -> Result<()> {
    tree.remove(w, &first.encode())?;
    Ok(())
}

/// Notes an extent that the run owns.
pub(crate) fn put_extent<W: PageWrite>(tree: &mut Tree, w: &mut W, extent: &Extent) -> Result<()> {
    let mut value = [0; EXTENT_VALUE_BYTES];
    put_u64(&mut value, 0, extent.pages);
    put_u64(&mut value, 8, extent.birth.0);
    let key = Key::new(EXTENT_CLASS, SeriesId(extent.addr), 0);
    tree.insert(w, &key.encode(), &value)?;
    Ok(())
}

/// Calls `f` with every extent that the run owns.
pub(crate) fn each_extent<R: PageRead>(
    tree: &Tree,
    r: &R,
    mut f: impl FnMut(Extent) -> Result<()>,
) -> Result<()> {
    let mut cursor = tree.cursor(r);
    let first = Key::new(EXTENT_CLASS, SeriesId(0), i64::MIN);
    let mut there = cursor.seek_ge(&first.encode())?;
    while there {
        let value = cursor.inline_value()?.unwrap_or_default();
        let (Some(key), EXTENT_VALUE_BYTES) = (Key::decode(cursor.key()), value.len()) else {
            let what = "extent entry in the directory of a run";
            return Err(
                Corrupt::new(what, tree.root().addr, value.len(), EXTENT_VALUE_BYTES).into(),
            );
        };
        f(Extent {
            addr: key.series.0,
            pages: get_u64(value, 0),
            birth: TxnId(get_u64(value, 8)),
        })?;
        there = cursor.next()?;
    }
    Ok(())
}

/// Up to `max` entries whose blocks may hold rows at or after `key`, in order.
pub(crate) fn entries_from<R: PageRead>(
    tree: &Tree,
    r: &R,
    key: &Key,
    max: usize,
    out: &mut Vec<Entry>,
) -> Result<()> {
    let mut cursor = tree.cursor(r);
    let bytes = key.encode();
    let mut there = cursor.seek_le(&bytes)? || cursor.first()?;
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

/// The last entry whose block begins at or before `key`.
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
