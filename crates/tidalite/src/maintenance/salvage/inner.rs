//! Leaves of nested tables that no page leads to any more, of hash tables, buffered tables, topics, queues, buckets and tables
//! of containers.
//!
//! All content of these tables is in nested tables. The leaf of a nested table does not name the table; here the form of its
//! rows tells which one it is (`tidalite_index`, `tidalite_messages`). Only parts from which others are built are recognised.

use super::collect::Collected;
use super::ranges::{Covered, Key, Lost};
use crate::types::error::Result;
use crate::types::error::kind::ErrorKind;
use crate::types::table_types::TableLayout;
use std::collections::{BTreeMap, BTreeSet};
use tidalite_index::{LeafRow, part_of_buffered_rows, part_of_hash_rows};
use tidalite_kv::{Cursor, Tree};
use tidalite_messages::{
    part_of_bucket_rows, part_of_container_rows, part_of_queue_rows, part_of_topic_rows,
};
use tidalite_pager::{Ptr, RawFile};

/// The nested tables of a table, as a walk through the table found them.
#[derive(Default)]
pub(super) struct Below {
    /// Addresses of the leaves of nested tables that were reached.
    pub(super) reached: BTreeSet<u64>,
    /// The ranges of keys that are lost in the nested tables of the outermost table, under the keys of these tables.
    pub(super) lost: BTreeMap<Key, Vec<Lost>>,
    /// Whether a part of the outermost table is lost, so that whole nested tables may be.
    pub(super) is_outer_lost: bool,
}

impl Below {
    fn is_lost(&self, part: &[u8], key: &[u8]) -> bool {
        let spans = self.lost.get(part).into_iter().flatten();
        self.is_outer_lost || spans.into_iter().any(|span| span.holds(key))
    }
}

/// Callback for a row: receives the key of the nested table, and key and value of the row.
type InnerRows<'f> = dyn FnMut(&[u8; 1], &[u8], &[u8]) -> Result<()> + 'f;

/// Calls `f` with the rows of lost ranges in leaves that were found by their headers, the newest leaf first. `state` is the
/// state of a buffered table.
pub(super) fn inner_rows(
    raw: &RawFile,
    found: &Collected,
    (id, layout): (u64, TableLayout),
    (below, state): (&Below, Option<&[u8]>),
    f: &mut InnerRows<'_>,
) -> Result<()> {
    if below.lost.is_empty() && !below.is_outer_lost {
        return Ok(());
    }
    let mut lone = found.table_leaves.get(&id).cloned().unwrap_or_default();
    // If an older root leads to older leaves, they count as found by their headers, too.
    lone.retain(|leaf| below.is_outer_lost || !below.reached.contains(&leaf.addr));
    lone.sort_by_key(|leaf| std::cmp::Reverse(leaf.birth));
    let mut covered: BTreeMap<[u8; 1], Covered> = BTreeMap::new();
    for leaf in lone {
        let Some((part, first, last)) = part_of_leaf(raw, &leaf, (layout, state))? else {
            continue;
        };
        let covered = covered.entry(part).or_default();
        each_row(raw, &leaf, &mut |key, cursor| {
            if !below.is_lost(&part, key) || covered.has(key) {
                return Ok(());
            }
            match cursor.value().and_then(|value| value.to_vec()) {
                Ok(value) => f(&part, key, &value),
                // A value in an extent may be lost: the other rows are still there.
                Err(tidalite_pager::Error::Corrupt(_)) => Ok(()),
                Err(error) => Err(error.into()),
            }
        })?;
        covered.add(first, last);
    }
    Ok(())
}

/// Longer values of topics, queues, buckets and containers are not read to recognise a leaf.
const KNOWN_BYTES_MAX: u64 = 64 << 10;

/// The nested table of a leaf, and the first and the last key of the leaf; `None` if the table is unknown.
fn part_of_leaf(
    raw: &RawFile,
    leaf: &Ptr,
    (layout, state): (TableLayout, Option<&[u8]>),
) -> Result<Option<([u8; 1], Key, Key)>> {
    let of_messages = match layout {
        TableLayout::Rows => return Ok(None),
        TableLayout::Hash | TableLayout::Buffered => {
            let Some(rows) = rows_of_inner(raw, leaf)? else {
                return Ok(None);
            };
            let part = match layout {
                TableLayout::Hash => part_of_hash_rows(&rows),
                _ => part_of_buffered_rows(&rows, state),
            };
            let ends = rows.first().zip(rows.last());
            let named = part.zip(ends);
            return Ok(named.map(|(part, (first, last))| (part, first.0.clone(), last.0.clone())));
        }
        TableLayout::Topics => part_of_topic_rows,
        TableLayout::Queue => part_of_queue_rows,
        TableLayout::Bucket => part_of_bucket_rows,
        TableLayout::Containers => part_of_container_rows,
    };
    let mut rows = Vec::new();
    let read = each_row(raw, leaf, &mut |key, cursor| {
        let value = cursor.value()?;
        let value = match value.len() > KNOWN_BYTES_MAX {
            true => None,
            false => Some(value.to_vec()?),
        };
        rows.push((key.to_vec(), value));
        Ok(())
    });
    match read {
        Ok(true) => {}
        Ok(false) => return Ok(None),
        Err(error) if error.kind() == ErrorKind::Damaged => return Ok(None),
        Err(error) => return Err(error),
    }
    let ends = rows.first().zip(rows.last());
    let named = of_messages(&rows).zip(ends);
    Ok(named.map(|(part, (first, last))| (part, first.0.clone(), last.0.clone())))
}

/// Callback for a row of a leaf: receives its key, and the cursor at the row.
type LeafRows<'f> = dyn FnMut(&[u8], &Cursor<'_, RawFile>) -> Result<()> + 'f;

/// Calls `f` for each row of a leaf of a nested table without tables in it. Returns false for any other leaf, before or
/// between rows.
fn each_row(raw: &RawFile, leaf: &Ptr, f: &mut LeafRows<'_>) -> Result<bool> {
    let tree = Tree::of_leaf(raw, leaf)?;
    if !tree.is_inner() || tree.is_multi() {
        return Ok(false);
    }
    let mut cursor = tree.cursor(raw);
    let mut there = cursor.first()?;
    while there {
        if cursor.is_nested() {
            return Ok(false);
        }
        let key = cursor.key().to_vec();
        f(&key, &cursor)?;
        there = cursor.next()?;
    }
    Ok(true)
}

/// The readable rows of a leaf; `None` for a leaf of an outermost table, with nested tables, or that cannot be read.
fn rows_of_inner(raw: &RawFile, leaf: &Ptr) -> Result<Option<Vec<LeafRow>>> {
    let mut rows = Vec::new();
    let read = each_row(raw, leaf, &mut |key, cursor| {
        // A value in an extent may be lost: the other rows are still there.
        match cursor.value().and_then(|value| value.to_vec()) {
            Ok(value) => rows.push((key.to_vec(), value)),
            Err(tidalite_pager::Error::Corrupt(_)) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    });
    match read {
        Ok(true) => Ok(Some(rows)),
        Ok(false) => Ok(None),
        Err(error) if error.kind() == ErrorKind::Damaged => Ok(None),
        Err(error) => Err(error),
    }
}
