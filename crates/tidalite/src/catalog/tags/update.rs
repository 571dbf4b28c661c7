//! Keeps the index of tags in step with the catalog.

use crate::catalog::tags::keys::{self, METRIC, SetKey};
use crate::types::error::Result;
use crate::types::name::SeriesName;
use tidalite_base::SeriesId;
use tidalite_index::Changes;
use tidalite_kv::{TableWriter, Tree};
use tidalite_pager::PageWrite;

/// Number of changes that a transaction collects before it stores them. A change takes about 100 bytes.
const CHANGES_MAX: usize = 1 << 16;

/// Notes a new series.
pub(crate) fn add(changes: &mut Changes, id: SeriesId, name: Option<&SeriesName>) {
    each_key(name, &mut |key| changes.add(&key, id.0));
}

/// Notes a series that is removed or loses this name.
pub(crate) fn remove(changes: &mut Changes, id: SeriesId, name: Option<&SeriesName>) {
    each_key(name, &mut |key| changes.remove(&key, id.0));
}

/// Calls `each` with the key of every set that holds a series of this name.
pub(crate) fn each_key(name: Option<&SeriesName>, each: &mut dyn FnMut(Vec<u8>)) {
    each(keys::any(METRIC));
    let Some(name) = name else {
        return each(keys::unnamed());
    };
    each(keys::value(METRIC, name.metric()));
    for (key, value) in name.tags() {
        each(keys::any(key));
        each(keys::value(key, value));
    }
}

/// Whether a series of this name belongs in a set.
pub(crate) fn belongs(set: &SetKey, name: Option<&SeriesName>) -> bool {
    match (set, name) {
        (SetKey::Any(key), _) if key == METRIC => true,
        (SetKey::Any(key), Some(name)) => name.tag(key).is_some(),
        (SetKey::Value(key, metric), Some(name)) if key == METRIC => name.metric() == metric,
        (SetKey::Value(key, value), Some(name)) => name.tag(key) == Some(value),
        (SetKey::Unnamed, name) => name.is_none(),
        (_, None) => false,
    }
}

/// Stores all changes.
pub(crate) fn store<W: PageWrite>(
    tree: &mut Tree,
    pages: &mut W,
    changes: &mut Changes,
) -> Result<()> {
    let mut table = TableWriter::of(*tree);
    let applied = tidalite_index::apply(&mut table, pages, changes);
    if let Some(changed) = table.tree() {
        *tree = *changed;
    }
    Ok(applied?)
}

/// Stores the changes if there are many, so that a transaction that creates millions of series needs little memory.
pub(crate) fn store_many<W: PageWrite>(
    tree: &mut Tree,
    pages: &mut W,
    changes: &mut Changes,
) -> Result<()> {
    if changes.len() < CHANGES_MAX {
        return Ok(());
    }
    store(tree, pages, changes)
}
