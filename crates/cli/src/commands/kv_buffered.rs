//! Changes that `kv` makes to buffered tables. `BufferedTableMut::put` and `remove` do not read the table, so `--new`
//! and removals look up the key first.

use super::kv_place::no_table;
use super::kv_types::layout_of;
use crate::database::{failure, open_to_write};
use crate::exit::{Failure, Outcome};
use crate::store;
use std::path::Path;
use tidalite::table::BufferedTableMut;
use tidalite::{TableLayout, WriteTxn};

/// Opens an existing buffered table as bytes.
pub(super) fn opened<'t>(
    tx: &'t mut WriteTxn,
    path: &Path,
    table: &str,
) -> Outcome<BufferedTableMut<'t>> {
    let opened = tx.raw_buffered_table(table);
    let opened = opened.map_err(|error| failure(path, &error))?;
    opened.ok_or_else(|| no_table(path, table))
}

/// Stores a pair; creates the table if it does not exist. With `new` an existing key is not changed, and the result is
/// false.
pub(super) fn put(
    tx: &mut WriteTxn,
    name: &str,
    (key, value): (&[u8], &[u8]),
    new: bool,
) -> tidalite::Result<bool> {
    let mut table = match tx.is_set_table(name)? {
        Some(_) => tx.raw_buffered_table(name)?,
        None => Some(tx.buffered_table(name)?),
    };
    let Some(table) = &mut table else {
        return Ok(false);
    };
    if new && table.contains(key)? {
        return Ok(false);
    }
    table.put(key, value)?;
    Ok(true)
}

/// Removes a key if it exists and has this value, or any value if `None`; returns whether the key was removed.
pub(super) fn remove(
    table: &mut BufferedTableMut<'_>,
    key: &[u8],
    value: Option<&[u8]>,
) -> tidalite::Result<bool> {
    let found = table.get(key)?;
    let is_removed = found.is_some_and(|found| value.is_none_or(|value| found == value));
    if is_removed {
        table.remove(key)?;
    }
    Ok(is_removed)
}

/// Runs the command `tidalite kv compact`; returns the number of pairs.
pub(super) fn compact(path: &Path, name: &str) -> Outcome<u64> {
    let fail = |error: tidalite::Error| failure(path, &error);
    let db = open_to_write(path)?;
    let snap = db.begin_read().map_err(fail)?;
    let exists = snap.is_set_table(name).map_err(fail)?.is_some();
    if exists && layout_of(&snap, name).map_err(fail)? != TableLayout::Buffered {
        return Err(Failure::bad_input(format!("table {name} is not a buffered table")).hint(
            "only a buffered table has runs to merge; `tidalite hash rebuild --compact` is for a hash table, `tidalite compact` for a file",
        ));
    }
    drop(snap);
    let mut tx = db.begin_write().map_err(fail)?;
    let mut table = opened(&mut tx, path, name)?;
    table.compact().map_err(fail)?;
    let pairs = table.view().and_then(|view| view.count()).map_err(fail)?;
    store::commit(tx).map_err(fail)?;
    store::close(db).map_err(fail)?;
    Ok(pairs)
}
