//! Tables that a write transaction has open, and those that the one before had.

use crate::catalog::roots::Roots;
use crate::types::error::Result;
use tidalite_base::Corrupt;
use tidalite_kv::{Ending, Tree};
use tidalite_pager::PageRead;

/// Bytes of a table name at most.
pub const TABLE_NAME_BYTES_MAX: usize = 255;

/// Tables that a transaction leaves open for the next one.
const KNOWN_MAX: usize = 16;

/// A table that this transaction opened.
#[derive(Clone, Debug)]
pub(crate) struct OpenTable {
    pub(crate) name: String,
    pub(crate) id: u64,
    pub(crate) tree: Tree,
    /// Where its last row is, while rows are put in behind it.
    pub(crate) ending: Ending,
    pub(crate) changed: bool,
    /// It is not in the `tables` tree under this name.
    pub(crate) created: bool,
}

/// The names in the catalog and those of tables that are open and not in it yet, in order.
pub(crate) fn names<R: PageRead>(
    roots: &Roots,
    pages: &R,
    open: &[OpenTable],
) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let mut cursor = roots.tables.cursor(pages);
    while cursor.next()? {
        let name = std::str::from_utf8(cursor.key())
            .map_err(|error| Corrupt::new("name of a table", 0, error.to_string(), "UTF-8"))?;
        names.push(name.to_owned());
    }
    let created = open.iter().filter(|table| table.created);
    names.extend(created.map(|table| table.name.clone()));
    names.sort_unstable();
    Ok(names)
}

/// Of the tables that a transaction had open, and of those that it knew under this catalog, what the next one knows.
pub(crate) fn still_known(
    mut open: Vec<OpenTable>,
    (before, known): (Tree, Vec<OpenTable>),
    catalog: &Tree,
) -> Vec<OpenTable> {
    if before != *catalog {
        return Vec::new();
    }
    open.extend(known);
    open.truncate(KNOWN_MAX);
    open
}
