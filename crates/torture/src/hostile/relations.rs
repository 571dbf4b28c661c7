//! A file with relations, and calls to all their methods.

use super::base_file::file;
use super::errors::keep;
use super::files::Files;
use super::messages_write::steps;
use std::ops::Bound;
use tidalite::relation::{
    Cell, Column, ColumnType, Index, KeyBounds, RowKey, Rows, Schema, TimeUnit,
};
use tidalite::{Database, ErrorKind, ReadTxn, Relation, RelationMut, Result, WriteTxn};

/// Maximum number of rows that are read or changed by one call.
const MOST: usize = 500;
/// Number of kinds of changes.
const KINDS: u32 = 14;

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

/// Calls every method that changes a relation, each kind of changes in a transaction of its own.
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
    if step == 3 {
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
            | ErrorKind::Unsupported
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

fn change(relation: &mut RelationMut<'_>, step: u32) -> Result<()> {
    let columns: Vec<String> = relation
        .schema()
        .columns()
        .iter()
        .map(|one| one.name.clone())
        .collect();
    match step {
        0 => {
            for (key, row) in rows_of(relation)?.iter().step_by(5) {
                allowed(relation.find_conflict(row))?;
                allowed(relation.insert(row))?;
                allowed(relation.upsert(row))?;
                allowed(relation.update(key, row))?;
            }
            // Each row gets the key and the texts of the one before it.
            let rows = rows_of(relation)?;
            for ((key, _), (_, row)) in rows.iter().skip(1).zip(&rows).step_by(7) {
                allowed(relation.update(key, row))?;
            }
        }
        1 => {
            for (key, _) in rows_of(relation)?.iter().step_by(3) {
                relation.remove(key)?;
            }
        }
        2 => allowed(relation.insert(&row(1_000)))?,
        3 => allowed(relation.add_column(Column::new("added", ColumnType::I64).default(1_i64)))?,
        4 => allowed(relation.create_index(Index::new("all", columns.into_iter().take(8))))?,
        5 => {
            for (at, column) in columns.iter().enumerate() {
                allowed(relation.rename_column(column, &format!("column {at}")))?;
            }
        }
        6 => {
            let indexes = relation.schema().indexes().to_vec();
            for index in indexes {
                relation.drop_index(&index.name)?;
            }
        }
        7 => {
            for column in &columns {
                allowed(relation.drop_column(column))?;
            }
        }
        8 => allowed(relation.insert_columns(&[]))?,
        9 => allowed(relation.create_index(Index::new("unique", columns).unique()))?,
        10 => {
            let rows: Vec<Vec<Cell>> = (2_000..2_040).map(row).collect();
            allowed(relation.insert_many(&rows))?;
            let again = rows_of(relation)?;
            let again: Vec<&[Cell]> = again.iter().map(|(_, row)| &row[..]).collect();
            allowed(relation.insert_many(&again))?;
            for row in &rows {
                allowed(relation.upsert(row))?;
            }
        }
        11 => {
            for column in &columns {
                allowed(relation.set_default(column, None))?;
                allowed(relation.set_default(column, Some(Cell::I64(1))))?;
            }
        }
        _ => relation.clear()?,
    }
    Ok(())
}
