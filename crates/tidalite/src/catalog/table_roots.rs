//! The roots of named tables: storage and lookup.
//!
//! Invariants
//! 1. The newest root of a table is the root in the list `Roots::inline` under the id of the table, if one exists;
//!    otherwise the root in the entry of the table in the `tables` tree.
//! 2. A nested table is reachable by exactly one path. If a walk meets the same root twice, the file is damaged on
//!    purpose.

use crate::catalog::roots::Roots;
use crate::types::error::Result;
use crate::types::table_types::TableTypes;
use std::collections::HashSet;
use std::ops::Bound;
use tidalite_base::Corrupt;
use tidalite_kv::Tree;
use tidalite_pager::{PageRead, WriteTxn as PagesMut};

/// Moves every inline root to its entry in the `tables` tree. Cost: one pass over the names of all tables.
pub(crate) fn flush_inline(roots: &mut Roots, pages: &mut PagesMut) -> Result<()> {
    let mut names = Vec::new();
    let mut cursor = roots.tables.cursor(&*pages);
    let mut found = cursor.first()?;
    while found {
        let mut entry = decode_table_entry(&cursor.value()?.to_vec()?)?;
        if let Some((_, tree)) = roots.inline.iter().find(|(inline, _)| *inline == entry.id) {
            entry.tree = *tree;
            names.push((cursor.key().to_vec(), entry.encode()));
        }
        found = cursor.next()?;
    }
    drop(cursor);
    for (name, entry) in names {
        roots.tables.insert(pages, &name, &entry)?;
    }
    roots.inline.clear();
    Ok(())
}

/// A table's entry in the catalog.
#[derive(Clone, Debug)]
pub(crate) struct TableEntry {
    pub(crate) id: u64,
    pub(crate) tree: Tree,
    /// Names of the key and value types; `None` for a table of plain bytes.
    pub(crate) types: Option<TableTypes>,
}

impl TableEntry {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut entry = self.id.to_le_bytes().to_vec();
        entry.extend_from_slice(&self.tree.encode());
        if let Some(types) = &self.types {
            types.encode(&mut entry);
        }
        entry
    }
}

/// Length in bytes of a table's id and root; the names of the table's types follow.
const ROOT_BYTES: usize = 8 + tidalite_kv::TREE_BYTES;

pub(crate) fn decode_table_entry(bytes: &[u8]) -> Result<TableEntry> {
    let damaged =
        |found: String, expected: &str| Corrupt::new("entry of a table", 0, found, expected);
    let Some((root, types)) = bytes.split_first_chunk::<ROOT_BYTES>() else {
        return Err(damaged(format!("{} bytes", bytes.len()), "72 bytes").into());
    };
    let types =
        match types {
            [] => None,
            names => Some(TableTypes::decode(names).ok_or_else(|| {
                damaged(names.escape_ascii().to_string(), "the names of two types")
            })?),
        };
    Ok(TableEntry {
        id: tidalite_base::get_u64(root, 0),
        tree: Tree::decode(&root[8..])?,
        types,
    })
}

/// Looks up a table by name. The entry returned has the newest root of the table, inline or not.
pub(crate) fn find_table<R: PageRead>(
    roots: &Roots,
    pages: &R,
    name: &str,
) -> Result<Option<TableEntry>> {
    let Some(entry) = roots.tables.get(pages, name.as_bytes())? else {
        return Ok(None);
    };
    let mut entry = decode_table_entry(&entry.to_vec()?)?;
    if let Some((_, tree)) = roots.inline.iter().find(|(inline, _)| *inline == entry.id) {
        entry.tree = *tree;
    }
    Ok(Some(entry))
}

/// Returns an error for a nested table whose root is already in `met`: in a hostile file, many paths could lead to one
/// table, and a walk would read it once per path.
pub(crate) fn expect_first_time(tree: &Tree, met: &mut HashSet<u64>) -> Result<()> {
    let root = tree.root();
    if !root.is_null() && !met.insert(root.addr) {
        return Err(Corrupt::new(
            "nested table",
            root.addr,
            "a second pointer to it",
            "one pointer",
        )
        .into());
    }
    Ok(())
}

/// The name of the first table at or after `name`, in the order of the catalog.
pub(crate) fn table_from<R: PageRead>(
    tables: &Tree,
    pages: &R,
    name: Bound<&[u8]>,
) -> Result<Option<String>> {
    let mut cursor = tables.cursor(pages);
    let found = match name {
        Bound::Included(name) => cursor.seek_ge(name)?,
        Bound::Excluded(name) => cursor.seek_gt(name)?,
        Bound::Unbounded => cursor.first()?,
    };
    if !found {
        return Ok(None);
    }
    let key = cursor.key();
    let damaged =
        |found: String, expected: &str| Corrupt::new("name of a table", 0, found, expected);
    // In a damaged catalog the next name may be less than the current one; a walk from name to name would then never
    // end.
    let forward = match name {
        Bound::Included(name) => key >= name,
        Bound::Excluded(name) => key > name,
        Bound::Unbounded => true,
    };
    if !forward {
        let found = key.escape_ascii().to_string();
        return Err(damaged(found, "names that ascend").into());
    }
    let name = std::str::from_utf8(key);
    let name = name.map_err(|error| damaged(error.to_string(), "UTF-8"))?;
    Ok(Some(name.to_owned()))
}
