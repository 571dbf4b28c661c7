//! Relations in the model, and the lines by which a database is compared with them.

use std::collections::{BTreeMap, BTreeSet};
use tidalite::relation::{Cell, KeyBounds};
use tidalite::{ReadTxn, Relation as Stored, Result};

/// The relation without a primary key.
pub const HIDDEN: &str = "r1";

/// The expected content of a relation.
#[derive(Clone, Debug, Default)]
pub struct Relation {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Default of each column.
    pub defaults: Vec<Option<Cell>>,
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
            defaults,
            indexes,
            next,
            rows,
        } = self;
        let head = format!(
            "relation {name}: {columns:?}, defaults {defaults:?}, indexes {indexes:?}, next {next}"
        );
        let rows = rows.iter().map(|(key, row)| format!("{key}: {row:?}"));
        std::iter::once(head).chain(rows).collect()
    }
}

/// The content of a relation in a snapshot. An index, or a way to look rows up, that disagrees with the rows
/// gives the name of an index that no model has.
///
/// # Errors
/// An error of the database.
pub(crate) fn relation_of(snap: &ReadTxn, name: &str) -> Result<Relation> {
    let mut found = Relation::default();
    let Some(relation) = snap.relation(name)? else {
        return Ok(found);
    };
    let columns = relation.schema().columns().iter();
    for column in columns {
        found.columns.push(column.name.clone());
        found.defaults.push(column.default.clone());
    }
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
    if !lookups_agree(&relation, &found)? {
        found.indexes.insert("lookups that disagree".to_owned());
    }
    if let Some(raw) = snap.raw_table(name)? {
        found.next = raw.nested(&[1])?.map_or(0, |rows| rows.sequence());
    }
    Ok(found)
}

/// Whether counts, ranges and lookups by key give the rows that a walk over all rows has found.
fn lookups_agree(relation: &Stored<'_>, found: &Relation) -> Result<bool> {
    let count = found.rows.len() as u64;
    let all = KeyBounds::all;
    let mut agree = relation.count() == count && relation.count_in(all())? == count;
    for index in relation.schema().indexes() {
        agree &= relation.count_by(&index.name, all())? == count;
    }
    let cuts = relation.split(all(), 3)?;
    let mut known = found.rows.values();
    for part in 0..=cuts.len() {
        let from = part.checked_sub(1).map(|at| &cuts[at]);
        let mut rows = relation.rows_between(all(), from, cuts.get(part))?;
        while let Some(row) = rows.next()? {
            let cells = row.to_cells()?;
            agree &= known.next() == Some(&cells);
            if part == 0 {
                let by_key = relation.with_row(&row.key(), |row| row.to_cells())?;
                agree &= by_key == Some(cells);
            }
        }
    }
    Ok(agree && known.next().is_none())
}
