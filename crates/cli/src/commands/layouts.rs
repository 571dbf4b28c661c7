//! The layouts of tables: their names, and the commands that read them.

use crate::database::failure;
use crate::exit::{Failure, Outcome};
use std::path::Path;
use tidalite::{ReadTxn, TableLayout};

/// A noun for a table of this layout.
pub(super) fn noun(layout: TableLayout) -> &'static str {
    match layout {
        TableLayout::Rows => "a table of keys and values",
        TableLayout::Hash => "a hash table",
        TableLayout::Buffered => "a buffered table",
        TableLayout::Topics => "a table of topics",
        TableLayout::Queue => "a queue",
        TableLayout::Bucket => "a bucket of objects",
        TableLayout::Containers => "a table of containers",
        TableLayout::Relation => "a relation",
    }
}

/// The word for a layout in JSON and in the header of a dump.
pub(super) fn word(layout: TableLayout) -> &'static str {
    match layout {
        TableLayout::Rows => "rows",
        TableLayout::Hash => "hash",
        TableLayout::Buffered => "buffered",
        TableLayout::Topics => "topics",
        TableLayout::Queue => "queue",
        TableLayout::Bucket => "bucket",
        TableLayout::Containers => "containers",
        TableLayout::Relation => "relation",
    }
}

/// Whether a dump contains the rows and nested tables in which a table of this layout is stored, instead of its pairs.
pub(super) fn is_raw(layout: TableLayout) -> bool {
    !matches!(layout, TableLayout::Rows | TableLayout::Buffered)
}

/// A sentence that names the commands for tables of this layout.
pub(super) fn advice(layout: TableLayout) -> &'static str {
    match layout {
        TableLayout::Rows | TableLayout::Buffered => {
            "`tidalite kv` has the commands for it: get, put, del, scan and stat"
        }
        TableLayout::Hash => {
            "`tidalite hash` has the commands for it: get, set, del, scan, stat and rebuild"
        }
        TableLayout::Topics => {
            "`tidalite topic` has the commands for it: get, set, match, rm, watch and stat"
        }
        TableLayout::Queue => {
            "`tidalite queue` has the commands for it: push, lease, ack, peek, purge and stat"
        }
        TableLayout::Bucket => {
            "`tidalite object` has the commands for it: get, put, ls, rm, verify and stat"
        }
        TableLayout::Containers => {
            "`tidalite container` has the commands for it: put, get, latest, ls, rm and stat"
        }
        TableLayout::Relation => {
            "`tidalite sql` reads and changes it, `tidalite dump` and `tidalite load` copy it"
        }
    }
}

/// The layout of a table; `None` if it does not exist.
pub(super) fn layout_if_any(snap: &ReadTxn, table: &str) -> tidalite::Result<Option<TableLayout>> {
    match snap.table_types(table)? {
        Some(types) => Ok(Some(types.layout())),
        None => Ok(snap.is_set_table(table)?.map(|_| TableLayout::Rows)),
    }
}

/// The failure for a table whose layout is not the one that the command needs.
pub(super) fn other_layout(table: &str, found: TableLayout) -> Failure {
    Failure::bad_input(format!("table {table} is {}", noun(found))).hint(advice(found))
}

/// Whether a table of this layout exists; a failure if the table has another layout.
pub(super) fn exists_as(
    snap: &ReadTxn,
    path: &Path,
    table: &str,
    layout: TableLayout,
) -> Outcome<bool> {
    match layout_if_any(snap, table).map_err(|error| failure(path, &error))? {
        None => Ok(false),
        Some(found) if found == layout => Ok(true),
        Some(found) => Err(other_layout(table, found)),
    }
}

/// The names of all tables of a layout.
pub(super) fn tables_of(snap: &ReadTxn, layout: TableLayout) -> tidalite::Result<Vec<String>> {
    let mut names = Vec::new();
    for name in snap.tables()? {
        if layout_if_any(snap, &name)? == Some(layout) {
            names.push(name);
        }
    }
    Ok(names)
}
