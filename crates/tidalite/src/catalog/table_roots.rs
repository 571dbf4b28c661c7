//! The roots of named tables: storage and lookup.
//!
//! Invariants
//! 1. The newest root of a table is the inline one, if there is one with its id, else the one in the `tables` tree.
//! 2. A tree nested in a table is reachable by one path; meeting its root twice means that the file is hostile.

use crate::catalog::roots::Roots;
use crate::types::error::Result;
use std::collections::HashSet;
use std::ops::Bound;
use tidalite_base::Corrupt;
use tidalite_kv::Tree;
use tidalite_pager::{PageRead, WriteTxn as PagesMut};

/// Moves every inline root to the `tables` tree. Cost: one pass over the names of all tables.
pub(crate) fn flush_inline(roots: &mut Roots, pages: &mut PagesMut) -> Result<()> {
    let mut names = Vec::new();
    let mut cursor = roots.tables.cursor(&*pages);
    let mut found = cursor.first()?;
    while found {
        let (id, _) = decode_table_entry(&cursor.value()?.to_vec()?)?;
        if let Some((_, tree)) = roots.inline.iter().find(|(inline, _)| *inline == id) {
            names.push((cursor.key().to_vec(), table_entry(id, tree)));
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

pub(crate) fn table_entry(id: u64, tree: &Tree) -> Vec<u8> {
    let mut entry = id.to_le_bytes().to_vec();
    entry.extend_from_slice(&tree.encode());
    entry
}

pub(crate) fn decode_table_entry(bytes: &[u8]) -> Result<(u64, Tree)> {
    let Some((id, tree)) = bytes.split_first_chunk::<8>() else {
        let found = format!("{} bytes", bytes.len());
        return Err(Corrupt::new("entry of a table", 0, found, "72 bytes").into());
    };
    Ok((u64::from_le_bytes(*id), Tree::decode(tree)?))
}

/// The newest root of a table, and its id.
pub(crate) fn find_table<R: PageRead>(
    roots: &Roots,
    pages: &R,
    name: &str,
) -> Result<Option<(u64, Tree)>> {
    let Some(entry) = roots.tables.get(pages, name.as_bytes())? else {
        return Ok(None);
    };
    let (id, tree) = decode_table_entry(&entry.to_vec()?)?;
    let inline = roots.inline.iter().find(|(inline, _)| *inline == id);
    Ok(Some((id, inline.map_or(tree, |(_, tree)| *tree))))
}

/// Refuses a nested table whose root was already visited: in a hostile file many paths may lead to one table, and a
/// walk would follow each.
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

/// The first table at or after `name`, as stored in the catalog.
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
    // In a damaged catalog that leads backwards, a walk from name to name would loop forever.
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
