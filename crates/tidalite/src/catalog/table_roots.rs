//! The roots of named tables: where they are kept and found.
//!
//! Invariants
//! 1. The newest root of a table is the inline one, if there is one with its id, else the one in the `tables` tree.
//! 2. A tree nested in a table has one way to it; a walk that meets its root again is in a hostile file.

use crate::catalog::roots::{INLINE_ROOTS_MAX, Roots};
use crate::txn::write::WriteTxn;
use crate::types::error::Result;
use std::collections::HashSet;
use tidalite_base::Corrupt;
use tidalite_kv::Tree;
use tidalite_pager::{PageRead, WriteTxn as PagesMut};

impl WriteTxn {
    /// Notes the root of every table that changed.
    pub(crate) fn keep_table_roots(&mut self) -> Result<()> {
        let Self {
            tables,
            roots,
            pages,
            ..
        } = self;
        for table in tables.iter_mut().filter(|table| table.changed) {
            table.tree.seal(pages)?;
            if table.created {
                let entry = table_entry(table.id, &table.tree);
                roots.tables.insert(pages, table.name.as_bytes(), &entry)?;
                continue;
            }
            if let Some((_, root)) = roots.inline.iter_mut().find(|(id, _)| *id == table.id) {
                *root = table.tree;
                continue;
            }
            if roots.inline.len() == INLINE_ROOTS_MAX {
                flush_inline(roots, pages)?;
            }
            roots.inline.push((table.id, table.tree));
        }
        Ok(())
    }
}

/// Moves every inline root to the `tables` tree. Cost: one pass over the names of all tables.
fn flush_inline(roots: &mut Roots, pages: &mut PagesMut) -> Result<()> {
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

fn table_entry(id: u64, tree: &Tree) -> Vec<u8> {
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

/// Refuses a nested table whose root is among those that were met: a hostile file may lead to one in many ways, and a walk would go
/// each of them.
pub(crate) fn expect_first_time(tree: &Tree, met: &mut HashSet<u64>) -> Result<()> {
    let root = tree.root();
    if !root.is_null() && !met.insert(root.addr) {
        return Err(Corrupt::new("nested table", root.addr, "a second way to it", "one").into());
    }
    Ok(())
}
