//! Recovery of a relation that has lost rows or parts.
//!
//! 1. Rows that cannot be decoded, or have null in a column that refuses it, are removed.
//! 2. The sequence of hidden keys is moved past the greatest hidden key.
//! 3. All indexes are written again. If rows conflict in a unique index, the one with the least primary key is kept.
//!
//! Rows conflict if a salvage has read unreferenced leaves. Such a leaf may be older than the rest of the table, and
//! contain rows that were removed or got another primary key later.

use crate::cell::Cell;
use crate::layout::Layout;
use crate::parts::{ROWS, SCHEMA, read_layout};
use crate::row_ref::{RowKey, RowRef};
use crate::write::RelationWriter;
use std::sync::Arc;
use tidalite_kv::{Tree, change_part, part};
use tidalite_pager::{Error, PageWrite, Result};

/// The key of a row at which to continue.
type Next = Option<Vec<u8>>;

/// Keys of rows, and their cells.
type FoundRows = Vec<(RowKey, Vec<Cell>)>;

/// Number of rows that are examined before the invalid ones among them are removed.
const STEP_ROWS: usize = 1 << 14;

/// Numbers of rows that a recovery removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelationRecovery {
    /// Number of rows that could not be decoded and were removed.
    pub removed: u64,
    /// Number of rows that were removed because they conflicted with other rows in a unique index.
    pub conflicts: u64,
}

/// Repairs a relation whose pages are readable: removes invalid rows, and writes all indexes again. Returns `None`,
/// with nothing changed, if the schema is lost.
///
/// # Errors
/// `DiskFull`, `Io`; a damaged page.
///
/// # Cost
/// Reads all rows, and writes all indexes.
pub fn recover_relation<W: PageWrite>(
    root: &mut Tree,
    w: &mut W,
) -> Result<Option<RelationRecovery>> {
    let layout = match read_layout(root, &*w) {
        Ok(layout) => layout,
        // The row is missing or damaged, or its place is taken by other data.
        Err(Error::Corrupt(_) | Error::IsTable { .. } | Error::Refused { .. }) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let mut done = RelationRecovery::default();
    remove_other_parts(root, w)?;
    walk(root, w, &mut |root, w, from| {
        let (refused, next) = refused_from(root, &*w, &layout, from)?;
        done.removed += refused.len() as u64;
        change_part(root, w, &ROWS, &mut |w, table| {
            refused
                .iter()
                .try_for_each(|key| table.remove(w, key).map(drop))
        })?;
        Ok(next)
    })?;
    if layout.has_hidden_key() {
        set_sequence(root, w)?;
    }
    let layout = Arc::new(layout);
    if !layout.indexes.is_empty() {
        walk(root, w, &mut |root, w, from| {
            let (rows, next) = rows_from(root, &*w, &layout, from)?;
            for (key, row) in rows {
                let mut writer = RelationWriter::with_layout(root, w, Arc::clone(&layout));
                if !writer.index_again(&key, &row)? {
                    done.conflicts += 1;
                }
            }
            Ok(next)
        })?;
    }
    Ok(Some(done))
}

/// Callback that processes some rows, beginning at a key, and returns the key at which to continue.
type Step<'f, W> = dyn FnMut(&mut Tree, &mut W, &[u8]) -> Result<Next> + 'f;

/// Calls `step` repeatedly, each time with the key that the last call returned, until it returns `None`.
fn walk<W>(root: &mut Tree, w: &mut W, step: &mut Step<'_, W>) -> Result<()> {
    let mut from = Some(Vec::new());
    while let Some(start) = from {
        from = step(root, w, &start)?;
    }
    Ok(())
}

/// Removes all parts except the schema and the rows. Indexes are removed too, because they are written again.
fn remove_other_parts<W: PageWrite>(root: &mut Tree, w: &mut W) -> Result<()> {
    let mut others = Vec::new();
    let mut cursor = root.cursor(&*w);
    let mut there = cursor.first()?;
    while there {
        if *cursor.key() != SCHEMA && *cursor.key() != ROWS {
            others.push(cursor.key().to_vec());
        }
        there = cursor.next()?;
    }
    drop(cursor);
    for key in others {
        root.remove(w, &key)?;
    }
    Ok(())
}

/// Keys of invalid rows among some rows, beginning at a key, and the key at which to continue.
fn refused_from<W: PageWrite>(
    root: &Tree,
    w: &W,
    layout: &Layout,
    from: &[u8],
) -> Result<(Vec<Vec<u8>>, Next)> {
    let mut refused = Vec::new();
    let mut cursor = part(root, w, &ROWS)?.cursor(w)?;
    let mut there = cursor.seek_ge(from)?;
    let mut seen = 0;
    while there {
        if seen == STEP_ROWS {
            return Ok((refused, Some(cursor.key().to_vec())));
        }
        seen += 1;
        let is_row = match cursor.is_nested() {
            true => false,
            false => {
                let value = cursor.value()?;
                let value = value.bytes()?;
                let row = RowRef::open(layout, cursor.key(), &value).ok();
                row.and_then(|row| row.whole_cells()).is_some_and(|row| {
                    layout.check_row(&row).is_ok()
                        && (layout.has_hidden_key() || layout.key_of(&row) == cursor.key())
                })
            }
        };
        if !is_row {
            refused.push(cursor.key().to_vec());
        }
        there = cursor.next()?;
    }
    Ok((refused, None))
}

/// Some rows, beginning at a key, and the key at which to continue.
fn rows_from<W: PageWrite>(
    root: &Tree,
    w: &W,
    layout: &Layout,
    from: &[u8],
) -> Result<(FoundRows, Next)> {
    let mut rows = Vec::new();
    let mut cursor = part(root, w, &ROWS)?.cursor(w)?;
    let mut there = cursor.seek_ge(from)?;
    while there {
        let key = cursor.key().to_vec();
        if rows.len() == STEP_ROWS {
            return Ok((rows, Some(key)));
        }
        let value = cursor.value()?;
        let value = value.bytes()?;
        let row = RowRef::open(layout, cursor.key(), &value)?.to_cells()?;
        rows.push((RowKey(key), row));
        there = cursor.next()?;
    }
    Ok((rows, None))
}

/// Moves the sequence of hidden keys past the greatest hidden key.
fn set_sequence<W: PageWrite>(root: &mut Tree, w: &mut W) -> Result<()> {
    let rows = part(root, &*w, &ROWS)?;
    let mut cursor = rows.cursor(&*w)?;
    let mut last = None;
    if cursor.last()? {
        last = cursor.key().try_into().map(u64::from_be_bytes).ok();
    }
    let next = last.map_or(0, |last| last.saturating_add(1));
    let missing = next.saturating_sub(rows.sequence());
    drop(cursor);
    if missing > 0 {
        change_part(root, w, &ROWS, &mut |_, table| {
            Ok(table.take_sequence(missing))
        })?;
    }
    Ok(())
}
