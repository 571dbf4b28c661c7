//! INSERT, UPDATE and DELETE of rows of relations.

use crate::error::{Error, ErrorKind, Result};
use crate::relational::rows::Rows;
use crate::write::conflict::{Action, OnConflict};
use arrow::array::{AsArray, RecordBatch};
use std::collections::HashSet;
use std::sync::Arc;
use tidalite::WriteTxn;
use tidalite::relation::{Cell, Conflict, RelationMut, RowKey, Schema};

/// Opens a relation that exists.
pub(crate) fn open<'t>(txn: &'t mut WriteTxn, name: &str) -> Result<RelationMut<'t>> {
    let gone = || Error::new(ErrorKind::Plan, format!("table {name} is gone"));
    txn.relation_mut(name)?.ok_or_else(gone)
}

/// Inserts a batch that has the columns of the relation; returns the number of rows inserted or updated.
pub(crate) fn insert(
    txn: &mut WriteTxn,
    name: &str,
    batch: &RecordBatch,
    on_conflict: &OnConflict,
) -> Result<u64> {
    let mut relation = open(txn, name)?;
    let schema = relation.schema().clone();
    let rows = Rows::new(&schema.columns, batch.columns())?;
    if matches!(on_conflict.action, Action::Fail) {
        let cells = (0..batch.num_rows()).map(|row| rows.row(row));
        let cells: Vec<Vec<Cell>> = cells.collect::<Result<_>>()?;
        return Ok(relation.insert_many(&cells)?.len() as u64);
    }
    let mut changed = 0;
    for row in 0..batch.num_rows() {
        let cells = rows.row(row)?;
        changed += u64::from(insert_row(&mut relation, &schema, cells, on_conflict)?);
    }
    Ok(changed)
}

/// Inserts a row; returns whether anything has changed.
fn insert_row(
    relation: &mut RelationMut<'_>,
    schema: &Schema,
    row: Vec<Cell>,
    on_conflict: &OnConflict,
) -> Result<bool> {
    while let Some((conflict, key)) = relation.find_conflict(&row)? {
        if !on_conflict.is_for(schema, &conflict) {
            break;
        }
        match &on_conflict.action {
            Action::Fail => break,
            Action::Nothing => return Ok(false),
            Action::Replace => {
                relation.remove(&key)?;
            }
            Action::Update(update) => {
                let Some(found) = relation.view()?.get_row(&key)? else {
                    break;
                };
                let Some(changed) = update.apply(found, &row)? else {
                    return Ok(false);
                };
                relation.update(&key, &changed)?;
                return Ok(true);
            }
        }
    }
    // Another conflict is an error.
    relation.insert(&row)?;
    Ok(true)
}

impl OnConflict {
    /// Whether the clause names the key of a conflict; without a name it is for all.
    fn is_for(&self, schema: &Schema, conflict: &Conflict) -> bool {
        let Some(target) = &self.target else {
            return true;
        };
        let columns = match conflict {
            Conflict::PrimaryKey => &schema.primary_key,
            Conflict::Index(name) => {
                match schema.indexes.iter().find(|index| index.name == *name) {
                    Some(index) => &index.columns,
                    None => return false,
                }
            }
        };
        let wanted: HashSet<&String> = target.iter().collect();
        wanted == columns.iter().collect()
    }

    /// Checks that the clause names a key.
    pub(crate) fn check(&self, schema: &Schema) -> Result<()> {
        let unique = schema.indexes.iter().filter(|index| index.unique);
        let unique = unique.map(|index| Conflict::Index(index.name.clone()));
        let mut keys = std::iter::once(Conflict::PrimaryKey).chain(unique);
        let Some(target) = &self.target else {
            return Ok(());
        };
        if keys.any(|key| self.is_for(schema, &key)) {
            return Ok(());
        }
        let problem = format!(
            "ON CONFLICT ({}) names neither the primary key nor the columns of a unique index",
            target.join(", ")
        );
        Err(Error::new(ErrorKind::Plan, problem))
    }
}

/// The keys in the last column of a batch.
fn keys(batch: &RecordBatch) -> Result<Vec<RowKey>> {
    let lost = || Error::new(ErrorKind::Execution, "the keys of rows are lost");
    let keys = batch.columns().last().ok_or_else(lost)?;
    let keys = keys.as_binary_opt::<i32>().ok_or_else(lost)?;
    Ok(keys.iter().flatten().map(RowKey::from_bytes).collect())
}

/// Removes the rows with the keys in the last column; returns their number.
pub(crate) fn delete(txn: &mut WriteTxn, name: &str, batch: &RecordBatch) -> Result<u64> {
    let mut relation = open(txn, name)?;
    let mut removed = 0;
    for key in keys(batch)? {
        removed += u64::from(relation.remove(&key)?);
    }
    Ok(removed)
}

/// Updates rows.
pub(crate) struct Update {
    name: Arc<str>,
    /// The columns that get new values decide about uniqueness: all rows are removed before the first is inserted, so that
    /// only the final rows must be unique.
    moves: bool,
    moved: Vec<Vec<Cell>>,
    updated: u64,
}

impl Update {
    /// An update of these columns.
    pub(crate) fn new(name: &Arc<str>, schema: &Schema, columns: &[String]) -> Self {
        let unique = schema.indexes.iter().filter(|index| index.unique);
        let mut keys = std::iter::once(&schema.primary_key)
            .chain(unique.map(|index| &index.columns))
            .flatten();
        Self {
            name: Arc::clone(name),
            moves: keys.any(|column| columns.contains(column)),
            moved: Vec::new(),
            updated: 0,
        }
    }

    /// Updates the rows of a batch, with the new values and the keys in the last column.
    pub(crate) fn update(&mut self, txn: &mut WriteTxn, batch: &RecordBatch) -> Result<()> {
        let mut relation = open(txn, &self.name)?;
        let rows = Rows::new(&relation.schema().columns.clone(), batch.columns())?;
        for (row, key) in keys(batch)?.into_iter().enumerate() {
            let cells = rows.row(row)?;
            if self.moves {
                relation.remove(&key)?;
                self.moved.push(cells);
            } else {
                relation.update(&key, &cells)?;
            }
            self.updated += 1;
        }
        Ok(())
    }

    /// Inserts the rows that were removed; returns the number of rows updated.
    pub(crate) fn finish(self, txn: &mut WriteTxn) -> Result<u64> {
        let mut relation = open(txn, &self.name)?;
        for row in &self.moved {
            relation.insert(row)?;
        }
        Ok(self.updated)
    }
}
