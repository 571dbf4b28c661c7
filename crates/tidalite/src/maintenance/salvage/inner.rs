//! Leaves of nested tables that no page leads to any more, of hash tables, buffered tables, topics, queues, buckets,
//! tables of containers and relations.
//!
//! All content of these tables is in nested tables. The leaf of a nested table does not name the table; here the form
//! of its rows identifies the table (`tidalite_index`, `tidalite_messages`, `tidalite_relations`). Only parts from
//! which others are built are recognised.

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
use tidalite_relations::part_of_relation_rows;

/// The nested tables of a table, as a walk through the table found them.
#[derive(Default)]
pub(super) struct Below {
    /// Addresses of the leaves of nested tables that were reached.
    pub(super) reached: BTreeSet<u64>,
    /// The ranges of keys that are lost in the nested tables of the outermost table, under the keys of these tables.
    pub(super) lost: BTreeMap<Key, Vec<Lost>>,
    /// Whether a part of the outermost table is lost, so that whole nested tables may also be lost.
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

/// Calls `f` with the rows of lost ranges in leaves that were found by their headers, the newest leaf first. `state` is
/// the state of a buffered table.
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
            match readable(cursor, u64::MAX)? {
                Some(value) => f(&part, key, &value),
                None => Ok(()),
            }
        })?;
        covered.add(first, last);
    }
    Ok(())
}

/// Longer values are not read to recognise a leaf, except in hash tables and buffered tables, whose leaves are
/// recognised by all values.
const KNOWN_BYTES_MAX: u64 = 64 << 10;

/// The nested table of a leaf, and the first and the last key of the leaf; `None` if the table is unknown.
fn part_of_leaf(
    raw: &RawFile,
    leaf: &Ptr,
    (layout, state): (TableLayout, Option<&[u8]>),
) -> Result<Option<([u8; 1], Key, Key)>> {
    let bytes_max = match layout {
        TableLayout::Rows => return Ok(None),
        TableLayout::Hash | TableLayout::Buffered => u64::MAX,
        _ => KNOWN_BYTES_MAX,
    };
    let Some(rows) = rows_of(raw, leaf, bytes_max)? else {
        return Ok(None);
    };
    let with_values = || -> Vec<LeafRow> {
        let rows = rows.iter();
        rows.filter_map(|(key, value)| Some((key.clone(), value.clone()?)))
            .collect()
    };
    let part = match layout {
        TableLayout::Rows => None,
        TableLayout::Hash => part_of_hash_rows(&with_values()),
        TableLayout::Buffered => part_of_buffered_rows(&with_values(), state),
        TableLayout::Topics => part_of_topic_rows(&rows),
        TableLayout::Queue => part_of_queue_rows(&rows),
        TableLayout::Bucket => part_of_bucket_rows(&rows),
        TableLayout::Containers => part_of_container_rows(&rows),
        TableLayout::Relation => part_of_relation_rows(&rows),
    };
    let ends = rows.first().zip(rows.last());
    let named = part.zip(ends);
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

/// The value at which a cursor is; `None` if it is longer than `bytes_max`, or in an extent that is lost: the other
/// rows are still there.
fn readable(cursor: &Cursor<'_, RawFile>, bytes_max: u64) -> Result<Option<Vec<u8>>> {
    let read = cursor
        .value()
        .and_then(|value| match value.len() > bytes_max {
            true => Ok(None),
            false => value.to_vec().map(Some),
        });
    match read {
        Ok(value) => Ok(value),
        Err(tidalite_pager::Error::Corrupt(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A row of a leaf. The value is `None` if it is lost or too long.
type FoundRow = (Key, Option<Vec<u8>>);

/// The keys of a leaf with the values that are readable and have at most `bytes_max` bytes; `None` for a leaf of an
/// outermost table, with nested tables, or that cannot be read.
fn rows_of(raw: &RawFile, leaf: &Ptr, bytes_max: u64) -> Result<Option<Vec<FoundRow>>> {
    let mut rows = Vec::new();
    let read = each_row(raw, leaf, &mut |key, cursor| {
        rows.push((key.to_vec(), readable(cursor, bytes_max)?));
        Ok(())
    });
    match read {
        Ok(true) => Ok(Some(rows)),
        Ok(false) => Ok(None),
        Err(error) if error.kind() == ErrorKind::Damaged => Ok(None),
        Err(error) => Err(error),
    }
}
