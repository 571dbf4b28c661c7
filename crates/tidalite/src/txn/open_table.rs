//! The tables that a write transaction has open, and those kept from the previous transaction.

use crate::catalog::roots::Roots;
use crate::catalog::table_roots::TableEntry;
use crate::types::error::Result;
use crate::types::table_types::TableTypes;
use std::sync::{Arc, OnceLock};
use tidalite_base::Corrupt;
use tidalite_kv::{AppendCursor, Tree};
use tidalite_pager::PageRead;
use tidalite_relations::Layout;

/// Maximum length of a table name in bytes.
pub const TABLE_NAME_BYTES_MAX: usize = 255;

/// Maximum number of tables kept for the next transaction.
const KNOWN_MAX: usize = 16;

/// A table opened by this transaction.
#[derive(Clone, Debug)]
pub(crate) struct OpenTable {
    pub(crate) name: String,
    pub(crate) id: u64,
    pub(crate) tree: Tree,
    /// Names of the key and value types; `None` for a table of plain bytes.
    pub(crate) types: Option<TableTypes>,
    /// The rightmost path of the table, remembered for appends; any other change resets it.
    pub(crate) append_cursor: AppendCursor,
    pub(crate) changed: bool,
    /// Whether the `tables` tree of the catalog does not contain the table under this name yet.
    pub(crate) created: bool,
    /// Whether the types stored in the `tables` tree of the catalog are out of date.
    pub(crate) retyped: bool,
    /// The decoded schema of a relation, once it was needed.
    pub(crate) layout: OnceLock<Arc<Layout>>,
}

impl OpenTable {
    /// A table with this catalog entry; `created` if the catalog does not contain the entry yet.
    pub(crate) fn of(name: String, entry: TableEntry, created: bool) -> Self {
        Self {
            name,
            id: entry.id,
            tree: entry.tree,
            types: entry.types,
            append_cursor: AppendCursor::default(),
            changed: created,
            created,
            retyped: false,
            layout: OnceLock::new(),
        }
    }

    /// The catalog entry that this table should have.
    pub(crate) fn entry(&self) -> TableEntry {
        TableEntry {
            id: self.id,
            tree: self.tree,
            types: self.types.clone(),
        }
    }
}

/// The names of all tables, in order: the tables in the catalog, and open tables that the catalog does not contain yet.
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

/// The tables to keep for the next transaction: the open ones, and those known before if the catalog has not changed.
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
