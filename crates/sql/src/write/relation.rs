//! INSERT, UPDATE and DELETE of rows of relations.

use crate::error::{Error, ErrorKind, Result};
use crate::relational::rows::Rows;
use crate::write::conflict::{Action, OnConflict};
use crate::write::written::Written;
use arrow::array::{AsArray, RecordBatch};
use std::collections::HashSet;
use std::sync::Arc;
use tidalite::WriteTxn;
use tidalite::relation::{Cell, RelationMut, RowKey, Schema};

/// Opens an existing relation.
pub(crate) fn open<'t>(txn: &'t mut WriteTxn, name: &str) -> Result<RelationMut<'t>> {
    let gone = || Error::new(ErrorKind::Plan, format!("table {name} is gone"));
    txn.relation_mut(name)?.ok_or_else(gone)
}

/// Inserts a batch that has the columns of the relation; returns the number of inserted or updated rows. These rows are
/// added to `written`.
pub(crate) fn insert(
    txn: &mut WriteTxn,
    name: &str,
    batch: &RecordBatch,
    on_conflict: &OnConflict,
    written: Option<&mut Written>,
) -> Result<u64> {
    let mut relation = open(txn, name)?;
    let rows = Rows::new(&relation.schema().columns.clone(), batch.columns())?;
    let rows = (0..batch.num_rows()).map(|row| rows.row(row));
    insert_rows(&mut relation, rows, on_conflict, written)
}

/// Inserts rows with a cell for each column; returns the number of inserted or updated rows. These rows are added to
/// `written`.
pub(crate) fn insert_rows(
    relation: &mut RelationMut<'_>,
    rows: impl Iterator<Item = Result<Vec<Cell>>>,
    on_conflict: &OnConflict,
    mut written: Option<&mut Written>,
) -> Result<u64> {
    if matches!(on_conflict.action, Action::Fail) {
        let rows: Vec<Vec<Cell>> = rows.collect::<Result<_>>()?;
        match &rows[..] {
            [row] => drop(relation.insert(row)?),
            rows => drop(relation.insert_many(rows)?),
        }
        if let Some(written) = written {
            rows.iter().try_for_each(|row| written.push(row))?;
        }
        return Ok(rows.len() as u64);
    }
    let mut changed = 0;
    for row in rows {
        if let Some(row) = insert_row(relation, row?, on_conflict)? {
            changed += 1;
            if let Some(written) = &mut written {
                written.push(&row)?;
            }
        }
    }
    Ok(changed)
}

/// Inserts a row, or updates the existing row with its key. Returns the stored row, or `None` if nothing has changed.
fn insert_row(
    relation: &mut RelationMut<'_>,
    row: Vec<Cell>,
    on_conflict: &OnConflict,
) -> Result<Option<Vec<Cell>>> {
    while let Some((conflict, key)) = relation.find_conflict(&row)? {
        if !on_conflict.is_for(&conflict) {
            break;
        }
        match &on_conflict.action {
            Action::Fail => break,
            Action::Nothing => return Ok(None),
            Action::Replace => {
                relation.remove(&key)?;
            }
            Action::Update(update) => {
                let Some(found) = relation.view()?.get_row(&key)? else {
                    break;
                };
                let Some(changed) = update.apply(found, &row)? else {
                    return Ok(None);
                };
                relation.update(&key, &changed)?;
                return Ok(Some(changed));
            }
        }
    }
    // Any further conflict is an error.
    relation.insert(&row)?;
    Ok(Some(row))
}

/// The keys of rows, which are in the last column of a batch.
fn keys(batch: &RecordBatch) -> Result<Vec<RowKey>> {
    let lost = || Error::new(ErrorKind::Execution, "the keys of rows are lost");
    let keys = batch.columns().last().ok_or_else(lost)?;
    let keys = keys.as_binary_opt::<i32>().ok_or_else(lost)?;
    Ok(keys.iter().flatten().map(RowKey::from_bytes).collect())
}

/// Removes the rows with the keys in the last column; returns their number. If the rows are to be returned, the other
/// columns contain them.
pub(crate) fn delete(
    txn: &mut WriteTxn,
    name: &str,
    batch: &RecordBatch,
    mut written: Option<&mut Written>,
) -> Result<u64> {
    let mut relation = open(txn, name)?;
    let columns = written.as_ref().map(|_| relation.schema().columns.clone());
    let rows = columns
        .as_ref()
        .map(|columns| Rows::new(columns, batch.columns()));
    let rows = rows.transpose()?;
    let mut removed = 0;
    for (row, key) in keys(batch)?.into_iter().enumerate() {
        // If the row was removed before, it has matched several rows of another table.
        if !relation.remove(&key)? {
            continue;
        }
        removed += 1;
        if let (Some(written), Some(rows)) = (&mut written, &rows) {
            written.push(&rows.row(row)?)?;
        }
    }
    Ok(removed)
}

/// Updates rows.
pub(crate) struct Update {
    name: Arc<str>,
    /// Whether columns that must be unique get new values. Then all rows are removed before the first one is inserted,
    /// so that only the final rows must be unique.
    moves: bool,
    moved: Vec<Vec<Cell>>,
    /// The keys of the rows updated so far, if the plan can return a row several times: only the first occurrence
    /// counts.
    seen: Option<HashSet<RowKey>>,
    updated: u64,
}

impl Update {
    /// An update of these columns. With a join, the plan can return a row several times.
    pub(crate) fn new(
        name: &Arc<str>,
        schema: &Schema,
        columns: &[String],
        is_joined: bool,
    ) -> Self {
        let unique = schema.indexes.iter().filter(|index| index.unique);
        let mut keys = std::iter::once(&schema.primary_key)
            .chain(unique.map(|index| &index.columns))
            .flatten();
        Self {
            name: Arc::clone(name),
            moves: keys.any(|column| columns.contains(column)),
            moved: Vec::new(),
            seen: is_joined.then(HashSet::new),
            updated: 0,
        }
    }

    /// Updates the rows of a batch, which contains the new values, and the keys in the last column.
    pub(crate) fn update(
        &mut self,
        txn: &mut WriteTxn,
        batch: &RecordBatch,
        mut written: Option<&mut Written>,
    ) -> Result<()> {
        let mut relation = open(txn, &self.name)?;
        let rows = Rows::new(&relation.schema().columns.clone(), batch.columns())?;
        for (row, key) in keys(batch)?.into_iter().enumerate() {
            if let Some(seen) = &mut self.seen
                && !seen.insert(key.clone())
            {
                continue;
            }
            let cells = rows.row(row)?;
            if let Some(written) = &mut written {
                written.push(&cells)?;
            }
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

    /// Inserts the rows that were removed; returns the number of updated rows.
    pub(crate) fn finish(self, txn: &mut WriteTxn) -> Result<u64> {
        let mut relation = open(txn, &self.name)?;
        for row in &self.moved {
            relation.insert(row)?;
        }
        Ok(self.updated)
    }
}
