//! Queries on a relation whose answers are compared with the model.

use crate::model::{HIDDEN, Model, Relation as Known};
use std::ops::Bound;
use tidalite::relation::{Cell, Index, KeyBounds, Relation, Rows};
use tidalite::{ReadTxn, Result};
use tidalite_testkit::rng::Rng;

/// Queries one relation of the model, and describes the first wrong answer; `None` if all answers are right.
///
/// # Errors
/// An error of the database.
pub(super) fn ask(snap: &ReadTxn, model: &Model, rng: &mut Rng) -> Result<Option<String>> {
    let names: Vec<&String> = model.relations.keys().collect();
    if names.is_empty() {
        return Ok(None);
    }
    let name = *rng.pick(&names);
    let known = &model.relations[name];
    let Some(relation) = snap.relation(name)? else {
        return Ok(Some(format!("{name} is not there")));
    };
    let key_of = |key: u64| match name == HIDDEN {
        true => Cell::U64(key),
        false => Cell::I64(key as i64),
    };
    let wrong = by_key(&relation, known, rng, key_of)?.or(by_indexes(&relation, known, rng)?);
    Ok(wrong.map(|wrong| format!("{name}: {wrong}")))
}

/// Queries an interval of keys, and the rows at its ends.
fn by_key(
    relation: &Relation<'_>,
    known: &Known,
    rng: &mut Rng,
    key_of: impl Fn(u64) -> Cell,
) -> Result<Option<String>> {
    let end = known.rows.last_key_value().map_or(0, |(key, _)| key + 2);
    let (from, to) = (rng.below(end + 1), rng.below(end + 1));
    let (from, to) = (from.min(to), from.max(to));
    for key in [from, to] {
        let found = relation.get_row(&relation.row_key(&[key_of(key)])?)?;
        let row = known.rows.get(&key);
        if found.as_ref() != row {
            return Ok(Some(format!("row {key} is {found:?}, not {row:?}")));
        }
    }
    let range = KeyBounds::new(
        Bound::Included(vec![key_of(from)]),
        Bound::Excluded(vec![key_of(to)]),
    );
    let rows: Vec<&Vec<Cell>> = known.rows.range(from..to).map(|(_, row)| row).collect();
    let count = relation.count_in(range.clone())?;
    let ahead = cells(relation.rows(range.clone())?)?;
    let mut back = cells(relation.rows(range)?.rev())?;
    back.reverse();
    let right = count == rows.len() as u64 && ahead.iter().eq(rows) && ahead == back;
    Ok((!right).then(|| format!("keys {from}..{to} have {count} rows: {ahead:?} or {back:?}")))
}

/// Queries each index for the rows that have the same first cell as a random row.
fn by_indexes(relation: &Relation<'_>, known: &Known, rng: &mut Rng) -> Result<Option<String>> {
    let rows: Vec<&Vec<Cell>> = known.rows.values().collect();
    if rows.is_empty() {
        return Ok(None);
    }
    for index in known.schema.indexes() {
        let cell = |row: &Vec<Cell>| first_cell(known, index, row).clone();
        let wanted = cell(rows[rng.index(rows.len())]);
        let range = KeyBounds::prefix([wanted.clone()]);
        let own = rows.iter().filter(|row| cell(row) == wanted);
        let mut own: Vec<String> = own.map(|row| format!("{row:?}")).collect();
        let count = relation.count_by(&index.name, range.clone())?;
        let found = cells(relation.rows_by(&index.name, range)?)?;
        let mut told: Vec<String> = found.iter().map(|row| format!("{row:?}")).collect();
        own.sort();
        told.sort();
        if told != own || count != own.len() as u64 {
            let index = &index.name;
            return Ok(Some(format!(
                "{index} has {count} rows with {wanted}: {told:?}, not {own:?}"
            )));
        }
    }
    Ok(None)
}

/// The cell of a row in the first column of an index.
fn first_cell<'r>(known: &Known, index: &Index, row: &'r [Cell]) -> &'r Cell {
    let column = known.schema.position(&index.columns[0]);
    &row[column.expect("an index of the model has columns of the model")]
}

fn cells(mut rows: Rows<'_>) -> Result<Vec<Vec<Cell>>> {
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        all.push(row.to_cells()?);
    }
    Ok(all)
}
