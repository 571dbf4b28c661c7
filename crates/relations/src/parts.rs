//! The parts of a relation: rows and nested tables of one table, its root.
//!
//! ```text
//! key                row
//! 0                  schema
//! 1                  nested table: primary key -> fields. Its sequence gives the hidden keys
//! 2, u32 big-endian  nested table: columns of the index with this number, primary key -> empty
//! ```

use crate::error::damaged;
use crate::layout::Layout;
use tidalite_kv::{TableReader, Tree, part};
use tidalite_pager::{PageRead, PageWrite, Result};

pub(crate) const SCHEMA: [u8; 1] = [0];
pub(crate) const ROWS: [u8; 1] = [1];
const INDEX: u8 = 2;

/// The key of an index in the root table.
pub(crate) fn index_key(number: u32) -> [u8; 5] {
    let [a, b, c, d] = number.to_be_bytes();
    [INDEX, a, b, c, d]
}

/// Reads the schema.
pub(crate) fn read_layout<R: PageRead>(root: &Tree, r: &R) -> Result<Layout> {
    match root.get(r, &SCHEMA)? {
        Some(value) => Layout::decode(&value.bytes()?),
        None => Err(damaged("table of a relation", "no schema", "a schema")),
    }
}

/// Stores the schema.
pub(crate) fn write_layout<W: PageWrite>(
    root: &mut Tree,
    w: &mut W,
    layout: &Layout,
) -> Result<()> {
    root.insert(w, &SCHEMA, &layout.encode())?;
    Ok(())
}

/// The rows of a relation, with their primary keys.
///
/// # Errors
/// A damaged or unreadable page.
pub fn relation_rows<'r, R: PageRead>(root: &Tree, r: &'r R) -> Result<TableReader<'r>> {
    part(root, r, &ROWS)
}
