//! Leaves of the nested tables of hash tables and buffered tables that no page leads to any more.
//!
//! All content of these tables is in nested tables. The leaf of a nested table does not name the table; here the form of its
//! rows tells which one it is (`tidalite_index`).

use super::collect::Collected;
use super::ranges::{Covered, Key, Lost};
use crate::types::error::Result;
use crate::types::error::kind::ErrorKind;
use crate::types::table_types::TableLayout;
use std::collections::{BTreeMap, BTreeSet};
use tidalite_index::{LeafRow, part_of_buffered_rows, part_of_hash_rows};
use tidalite_kv::Tree;
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
        let Some(rows) = rows_of_inner(raw, &leaf)? else {
            continue;
        };
        let part = match layout {
            TableLayout::Hash => part_of_hash_rows(&rows),
            TableLayout::Buffered => part_of_buffered_rows(&rows, state),
            TableLayout::Rows
            | TableLayout::Topics
            | TableLayout::Queue
            | TableLayout::Bucket
            | TableLayout::Containers => None,
        };
        let (Some(part), Some((first, _)), Some((last, _))) = (part, rows.first(), rows.last())
        else {
            continue;
        };
        let covered = covered.entry(part).or_default();
        for (key, value) in &rows {
            if below.is_lost(&part, key) && !covered.has(key) {
                f(&part, key, value)?;
            }
        }
        covered.add(first.clone(), last.clone());
    }
    Ok(())
}

/// The readable rows of a leaf; `None` for a leaf of an outermost table, with nested tables, or that cannot be read.
fn rows_of_inner(raw: &RawFile, leaf: &Ptr) -> Result<Option<Vec<LeafRow>>> {
    let read = || -> Result<Option<Vec<LeafRow>>> {
        let tree = Tree::of_leaf(raw, leaf)?;
        if !tree.is_inner() || tree.is_multi() {
            return Ok(None);
        }
        let mut rows = Vec::new();
        let mut cursor = tree.cursor(raw);
        let mut there = cursor.first()?;
        while there {
            if cursor.is_nested() {
                return Ok(None);
            }
            // A value in an extent may be lost: the other rows are still there.
            match cursor.value().and_then(|value| value.to_vec()) {
                Ok(value) => rows.push((cursor.key().to_vec(), value)),
                Err(tidalite_pager::Error::Corrupt(_)) => {}
                Err(error) => return Err(error.into()),
            }
            there = cursor.next()?;
        }
        Ok(Some(rows))
    };
    match read() {
        Err(error) if error.kind() == ErrorKind::Damaged => Ok(None),
        read => read,
    }
}
