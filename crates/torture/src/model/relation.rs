//! Relations in the model, and the lines by which a database is compared with them.

use std::collections::{BTreeMap, BTreeSet};
use tidalite::relation::{Cell, KeyBounds};
use tidalite::{ReadTxn, Result};

/// The relation without a primary key.
pub const HIDDEN: &str = "r1";

/// The expected content of a relation.
#[derive(Clone, Debug, Default)]
pub struct Relation {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Names of the indexes.
    pub indexes: BTreeSet<String>,
    /// The next hidden key.
    pub next: u64,
    /// The rows, by primary key or hidden key.
    pub rows: BTreeMap<u64, Vec<Cell>>,
}

impl Relation {
    /// Lines that describe the whole content.
    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        let Self {
            columns,
            indexes,
            next,
            rows,
        } = self;
        let head = format!("relation {name}: {columns:?}, indexes {indexes:?}, next {next}");
        let rows = rows.iter().map(|(key, row)| format!("{key}: {row:?}"));
        std::iter::once(head).chain(rows).collect()
    }
}

/// The content of a relation in a snapshot. An index that disagrees with the rows has a name that no model gives.
///
/// # Errors
/// An error of the database.
pub(crate) fn relation_of(snap: &ReadTxn, name: &str) -> Result<Relation> {
    let mut found = Relation::default();
    let Some(relation) = snap.relation(name)? else {
        return Ok(found);
    };
    let columns = relation.schema().columns().iter();
    found.columns = columns.map(|column| column.name.clone()).collect();
    let mut rows = relation.rows(KeyBounds::all())?;
    while let Some(row) = rows.next()? {
        let cells = row.to_cells()?;
        let key = match (&cells[0], name == HIDDEN) {
            (Cell::I64(id), false) => id.unsigned_abs(),
            _ => u64::from_be_bytes(row.key_bytes().try_into().unwrap_or_default()),
        };
        found.rows.insert(key, cells);
    }
    let names = relation.schema().indexes().iter();
    for index in names.map(|index| index.name.clone()) {
        let mut keys = BTreeSet::new();
        let mut rows = relation.rows_by(&index, KeyBounds::all())?.rev();
        while let Some(row) = rows.next()? {
            keys.insert(row.key());
        }
        let is_whole = keys.len() == found.rows.len();
        let wrong = format!("{index} with {} rows", keys.len());
        found.indexes.insert(if is_whole { index } else { wrong });
    }
    if let Some(raw) = snap.raw_table(name)? {
        found.next = raw.nested(&[1])?.map_or(0, |rows| rows.sequence());
    }
    Ok(found)
}
