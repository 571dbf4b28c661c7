//! The parts of an index: rows and nested tables of one table, its root.
//!
//! ```text
//! key      row
//! 0        options: fixed when the index is created
//! 1        state: counters, and the list of the runs
//! 2        nested table of records (hash tables only)
//! 3        nested table: the main table
//! 4        nested table: the blocks of all runs, by the number of the run and their first key
//! 5        nested table: sets of record numbers (hash tables only)
//! 6        nested table: the filters of runs (`runs/filter.rs`)
//! ```

use tidalite_base::Corrupt;
use tidalite_kv::{TableReader, TableWriter, Tree};
use tidalite_pager::{Error, PageRead, PageWrite, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Options,
    State,
    Records,
    Main,
    Runs,
    Sets,
    Filters,
}

impl Part {
    pub(crate) fn key(self) -> [u8; 1] {
        [self as u8]
    }
}

/// Opens a part for reading; an empty table if the part does not exist yet.
pub(crate) fn part<'r, R: PageRead>(root: &Tree, r: &'r R, part: Part) -> Result<TableReader<'r>> {
    tidalite_kv::part(root, r, &part.key())
}

/// Reads a row; an error if it is missing.
pub(crate) fn row<R: PageRead>(root: &Tree, r: &R, part: Part) -> Result<Vec<u8>> {
    match root.get(r, &part.key())? {
        Some(value) => value.to_vec(),
        None => Err(missing(part)),
    }
}

#[cold]
fn missing(part: Part) -> Error {
    Corrupt::new("table of an index", 0, "no such row", format!("{part:?}")).into()
}

/// Changes a part, which is created if it does not exist.
pub(crate) fn change<W: PageWrite, T>(
    root: &mut Tree,
    w: &mut W,
    part: Part,
    change: &mut dyn FnMut(&mut W, &mut TableWriter) -> Result<T>,
) -> Result<T> {
    tidalite_kv::change_part(root, w, &part.key(), change)
}
