//! Relations in the model, and the lines by which a database is compared with them.

use super::reading::Reading;
use std::collections::{BTreeMap, BTreeSet};
use tidalite::relation::{Cell, Index, KeyBounds, Relation as Stored, Schema};
use tidalite::{ReadTxn, Result};

/// The relation without a primary key.
pub const HIDDEN: &str = "r1";

/// The expected content of a relation.
#[derive(Clone, Debug, Default)]
pub struct Relation {
    /// The columns, the primary key and the indexes.
    pub schema: Schema,
    /// The next hidden key.
    pub next: u64,
    /// The rows, by primary key or hidden key.
    pub rows: BTreeMap<u64, Vec<Cell>>,
}

impl Relation {
    /// Lines that describe the whole content.
    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        let Self { schema, next, rows } = self;
        let head = format!("relation {name}: {schema:?}, next {next}");
        let rows = rows.iter().map(|(key, row)| format!("{key}: {row:?}"));
        std::iter::once(head).chain(rows).collect()
    }
}

/// The content of a relation in a snapshot. An index, or a way to look rows up, that disagrees with the rows
/// gives the name of an index that no model has.
///
/// # Errors
/// An error of the database.
pub(crate) fn relation_of(snap: &ReadTxn, name: &str, reading: Reading) -> Result<Relation> {
    let mut found = Relation::default();
    let Some(relation) = snap.relation(name)? else {
        return Ok(found);
    };
    found.schema = relation.schema().clone();
    let mut rows = relation.rows(KeyBounds::all())?;
    while let Some(row) = rows.next()? {
        let cells = row.to_cells()?;
        let key = match (&cells[0], name == HIDDEN) {
            (Cell::I64(id), false) => id.unsigned_abs(),
            _ => u64::from_be_bytes(row.key_bytes().try_into().unwrap_or_default()),
        };
        found.rows.insert(key, cells);
    }
    for index in &mut found.schema.indexes {
        let mut keys = BTreeSet::new();
        let mut rows = relation.rows_by(&index.name, KeyBounds::all())?.rev();
        while let Some(row) = rows.next()? {
            keys.insert(row.key());
        }
        if keys.len() != found.rows.len() {
            index.name = format!("{} with {} rows", index.name, keys.len());
        }
    }
    if reading.asks_again && !lookups_agree(&relation, &found)? {
        let wrong = Index::new("lookups that disagree", ["none"]);
        found.schema.indexes.push(wrong);
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
