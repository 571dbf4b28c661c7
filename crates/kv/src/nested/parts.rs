//! Parts: nested tables under keys of one byte, for structures that consist of several tables.

use crate::nested::table_reader::TableReader;
use crate::nested::table_writer::{MissingTable, TableWriter};
use crate::table::tree::Tree;
use tidalite_base::Corrupt;
use tidalite_pager::{PageRead, PageWrite, Result};

/// Opens the nested table under the one-byte key `part` for reading; an empty table if the key does not exist.
///
/// # Errors
/// A damaged or unreadable page; `Unsupported` if the key holds a value.
pub fn part<'r, R: PageRead>(root: &Tree, r: &'r R, part: u8) -> Result<TableReader<'r>> {
    let found = TableReader::of(*root).nested(r, &[part])?;
    Ok(found.unwrap_or_else(|| TableReader::of(Tree::new(root.id()))))
}

/// Changes the nested table under the one-byte key `part`, which is created if it does not exist.
///
/// # Errors
/// A damaged page, a full disk; errors of `change`.
pub fn change_part<W: PageWrite, T>(
    root: &mut Tree,
    w: &mut W,
    part: u8,
    change: &mut dyn FnMut(&mut W, &mut TableWriter) -> Result<T>,
) -> Result<T> {
    let mut table = TableWriter::of(*root);
    let done = table.at(w, &[vec![part]], MissingTable::CreateToFill, change)?;
    match (table.tree(), done) {
        (Some(tree), Some(done)) => {
            *root = *tree;
            Ok(done)
        }
        _ => Err(Corrupt::new("table of parts", 0, "no such row", format!("part {part}")).into()),
    }
}
