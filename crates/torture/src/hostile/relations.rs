//! A file with relations, and calls to all their methods.

use super::base_file::file;
use super::errors::keep;
use super::files::Files;
use super::messages_write::steps;
use std::ops::{Bound, Range};
use tidalite::relation::{
    Cell, Column, ColumnType, Index, KeyBounds, Relation, RelationMut, RowKey, Rows, Schema,
    TimeUnit,
};
use tidalite::{Database, ErrorKind, ReadTxn, Result, WriteTxn};

/// Maximum number of rows that are read or changed by one call.
const MOST: usize = 500;
/// Number of kinds of changes.
const KINDS: u32 = 14;
/// Number of the kind of change that adds a column and renames the relation.
const WIDENED: u32 = 6;
/// Number of the kind of change that creates a unique index of all columns.
const UNIQUE: u32 = 11;
/// Numbers of new rows, for [`new_row`], in the order of the kinds of changes.
const UPDATED: i64 = 3_000;
const INSERTED: i64 = 1_000;
const BATCH: Range<i64> = 2_000..2_040;
const COLUMNS_ONLY: i64 = 4_000;

/// Creates the file: a relation with columns of all types, and one with a hidden key.
///
/// # Errors
/// An error of the database.
pub(super) fn relations() -> Result<Files> {
    file(512, |db| {
        let mut tx = db.begin_write()?;
        let mut parts = tx.create_relation("parts", &schema())?;
        for i in 0..150 {
            parts.insert(&row(i))?;
        }
        parts.add_column(Column::new("later", ColumnType::Text).default("absent"))?;
        parts.drop_column("price")?;
        for i in 0..20 {
            let key = parts.view()?.row_key(&key(i))?;
            parts.remove(&key)?;
        }
        tx.commit()?;
        let mut tx = db.begin_write()?;
        let schema = Schema::new()
            .column(Column::new("line", ColumnType::Text))
            .index(Index::new("by_line", ["line"]));
        let mut log = tx.create_relation("log", &schema)?;
        for i in 0..60 {
            log.insert(&[Cell::from(format!("line {}", i % 7))])?;
        }
        log.insert(&[Cell::from("long ".repeat(300))])?;
        tx.commit()?;
        Ok(())
    })
}

fn schema() -> Schema {
    let (unit, zoned) = (TimeUnit::Micros, true);
    Schema::new()
        .column(Column::new("name", ColumnType::Text))
        .column(Column::new("number", ColumnType::I32))
        .column(Column::new("is_new", ColumnType::Bool))
        .column(Column::new("small", ColumnType::I16))
        .column(Column::new("count", ColumnType::U64).default(7_u64))
        .column(Column::new("weight", ColumnType::F32))
        .column(Column::new("power", ColumnType::F64))
        .column(Column::new("raw", ColumnType::Bytes))
        .column(Column::new(
            "price",
            ColumnType::Decimal {
                precision: 20,
                scale: 2,
            },
        ))
        .column(Column::new("built", ColumnType::Date))
        .column(Column::new("seen", ColumnType::Time { unit, zoned }))
        .column(Column::new("guid", ColumnType::Guid))
        .primary_key(["name", "number"])
        .index(Index::new("by_guid", ["guid"]).unique())
        .index(Index::new("by_power", ["power", "raw"]))
}

fn key(i: i64) -> [Cell; 2] {
    [Cell::from(format!("part\0{}", i % 5)), Cell::I64(i)]
}

fn row(i: i64) -> Vec<Cell> {
    let [name, number] = key(i);
    let mut guid = [0; 16];
    guid[..8].copy_from_slice(&i.to_be_bytes());
    vec![
        name,
        number,
        Cell::Bool(i % 2 == 0),
        Cell::I64(-i),
        if i % 3 == 0 { Cell::Null } else { Cell::U64(9) },
        Cell::F64(0.5),
        Cell::F64(i as f64 / 8.0),
        Cell::Bytes(vec![0; (i % 40) as usize]),
        Cell::Decimal(i.into()),
        Cell::I64(16_222 + i),
        Cell::I64(i * 1_000_000),
        if i % 4 == 0 {
            Cell::Null
        } else {
            Cell::Guid(guid)
        },
    ]
}

/// Reads a relation in every way.
pub(super) fn read(snap: &ReadTxn, name: &str) -> Result<()> {
    match snap.relation(name)? {
        Some(relation) => all_of(&relation),
        None => Ok(()),
    }
}

fn all_of(relation: &Relation<'_>) -> Result<()> {
    let mut seen = Ok(());
    let _ = (relation.name(), relation.count());
    keep(&mut seen, relation.check(&mut |_| ()));
    keep(&mut seen, relation.rows(KeyBounds::all()).and_then(walk));
    let back = relation.rows(KeyBounds::all()).map(Rows::rev);
    keep(&mut seen, back.and_then(walk));
    for i in [0, 33, 149] {
        drop(relation.get(&key(i)));
        let found = relation.row_key(&key(i));
        let found = found.and_then(|key| relation.with_row(&key, |row| row.to_cells()));
        // The hidden key of the other relation is another number of cells.
        keep(&mut seen, allowed(found));
    }
    // Schemas of changed bytes may have keys of other types.
    for cells in [
        vec![Cell::Null],
        vec![Cell::from("part\0\u{1}")],
        key(33).to_vec(),
    ] {
        let range = KeyBounds::new(Bound::Included(cells), Bound::Unbounded);
        keep(&mut seen, allowed(relation.count_in(range.clone())));
        keep(&mut seen, allowed(relation.rows(range).and_then(walk)));
    }
    keep(
        &mut seen,
        relation.get_row(&RowKey::from_bytes([0; 8])).map(drop),
    );
    keep(&mut seen, parts(relation));
    for index in relation.schema().indexes() {
        let all = relation.rows_by(&index.name, KeyBounds::all());
        keep(&mut seen, all.and_then(walk));
        let below = KeyBounds::new(Bound::Unbounded, Bound::Excluded(vec![Cell::Null]));
        keep(&mut seen, relation.count_by(&index.name, below).map(drop));
    }
    seen
}

/// Reads a relation in parts.
fn parts(relation: &Relation<'_>) -> Result<()> {
    let cuts = relation.split(KeyBounds::all(), 4)?;
    for part in 0..=cuts.len() {
        let from = part.checked_sub(1).map(|at| &cuts[at]);
        walk(relation.rows_between(KeyBounds::all(), from, cuts.get(part))?)?;
    }
    Ok(())
}

fn walk(mut rows: Rows<'_>) -> Result<()> {
    let mut left = MOST;
    while let Some(row) = rows.next()? {
        let cells = row.to_cells()?;
        let _ = (row.key(), row.key_bytes());
        for at in (0..cells.len()).rev() {
            row.cell(at)?;
        }
        left -= 1;
        if left == 0 {
            break;
        }
    }
    Ok(())
}

/// Calls every method that changes a relation, with one transaction for each kind of change.
pub(super) fn write(db: &Database, name: &str) -> Result<()> {
    steps(db, KINDS, |tx, step| changed(tx, name, step))
}

fn changed(tx: &mut WriteTxn, name: &str, step: u32) -> Result<()> {
    if step == KINDS - 1 {
        return tx.drop_table(name).map(drop);
    }
    match tx.relation_mut(name)? {
        Some(mut relation) => change(&mut relation, step)?,
        None => return Ok(()),
    }
    if step == WIDENED {
        let renamed = format!("{name} renamed");
        allowed(tx.rename_table(name, &renamed))?;
        allowed(tx.rename_table(&renamed, name))?;
    }
    match tx.view_relation(name)? {
        Some(view) => view.rows(KeyBounds::all()).and_then(walk),
        None => Ok(()),
    }
}

/// The keys and rows of a relation.
fn rows_of(relation: &RelationMut<'_>) -> Result<Vec<(RowKey, Vec<Cell>)>> {
    let view = relation.view()?;
    let mut rows = view.rows(KeyBounds::all())?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push((row.key(), row.to_cells()?));
        if found.len() == MOST {
            break;
        }
    }
    Ok(found)
}

/// A result, without errors that refuse a row or a change of the schema.
fn allowed<T>(result: Result<T>) -> Result<()> {
    match result.map_err(|error| (error.kind(), error)) {
        Err((
            ErrorKind::Limit
            | ErrorKind::AlreadyExists
            | ErrorKind::Schema
            | ErrorKind::UniqueViolation
            | ErrorKind::NotNullViolation
            | ErrorKind::NotFound
            | ErrorKind::InvalidName,
            _,
        )) => Ok(()),
        Err((_, error)) => Err(error),
        Ok(_) => Ok(()),
    }
}

/// A new row for any schema. Its cells follow from the number, which fits the narrowest integers.
fn new_row(schema: &Schema, number: i64) -> Vec<Cell> {
    let columns = schema.columns().iter();
    columns
        .map(|column| new_cell(column.kind, number))
        .collect()
}

fn new_cell(kind: ColumnType, number: i64) -> Cell {
    match kind {
        ColumnType::Bool => Cell::Bool(number % 2 == 0),
        ColumnType::U64 => Cell::U64(number.unsigned_abs()),
        ColumnType::F32 | ColumnType::F64 => Cell::F64(number as f64),
        ColumnType::Text => Cell::from(format!("new {number}")),
        ColumnType::Bytes => Cell::Bytes(number.to_be_bytes().to_vec()),
        ColumnType::Decimal { .. } => Cell::Decimal(number.into()),
        ColumnType::Guid => Cell::Guid(u128::from(number.unsigned_abs()).to_be_bytes()),
        _ => Cell::I64(number),
    }
}

/// Whether a column is in the primary key or in a unique index.
fn is_unique(schema: &Schema, column: &Column) -> bool {
    let mut indexes = schema.indexes().iter();
    schema.primary_key.contains(&column.name)
        || indexes.any(|index| index.unique && index.columns.contains(&column.name))
}

fn change(relation: &mut RelationMut<'_>, step: u32) -> Result<()> {
    let schema = relation.schema().clone();
    let columns = || schema.columns().iter().map(|column| &column.name);
    match step {
        0 => update(relation, &schema)?,
        1 => {
            for (key, _) in rows_of(relation)?.iter().step_by(3) {
                relation.remove(key)?;
            }
        }
        2 => allowed(relation.insert(&new_row(&schema, INSERTED)))?,
        3 => {
            let rows: Vec<Vec<Cell>> = BATCH.map(|number| new_row(&schema, number)).collect();
            allowed(relation.insert_many(&rows))?;
            let again = rows_of(relation)?;
            let again: Vec<&[Cell]> = again.iter().map(|(_, row)| &row[..]).collect();
            allowed(relation.insert_many(&again))?;
            for row in &rows {
                allowed(relation.upsert(row))?;
            }
        }
        4 => {
            let row = new_row(&schema, COLUMNS_ONLY).into_iter();
            let given = columns().map(String::as_str).zip(row);
            let is_key = |name: &str| schema.primary_key.iter().any(|key| key == name);
            let given: Vec<(&str, Cell)> = given.filter(|(name, _)| is_key(name)).collect();
            allowed(relation.insert_columns(&given))?;
        }
        5 => {
            for column in schema.columns() {
                allowed(relation.set_default(&column.name, None))?;
                let default = Some(new_cell(column.kind, 1));
                allowed(relation.set_default(&column.name, default))?;
            }
        }
        WIDENED => {
            let column = Column::new("added", ColumnType::I64).default(1_i64);
            allowed(relation.add_column(column))?;
        }
        7 => allowed(relation.create_index(Index::new("all", columns().take(8))))?,
        8 => {
            for (at, column) in columns().enumerate() {
                allowed(relation.rename_column(column, &format!("column {at}")))?;
            }
        }
        9 => {
            for index in schema.indexes() {
                relation.drop_index(&index.name)?;
            }
        }
        10 => {
            for column in columns() {
                allowed(relation.drop_column(column))?;
            }
        }
        UNIQUE => allowed(relation.create_index(Index::new("unique", columns()).unique()))?,
        _ => relation.clear()?,
    }
    Ok(())
}

/// Updates rows: with their own cells, with new rows that have other keys, and with the cells of other rows.
fn update(relation: &mut RelationMut<'_>, schema: &Schema) -> Result<()> {
    for (number, (key, row)) in (UPDATED..).zip(rows_of(relation)?.iter().step_by(5)) {
        allowed(relation.find_conflict(row))?;
        allowed(relation.insert(row))?;
        allowed(relation.upsert(row))?;
        allowed(relation.update(key, row))?;
        allowed(relation.update(key, &new_row(schema, number)))?;
    }
    // Each row gets the cells of the row before it, except where that would conflict.
    let rows = rows_of(relation)?;
    for ((key, row), (_, before)) in rows.iter().skip(1).zip(&rows).step_by(7) {
        let cells = schema.columns().iter().zip(row.iter().zip(before));
        let cells = cells.map(|(column, (own, other))| match is_unique(schema, column) {
            true => own.clone(),
            false => other.clone(),
        });
        allowed(relation.update(key, &cells.collect::<Vec<_>>()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of rows, the schema, and the keys of the rows in the order of each index.
    type State = Option<(u64, Schema, Vec<Vec<RowKey>>)>;

    fn state(db: &Database, name: &str) -> State {
        let snap = db.begin_read().unwrap();
        let relation = snap.relation(name).unwrap()?;
        let schema = relation.schema().clone();
        let keys = |mut rows: Rows<'_>| {
            let mut keys = Vec::new();
            while let Some(row) = rows.next().unwrap() {
                keys.push(row.key());
            }
            keys
        };
        let all = KeyBounds::all;
        let by_index = schema.indexes().iter();
        let by_index = by_index.map(|index| keys(relation.rows_by(&index.name, all()).unwrap()));
        let orders = by_index
            .chain([keys(relation.rows(all()).unwrap())])
            .collect();
        Some((relation.count(), schema, orders))
    }

    /// On a sound file each step changes the relation. A step whose calls are all refused would prove nothing on a
    /// hostile file.
    #[test]
    fn each_step_changes_a_sound_relation() {
        tidalite_testkit::watch();
        let db = relations().unwrap().stored().open().unwrap();
        for name in ["parts", "log"] {
            for step in 0..KINDS {
                let before = state(&db, name);
                let mut tx = db.begin_write().unwrap();
                changed(&mut tx, name, step).unwrap();
                tx.commit().unwrap();
                let after = state(&db, name);
                // The relation `log` has equal rows, so it can have no unique index.
                if (name, step) == ("log", UNIQUE) {
                    assert_eq!(before, after);
                    continue;
                }
                assert!(before != after, "{name}: step {step} changes nothing");
                let added = match step {
                    2 | 4 => 1,
                    3 => BATCH.end - BATCH.start,
                    _ => continue,
                };
                let count = |state: State| state.unwrap().0 as i64;
                let (before, after) = (count(before), count(after));
                assert!(after >= before + added, "{name}: step {step} adds rows");
            }
        }
    }
}
